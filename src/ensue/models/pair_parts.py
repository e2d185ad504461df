"""Collected rows of which the label is a text: the tokens of the target."""

from __future__ import annotations

import numpy as np

from ensue.data.ragged import Ragged
from ensue.errors import DataError
from ensue.models.collect import Collected


def targets_of(part: Collected) -> Ragged:
    assert part.labels is not None
    return part.labels


def check_sides(part: Collected, name: str) -> None:
    """Every row has a source and a target, and none of them is empty."""
    if not len(part) or part.labels is None:
        where = f", the first without a target is {part.unlabelled}" if part.unlabelled else ""
        raise DataError(
            f"the {name} part: expected pairs of source and target, got {len(part)} rows{where}"
        )
    for side, rows in (("source", part.inputs), ("target", part.labels)):
        empty = np.flatnonzero(rows.lengths == 0)
        if len(empty):
            many = "1 row has" if len(empty) == 1 else f"{len(empty):,} rows have"
            raise DataError(
                f"the {name} part: {many} an empty {side}, the first of them "
                f"{part.names[int(empty[0])]}: nothing can be learned from it; leave it out"
            )


def shortened(part: Collected, most: int | None) -> tuple[Collected, str]:
    """Pairs of which no side has more tokens, and what is to be said of the others."""
    if most is None:
        return part, ""
    long = np.maximum(part.inputs.lengths, targets_of(part).lengths) > most
    if long.all():
        raise DataError(
            f"all {len(part):,} pairs are longer than text.max_length, {most} tokens: "
            "raise it, or leave it out"
        )
    if not long.any():
        return part, ""
    first = part.names[int(np.flatnonzero(long)[0])]
    said = (
        f"{long.sum():,} of {len(part):,} pairs left out, longer than text.max_length, "
        f"{most} tokens, the first of them {first}"
    )
    return part.taken(np.flatnonzero(~long)), said
