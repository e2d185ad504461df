"""Options as one value: a command takes a dataclass, whose fields are its words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer sees it: the fields of its first argument, a dataclass, are arguments
    and options of their own; further arguments stay."""
    first, *rest = signature(command).parameters.values()
    kind = get_type_hints(command)[first.name]
    shown = option_parameters(kind)

    @wraps(command)
    def spread(**given: Any) -> None:
        command(kind(**{own.name: given.pop(own.name) for own in shown}), **given)

    more = [own.replace(kind=Parameter.KEYWORD_ONLY) for own in rest]
    spread.__signature__ = Signature([*shown, *more])  # type: ignore[attr-defined]
    return spread


def option_parameters(kind: Any) -> list[Parameter]:
    """A parameter for each field of a dataclass, those that it inherits first."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        Parameter(
            own.name, Parameter.KEYWORD_ONLY, default=_default(own), annotation=hints[own.name]
        )
        for own in fields(kind)
    ]


def _default(field: Field[Any]) -> Any:
    return Parameter.empty if field.default is MISSING else field.default


def names_of(listed: str) -> list[str]:
    """a,b → the names a and b."""
    return [name.strip() for name in listed.split(",") if name.strip()]
