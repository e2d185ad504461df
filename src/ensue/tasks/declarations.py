"""Declarations for fields of dataclasses: how they are stored in a model folder, and which values
are valid.

`codec` reads these declarations. They refer to other values by a dotted path, `Shape("labels")`, or
by a function: `Shape(lambda record: len(record.starts) - 1)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

from numpy.typing import NDArray

from ensue.data.vocabulary import SPECIALS, TEXT_SPECIALS, Vocabulary

Array = NDArray[Any]

MOST_SHOWN = 60  # maximum characters of a value in a message


class Unfit(ValueError):
    """A stored value that does not fit its declaration. name: its dotted name; whole: whether the
    name begins at the top of the file."""

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
    """Values that declarations may refer to: the fields of the value that is being read, each read
    at first use; those of enclosing values; and the context of `unpacked`. In the declaration of a
    field, its own name refers to an enclosing value."""

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
Size = int | Reference  # a reference to a value that is not a number means its length


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
        """The limits by comparison sign, "≥", ">" and "≤"."""
        limits = {"≥": self.low, ">": self.above, "≤": self.high}
        return {sign: number(v, scope) for sign, v in limits.items() if v is not None}


class Axis(NamedTuple):
    """An axis that an array has only if its size is not 0."""

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
    """The specials of a vocabulary, () for labels; others: alternatives."""

    usual: tuple[str, ...]
    others: tuple[tuple[str, ...], ...] = ()


class OneOf(NamedTuple):
    """The value is one of these names."""

    names: Sequence[str] | Mapping[str, Any]


class Length(NamedTuple):
    """The length of a list."""

    size: Size


class Keys(NamedTuple):
    """The exact set of keys of a mapping."""

    names: Reference


class Equal(NamedTuple):
    """The value equals a referenced one."""

    value: Reference


class Check(NamedTuple):
    """A further check, which raises `Unfit`. A class whose fields must fit each other has a method
    `check_saved` that does."""

    check: Callable[[Any], None]


class Kinds(NamedTuple):
    """The value is of one of these (or the referenced) classes, chosen by its `kind`."""

    classes: Mapping[str, type[Any]] | Reference


class OfClass(NamedTuple):
    """The value is of the referenced class; missing if the reference is None."""

    record: Reference


class Arrays(NamedTuple):
    """Arrays under names that a class chooses. of: returns the arrays of a value; made: makes a
    value from arrays and a scope."""

    of: Callable[[Any], Mapping[str, Array]]
    made: Callable[[Mapping[str, Array], Any], Any]


@dataclass(frozen=True)
class SavedAs:
    """The name of a field in files. "" for a dataclass: its fields are stored next to the enclosing
    ones. For a mapping of vocabularies: the prefix of their names. arrays: the name of the arrays
    below it, if different; fields: other names for the fields of a dataclass."""

    key: str
    arrays: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


class Let:
    """Names that the declarations of a nested dataclass refer to."""

    def __init__(self, **values: int | Reference) -> None:
        self.values = values


class Derived(NamedTuple):
    """The field is not saved: it follows from other fields or enclosing values."""

    value: Reference


class Note(Enum):
    """Any of the declarations."""

    NOT_SAVED = "the field has its default"
    OMITTED = "a list that is not in the file where it is empty"
    DISTINCT = "a list that has no value twice"
    IN_FACTS = "a vocabulary that stands among the facts"
    AS_ARRAY = "a number that stands among the arrays"


NOT_SAVED, OMITTED, DISTINCT, IN_FACTS, AS_ARRAY = Note
NEXT_TO = SavedAs("")

Words = Annotated[Vocabulary, Specials(SPECIALS)]
TextWords = Annotated[Vocabulary, Specials(TEXT_SPECIALS)]
ReadWords = Annotated[Vocabulary, Specials(SPECIALS, (TEXT_SPECIALS,))]  # the latter for a base
Labels = Annotated[Vocabulary, Specials(())]
Positive = Annotated[float, Range(above=0)]


def check_rising(numbers: Array, name: str = "", strictly: bool = True) -> None:
    """Raises `Unfit` unless each number is greater than the one before it, or, if not `strictly`,
    equal."""
    fits = numbers[1:] > numbers[:-1] if strictly else numbers[1:] >= numbers[:-1]
    if not fits.all():
        raise Unfit("expected rising numbers, got others", name)


RISING = Check(check_rising)
