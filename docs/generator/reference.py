"""The reference: each page docs/reference/python/NAME.md lists every public name of its module.

The names come from the module's `__all__`, in groups such as classes and functions: a new name
appears by itself. The pages themselves stay plain Markdown.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from importlib import import_module
from textwrap import indent
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx
from torch import nn

import ensue
from ensue import Model
from ensue.cells import CELLS, Cell, Wrapper
from ensue.settings import Table
from generator.docstrings import as_restructured

FOLDER = "reference/python/"
SETTINGS = "Its keys, with default, range and meaning: :doc:`/reference/settings`.\n"


def module_of(page: str) -> ModuleType:
    """reference/python/ensue is `ensue`, reference/python/cells is `ensue.cells`."""
    name = page.removeprefix(FOLDER)
    return import_module("ensue" if name == "ensue" else f"ensue.{name}")


# --- groups ---------------------------------------------------------------------------


def _is_a(*kinds: type) -> Callable[[Any], bool]:
    return lambda thing: inspect.isclass(thing) and issubclass(thing, kinds)


@dataclass(frozen=True)
class Group:
    """A heading of a page, and the public names below it."""

    title: str
    holds: Callable[[Any], bool]


# A thing stands in the first group that holds it.
GROUPS = (
    Group("Cells", lambda thing: inspect.isclass(thing) and thing in CELLS.values()),
    Group("Wrappers", _is_a(Wrapper)),
    Group("Cell", _is_a(Cell)),
    Group("Models", _is_a(Model)),
    Group("Modules", _is_a(nn.Module)),
    Group("Settings", _is_a(Table)),
    Group("Functions", inspect.isfunction),
    Group("Classes", inspect.isclass),
    Group("Tables and types", lambda thing: True),
)


def public(module: ModuleType) -> dict[str, Any]:
    """The public names of a module with what they stand for."""
    return {name: getattr(module, name) for name in module.__all__ if name[:2] != "__"}


def homes(module: ModuleType, others: list[ModuleType]) -> dict[str, str]:
    """The public names of `ensue` that it only hands on, with the module that is about them."""
    if module is not ensue:
        return {}
    return {
        name: other.__name__
        for name, thing in public(module).items()
        for other in others
        if other is not module and public(other).get(name) is thing
    }


def grouped(module: ModuleType, left_out: Container[str] = ()) -> Iterator[tuple[str, list[str]]]:
    """Titles with public names, each name in its first group."""
    left = {name: thing for name, thing in public(module).items() if name not in left_out}
    for group in GROUPS:
        names = [name for name, thing in left.items() if group.holds(thing)]
        for name in names:
            del left[name]
        if names:
            yield group.title, sorted(names, key=lambda name: _order(module, name))


def _order(module: ModuleType, name: str) -> tuple[bool, str]:
    """The sort key of a name: base classes of other names of the page come first."""
    thing = getattr(module, name)
    others = [getattr(module, name) for name in module.__all__]
    derived = inspect.isclass(thing) and any(
        inspect.isclass(other) and other is not thing and issubclass(thing, other)
        for other in others
    )
    return derived, name.lower()


# --- entries --------------------------------------------------------------------------


def equations_of(cell: type[Cell]) -> str:
    """A built-in cell's equations, printed from its graph."""
    return ".. code-block:: text\n\n" + indent(str(cell().equations()), "   ") + "\n"


def plain_signature(thing: type) -> str:
    """The parameters of a constructor without their types."""
    parameters = inspect.signature(thing).parameters.values()
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return str(inspect.Signature(bare))


def entry(module: ModuleType, name: str) -> str:
    """The directive that documents one public name."""
    thing = getattr(module, name)
    full = f"{module.__name__}.{name}"
    if inspect.isfunction(thing):
        return f".. autofunction:: {full}\n"
    if not inspect.isclass(thing):
        return f".. autodata:: {full}\n   :no-value:\n"
    extra = ""
    members = "   :members:\n"
    if issubclass(thing, Table):
        full, members, extra = f"{full}(**settings)", "", SETTINGS
    elif issubclass(thing, Model) and thing is not Model:
        full += plain_signature(thing)  # the types stand at Model
    elif thing in CELLS.values():
        extra = equations_of(thing)
    return f".. autoclass:: {full}\n{members}\n{indent(extra, '   ')}"


def handed_on(known: dict[str, str]) -> str:
    """Names that another page is about, as a table."""
    rows = []
    for home in dict.fromkeys(known.values()):
        names = sorted((name for name in known if known[name] == home), key=str.lower)
        page = home.removeprefix("ensue.")
        rows.append(f"| [{home}]({page}.md) | {', '.join(f'`{name}`' for name in names)} |\n")
    return f"## From other modules\n\n| module | names |\n|---|---|\n{''.join(rows)}"


def page_of(module: ModuleType, others: list[ModuleType]) -> str:
    """All public names of a module, as Markdown around directives."""
    known = homes(module, others)
    parts = []
    for title, names in grouped(module, known):
        entries = "\n".join(entry(module, name) for name in names)
        parts.append(f"## {title}\n\n```{{eval-rst}}\n{entries}\n```\n")
    return "\n".join([*parts, handed_on(known)] if known else parts)


# --- events ---------------------------------------------------------------------------


def add_names(app: Sphinx, page: str, content: list[str]) -> None:
    if page.startswith(FOLDER):
        pages = sorted(name for name in app.env.found_docs if name.startswith(FOLDER))
        content[0] += f"\n{page_of(module_of(page), [module_of(page) for page in pages])}"


def restructure(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    lines[:] = as_restructured("\n".join(lines), arguments(thing))


def arguments(thing: Any) -> set[str]:
    """Names that a docstring may explain: parameters, and the fields of a class."""
    fields = set(inspect.get_annotations(thing)) if inspect.isclass(thing) else set()
    try:
        return fields | set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):  # properties, tables
        return fields


def skip_foreign(
    app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any
) -> bool | None:
    """Methods that scikit-learn adds to estimators are described there."""
    home = getattr(thing, "__module__", None) or "ensue"
    return None if home.startswith("ensue") else True


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("source-read", add_names)
    app.connect("autodoc-process-docstring", restructure)
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
