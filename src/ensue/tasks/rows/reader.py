"""`RowReader`: reads rows that are sequences, from tables, lines or memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.data.frames.origin import FILES, Origin
from ensue.data.rows import Place, Row, Tell
from ensue.data.settings import DataSettings
from ensue.data.tokenise import Tokeniser, train_subwords
from ensue.data.values import Unfit
from ensue.errors import DataError, OptionError
from ensue.tasks.abilities import NOTHING, Asked
from ensue.tasks.columns.cells import row_of_line
from ensue.tasks.reader import NO_COLUMNS, DatasetReader, P, PartFiles, QuestionFiles, Questions
from ensue.tasks.roles import told_roles
from ensue.tasks.rows.collect import IN_MEMORY, Content, Example, collect, in_memory, pairs_of
from ensue.tasks.rows.labels import known_rows, learned_labels
from ensue.tasks.rows.part import Tokenisers
from ensue.tasks.rows.reading import AT_ONCE, Reading, asked_rows, together
from ensue.tasks.settings import TextSettings

LOOKED_AT = 5_000  # texts
FEW_WORDS = 4.0  # a text has on average, between spaces
NEW = 0.5  # share of the words in the second half of the texts that the first half does not have
AUTO = "auto"

Rows = Callable[[], Iterable[Example]]  # can be gone through more than once


# --- tokenisers ----------------------------------------------------------------------------------


class Level(NamedTuple):
    """name: of a row of TOKENISERS; why: for the person who reads it."""

    name: str
    why: str


def level_of(values: Iterable[Any]) -> Level:
    """Characters where texts are short and most of their words are new: names, codes, and scripts
    without spaces; else words.

    >>> level_of(["Anna", "Bertrand", "Chen", "Dimitrova"]).name
    'characters'
    """
    texts = [value.lower().split() for value in islice(values, LOOKED_AT) if isinstance(value, str)]
    texts = [words for words in texts if words]
    half = len(texts) // 2
    known = {word for words in texts[:half] for word in words}
    later = [word for words in texts[half:] for word in words]
    if not known or not later:
        return Level("words", "")
    many = sum(map(len, texts)) / len(texts)
    new = sum(word not in known for word in later) / len(later)
    if many > FEW_WORDS or new < NEW:
        return Level("words", f"{many:.3g} words a text, {new:.0%} of them new")
    words = "a word or two" if many < 2 else f"{many:.2g} words"
    return Level("characters", f"texts of {words}, {new:.0%} of the words new to the texts before")


def tokeniser_of(text: TextSettings, values: Iterable[Any]) -> Tokeniser:
    """As the settings say; subwords are learned from these training values first."""
    subwords = None
    if text.level == "subwords":
        plain = Tokeniser("words", lower=text.lower, numbers=text.numbers, breaks=text.breaks)
        texts = (plain.prepared(v if isinstance(v, str) else " ".join(v)) for v in values)
        subwords = train_subwords(texts, text.subword_count)
    return Tokeniser(
        text.level, lower=text.lower, numbers=text.numbers, breaks=text.breaks, subwords=subwords
    )


# --- rows ----------------------------------------------------------------------------------------


class RowFiles:
    """The parts of a run's files."""

    def __init__(
        self,
        reader: RowReader[Any],
        data: DataSettings,
        on_bad_row: Tell | None,
        origin: Origin = FILES,
    ) -> None:
        self._reader = reader
        self._reading = Reading(data, reader.content, on_bad_row, origin)

    @property
    def rejected(self) -> int:
        return self._reading.rejected

    def part(self, name: str, like: Any = None) -> Any:
        return self._reader.collected(lambda: self._reading.rows(name), like)


