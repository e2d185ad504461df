"""CoNLL-U: ten columns of known names, comments, ranges and empty nodes."""

from ensue.data.formats.conll import read_conllu as read

__all__ = ["ENDINGS", "read"]

ENDINGS = (".conllu",)
