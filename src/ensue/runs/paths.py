"""Paths of data files in a run's configuration: relative to the run's folder where the files are
near, so that both can be moved together; and found again beside a run that was moved alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ensue.data.parallel import BETWEEN, sides_of
from ensue.data.settings import DataSettings
from ensue.settings import Table
from ensue.tasks.blocks.cell_name import cell_references
from ensue.tasks.transfer.settings import BaseSettings

MOST_UP = 2  # folders between a run and files that are near it
PARTS = ("train", "validation", "test", "unlabelled")


def with_paths(data: DataSettings, change: Callable[[str], str]) -> DataSettings:
    """Every file of every part under another path."""
    return data.model_copy(
        update={
            part: [
                BETWEEN.join(change(side) for side in sides_of(path))
                for path in getattr(data, part)
            ]
            for part in PARTS
        }
    )


def with_cell_paths(model: Table, change: Callable[[str], str]) -> Table:
    """Files of cells under another path."""
    found = {
        key: cell.at(change(cell.file)) for key, cell in cell_references(model).items() if cell.file
    }
    return model.model_copy(update=found) if found else model


def with_base_paths(base: BaseSettings, change: Callable[[str], str]) -> BaseSettings:
    """What a run begins from under another path."""
    return base.model_copy(update={"path": [change(path) for path in base.path]})


def portable(path: str, folder: Path) -> str:
    """The path as a configuration in this folder holds it."""
    full = os.path.abspath(path)
    relative = os.path.relpath(full, os.path.abspath(folder))
    ups = Path(relative).parts.count("..")
    return relative if ups <= MOST_UP and ups < len(Path(full).parts) - 1 else full


def located(path: str, folder: Path) -> str:
    """The file that a configuration in this folder means: where the path leads, or else the file
    of the same name inside the folder or beside it."""
    place = Path(os.path.normpath(Path(os.path.abspath(folder)) / path))
    if place.exists():
        return str(place)
    for near in (folder, folder.parent):
        beside = near / place.name
        if beside.exists():
            return os.path.abspath(beside)
    return str(place)
