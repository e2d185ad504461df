"""How far back cells remember: training of each on the same tasks with the same budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from ensue.cells import Cell
from ensue.data.tasks import TASKS, BuiltInTask, TaskBatch
from ensue.drawing.layout import clock
from ensue.errors import TrainingError, unknown
from ensue.layers.recurrent import Recurrent
from ensue.study.memory.budget import RATE, RATE_WITHOUT_GATES, Budget
from ensue.training import Carried, Progress, TrainSettings, Validated, train

AT_ONCE = 250  # rows of an evaluation in memory at once


class Batch(NamedTuple):
    """A batch of a task. x (time, batch, features); lengths (batch,); scored (batch, time): the
    steps with a target; targets: one for each of these steps, row by row."""

    x: Tensor
    lengths: Tensor
    scored: Tensor
    targets: Tensor

    @classmethod
    def of(cls, task: BuiltInTask, batch: TaskBatch) -> Batch:
        scored = torch.from_numpy(batch.mask).T
        targets = torch.from_numpy(batch.targets)
        if task.kind == "labelling":
            targets = targets.T[scored]
        return cls(torch.from_numpy(batch.x), torch.from_numpy(batch.lengths), scored, targets)


class MemoryNetwork(nn.Module):
    """z = V·h + c at the scored steps, where h comes from one layer of the cell."""

    def __init__(self, cell: Cell, task: BuiltInTask, hidden: int) -> None:
        super().__init__()
        self.kind = task.kind
        self.layer = Recurrent(cell, task.features, hidden)
        self.output = nn.Linear(self.layer.output_size, task.outputs)

    def answers(self, batch: Batch) -> Tensor:
        """The answers z (targets, outputs)."""
        y, _ = self.layer(batch.x, lengths=batch.lengths)
        answers: Tensor = self.output(y.transpose(0, 1)[batch.scored])
        return answers

    def cost(self, answers: Tensor, targets: Tensor) -> Tensor:
        """The cost summed over targets: squared error for numbers, −log p for classes."""
        if self.kind == "regression":
            return mse_loss(answers[:, 0], targets, reduction="sum")
        return cross_entropy(answers, targets, reduction="sum")

    def forward(self, batch: Batch, carried: Carried) -> tuple[Tensor, Carried]:
        return self.cost(self.answers(batch), batch.targets), {}


class GeneratedRows:
    """The training part of a task; each row is used once: update k has rows k·size … (k + 1)·size −
    1."""

    def __init__(self, task: BuiltInTask, seed: int, size: int, updates: int) -> None:
        self.task, self.seed, self.size, self.updates = task, seed, size, updates
        words = f"{task.name}, {task.columns} draws a row, seed {seed}"  # this determines the data
        self.fingerprint = sha256(words.encode()).hexdigest()

    def batches(self, epoch: int) -> Sequence[Sequence[int]]:
        starts = range(epoch * self.updates, (epoch + 1) * self.updates)
        return [range(k * self.size, (k + 1) * self.size) for k in starts]

    def batch(self, rows: Sequence[int]) -> Batch:
        return Batch.of(self.task, self.task.batch(self.seed, rows[0], len(rows)))

    def targets(self, rows: Sequence[int]) -> float:
        if self.task.kind != "labelling":
            return float(len(rows))
        return float(self.task.batch(self.seed, rows[0], len(rows)).mask.sum())

    def tokens(self, rows: Sequence[int]) -> float:
        return float(self.task.batch(self.seed, rows[0], len(rows)).lengths.sum())

    def name(self, row: int) -> str:
        return f"{self.task.name}, row {row} of seed {self.seed}"


def held_out(task: BuiltInTask, seed: int, part: str, rows: int) -> list[Batch]:
    """The first rows of a part, in batches."""
    starts = range(0, rows, AT_ONCE)
    return [
        Batch.of(task, task.batch(seed, first, min(AT_ONCE, rows - first), part))
        for first in starts
    ]


class MemoryScores:
    """Mean squared error ("error") or accuracy of a network over batches, and its cost."""

    def __init__(self, network: MemoryNetwork, batches: Iterable[Batch]) -> None:
        self._network, self._batches = network, list(batches)

    def __call__(self) -> Mapping[str, float]:
        cost = right = count = 0.0
        for batch in self._batches:
            answers = self._network.answers(batch)
            cost += float(self._network.cost(answers, batch.targets))
            right += float((answers.argmax(-1) == batch.targets).sum())
            count += len(batch.targets)
        if self._network.kind == "regression":
            return {"error": cost / count}
        return {"accuracy": right / count, "cost": cost / count}


# -------------------------------------------------------------------------------------------------
# Initial gate biases for the time scale of a task (Tallec and Ollivier, 2018, "chrono").
#
# A unit whose gate keeps the share σ(b) of its state forgets within about 1 + e^b steps. Biases
# b = log u, u uniform in [1, T − 1], give units with every time scale up to T.

# the gates of the bias `b` by their sign: +1 keeps the state at 1, −1 at 0
KEEPING = {
    "GRU": {"z": 1},
    "GRUResetBefore": {"z": 1},
    "GRUGateThroughReset": {"u": -1},
    "MinimalGated": {"u": -1},
    "MGU": {"u": -1},
    "LSTM": {"f": 1, "i": -1},
    "PeepholeLSTM": {"f": 1, "i": -1},
    "LayerNormLSTM": {"f": 1, "i": -1},
    "CoupledLSTM": {"f": 1},
    "LSTM1997": {"i": -1},
    "QRNN": {"f": 1},
    "SRU": {"f": 1},
    "MinGRU": {"z": -1},
    "MinLSTM": {"f": 1, "i": -1},
}


def built_in(cell: Cell) -> bool:
    return type(cell).__module__.startswith("ensue.cells.")


def keeping(cell: Cell) -> dict[str, int]:
    """The gates of a built-in cell that keep its state; {} for other cells."""
    return KEEPING.get(type(cell).__name__, {}) if built_in(cell) else {}


def rate_of(cell: Cell, budget: Budget) -> float:
    """The rate of the budget, or the default for cells of this kind."""
    if budget.rate is not None:
        return budget.rate
    return RATE_WITHOUT_GATES if built_in(cell) and not keeping(cell) else RATE


@torch.no_grad()
def chrono(layer: Recurrent, steps: int) -> None:
    """Sets the biases of keeping gates, in every direction of the layer, for sequences of this
    number of steps."""
    for way in layer.ways:
        signs = keeping(way.cell)
        if not signs:
            continue
        bias: Tensor = way.way().parameters["b"]
        blocks = dict(
            zip(way.cell.parameters["b"].gates, bias.view(-1, way.hidden_size), strict=True)
        )
        b = torch.empty(way.hidden_size).uniform_(1.0, max(steps - 1.0, 1.0)).log_()
        for gate, sign in signs.items():
            blocks[gate].copy_(sign * b)


LENGTHS = (10, 20, 50, 100, 200, 400, 800, 1600, 3200)
VALIDATION, TEST = 1000, 2000  # rows
MARGIN = 0.8  # share of the allowed error at which training ends: a margin for the test


@dataclass(frozen=True)
class Trial:
    """One cell on one task. curve: update and validation score; score: the score of the best
    weights on the test part; updates: number of updates; failure: why the training failed, else
    ""."""

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
    """The result of a study. lengths: several if the reach was measured."""

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
        """The longest length up to which the cell solved all lengths; 0 if it did not solve the
        first."""
        return max((trial.steps for trial in self.of(task, cell) if trial.solved), default=0)


def find_tasks(names: Sequence[str]) -> list[str]:
    """Task names as TASKS spells them: temporal-order → temporal order."""
    tasks = []
    for name in names:
        plain = name.replace("-", " ").replace("_", " ")
        if plain not in TASKS:
            raise unknown("task", name, TASKS)
        tasks.append(plain)
    return list(dict.fromkeys(tasks))


def lengths_up_to(steps: int) -> tuple[int, ...]:
    """
    >>> lengths_up_to(75)
    (10, 20, 50, 75)
    """
    return (*(length for length in LENGTHS if length < steps), steps)


def met(task: BuiltInTask, score: float) -> bool:
    """Whether a validation score is good enough that the test score will probably suffice too."""
    if task.kind == "regression":
        return score <= MARGIN * task.enough
    return 1 - score <= MARGIN * (1 - task.enough)


def begin(cell: Cell, task: BuiltInTask, steps: int, budget: Budget) -> MemoryNetwork:
    """A network with initial weights determined by the seed."""
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
    settings = {"seed": budget.seed, "rate": rate, "clip": budget.clip}
    return TrainSettings.of(
        {**settings, "epochs": 1, "check_every": budget.every, "watch": measure}
    )


def _where(update: int, budget: Budget, seconds: float) -> str:
    left = (budget.updates - update) * seconds / update
    return f"update {update:,} of {budget.updates:,}, at most {clock(left)} left"


@torch.no_grad()
def _test_score(
    network: MemoryNetwork, at: Progress, task: BuiltInTask, seed: int
) -> Mapping[str, float]:
    """The test score of the best weights, or of the current ones without an evaluation."""
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

    Ctrl-C ends the study early; the report then has the finished trials."""
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
        say("stopped: the results are incomplete")
    return report
