"""`ensue.select`: selection from Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ensue.errors import OptionError
from ensue.runs.infer import infer
from ensue.runs.messages import log
from ensue.study.selection.entries import Selection


def select(
    data: str | Path | Sequence[str | Path],
    folder: str | Path = "selection",
    *,
    task: str = "",
    trials: int | None = None,
    minutes: float | None = None,
    workers: int = 1,
    settings: Sequence[str] = (),
    **columns: Any,
) -> Selection:
    """The best model and settings for these files, as `ensue select`: trials are run folders below
    the folder, and the winner is tested once. settings: those that stay as they are,
    ["train.epochs=5"]; columns: which column is what, label="stars", and further files,
    validation=["held.csv"].

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
    paths = [data] if isinstance(data, str | Path) else list(data)
    given = {"train": [str(Path(own).resolve()) for own in paths], **columns}
    config, messages = infer(given, task or None, list(settings))
    for message in messages:
        log(message)
    request = SearchRequest(TRIALS if trials is None else trials, workers, minutes)
    return search(config, folder, request, log)
