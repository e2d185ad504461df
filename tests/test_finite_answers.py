"""Which values have a number in them that is not finite."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from ensue.errors import DataError
from ensue.tasks.answers import Answer
from ensue.tasks.finite_answers import _finite_together, all_finite, answers_of


@dataclass(frozen=True)
class Deep:
    steps: tuple[Mapping[str, float], ...]


@dataclass(frozen=True)
class Everything(Answer):
    unbounded: ClassVar[tuple[str, ...]] = ("bits",)

    name: str = "nan"
    one: float = 1.0
    several: tuple[float, ...] = (1e308, 1e308)  # whose sum is not finite
    by_name: Mapping[str, float] | None = None
    plain: Mapping[str, float] = field(default_factory=lambda: {"a": 1.0})
    deep: Deep = Deep(({"a": 1.0},))
    bits: tuple[float, ...] = (1.0, math.inf)

    def as_line(self, answer_text: object) -> str:
        return ""


def test_finite_numbers_and_unbounded_fields_are_let_through() -> None:
    assert all_finite(Everything())


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "changed",
    [
        lambda n: {"one": n},
        lambda n: {"several": (1.0, n)},
        lambda n: {"by_name": {"a": n}},
        lambda n: {"plain": {"a": 0.0, "b": n}},
        lambda n: {"deep": Deep(({"a": 1.0}, {"a": n}))},
    ],
)
def test_others_are_seen_wherever_they_stand(changed: Any, wrong: float) -> None:
    assert not all_finite(Everything(**changed(wrong)))
    assert not all_finite([0.0, {"a": (Everything(**changed(wrong)),)}])


def test_nan_is_no_bit() -> None:
    assert not all_finite(Everything(bits=(1.0, math.nan)))


@dataclass(frozen=True)
class Plain(Answer):
    """The fields that sums over all answers can check."""

    label: str = "nan"
    value: float = 1.0
    several: tuple[float, ...] = (1.0,)
    by_name: Mapping[str, float] = field(default_factory=lambda: {"a": 1.0})

    def as_line(self, answer_text: object) -> str:
        return ""


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "changed",
    [lambda n: {"value": n}, lambda n: {"several": (1.0, n)}, lambda n: {"by_name": {"b": n}}],
)
def test_one_among_many_is_seen(changed: Any, wrong: float) -> None:
    assert _finite_together([Plain()] * 5)
    assert not _finite_together([Plain(), Plain(**changed(wrong)), Plain()])
    assert not _finite_together([Plain(**changed(wrong)), Plain(**changed(-wrong))])


def test_what_sums_cannot_tell_is_gone_through() -> None:
    assert not _finite_together([])
    assert not _finite_together([Plain(value=1e308), Plain(value=1e308)])
    assert not _finite_together([Plain(), Everything()])
    assert not _finite_together([Everything()])
    assert not _finite_together([1.0])


@pytest.mark.parametrize("names", [("a.csv:2", "a.csv:3"), ("a.csv:2",)])
def test_no_answer_leaves_with_such_a_number(names: tuple[str, ...]) -> None:
    """Of rows it is named; of a row with several answers it is numbered."""

    class Model:
        @staticmethod
        def answers_to(part: object, options: object) -> list[Everything]:
            return [Everything(), Everything(one=math.nan)]

    class Part:
        def __init__(self) -> None:
            self.names = names

        def __len__(self) -> int:
            return len(names)

    model: Any = Model()
    begin = "a.csv:3: answer 2" if len(names) == 2 else "answer 2"
    with pytest.raises(DataError, match=f"^{begin} holds a number that is not finite"):
        answers_of(model, Part(), {})
