"""What a field of a dataclass declares of its place in a model folder, and of the values that fit.

`codec` reads these declarations. One that refers to other values does so by a dotted path,
`Shape("labels")`, or by a function: `Shape(lambda record: len(record.starts) - 1)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

from numpy.typing import NDArray

from ensue.data.vocabulary import SPECIALS, TEXT_SPECIALS, Vocabulary

Array = NDArray[Any]

MOST_SHOWN = 60  # characters of a value in a message


class Unfit(ValueError):
    """A value that is not what was learned. name: its dotted name; whole: from the top of the file,
    and not from a value inside."""

    def __init__(self, problem: str, name: str = "", whole: bool = False) -> None:
        super().__init__(f"{name}: {problem}" if name else problem)
        self.problem, self.name, self.whole = problem, name, whole

    def below(self, key: str, whole: bool = False) -> Unfit:
        """The same problem, with this key in front of its name."""
        if self.whole:
            return self
        return Unfit(self.problem, ".".join(filter(None, [cut(key), self.name])), whole)


def expected(what: str, got: object, name: str = "") -> Unfit:
    return Unfit(f"expected {what}, got {cut(repr(got))}", name)


def cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


# --- what declarations refer to ------------------------------------------------------------------


class Scope:
    """The fields of the value that is read, each of which is read when it is first needed; those of
    the values around it; and what `unpacked` was given. To a field its name means that around."""

    def __init__(
        self,
        names: dict[str, Callable[[], Any]],
        outer: Scope | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self._names, self._outer, self._values = names, outer, {**(values or {})}

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __getitem__(self, name: str) -> Any:
        if name in self._names:
            self._values[name] = self._names.pop(name)()
        if name in self._values:
            return self._values[name]
        if self._outer is None:
            raise AssertionError(f"{name}: not a field, and not given to `unpacked`")
        self._values[name] = self._outer[name]
        return self._values[name]


Reference = str | Callable[[Any], Any]  # a dotted path in the scope, or a function of the scope
Size = int | Reference  # a reference to something else than a number means its length


def referred(value: Any, scope: Scope) -> Any:
    if isinstance(value, str):
        return attrgetter(value)(scope)
    return value(scope) if callable(value) else value


def number(size: float | Reference, scope: Scope) -> Any:
    value = referred(size, scope)
    return value if isinstance(value, int | float) else len(value)


# --- declarations --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Range:
    """A finite number, or an array of them, from low to high and greater than `above`."""

    low: float | Reference | None = None
    high: float | Reference | None = None
    above: float | None = None

    def limits(self, scope: Scope) -> dict[str, float]:
        """By the sign in a message."""
        limits = {"≥": self.low, ">": self.above, "≤": self.high}
        return {sign: number(v, scope) for sign, v in limits.items() if v is not None}


class Axis(NamedTuple):
    """One that an array has if its size is not 0."""

    size: Reference


class Shape:
    """The size of each axis of an array, None for any."""

    def __init__(self, *sizes: Size | Axis | None) -> None:
        self.sizes = sizes

    def numbers(self, scope: Scope) -> list[int | None]:
        sizes: list[int | None] = []
        for size in self.sizes:
            if not isinstance(size, Axis):
                sizes.append(None if size is None else number(size, scope))
            elif length := number(size.size, scope):
                sizes.append(length)
        return sizes


class Specials(NamedTuple):
    """Of a vocabulary: those that it has, () of labels; others: those that it may have instead."""

    usual: tuple[str, ...]
    others: tuple[tuple[str, ...], ...] = ()


class OneOf(NamedTuple):
    """A text that is one of these names."""

    names: Sequence[str] | Mapping[str, Any]


class Length(NamedTuple):
    """Of a list."""

    size: Size


class Keys(NamedTuple):
    """Those of a mapping, all of them and no others."""

    names: Reference


class Equal(NamedTuple):
    """The same as what is referred to."""

    value: Reference


class Check(NamedTuple):
    """A further check, which raises `Unfit`. A class whose fields must fit each other has a method
    `check_saved` that does."""

    check: Callable[[Any], None]


class Kinds(NamedTuple):
    """A value of one of these classes, or of the referenced ones, chosen by its `kind`."""

    classes: Mapping[str, type[Any]] | Reference


class OfClass(NamedTuple):
    """A value of the referenced class; no value if the reference is None."""

    record: Reference


class Arrays(NamedTuple):
    """Arrays under names of a class's choice. of: what it gives; made: it, of them and a scope."""

    of: Callable[[Any], Mapping[str, Array]]
    made: Callable[[Mapping[str, Array], Any], Any]


@dataclass(frozen=True)
class SavedAs:
    """Another name in files than that of the field; "" of a dataclass: its fields stand next to
    those around it; of a mapping of vocabularies: what begins the name of each. arrays: where the
    arrays below it have yet another. fields: other names of the fields of a dataclass."""

    key: str
    arrays: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


class Let:
    """Names that the declarations of a nested dataclass refer to."""

    def __init__(self, **values: int | Reference) -> None:
        self.values = values


class Derived(NamedTuple):
    """Not saved: it follows from other fields, or from what is around."""

    value: Reference


class Note(Enum):
    """Declarations in one word."""

    NOT_SAVED = "the field has its default"
    OMITTED = "a list that is not in the file where it is empty"
    DISTINCT = "a list that has no value twice"
    IN_FACTS = "a vocabulary that stands among the facts"
    AS_ARRAY = "a number that stands among the arrays"


NOT_SAVED, OMITTED, DISTINCT, IN_FACTS, AS_ARRAY = Note
NEXT_TO = SavedAs("")

Words = Annotated[Vocabulary, Specials(SPECIALS)]
TextWords = Annotated[Vocabulary, Specials(TEXT_SPECIALS)]
ReadWords = Annotated[Vocabulary, Specials(SPECIALS, (TEXT_SPECIALS,))]  # the latter of a base
Labels = Annotated[Vocabulary, Specials(())]
Positive = Annotated[float, Range(above=0)]


def check_rising(numbers: Array, name: str = "", strictly: bool = True) -> None:
    """`Unfit` unless each is greater than the one before it; not strictly: or equal to it."""
    fits = numbers[1:] > numbers[:-1] if strictly else numbers[1:] >= numbers[:-1]
    if not fits.all():
        raise Unfit("expected rising numbers, got others", name)


RISING = Check(check_rising)
