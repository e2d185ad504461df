"""The commands: the group of the help that each stands in, and the module that has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

# In the order in which a person needs them; a new command is one line.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "demo": "machine",
        "doctor": "machine",
    },
    "Data": {
        "data": "data",
    },
    "Train and use": {
        "init": "learning",
        "train": "learning",
        "select": "select",
        "evaluate": "learning",
        "predict": "learning",
        "generate": "language",
        "suggest": "language",
        "runs": "runs",
        "compare": "runs",
        "settings": "settings",
    },
    "Understand": {
        "explain": "explain",
        "lab": "foundations",
        "backprop": "foundations",
        "graph": "foundations",
        "memory": "study",
    },
    "Cells and machine": {
        "cell": "cells",
        "bench": "machine",
    },
}
MODULES = {name: module for group in GROUPS.values() for name, module in group.items()}


def load_commands(arguments: Sequence[str] = ()) -> None:
    """Hangs the command that the arguments name on the app; all of them if they name none."""
    words = [word for word in arguments if not word.startswith("-")]
    wanted = {MODULES[words[0]]} if words and words[0] in MODULES else {*MODULES.values()}
    for module in sorted(wanted):
        import_module(f"ensue.cli.{module}")
