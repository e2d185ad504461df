"""How gradients flow through the recurrent layers of a network: measured, bounded, judged."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

import torch
from torch import Tensor, nn

from ensue.diagnose.findings import Finding, findings_of, rate_of, reach_of
from ensue.diagnose.gates import GateFlow, Shortcut, gate_flows, mean_over_rows, shortcuts
from ensue.diagnose.observe import Decay, Observed, Passage, Track, decay, observe, spectral_norm
from ensue.diagnose.remedies import Clipping, Regularised, clipping, regularise
from ensue.engine.bptt import recording
from ensue.engine.interpreter import Blocks, evaluate
from ensue.equations import Node, below
from ensue.equations.declare import Matrix
from ensue.errors import OptionError
from ensue.layers.recurrent import Recurrent

# -------------------------------------------------------------------------------------------------
# The theoretical bound of a step, ‖∂s'/∂s‖₂ ≤ λ·σ_max(U), derived from the graph.
#
# Each operation multiplies the bound of its arguments by the steepest slope that it can have: tanh,
# ReLU and sums by 1, the logistic function by λ = ¼, a matrix by its largest singular value. If
# two values that both depend on the state are multiplied, as by a gate, there is no such bound.
#
#     < 1    suffices for vanishing: ‖∂s_t/∂s_k‖ ≤ bound^(t−k), for every input
#     > 1    is only necessary for explosion: slopes may be smaller than λ

SLOPES = {"tanh": 1.0, "relu": 1.0, "softplus": 1.0, "sigmoid": 0.25, "negative": 1.0}
LEAVES = ("x", "state")


@dataclass(frozen=True)
class Spectrum:
    """Facts of a recurrent matrix: its largest singular value, and its spectral radius (the largest
    absolute value of its eigenvalues; None if it is not square)."""

    name: str
    singular: float
    radius: float | None


def spectra(track: Track) -> list[Spectrum]:
    """The spectrum of every block of every recurrent matrix."""
    rows = []
    for name, declared in track.cell.parameters.items():
        if not isinstance(declared, Matrix) or declared.of == "x":
            continue
        for gate in declared.gates:
            block = track.blocks.matrices[name, gate]
            square = block.shape[0] == block.shape[1]
            radius = float(torch.linalg.eigvals(block).abs().max()) if square else None
            label = f"{name}_{gate}" if gate else name
            rows.append(Spectrum(label, spectral_norm(block), radius))
    return rows


def step_bound(track: Track) -> float | None:
    """The upper bound of ‖∂s'/∂s‖₂ over all states and inputs; None if gates multiply."""
    equations = track.equations
    rows = []
    for part in equations.state.values():
        row = [_bound(part, leaf, track.blocks, {}) for leaf in equations.old.values()]
        if None in row:
            return None
        rows.append([value for value in row if value is not None])
    return spectral_norm(torch.tensor(rows, dtype=torch.float64))


def _bound(node: Node, leaf: Node, blocks: Blocks, known: dict[Node, float | None]) -> float | None:
    """An upper bound of ‖∂node/∂leaf‖₂; None if unbounded."""
    if node not in known:
        known[node] = _bound_of(node, leaf, blocks, known)
    return known[node]


def _bound_of(
    node: Node, leaf: Node, blocks: Blocks, known: dict[Node, float | None]
) -> float | None:
    if node is leaf:
        return 1.0
    if leaf not in below([node]):
        return 0.0
    inside = [_bound(argument, leaf, blocks, known) for argument in node.args]
    if None in inside:
        return None
    bounds = [bound for bound in inside if bound is not None]
    if node.op == "add":
        return sum(bounds)
    if node.op == "product":
        return spectral_norm(blocks.matrix(node.attr)) * bounds[0]
    if node.op == "maximum":
        return math.hypot(*bounds)
    if node.op in SLOPES:
        return SLOPES[node.op] * bounds[0]
    fixed = [k for k, bound in enumerate(bounds) if bound == 0.0]
    if node.op == "multiply" and fixed:
        factor = _size(node.args[fixed[0]], blocks)
        return None if factor is None else factor * bounds[1 - fixed[0]]
    if node.op == "divide" and bounds[1] == 0.0:
        factor = _size(node.graph.constant(1.0) / node.args[1], blocks)
        return None if factor is None else factor * bounds[0]
    return None


