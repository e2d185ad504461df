"""Comparison of every export with Python, over a grid of inputs, before its file is written.

The sequences have other batch sizes and lengths than the example, padding, empty rows, and carried
states. Every number must be within `TOLERANCE` of the eager engine (relative for numbers above 1).
If float32 itself is further from float64 (a cell that amplifies rounding), four times that distance
is allowed.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.errors import EnsueError
from ensue.export.stack import Stack
from ensue.export.weights import store
from ensue.layers.dropin import DropIn
from ensue.layers.recurrent import Recurrent

Floats = NDArray[np.float32]
TOLERANCE = 1e-5
CASES: tuple[tuple[int, int, tuple[int, ...] | None, bool], ...] = (
    # steps, rows, lengths (None: all rows are full), whether there is an initial state
    (1, 1, None, False),
    (1, 1, None, True),
    (2, 1, None, False),
    (7, 1, None, True),
    (33, 1, None, False),
    (1, 3, None, True),
    (5, 3, None, False),
    (5, 3, None, True),
    (16, 2, None, True),
    (4, 7, None, False),
    (4, 3, (2, 0, 4), False),
    (4, 3, (2, 0, 4), True),
    (4, 3, (4, 4, 4), True),
    (6, 2, (0, 0), True),
    (6, 2, (1, 1), True),
    (6, 1, (0,), False),
    (6, 1, (3,), True),
    (9, 5, (9, 1, 0, 5, 8), True),
    (9, 5, (1, 2, 3, 4, 5), False),
    (3, 6, (0, 3, 0, 2, 0, 1), True),
    (12, 4, (12, 0, 11, 1), True),
    (20, 3, (20, 19, 2), False),
    (2, 9, (0, 1, 2, 0, 1, 2, 0, 1, 2), True),
    (40, 2, (40, 13), True),
)


class ExportMismatch(EnsueError):
    """The results of an export differ from Python's; no file is kept."""


@dataclass(frozen=True)
class Case:
    """x (time, batch, input), lengths (batch,), the state's parts (batch, features) or None."""

    x: Floats
    lengths: NDArray[np.int64] | None
    state: tuple[Floats, ...] | None

    def __str__(self) -> str:
        lengths = "" if self.lengths is None else f", lengths {self.lengths.tolist()}"
        carried = "" if self.state is None else ", from a state that was carried over"
        return f"{self.x.shape[1]} rows of {self.x.shape[0]} steps{lengths}{carried}"


@dataclass(frozen=True)
class Outcome:
    """y (time, batch, features) and the final state's parts."""

    y: Floats
    state: tuple[Floats, ...]

    @property
    def values(self) -> tuple[Floats, ...]:
        return (self.y, *self.state)


def cases_of(stack: Stack, seed: int = 0) -> list[Case]:
    random = np.random.default_rng(seed)

    def drawn(*shape: int) -> Floats:
        return random.standard_normal(shape).astype(np.float32)

    return [
        Case(
            drawn(time, batch, stack.input_size),
            None if lengths is None else np.array(lengths, np.int64),
            tuple(0.5 * drawn(batch, n) for _, n in stack.state_names) if carried else None,
        )
        for time, batch, lengths, carried in CASES
    ]


# --- Python's side -------------------------------------------------------------------------------


def with_stored_weights(module: nn.Module, kind: str) -> nn.Module:
    """A copy in evaluation mode whose matrices are rounded as in their stored form."""
    stored = copy.deepcopy(module).eval().float()
    for parameter in stored.parameters():
        if kind != "float32" and parameter.dim() > 1:
            flat = parameter.detach().cpu().numpy()
            parameter.data = torch.from_numpy(np.array(store(flat, kind).value))
    return stored


