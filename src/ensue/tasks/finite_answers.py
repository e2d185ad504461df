"""Checks that all numbers in a model's answers are finite."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ensue.errors import DataError
from ensue.tasks.abilities import RequestOptions
from ensue.tasks.answers import Answer

if TYPE_CHECKING:
    from ensue.tasks.any_model import AnyModel


def answers_of(model: AnyModel, part: Any, options: RequestOptions) -> Sequence[Any]:
    """The task's answers to a part; raises DataError if a number in them is NaN or infinite."""
    with np.errstate(over="ignore", invalid="ignore"):  # results are checked below
        answers = model.answers_to(part, options)
        fine = _finite_together(answers)
    for k, answer in () if fine else enumerate(answers):
        if not all_finite(answer):
            name = f"{part.names[k]}: " if len(answers) == len(part) else ""
            raise DataError(
                f"{name}answer {k + 1} holds a number that is not finite: the input is too "
                "far from what the model was trained with. Check that input for numbers out "
                "of range"
            )
    return answers


def all_finite(value: Any) -> bool:
    """Whether all numbers in a value are finite, at any depth.

    >>> all_finite({"low": 1.0, "steps": (0.5, float("inf"))})
    False
    """
    kind: Any = type(value)
    checks = _checks(kind)
    if checks is not None:
        return not [name for name, holds in checks if not holds(getattr(value, name))]
    if isinstance(value, float):
        return math.isfinite(value)
    if value is None or isinstance(value, str | int):
        return True
    if isinstance(value, Mapping):
        return all(map(all_finite, value.values()))
    return not isinstance(value, list | tuple) or all(map(all_finite, value))


def _finite_together(answers: Sequence[Any]) -> bool:
    """Whether all values are certainly finite, by a few sums over all answers. False if sums cannot
    decide: answers of several classes, fields that must be searched, or sums that are too large."""
    kind: Any = type(answers[0]) if answers else None
    checks = _checks(kind) if answers and {*map(type, answers)} == {kind} else None
    return checks is not None and all(
        holds in TOGETHER and math.isfinite(TOGETHER[holds](map(attrgetter(name), answers)))
        for name, holds in checks
    )


def _sum_is_finite(values: Collection[float]) -> bool:
    """Whether numbers have a finite sum; values other than numbers count as undecided."""
    return math.isfinite(sum(values)) or all(map(math.isfinite, values))


def _no_nan(value: Any) -> bool:
    return not any(map(math.isnan, value if isinstance(value, tuple) else (value,)))


def _values_finite(value: Mapping[str, float]) -> bool:
    return _sum_is_finite(value.values())


# By the declared type of an answer's field; other types are searched.
DECLARED: dict[str, Callable[[Any], bool]] = {
    "float": math.isfinite,
    "tuple[float, ...]": _sum_is_finite,
    "Mapping[str, float]": _values_finite,
}
# Functions from many values of a field to a sum that is finite only if all numbers are.
TOGETHER: dict[Callable[[Any], bool], Callable[[Iterator[Any]], float]] = {
    math.isfinite: sum,
    _sum_is_finite: lambda fields: sum(chain.from_iterable(fields)),
    _values_finite: lambda fields: sum(chain.from_iterable(field.values() for field in fields)),
}
NO_NUMBERS = {"str", "int", "bool", "None", "tuple"}


@cache
def _checks(kind: type[object]) -> list[tuple[str, Callable[[Any], bool]]] | None:
    """The checks of the fields of a dataclass that can contain such numbers; None for other
    classes."""
    if not is_dataclass(kind):
        return None
    unbounded = kind.unbounded if issubclass(kind, Answer) else ()
    checks: list[tuple[str, Callable[[Any], bool]]] = []
    for field in fields(kind):
        if field.name in unbounded:
            checks.append((field.name, _no_nan))
        elif not {*re.findall(r"\w+", str(field.type))} <= NO_NUMBERS:
            checks.append((field.name, DECLARED.get(str(field.type), all_finite)))
    return checks
