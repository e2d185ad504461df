"""How far back cells remember: the same task and budget for each, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from ensue.cells import Cell
from ensue.data.layout import clock
from ensue.data.tasks import TASKS, BuiltInTask
from ensue.errors import TrainingError, unknown
from ensue.study.memory.budget import Budget
from ensue.study.memory.network import GeneratedRows, MemoryNetwork, MemoryScores, held_out
from ensue.study.memory.start import chrono, rate_of
from ensue.training import Progress, TrainSettings, Validated, train

LENGTHS = (10, 20, 50, 100, 200, 400, 800, 1600, 3200)
VALIDATION, TEST = 1000, 2000  # rows
MARGIN = 0.8  # of the allowed error: a training ends when validation leaves room for the test


@dataclass(frozen=True)
class Trial:
    """One cell on one task. curve: update and validation score; score: of the best weights on
    the test part; updates: those made; failure: why training broke off, "" if it did not."""

    task: str
    steps: int
    cell: str
    measure: str  # "error" or "accuracy"
    chance: float
    enough: float
    score: float
    solved: bool
    updates: int
    rate: float
    parameters: int
    seconds: float
    curve: tuple[tuple[int, float], ...]
    failure: str = ""


@dataclass
class MemoryReport:
    """lengths: more than one where the reach was measured."""

    budget: Budget
    lengths: tuple[int, ...]
    trials: list[Trial] = field(default_factory=list)
    finished: bool = False

    @property
    def cells(self) -> list[str]:
        return list(dict.fromkeys(trial.cell for trial in self.trials))

    @property
    def tasks(self) -> list[str]:
        return list(dict.fromkeys(trial.task for trial in self.trials))

    def of(self, task: str, cell: str) -> list[Trial]:
        return [trial for trial in self.trials if (trial.task, trial.cell) == (task, cell)]

    def reach(self, task: str, cell: str) -> int:
        """The longest of the lengths up to which the cell solved all; 0 if not even the first."""
        return max((trial.steps for trial in self.of(task, cell) if trial.solved), default=0)


def find_tasks(names: Sequence[str]) -> list[str]:
    """As TASKS spells them: temporal-order → temporal order."""
    found = []
    for name in names:
        plain = name.replace("-", " ").replace("_", " ")
        if plain not in TASKS:
            raise unknown("task", name, TASKS)
        found.append(plain)
    return list(dict.fromkeys(found))


def lengths_up_to(steps: int) -> tuple[int, ...]:
    """
    >>> lengths_up_to(75)
    (10, 20, 50, 75)
    """
    return (*(length for length in LENGTHS if length < steps), steps)


def met(task: BuiltInTask, score: float) -> bool:
    """Whether a validation score is so good that the test score will do, too."""
    if task.kind == "regression":
        return score <= MARGIN * task.enough
    return 1 - score <= MARGIN * (1 - task.enough)


def begin(cell: Cell, task: BuiltInTask, steps: int, budget: Budget) -> MemoryNetwork:
    """The network with the weights that follow from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(budget.seed)
        network = MemoryNetwork(cell, task, budget.hidden)
        if budget.start == "chrono":
            chrono(network.layer, steps)
    return network


def learn(
    cell: Cell, name: str, task: BuiltInTask, steps: int, budget: Budget, say: Callable[[str], None]
) -> Trial:
    """Trains until the task is solved or the budget is spent, then opens the test part once."""
    measure = "error" if task.kind == "regression" else "accuracy"
    network, rate = begin(cell, task, steps, budget), rate_of(cell, budget)
    source = GeneratedRows(task, budget.seed, budget.rows, budget.updates)
    validation = MemoryScores(network, held_out(task, budget.seed, "validation", VALIDATION))
    settings, failure = _settings(budget, rate, measure), ""
    title = f"{task.name}, T {steps}, {name}"
    curve: list[tuple[int, float]] = []
    at, began = Progress.begin(network, settings), time.monotonic()
    try:
        for row in train(network, source, validation, settings, at):
            if isinstance(row, Validated):
                curve.append((row.update, row.scores[measure]))
                where = _where(row.update, budget, time.monotonic() - began)
                say(f"{title}: {measure} {curve[-1][1]:.4g}, {where}")
                if met(task, row.scores[measure]):
                    break
    except TrainingError as error:
        failure = str(error)
        say(f"{title}: {failure}")
    score = _test_score(network, at, task, budget.seed)[measure]
    return Trial(
        task=task.name,
        steps=steps,
        cell=name,
        measure=measure,
        chance=task.chance,
        enough=task.enough,
        score=score,
        solved=task.solved(score),
        updates=at.update,
        rate=rate,
        parameters=sum(p.numel() for p in network.parameters()),
        seconds=time.monotonic() - began,
        curve=tuple(curve),
        failure=failure,
    )


def _settings(budget: Budget, rate: float, measure: str) -> TrainSettings:
    own = {"seed": budget.seed, "rate": rate, "clip": budget.clip}
    return TrainSettings.of({**own, "epochs": 1, "check_every": budget.every, "watch": measure})


def _where(update: int, budget: Budget, seconds: float) -> str:
    left = (budget.updates - update) * seconds / update
    return f"update {update:,} of {budget.updates:,}, at most {clock(left)} left"


@torch.no_grad()
def _test_score(
    network: MemoryNetwork, at: Progress, task: BuiltInTask, seed: int
) -> Mapping[str, float]:
    """Score of the best weights, or of the current ones where no evaluation was reached."""
    at.restore_best(network)
    network.eval()
    return MemoryScores(network, held_out(task, seed, "test", TEST))()


def study_memory(
    tasks: Sequence[str],
    cells: Mapping[str, Cell],
    lengths: Sequence[int],
    budget: Budget,
    say: Callable[[str], None],
) -> MemoryReport:
    """Each cell on each task, from the shortest length to the first that it does not solve.

    Ctrl-C ends it early; the report then holds what is done."""
    made = {(name, steps): TASKS[name](steps) for name in tasks for steps in lengths}
    report = MemoryReport(budget, tuple(sorted(lengths)))
    try:
        for name in tasks:
            for title, cell in cells.items():
                for steps in report.lengths:
                    trial = learn(cell, title, made[name, steps], steps, budget, say)
                    report.trials.append(trial)
                    if not trial.solved:
                        break
        report.finished = True
    except KeyboardInterrupt:
        say("stopped: what follows is not complete")
    return report
