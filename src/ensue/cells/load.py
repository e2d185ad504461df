"""A cell by name, or from a Python file: `LSTM`, `mine.py`, `mine.py:Peephole`."""

from __future__ import annotations

import inspect
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from ensue.cells import CELLS
from ensue.cells.cell import Cell
from ensue.cells.expression import cell_of_text, has_options
from ensue.cells.permission import CellPermission
from ensue.errors import OptionError, unknown


def load_cell(reference: str) -> Cell:
    """The cell that the user names: one of Ensue's, or one in a Python file.

    The file is imported, so its code runs. The part after a colon names a class in the file, or a
    cell instance."""
    if (known := built_in(reference)) is not None:
        return CELLS[known]()
    if has_options(reference):
        return cell_of_text(reference)
    file, name = split_reference(reference)
    path = Path(file)
    if path.suffix != ".py" and not path.exists():
        problem = unknown("cell", reference, CELLS)
        raise OptionError(f"{problem}; or a file of your own, such as mine.py or mine.py:MyCell")
    return cell_in(import_file(path, CellPermission.named([file])), path, name)


def built_in(name: str) -> str | None:
    """The exact name of a built-in cell, from a name in any case."""
    if name in CELLS:
        return name
    names = [name_of_cell for name_of_cell in CELLS if name_of_cell.lower() == name.lower()]
    return names[0] if len(names) == 1 else None


def split_reference(text: str) -> tuple[str, str]:
    """mine.py:MyCell → the file and the name in it ("" if missing)."""
    file, colon, name = text.rpartition(":")
    return (file, name) if colon else (text, "")


def import_file(path: Path, permission: CellPermission) -> ModuleType:
    """Imports the file as a module, if it may run. A file that the user named can import the
    modules next to it, as with `python file.py`."""
    source = permission.source(str(path))
    if path.suffix != ".py":
        raise OptionError(f"{path}: expected a Python file, with a name that ends in .py")
    module = ModuleType(f"cells_of_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    if permission.neighbours:
        sys.path.insert(0, str(path.resolve().parent))
    try:
        exec(compile(source, str(path), "exec"), vars(module))
    except (Exception, SystemExit) as problem:
        raise OptionError(
            f"{path}: importing it failed{_line_in(path, problem)}\n"
            f"  {type(problem).__name__}: {problem}\n"
            "  importing executes the whole file: put everything except cells under "
            'if __name__ == "__main__"'
        ) from problem
    finally:
        if permission.neighbours:
            with suppress(ValueError):  # the file may have changed the path itself
                sys.path.remove(str(path.resolve().parent))
    return module


def _line_in(path: Path, problem: BaseException) -> str:
    if isinstance(problem, SyntaxError):
        return f" at line {problem.lineno}"
    frames = traceback.extract_tb(problem.__traceback__)
    lines = [f.lineno for f in frames if Path(f.filename).resolve() == path.resolve()]
    return f" at line {lines[-1]}" if lines else ""


def cell_in(module: ModuleType, path: Path, name: str) -> Cell:
    """The cell of that name; without a name, the only cell of the module."""
    cells = {n: v for n, v in vars(module).items() if not n.startswith("_") and _is_cell(v, module)}
    classes = {n: v for n, v in cells.items() if isinstance(v, type) and not inspect.isabstract(v)}
    if not cells:
        raise OptionError(
            f"{path} defines no cell: expected a class that inherits from ensue.cells.Cell "
            "and has a step(self, x, h)"
        )
    if not name:
        if not classes:
            raise OptionError(f"{path}: {', '.join(cells)} has no step(self, x, h)")
        if len(classes) > 1:
            raise OptionError(
                f"{path} defines {len(classes)} cells: {', '.join(classes)}; "
                f"choose one, such as {path}:{next(iter(classes))}"
            )
        name = next(iter(classes))
    if name not in cells:
        raise unknown(f"cell of {path}", name, cells)
    cell = cells[name]
    return cell if isinstance(cell, Cell) else _make(cell, name, path)


def _is_cell(value: object, module: ModuleType) -> bool:
    """Whether a value is a cell class defined in this module, or a cell instance."""
    if isinstance(value, type):
        return issubclass(value, Cell) and value.__module__ == module.__name__
    return isinstance(value, Cell)


def _make(kind: type[Cell], name: str, path: Path) -> Cell:
    if inspect.isabstract(kind):
        raise OptionError(f"{path}: {name} has no step(self, x, h)")
    needed = [
        p.name
        for p in inspect.signature(kind).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if needed:
        raise OptionError(
            f"{path}: {name} needs arguments: {', '.join(needed)}; create one in the file, "
            f"mine = {name}(...), and name it: {path}:mine"
        )
    return kind()
