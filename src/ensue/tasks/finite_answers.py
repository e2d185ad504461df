"""Answers that leave a model: every number in them is finite."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ensue.errors import DataError
from ensue.tasks.answers import Answer
from ensue.tasks.task import Asked

if TYPE_CHECKING:
    from ensue.tasks.model import Model


def answers_of(model: Model[Any, Any, Any], part: Any, asked: Asked) -> Sequence[Any]:
    """What the task answers to a part; DataError where a number of it is NaN or infinite."""
    with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is seen below
        found = model.task.answers(part, model, asked)
    for k, answer in enumerate(found):
        if not all_finite(answer):
            name = f"{part.names[k]}: " if len(found) == len(part) else ""
            raise DataError(
                f"{name}answer {k + 1} holds a number that is not finite: the input is too far "
                "from what the model was trained with. Look for a number out of range in it"
            )
    return found


def all_finite(value: Any) -> bool:
    """Whether a value has no NaN and no infinity in it, at any depth.

    >>> all_finite({"low": 1.0, "steps": (0.5, float("inf"))})
    False
    """
    if isinstance(value, float):
        return math.isfinite(value)
    if value is None or isinstance(value, str | int):
        return True
    if isinstance(value, Mapping):
        return all(map(all_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(all_finite, value))
    if is_dataclass(value) and not isinstance(value, type):
        return all(check(getattr(value, name)) for name, check in _checks(type(value)))
    return True


def _no_nan(value: Any) -> bool:
    return not any(map(math.isnan, value if isinstance(value, tuple) else (value,)))


@cache
def _checks(kind: type) -> tuple[tuple[str, Callable[[Any], bool]], ...]:
    """What is looked at in each field of an answer."""
    unbounded = kind.unbounded if issubclass(kind, Answer) else ()
    return tuple((f.name, _no_nan if f.name in unbounded else all_finite) for f in fields(kind))
