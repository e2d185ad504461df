"""Custom cells in a model folder: saved with their digest, never run without permission."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from ensue.cells import Cell
from ensue.cells.reference import CellReference, cell_of_source, equations_digest
from ensue.errors import OptionError, RunError
from ensue.settings import Table
from ensue.tasks.blocks.layer_settings import cell_references
from ensue.tasks.declarations import Unfit
from ensue.tasks.saved import Saved

S = TypeVar("S", bound=Table)


@dataclass(frozen=True)
class CellFile:
    """A Python file of a cell that would run. path: the path of the file; name: the name of the
    cell; origin: the file that was copied, "" for an original."""

    path: str
    name: str
    source: bytes
    origin: str = ""

    @property
    def digest(self) -> str:
        return sha256(self.source).hexdigest()

    def line(self) -> str:
        origin = f", which came from {self.origin}" if self.origin else ""
        return f"{self.path} ({len(self.source):,} bytes, sha256 {self.digest}){origin}"


@dataclass(frozen=True)
class Trust:
    """Permission to run the cells of a model folder. files: whether its Python files may run, or
    the sha256 of those that may; cell: a cell, or its class, to use instead; command: the option
    that grants the permission, if the caller is a command; instead: how to pass a cell, if not by
    `load`; announce: callback for each file before it runs."""

    files: bool | str | Sequence[str] = False
    cell: Cell | type[Cell] | None = None
    command: str = ""
    instead: str = ""
    announce: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.files, bool):
            return
        words = [self.files] if isinstance(self.files, str) else self.files
        if not isinstance(words, Collection) or not all(isinstance(word, str) for word in words):
            raise OptionError(
                f"{self.command or 'trust'}: expected True, False, or the sha256 of Python files, "
                f"got {self.files!r}"
            )
        for digest in self.digests:
            if not re.fullmatch("[0-9a-f]{64}", digest):
                raise OptionError(
                    f"{self.command or 'trust'}: expected the sha256 of a Python file, 64 digits "
                    f"and letters a to f, got {digest!r}. Without it the error shows them"
                )

    @property
    def digests(self) -> frozenset[str]:
        """The digests of the files that may run, if they were listed."""
        if isinstance(self.files, bool):
            return frozenset()
        words = self.files.split(",") if isinstance(self.files, str) else self.files
        return frozenset(word.strip().lower() for word in words)

    def allows(self, file: CellFile) -> bool:
        """Whether a Python file may run."""
        return self.files if isinstance(self.files, bool) else file.digest in self.digests

    def check(self, files: Sequence[CellFile], where: str) -> None:
        """Announces the files that will run; if some may not, raises an error that shows every
        file. where: the folder."""
        if not all(self.allows(file) for file in files):
            raise self._refused(files, where)
        if self.announce is not None:
            for file in files:
                self.announce(f"running the cell {file.name} of {file.line()}")

    def _refused(self, files: Sequence[CellFile], where: str) -> RunError:
        first, *others = files
        what = "a cell of its own" if not others else f"{len(files)} cells of its own"
        names = ", ".join(dict.fromkeys(file.name for file in files))
        these, digests = "that file" if not others else "these files", self._spelt(files)
        lines = f" {first.line()}." if not others else "".join(f"\n  {f.line()}" for f in files)
        return RunError(
            f"{where}: this model has {what}, {names}. Loading it would run{lines}\nNothing was "
            f"run. Read {these} first; to allow it: {digests}"
        )

    def _spelt(self, files: Sequence[CellFile]) -> str:
        digests = list(dict.fromkeys(file.digest for file in files))
        if self.command and self.instead:  # no file in this folder may run
            return self.command
        if self.command:
            return f"{self.command}={','.join(digests)}"
        spelt = f'"{digests[0]}"' if len(digests) == 1 else str(digests)
        return f"load(folder, trust={spelt}), or pass your own class: load(folder, cell=MyCell)"

    def handed(self, name: str) -> str:
        """The advice on passing the class of a cell without a file, for messages."""
        return self.instead or f"pass the class: load(folder, cell={name})"


NO_TRUST = Trust()


def cell_facts(settings: Table) -> dict[str, dict[str, str]]:
    """The facts of each custom cell in a model folder, by the settings' key."""
    facts = {}
    for key, reference in cell_references(settings).items():
        cell = reference.ready()
        facts[key] = {"name": type(cell).__name__, "equations": equations_digest(cell)}
    return facts


