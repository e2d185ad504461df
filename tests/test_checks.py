"""The checks of what a saved model says that it learned."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from ensue.tasks import checks
from ensue.tasks.checks import Check, Unfit


class Two(NamedTuple):
    one: float
    other: float


BOTH = checks.built(Two, {"one": checks.number(), "other": checks.number(above=0)})
FITS: list[tuple[Check[Any], Any, Any]] = [
    (checks.text, "a", "a"),
    (checks.flag, False, False),
    (checks.whole(1, 3), 3, 3),
    (checks.number(low=0), 2, 2),
    (checks.one_of(("a", "b")), "b", "b"),
    (checks.maybe(checks.text), None, None),
    (checks.listed(checks.text, 2), ["a", "b"], ("a", "b")),
    (checks.different(checks.text), [], ()),
    (checks.record({"a": checks.text}, {"b": checks.flag}), {"a": "x"}, {"a": "x"}),
    (checks.by_name(checks.whole()), {"any": 1}, {"any": 1}),
    (BOTH, {"one": 1, "other": 2}, Two(1, 2)),
    (BOTH, np.array([1.0, 2.0]), Two(1.0, 2.0)),
]
UNFIT: list[tuple[Check[Any], Any, str]] = [
    (checks.text, 3, "v: expected a text, got 3"),
    (checks.flag, 1, "v: expected true or false, got 1"),
    (checks.whole(1, 10**6), 10**9, "v: expected a whole number from 1 to 1,000,000, got"),
    (checks.whole(), True, "v: expected a whole number from 0"),
    (checks.whole(), 1.0, "v: expected a whole number from 0"),
    (checks.number(), float("nan"), "v: expected a finite number, got nan"),
    (checks.number(), 1e300, "v: expected a finite number, got 1e+300"),
    (checks.number(), 10**400, "v: expected a finite number, got 1000"),
    (checks.number(above=0, high=1), 0, "v: expected a number > 0 and ≤ 1, got 0"),
    (checks.number(), "1", "v: expected a finite number, got '1'"),
    (checks.one_of(("a", "b")), [], "v: expected one of 'a', 'b', got []"),
    (checks.listed(checks.text), "ab", "v: expected a list, got 'ab'"),
    (checks.listed(checks.text, 2), ["a"], "v: expected 2 values, got 1"),
    (checks.listed(checks.text), ["a", 1], "v.1: expected a text, got 1"),
    (checks.different(checks.text), ["a", "a"], "v: expected different values"),
    (checks.record({"a": checks.text}), {}, "v.a: missing"),
    (checks.record({}), {"a": 1}, "v.a: not known"),
    (checks.record({}), [], "v: expected values by name, got []"),
    (checks.by_name(checks.text), {"a": 1}, "v.a: expected a text, got 1"),
    (BOTH, np.zeros(3), "v: expected 2 float32 or float64, got 3 float64"),
    (BOTH, {"one": 1, "other": 0}, "v.other: expected a number > 0, got 0"),
    (checks.words, None, "v: this is not a vocabulary: expected the keys"),
    (checks.labels, {"specials": [], "tokens": [], "counts": []}, "v: expected labels, got none"),
    (checks.text, b"x" * 10**6, "v: expected a text, got b'xxx"),
]
ARRAYS: list[tuple[Check[Any], Any, str]] = [
    (checks.array((2, 3)), np.zeros((3, 2)), "v: expected 2 × 3 float32 or float64, got 3 × 2"),
    (checks.array((None,)), np.zeros(()), "v: expected any float32 or float64, got one float64"),
    (
        checks.array((2,)),
        np.zeros(2, np.float16),
        "v: expected 2 float32 or float64, got 2 float16",
    ),
    (checks.array((2,), checks.SINGLE), np.zeros(2), "v: expected 2 float32, got 2 float64"),
    (checks.array((2,)), None, "v: expected numbers, got None"),
    (checks.array((1,)), np.array([np.inf]), "v: expected finite numbers, got NaN or infinity"),
    (checks.array((2,), low=0), np.array([0.0, -2]), "v: expected numbers ≥ 0, got -2.0"),
    (checks.array((2,), high=1), np.array([0.0, 2]), "v: expected numbers ≤ 1, got 2.0"),
    (checks.array((2,), above=0), np.array([0.0, 2]), "v: expected numbers > 0, got 0.0"),
]


REFUSED = [*UNFIT, *ARRAYS]


@pytest.mark.parametrize(("check", "value", "found"), FITS, ids=range(len(FITS)))
def test_what_fits_is_given_back(check: Check[Any], value: Any, found: Any) -> None:
    assert check(value, "v") == found
    assert type(check(value, "v")) is type(found)


@pytest.mark.parametrize(("check", "value", "told"), REFUSED, ids=range(len(REFUSED)))
def test_what_does_not_fit_is_told_by_its_name(check: Check[Any], value: Any, told: str) -> None:
    with pytest.raises(Unfit) as refused:
        check(value, "v")
    assert str(refused.value).startswith(told)
    assert len(str(refused.value)) < 300


def test_an_array_that_fits_is_the_same() -> None:
    own = np.array([[1, 2]], np.float32)
    assert checks.array((None, 2), low=1, high=2, above=0)(own, "v") is own


def test_numbers_that_rise() -> None:
    rising = np.array([1, 2, 2])
    assert checks.rising(rising, "v", strictly=False) is rising
    with pytest.raises(Unfit, match="v: expected rising numbers, got others"):
        checks.rising(rising, "v")
