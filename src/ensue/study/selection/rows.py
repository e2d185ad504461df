"""Data in memory as the files that a selection reads: its trials are run folders, which other
processes go on with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ensue.data.frames.frame import Frame
from ensue.errors import DataError
from ensue.files.disk import write_whole
from ensue.files.opening import read_plain

FOLDER = "data"  # below that of the selection
PARTS = ("validation", "test")  # further data that may be given
SHOWN = 60  # characters of what was given


def files_of(data: Any, folder: Path, part: str) -> list[str]:
    """The files that data are in: their own, or one that is written for rows in memory."""
    if isinstance(data, str | Path):
        return [str(Path(data).resolve())]
    if isinstance(data, list | tuple) and data and all(isinstance(own, str | Path) for own in data):
        return [str(Path(own).resolve()) for own in data]
    lines = [json.dumps(row, ensure_ascii=False, default=_as_list) for row in rows_of(data)]
    if not lines:
        raise DataError(f"select: expected rows, got none ({part})")
    path, text = folder / FOLDER / f"{part}.jsonl", ("\n".join(lines) + "\n").encode()
    if not path.exists() or read_plain(path) != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    return [str(path.resolve())]


def rows_of(data: Any) -> Iterator[Mapping[str, Any]]:
    """By column name.

    >>> list(rows_of([("a fine film", "good")]))
    [{'text': 'a fine film', 'label': 'good'}]
    >>> list(rows_of({"sales": [3, 5]}))
    [{'sales': 3}, {'sales': 5}]
    """
    frame = Frame.of(data)
    if frame is not None:
        names = [*filter(None, [frame.time_index]), *frame.names]
        yield from _of_columns({name: frame.column(name) for name in names})
    elif isinstance(data, Mapping):
        yield from _of_columns({str(name): list(own) for name, own in data.items()})
    elif isinstance(data, Sequence) and all(isinstance(row, Mapping) for row in data):
        yield from data
    elif isinstance(data, Sequence) and all(_is_pair(row) for row in data):
        yield from (_of_pair(*row) for row in data)
    else:
        raise DataError(
            "select: expected files, a data frame, rows by column name, columns by name, or pairs "
            f"of input and label, got {repr(data)[:SHOWN]}; write others to a file"
        )


def label_type(data: Any, label: str) -> str:
    """Of the labels in a data frame, bool, int or float; "" for texts, and for all else."""
    frame = None if isinstance(data, str | Path) else Frame.of(data)
    return frame.type_of(label) if frame is not None and label in frame.names else ""


def _of_columns(columns: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    if len({len(own) for own in columns.values()}) > 1:
        sizes = ", ".join(f"{name} {len(own):,}" for name, own in columns.items())
        raise DataError(f"select: expected columns of the same length, got {sizes}")
    for cells in zip(*columns.values(), strict=True):
        yield dict(zip(columns, cells, strict=True))


def _is_pair(row: Any) -> bool:
    return isinstance(row, tuple | list) and len(row) == 2


def _of_pair(given: Any, label: Any) -> dict[str, Any]:
    """A pair of texts is matched; anything else is one input."""
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(own, str) for own in given):
        return {"text": given[0], "second": given[1], "label": label}
    return {"text": given, "label": label}


def _as_list(value: Any) -> Any:
    """Arrays and their numbers, as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise DataError(f"select: expected texts, numbers and lists of them, got {repr(value)[:SHOWN]}")
