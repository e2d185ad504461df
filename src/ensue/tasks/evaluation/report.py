"""Evaluations, as JSON and as documents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from ensue.drawing.document import (
    Bar,
    Beside,
    Block,
    Cell,
    Document,
    HeatMap,
    Lines,
    Paragraph,
    Printed,
    Section,
    Table,
)
from ensue.errors import RunError
from ensue.files.atomic_folder import Damaged, finite, or_infinite, sealed, unsealed
from ensue.files.disk import write_whole
from ensue.tasks.codec import check_plain
from ensue.tasks.declarations import NOT_SAVED, Unfit
from ensue.tasks.evaluation.bootstrap import Interval, RowSums

MOST_CLASSES, MOST_CONFUSED, MOST_PAIRS = 30, 12, 8
ROOM = 18  # width of a score's name
PREVIEW = 60  # characters of a text
NOT_KEPT = ("sums", "baseline_sums", "names", "opened")  # as long as the data, or of this moment


class ClassRow(NamedTuple):
    name: str
    precision: float
    recall: float
    f1: float
    support: int


class Error(NamedTuple):
    """A wrong answer: its row, its text, the gold label, and the model's confidence."""

    place: str
    text: str
    gold: str
    predicted: str
    probability: float  # of the wrong answer, or of the actual text if nothing was predicted


class TimesOpened(NamedTuple):
    """How often a held-out part has been evaluated, and how many of those times by other models;
    0 if that is not counted."""

    times: int = 0
    by_others: int = 0

    def line(self, what: str) -> str:
        """
        >>> TimesOpened(3, 1).line("This part has been evaluated")
        'This part has been evaluated 3 times, 1 of them by other models.'
        """
        many = "once" if self.times == 1 else f"{self.times} times"
        others = f", {self.by_others} of them by other models" if self.by_others else ""
        return f"{what} {many}{others}."


