"""Encoded rows for the training loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ensue.data.batches import batches, evaluation_batches
from ensue.data.fingerprint import fingerprint
from ensue.tasks.reader import RowNames
from ensue.training.processes import device_of_weights, moved

FEW = 4  # rows of a trial evaluation


class Encoded(Protocol):
    """Encoded rows. lengths (rows,): what each row counts toward the size of a batch, such as
    its number of steps."""

    @property
    def lengths(self) -> NDArray[np.int64]: ...

    def __len__(self) -> int: ...

    def take(self, rows: NDArray[np.int64]) -> Self: ...

    def arrays(self) -> Mapping[str, Any]:
        """All arrays by name, for a fingerprint."""
        ...

    def batch(self, rows: Sequence[int] | NDArray[np.int64]) -> Any:
        """These rows as tensors."""
        ...


class Trainable(Encoded, Protocol):
    """Encoded rows with their targets."""

    def target_count(self, rows: NDArray[np.int64]) -> float:
        """The number of targets of these rows."""
        ...

    def token_count(self, rows: NDArray[np.int64]) -> float:
        """The number of input steps of these rows."""
        ...


R = TypeVar("R", bound=Encoded)


class SequenceSource:
    """Rows in batches within a token budget, with rows of similar lengths together; their order is
    determined by seed and epoch."""

    def __init__(
        self, rows: Trainable, names: RowNames, *, seed: int, budget: int, most_rows: int | None
    ) -> None:
        self.rows, self.names, self.seed = rows, names, seed
        self.budget, self.most_rows = budget, most_rows
        self.fingerprint = fingerprint(rows.arrays())

    def batches(self, epoch: int) -> Sequence[Any]:
        """Row indices of each batch, as arrays."""
        lengths = self.rows.lengths
        return batches(lengths, self.budget, self.seed, epoch, most_rows=self.most_rows)

    def batch(self, rows: Sequence[int]) -> Any:
        return self.rows.batch(rows)

    def targets(self, rows: Sequence[int]) -> float:
        return self.rows.target_count(np.asarray(rows))

    def tokens(self, rows: Sequence[int]) -> float:
        return self.rows.token_count(np.asarray(rows))

    def name(self, row: int) -> str:
        return self.names[row]


def in_batches(
    rows: Encoded, network: object, budget: int, most_rows: int | None = None
) -> Iterator[tuple[NDArray[np.int64], Any]]:
    """Yields row indices and batches of rows with similar lengths, on the device of the network."""
    device = device_of_weights(network)
    for numbers in evaluation_batches(rows.lengths, budget, most_rows=most_rows):
        yield numbers, moved(rows.batch(numbers), device)


class ColumnScores(Generic[R]):
    """A validation: a score function over all rows, or only over a few long ones."""

    def __init__(self, score: Callable[[R], Mapping[str, float]], rows: R) -> None:
        self._score, self._rows = score, rows
        self._few = rows.take(np.argsort(rows.lengths, kind="stable")[-FEW:])
        self.fingerprint = fingerprint(rows.arrays())

    def __call__(self) -> Mapping[str, float]:
        return self._score(self._rows)

    def sample(self) -> Mapping[str, float]:
        return self._score(self._few)
