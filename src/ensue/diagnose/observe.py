"""States, inputs and derivatives of a network's cells during the computation of a cost.

All are in the order of computation: a backward direction begins with the last step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from ensue.cells import Cell
from ensue.engine.bptt import Unrolled, recording, step_leaves
from ensue.engine.interpreter import Blocks
from ensue.engine.recurrence import State, Tensors
from ensue.engine.rtrl import jacobian
from ensue.equations import Equations
from ensue.errors import OptionError
from ensue.layers.dropin import DropIn
from ensue.layers.recurrent import Recurrent

# -------------------------------------------------------------------------------------------------
# ∂s_t/∂s_k of a cell over time: measured, in float64, by the derivative of its graph.
#
# s is the whole state, all parts concatenated. The product of the steps' Jacobians is rescaled
# while it is computed, so its norm is right even beyond the range of a float.

MOST_NUMBERS = 1 << 22  # maximum size of the Jacobians that are computed at once


def step_jacobians(track: Track, row: RowTrack) -> Iterator[Tensor]:
    """∂s_t/∂s_{t−1} (features, features) of every step, the last one first."""
    equations, blocks = track.equations, track.blocks
    width = sum(part.shape[1] for part in row.new)
    many = max(1, MOST_NUMBERS // (width * width))
    for end in range(len(row.x), 0, -many):
        piece = slice(max(0, end - many), end)
        old = tuple(part[piece] for part in row.old)
        leaves = step_leaves(equations, row.x[piece], old, None)
        by_part = [jacobian(equations, part, leaves, blocks) for part in equations.old.values()]
        whole = torch.cat(by_part, 2)[:, -width:]  # the output comes before the state
        yield from whole.flip(0)


def spectral_norm(matrix: Tensor) -> float:
    """The largest singular value: the root of the largest eigenvalue of the smaller MᵀM."""
    if matrix.shape[0] < matrix.shape[1]:
        matrix = matrix.t()
    size = float(matrix.abs().max())
    if size == 0 or not math.isfinite(size):
        return size
    scaled = matrix / size
    return size * math.sqrt(max(float(torch.linalg.eigvalsh(scaled.t() @ scaled)[-1]), 0.0))


@dataclass(frozen=True)
class Decay:
    """log ‖∂s_T/∂s_{T−d}‖₂ for distances d = 0, 1, …, T; with several parts, also for each part of
    the state: log ‖∂c_T/∂c_{T−d}‖₂."""

    whole: tuple[float, ...]
    parts: dict[str, tuple[float, ...]]

    @property
    def norms(self) -> list[float]:
        return [_exp(log) for log in self.whole]


def decay(track: Track, row: RowTrack) -> Decay:
    """The logarithms of ‖∂s_T/∂s_{T−d}‖₂ for each distance d from the last step T of a row: for the
    whole state and, if it has several parts, for each part."""
    widths = [part.shape[1] for part in row.new]
    names = track.cell.parts if len(widths) > 1 else ()
    product = torch.eye(sum(widths), dtype=row.x.dtype)
    scale = 0.0
    whole, parts = [0.0], {name: [0.0] for name in names}
    for step in step_jacobians(track, row):
        product = product @ step
        norm = spectral_norm(product)
        whole.append(_log(norm) + scale)
        blocks = dict(zip(track.cell.parts, _diagonal(product, widths), strict=True))
        for name in names:
            parts[name].append(_log(spectral_norm(blocks[name])) + scale)
        if norm > 0 and math.isfinite(norm):
            product, scale = product / norm, scale + math.log(norm)
    return Decay(tuple(whole), {name: tuple(part) for name, part in parts.items()})


def _diagonal(matrix: Tensor, widths: list[int]) -> list[Tensor]:
    ends = [sum(widths[: k + 1]) for k in range(len(widths))]
    return [matrix[end - w : end, end - w : end] for end, w in zip(ends, widths, strict=True)]


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _exp(value: float) -> float:
    return math.exp(value) if value < 709 else math.inf


Layer = Recurrent | DropIn


@dataclass(frozen=True)
class RowTrack:
    """One row: x (steps, input); the state before and after each step, each part (steps, features);
    and ∂L/∂(state after each step) (steps, features of all parts)."""

    x: Tensor
    old: State
    new: State
    gradient: Tensor


@dataclass(frozen=True)
class Track:
    """One cell over time in one direction, row by row, with the parameters of the network."""

    name: str
    cell: Cell
    parameters: Tensors
    backward: bool
    rows: tuple[RowTrack, ...]

    @cached_property
    def equations(self) -> Equations:
        """The equations outside training, with the expectations of masks."""
        return self.cell.equations(self.rows[0].x.shape[1], self.hidden_size, False)

    @cached_property
    def blocks(self) -> Blocks:
        """The current parameters, without gradients."""
        fixed = {name: parameter.detach() for name, parameter in self.parameters.items()}
        return Blocks(self.equations, fixed)

    @cached_property
    def hidden_size(self) -> int:
        sizes = zip(self.cell.parts, self.rows[0].new, strict=True)
        widths = [part.shape[1] for name, part in sizes if self.cell.size_of(name) == "hidden"]
        return widths[0] if widths else self.rows[0].new[0].shape[1]

    @property
    def steps(self) -> int:
        """The length of the longest row."""
        return len(self.rows[0].x)

    def in_time(self, values: Tensor) -> Tensor:
        """Values (steps, …) in the order of time."""
        return values.flip(0) if self.backward else values


@dataclass(frozen=True)
class Passage:
    """A layer, or a stack of layers, over sequences: x (steps, input) of each row, the tracks from
    the bottom up, and `entering` (steps, features): ∂L/∂y of each row at the top."""

    name: str
    module: Layer
    rows: tuple[Tensor, ...]
    entering: tuple[Tensor, ...]
    tracks: tuple[Track, ...]
    in_turn: bool  # called step by step: inputs may depend on earlier outputs


@dataclass(frozen=True)
class Observed:
    cost: float
    passages: tuple[Passage, ...]


# --- watching ------------------------------------------------------------------------------


@dataclass
class _Call:
    """One call of a module: its recurrences, y (time, batch, features), the state after it."""

    module: Layer
    unrolled: list[Unrolled]
    y: Tensor
    final: list[Tensor]


def observe(
    network: nn.Module, cost: Callable[[], Tensor], most_rows: int, most_steps: int
) -> Observed:
    """Runs `cost`, which calls the network, and observes all recurrent layers in it. most_rows:
    limit, longest rows first; most_steps: limit, last steps only."""
    modules = {
        module: name.removeprefix("reader.")
        for name, module in network.named_modules()
        if is_layer(module)
    }
    if not modules:
        raise OptionError("flow: expected a network with a recurrent layer, got one without")
    calls: list[_Call] = []
    with recording() as unrolled:
        hooks = [_hook(module, unrolled, calls) for module in modules]
        try:
            value = cost()
        finally:
            for hook in hooks:
                hook.remove()
    made = [[*(step[3] for u in call.unrolled for step in u.steps), call.y] for call in calls]
    flat = [tensor for tensors in made for tensor in tensors]
    slopes = iter(torch.autograd.grad(value, _flat(flat), allow_unused=True))
    observed_calls = [_with_slopes(call, slopes) for call in calls]
    chains = _chains(observed_calls)
    counts: dict[str, int] = {}
    passages = []
    for chain in chains:
        name = _short(modules[chain[0].call.module])
        counts[name] = counts.get(name, 0) + 1
        label = name if counts[name] == 1 else f"{name}, call {counts[name]}"
        passages.append(_passage(label, chain, most_rows, most_steps))
    with_tracks = tuple(passage for passage in passages if passage.tracks)
    if not with_tracks:
        raise OptionError("flow: expected sequences of one step or more, got none")
    return Observed(float(value.detach()), with_tracks)


def _short(path: str) -> str:
    """network.decoder.recurrent → decoder"""
    words = [word for word in path.split(".") if word not in ("network", "recurrent", "layer")]
    return ".".join(words) or "recurrent layers"


def is_layer(module: nn.Module) -> bool:
    return isinstance(module, (Recurrent, DropIn))


def _hook(module: nn.Module, unrolled: list[Unrolled], calls: list[_Call]) -> Any:
    def after(module: Any, inputs: Any, result: Any) -> None:
        known = sum(len(call.unrolled) for call in calls)
        y, final = result
        if not isinstance(y, Tensor):
            raise OptionError("flow: expected sequences as a tensor and lengths, got packed ones")
        y = y.transpose(0, 1) if module.batch_first else y
        calls.append(_Call(module, unrolled[known:], y, _tensors(final)))

    return module.register_forward_hook(after)


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [tensor for part in value for tensor in _tensors(part)]


def _flat(values: Sequence[Any]) -> list[Tensor]:
    return [tensor for value in values for tensor in _tensors(value)]


@dataclass(frozen=True)
class _Seen:
    """A call with its derivatives ∂L/∂(each state) and ∂L/∂y."""

    call: _Call
    slopes: list[list[State]]  # for each recurrence, by step
    entering: Tensor


def _with_slopes(call: _Call, slopes: Any) -> _Seen:
    def slope(like: Tensor) -> Tensor:
        gradient = next(slopes)
        return torch.zeros_like(like) if gradient is None else gradient.detach()

    states = [
        [tuple(slope(part) for part in step[3]) for step in run.steps] for run in call.unrolled
    ]
    return _Seen(call, states, slope(call.y))


def _chains(calls: Sequence[_Seen]) -> list[list[_Seen]]:
    """Calls grouped into chains: each call continues from the state of the one before."""
    chains: list[list[_Seen]] = []
    for call in calls:
        starts = {id(part) for u in call.call.unrolled for part in u.recurrence.state}
        for chain in chains:
            last = chain[-1].call
            if last.module is call.call.module and starts & {id(part) for part in last.final}:
                chain.append(call)
                break
        else:
            chains.append([call])
    return chains


# --- rows ----------------------------------------------------------------------------------


def _passage(name: str, chain: Sequence[_Seen], most_rows: int, most_steps: int) -> Passage:
    first = chain[0].call
    ways = len(first.unrolled)
    lengths = _lengths(chain)
    count = min(most_rows, sum(length > 0 for length in lengths))
    kept_lengths = [min(length, most_steps) for length in lengths[:count]]
    directions = 2 if getattr(first.module, "bidirectional", False) else 1
    if directions == 2:
        kept_lengths = lengths[:count]  # both ends are beginnings
    tracks = tuple(
        _track(chain, way, kept_lengths, _way_name(way, directions))
        for way in range(ways if count else 0)
    )
    bottom = [_joined([u.call.unrolled[0].recurrence.x for u in chain], r) for r in range(count)]
    entering = [
        _joined([u.call.unrolled[0].rows.sort(u.entering, 1) for u in chain], r)[: lengths[r]]
        for r in range(count)
    ]
    return Passage(
        name,
        first.module,
        tuple(x[: lengths[r]][-kept_lengths[r] :] for r, x in enumerate(bottom)),
        tuple(states[-kept_lengths[r] :] for r, states in enumerate(entering)),
        tracks,
        len(chain) > 1 and all(len(call.entering) == 1 for call in chain),
    )


def _way_name(way: int, directions: int) -> str:
    layer = f"layer {way // directions + 1}"
    return layer if directions == 1 else f"{layer} {('forward', 'backward')[way % 2]}"


def _lengths(chain: Sequence[_Seen]) -> list[int]:
    """Number of steps of each sorted row, over all calls; 0 if one of its cells has none."""
    first = chain[0].call.unrolled
    lengths = []
    for row in range(first[0].recurrence.x.shape[1]):
        steps = [
            sum(alive > row for link in chain for alive in link.call.unrolled[way].rows.alive)
            for way in range(len(first))
        ]
        lengths.append(steps[0] if min(steps) else 0)
    return lengths


def _joined(pieces: Sequence[Tensor], row: int) -> Tensor:
    return torch.cat([piece[:, row].detach() for piece in pieces])


def _track(chain: Sequence[_Seen], way: int, lengths: Sequence[int], name: str) -> Track:
    unrolled = [link.call.unrolled[way] for link in chain]
    slopes = [slope for link in chain for slope in link.slopes[way]]
    steps = [step for run in unrolled for step in run.steps]
    x = torch.cat([run.recurrence.x for run in unrolled]).detach()
    tracks = []
    for row, length in enumerate(lengths):
        alive = [k for k, step in enumerate(steps) if step[0] > row][-length:]
        old = _stacked([steps[k][1] for k in alive], row)
        new = _stacked([steps[k][3] for k in alive], row)
        gradient = torch.stack([torch.cat([part[row] for part in slopes[k]]) for k in alive])
        tracks.append(RowTrack(x[alive, row], old, new, gradient))
    first = unrolled[0].recurrence
    return Track(name, first.cell, first.parameters, "backward" in name, tuple(tracks))


def _stacked(states: Sequence[State], row: int) -> State:
    """Each part (steps, features) of one row."""
    parts = range(len(states[0]))
    return tuple(torch.stack([state[part][row] for state in states]).detach() for part in parts)
