"""Every public name says what it is, with an example that runs."""

import doctest
import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

import ensue

MODULES = (
    "ensue.cells",
    "ensue.layers",
    "ensue.equations",
    "ensue.decoding",
    "ensue.data",
    "ensue.drawing",
    "ensue",
)


def documented() -> dict[str, Any]:
    """Public classes and functions by their full name, each once, where it is first public;
    tables and types of their own, such as `CELLS`, have no docstring that could hold one."""
    examples: dict[str, Any] = {}
    ids: set[int] = set()
    for name in MODULES:
        module = import_module(name)
        for public_name in module.__all__:
            thing = getattr(module, public_name)
            if (inspect.isclass(thing) or inspect.isfunction(thing)) and id(thing) not in ids:
                if thing.__module__.startswith("ensue"):
                    examples[f"{name}.{public_name}"] = thing
                ids.add(id(thing))
    return examples


NAMES = documented()


@pytest.mark.parametrize("name", NAMES)
def test_its_docstring_has_an_example_that_runs(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The example takes the names of the module, torch and ensue as imported."""
    monkeypatch.chdir(tmp_path)
    module = import_module(name.rpartition(".")[0])
    names = {name: getattr(module, name) for name in module.__all__} | {
        "torch": torch,
        "ensue": ensue,
    }
    text = inspect.getdoc(NAMES[name]) or ""
    example = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    assert example.examples, f"{name}: no example in its docstring"
    printed: list[str] = []
    outcome = doctest.DocTestRunner().run(example, out=printed.append)
    assert outcome.failed == 0, "".join(printed)