def _size(node: Node, blocks: Blocks) -> float | None:
    """The largest absolute value of a node that is the same at every step; None for others."""
    if any(inside_node.op in (*LEAVES, "mask") for inside_node in below([node])):
        return None
    like: Tensor = next(iter({**blocks.matrices, **blocks.vectors}.values()))
    nothing = {node.graph.leaf("given", "none", "one"): like.new_zeros(())}
    return float(evaluate([node], nothing, blocks)[node].abs().max())


def gradient_norms(track: Track) -> tuple[float, ...]:
    """‖∂L/∂s_t‖₂ at each step, mean over rows."""
    return mean_over_rows([track.in_time(row.gradient.norm(dim=1)) for row in track.rows])


def state_norms(track: Track) -> tuple[float, ...]:
    """‖h_t‖₂ at each step, of the first part of the state, mean over rows."""
    return mean_over_rows([track.in_time(row.new[0].norm(dim=1)) for row in track.rows])


def dependencies(passage: Passage, most_steps: int) -> Tensor:
    """‖∂L_t/∂x_k‖₂ (t, k) of the first row, over its last steps. L_t is the cost of step t:
    −log p(y_t) if each step has an output. x is the input of the lowest layer.

    The row runs once for each t, with the cost of that step alone: one backward pass then computes
    all derivatives."""
    module, steps = passage.module, min(len(passage.rows[0]), most_steps)
    bidirectional = bool(getattr(module, "bidirectional", False))
    whole = bidirectional or not isinstance(module, Recurrent)
    x = passage.rows[0] if whole else passage.rows[0][-steps:]
    entering = passage.entering[0][-steps:]
    copies = x[:, None].expand(-1, steps, -1).detach().clone().requires_grad_()
    begin = None
    if not whole:
        old = [[part[-steps] for part in track.rows[0].old] for track in passage.tracks]
        begin = [tuple(part.expand(steps, -1) for part in parts) for parts in old]
    with recording():  # no kernel is compiled for one pass
        y = _run(module, copies, begin)[-steps:]
    cost = (torch.diagonal(y, dim1=0, dim2=1).t() * entering).sum()
    (slopes,) = torch.autograd.grad(cost, copies)
    norms: Tensor = slopes[-steps:].norm(dim=2).t()
    return norms


def _run(module: torch.nn.Module, x: Tensor, state: object) -> Tensor:
    """y (steps, copies, features) of x (steps, copies, input)."""
    batch_first = bool(getattr(module, "batch_first", False))
    y: Tensor = module(x.transpose(0, 1) if batch_first else x, state)[0]
    return y.transpose(0, 1) if batch_first else y


@dataclass(frozen=True)
class FlowSettings:
    """The settings of a measurement. rows: number of longest rows to measure; steps: maximum number
    of their last steps; map_steps: size of the dependency map; clip: τ of clipping, or None;
    updates: number of updates by the norm-preserving regulariser, or 0."""

    rows: int = 3
    steps: int = 200
    map_steps: int = 100
    clip: float | None = 1.0
    updates: int = 0

    def __post_init__(self) -> None:
        for name, least in {"rows": 1, "steps": 1, "map_steps": 0, "updates": 0}.items():
            if getattr(self, name) < least:
                raise OptionError(
                    f"{name}: expected a whole number ≥ {least}, got {getattr(self, name)}"
                )
        if self.clip is not None and not self.clip > 0:
            raise OptionError(f"clip: expected a norm > 0, got {self.clip}")


