"""Pictures: shapes, layout and charts as SVG, light and dark, and as files. Independent of
equations."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ensue.drawing.theme import themed

__all__ = ["themed", "write"]

if TYPE_CHECKING:
    from ensue.drawing.formats import write as write

# Loaded at first use, from the module that defines them.
_LATER = {
    "write": "formats",
}

if not TYPE_CHECKING:  # a type checker would accept every name

    def __getattr__(name: str) -> Any:
        if name in _LATER:
            return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
