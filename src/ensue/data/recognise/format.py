"""Which format a file has: by its name, and by its first lines where the name tells too little."""

from __future__ import annotations

from pathlib import Path

from ensue.data.formats import endings, format_names, formats
from ensue.data.recognise.foreign import refuse_foreign
from ensue.data.stream import DamagedStream, pieces
from ensue.errors import DataError

AUTO, FOLDER, TEXT = "auto", "folder", "text"
BYTE_ORDER_MARK = "\ufeff"
LOOKED_AT = 100  # lines


def format_of(path: Path, said: str = AUTO) -> str:
    """The format that was said, or that of the file. A folder is a folder of texts; a file of
    another program is an error that tells what to do."""
    if path.is_dir():
        return FOLDER if said == AUTO else said
    name = path.name.lower().removesuffix(".gz")
    found = endings().get(Path(name).suffix) if said == AUTO else said
    if path.is_file():
        refuse_foreign(path, found)
        if said == AUTO and found in (None, TEXT):
            found = _by_first_lines(path) or found
    if found is None:
        raise DataError(
            f"{path}: the name does not tell the format (known: {', '.join(endings())}, "
            f"each also with .gz); use --format with one of {', '.join(format_names())}"
        )
    return found


def _by_first_lines(path: Path) -> str | None:
    """The format whose lines these are, where one says so."""
    try:
        content = next(pieces(path), b"").decode("utf-8", "replace").removeprefix(BYTE_ORDER_MARK)
    except DamagedStream:
        return None
    lines = content.split("\n")
    whole = lines[:-1] or lines  # the last one may be cut off
    first = [line.removesuffix("\r") for line in whole[:LOOKED_AT]]
    return next((own.name for own in formats() if own.recognised(first)), None)