@dataclass(frozen=True)
class TrackFlow:
    """The flow of one cell in one direction. gradient: ‖∂L/∂s_t‖ and states: ‖h_t‖ by step; logs:
    log ‖∂s_T/∂s_{T−d}‖ by distance, the median of rows, between `low` and `high`; parts: the same
    for each part of the state; bound: upper bound of a step, None for gated cells; forward: ‖h_t‖
    with other activations."""

    name: str
    cell: str
    hidden_size: int
    parts: dict[str, tuple[float, ...]]
    gradient: tuple[float, ...]
    states: tuple[float, ...]
    logs: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    bound: float | None
    spectra: tuple[Spectrum, ...]
    gates: tuple[GateFlow, ...]
    shortcuts: tuple[Shortcut, ...]
    findings: tuple[Finding, ...]
    forward: dict[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        return len(self.logs) - 1

    @property
    def reach(self) -> int:
        """The largest distance at which at least 1 % of a change remains."""
        return reach_of(self.logs)

    @property
    def rate(self) -> float:
        """The mean factor per step."""
        return rate_of(self.logs)


@dataclass(frozen=True)
class PassageFlow:
    """The flow of a recurrent layer or stack. map: ‖∂L_t/∂x_k‖ by t and k; in_turn: whether it was
    called step by step (the map then treats its inputs as constants)."""

    name: str
    tracks: tuple[TrackFlow, ...]
    map: tuple[tuple[float, ...], ...]
    in_turn: bool


@dataclass(frozen=True)
class Flow:
    """The gradient flow of a network. title: the title of the network; cost: the cost of the
    observed sequences, summed over targets."""

    title: str
    cost: float
    passages: tuple[PassageFlow, ...]
    clipping: Clipping | None = None
    regularised: Regularised | None = None

    @property
    def tracks(self) -> list[TrackFlow]:
        return [track for passage in self.passages for track in passage.tracks]

    @property
    def findings(self) -> list[Finding]:
        return [finding for track in self.tracks for finding in track.findings]

    def __repr__(self) -> str:
        from ensue.diagnose.flow_report import document  # computing must not import printing
        from ensue.drawing.document import as_text

        return as_text(document(self))

    def _repr_html_(self) -> str:
        from ensue.diagnose.flow_report import document  # computing must not import drawing
        from ensue.drawing.document import as_block

        return as_block(document(self))


Forward = Callable[[Track], Mapping[str, tuple[float, ...]]]


def flow_of(
    network: nn.Module,
    cost: Callable[[], Tensor],
    settings: FlowSettings | None = None,
    *,
    title: str = "flow",
    targets: float = 1.0,
    forward: Forward | None = None,
) -> Flow:
    """The gradient flow of every recurrent layer in a network in float64. cost: calls the network
    and returns the sum over all targets; targets: their number; forward: also measure ‖h_t‖ with
    other activations, for cells that have some. The regulariser's updates change the network: pass
    a copy."""
    how = settings or FlowSettings()

    def look() -> Observed:
        return observe(network, cost, how.rows, how.steps)

    observed = look()
    passages = tuple(
        _passage(passage, how, len(observed.passages), forward) for passage in observed.passages
    )
    clipped = None
    if how.clip is not None:
        clipped = clipping(network, lambda: cost() / targets, how.clip)
    regularised = None
    if how.updates:
        regularised = regularise(_recurrent_parameters(observed), look, how.updates)
    return Flow(title, observed.cost, passages, clipped, regularised)


def _passage(
    passage: Passage, how: FlowSettings, many: int, forward: Forward | None
) -> PassageFlow:
    reach_map: tuple[tuple[float, ...], ...] = ()
    if how.map_steps:
        reach_map = tuple(map(tuple, dependencies(passage, how.map_steps).tolist()))
    before = f"{passage.name} " if many > 1 else ""
    with torch.no_grad():
        tracks = tuple(_track(track, f"{before}{track.name}", forward) for track in passage.tracks)
    return PassageFlow(passage.name, tracks, reach_map, passage.in_turn)


def _track(track: Track, name: str, forward: Forward | None) -> TrackFlow:
    decays = [decay(track, row) for row in track.rows]
    logs = _over_rows([row.whole for row in decays], statistics.median)
    bound, gates = step_bound(track), gate_flows(track)
    return TrackFlow(
        name=name,
        cell=type(track.cell).__name__,
        hidden_size=track.hidden_size,
        parts=_parts(decays),
        gradient=gradient_norms(track),
        states=state_norms(track),
        logs=logs,
        low=_over_rows([row.whole for row in decays], min),
        high=_over_rows([row.whole for row in decays], max),
        bound=bound,
        spectra=tuple(spectra(track)),
        gates=tuple(gates),
        shortcuts=tuple(shortcuts(track)),
        findings=tuple(findings_of(name, logs, gates, bound)),
        forward=dict(forward(track)) if forward else {},
    )


def _parts(decays: list[Decay]) -> dict[str, tuple[float, ...]]:
    return {
        name: _over_rows([row.parts[name] for row in decays], statistics.median)
        for name in decays[0].parts
    }


def _over_rows(
    rows: list[tuple[float, ...]], of: Callable[[list[float]], float]
) -> tuple[float, ...]:
    """A statistic by distance, over the rows that are long enough."""
    return tuple(of([value for value in each if value is not None]) for each in zip_longest(*rows))


def _recurrent_parameters(observed: Observed) -> list[nn.Parameter]:
    """The parameters of the cells, each once."""
    modules = {id(passage.module): passage.module for passage in observed.passages}
    parameters = {id(p): p for module in modules.values() for p in module.parameters()}
    return [parameter for parameter in parameters.values() if parameter.requires_grad]