def kept_settings(settings: S) -> S:
    """The settings as stored in a model folder: files of cells by name, without their paths."""
    with_copies = {
        key: reference.at(Path(reference.file).name)
        for key, reference in cell_references(settings).items()
        if reference.file
    }
    return settings.model_copy(update=with_copies) if with_copies else settings


def cell_sources(settings: Table) -> dict[str, bytes]:
    """The files of these cells, for those that have one."""
    references = cell_references(settings).items()
    return {key: reference.source for key, reference in references if reference.source is not None}


def file_name(key: str) -> str:
    """The name of a cell's file in a model folder."""
    return f"{key}.py"


def cell_files(saved: Saved, settings: Table) -> dict[str, CellFile]:
    """The files that would run for the cells of a saved model, by the settings' key; cells that
    were defined in Python have none."""
    folder = f"{saved.place}/{saved.prefix}"
    return {
        key: CellFile(f"{folder}{file_name(key)}", cell.name or cell, saved.cells[key], cell.file)
        for key, cell in cell_references(settings).items()
        if key in saved.cells
    }


def with_saved_cells(settings: S, saved: Saved, trust: Trust) -> S:
    """The settings of a model folder with its cells: cells that were passed, or the cells of its
    files, which `trust` already permits."""
    references, files, where = cell_references(settings), cell_files(saved, settings), saved.place
    if trust.cell is not None and not references:
        raise OptionError(
            f"{where}: cell: this model has no custom cell that another could replace; leave the "
            "argument out"
        )
    if trust.cell is None:
        for key, reference in references.items():
            if key not in files:
                what = (
                    f"names its cell {reference}, and keeps no copy of this file. Nothing was run"
                    if reference.file
                    else f"has the cell {reference.name}, which was defined in Python"
                )
                name = reference.name or "MyCell"
                raise RunError(f"{where}: this model {what}; {trust.handed(name)}")
    cells = {}
    for key, reference in references.items():
        if trust.cell is not None:
            cell = trust.cell() if isinstance(trust.cell, type) else trust.cell
            loaded = CellReference(reference, cell, saved.cells.get(key))
        else:
            assert trust.allows(files[key])
            loaded = cell_of_source(files[key].source, reference, files[key].path)
        assert loaded.cell is not None
        name, expected = _cell_fact(saved, key)
        if (digest := equations_digest(loaded.cell)) != expected:
            raise OptionError(
                f"{where}: {type(loaded.cell).__name__} has other equations than the cell that "
                f"this model was trained with, {name}; expected the digest {expected[:12]}…, got "
                f"{digest[:12]}…"
            )
        cells[key] = loaded
    return settings.model_copy(update=cells) if cells else settings


def _cell_fact(saved: Saved, key: str) -> tuple[str, str]:
    """The name of a cell that a model was trained with, and the digest of its equations."""
    fact = saved.facts.get("cells", {})
    for part in (key, "equations"):
        if not isinstance(fact, Mapping) or part not in fact:
            raise Unfit("expected the name and the equations of a cell", f"cells.{key}")
        name, fact = fact.get("name", ""), fact[part]
    return str(name), str(fact)


def check_trust(models: Sequence[tuple[Saved, Table]], trust: Trust) -> None:
    """Raises an error that shows every Python file that loading these models would run, unless all
    of them may run. models: the models of one folder, each with its settings."""
    if trust.cell is None:
        files = [
            file for saved, settings in models for file in cell_files(saved, settings).values()
        ]
        trust.check(files, models[0][0].place)
