"""`ensue compare`: evaluations of runs side by side, and whether they differ beyond chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ensue.drawing.document import (
    Block,
    Cell,
    Document,
    Paragraph,
    Printed,
    Range,
    Section,
    Table,
)
from ensue.drawing.layout import score_text
from ensue.errors import OptionError, RunError
from ensue.escape import in_shell
from ensue.files.atomic_folder import finite
from ensue.files.run_folder import RunFolder
from ensue.runs.evaluations import Evaluated, read_rows
from ensue.runs.run import Run
from ensue.tasks.evaluation.bootstrap import Interval, paired_bootstrap
from ensue.tasks.evaluation.report import Evaluation

MOST_DIFFERENT = 5  # settings named in a message
Evaluate = Callable[[RunFolder], None]


@dataclass(frozen=True)
class Difference:
    """run − first, of a score, with the interval of the paired bootstrap; rows: their number."""

    run: str
    score: str
    interval: Interval
    rows: int

    @property
    def beyond_chance(self) -> bool:
        """Whether the interval is on one side of 0."""
        return self.interval.low > 0 or self.interval.high < 0


@dataclass(frozen=True)
class Comparison(Printed):
    """Runs by name, evaluated on the same rows; the others are compared with the first. files: of
    the rows."""

    part: str
    task: str
    files: tuple[str, ...]
    runs: tuple[str, ...]
    evaluations: tuple[Evaluation, ...]
    differences: tuple[Difference, ...]

    @property
    def main(self) -> str:
        return self.evaluations[0].main

    def verdict(self, difference: Difference) -> str:
        """A sentence on a difference of the main scores."""
        first, (value, low, high) = self.runs[0], difference.interval
        if math.isnan(low):
            return (
                f"{difference.run} and {first}: cannot be compared, a {difference.score} "
                "is infinite"
            )
        if value == low == high == 0:
            return (
                f"{difference.run} and {first}: the answers are the same, judged by "
                f"{difference.score}"
            )
        if not difference.beyond_chance:
            return (
                f"{difference.run} and {first}: no difference beyond chance, {difference.score} "
                f"{_signed(value)}, 95 % interval {_signed(low)} … {_signed(high)}"
            )
        better = (value > 0) == self.evaluations[0].higher_is_better
        way = "higher" if value > 0 else "lower"
        low, high = sorted((abs(low), abs(high)))
        return (
            f"{difference.run} is {'better' if better else 'worse'} than {first}: "
            f"{difference.score} {way} "
            f"by {_number(value)}, 95 % interval {_number(low)} … {_number(high)}"
        )

    def verdicts(self) -> list[str]:
        return [
            self.verdict(difference)
            for difference in self.differences
            if difference.score == self.main
        ]

    def as_json(self) -> dict[str, Any]:
        runs = [
            {"run": name, **evaluation.as_json()}
            for name, evaluation in zip(self.runs, self.evaluations, strict=True)
        ]
        differences = [
            {
                **asdict(difference),
                "interval": difference.interval._asdict(),
                "beyond_chance": difference.beyond_chance,
            }
            for difference in self.differences
        ]
        facts = {
            "part": self.part,
            "task": self.task,
            "files": list(self.files),
            "main": self.main,
            "runs": runs,
            "differences": differences,
            "verdicts": self.verdicts(),
        }
        return dict(finite(facts))

    def document(self) -> Document:
        """Scores side by side, and each difference on a scale around 0."""
        rows = self.evaluations[0].rows
        about = f"{self.part} part of {', '.join(self.files)}: {rows:,} rows, {self.task}"
        title = f"difference from {self.runs[0]}, 95 % intervals by paired bootstrap"
        luck = "Each interval stands alone: among many comparisons, one in 20 excludes 0 by chance."
        return Document(
            f"Comparison on the {self.part} part",
            about,
            [
                Table(self._scores(), ("", *self.runs)),
                Section(title, [self._differences()]),
                *(Paragraph(f"{verdict}.") for verdict in self.verdicts()),
                *([Paragraph(luck, quiet=True)] if len(self.runs) > 2 else []),
            ],
        )

    def _scores(self) -> list[tuple[str, ...]]:
        """The numbers that all evaluations have: scores, other numbers, and baselines of the main
        score."""
        scores = [
            {n: s.value for n, s in evaluation.scores.items()} for evaluation in self.evaluations
        ]
        both = [scores[k] | {**evaluation.others} for k, evaluation in enumerate(self.evaluations)]
        baselines = _shared([evaluation.baselines for evaluation in self.evaluations])
        title = (f"for comparison, {self.main}", *("" for _ in self.runs))
        return [*_shared(both), *([title] if baselines else []), *baselines]

    def _differences(self) -> Block:
        reach = dict[str, float]()
        for difference in self.differences:
            reach[difference.score] = max(
                reach.get(difference.score, 0.0), *map(abs, difference.interval)
            )
        rows: list[list[Cell]] = []
        for difference in self.differences:
            value, low, high = difference.interval
            wide = reach[difference.score] or 1.0
            bar = Range(value, low, high, (-wide, wide), _signed(value))
            rows.append(
                [difference.run, difference.score, bar, f"{_signed(low)} … {_signed(high)}"]
            )
        return Table(rows, left=2) if rows else Paragraph("no score has a value for each row")


def _shared(each: Sequence[Mapping[str, float]]) -> list[tuple[str, ...]]:
    """A line for each number that all of the evaluations have."""
    names = [name for name in each[0] if all(name in scores for scores in each)]
    return [(f"  {name}", *(score_text(scores[name]) for scores in each)) for name in names]


def _number(value: float) -> str:
    return score_text(abs(value))


def _signed(value: float) -> str:
    if math.isnan(value):
        return "–"
    return ("+" if value > 0 else "−" if value < 0 else "") + _number(value)


# --- which evaluations ---------------------------------------------------------------------------


def compare_runs(
    folders: Sequence[Path | str], part: str = "test", evaluate: Evaluate | None = None
) -> Comparison:
    """Compares the first run with each of the others, by their evaluations. part: test or
    validation; evaluate: evaluates the validation part of a run that has no evaluation yet; None
    raises an error instead. Test parts are never opened here."""
    runs = [Run(folder) for folder in folders]
    names = _names(runs)
    if len(runs) < 2:
        raise OptionError(f"compare: expected two runs or more, got {len(runs)}")
    tasks = {run.task for run in runs}
    if len(tasks) > 1:
        listed = ", ".join(f"{n} {r.task}" for n, r in zip(names, runs, strict=True))
        raise RunError(f"compare: expected runs of one task, got {listed}")
    if part == "validation" and evaluate is not None:
        for run in runs:
            if not _of_part(run, part):
                evaluate(run.folder)
    compared = _comparable(runs, names, part)
    evaluations = [
        read_rows(run.folder, evaluated) for run, evaluated in zip(runs, compared, strict=True)
    ]
    _refuse_other_rows(names, evaluations)
    return Comparison(
        part,
        runs[0].task,
        tuple(Path(file.path).name for file in compared[0].files),
        tuple(names),
        tuple(evaluations),
        tuple(_differences(names, evaluations)),
    )


def _names(runs: Sequence[Run]) -> list[str]:
    """The names of the folders; their paths if two have the same name."""
    names = [run.path.resolve().name for run in runs]
    paths = [str(run.path) for run in runs]
    if len(set(paths)) < len(paths):
        raise OptionError(f"compare: expected different runs, got {', '.join(paths)}")
    return names if len(set(names)) == len(names) else paths


def _of_part(run: Run, part: str) -> list[Evaluated]:
    return [evaluation for evaluation in run.evaluations() if evaluation.part == part]


def _comparable(runs: Sequence[Run], names: Sequence[str], part: str) -> list[Evaluated]:
    """One evaluation of each run, all on the same files with the same settings: the files and
    settings of the latest possible evaluation of the first run."""
    every = [_of_part(run, part) for run in runs]
    missing = [run for run, of_run in zip(runs, every, strict=True) if not of_run]
    if missing:
        option = " --validation" if part == "validation" else ""
        commands = "\n".join(f"  ensue evaluate {in_shell(run.path)}{option}" for run in missing)
        raise RunError(
            f"compare: expected the {part} part evaluated for each run, got no evaluation of "
            f"{', '.join(str(run.path) for run in missing)}. Evaluate it first:\n{commands}"
        )
    for first in reversed(every[0]):
        others = [_same(first, of_run) for of_run in every[1:]]
        pairs = [other for other in others if other is not None]
        if len(pairs) == len(others):
            return [first, *pairs]
    first = every[0][-1]
    for run, name, evaluations in zip(runs[1:], names[1:], every[1:], strict=True):
        if _same(first, evaluations) is None:
            differs = "\n".join(_unlike(names[0], first, name, evaluations[-1]))
            raise RunError(
                f"compare: expected the same rows, got different ones for {names[0]} and {name}\n"
                f"{differs}\nNext: evaluate both on one file that neither has learned from, with "
                f"the same options:\n  ensue evaluate {in_shell(runs[0].path)} --test FILE\n"
                f"  ensue evaluate {in_shell(run.path)} --test FILE"
            )
    raise AssertionError("not every run has an evaluation like that of the first")


def _same(first: Evaluated, others: Sequence[Evaluated]) -> Evaluated | None:
    """The latest evaluation on the same files, read in the same way."""
    digests = [file.sha256 for file in first.files]
    for other in reversed(others):
        if [file.sha256 for file in other.files] == digests and other.basis == first.basis:
            return other
    return None


def _unlike(one: str, first: Evaluated, other: str, second: Evaluated) -> list[str]:
    """The differences, a line each: files, and settings that matter for both runs."""
    lines = []
    if [file.sha256 for file in first.files] != [file.sha256 for file in second.files]:
        listed = [
            ", ".join(
                f"{Path(file.path).name} (sha256 {file.sha256[:12]}…)" for file in evaluated.files
            )
            for evaluated in (first, second)
        ]
        lines.append(f"  files: {one} {listed[0]}; {other} {listed[1]}")
    pairs = {
        key: (value, second.basis[key]) for key, value in first.basis.items() if key in second.basis
    }
    keys = [key for key, (pair, another) in pairs.items() if pair != another]
    lines += [
        f"  {key}: {one} {pairs[key][0]!r}; {other} {pairs[key][1]!r}"
        for key in keys[:MOST_DIFFERENT]
    ]
    lines += [f"  and {len(keys) - MOST_DIFFERENT} more"] * (len(keys) > MOST_DIFFERENT)
    return lines or ["  rows: all of the file for one of them, a part split off for the other"]


def _refuse_other_rows(names: Sequence[str], evaluations: Sequence[Evaluation]) -> None:
    """Raises an error if rows differ although the files are the same: some were left out."""
    first = evaluations[0]
    for name, evaluation in zip(names[1:], evaluations[1:], strict=True):
        if evaluation.names == first.names and evaluation.rows == first.rows:
            continue
        alone = sorted({*evaluation.names} ^ {*first.names})
        which = f": {alone[0]} is in one of them only" if alone else ""
        raise RunError(
            f"compare: expected the same rows, got {first.rows:,} of {names[0]} and "
            f"{evaluation.rows:,} of {name}{which}. Next: evaluate both again, with the same "
            "options"
        )


def _differences(names: Sequence[str], evaluations: Sequence[Evaluation]) -> list[Difference]:
    """The difference of each run from the first, in every score that both compute with the same
    function."""
    first, differences = evaluations[0], []
    for name, evaluation in zip(names[1:], evaluations[1:], strict=True):
        if evaluation.main != first.main:
            raise RunError(
                f"compare: expected one main score, got {first.main} of {names[0]} and "
                f"{evaluation.main} "
                f"of {name}. Next: evaluate both again, with the same packages installed"
            )
        for score, sums in first.sums.items():
            if score in evaluation.sums:
                interval = paired_bootstrap(sums, evaluation.sums[score])
                differences.append(Difference(name, score, interval, len(sums.values)))
    return differences
