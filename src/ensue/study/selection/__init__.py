"""Selection among models."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ensue.study.selection.entries import Selection
    from ensue.study.selection.selection import select_among

__all__ = ["Selection", "select_among"]


def __getattr__(name: str) -> Any:
    """Loads public names at their first use: the command line's help must not wait for torch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ensue.study.selection import entries, selection

    return getattr(entries if name == "Selection" else selection, name)
