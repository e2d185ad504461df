"""`RowTask`: what tasks share whose rows are sequences read from tables, lines or memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ensue.data.frames.origin import FILES, Origin
from ensue.data.rows import Place, Row, Tell
from ensue.data.settings import DataSettings
from ensue.data.tokenise import Tokeniser, train_subwords
from ensue.data.values import Unfit
from ensue.errors import DataError, EnsueError, OptionError
from ensue.tasks.abilities import Deals
from ensue.tasks.columns.cells import row_of_line
from ensue.tasks.roles import told_roles
from ensue.tasks.rows.collect import IN_MEMORY, Content, Example, collect, in_memory, pairs_of
from ensue.tasks.rows.labels import known_rows, learned_labels
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.rows.reading import Reading, asked_rows, continues, plain_text
from ensue.tasks.search.ranges import Space
from ensue.tasks.search.usual import text_space
from ensue.tasks.settings import TextSettings
from ensue.tasks.task import NOTHING, Asked, Questions, S, Task

if TYPE_CHECKING:
    from ensue.tasks.model import Model
    from ensue.tasks.rows.part import Part

ARRAY, TYPE = "array", "type"  # of vectors (steps, n)


class DealtRows:
    """The rows of a `RowTask`, each of which is answered by itself."""

    def shares(
        self, model: Any, paths: Sequence[str], data: DataSettings, on_bad_row: Tell | None = None
    ) -> Iterator[list[Any]]:
        if model.inputs:
            raise OptionError(
                "--workers: a run with several inputs answers in one process; leave it out"
            )
        for rows in model.task.asked_rows(paths, data, model, on_bad_row):
            yield [_as_json(row) for row in rows]

    def questions(self, model: Any, share: Sequence[Any]) -> Questions[Part]:
        found: Questions[Part] = model.task.questions_about([_example(row) for row in share], model)
        return found

    def names(self, share: Sequence[Any]) -> list[str]:
        return [str(Place(*row[0])) for row in share]


def _as_json(row: Example) -> list[Any]:
    value = row.value
    if isinstance(value, np.ndarray):
        value = {ARRAY: value.tolist(), TYPE: value.dtype.str}
    return [row.place, value, row.second, row.cells]


def _example(row: Sequence[Any]) -> Example:
    place, value, second, cells = row
    if isinstance(value, dict):
        value = np.array(value[ARRAY], value[TYPE])
    return Example(value, None, Place(*place), second, cells)


LOOKED_AT = 5_000  # texts
FEW_WORDS = 4.0  # a text has on average, between spaces
NEW = 0.5  # share of the words in the second half of the texts that the first half does not have
AUTO = "auto"


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


AT_ONCE = 1000  # rows that are answered together

T = TypeVar("T")
Rows = Callable[[], Iterable[Example]]  # can be gone through more than once


class Tokenised(Protocol):
    """What was learned from rows of text."""

    @property
    def tokenisers(self) -> Tokenisers: ...


L = TypeVar("L", bound=Tokenised)


class RowFiles:
    """The parts of a run's files."""

    def __init__(
        self,
        task: RowTask[Any, Any],
        data: DataSettings,
        model: Model[Any, Part, Any],
        on_bad_row: Tell | None,
        origin: Origin = FILES,
    ) -> None:
        self._task, self._model = task, model
        self._reading = Reading(data, task.content, on_bad_row, origin)

    @property
    def rejected(self) -> int:
        return self._reading.rejected

    def part(self, name: str, like: Part | None = None) -> Part:
        return self._task.collected(lambda: self._reading.rows(name), self._model, like)


