"""Pictures with captions, as networks and the training loop take them."""

from __future__ import annotations

import numpy as np

from ensue.data.ragged import Ragged
from ensue.errors import DataError
from ensue.models.collect import Collected


def lines_of(pictures: Ragged) -> Ragged:
    """Pictures (rows, channels, height, width) by their lines (rows·channels·height, width), as
    pair networks take a source: all of a picture's lines, one channel below the other."""
    values = pictures.values
    rows, channels, height, width = values.shape
    lines = channels * height
    return Ragged(values.reshape(rows * lines, width), np.arange(rows + 1) * lines)


def check_captions(part: Collected, name: str) -> None:
    """Every picture has a caption, and none is empty."""
    if not len(part) or part.labels is None:
        where = f", the first without a caption is {part.unlabelled}" if part.unlabelled else ""
        raise DataError(
            f"the {name} part: expected pictures with captions, got {len(part)} rows{where}"
        )
    empty = np.flatnonzero(part.labels.lengths == 0)
    if len(empty):
        many = "1 picture has" if len(empty) == 1 else f"{len(empty):,} pictures have"
        raise DataError(
            f"the {name} part: {many} an empty caption, the first of them "
            f"{part.names[int(empty[0])]}: nothing can be learned from it; leave it out"
        )
