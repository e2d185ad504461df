"""Plain text: the whole file is one row. It has no ending: use `--format whole`."""

from ensue.data.formats.text import read_whole as read

__all__ = ["ENDINGS", "read"]

ENDINGS = ()
