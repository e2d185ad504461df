"""The network of supervised tasks: an encoder maps a row to a vector, an output layer maps it to
scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.cells.initialise import SCHEMES
from ensue.data.ragged import Ragged
from ensue.tasks.blocks.heads import OutputHead
from ensue.tasks.rows.source import Encoded, in_batches

if TYPE_CHECKING:
    from ensue.tasks.explaining.methods import Sides

Whole = NDArray[np.int64]
NO_TARGET = -1  # target of a unit without label


@dataclass(frozen=True)
class FixedWidth:
    """Rows of equal shape: arrays whose first axis is rows. A batch has a tensor of each, by
    name."""

    values: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    @property
    def lengths(self) -> Whole:
        return np.ones(len(self), np.int64)

    def take(self, rows: Whole) -> FixedWidth:
        return FixedWidth({name: array[rows] for name, array in self.values.items()})

    def arrays(self) -> Mapping[str, Any]:
        return self.values

    def batch(self, rows: Sequence[int] | Whole) -> dict[str, Tensor]:
        numbers = np.asarray(rows, np.int64)
        return {
            name: torch.from_numpy(np.ascontiguousarray(array[numbers]))
            for name, array in self.values.items()
        }


@dataclass(frozen=True)
class LabelledBatch:
    """A batch with targets. inputs: the inputs of the encoder; targets: (rows,) classes or (rows,
    n) numbers; units: targets of the units inside the rows instead, NO_TARGET for units without
    one."""

    inputs: Any
    targets: Tensor
    rows: int
    units: bool = False

    def __len__(self) -> int:
        return self.rows


@dataclass(frozen=True)
class LabelledRows:
    """Encoded rows with the target of each, or of each of their units."""

    inputs: Any  # Encoded
    targets: NDArray[Any] | Ragged

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def lengths(self) -> Whole:
        lengths: Whole = self.inputs.lengths
        return lengths

    def take(self, rows: Whole) -> LabelledRows:
        targets = self.targets
        chosen = targets.take(rows) if isinstance(targets, Ragged) else targets[rows]
        return LabelledRows(self.inputs.take(rows), chosen)

    def arrays(self) -> dict[str, Any]:
        return {**self.inputs.arrays(), "targets": self.targets}

    def batch(self, rows: Sequence[int] | Whole) -> LabelledBatch:
        numbers = np.asarray(rows, np.int64)
        targets = self.targets
        chosen = targets.take(numbers).values if isinstance(targets, Ragged) else targets[numbers]
        tensor = torch.from_numpy(np.ascontiguousarray(chosen))
        if tensor.is_floating_point():
            tensor = tensor.to(torch.get_default_dtype())
        units = isinstance(targets, Ragged)
        return LabelledBatch(self.inputs.batch(numbers), tensor, len(numbers), units)

    @property
    def row_targets(self) -> Tensor:
        """(rows,) or (rows, n): the targets of rows; for rows with units, that of the first unit,
        which is the row."""
        targets = self.targets
        if isinstance(targets, Ragged):
            targets = targets.values[targets.starts[:-1]]
        return torch.as_tensor(targets)

    def target_count(self, rows: Whole) -> float:
        """The number of labels of these rows: the number of units if units have labels, else of
        rows."""
        if not isinstance(self.targets, Ragged):
            return float(len(rows))
        return float((self.targets.take(rows).values != NO_TARGET).sum())

    def token_count(self, rows: Whole) -> float:
        return float(self.lengths[rows].sum())


class Budget(NamedTuple):
    """Limits of a batch: rows × longest ≤ tokens, and a maximum number of rows."""

    tokens: int
    rows: int | None = None


Cost = Callable[[Tensor], Tensor]  # maps vectors to the cost of the batch


class InputEncoder(nn.Module, ABC):
    """A batch of an input → vectors (rows, width); if units are labelled, vectors of all units, the
    row first."""

    width: int

    @abstractmethod
    def forward(self, inputs: Any) -> Tensor: ...

    def rows_of(self, values: Tensor, inputs: Any) -> Tensor:
        """The values of the rows among values for all units; without units, the values
        themselves."""
        return values

    def begin(self, output: nn.Linear) -> None:
        """Draws the initial weights of the output layer."""
        output.reset_parameters()

    def penalty(self, inputs: Any, cost: Cost) -> Tensor | None:
        """A regulariser of the encoder in training, or None."""
        return None


class StepEncoder(InputEncoder):
    """An encoder that embeds steps first, so that explanations can start from embedded steps."""

    @abstractmethod
    def embedded(self, inputs: Any) -> Sides:
        """The steps as vectors (time, batch, width), of each side."""

    @abstractmethod
    def read_steps(self, sides: Sides, inputs: Any) -> Tensor:
        """The vectors of rows from embedded steps."""

    def forward(self, inputs: Any) -> Tensor:
        return self.read_steps(self.embedded(inputs), inputs)


@torch.no_grad()
def begin_dense(output: nn.Linear, init: str) -> None:
    """Initialises an output layer like a `Dense` layer."""
    SCHEMES[init](output.weight, False, output.in_features)
    output.bias.zero_()
    if init == "torch":
        SCHEMES[init](output.bias, False, output.in_features)


class SideScores(nn.Module, ABC):
    """Scores that are added to the scores of the output layer: z' = z + side(inputs)."""

    @abstractmethod
    def forward(self, inputs: Any) -> Tensor: ...

    @abstractmethod
    def penalty(self) -> Tensor | None:
        """The penalty of a row in training, or None."""


