"""Batches for networks, cut from encoded columns.

The index 0 always means padding, and 1 means unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.ragged import Ragged, Rows
from ensue.errors import DataError
from ensue.tasks.rows.surfaces import SurfaceTable, in_sentences

PADDING, UNKNOWN = 0, 1


@dataclass(frozen=True)
class SequenceBatch:
    """A batch. Rows are on axis 1 of tensors with steps, on axis 0 of others.

    inputs, each if the data has it:
      words (time, batch); vectors (time, batch, features); prefix, suffix (time, batch, k);
      shape (time, batch); characters (letters, distinct), the spelling of each distinct word,
      with characters.lengths (distinct) and characters.index (time, batch), which of them a
      step holds; sentence (letters, batch), the row as a character language model reads it, with
      sentence.after (time, batch), where the space after each word stands; ngrams (total), all
      rows one after another, with ngrams.starts (batch);
      column_numbers (batch, n) and column_categories (batch, k) of the columns next to the steps.
    targets: (batch,) classes, (batch, labels) zeros and ones, or (time, batch) labels."""

    inputs: dict[str, Tensor]
    lengths: Tensor
    targets: Tensor | None = None

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True)
class Columns:
    """Encoded rows. Words are ids, or indices of surfaces with a table of their features; targets
    are classes (rows,), (rows, labels) or one label for each step. column_numbers,
    column_categories: (rows, n) and (rows, k), of the columns next to the steps."""

    words: Ragged | None = None
    surfaces: Ragged | None = None
    table: SurfaceTable | None = None
    vectors: Ragged | None = None
    ngrams: Ragged | None = None
    column_numbers: NDArray[np.float32] | None = None
    column_categories: NDArray[np.int64] | None = None
    targets: NDArray[Any] | Ragged | None = None

    def __post_init__(self) -> None:
        if (self.surfaces is None) != (self.table is None):
            raise DataError("surfaces and their table go together: give both or neither")
        counts = {name: len(column) for name, column in self._arrays().items()}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise DataError(f"expected columns of the same number of rows, got {listed}")
        lengths = {name: column.lengths for name, column in self._stepped().items()}
        first = next(iter(lengths), "")
        for name, length in lengths.items():
            if len(wrong := np.flatnonzero(length != lengths[first])):
                row = int(wrong[0])
                raise DataError(
                    f"row {row}: {first} has {lengths[first][row]} steps and {name} has "
                    f"{length[row]}; every step needs one of each"
                )

    def _arrays(self) -> dict[str, Any]:
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "table"}
        return {name: column for name, column in arrays.items() if column is not None}

    def _stepped(self) -> dict[str, Ragged]:
        arrays = self._arrays()
        return {n: c for n, c in arrays.items() if isinstance(c, Ragged) and n != "ngrams"}

    def __len__(self) -> int:
        return len(next(iter(self._arrays().values()), ()))

    def arrays(self) -> dict[str, NDArray[Any] | Ragged]:
        """All arrays by name, including the arrays of the table."""
        table = {} if self.table is None else vars(self.table)
        known = {f"table.{name}": v for name, v in table.items() if v is not None}
        return {**self._arrays(), **known}

    def take(self, rows: Rows) -> Columns:
        """The rows with these indices."""
        numbers = np.asarray(rows, np.int64)
        arrays: dict[str, Any] = {
            name: column.take(numbers) if isinstance(column, Ragged) else column[numbers]
            for name, column in self._arrays().items()
        }
        return replace(self, **arrays)

    def batch(self, rows: Rows) -> SequenceBatch:
        return collate(self, rows)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of steps of each row (rows,)."""
        stepped = self._stepped()
        return next(iter(stepped.values())).lengths if stepped else np.zeros(len(self), np.int64)

    def lengths_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The lengths of these rows, without computing the others."""
        for column in self._stepped().values():
            return column.lengths_of(rows)
        return np.zeros(len(rows), np.int64)

    def target_count(self, rows: NDArray[np.int64]) -> float:
        """The number of targets: steps if each has a label, else rows."""
        stepped = isinstance(self.targets, Ragged)
        return float(self.lengths[rows].sum() if stepped else len(rows))

    def token_count(self, rows: NDArray[np.int64]) -> float:
        return float(self.lengths_of(rows).sum())


def collate(columns: Columns, rows: Rows) -> SequenceBatch:
    """The rows with these indices as one batch, padded to the longest."""
    rows = np.asarray(rows, np.int64)
    inputs: dict[str, Tensor] = {}
    if columns.words is not None:
        inputs["words"] = whole(columns.words.padded(rows))
    if columns.surfaces is not None and columns.table is not None:
        inputs |= spelled(columns.table, columns.surfaces.padded(rows))
    if columns.vectors is not None:
        padded = columns.vectors.padded(rows)
        inputs["vectors"] = torch.from_numpy(padded).to(torch.get_default_dtype())
    if columns.ngrams is not None:
        ngrams = columns.ngrams.take(rows)
        inputs["ngrams"], inputs["ngrams.starts"] = whole(ngrams.values), whole(ngrams.starts[:-1])
    if columns.column_numbers is not None and columns.column_categories is not None:
        inputs["column_numbers"] = numbers(columns.column_numbers[rows])
        inputs["column_categories"] = whole(columns.column_categories[rows])
    lengths = torch.from_numpy(columns.lengths_of(rows))
    return SequenceBatch(inputs, lengths, _targets(columns.targets, rows))


def batch_of(columns: Columns, rows: int = 1) -> SequenceBatch:
    """The only row of columns, repeated `rows` times, with its real numbers in float64."""
    batch = collate(columns, [0] * rows)
    pairs = batch.inputs.items()
    inputs = {
        name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in pairs
    }
    return replace(batch, inputs=inputs)


def _targets(targets: NDArray[Any] | Ragged | None, rows: NDArray[np.int64]) -> Tensor | None:
    if targets is None:
        return None
    if isinstance(targets, Ragged):
        return whole(targets.padded(rows))
    return whole(targets[rows]) if targets.ndim == 1 else numbers(targets[rows])


def spelled(table: SurfaceTable, surfaces: NDArray[Any]) -> dict[str, Tensor]:
    """The features of surfaces (time, batch) from the table."""
    inputs = {"words": whole(table.words[surfaces])}
    for name in ("prefix", "suffix", "shape"):
        ids = getattr(table, name)
        if ids is not None:
            inputs[name] = whole(ids[surfaces])
    if table.characters is not None:
        distinct, index = np.unique(surfaces, return_inverse=True)
        inputs["characters"] = whole(table.characters.padded(distinct))
        starts = table.characters.starts
        inputs["characters.lengths"] = torch.from_numpy(starts[distinct + 1] - starts[distinct])
        inputs["characters.index"] = whole(index.reshape(surfaces.shape))
    if table.spelling is not None:
        letters, after = in_sentences(table.spelling, surfaces)
        inputs["sentence"], inputs["sentence.after"] = whole(letters), whole(after)
    return inputs


def targets_of(batch: SequenceBatch) -> Tensor:
    if batch.targets is None:
        raise DataError("targets: expected for a cost, got a batch without; give the labels column")
    return batch.targets


def whole(ids: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(ids, np.int64))


def numbers(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(torch.get_default_dtype())