class RowTask(Task[S, Part, L]):
    """Each row is a sequence with what is to be learned of it.

    content: what of a row is learned from; labelled: whether rows need a label; new_labels:
    whether labels that training does not have can be answered: texts and numbers can; classes:
    whether labels are classes always, of which there must be two."""

    columns: ClassVar[Mapping[str, str]] = {
        "text": "data.text",
        "label": "data.label",
        "sequence": "data.sequence",
        "features": "data.features",
    }
    content: ClassVar[Content] = Content()
    labelled: ClassVar[bool] = True
    new_labels: ClassVar[bool] = False
    classes: ClassVar[bool] = False
    deals: ClassVar[Deals | None] = DealtRows()

    # ------------------------------------------------------------- read
    def files(
        self,
        data: DataSettings,
        model: Model[S, Part, L],
        on_bad_row: Tell | None = None,
        origin: Origin = FILES,
    ) -> RowFiles:
        return RowFiles(self, data, model, on_bad_row, origin)

    def given(
        self,
        rows: Any,
        model: Model[S, Part, L],
        columns: Mapping[str, str],
        before: Part | None = None,
    ) -> Part:
        if by_name(rows):
            roles = {**model.roles, **told_roles(self, columns).get("data", {})}
            examples = self.named_examples(rows, roles)
            return self.collected(lambda: examples, model, before)
        if columns:
            raise OptionError(
                f"{', '.join(columns)}: expected rows by column name, {{…}} each, a data frame, or "
                "the name of a file: other rows in a list have no columns"
            )
        examples = list(self.examples(rows))
        return self.collected(lambda: examples, model, before)

    def asked(self, inputs: Any, model: Model[S, Part, L], asked: Asked = NOTHING) -> Part:
        if isinstance(inputs, str):
            raise OptionError("predict: expected a list of inputs, got one text; write [text]")
        if by_name(inputs):
            roles = {**model.roles, "label": "", "separator": ""}
            examples = self.named_examples(inputs, roles)
            return self.collected(lambda: examples, model)
        return self.collected(lambda: self.questions(inputs), model)

    def asked_lines(self, lines: Sequence[str], model: Model[S, Part, L]) -> Part:
        """Each line is a text; or a row as JSON, where columns are read beside it."""
        if model.roles.get("columns"):
            return self.asked([row_of_line(line) for line in lines], model)
        return self.asked(list(lines), model)

    def named_examples(
        self, rows: Sequence[Mapping[str, Any]], roles: Mapping[str, Any]
    ) -> list[Example]:
        """Rows by column name. roles: keys of [data]."""
        if not roles.get("text"):
            raise OptionError(
                'rows by column name: expected which column is what, text="review", got none'
            )
        data = DataSettings.of({"train": [IN_MEMORY], **roles}, "data")
        found = []
        for number, row in enumerate(rows, 1):
            place = Place(IN_MEMORY, number)
            try:
                found.append(self.content.example(Row(place, dict(row)), data))
            except Unfit as unfit:
                raise DataError(f"{place}: {unfit}") from None
        return found

    def examples(self, rows: Any) -> Iterable[Example]:
        """Rows in memory: pairs of input and label."""
        return in_memory(pairs_of(rows))

    def questions(self, inputs: Iterable[Any]) -> Iterable[Example]:
        """Inputs in memory, without labels."""
        return in_memory((value, None) for value in inputs)

    def collected(self, rows: Rows, model: Model[S, Part, L], like: Part | None = None) -> Part:
        """The rows as a part, cut by the tokenisers of a fitted model or of the part that they are
        like; else by new ones, learned from these rows first."""
        if model.fitted:
            tokenisers = model.learned.tokenisers
        elif like is not None:
            tokenisers = like.tokenisers
        else:
            tokenisers = self.tokenisers(rows, model)
        numbers = None if like is None else like.numbers
        return collect(rows(), tokenisers, numbers)

    def tokenisers(self, rows: Rows, model: Model[S, Part, L]) -> Tokenisers:
        """For the texts of training rows: those of a base, or as the settings say; subwords are
        learned from these rows."""

        def values() -> Iterator[Any]:
            both = (value for row in rows() for value in (row.value, row.second))
            return (value for value in both if value is not None)

        if model.pretrained is not None and model.pretrained.tokeniser is not None:
            return Tokenisers(model.pretrained.tokeniser)
        text = model.text
        if text.level == AUTO:
            text = text.model_copy(update={"level": level_of(values()).name})
        return Tokenisers(tokeniser_of(text, values()))

    def asked_files(
        self,
        paths: Sequence[str],
        data: DataSettings,
        model: Model[S, Part, L],
        asked: Asked = NOTHING,
        on_bad_row: Tell | None = None,
        origin: Origin = FILES,
    ) -> Iterator[Questions[Part]]:
        for some in self.asked_rows(paths, data, model, on_bad_row, origin):
            yield self.questions_about(some, model)

    def asked_rows(
        self,
        paths: Sequence[str],
        data: DataSettings,
        model: Model[S, Part, L],
        on_bad_row: Tell | None = None,
        origin: Origin = FILES,
    ) -> Iterator[list[Example]]:
        """The rows that are answered together."""
        content = self.asked_content(data, model)
        is_label = partial(self.is_label, model=model)
        rows = asked_rows(content, data, list(paths), on_bad_row, origin, is_label)
        return together(rows, AT_ONCE)

    def questions_about(self, rows: list[Example], model: Model[S, Part, L]) -> Questions[Part]:
        part = self.collected(lambda: rows, model)
        return Questions(part, [self.shown_input(row) for row in rows])

    def asked_content(self, data: DataSettings, model: Model[S, Part, L]) -> Content:
        """What of a row is asked about."""
        return self.content

    def is_label(self, text: str, model: Model[S, Part, L]) -> bool:
        """Whether a text can be a label of a fitted model."""
        return True

    def shown_input(self, example: Example) -> Any:
        """What of a row is shown beside its answer."""
        return example.value

    # ------------------------------------------------------------- checked
    def check(self, part: Part, name: str) -> None:
        if self.labelled and (not len(part) or part.labels is None):
            where = f", the first of them {part.unlabelled}" if part.unlabelled else ""
            raise DataError(
                f"the {name} part: expected rows with labels, got {len(part)} rows"
                + (" with some or all of them missing" + where) * bool(len(part))
            )
        if self.classes and name == "training":
            learned_labels(part)

    def known_rows(
        self, train: Part, held: Part, model: Model[S, Part, L]
    ) -> NDArray[np.int64] | None:
        return None if self.new_labels else known_rows(held, train)

    def search_space(self, train: Part, model: Model[S, Part, L]) -> Space:
        return text_space(super().search_space(train, model), train)

    def split_line(self, data: DataSettings, settings: S) -> str:
        line = super().split_line(data, settings)
        if continues(data) and all(plain_text(path, data.format) for path in data.train):
            blocks = "by blocks of lines, so that what belongs together stays together"
            line = line.replace(f"by the hash of {self.unit}", blocks)
        return line

    def moves_with_files(self, data: DataSettings) -> bool:
        return continues(data) and any(plain_text(path, data.format) for path in data.train)


def by_name(rows: Any) -> bool:
    """Whether rows in memory are objects by column name, not pairs or texts."""
    return isinstance(rows, list | tuple) and bool(rows) and isinstance(rows[0], Mapping)


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


def together(rows: Iterable[T], count: int) -> Iterator[list[T]]:
    """So many rows at a time; those before an error come first, then the error."""
    waiting = iter(rows)
    while True:
        some: list[T] = []
        try:
            some.extend(islice(waiting, count))
        except EnsueError:
            if some:
                yield some
            raise
        if not some:
            return
        yield some