class SupervisedNetwork(nn.Module):
    """z = V·read(inputs) + b (+ side scores). The head defines a distribution from z; the cost is
    its negative log-likelihood, summed over the rows or units with a target."""

    def __init__(
        self, encoder: InputEncoder, head: OutputHead, side: SideScores | None = None
    ) -> None:
        super().__init__()
        self.reader, self.head, self.side = encoder, head, side
        with torch.random.fork_rng(devices=[]):  # the encoder draws its first weights
            self.output = nn.Linear(encoder.width, head.classes)
        encoder.begin(self.output)

    def scores(self, inputs: Any) -> Tensor:
        """z (rows or units, outputs)."""
        return self.scores_of(self.reader(inputs), inputs)

    def scores_of(self, vectors: Tensor, inputs: Any) -> Tensor:
        """The scores from vectors of the encoder."""
        z: Tensor = self.output(vectors.to(self.output.weight.dtype))
        return z if self.side is None else z + self.side(inputs)

    def forward(
        self, batch: LabelledBatch, carried: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The cost of the batch; no state is carried."""

        def cost(vectors: Tensor) -> Tensor:
            z, targets = self.scores_of(vectors, batch.inputs), batch.targets
            if batch.units:
                labelled = targets != NO_TARGET
                z, targets = z[labelled], targets[labelled]
            return self.head.cost(z, targets).sum()

        total = cost(self.reader(batch.inputs))
        if self.training:
            side = None if self.side is None else self.side.penalty()
            total = total if side is None else total + len(batch) * side
            penalty = self.reader.penalty(batch.inputs, cost)
            total = total if penalty is None else total + penalty
        return total, {}


@torch.no_grad()
def network_outputs(network: nn.Module, inputs: Encoded, tokens: int) -> Tensor:
    """z (rows, outputs). tokens: maximum per batch."""
    assert isinstance(network, SupervisedNetwork)
    weight = network.output.weight
    z = torch.zeros(len(inputs), network.head.classes, dtype=weight.dtype)
    for rows, batch in in_batches(inputs, network, tokens):
        scores = network.reader.rows_of(network.scores(batch), batch)
        z[torch.from_numpy(rows)] = scores.cpu()
    return z
