"""`CellReference`: how settings and files name a custom cell.

    mine.py:MyCell            a class, or a cell instance, in a Python file
    MyCell@0f3a…              a cell passed in Python, identified by its equations

A reference is inert text. The cell is attached to it after the user passed it, or allowed its file
to run (`CellPermission`).
"""

from __future__ import annotations

import re
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from ensue.cells.cell import Cell
from ensue.cells.load import built_in, cell_in, import_file, split_reference
from ensue.cells.permission import NO_PERMISSION, CellPermission
from ensue.equations import below
from ensue.errors import EnsueError, OptionError

BY_EQUATIONS = re.compile(r"\w+@[0-9a-f]{64}")
INPUT, HIDDEN = 3, 4  # sizes for which equations are compared


class CellReference(str):
    """A reference to a cell. cell: None until a cell is passed or loaded; source: the text of its
    file."""

    cell: Cell | None
    source: bytes | None

    def __new__(
        cls, text: str, cell: Cell | None = None, source: bytes | None = None
    ) -> CellReference:
        reference = super().__new__(cls, text)
        reference.cell, reference.source = cell, source
        return reference

    @classmethod
    def of(cls, cell: Cell) -> CellReference:
        """The reference of a cell passed in Python: by the file of its module, if that makes the
        same cell. Nothing is imported, so the training script does not run twice."""
        kind, digest = type(cell), equations_digest(cell)
        module = sys.modules.get(kind.__module__)
        file = getattr(module, "__file__", None) if kind.__module__ != "__main__" else None
        if file and getattr(module, kind.__name__, None) is kind and _makes(kind, digest):
            return cls(f"{file}:{kind.__name__}", cell, Path(file).read_bytes())
        return cls(f"{kind.__name__}@{digest}", cell)

    @property
    def file(self) -> str:
        """The Python file; "" for a cell identified by its equations."""
        return "" if BY_EQUATIONS.fullmatch(self) else split_reference(self)[0]

    @property
    def name(self) -> str:
        return self.partition("@")[0] if not self.file else split_reference(self)[1]

    def at(self, file: str) -> CellReference:
        """The same cell in a file at another path."""
        text = f"{file}:{self.name}" if self.name else file
        return CellReference(text, self.cell, self.source)

    def loaded(self, permission: CellPermission) -> CellReference:
        """The reference with its cell attached. The file is imported, so its code runs, if
        `permission` allows it."""
        if self.cell is not None:
            return self
        if not self.file:
            raise OptionError(
                f"cell: {self.name} was defined in Python and has no file. Fix: pass its "
                f"class, in Python load(run, cell={self.name})"
            )
        path = Path(self.file)
        cell = cell_in(import_file(path, permission), path, self.name)
        return CellReference(self, cell, permission.source(self.file))

    def ready(self) -> Cell:
        """The attached cell; raises an error if none was passed or allowed."""
        cell = self.loaded(NO_PERMISSION).cell
        assert cell is not None
        return cell


def _makes(kind: type[Cell], digest: str) -> bool:
    """Whether a class without options makes a cell of these equations."""
    try:
        return equations_digest(kind()) == digest
    except (EnsueError, TypeError):
        return False


def equations_digest(cell: Cell) -> str:
    """sha256 of a cell's equations: the same for equal equations in different files."""
    equations = cell.equations(INPUT, HIDDEN)
    lines = [repr(node) for node in below(equations.roots)]
    lines += [f"{name} {shape}" for name, shape in equations.shapes.items()]
    return sha256("\n".join(lines).encode()).hexdigest()


def cell_of_source(source: bytes, reference: CellReference, name: str) -> CellReference:
    """The cell from the stored text of a file, whose code runs. name: the file's name in
    messages."""
    module = ModuleType(f"cells_of_{Path(reference.file).stem}")
    try:
        exec(compile(source, name, "exec"), vars(module))
    except Exception as problem:
        raise OptionError(f"{name}: the file failed when it ran: {problem}") from problem
    cell = cell_in(module, Path(name), reference.name)
    return CellReference(reference, cell, source)


def _with_options(text: str) -> str:
    """The text of a cell with options in normal form; `ValueError` if the cell cannot be built."""
    from ensue.cells.expression import canonical, cell_of_text

    try:
        cell_of_text(text)
        return canonical(text)
    except EnsueError as problem:
        raise ValueError(str(problem)) from None


def as_reference(value: Any) -> str:
    """The value as stored in settings: a built-in cell by its name, others as a reference. Raises
    `ValueError` if the value names no cell."""
    from ensue.cells import CELLS
    from ensue.cells.expression import has_options
    from ensue.errors import unknown

    if isinstance(value, CellReference):
        return value
    if isinstance(value, type) and issubclass(value, Cell):
        value = value()
    if isinstance(value, Cell):
        return CellReference.of(value)
    if not isinstance(value, str):
        raise ValueError(f"expected the name of a cell, or a cell, got {value!r}")
    if (known := built_in(value)) is not None:
        return known
    if has_options(value):
        return _with_options(value)
    file, name = split_reference(value)
    if BY_EQUATIONS.fullmatch(value) or (
        file.endswith(".py") and (not name or name.isidentifier())
    ):
        return CellReference(value)
    message = unknown("cell", value, CELLS)
    raise ValueError(f"{message}; or a file of your own, such as mine.py or mine.py:MyCell")
