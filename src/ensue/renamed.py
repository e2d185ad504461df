"""Old public names that still work, with a DeprecationWarning, until version 0.4."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from warnings import warn

P = ParamSpec("P")
R = TypeVar("R")


def _warn(old: str, new: str) -> None:
    message = f"{old} is now called {new}; the old name is removed in version 0.4"
    warn(message, DeprecationWarning, stacklevel=3)


def renamed_attribute(old: str, new: str) -> Any:
    """A property called `old` that reads the attribute `new`."""

    def read(instance: Any) -> Any:
        _warn(f"{type(instance).__name__}.{old}", new)
        return getattr(instance, new)

    return property(read, doc=f"Deprecated: use `{new}`.")


def renamed_parameter(old: str, new: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Lets callers still pass `new` by its former name."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*values: P.args, **named: P.kwargs) -> R:
            if old in named:
                _warn(f"{function.__qualname__}({old}=)", f"{new}=")
                named[new] = named.pop(old)
            return function(*values, **named)

        return call

    return decorate
