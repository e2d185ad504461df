"""Cells of one's own in a model folder: kept with their digest, never run unasked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from ensue.cells import Cell
from ensue.cells.reference import CellReference, cell_of_source, equations_digest
from ensue.errors import OptionError, RunError
from ensue.settings import Table
from ensue.tasks.blocks.cell_name import cell_references

S = TypeVar("S", bound=Table)


@dataclass(frozen=True)
class Trust:
    """What may be run or taken for the cells of a model folder. files: its Python files may run;
    cell: the cell, or its class, that is handed over instead; command: how to say so, where the
    caller is a command; instead: how to hand over a cell, where that is not by `load`."""

    files: bool = False
    cell: Cell | type[Cell] | None = None
    command: str = ""
    instead: str = ""

    @property
    def allowed(self) -> str:
        """How files are allowed to run, as a message says it."""
        return self.command or (
            "load(folder, trust=True), or hand over a class of your own: load(folder, cell=MyCell)"
        )

    def handed(self, name: str) -> str:
        """How the class of a cell that has no file is handed over, as a message says it."""
        return self.instead or f"hand the class over: load(folder, cell={name})"


NO_TRUST = Trust()


def cell_facts(settings: Table) -> dict[str, dict[str, str]]:
    """What a model folder says of each cell of one's own, by the settings' key."""
    found = {}
    for key, reference in cell_references(settings).items():
        cell = reference.loaded().cell
        assert cell is not None
        found[key] = {"name": type(cell).__name__, "equations": equations_digest(cell)}
    return found


def kept_settings(settings: S) -> S:
    """As a model folder holds them: files of cells by their names, wherever they were."""
    found = {
        key: reference.at(Path(reference.file).name)
        for key, reference in cell_references(settings).items()
        if reference.file
    }
    return settings.model_copy(update=found) if found else settings


def cell_sources(settings: Table) -> dict[str, bytes]:
    """The files of these cells, as far as they have any."""
    references = cell_references(settings).items()
    return {key: own.source for key, own in references if own.source is not None}


def with_kept_cells(
    settings: S,
    facts: Mapping[str, Any],
    sources: Mapping[str, bytes],
    trust: Trust,
    where: str,
) -> S:
    """The settings of a model folder with its cells: those that were handed over, or those of its
    files where these may run; else an error that says what would run. where: the folder."""
    found = {}
    if trust.cell is not None and not cell_references(settings):
        raise OptionError(
            f"{where}: cell: this model has no cell of one's own that another could take the place "
            "of; leave it out"
        )
    for key, reference in cell_references(settings).items():
        expected = facts[key]["equations"]
        if trust.cell is not None:
            cell = trust.cell() if isinstance(trust.cell, type) else trust.cell
            loaded = CellReference(reference, cell, sources.get(key))
        elif key not in sources:
            raise RunError(
                f"{where}: its cell {reference.name} was defined in Python and has no file; "
                + trust.handed(reference.name)
            )
        elif not trust.files:
            raise _refused(reference, sources[key], key, trust, where)
        else:
            loaded = cell_of_source(sources[key], reference, file_name(key))
        assert loaded.cell is not None
        if equations_digest(loaded.cell) != expected:
            raise OptionError(
                f"{where}: {type(loaded.cell).__name__} has other equations than the cell that "
                f"this model was trained with, {facts[key]['name']}; expected the digest "
                f"{expected[:12]}…, got {equations_digest(loaded.cell)[:12]}…"
            )
        found[key] = loaded
    return settings.model_copy(update=found) if found else settings


def file_name(key: str) -> str:
    """Of the file of a cell in a model folder."""
    return f"{key}.py"


def _refused(
    reference: CellReference, source: bytes, key: str, trust: Trust, where: str
) -> RunError:
    return RunError(
        f"{where}: this model has a cell of its own, {reference.name or reference}. Loading it "
        f"would run {where}/{file_name(key)} ({len(source):,} bytes, sha256 "
        f"{sha256(source).hexdigest()}), which came from {reference.file}.\n"
        f"Nothing was run. Read that file first; to allow it: {trust.allowed}"
    )
