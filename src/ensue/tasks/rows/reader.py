"""`RowReader`: reads rows that are sequences, from tables, lines or memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ensue.data.frames.origin import FILES, Origin
from ensue.data.parallel import parallel, read_any
from ensue.data.read import Gathered
from ensue.data.recognise.format import LOOKED_AT, TEXT, format_of
from ensue.data.rows import Place, Problem, ProblemCallback, Row
from ensue.data.settings import DataSettings
from ensue.data.split import hashed_content, part_of, part_of_line
from ensue.data.tokenise import Tokeniser, train_subwords
from ensue.data.values import Unfit
from ensue.errors import DataError, EnsueError, OptionError
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.columns.cells import row_of_line
from ensue.tasks.reader import NO_COLUMNS, DatasetReader, P, PartFiles, QuestionFiles, Questions
from ensue.tasks.roles import named_roles
from ensue.tasks.rows.collect import IN_MEMORY, Content, Example, collect, in_memory, pairs_of
from ensue.tasks.rows.labels import known_rows, learned_labels
from ensue.tasks.rows.part import Tokenisers
from ensue.tasks.settings import TextSettings

EXAMPLE = "example"
LABELLED = "labelled"  # format with labels at the beginning of lines
FOREIGN = 0.9  # maximum share of first words that are not labels in labelled lines
SHOWN = 3  # of them
AT_ONCE = 1000  # rows that are answered together

T = TypeVar("T")


@dataclass
class Reading:
    """The rows of files that belong to a part. content: reads the example of a row; on_bad_row:
    callback for rejected rows; origin: what the rows are read from, if not files."""

    data: DataSettings
    content: Content
    on_bad_row: ProblemCallback | None = None
    origin: Origin = FILES
    rejected: int = field(default=0, init=False)  # rejected rows of the last part

    def rows(self, part: str) -> Iterator[Example]:
        """The rows of a part, in the order of the files. Rows of other parts are only checked, so
        that one error names the faults of a whole file."""
        shares = self.data.shares(part)
        sources = {path: partial(self._sound, path, part, shares) for path in self.data.files(part)}
        gathered = Gathered(sources, self.data.skip_bad, self.on_bad_row, self.origin.mend)
        for row in gathered:
            if row.fields:
                yield row.fields[EXAMPLE]
        self.rejected = gathered.rejected

    def _sound(
        self, path: str, part: str, shares: Mapping[str, float] | None, tell: ProblemCallback
    ) -> Iterator[Row]:
        """Valid rows with their examples; rows of other parts are only checked."""
        data, content = self.data, self.content
        options = data.read_options(
            content.by_step, grouped=shares is not None, others=content.all_columns
        )
        in_blocks = self.origin.files and continues(data) and plain_text(path, data.format)
        for row in self.origin.read(path, options, tell):
            try:
                example = content.example(row, data)
                if shares and self._part(example, row, shares, in_blocks) != part:
                    yield Row(row.place, {})
                    continue
                yield Row(row.place, {EXAMPLE: content.looked_up(example, data)})
            except Unfit as unfit:
                tell(Problem(row.place, str(unfit)))

    def _part(
        self, example: Example, row: Row, shares: Mapping[str, float], in_blocks: bool
    ) -> str:
        """The part that a row belongs to. in_blocks: the rows are lines of one text, and blocks of
        lines stay together."""
        seed = self.data.split_seed
        if in_blocks:
            return part_of_line(row.place.line - 1, shares, seed, Path(row.place.file).name)
        group: Any = row.fields[self.data.group] if self.data.group else None
        if group is not None:
            return part_of(str(group), shares, seed)
        content = hashed_content(self.content.hashed(example), row.place)
        return part_of(content, shares, seed)


def continues(data: DataSettings) -> bool:
    """Whether the lines of a plain text are one continuous text, not separate rows."""
    return not (data.label or data.group)


def plain_text(path: str, format: str) -> bool:
    """Whether each line of the file is a row."""
    return not parallel([path]) and format_of(Path(path), format) == TEXT


def asked_rows(
    content: Content,
    files: QuestionFiles,
    is_label: Callable[[str], bool] = lambda text: True,
) -> Iterator[Example]:
    """The rows of files to answer, without using labels. A plain text file has a single column,
    whatever the name in the run; if training had two parallel files, a single file is plain text.
    is_label: whether a text can be a label of the model."""
    data, origin = files.data, files.origin
    lines = parallel(data.train)
    for path in files.paths:
        if origin.files and data.format == LABELLED:
            _refuse_texts_alone(path, data, is_label)
        plain = origin.files and ((lines and not parallel([path])) or plain_text(path, data.format))
        questions = data.for_questions([path], plain)
        yield from Reading(questions, content, files.on_bad_row, origin).rows("train")


def _refuse_texts_alone(path: str, data: DataSettings, is_label: Callable[[str], bool]) -> None:
    """Raises an error if the first words of lines are not labels, because they would be lost."""
    options = data.for_questions([path]).read_options()
    rows = islice(read_any(path, options, lambda problem: None), LOOKED_AT)
    words = [row.fields["label"] for row in rows]
    foreign = [word for word in words if not is_label(word)]
    if words and len(foreign) > FOREIGN * len(words):
        listed = ", ".join(map(repr, foreign[:SHOWN]))
        raise DataError(
            f"{path}: expected a label of this model at the start of each line, as in "
            f"training, got {listed}, …; if the lines are texts alone, use --format text"
        )


def together(rows: Iterable[T], count: int) -> Iterator[list[T]]:
    """Batches of `count` rows; rows before an error come first, then the error."""
    waiting = iter(rows)
    while True:
        batch: list[T] = []
        try:
            batch.extend(islice(waiting, count))
        except EnsueError:
            if batch:
                yield batch
            raise
        if not batch:
            return
        yield batch


TEXTS_LOOKED_AT = 5_000
FEW_WORDS = 4.0  # maximum mean words of a text, between spaces
NEW = 0.5  # minimum share of words in the second half of the texts that do not occur in the first
AUTO = "auto"

Rows = Callable[[], Iterable[Example]]  # can be iterated more than once


# --- tokenisers ----------------------------------------------------------------------------------


class Level(NamedTuple):
    """A level of tokens. name: a row of TOKENISERS; why: the reason, for the user."""

    name: str
    why: str


def level_of(values: Iterable[Any]) -> Level:
    """Characters if texts are short and most of their words are new, as for names, codes, and
    scripts without spaces; else words.

    >>> level_of(["Anna", "Bertrand", "Chen", "Dimitrova"]).name
    'characters'
    """
    texts = [
        value.lower().split() for value in islice(values, TEXTS_LOOKED_AT) if isinstance(value, str)
    ]
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
    """The tokenisers of the settings; subwords are first learned from these training values."""
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
        on_bad_row: ProblemCallback | None,
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
    """A reader of rows. content: reads the example of a row; needs_labels: whether training rows
    need a label; new_labels: whether labels that training does not have can be predicted, like
    texts and numbers; classes: whether labels are classes, of which there must be at least two."""

    content: ClassVar[Content] = Content()
    needs_labels: ClassVar[bool] = True
    new_labels: ClassVar[bool] = False
    classes: ClassVar[bool] = False

    # ------------------------------------------------------------- to learn from
    def files(
        self, data: DataSettings, on_bad_row: ProblemCallback | None = None, origin: Origin = FILES
    ) -> PartFiles[P]:
        return RowFiles(self, data, on_bad_row, origin)

    def labelled(
        self, rows: Any, columns: Mapping[str, str] = NO_COLUMNS, before: P | None = None
    ) -> P:
        if by_name(rows):
            data = named_roles(self.model.task, columns).get("data", {})
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
        """The rows as a part, tokenised as in a fitted model or in the part `like`; else by new
        tokenisers, learned from these rows."""
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
        """Tokenisers for training rows, from a base or from the settings; subwords are learned from
        these rows."""

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
    def questions(self, inputs: Any, options: RequestOptions = NOTHING) -> P:
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
        """Questions from lines: each is a text, or a row as JSON if there are columns next to the
        text."""
        if self.model.roles.get("columns"):
            return self.questions([row_of_line(line) for line in lines])
        return self.questions(list(lines))

    def question_files(
        self, files: QuestionFiles, options: RequestOptions = NOTHING
    ) -> Iterator[Questions[P]]:
        for batch in self.question_rows(files):
            yield self.questions_about(batch)

    def question_rows(self, files: QuestionFiles) -> Iterator[list[Example]]:
        """Yields batches of rows that are answered together."""
        rows = asked_rows(self.question_content(files.data), files, self.is_label)
        return together(rows, AT_ONCE)

    def question_content(self, data: DataSettings) -> Content:
        """The input of a row to predict."""
        return self.content

    def questions_about(self, rows: list[Example]) -> Questions[P]:
        return Questions(self.collected(lambda: rows), [self.shown_input(row) for row in rows])

    def is_label(self, text: str) -> bool:
        """Whether a text can be a label of the fitted model."""
        return True

    def shown_input(self, example: Example) -> Any:
        """The part of a row that is shown next to its answer."""
        return example.value


def by_name(rows: Any) -> bool:
    """Whether rows in memory are objects by column name, not pairs or texts."""
    return isinstance(rows, list | tuple) and bool(rows) and isinstance(rows[0], Mapping)


def unlabelled_rows_error(part: Any, name: str, rows: str = "rows") -> DataError:
    """The error for rows without labels. name: the name of a part without rows, or with rows that
    have no label."""
    message = f"the {name} part: expected {rows} with labels, got {len(part)} {rows}"
    if len(part):
        where = f", the first of them {part.unlabelled}" if part.unlabelled else ""
        message += f" with some or all of them missing{where}"
    return DataError(message)
