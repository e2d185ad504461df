"""Checks of what a saved model says that it learned: its digests may be right, and its content all
the same not what Ensue writes.

A check takes a value and the name that a message calls it by, and gives the value back; one that
does not fit is an `Unfit`, which `saved.loading` turns into one error of ours. Shapes are compared,
and counts capped, before anything of that size is made.

>>> columns = record({"name": text, "spread": number(above=0)})
>>> columns({"name": "area", "spread": 2}, "column")
{'name': 'area', 'spread': 2}
>>> columns({"name": "area", "spread": -1.0}, "column")
Traceback (most recent call last):
...
ensue.tasks.checks.Unfit: column.spread: expected a number > 0, got -1.0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ensue.data.vocabulary import SPECIALS, TEXT_SPECIALS, Vocabulary
from ensue.errors import DataError

T = TypeVar("T")
Check = Callable[[Any, str], T]
Array = NDArray[Any]

LARGEST = 1e30  # of a number: its square, and sums of squares, are finite
MOST = 1 << 53  # of a count: a whole number that a float64 holds
MOST_TOLD = 60  # characters of a value in a message
SINGLE, DOUBLE = ("float32",), ("float64",)
FLOATS = SINGLE + DOUBLE


class Unfit(ValueError):
    """A value that is not what was learned."""


def expected(name: str, wanted: str, got: object) -> Unfit:
    return Unfit(f"{name}: expected {wanted}, got {_cut(repr(got))}")


def _cut(shown: str) -> str:
    return shown if len(shown) <= MOST_TOLD else f"{shown[:MOST_TOLD]}…"


# --- values of JSON --------------------------------------------------------------------------


def text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise expected(name, "a text", value)
    return value


def flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise expected(name, "true or false", value)
    return value


def whole(low: int = 0, high: int = MOST) -> Check[int]:
    """A whole number from low to high."""

    def check(value: Any, name: str) -> int:
        if type(value) is not int or not low <= value <= high:
            raise expected(name, f"a whole number from {low:,} to {high:,}", value)
        return value

    return check


def number(low: float = -LARGEST, high: float = LARGEST, above: float = -math.inf) -> Check[float]:
    """A finite number from low to high, greater than `above`."""
    limits = [f"≥ {low:g}"] * (low > -LARGEST) + [f"> {above:g}"] * (above > -math.inf)
    limits += [f"≤ {high:g}"] * (high < LARGEST)
    wanted = " ".join(["a number", " and ".join(limits)]) if limits else "a finite number"

    def check(value: Any, name: str) -> float:
        fits = type(value) in (int, float) and low <= value <= high and value > above
        if not fits:
            raise expected(name, wanted, value)
        return value  # type: ignore[no-any-return]

    return check


def one_of(names: Sequence[str] | Mapping[str, Any]) -> Check[str]:
    def check(value: Any, name: str) -> str:
        if not isinstance(value, str) or value not in names:
            raise expected(name, f"one of {', '.join(map(repr, names))}", value)
        return value

    return check


def maybe(inside: Check[T]) -> Check[T | None]:
    """Nothing, or a value that fits."""
    return lambda value, name: None if value is None else inside(value, name)


def listed(inside: Check[T], count: int | None = None) -> Check[tuple[T, ...]]:
    """A list of values that fit, so many of them."""

    def check(value: Any, name: str) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise expected(name, "a list", value)
        if count is not None and len(value) != count:
            raise Unfit(f"{name}: expected {count:,} values, got {len(value):,}")
        return tuple(inside(own, f"{name}.{k}") for k, own in enumerate(value))

    return check


def different(inside: Check[T]) -> Check[tuple[T, ...]]:
    """A list of values that fit, none of them twice."""

    def check(value: Any, name: str) -> tuple[T, ...]:
        found = listed(inside)(value, name)
        if len({*found}) < len(found):
            raise Unfit(f"{name}: expected different values, got one of them twice")
        return found

    return check


def record(
    required: Mapping[str, Check[Any]], optional: Mapping[str, Check[Any]] | None = None
) -> Check[dict[str, Any]]:
    """Values by name: all of `required`, and no others but `optional`."""
    known = {**required, **(optional or {})}

    def check(value: Any, name: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise expected(name, "values by name", value)
        if missing := [key for key in required if key not in value]:
            raise Unfit(f"{_inside(name, missing[0])}: missing")
        if odd := [key for key in value if key not in known]:
            raise Unfit(f"{_cut(_inside(name, str(odd[0])))}: not known")
        return {key: known[key](own, _inside(name, key)) for key, own in value.items()}

    return check


def by_name(inside: Check[T]) -> Check[dict[str, T]]:
    """Values that fit, by any names."""

    def check(value: Any, name: str) -> dict[str, T]:
        if not isinstance(value, Mapping):
            raise expected(name, "values by name", value)
        return {key: inside(own, _cut(_inside(name, key))) for key, own in value.items()}

    return check


def _inside(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


def built(
    kind: Callable[..., T],
    required: Mapping[str, Check[Any]],
    optional: Mapping[str, Check[Any]] | None = None,
) -> Check[T]:
    """What `kind` makes of values by name; of numbers also an array of them, in this order."""
    fields = record(required, optional)

    def check(value: Any, name: str) -> T:
        if isinstance(value, np.ndarray):
            numbers = array((len(required),))(value, name).tolist()
            value = dict(zip(required, numbers, strict=True))
        return kind(**fields(value, name))

    return check


# --- arrays ----------------------------------------------------------------------------------

# signs of limits: which one, and what is beyond it
BEYOND: dict[str, tuple[str, Callable[[Array, float], Array]]] = {
    "≥": ("low", np.less),
    "≤": ("high", np.greater),
    ">": ("above", np.less_equal),
}


def array(
    shape: Sequence[int | None],
    dtypes: Sequence[str] = FLOATS,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
) -> Check[Array]:
    """Finite numbers of one of these types. shape: the size of each axis, None for any; low, high,
    above: as of `number`."""

    def check(value: Any, name: str) -> Array:
        found = _of_shape(value, name, shape, dtypes)
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise Unfit(f"{name}: expected finite numbers, got NaN or infinity")
        for sign, (limit, beyond) in BEYOND.items():
            bound = {"low": low, "high": high, "above": above}[limit]
            if bound is not None and (wrong := beyond(found, bound)).any():
                raise expected(name, f"numbers {sign} {bound:g}", found[wrong].flat[0].item())
        return found

    return check


def _of_shape(value: Any, name: str, shape: Sequence[int | None], dtypes: Sequence[str]) -> Array:
    if not isinstance(value, np.ndarray):
        raise expected(name, "numbers", value)
    fits = len(value.shape) == len(shape) and all(
        size is None or size == got for size, got in zip(shape, value.shape, strict=True)
    )
    if not fits or value.dtype.name not in dtypes:
        wanted = f"{_sizes(shape)} {' or '.join(dtypes)}"
        raise Unfit(f"{name}: expected {wanted}, got {_sizes(value.shape)} {value.dtype.name}")
    return value


def _sizes(shape: Sequence[int | None]) -> str:
    return " × ".join("any" if own is None else f"{own:,}" for own in shape) or "one"


def rising(found: Array, name: str, *, strictly: bool = True) -> Array:
    """The same numbers, if each is greater than the one before it; not strictly: or equal to it."""
    fits = found[1:] > found[:-1] if strictly else found[1:] >= found[:-1]
    if not fits.all():
        raise Unfit(f"{name}: expected rising numbers, got others")
    return found


# --- vocabularies ------------------------------------------------------------------------------


def vocabulary(specials: tuple[str, ...], *others: tuple[str, ...]) -> Check[Vocabulary]:
    """Of tokens, one at least. others: specials that it may have instead."""

    def check(value: Any, name: str) -> Vocabulary:
        try:
            found = Vocabulary.from_dict(value)
        except DataError as error:
            raise Unfit(f"{name}: {error}") from None
        if found.specials not in (specials, *others) or not found.tokens:
            wanted = f"the specials {', '.join(specials)}" if specials else "labels"
            raise Unfit(f"{name}: expected {wanted}, got {_cut(', '.join(found.tokens) or 'none')}")
        return found

    return check


words = vocabulary(SPECIALS)
text_words = vocabulary(TEXT_SPECIALS)
read_words = vocabulary(SPECIALS, TEXT_SPECIALS)  # the latter are those of a base
labels = vocabulary(())