@torch.no_grad()
def reference(layer: nn.Module, stack: Stack, case: Case, dtype: torch.dtype) -> Outcome:
    """The result of the eager engine on a case. layer: a layer of the dtype of the case."""
    x = torch.from_numpy(case.x).to(dtype)
    lengths = None if case.lengths is None else torch.from_numpy(case.lengths)
    parts = None if case.state is None else [torch.from_numpy(s).to(dtype) for s in case.state]
    y, state = RUNS[Recurrent if isinstance(layer, Recurrent) else DropIn](layer, x, lengths, parts)
    return Outcome(_plain(y), tuple(_plain(state_part) for state_part in state))


def _run_recurrent(
    layer: Any, x: Tensor, lengths: Tensor | None, parts: list[Tensor] | None
) -> tuple[Tensor, list[Tensor]]:
    row_lengths = None
    if parts is not None:
        waiting = iter(parts)
        row_lengths = [tuple(next(waiting) for _ in way.cell.parts) for way in layer.ways]
    x = x.transpose(0, 1) if layer.batch_first else x
    y, state = layer(x, row_lengths, lengths)
    y = y.transpose(0, 1) if layer.batch_first else y
    return y, [part for states in state for part in states]


def _run_dropin(
    layer: Any, x: Tensor, lengths: Tensor | None, parts: list[Tensor] | None
) -> tuple[Tensor, list[Tensor]]:
    count = len(layer.cell.parts)
    row_lengths: Any = None
    if parts is not None:
        row_lengths = tuple(torch.stack(parts[k::count]) for k in range(count))
        row_lengths = row_lengths if count > 1 else row_lengths[0]
    x = x.transpose(0, 1) if layer.batch_first else x
    y, state = layer(x, row_lengths, lengths=lengths)
    y = y.transpose(0, 1) if layer.batch_first else y
    state = state if count > 1 else (state,)
    ways = len(state[0])
    return y, [part[k] for k in range(ways) for part in state]


RUNS: dict[type, Any] = {Recurrent: _run_recurrent, DropIn: _run_dropin}


def _plain(value: Tensor) -> Any:
    return value.detach().cpu().numpy()


@dataclass(frozen=True)
class Expected:
    """Python's result for a case, and the tolerance."""

    case: Case
    outcome: Outcome
    allowed: tuple[float, ...]


def expected(layer: nn.Module, stack: Stack, cases: Sequence[Case]) -> list[Expected]:
    """Python's results for the cases. layer: the layer with stored weights, in evaluation mode."""
    single, double = layer, copy.deepcopy(layer).double()
    for precision in (single, double):
        precision.engine = "eager"  # type: ignore[assignment]
    outcomes = []
    for case in cases:
        exact = reference(double, stack, case, torch.float64)
        near = reference(single, stack, case, torch.float32)
        allowed = tuple(
            TOLERANCE * max(1.0, _largest(value)) + 4 * _largest(value - other)
            for value, other in zip(exact.values, near.values, strict=True)
        )
        outcomes.append(Expected(case, exact, allowed))
    return outcomes


def compare(references: Sequence[Expected], got: Sequence[Outcome], target: str) -> float:
    """The largest difference; raises ExportMismatch if one is too large."""
    worst = 0.0
    for expected_outcome, result in zip(references, got, strict=True):
        names = ["y", *(f"state {k}" for k in range(len(expected_outcome.outcome.state)))]
        pairs = zip(
            names,
            expected_outcome.outcome.values,
            result.values,
            expected_outcome.allowed,
            strict=True,
        )
        for name, value, other, allowed in pairs:
            if value.shape != other.shape:
                raise _mismatch(
                    target,
                    expected_outcome.case,
                    f"{name} is {other.shape}, expected {value.shape}",
                )
            away = _largest(value - other)
            if not away <= allowed:  # NaN too
                message = f"{name} is {away:.2g} away from Python's, more than {allowed:.2g}"
                raise _mismatch(target, expected_outcome.case, message)
            worst = max(worst, away)
    return worst


def _largest(values: NDArray[Any]) -> float:
    return float(np.abs(values).max(initial=0.0))


def _mismatch(target: str, case: Case, what: str) -> ExportMismatch:
    return ExportMismatch(
        f"{target}: not exported: {what}, over {case}. This is a fault of the export, not of the "
        "model; please report it with the cell"
    )
