"""A flow for a terminal, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ensue.data.layout import aligned
from ensue.diagnose.findings import power, reach_of
from ensue.diagnose.flow import Flow, PassageFlow, TrackFlow
from ensue.diagnose.remedies import Regularised

FORMAT = 1
PLACES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # distances and steps that are printed
SHADES = " ░▒▓█"
MOST_SQUARES = 24  # of a map's side in a terminal


def number(value: float) -> str:
    """
    >>> number(0.0312), number(1234.5), number(-2e-9)
    ('0.031', '1.2e+03', '−2e−09')
    """
    return f"{value:.2g}".replace("-", "−") if value else "0"


def as_text(flow: Flow) -> str:
    parts = [flow.title, "\n".join(_findings(flow))]
    for passage in flow.passages:
        parts += [_track(track) for track in passage.tracks]
        if passage.map:
            parts.append(_map(passage))
    parts += _remedies(flow)
    return "\n\n".join(parts)


def _findings(flow: Flow) -> list[str]:
    several = len(flow.tracks) > 1
    return [
        f"{own.name.upper()}{f' ({own.where})' if several else ''}: {own.why}".replace("e-", "e−")
        for own in flow.findings
    ]


def places(most: int, wanted: Sequence[int] = PLACES) -> list[int]:
    """Round numbers up to the greatest, which is among them."""
    return sorted({*(own for own in wanted if own < most), most})


def _track(track: TrackFlow) -> str:
    far = places(track.steps)
    lines = [f"{track.name}: {track.cell} of {track.hidden_size}"]
    table = [["distance t−k", *map(str, far)]]
    table.append(["‖∂h_t/∂h_k‖ measured", *(_power(track.logs[d]) for d in far)])
    table += [
        [f"  of {name} alone", *(_power(own[d]) for d in far)] for name, own in track.parts.items()
    ]
    if track.bound is not None:
        bound = math.log(track.bound) if track.bound > 0 else -math.inf
        table.append(["(λσ_max)^(t−k)", *(_power(d * bound) for d in far)])
    lines += [f"  {line}" for line in aligned(table)]
    lines += [f"  {line}" for line in _theory(track)]
    lines.append(f"  reach: {track.reach} of {track.steps} steps, ×{number(track.rate)} a step")
    at = places(len(track.gradient))
    table = [["step t", *map(str, at)]]
    table.append(["‖∂L/∂h_t‖", *(number(track.gradient[t - 1]) for t in at)])
    table.append(["‖h_t‖", *(number(track.states[t - 1]) for t in at)])
    table += [
        [f"  {name}", *(number(own[t - 1]) for t in at)] for name, own in track.forward.items()
    ]
    table += [[f"gate {own.name}", *(number(own.mean[t - 1]) for t in at)] for own in track.gates]
    table += [[own.equation, *(number(own.arriving[t - 1]) for t in at)] for own in track.shortcuts]
    lines += [f"  {line}" for line in aligned(table)]
    for gate in track.gates:
        lines.append(f"  gate {gate.name}: {gate.shut:.0%} shut, {gate.open:.0%} open for good")
    return "\n".join(lines)


def _theory(track: TrackFlow) -> list[str]:
    """What the matrices say, and what theory allows to conclude."""
    found = [
        f"{own.name}: σ_max {own.singular:.4g}"
        + ("" if own.radius is None else f", spectral radius {own.radius:.4g}")
        for own in track.spectra
    ]
    return [*found, verdict(track)]


def verdict(track: TrackFlow) -> str:
    """What the bound allows to say before anything is measured."""
    if track.bound is None:
        return "no bound of this kind: gates multiply the state; the measurement decides"
    if track.bound < 1:
        return f"λσ_max = {track.bound:.4g} < 1 suffices for vanishing, whatever is read"
    return f"λσ_max = {track.bound:.4g} ≥ 1: necessary for explosion, not sufficient"


def _power(log: float) -> str:
    return power(log).replace("-", "−")


def _map(passage: PassageFlow) -> str:
    """The dependency map in shades, each of a power of ten."""
    squares = pooled(passage.map, MOST_SQUARES)
    most = max((value for row in squares for value in row), default=0.0)
    lines = [
        f"{passage.name}: ‖∂L_t/∂x_k‖, t downwards, k to the right; the darkest is "
        f"{number(most)}, each shade a tenth"
    ]
    for row in squares:
        lines.append("  " + "".join(2 * SHADES[_shade(value, most)] for value in row).rstrip())
    return "\n".join(lines)


def _shade(value: float, most: float) -> int:
    if not value > 0 or not math.isfinite(value) or not math.isfinite(most):
        return 0
    return max(0, len(SHADES) - 1 + math.ceil(math.log10(value / most) - 1e-9))


def pooled(rows: Sequence[Sequence[float]], most: int) -> list[list[float]]:
    """At most so many squares a side, each the greatest of those that it stands for."""
    size = -(-len(rows) // most) or 1
    starts = range(0, len(rows), size)
    return [
        [max(v for row in rows[i : i + size] for v in row[j : j + size]) for j in starts]
        for i in starts
    ]


def _remedies(flow: Flow) -> list[str]:
    found = []
    if flow.clipping is not None:
        own = flow.clipping
        if own.before > own.threshold:
            told = f"{number(own.before)} → {number(own.after)}: a shorter update, the same flow"
        else:
            told = f"{number(own.before)} stays as it is"
        found.append(f"clipping at norm {own.threshold:g}: ‖∇‖ {told}")
    if flow.regularised is not None:
        found.append(_regularised(flow, flow.regularised))
    return found


def _regularised(flow: Flow, own: Regularised) -> str:
    lines = [
        f"norm-preserving regulariser Ω, δ and states held constant, {own.updates} updates by it "
        f"alone: {number(own.before)} → {number(own.after)}"
    ]
    for track, (before, after) in zip(flow.tracks, reaches(flow, own), strict=True):
        far = track.steps
        logs = list(own.decays.values())[flow.tracks.index(track)]
        lines.append(
            f"  {track.name}: reach {before} → {after} steps; over {far} steps "
            f"{_power(track.logs[-1])} → {_power(logs[-1])}"
        )
    return "\n".join(lines)


def reaches(flow: Flow, own: Regularised) -> list[tuple[int, int]]:
    """Of each track, before and after."""
    after = [reach_of(logs) for logs in own.decays.values()]
    return list(zip((track.reach for track in flow.tracks), after, strict=True))


def as_json(flow: Flow) -> dict[str, Any]:
    """All numbers. Norms by distance stand as their natural logarithms."""
    found = asdict(flow)
    for passage, given in zip(found["passages"], flow.passages, strict=True):
        for track, own in zip(passage["tracks"], given.tracks, strict=True):
            track |= {"reach": own.reach, "rate": own.rate, "verdict": verdict(own)}
    return {"format": FORMAT, "findings": [asdict(own) for own in flow.findings], **found}
