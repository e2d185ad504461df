"""The commands, each with its group in the help and its module."""

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
        "pretrain": "language",
        "select": "select",
        "evaluate": "learning",
        "predict": "learning",
        "generate": "language",
        "suggest": "language",
        "fill": "language",
        "runs": "runs",
        "compare": "runs",
        "settings": "settings",
    },
    "Understand": {
        "explain": "explain",
        "flow": "understand.flow",
        "lab": "understand.experiments",
        "backprop": "understand.backprop",
        "graph": "understand.experiments",
        "positions": "understand.experiments",
        "memory": "study",
        "study": "study",
    },
    "Take it elsewhere": {
        "export": "exporting",
    },
    "Cells and machine": {
        "cell": "cells",
        "bench": "machine",
    },
}
MODULES = {name: module for group in GROUPS.values() for name, module in group.items()}


def load_commands(arguments: Sequence[str] = ()) -> None:
    """Adds the command that the first argument names to the app; all commands if it names none."""
    named = [MODULES[word] for word in arguments[:1] if word in MODULES]
    for module in named or dict.fromkeys(MODULES.values()):
        import_module(f"ensue.cli.{module}")