@dataclass(frozen=True)
class Evaluation(Printed):
    """The evaluation of a model on a part. scores: scores with their bootstrap intervals, the main
    score first; others: single numbers; baselines: the main score of baselines; confusion: gold in
    rows, predicted in columns; unknown: number of rows with labels that the model does not know;
    notes: on the computation of scores.

    sums: what each row adds to a score, by the score's name; names: where these rows come from.
    Two models are compared by them, row by row. baseline_sums: the same of baselines, by name,
    for the first score. opened: how often these rows have been evaluated, where that was counted.
    tables: the class of each row of a field that is a table.

    >>> lines = ["the dog runs", "the cat sleeps"]
    >>> found = LanguageModel(model={"family": "ngram"}).fit(lines, lines).evaluate(lines)
    >>> found.main, found.rows
    ('perplexity', 2)
    """

    rows: int
    steps: int
    scores: Mapping[str, Interval]
    others: Mapping[str, float]
    baselines: Mapping[str, float]
    classes: Sequence[ClassRow]
    confusion: Sequence[Sequence[int]]
    worst: Sequence[Error]
    higher_is_better: bool = True
    unknown: int = 0
    notes: Sequence[str] = ()
    sums: Annotated[Mapping[str, RowSums], NOT_SAVED] = field(
        default_factory=dict, repr=False, compare=False
    )
    baseline_sums: Annotated[Mapping[str, RowSums], NOT_SAVED] = field(
        default_factory=dict, repr=False, compare=False
    )
    names: Annotated[Sequence[str], NOT_SAVED] = field(default=(), repr=False, compare=False)
    opened: Annotated[TimesOpened, NOT_SAVED] = field(
        default=TimesOpened(), repr=False, compare=False
    )

    tables: ClassVar[Mapping[str, type[Any]]] = {"classes": ClassRow, "worst": Error}

    mistakes: ClassVar[str] = "most confident mistakes"  # name of the worst answers

    @property
    def main(self) -> str:
        return next(iter(self.scores))

    def as_json(self) -> dict[str, Any]:
        """All but `opened` and what is as long as the data: `names` and both sums."""
        plain = [each.name for each in fields(self) if each.name not in NOT_KEPT]
        json = {name: getattr(self, name) for name in plain}
        json["scores"] = {name: score._asdict() for name, score in self.scores.items()}
        for name in self.tables:
            json[name] = [row._asdict() for row in json[name]]
        return json

    @classmethod
    def of_json(cls, facts: Mapping[str, Any]) -> Self:
        """The inverse of `as_json`; a number that JSON has not got, null, is infinite. Raises Unfit
        for facts that Ensue never writes."""
        check_plain(cls, finite(facts))
        if not facts["scores"]:
            raise Unfit("scores: expected one or more")
        values = {each.name: facts[each.name] for each in fields(cls) if each.name in facts}
        values["scores"] = {
            name: Interval(*(or_infinite(fact[end]) for end in Interval._fields))
            for name, fact in facts["scores"].items()
        }
        for name in ("others", "baselines"):
            values[name] = {key: or_infinite(value) for key, value in facts[name].items()}
        for name, kind in cls.tables.items():
            values[name] = [kind(**row) for row in facts[name]]
        return cls(**values)

    def save(self, path: Path | str) -> None:
        """Saves `as_json` as a JSON file, sealed by its own digest."""
        write_whole(Path(path), sealed(finite(self.as_json()), sort=False))

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Reads a file that `save` wrote."""
        place = Path(path)
        try:
            return cls.of_json(unsealed(place.read_bytes(), place.name))
        except OSError as error:
            raise RunError(f"{place}: cannot be read ({error.strerror})") from None
        except (Damaged, KeyError, TypeError, ValueError) as why:
            raise RunError(f"{place}: this is not an evaluation written by Ensue: {why}") from None

    def of_rows(self, names: Sequence[str]) -> Self:
        """The evaluation with the names of the rows of its sums, if these are rows of the data."""
        rows = {len(row_sums.values) for row_sums in self.sums.values()}
        return replace(self, names=tuple(names)) if rows == {len(names)} else self

    def opened_as(self, opened: TimesOpened) -> Self:
        return replace(self, opened=opened)

    def opened_line(self) -> str:
        """A warning about repeated evaluations; "" for the first, or if not counted."""
        line = self.opened.line("These rows have been evaluated")
        return (
            f"{line} Choosing models by these scores makes them too good."
            if self.opened.times > 1
            else ""
        )

    def document(self) -> Document:
        """Scores as bars next to the baselines, then the sections of this kind of evaluation."""
        head = Beside([self._scores(), *self._baselines()])
        opened = Paragraph(self.opened_line(), quiet=True)
        return Document("Evaluation", "", [head, *self.sections(), opened])

    def sections(self) -> Sequence[Block]:
        classes = [class_section("by class", self.classes, "class", "rows")] * bool(self.classes)
        return [Beside([*classes, *self._confused()]), *self._mistakes()]

    def size_line(self) -> str:
        unit = f", {self.steps:,} steps" if self.steps != self.rows else ""
        return f"{self.rows:,} row{'s' * (self.rows != 1)}{unit}"

    def unknown_line(self) -> str:
        """A line on the number of rows with unknown labels; "" if there are none."""
        if not self.unknown:
            return ""
        many = "1 row has" if self.unknown == 1 else f"{self.unknown:,} rows have"
        return f"{many} labels that the training part does not have: counted as mistakes"

    def beaten_line(self) -> str:
        """A line on a baseline that is as good, or better beyond the interval of the score; "" if
        there is none."""
        sign, main = (1 if self.higher_is_better else -1), self.scores[self.main]
        winner = max(self.baselines, key=lambda name: sign * self.baselines[name], default="")
        if not winner or sign * self.baselines[winner] < sign * main.value:
            return ""
        if main.low <= self.baselines[winner] <= main.high:
            return f"Not clearly better than the {winner} on this part."
        return (
            f"The model does not beat the {winner}: more rows, or `ensue train … --best`, may help."
        )

    def _scores(self) -> Section:
        """Each score with its interval, then those without an interval."""
        rows: list[list[Cell]] = []
        for name, (value, low, high) in self.scores.items():
            most = _scale(value, low, high)
            bar = Bar(value, f"{value:.4f}", most, (low, high))
            rows.append([name, bar, f"95 % interval {low:.4f} … {high:.4f}"])
        rows += [[name, f"{value:.4f}", ""] for name, value in self.others.items()]
        unknown, notes = Paragraph(self.unknown_line()), [Lines(self.notes)] * bool(self.notes)
        return Section(self.size_line(), [unknown, Table(rows, room=ROOM), *notes])

    def _baselines(self) -> list[Section]:
        """The main score of the baselines."""
        if not self.baselines:
            return []
        most = _scale(self.scores[self.main].value, *self.baselines.values())
        rows: list[list[Cell]] = [
            [name, Bar(value, f"{value:.4f}", most, quiet=True)]
            for name, value in self.baselines.items()
        ]
        better = "higher" if self.higher_is_better else "lower"
        title = f"for comparison, {self.main} ({better} is better)"
        return [Section(title, [Table(rows, room=ROOM), Paragraph(self.beaten_line())])]

    def can_be_drawn(self) -> bool:
        """Whether the confusion matrix fits on a screen."""
        return bool(self.confusion) and 1 < len(self.classes) <= MOST_CONFUSED

    def most_confused(self) -> list[tuple[int, str, str]]:
        """(how often, gold, predicted), the most frequent first."""
        names = [row.name for row in self.classes]
        pairs = [
            (n, names[i], names[j])
            for i, row in enumerate(self.confusion)
            for j, n in enumerate(row)
            if i != j and n
        ]
        return sorted(pairs, reverse=True)[:MOST_PAIRS]

    def _confused(self) -> list[Section]:
        if self.can_be_drawn():
            names = [row.name for row in self.classes]
            shares = [[n / max(1, sum(row)) for n in row] for row in self.confusion]
            counts = [[f"{n:,}" for n in row] for row in self.confusion]
            return [Section("gold ↓  predicted →", [HeatMap(names, names, shares, counts)])]
        rows = [[f"{n:,}", f"{gold} → {got}"] for n, gold, got in self.most_confused()]
        title = "most confused, gold → predicted"
        return [Section(title, [Table(rows, left=0)])] if rows else []

    def wrong(self) -> list[Error]:
        """The wrong answers; none if nothing was predicted and the worst answers are surprises."""
        return [error for error in self.worst if error.predicted]

    def _mistakes(self) -> list[Section]:
        """The most confident mistakes; if nothing was predicted, the most surprising texts."""
        if wrong := self.wrong():
            rows = [
                [e.place, f"{e.gold} → {e.predicted}", f"{e.probability:.2f}", e.text]
                for e in wrong
            ]
            return [Section(f"{self.mistakes}, gold → predicted", [Table(rows, left=4)])]
        rows = [[e.place, e.text, e.gold, f"{e.probability:.1e}"] for e in self.worst]
        return [Section("greatest surprises", [Table(rows, left=4)])] if rows else []


def class_section(title: str, classes: Sequence[ClassRow], name: str, unit: str) -> Section:
    """A section on the most frequent classes."""
    rows: list[list[Cell]] = [
        [
            row.name,
            f"{row.precision:.4f}",
            f"{row.recall:.4f}",
            Bar(row.f1, f"{row.f1:.4f}"),
            f"{row.support:,}",
        ]
        for row in sorted(classes, key=lambda row: (-row.support, row.name))
    ]
    head = (name, "precision", "recall", "F1", unit)
    return Section(title, [Table(rows, head, most=MOST_CLASSES)])


def _scale(*values: float) -> float:
    """The end of a scale: 1 for shares, else the greatest value."""
    greatest = max(filter(math.isfinite, values), default=0.0)
    return 1.0 if 0 <= greatest <= 1 else greatest


def preview(tokens: Sequence[str], between: str = " ") -> str:
    """The beginning of a text."""
    text = between.join(tokens[:PREVIEW])
    return text if len(text) <= PREVIEW else text[: PREVIEW - 1] + "…"
