"""How gradients flow through the recurrent layers of a network: measured, bounded, judged."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

import torch
from torch import Tensor, nn

from ensue.diagnose.bound import Spectrum, spectra, step_bound
from ensue.diagnose.findings import Finding, findings_of, rate_of, reach_of
from ensue.diagnose.gates import GateFlow, Shortcut, gate_flows, shortcuts
from ensue.diagnose.gradients import dependencies, gradient_norms, state_norms
from ensue.diagnose.jacobians import Decay, decay
from ensue.diagnose.observe import Observed, Passage, Track, observe
from ensue.diagnose.remedies import Clipping, Regularised, clipping, regularise
from ensue.errors import OptionError


@dataclass(frozen=True)
class FlowSettings:
    """rows: the longest ones, whose mean is shown; steps: the last ones of them; map_steps: of the
    dependency map; clip: τ of clipping, None for none; updates: by the norm-preserving regulariser,
    0 for none."""

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
    """One cell in one direction. gradient: ‖∂L/∂s_t‖ and states: ‖h_t‖ by step; logs: log
    ‖∂s_T/∂s_{T−d}‖ by distance, the median of rows, between `low` and `high`; parts: the same of
    each part of the state; bound: the most that a step can be, None for gated cells; forward: ‖h_t‖
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
        """The distance up to which at least 1 % of a change is left."""
        return reach_of(self.logs)

    @property
    def rate(self) -> float:
        """The factor of a step."""
        return rate_of(self.logs)


@dataclass(frozen=True)
class PassageFlow:
    """A recurrent layer or stack. map: ‖∂L_t/∂x_k‖ by t and k; in_turn: it was called step by
    step, and its map holds what it read constant."""

    name: str
    tracks: tuple[TrackFlow, ...]
    map: tuple[tuple[float, ...], ...]
    in_turn: bool


@dataclass(frozen=True)
class Flow:
    """What was found. title: of what; cost: of the sequences looked at, summed over targets."""

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
        from ensue.diagnose.flow_text import as_text  # printing is no part of computing

        return as_text(self)

    def _repr_html_(self) -> str:
        from ensue.diagnose.flow_page import notebook  # drawing is no part of computing

        return notebook(self)


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
    """Of every recurrent layer in a network in float64. cost: calls the network, and is summed over
    so many `targets`; forward: ‖h_t‖ with other activations, of cells that have some. The
    regulariser's updates change the network: hand over a copy."""
    how = settings or FlowSettings()

    def look() -> Observed:
        return observe(network, cost, how.rows, how.steps)

    seen = look()
    passages = tuple(_passage(own, how, len(seen.passages), forward) for own in seen.passages)
    clipped = None
    if how.clip is not None:
        clipped = clipping(network, lambda: cost() / targets, how.clip)
    regularised = None
    if how.updates:
        regularised = regularise(_recurrent_parameters(seen), look, how.updates)
    return Flow(title, seen.cost, passages, clipped, regularised)


def _passage(
    passage: Passage, how: FlowSettings, many: int, forward: Forward | None
) -> PassageFlow:
    found: tuple[tuple[float, ...], ...] = ()
    if how.map_steps:
        found = tuple(map(tuple, dependencies(passage, how.map_steps).tolist()))
    before = f"{passage.name} " if many > 1 else ""
    with torch.no_grad():
        tracks = tuple(_track(own, f"{before}{own.name}", forward) for own in passage.tracks)
    return PassageFlow(passage.name, tracks, found, passage.in_turn)


def _track(track: Track, name: str, forward: Forward | None) -> TrackFlow:
    decays = [decay(track, row) for row in track.rows]
    logs = _over_rows([own.whole for own in decays], statistics.median)
    bound, gates = step_bound(track), gate_flows(track)
    return TrackFlow(
        name=name,
        cell=type(track.cell).__name__,
        hidden_size=track.hidden_size,
        parts=_parts(decays),
        gradient=gradient_norms(track),
        states=state_norms(track),
        logs=logs,
        low=_over_rows([own.whole for own in decays], min),
        high=_over_rows([own.whole for own in decays], max),
        bound=bound,
        spectra=tuple(spectra(track)),
        gates=tuple(gates),
        shortcuts=tuple(shortcuts(track)),
        findings=tuple(findings_of(name, logs, gates, bound)),
        forward=dict(forward(track)) if forward else {},
    )


def _parts(decays: list[Decay]) -> dict[str, tuple[float, ...]]:
    return {
        name: _over_rows([own.parts[name] for own in decays], statistics.median)
        for name in decays[0].parts
    }


def _over_rows(
    rows: list[tuple[float, ...]], of: Callable[[list[float]], float]
) -> tuple[float, ...]:
    """By distance, of the rows that are so long."""
    return tuple(of([own for own in each if own is not None]) for each in zip_longest(*rows))


def _recurrent_parameters(seen: Observed) -> list[nn.Parameter]:
    """Those of the cells, each once."""
    modules = {id(own.module): own.module for own in seen.passages}
    found = {id(p): p for module in modules.values() for p in module.parameters()}
    return [own for own in found.values() if own.requires_grad]
