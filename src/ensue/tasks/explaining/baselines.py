"""What an input is compared with: the same without a step, or one that says nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.errors import OptionError, unknown
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.scale import Scale

# A letter of no language: no vocabulary, no n-gram and no letter of training has it.
NEVER_SEEN = "\ue000"
LEFT_OUT, UNKNOWN, PADDING, MEAN, ZERO = "left-out", "unknown", "padding", "mean", "zero"

Steps = NDArray[Any]


class Baseline(NamedTuple):
    """told: in words, of one step that is occluded and of all steps together; "" where it cannot
    be. step: what stands in the place of a step, a token's number or a vector; None: nothing, or
    zero once it is embedded."""

    occluded: str
    together: str
    step: Callable[[Part, Scale | None], Any] | None = None


def _never_seen(part: Part, scale: Scale | None) -> int:
    return part.numbers.tokens[NEVER_SEEN]


def _mean(part: Part, scale: Scale | None) -> Any:
    assert scale is not None
    return scale.mean


def _zero(part: Part, scale: Scale | None) -> Any:
    assert scale is not None
    return np.zeros_like(scale.mean)


OF_TOKENS = {
    LEFT_OUT: Baseline("each token left out", ""),
    UNKNOWN: Baseline(
        "each token replaced by one that training never saw",
        "as many tokens that training never saw",
        _never_seen,
    ),
    PADDING: Baseline("", "the zero vectors of padding"),
}
OF_VECTORS = {
    LEFT_OUT: Baseline("each step left out", ""),
    MEAN: Baseline(
        "each step replaced by the mean vector of training",
        "the mean vector of training at every step",
        _mean,
    ),
    ZERO: Baseline("each step replaced by zeros", "zeros at every step", _zero),
}


def baseline_of(name: str, part: Part, told: str) -> Baseline:
    """told: the field that says whether it is one for the method, "occluded" or "together"."""
    every = OF_TOKENS if part.texts else OF_VECTORS
    known = [key for key, own in every.items() if getattr(own, told)]
    if name not in known:
        if name in {**OF_TOKENS, **OF_VECTORS}:
            kind = "texts" if part.texts else "vectors"
            raise OptionError(
                f"--baseline: expected {' or '.join(known)} with this method of {kind}, got {name}"
            )
        raise unknown("baseline", name, known)
    return every[name]


# --- parts ---------------------------------------------------------------------------------------


def sides_of(part: Part) -> list[Steps]:
    """The steps of the only row: of a pair those of both sides."""
    rows = [part.inputs] if part.second is None else [part.inputs, part.second]
    return [own.row(0) for own in rows]


def occluded(part: Part, step: Any) -> Part:
    """A row for each step, which is left out, or replaced where there is something for it; those of
    the second side after those of the first."""
    sides = sides_of(part)
    found: list[list[Steps]] = []
    for k, own in enumerate(sides):
        for at in range(len(own)):
            changed = list(sides)
            changed[k] = np.delete(own, at, 0) if step is None else own.copy()
            if step is not None:
                changed[k][at] = step
            found.append(changed)
    return with_rows(part, found)


def all_replaced(part: Part, step: Any) -> Part:
    """The row with every step replaced."""
    changed = [own.copy() for own in sides_of(part)]
    for own in changed:
        own[:] = step
    return with_rows(part, [changed])


def with_rows(part: Part, rows: Sequence[Sequence[Steps]]) -> Part:
    """These rows in place of the only one, under its name."""
    values = part.inputs.values
    sides = [Ragged.of(own, values.dtype, values.shape[1:]) for own in zip(*rows, strict=True)]
    second = sides[1] if len(sides) > 1 else None
    again = part.take(np.zeros(len(rows), np.int64))  # what stands beside the steps stays
    return replace(again, inputs=sides[0], second=second, labels=None)
