"""A flow as a document: findings, the picture, a section for each layer; and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ensue.diagnose.findings import Finding, power, reach_of
from ensue.diagnose.flow import Flow, PassageFlow, TrackFlow
from ensue.diagnose.flow_picture import SAID, draw, number, pooled
from ensue.diagnose.remedies import Regularised
from ensue.drawing.document import Block, Document, Figure, Lines, Paragraph, Section, Table

FORMAT = 1
PLACES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # number of printed distances and steps
SHADES = " ░▒▓█"
MOST_SQUARES = 24  # maximum side of a map in a terminal
OTHER = "gates"  # the colour of a finding that is not named after the gradient's size
NORMS = (
    "h stands for the whole state, all its parts. Norms are spectral for matrices, Euclidean for "
    "vectors; everything is computed in float64."
)


def document(flow: Flow) -> Document:
    """The document: findings, then measurements of each layer and direction, then remedies."""
    blocks: list[Block] = [_finding(finding, len(flow.tracks) > 1) for finding in flow.findings]
    blocks.append(Figure(draw(flow, titled=False)))
    for passage in flow.passages:
        blocks += [_track(track) for track in passage.tracks]
        if passage.map:
            blocks.append(_map(passage))
    blocks += _remedies(flow)
    blocks.append(Section("Conventions", (Paragraph(NORMS, quiet=True),)))
    return Document("Gradient flow", flow.title, blocks, (*SAID.items(), (OTHER, "#6d28d9")))


def _finding(finding: Finding, several: bool) -> Paragraph:
    where = f" ({finding.where})" if several else ""
    colour = finding.name if finding.name in SAID else OTHER
    why = finding.why.replace("e-", "e−")
    return Paragraph(why, label=finding.name, where=where, colour=colour)


def places(most: int, candidates: Sequence[int] = PLACES) -> list[int]:
    """Round numbers up to the greatest candidate, and the greatest itself."""
    return sorted({*(place for place in candidates if place < most), most})


def _track(track: TrackFlow) -> Section:
    far = places(track.steps)
    distances = [["‖∂h_t/∂h_k‖ measured", *(_power(track.logs[d]) for d in far)]]
    distances += [
        [f"  of {name} alone", *(_power(logs[d]) for d in far)]
        for name, logs in track.parts.items()
    ]
    if track.bound is not None:
        bound = math.log(track.bound) if track.bound > 0 else -math.inf
        distances.append(["(λσ_max)^(t−k)", *(_power(d * bound) for d in far)])
    at = places(len(track.gradient))
    steps = [
        ["‖∂L/∂h_t‖", *(number(track.gradient[t - 1]) for t in at)],
        ["‖h_t‖", *(number(track.states[t - 1]) for t in at)],
    ]
    values = [(f"  {name}", norms) for name, norms in track.forward.items()]
    values += [(f"gate {gate.name}", gate.mean) for gate in track.gates]
    values += [(way.equation, way.arriving) for way in track.shortcuts]
    steps += [[name, *(number(row[t - 1]) for t in at)] for name, row in values]
    reach = f"reach: {track.reach} of {track.steps} steps, ×{number(track.rate)} a step"
    shut = [
        f"gate {gate.name}: always shut {gate.shut:.0%}, always open {gate.open:.0%}"
        for gate in track.gates
    ]
    blocks: tuple[Block, ...] = (
        Table(distances, ["distance t−k", *map(str, far)]),
        Lines([*_theory(track), reach]),
        Table(steps, ["step t", *map(str, at)]),
        *([Lines(shut)] if shut else []),
    )
    return Section(f"{track.name}: {track.cell} of {track.hidden_size}", blocks)


def _theory(track: TrackFlow) -> list[str]:
    """The spectra of the matrices, and what follows from theory."""
    texts = [
        f"{spectrum.name}: σ_max {spectrum.singular:.4g}"
        + ("" if spectrum.radius is None else f", spectral radius {spectrum.radius:.4g}")
        for spectrum in track.spectra
    ]
    return [*texts, verdict(track)]


def verdict(track: TrackFlow) -> str:
    """The conclusion from the bound alone, without measurement."""
    if track.bound is None:
        return "no such bound: gates multiply the state; see the measurement"
    if track.bound < 1:
        return f"λσ_max = {track.bound:.4g} < 1 suffices for vanishing, for any input"
    return f"λσ_max = {track.bound:.4g} ≥ 1: necessary for explosion, not sufficient"


def _power(log: float) -> str:
    return power(log).replace("-", "−")


def _map(passage: PassageFlow) -> Section:
    """The dependency map in shades, one per power of ten."""
    squares = pooled(passage.map, MOST_SQUARES)
    most = max((value for row in squares for value in row), default=0.0)
    title = (
        f"{passage.name}: ‖∂L_t/∂x_k‖, t downwards, k to the right; the darkest is "
        f"{number(most)}, each shade a tenth"
    )
    rows = ("".join(2 * SHADES[_shade(value, most)] for value in row).rstrip() for row in squares)
    return Section(title, (Figure("", list(rows)),))


def _shade(value: float, most: float) -> int:
    if not value > 0 or not math.isfinite(value) or not math.isfinite(most):
        return 0
    return max(0, len(SHADES) - 1 + math.ceil(math.log10(value / most) - 1e-9))


def _remedies(flow: Flow) -> list[Section]:
    blocks: list[Block] = []
    if flow.clipping is not None:
        clipping = flow.clipping
        if clipping.before > clipping.threshold:
            change = f"{number(clipping.before)} → {number(clipping.after)}"
            what = f"{change}: a shorter update, the same gradient flow"
        else:
            what = f"{number(clipping.before)} is unchanged"
        blocks.append(Paragraph(f"clipping at norm {clipping.threshold:g}: ‖∇‖ {what}"))
    if flow.regularised is not None:
        blocks += _regularised(flow, flow.regularised)
    return [Section("Remedies", blocks)] if blocks else []


def _regularised(flow: Flow, trial: Regularised) -> list[Block]:
    rows = []
    for track, (before, after) in zip(flow.tracks, reaches(flow, trial), strict=True):
        logs = list(trial.decays.values())[flow.tracks.index(track)]
        rows.append(
            f"{track.name}: reach {before} → {after} steps; over {track.steps} steps "
            f"{_power(track.logs[-1])} → {_power(logs[-1])}"
        )
    what = (
        f"norm-preserving regulariser Ω, δ and states held constant, {trial.updates} updates by it "
        f"alone: {number(trial.before)} → {number(trial.after)}"
    )
    return [Paragraph(what), Lines(rows)]


def reaches(flow: Flow, regularised: Regularised) -> list[tuple[int, int]]:
    """The reach of each track, before and after."""
    after = [reach_of(logs) for logs in regularised.decays.values()]
    return list(zip((track.reach for track in flow.tracks), after, strict=True))


def as_json(flow: Flow) -> dict[str, Any]:
    """All numbers. Norms by distance are natural logarithms."""
    facts = asdict(flow)
    for passage, source in zip(facts["passages"], flow.passages, strict=True):
        for track, source_track in zip(passage["tracks"], source.tracks, strict=True):
            track |= {
                "reach": source_track.reach,
                "rate": source_track.rate,
                "verdict": verdict(source_track),
            }
    return {"format": FORMAT, "findings": [asdict(finding) for finding in flow.findings], **facts}
