"""A trained run: its configuration and its model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ensue.cells import Cell
from ensue.errors import RunError
from ensue.runs.config import RunConfig
from ensue.tasks import TASKS
from ensue.tasks.kept_cells import NO_TRUST, Trust
from ensue.tasks.model import Model
from ensue.tasks.saved import read_model
from ensue.training import RunFolder


def load_run(
    folder: RunFolder, trust: Trust = NO_TRUST, device: str = "auto"
) -> tuple[RunConfig, Model[Any, Any, Any]]:
    """trust: what may be run or taken for a cell of one's own; device: where it answers."""
    if not folder.config.exists():
        raise RunError(f"{folder.path}: there is no run here; train one with `ensue train`")
    if not folder.model.is_dir():
        raise RunError(
            f"{folder.path}: this run is not finished; `ensue train --run {folder.path}` resumes it"
        )
    saved = read_model(folder.model)
    if saved.kind not in TASKS:
        raise RunError(f"{folder.model}: unknown kind of model {saved.kind!r}")
    config = RunConfig.read(folder.config)
    found = TASKS[saved.kind].model_class.of_saved(saved, trust, device)
    found.roles = found.roles or config.data.roles()  # older versions did not save them
    return config, found


def load(
    run: Path | str,
    *,
    trust: bool = False,
    cell: Cell | type[Cell] | None = None,
    device: str = "auto",
) -> Model[Any, Any, Any]:
    """The model of a run folder, or of a folder that `save` wrote, whatever its task.

    A cell of one's own is never run unasked: trust runs the file that the folder keeps, cell
    takes its place. device: where the model answers, auto, cpu or cuda."""
    place = Path(run)
    if (place / "config.toml").exists():
        return load_run(RunFolder(place), Trust(trust, cell), device)[1]
    saved = read_model(place)
    if saved.kind not in TASKS:
        raise RunError(f"{place}: unknown kind of model {saved.kind!r}")
    return TASKS[saved.kind].model_class.of_saved(saved, Trust(trust, cell), device)
