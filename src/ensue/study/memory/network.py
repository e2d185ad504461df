"""One layer of a cell that learns a generated task, as the training loop sees both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from ensue.cells import Cell
from ensue.data.tasks import BuiltInTask, TaskBatch
from ensue.layers.recurrent import Recurrent
from ensue.training import Carried

AT_ONCE = 250  # rows of an evaluation that are in memory together


class Batch(NamedTuple):
    """x (time, batch, features), lengths (batch), and batch first: scored (batch, time), targets
    (targets) in the order in which `scored` is read."""

    x: Tensor
    lengths: Tensor
    scored: Tensor
    targets: Tensor

    @classmethod
    def of(cls, task: BuiltInTask, given: TaskBatch) -> Batch:
        scored = torch.from_numpy(given.mask).T
        targets = torch.from_numpy(given.targets)
        if task.kind == "labelling":
            targets = targets.T[scored]
        return cls(torch.from_numpy(given.x), torch.from_numpy(given.lengths), scored, targets)


class MemoryNetwork(nn.Module):
    """z = V·h + c at the steps that are scored, h by one layer of the cell."""

    def __init__(self, cell: Cell, task: BuiltInTask, hidden: int) -> None:
        super().__init__()
        self.kind = task.kind
        self.layer = Recurrent(cell, task.features, hidden)
        self.output = nn.Linear(self.layer.output_size, task.outputs)

    def answers(self, batch: Batch) -> Tensor:
        """(targets, outputs)."""
        y, _ = self.layer(batch.x, lengths=batch.lengths)
        answers: Tensor = self.output(y.transpose(0, 1)[batch.scored])
        return answers

    def cost(self, answers: Tensor, targets: Tensor) -> Tensor:
        """Summed over the targets: squared error for numbers, −log p for classes."""
        if self.kind == "regression":
            return mse_loss(answers[:, 0], targets, reduction="sum")
        return cross_entropy(answers, targets, reduction="sum")

    def forward(self, batch: Batch, carried: Carried) -> tuple[Tensor, Carried]:
        return self.cost(self.answers(batch), batch.targets), {}


class GeneratedRows:
    """The training part of a task, each row once: update k has rows k·size … (k + 1)·size − 1."""

    def __init__(self, task: BuiltInTask, seed: int, size: int, updates: int) -> None:
        self.task, self.seed, self.size, self.updates = task, seed, size, updates
        words = f"{task.name}, {task.columns} draws a row, seed {seed}"  # all there is to know
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
    """The first rows of a part, in pieces."""
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
