"""Tables with tabs between the columns; quotes have no meaning unless `quote` is set."""

from collections.abc import Sequence

from ensue.data.formats.csv import read

__all__ = ["ENDINGS", "HEADER", "read", "recognised"]

ENDINGS = (".tsv",)
HEADER = True
FEWEST = 20  # lines that tell


def recognised(first: Sequence[str]) -> bool:
    """Whether every line has the same number of tabs, none of them adjacent."""
    while first and not first[-1].strip():
        first = first[:-1]
    tabs = {line.count("\t") for line in first}
    whole = len(tabs) == 1 and 0 not in tabs and len(first) >= FEWEST
    return whole and all(all(cell.strip() for cell in line.split("\t")) for line in first)
