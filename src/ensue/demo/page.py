"""The demo's report: one page of HTML that needs no other file and no network."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ensue import __version__
from ensue.drawing.chart import Axis, Panel, colour_of
from ensue.drawing.document import Bar, Cell, Document, Figure, Paragraph, Section, Table
from ensue.drawing.svg import Drawing

if TYPE_CHECKING:
    from ensue.data.tasks.dates import Date
    from ensue.tasks.any_model import AnyModel

LENGTHS = (0, 10, 15, 20, 25, 30, 100)  # edges of the groups, in characters


@dataclass(frozen=True)
class Share:
    """The share of dates that are exactly right."""

    name: str
    count: int
    share: float


@dataclass(frozen=True)
class DemoTrial:
    """Dates and the answers to them."""

    name: str
    dates: Sequence[Date]
    answers: Sequence[str]

    @classmethod
    def of(cls, name: str, model: AnyModel, dates: Sequence[Date]) -> DemoTrial:
        answers = model.predict([one.text for one in dates])
        return cls(name, dates, [answer.text for answer in answers])

    @property
    def right(self) -> list[bool]:
        return [one.iso == answer for one, answer in zip(self.dates, self.answers, strict=True)]

    @property
    def exact(self) -> float:
        return sum(self.right) / len(self.dates)

    @property
    def guess(self) -> float:
        """The share of the most frequent day: the accuracy of guessing."""
        return Counter(one.iso for one in self.dates).most_common(1)[0][1] / len(self.dates)

    def by_format(self) -> list[Share]:
        groups: dict[str, list[bool]] = {}
        for one, right in zip(self.dates, self.right, strict=True):
            groups.setdefault(one.format, []).append(right)
        return [Share(name, len(group), sum(group) / len(group)) for name, group in groups.items()]

    def by_length(self) -> list[Share]:
        rows = []
        for low, high in pairwise(LENGTHS):
            pairs = zip(self.dates, self.right, strict=True)
            right_ones = [right for one, right in pairs if low < len(one.text) <= high]
            if right_ones:
                name = f"{low + 1}–{high}" if high < LENGTHS[-1] else f"over {low}"
                rows.append(Share(name, len(right_ones), sum(right_ones) / len(right_ones)))
        return rows

    def mistakes(self) -> list[tuple[Date, str]]:
        """Pairs of a date and a wrong answer."""
        pairs = zip(self.dates, self.answers, strict=True)
        return [(one, answer) for one, answer in pairs if one.iso != answer]


def lengths_beside(ours: DemoTrial, theirs: DemoTrial) -> Iterator[tuple[str, int, float, float]]:
    """(length, dates, share of ours, share of theirs) for the same dates."""
    for row, other in zip(ours.by_length(), theirs.by_length(), strict=True):
        yield row.name, row.count, row.share, other.share


EXAMPLES = ("Mittwoch, der 24. Oktober 2012", "Fri., Aug. 7, 1981", "el cinco de mayo de 1997")
MISTAKES = 12
WIDE, HIGH = 640.0, 280.0  # the learning curve, in pixels


def report(model: AnyModel, trials: Sequence[DemoTrial], beside: DemoTrial, run: Path) -> Document:
    """The report: scores, the learning curve, attention, scores by format, mistakes. run: the run
    of the model."""
    plain, explains = trials[0], model.task.explains
    assert explains is not None
    looks = [Figure(explains.explain(model, text).as_svg()) for text in EXAMPLES]
    sections = (
        Section("Exactly right", (_shares(trials, beside),)),
        Section("Learning", (Figure(_curve(run)),)),
        Section(
            "Where it looks",
            (
                Paragraph(
                    "Each row is a letter that it writes, with its probability; the stronger the "
                    "colour of a square, the more it looked at the letter above. It learned by "
                    "itself which belong together.",
                    quiet=True,
                ),
                *looks,
            ),
        ),
        Section("With attention and without, by length", (_lengths(plain, beside),)),
        Section("Mistakes", (_mistakes(trials),)),
        Section("Every format", (_formats(plain),)),
        Paragraph(f"Ensue {__version__}; one seed, the test opened once. Run: {run}", quiet=True),
    )
    return Document("Dates as people write them", model.summary().splitlines()[0], sections)


def _shares(trials: Sequence[DemoTrial], beside: DemoTrial) -> Table:
    tried = [(trial.name, trial) for trial in trials]
    tried.append((f"{trials[0].name}, without attention", beside))
    rows: list[list[Cell]] = [
        [name, f"{len(trial.dates):,}", Bar(trial.exact, f"{trial.exact:.2%}")]
        for name, trial in tried
    ]
    return Table(rows, ["dates", "count", "exactly right"])


def _lengths(ours: DemoTrial, theirs: DemoTrial) -> Table:
    rows: list[list[Cell]] = [
        [f"{name} characters", f"{count:,}", *(Bar(share, f"{share:.1%}") for share in shares)]
        for name, count, *shares in lengths_beside(ours, theirs)
    ]
    return Table(rows, ["length", "dates", "with", "without"])


def _mistakes(trials: Sequence[DemoTrial]) -> Table:
    rows = [
        [date.text, answer, date.iso, trial.name]
        for trial in trials
        for date, answer in trial.mistakes()[:MISTAKES]
    ]
    return Table(rows, ["written", "it says", "it is", "what kind"])


def _formats(plain: DemoTrial) -> Table:
    shares = sorted(plain.by_format(), key=lambda group: (group.share, group.name))
    rows: list[list[Cell]] = [
        [group.name, f"{group.count:,}", Bar(group.share, f"{group.share:.1%}")] for group in shares
    ]
    return Table(rows, ["format", "dates", "exactly right"])


# --- the learning curve ----------------------------------------------------------------------


def _curve(run: Path) -> str:
    """The learning curve: share of validation dates that are exactly right, by updates."""
    lines = (run / "history.jsonl").read_text("utf-8").splitlines()
    evaluations = [row for row in map(json.loads, lines) if row["row"] == "evaluation"]
    points = [(0, 0.0), *((row["update"], 100 * row["scores"]["exact"]) for row in evaluations)]
    x = Axis(0, max(points[-1][0], 1), 52, WIDE - 24)
    panel = Panel(Drawing(), x, Axis(0, 100, HIGH - 52, 40))
    best = max(share for _, share in points)
    panel.axes("updates", f"validation dates exactly right, %; the best {best:.1f}")
    panel.curve(points, colour_of(0), 2.4)
    return panel.drawing.svg(WIDE, HIGH, "Learning curve")
