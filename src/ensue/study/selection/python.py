"""`ensue.select`: selection from Python."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ensue.data.frames.frame import Frame
from ensue.data.settings import DataSettings
from ensue.errors import DataError, OptionError
from ensue.files.disk import write_whole
from ensue.files.opening import read_plain
from ensue.runs.infer import infer
from ensue.runs.messages import log
from ensue.study.selection.entries import Selection
from ensue.tasks import TASKS
from ensue.tasks.roles import named_roles

FOLDER = "data"  # subfolder of the selection's folder
PARTS = ("validation", "test")  # further data arguments
SHOWN = 60  # maximum characters of a value in a message


def files_of(data: Any, folder: Path, part: str) -> list[str]:
    """The files of the data, or a new file for rows in memory."""
    if isinstance(data, str | Path):
        return [str(Path(data).resolve())]
    if (
        isinstance(data, list | tuple)
        and data
        and all(isinstance(item, str | Path) for item in data)
    ):
        return [str(Path(item).resolve()) for item in data]
    lines = [json.dumps(row, ensure_ascii=False, default=_as_list) for row in rows_of(data)]
    if not lines:
        raise DataError(f"select: expected rows, got none ({part})")
    path, text = folder / FOLDER / f"{part}.jsonl", ("\n".join(lines) + "\n").encode()
    if not path.exists() or read_plain(path) != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    return [str(path.resolve())]


def rows_of(data: Any) -> Iterator[Mapping[str, Any]]:
    """Rows by column name.

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
        yield from _of_columns({str(name): list(value) for name, value in data.items()})
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
    """The type of the labels in a data frame: bool, int or float; "" for texts and other data."""
    frame = None if isinstance(data, str | Path) else Frame.of(data)
    return frame.type_of(label) if frame is not None and label in frame.names else ""


def _of_columns(columns: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    if len({len(column) for column in columns.values()}) > 1:
        sizes = ", ".join(f"{name} {len(column):,}" for name, column in columns.items())
        raise DataError(f"select: expected columns of the same length, got {sizes}")
    for cells in zip(*columns.values(), strict=True):
        yield dict(zip(columns, cells, strict=True))


def _is_pair(row: Any) -> bool:
    return isinstance(row, tuple | list) and len(row) == 2


def _of_pair(inputs: Any, label: Any) -> dict[str, Any]:
    """A pair of texts becomes two columns; any other input is one."""
    if (
        isinstance(inputs, tuple)
        and len(inputs) == 2
        and all(isinstance(item, str) for item in inputs)
    ):
        return {"text": inputs[0], "second": inputs[1], "label": label}
    return {"text": inputs, "label": label}


def _as_list(value: Any) -> Any:
    """Converts arrays and their numbers for JSON."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise DataError(f"select: expected texts, numbers and lists of them, got {repr(value)[:SHOWN]}")


def select(
    data: Any,
    folder: str | Path = "selection",
    *,
    task: str = "",
    trials: int | None = None,
    minutes: float | None = None,
    workers: int = 1,
    together: bool = False,
    settings: Sequence[str] = (),
    **columns: Any,
) -> Selection:
    """Finds the best model and settings for these data, like `ensue select`: trials are run folders
    below the folder, and the winner is tested once. data: one or several files, a data frame, or
    rows in memory as for `fit`, which are written into the folder; settings: fixed ones,
    ["train.epochs=5"]; columns: roles of columns, label="stars", and further data,
    validation=["held.csv"]; together: also try an ensemble of trials.

    >>> from pathlib import Path
    >>> lines = ["x,y", *(f"{k},{2 * k}" for k in range(60))]
    >>> written = Path("pairs.csv").write_text("\\n".join(lines))
    >>> quick = ["train.epochs=1", "model.target=number"]
    >>> found = ensue.select("pairs.csv", task="table", label="y", trials=1, settings=quick)
    >>> found.winner.name, type(found.model).__name__
    ('trial-000', 'TableModel')
    """
    from ensue.study.selection.folder import selecting
    from ensue.study.selection.search import TRIALS, SearchRequest, searched

    if trials is not None and minutes is not None:
        raise OptionError("trials and minutes: expected one of them, got both")
    number = TRIALS if trials is None else trials
    request = SearchRequest(number, workers, minutes, together=together)
    parts = {"train": data, **{part: columns.pop(part) for part in PARTS if part in columns}}
    with selecting(Path(folder)):  # rows in memory are written there
        files = {part: files_of(rows, Path(folder), part) for part, rows in parts.items()}
        roles, more = _roles(task, columns)
        config, messages = infer({**files, **roles}, task or None, [*more, *settings])
        for message in messages:
            log(message)
        selection = searched(config.with_named_cells(), Path(folder), request, log)
    return selection.with_labels(label_type(data, config.data.label))


def _roles(task: str, columns: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Roles of columns as keys of [data]; roles that a task has in another table as settings."""
    known = {name: column for name, column in columns.items() if name in DataSettings.model_fields}
    left = {name: column for name, column in columns.items() if name not in known}
    if left and not task:
        raise OptionError(f'{", ".join(left)}: say which task it is, too: task="forecast"')
    roles = named_roles(TASKS[task], left) if left else {}
    more = [
        f"{table}.{key}={json.dumps(value)}"
        for table, keys in roles.items()
        if table != "data"
        for key, value in keys.items()
    ]
    return {**known, **roles.get("data", {})}, more
