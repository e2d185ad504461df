"""What an evaluation found, as a screen of text, as JSON and for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from ensue.errors import RunError
from ensue.escape import printable, printable_lines
from ensue.files.atomic_folder import Damaged, finite, or_infinite, sealed, unsealed
from ensue.files.disk import write_whole
from ensue.tasks.evaluation.bootstrap import Interval, RowSums

MOST_CLASSES, MOST_CONFUSED, MOST_PAIRS = 30, 12, 8
PREVIEW = 60  # characters of a text
NOT_KEPT = ("sums", "names", "opened")  # as long as the data, or true of this moment only


class ClassRow(NamedTuple):
    name: str
    precision: float
    recall: float
    f1: float
    support: int


class Error(NamedTuple):
    """A wrong answer: where, what was there, and how sure the model was."""

    place: str
    text: str
    gold: str
    predicted: str
    probability: float  # of the wrong answer; of what came, where nothing was predicted


class OwnTable(NamedTuple):
    """A table that only some tasks have. about: how to read it."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[object]]
    about: str = ""


class TimesOpened(NamedTuple):
    """How often a held-out part has been evaluated, and how many of those times by other models;
    0 where nobody counted."""

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
class Evaluation:
    """scores: with their bootstrap intervals, the first is the one that counts; others: single
    numbers; baselines: the same score of models that a network must beat; confusion: gold in
    rows, predicted in columns; unknown: how many rows have labels that no answer can be; notes:
    how the scores were counted.

    sums: what each row adds to a score, by the score's name; names: where these rows come from.
    Two models are compared by them, row by row. opened: how often these rows have been evaluated,
    where that was counted. tables: the class of each row of a field that is a
    table.

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
    sums: Mapping[str, RowSums] = field(default_factory=dict, repr=False, compare=False)
    names: Sequence[str] = field(default=(), repr=False, compare=False)
    opened: TimesOpened = field(default=TimesOpened(), repr=False, compare=False)

    tables: ClassVar[Mapping[str, type[Any]]] = {"classes": ClassRow, "worst": Error}

    mistakes: ClassVar[str] = "surest mistakes"  # what the worst ones are called

    @property
    def main(self) -> str:
        return next(iter(self.scores))

    def as_json(self) -> dict[str, Any]:
        """All but `sums` and `names`, which are as long as the data, and `opened`."""
        plain = [own.name for own in fields(self) if own.name not in NOT_KEPT]
        found = {name: getattr(self, name) for name in plain}
        found["scores"] = {name: own._asdict() for name, own in self.scores.items()}
        for name in self.tables:
            found[name] = [row._asdict() for row in found[name]]
        return found

    @classmethod
    def of_json(cls, facts: Mapping[str, Any]) -> Self:
        """The inverse of `as_json`; a number that JSON has not got, null, is infinite."""
        found = {own.name: facts[own.name] for own in fields(cls) if own.name in facts}
        found["scores"] = {
            name: Interval(*(or_infinite(own[end]) for end in Interval._fields))
            for name, own in facts["scores"].items()
        }
        for name in ("others", "baselines"):
            found[name] = {key: or_infinite(value) for key, value in facts[name].items()}
        for name, kind in cls.tables.items():
            found[name] = [kind(**row) for row in facts[name]]
        return cls(**found)

    def save(self, path: Path | str) -> None:
        """One JSON file with what `as_json` has, sealed by a digest of itself."""
        write_whole(Path(path), sealed(finite(self.as_json()), sort=False))

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """What `save` wrote."""
        place = Path(path)
        try:
            return cls.of_json(unsealed(place.read_bytes(), place.name))
        except OSError as error:
            raise RunError(f"{place}: cannot be read ({error.strerror})") from None
        except (Damaged, KeyError, TypeError) as why:
            raise RunError(f"{place}: this is no evaluation that Ensue wrote: {why}") from None

    def of_rows(self, names: Sequence[str]) -> Self:
        """With the names of the rows that its sums are of, where these are rows of the data."""
        rows = {len(own.values) for own in self.sums.values()}
        return replace(self, names=tuple(names)) if rows == {len(names)} else self

    def opened_as(self, opened: TimesOpened) -> Self:
        return replace(self, opened=opened)

    def opened_line(self) -> str:
        """ "" for the first time, and where nobody counted."""
        line = self.opened.line("These rows have been evaluated")
        return f"{line} Scores that choices follow are too good." if self.opened.times > 1 else ""

    def as_html(self) -> str:
        from ensue.tasks.evaluation.page import evaluation_html  # drawing is no part of counting

        return evaluation_html(self)

    def _repr_html_(self) -> str:
        return self.as_html()

    def own_tables(self) -> list[OwnTable]:
        """What there is beside scores, classes and mistakes."""
        return []

    def as_text(self) -> str:
        """A screen of text, with the control characters of labels and texts written out."""
        sections = [*self._printable().sections(), self.opened_line()]
        return "\n\n".join(part for part in sections if part)

    def __str__(self) -> str:
        return self.as_text()

    def sections(self) -> list[str]:
        return [self._head(), self._classes(), self._confused(), self._errors()]

    def _printable(self) -> Self:
        shown: dict[str, Any] = {"notes": [printable_lines(note) for note in self.notes]}
        for name in ("scores", "others", "baselines"):
            shown[name] = {printable(key): value for key, value in getattr(self, name).items()}
        for name in self.tables:
            shown[name] = [_printable(row) for row in getattr(self, name)]
        return replace(self, **shown)

    def size_line(self) -> str:
        unit = f", {self.steps:,} steps" if self.steps != self.rows else ""
        return f"{self.rows:,} rows{unit}"

    def unknown_lines(self) -> list[str]:
        """How many rows have labels that no answer can be; no line where there are none."""
        if not self.unknown:
            return []
        many = "1 row has" if self.unknown == 1 else f"{self.unknown:,} rows have"
        return [f"{many} labels that the training part does not have: counted as mistakes"]

    def beaten_line(self) -> str:
        """Which baseline does as well, or better beyond the interval of the score; "" where none
        does."""
        sign, main = (1 if self.higher_is_better else -1), self.scores[self.main]
        winner = max(self.baselines, key=lambda name: sign * self.baselines[name], default="")
        if not winner or sign * self.baselines[winner] < sign * main.value:
            return ""
        if main.low <= self.baselines[winner] <= main.high:
            return f"No better than the {winner}, as far as this part can tell."
        return (
            f"The model does not beat the {winner}: more rows, or `ensue train … --best`, may help."
        )

    def _head(self) -> str:
        lines = [self.size_line(), *self.unknown_lines()]
        for name, score in self.scores.items():
            lines.append(
                f"  {name:<18}{score.value:8.4f}   95 % interval {score.low:.4f} … {score.high:.4f}"
            )
        lines += [f"  {name:<18}{value:8.4f}" for name, value in self.others.items()]
        lines += self.notes
        lines.append("for comparison, " + self.main)
        for name, value in self.baselines.items():
            lines.append(f"  {name:<18}{value:8.4f}")
        beaten = self.beaten_line()
        return "\n".join([*lines, *([beaten] if beaten else [])])

    def _classes(self) -> str:
        if not self.classes:
            return ""
        shown = sorted(self.classes, key=lambda row: -row.support)[:MOST_CLASSES]
        width = max(len("class"), *(len(row.name) for row in shown))
        lines = [f"{'class':<{width}}  precision  recall      F1    rows"]
        lines += [
            f"{row.name:<{width}}  {row.precision:9.4f}{row.recall:8.4f}{row.f1:8.4f}"
            f"{row.support:8,}"
            for row in shown
        ]
        left = len(self.classes) - len(shown)
        return "\n".join([*lines, *([f"and {left} more"] if left else [])])

    def can_be_drawn(self) -> bool:
        """Whether the confusion is small enough for a screen."""
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

    def _confused(self) -> str:
        names = [row.name for row in self.classes]
        if self.can_be_drawn():
            width = max(7, *(len(name) + 2 for name in names))
            lines = ["gold ↓  predicted →"]
            lines.append(" " * width + "".join(f"{name:>{width}}" for name in names))
            for name, row in zip(names, self.confusion, strict=True):
                lines.append(f"{name:<{width}}" + "".join(f"{n:>{width},}" for n in row))
            return "\n".join(lines)
        lines = [f"  {n:6,}  {gold} → {got}" for n, gold, got in self.most_confused()]
        return "\n".join(["most confused, gold → predicted", *lines]) if lines else ""

    def wrong(self) -> list[Error]:
        """The worst answers; none where nothing was predicted, and the worst are surprises."""
        return [own for own in self.worst if own.predicted]

    def _errors(self) -> str:
        lines = [
            f"  {own.place}  {own.gold} → {own.predicted} ({own.probability:.2f})"
            + f"  {own.text}" * bool(own.text)
            for own in self.wrong()
        ]
        if lines:
            return "\n".join([f"{self.mistakes}, gold → predicted", *lines])
        lines = [
            f"  {own.place}  {own.text} {own.gold} ({own.probability:.1e})" for own in self.worst
        ]
        return "\n".join(["greatest surprises", *lines]) if lines else ""


def _printable(row: Any) -> Any:
    """A row of a table, a named tuple."""
    return row._make(printable(cell) if isinstance(cell, str) else cell for cell in row)


def preview(tokens: Sequence[str], between: str = " ") -> str:
    """The beginning of a text."""
    text = between.join(tokens[:PREVIEW])
    return text if len(text) <= PREVIEW else text[: PREVIEW - 1] + "…"
