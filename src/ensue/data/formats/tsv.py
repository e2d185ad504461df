"""Tables with tabs between the columns; quotes have no meaning unless `quote` says so."""

from ensue.data.formats.csv import read

__all__ = ["ENDINGS", "HEADER", "read"]

ENDINGS = (".tsv",)
HEADER = True
