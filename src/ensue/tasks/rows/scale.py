"""Feature vectors are scaled by what the training part has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.errors import DataError
from ensue.tasks import checks
from ensue.tasks.blocks.embeddings import Vectors
from ensue.tasks.rows.part import Part


@dataclass(frozen=True)
class Scale:
    """mean, spread (n,): of each number of a step; a number that never changes has spread 1."""

    mean: NDArray[np.float32]
    spread: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: NDArray[np.float32]) -> Scale:
        """vectors: (steps, n)."""
        if not len(vectors):
            raise DataError("the training part: expected sequences with steps, got empty ones only")
        spread = vectors.std(0, dtype=np.float64)
        return cls(
            vectors.mean(0, dtype=np.float64).astype(np.float32),
            np.where(spread > 0, spread, 1).astype(np.float32),
        )

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Scale:
        """As a model keeps it."""
        mean = checks.array((None,), checks.SINGLE)(arrays.get("mean"), "scale.mean")
        if not len(mean):
            raise checks.Unfit("scale.mean: expected a number or more, got none")
        spread = checks.array(mean.shape, checks.SINGLE, above=0)(
            arrays.get("spread"), "scale.spread"
        )
        return cls(mean, spread)

    @property
    def width(self) -> int:
        return len(self.mean)

    def feature(self) -> Vectors:
        return Vectors(self.width, torch.tensor(self.mean), torch.tensor(self.spread))

    def vectors(self, part: Part) -> Ragged:
        """The vectors of a part, if they are as wide as those learned from."""
        values = part.inputs.values
        if not len(values):  # no step says how wide it is
            return Ragged(np.zeros((0, self.width), np.float32), part.inputs.starts)
        if values.ndim != 2 or values.shape[1] != self.width:
            got = f"steps of {values.shape[1]} numbers" if values.ndim == 2 else "text"
            raise DataError(
                f"{part.names[0]}: expected sequences of vectors with {self.width} numbers a "
                f"step, as in training, got {got}"
            )
        return part.inputs
