"""The graph and the network in other languages: ONNX, C, JavaScript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ensue.export.onnx.read import from_onnx
    from ensue.export.writing import Written, write

__all__ = ["Written", "from_onnx", "write"]

_HOMES = {
    "Written": "ensue.export.writing",
    "from_onnx": "ensue.export.onnx.read",
    "write": "ensue.export.writing",
}


def __getattr__(name: str) -> Any:
    """Loads a public name at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
