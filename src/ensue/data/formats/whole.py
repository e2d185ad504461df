"""Plain text: the whole file is one row. No ending of a name stands for it: ask for it by name."""

from ensue.data.formats.text import read_whole as read

__all__ = ["ENDINGS", "read"]

ENDINGS = ()
