"""Answers: what `predict` gives, a list that a notebook shows as a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Self, SupportsIndex, TypeVar, overload

from ensue.drawing.html import MOST_ROWS, Markup, and_more, block, table
from ensue.escape import printable

A = TypeVar("A")

Columns = Mapping[str, Sequence[object]]  # by their heads: numbers, texts, or markup


def tabbed(*cells: str) -> str:
    """Cells as a line, with tabs between: what breaks a column or a line inside of one is written
    out."""
    line = "\t".join(cells)
    if line.count("\t") < len(cells) and line.replace("\t", "").isprintable():
        return line  # as nearly all are
    return "\t".join(map(printable, cells))


class Answer(ABC):
    """An answer, a dataclass: as a line for a terminal, and in a table for a notebook. unbounded:
    fields in which infinity is an answer, such as the bits of what cannot be."""

    unbounded: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def as_line(self, shown: object) -> str:
        """Made of `tabbed` cells. shown: what is known of the input."""

    def shows_input(self) -> bool:
        """Whether the columns have all of the input in them."""
        return False

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        """Several of them, a column for each thing there is to say."""
        return field_columns(answers)

    def _repr_html_(self) -> str:
        return answers_html([self])


class Answers(list[A]):
    """The answers in the order of the inputs. In every respect a list; a slice of it is of the
    same kind."""

    def __init__(self, answers: Iterable[A] = (), inputs: Any = None) -> None:
        super().__init__(answers)
        aligned = isinstance(inputs, list | tuple) and len(inputs) == len(self)
        # in pairs: a list can be sorted, and each answer keeps its own input
        self._asked = list(zip(self, inputs, strict=True)) if aligned else []

    @classmethod
    def of(cls, answers: Iterable[A], inputs: Any) -> Answers[A]:
        """Those of a task, with the inputs they were given to, unless it has put them together
        itself."""
        return answers if isinstance(answers, Answers) else cls(answers, inputs)

    def and_then(self, answers: Iterable[A], inputs: Sequence[Any] | None) -> Answers[A]:
        """These and those after them; after none, those as the task has put them together."""
        more = Answers.of(answers, None if inputs is None else list(inputs))
        if not self:
            return more
        self.extend(more)
        self._asked += more._asked
        return self

    @overload
    def __getitem__(self, at: SupportsIndex) -> A: ...
    @overload
    def __getitem__(self, at: slice) -> Self: ...
    def __getitem__(self, at: SupportsIndex | slice) -> A | Self:
        if not isinstance(at, slice):
            return super().__getitem__(at)
        found = type(self).__new__(type(self))
        found.__dict__.update(self.__dict__)
        found.extend(super().__getitem__(at))
        return found

    def _repr_html_(self) -> str:
        return answers_html(self, self._asked)


def answers_html(answers: Sequence[Any], asked: Sequence[tuple[Any, Any]] = ()) -> str:
    """asked: answers with their inputs, in any order."""
    from ensue.tasks.input_preview import preview_html

    many = "1 answer" if len(answers) == 1 else f"{len(answers):,} answers"
    shown = answers[:MOST_ROWS]
    if not shown:
        return block(many)
    columns = columns_of(shown)
    inputs = {id(answer): given for answer, given in asked}
    seen = isinstance(shown[0], Answer) and shown[0].shows_input()
    if inputs and not seen:
        given = [inputs.get(id(answer), "") for answer in shown]
        columns = {"input": [preview_html(own) for own in given], **columns}
    rows = list(zip(*columns.values(), strict=True))
    return block(many, table(rows, list(columns)), and_more(len(answers) - len(shown)))


def columns_of(answers: Sequence[Any]) -> Columns:
    """As their class says, where they are of one class that does."""
    kind = type(answers[0])
    if issubclass(kind, Answer) and all(type(answer) is kind for answer in answers):
        return kind.as_columns(answers)
    return field_columns(answers)


def field_columns(answers: Sequence[Any]) -> Columns:
    """A column for each field of a dataclass; of anything else, what it is called."""
    kind = type(answers[0])
    if not is_dataclass(kind) or not all(type(answer) is kind for answer in answers):
        return {"answer": [str(answer) for answer in answers]}
    return {
        own.name: [_plain(getattr(answer, own.name)) for answer in answers] for own in fields(kind)
    }


def _plain(value: object) -> object:
    return value if isinstance(value, int | float | str | Markup) else str(value)
