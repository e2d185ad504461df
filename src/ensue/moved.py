"""Names that version 0.1.0 had elsewhere: each warns, and says where it is now."""

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any


def moved(*modules: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names are now in others, the first that has it."""

    def find(name: str) -> Any:
        for module in modules:
            found = getattr(import_module(module), name, None)
            if found is not None and not name.startswith("_"):
                warnings.warn(
                    f"{name} has moved: write `from {module} import {name}`",
                    DeprecationWarning,
                    stacklevel=2,
                )
                return found
        raise AttributeError(f"{name}: not found in {' or '.join(modules)}")

    return find
