"""The effect of clipping and a regulariser on vanishing and exploding gradients.

Clipping (by norm): ∇ becomes τ·∇/‖∇‖ if ‖∇‖ > τ. It shortens an update, and does not change the
flow through time.

The norm-preserving regulariser (Pascanu et al. 2013) is

    Ω = Σ_t (1 − ‖δ_{t+1}·∂s_{t+1}/∂s_t‖ / ‖δ_{t+1}‖)²,   δ = ∂L/∂s

over the steps with δ ≠ 0. Its gradient holds δ and the states constant, as theirs does; both are
computed again for every update.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ensue.diagnose.observe import Observed, RowTrack, Track, decay
from ensue.engine.bptt import recording, step_leaves
from ensue.engine.interpreter import Blocks, evaluate
from ensue.training.optimiser import Adam

RATE = 0.01  # learning rate of Adam, for updates by the regulariser alone


@dataclass(frozen=True)
class Clipping:
    """‖∇‖ of all parameters, of the mean cost, and the norm that it is clipped to."""

    threshold: float
    before: float

    @property
    def after(self) -> float:
        return min(self.before, self.threshold)


@dataclass(frozen=True)
class Regularised:
    """Ω before and after `updates` updates by it alone; decays: log ‖∂s_T/∂s_{T−d}‖ of each track
    after them, by distance."""

    updates: int
    before: float
    after: float
    decays: dict[str, tuple[float, ...]]


def clipping(network: nn.Module, cost: Callable[[], Tensor], threshold: float) -> Clipping:
    """The gradient norm of a mean cost."""
    parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    with recording():  # no kernel is compiled for one pass
        value = cost()
    slopes = torch.autograd.grad(value, parameters, allow_unused=True)
    squares = [float((slope**2).sum()) for slope in slopes if slope is not None]
    return Clipping(threshold, sum(squares) ** 0.5)


def preserving(track: Track, row: RowTrack) -> Tensor:
    """Ω of one row and cell, differentiable with respect to the parameters; δ and the states are
    constants."""
    equations, width = track.equations, row.gradient.shape[1]
    derivative = equations.derivative
    sizes = [part.shape[1] for part in row.new]
    output = row.gradient.new_zeros(len(row.x), equations.output.width)
    seeds = (output, *torch.split(row.gradient, sizes, 1))
    leaves = step_leaves(equations, row.x, row.old, None)
    leaves |= dict(zip(derivative.seeds, seeds, strict=True))
    state_slopes = [node for node in derivative.state.values() if node is not None]
    known = (
        evaluate(state_slopes, leaves, Blocks(equations, track.parameters)) if state_slopes else {}
    )
    back = [
        torch.zeros_like(part) if node is None else known[node].expand(part.shape)
        for node, part in zip(derivative.state.values(), row.old, strict=True)
    ]
    arrived = torch.cat(back, 1)
    assert arrived.shape[1] == width
    arriving = row.gradient.norm(dim=1)
    real = arriving > 0
    lengths = _length(arrived[real])
    total: Tensor = ((1 - lengths / arriving[real]) ** 2).sum()
    return total


def _length(v: Tensor) -> Tensor:
    """‖v‖ of each row; its slope at 0 is 0."""
    squares = (v**2).sum(1)
    zero = squares == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, squares).sqrt())


def omega(tracks: Sequence[Track]) -> Tensor:
    """The mean over rows of the sum over all cells."""
    rows = len(tracks[0].rows)
    return torch.stack([preserving(t, row) for t in tracks for row in t.rows]).sum() / rows


def regularise(
    parameters: Sequence[nn.Parameter], look: Callable[[], Observed], updates: int
) -> Regularised:
    """Updates the parameters by Ω alone. look: returns the current states and derivatives."""
    optimiser = Adam(parameters, lr=RATE)
    before = 0.0
    for update in range(updates):
        cost = omega(tracks_of(look()))
        before = float(cost.detach()) if update == 0 else before
        optimiser.zero_grad()
        cost.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    observed = look()
    with torch.no_grad():
        after = float(omega(tracks_of(observed)))
        decays = {
            f"{passage.name} {track.name}": decay(track, track.rows[0]).whole
            for passage in observed.passages
            for track in passage.tracks
        }
    return Regularised(updates, before, after, decays)


def tracks_of(observed: Observed) -> list[Track]:
    return [track for passage in observed.passages for track in passage.tracks]
