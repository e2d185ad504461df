"""Answers: the result of `predict`, a list that a notebook shows as a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, SupportsIndex, TypeVar, overload

from ensue.data.frames.frame import TYPES, Frame
from ensue.drawing.document import Bar, Cell, Document, Paragraph, Table, as_block
from ensue.escape import printable

if TYPE_CHECKING:
    from ensue.tasks.any_model import AnyModel

MOST_ROWS = 20  # maximum rows of a table in a notebook
LABELS = ("label", "labels")  # columns that have the type of the labels in training
TIME, TOKENS = "time", "tokens"


def as_row(answer: Any) -> Mapping[str, Any]:
    """An answer as a row, by the names of columns: from its own method, or else its fields."""
    if hasattr(answer, "as_row"):
        row: Mapping[str, Any] = answer.as_row()
        return row
    return {field.name: getattr(answer, field.name) for field in fields(answer)}


def answer_columns(answers: Sequence[Any], label_type: str = "") -> dict[str, list[Any]]:
    """Columns by name; those without any value are left out. label_type: a row of `TYPES` that
    labels are read as."""
    rows = [as_row(answer) for answer in answers]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    if label_type:
        columns |= {name: _typed(columns[name], label_type) for name in LABELS if name in columns}
    return {name: values for name, values in columns.items() if any(v is not None for v in values)}


def _typed(labels: list[Any], label_type: str) -> list[Any]:
    """Labels, or lists of labels, converted to another type; unchanged if one label cannot be
    converted."""
    read = TYPES[label_type]

    def typed(label: Any) -> Any:
        if label is None:  # nothing was answered
            return None
        return [*map(read, label)] if isinstance(label, list) else read(label)

    try:
        return [typed(label) for label in labels]
    except ValueError:
        return labels


def answer_frame(
    frame: Frame,
    answers: Sequence[Any],
    model: AnyModel,
    sequence: str | None,
    of_rows: bool,
) -> Any:
    """The frame with columns for the answers. sequence: the column whose equal values form one
    question; answers are then rows of a new frame. of_rows: whether each row is a question; if not,
    the answers are future times, in a new frame."""
    label = str(model.roles.get("label", ""))
    label_type = frame.type_of(label) if label in frame.names else ""
    columns = answer_columns(answers, model.label_type or label_type)
    text = str(model.roles.get("text", ""))
    if TOKENS in columns and text in frame.names and frame.column(text) == columns[TOKENS]:
        del columns[TOKENS]  # they came as tokens
    if sequence is not None:
        return frame.new({sequence: list(dict.fromkeys(frame.column(sequence))), **columns})
    if of_rows:
        return frame.with_columns(columns)
    time = model.answer_shape().time
    if not time:
        return frame.new(columns)
    return frame.new({time: columns.pop(TIME), **columns}, like=[time])


A = TypeVar("A")

Columns = Mapping[str, Sequence[Cell]]  # by their heads


def tabbed(*cells: str) -> str:
    """Cells as a line with tabs between them; tabs and line ends inside cells are escaped."""
    line = "\t".join(cells)
    if line.count("\t") < len(cells) and line.replace("\t", "").isprintable():
        return line  # as nearly all are
    return "\t".join(map(printable, cells))


class Answer(ABC):
    """An answer, a dataclass with forms for a terminal and a notebook. unbounded: fields in which
    infinity is valid, such as the bits of an impossible word."""

    unbounded: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def as_line(self, inputs: object) -> str:
        """The answer as a line of `tabbed` cells. inputs: the known inputs."""

    def shows_input(self) -> bool:
        """Whether the columns contain the complete input."""
        return False

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        """Several answers, with a column for each of their fields."""
        return field_columns(answers)

    def _repr_html_(self) -> str:
        return as_block(answers_document([self]))


class Answers(list[A]):
    """The answers in the order of the inputs: a list, whose slices are of the same class."""

    def __init__(self, answers: Iterable[A] = (), inputs: Any = None) -> None:
        super().__init__(answers)
        aligned = isinstance(inputs, list | tuple) and len(inputs) == len(self)
        # in pairs, so that each answer keeps its input when the list is sorted
        self._questions = list(zip(self, inputs, strict=True)) if aligned else []

    @classmethod
    def of(cls, answers: Iterable[A], inputs: Any) -> Answers[A]:
        """The answers of a task with their inputs, unless the task has already combined them."""
        return answers if isinstance(answers, Answers) else cls(answers, inputs)

    def and_then(self, answers: Iterable[A], inputs: Sequence[Any] | None) -> Answers[A]:
        """These answers followed by others; if these are empty, the others unchanged."""
        more = Answers.of(answers, None if inputs is None else list(inputs))
        if not self:
            return more
        self.extend(more)
        self._questions += more._questions
        return self

    @overload
    def __getitem__(self, at: SupportsIndex) -> A: ...
    @overload
    def __getitem__(self, at: slice) -> Self: ...
    def __getitem__(self, at: SupportsIndex | slice) -> A | Self:
        if not isinstance(at, slice):
            return super().__getitem__(at)
        getitem = type(self).__new__(type(self))
        getitem.__dict__.update(self.__dict__)
        getitem.extend(super().__getitem__(at))
        return getitem

    def _repr_html_(self) -> str:
        return as_block(answers_document(self, self._questions))


def answers_document(answers: Sequence[Any], questions: Sequence[tuple[Any, Any]] = ()) -> Document:
    """A document of answers. questions: answers with their inputs, in any order."""
    from ensue.tasks.model_page import input_cell

    many = "1 answer" if len(answers) == 1 else f"{len(answers):,} answers"
    listed = answers[:MOST_ROWS]
    if not listed:
        return Document(many, "", [])
    columns = columns_of(listed)
    inputs = {id(answer): question for answer, question in questions}
    with_inputs = isinstance(listed[0], Answer) and listed[0].shows_input()
    if inputs and not with_inputs:
        cells = [input_cell(inputs.get(id(answer), "")) for answer in listed]
        columns = {"input": cells, **columns}
    more = len(answers) - len(listed)
    rest = [Paragraph(f"and {more:,} more", quiet=True)] * (more > 0)
    return Document(many, "", [columns_table(columns), *rest])


def columns_table(columns: Columns) -> Table:
    rows = [*zip(*columns.values(), strict=True)]
    return Table(rows, [*columns], left=len(columns), most=MOST_ROWS)


def share_bar(share: float) -> Bar:
    return Bar(share, f"{share:.4f}")


def columns_of(answers: Sequence[Any]) -> Columns:
    """Columns by the class of the answers, if all share one; else by their fields."""
    kind = type(answers[0])
    if issubclass(kind, Answer) and all(type(answer) is kind for answer in answers):
        return kind.as_columns(answers)
    return field_columns(answers)


def field_columns(answers: Sequence[Any]) -> Columns:
    """A column for each field of a dataclass; other answers become text."""
    kind = type(answers[0])
    if not is_dataclass(kind) or not all(type(answer) is kind for answer in answers):
        return {"answer": [str(answer) for answer in answers]}
    return {
        field.name: [_plain(getattr(answer, field.name)) for answer in answers]
        for field in fields(kind)
    }


def _plain(value: object) -> Cell:
    return value if isinstance(value, int | float | str) else str(value)
