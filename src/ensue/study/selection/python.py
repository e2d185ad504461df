"""`ensue.select`: selection from Python."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ensue.data.settings import DataSettings
from ensue.errors import OptionError
from ensue.runs.infer import infer
from ensue.runs.messages import log
from ensue.study.selection.entries import Selection
from ensue.study.selection.rows import PARTS, files_of, label_type
from ensue.tasks import TASKS
from ensue.tasks.given import told_roles


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
    """The best model and settings for these data, as `ensue select`: trials are run folders below
    the folder, and the winner is tested once. data: a file or several, a data frame, or rows in
    memory as `fit` takes them, which are written into the folder; settings: those that stay as they
    are, ["train.epochs=5"]; columns: which column is what, label="stars", and further data,
    validation=["held.csv"]; together: also an ensemble of trials.

    >>> from pathlib import Path
    >>> lines = ["x,y", *(f"{k},{2 * k}" for k in range(60))]
    >>> written = Path("pairs.csv").write_text("\\n".join(lines))
    >>> quick = ["train.epochs=1", "model.target=number"]
    >>> found = ensue.select("pairs.csv", task="table", label="y", trials=1, settings=quick)
    >>> found.winner.name, type(found.model).__name__
    ('trial-000', 'TableModel')
    """
    from ensue.study.selection.search import TRIALS, SearchRequest, search

    if trials is not None and minutes is not None:
        raise OptionError("trials and minutes: expected one of them, got both")
    parts = {"train": data, **{part: columns.pop(part) for part in PARTS if part in columns}}
    given = {part: files_of(own, Path(folder), part) for part, own in parts.items()}
    roles, more = _roles(task, columns)
    config, messages = infer({**given, **roles}, task or None, [*more, *settings])
    for message in messages:
        log(message)
    number = TRIALS if trials is None else trials
    request = SearchRequest(number, workers, minutes, together=together)
    found = search(config, folder, request, log)
    return found.with_labels(label_type(data, config.data.label))


def _roles(task: str, columns: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Roles of columns as keys of [data], and those that a task has elsewhere as settings."""
    known = {name: own for name, own in columns.items() if name in DataSettings.model_fields}
    left = {name: own for name, own in columns.items() if name not in known}
    if left and not task:
        raise OptionError(f'{", ".join(left)}: say which task it is, too: task="forecast"')
    told = told_roles(TASKS[task], left) if left else {}
    more = [
        f"{table}.{key}={json.dumps(value)}"
        for table, keys in told.items()
        if table != "data"
        for key, value in keys.items()
    ]
    return {**known, **told.get("data", {})}, more