class RowReader(DatasetReader[P]):
    """content: what of a row is learned from; needs_labels: whether rows to learn from need a
    label; new_labels: whether labels that training does not have can be answered, as texts and
    numbers can; classes: whether labels are always classes, of which there must be two."""

    content: ClassVar[Content] = Content()
    needs_labels: ClassVar[bool] = True
    new_labels: ClassVar[bool] = False
    classes: ClassVar[bool] = False

    # ------------------------------------------------------------- to learn from
    def files(
        self, data: DataSettings, on_bad_row: Tell | None = None, origin: Origin = FILES
    ) -> PartFiles[P]:
        return RowFiles(self, data, on_bad_row, origin)

    def labelled(
        self, rows: Any, columns: Mapping[str, str] = NO_COLUMNS, before: P | None = None
    ) -> P:
        if by_name(rows):
            data = told_roles(self.model.task, columns).get("data", {})
            examples = self.named_examples(rows, {**self.model.roles, **data})
            return self._part(lambda: examples, before)
        if columns:
            raise OptionError(
                f"{', '.join(columns)}: expected rows by column name, {{…}} each, a data frame, or "
                "the name of a file: other rows in a list have no columns"
            )
        examples = list(self.examples(rows))
        return self._part(lambda: examples, before)

    def named_examples(
        self, rows: Sequence[Mapping[str, Any]], roles: Mapping[str, Any]
    ) -> list[Example]:
        """Rows by column name. roles: keys of [data]."""
        if not roles.get("text"):
            raise OptionError(
                'rows by column name: expected which column is what, text="review", got none'
            )
        data = DataSettings.of({"train": [IN_MEMORY], **roles}, "data")
        examples = []
        for number, row in enumerate(rows, 1):
            place = Place(IN_MEMORY, number)
            try:
                example = self.content.example(Row(place, dict(row)), data)
                examples.append(self.content.looked_up(example, data))
            except Unfit as unfit:
                raise DataError(f"{place}: {unfit}") from None
        return examples

    def examples(self, rows: Any) -> Iterable[Example]:
        """Rows in memory: pairs of input and label."""
        return in_memory(pairs_of(rows))

    def collected(self, rows: Rows, like: Any = None) -> Any:
        """The rows as a part, cut by the tokenisers of a fitted model or of the part that they are
        like; else by new ones, learned from these rows first."""
        if self.model.fitted:
            tokenisers = self.model.learned.tokenisers
        elif like is not None:
            tokenisers = like.tokenisers
        else:
            tokenisers = self.tokenisers(rows)
        numbers = None if like is None else like.numbers
        return collect(rows(), tokenisers, numbers)

    def _part(self, rows: Rows, like: P | None = None) -> P:
        part: P = self.collected(rows, like)
        return part

    def tokenisers(self, rows: Rows) -> Tokenisers:
        """For the texts of training rows: those of a base, or as the settings say; subwords are
        learned from these rows."""

        def values() -> Iterator[Any]:
            both = (value for row in rows() for value in (row.value, row.second))
            return (value for value in both if value is not None)

        pretrained, text = self.model.pretrained, self.model.text
        if pretrained is not None and pretrained.tokeniser is not None:
            return Tokenisers(pretrained.tokeniser)
        if text.level == AUTO:
            text = text.model_copy(update={"level": level_of(values()).name})
        return Tokenisers(tokeniser_of(text, values()))

    def check(self, part: Any, name: str) -> None:
        if self.needs_labels and (not len(part) or part.labels is None):
            raise unlabelled_rows_error(part, name)
        if self.classes and name == "training":
            learned_labels(part)

    def answerable(self, train: Any, validation: Any) -> NDArray[np.int64] | None:
        return None if self.new_labels else known_rows(validation, train)

    # ------------------------------------------------------------- to answer
    def questions(self, inputs: Any, options: Asked = NOTHING) -> P:
        if isinstance(inputs, str):
            raise OptionError("predict: expected a list of inputs, got one text; write [text]")
        if by_name(inputs):
            roles = {**self.model.roles, "label": "", "separator": ""}
            examples = self.named_examples(inputs, roles)
            return self._part(lambda: examples)
        return self._part(lambda: self.unlabelled_examples(inputs))

    def unlabelled_examples(self, inputs: Iterable[Any]) -> Iterable[Example]:
        """Inputs in memory, without labels."""
        return in_memory((value, None) for value in inputs)

    def question_lines(self, lines: Sequence[str]) -> P:
        """Each line is a text, or a row as JSON where columns are read next to the text."""
        if self.model.roles.get("columns"):
            return self.questions([row_of_line(line) for line in lines])
        return self.questions(list(lines))

    def question_files(
        self, files: QuestionFiles, options: Asked = NOTHING
    ) -> Iterator[Questions[P]]:
        for batch in self.question_rows(files):
            yield self.questions_about(batch)

    def question_rows(self, files: QuestionFiles) -> Iterator[list[Example]]:
        """The rows that are answered together."""
        rows = asked_rows(self.question_content(files.data), files, self.is_label)
        return together(rows, AT_ONCE)

    def question_content(self, data: DataSettings) -> Content:
        """What of a row is asked about."""
        return self.content

    def questions_about(self, rows: list[Example]) -> Questions[P]:
        return Questions(self.collected(lambda: rows), [self.shown_input(row) for row in rows])

    def is_label(self, text: str) -> bool:
        """Whether a text can be a label of the fitted model."""
        return True

    def shown_input(self, example: Example) -> Any:
        """What of a row is shown next to its answer."""
        return example.value


def by_name(rows: Any) -> bool:
    """Whether rows in memory are objects by column name, not pairs or texts."""
    return isinstance(rows, list | tuple) and bool(rows) and isinstance(rows[0], Mapping)


def unlabelled_rows_error(part: Any, name: str, rows: str = "rows") -> DataError:
    """name: of a part without rows, or with rows that have no label."""
    message = f"the {name} part: expected {rows} with labels, got {len(part)} {rows}"
    if len(part):
        where = f", the first of them {part.unlabelled}" if part.unlabelled else ""
        message += f" with some or all of them missing{where}"
    return DataError(message)
