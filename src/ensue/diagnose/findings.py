"""Named findings on a gradient flow, each explained in one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ensue.diagnose.gates import GateFlow

LEFT, GROWN = 0.01, 100.0  # thresholds of a derivative that vanished or exploded
STUCK = 0.5  # share of a gate's values from which it is called saturated


@dataclass(frozen=True)
class Finding:
    """A finding about gradient flow. name: vanishing, exploding, saturated gates or healthy; where:
    layer and direction."""

    name: str
    where: str
    why: str


def reach_of(logs: Sequence[float]) -> int:
    """The greatest distance up to which ‖∂s_T/∂s_{T−d}‖ never falls below 1 %."""
    least = math.log(LEFT)
    for distance, log in enumerate(logs):
        if log < least:
            return distance - 1
    return len(logs) - 1


def rate_of(logs: Sequence[float]) -> float:
    """The mean factor per step, from the norm at the greatest distance with a finite logarithm."""
    finite = [(d, log) for d, log in enumerate(logs) if d and math.isfinite(log)]
    if not finite:
        return 0.0
    distance, last = finite[-1]
    return math.exp(last / distance)


def findings_of(
    where: str, logs: Sequence[float], gates: Sequence[GateFlow], bound: float | None
) -> list[Finding]:
    """The findings of a layer. logs: log ‖∂s_T/∂s_{T−d}‖ by distance; bound: the bound for one
    step, None if unbounded."""
    steps = len(logs) - 1
    findings = []
    most = max(range(len(logs)), key=lambda d: logs[d])
    if logs[most] > math.log(GROWN):
        why = (
            f"‖∂h_t/∂h_k‖ grows to {power(logs[most])} over {most} steps, "
            f"×{math.exp(logs[most] / most):.3g} a step"
        )
        if bound is not None:
            why += f"; it may, since λσ_max = {bound:.3g} > 1"
        findings.append(Finding("exploding", where, why))
    stuck = [gate for gate in gates if gate.saturated > STUCK]
    if stuck:
        listed = ", ".join(f"{gate.name} {_stuck(gate)}" for gate in stuck)
        why = f"{listed}: beyond 0.001 or 0.999 its slope is gone, and it cannot learn"
        findings.append(Finding("saturated gates", where, why))
    reach = reach_of(logs)
    if reach < steps and logs[-1] < math.log(LEFT):
        why = (
            f"‖∂h_t/∂h_k‖ falls below 1 % after {reach + 1} of {steps} steps, "
            f"×{rate_of(logs):.3g} a step"
        )
        if bound is not None and bound < 1:
            why += f"; it must, since λσ_max = {bound:.3g} < 1"
        findings.append(Finding("vanishing", where, why))
    if not findings:
        why = (
            f"‖∂h_t/∂h_k‖ stays between {power(min(logs))} and {power(max(logs))} over all "
            f"{steps} steps" + ", and no gate is stuck" * bool(gates)
        )
        findings.append(Finding("healthy", where, why))
    return findings


def _stuck(gate: GateFlow) -> str:
    side, share = ("open", gate.open) if gate.open >= gate.shut else ("shut", gate.shut)
    return f"is {side} at {share:.0%} of all steps and units"


def power(log: float) -> str:
    """e^log as text, however large or small.

    >>> power(0.0), power(-10.0), power(1000.0)
    ('1', '4.5e-05', '2e+434')
    """
    if log == -math.inf:
        return "0"
    if abs(log) < 650:
        return f"{math.exp(log):.2g}"
    tens = math.floor(log / math.log(10) + 1e-9)
    return f"{math.exp(log - tens * math.log(10)):.1g}e{tens:+d}"
