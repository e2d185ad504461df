"""The learning lab as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ensue.data.layout import aligned
from ensue.study.foundations.lab import Lab, Walk

FORMAT = 1
SHOWN = 5  # places of a descent


def as_text(lab: Lab) -> str:
    parts = [_descent(lab), _costs(lab), _families(lab), _networks(lab), _estimators(lab)]
    parts += [_curves(lab), _stopping(lab)]
    return "\n\n".join(parts)


def as_json(lab: Lab) -> dict[str, Any]:
    return {"format": FORMAT, **asdict(lab)}


def _table(title: str, rows: Sequence[Sequence[str]], note: str = "") -> str:
    lines = [title, *(f"  {line}" for line in aligned(rows))]
    return "\n".join([*lines, note] if note else lines)


def _descent(lab: Lab) -> str:
    def places(walk: Walk) -> list[str]:
        return [f"{x:.6f}" for x in walk.places[:SHOWN]]

    head = ["rate", *(f"x{k}" for k in range(SHOWN)), "after all steps"]
    rows = [[f"{own.rate:g}", *places(own), own.ending] for own in lab.walks]
    return _table("Descent on sin 10x + x from −0.6: x ← x − rate·f'(x)", [head, *rows])


def _costs(lab: Lab) -> str:
    costs = lab.costs
    rows = [["", "least at a", "cost there"]]
    for name, own in (("expected", costs.expected), ("empirical", costs.empirical)):
        rows.append([name, f"{costs.best(name):.2f}", f"{min(own):.6f}"])
    low, high = min(costs.minima), max(costs.minima)
    return _table(
        "The cost of the line a·x: expected over all x in [0, 1], and of ten noisy samples",
        rows,
        f"Over {len(costs.minima)} draws of ten samples, the least lies between a = {low:.2f} and "
        f"{high:.2f}: the minimum one finds is not the one wanted.",
    )


def _families(lab: Lab) -> str:
    rows = [["", "training", "validation", "test"]]
    for own in lab.families.all:
        test = "sealed" if own.test is None else f"{own.test:.4f}"
        rows.append([own.name, f"{own.train:.4f}", f"{own.validation:.4f}", test])
    winner = lab.families.winner.name
    return _table(
        "Families of hypotheses, mean squared error", rows, f"Validation chooses the {winner}."
    )


def _networks(lab: Lab) -> str:
    own = lab.networks
    rows = [
        ["units", *map(str, own.units)],
        ["random first layer", *(f"{error:.4f}" for error in own.random)],
        ["all layers tuned", *(f"{error:.4f}" for error in own.tuned)],
    ]
    return _table("Networks of one hidden layer, mean squared test error", rows)


def _estimators(lab: Lab) -> str:
    found = lab.estimators
    units = range(len(found.exact))
    head = ["", *(f"∂/∂z{k + 1}" for k in units), "bias, errors", "deviation of one draw"]
    rows = [head, ["exact", *(f"{own:.4f}" for own in found.exact), "", ""]]
    for own in found.all:
        bias = max(abs(own.mean[k] - found.exact[k]) / own.error[k] for k in units)
        spread = " ".join(f"{value:.2f}" for value in own.deviation)
        rows.append([own.name, *(f"{value:.4f}" for value in own.mean), f"{bias:.1f}", spread])
    return _table(
        f"Gradients through three coins, mean of {found.draws:,} draws",
        rows,
        "bias, errors: the farthest mean from the exact gradient, in standard errors; within 3 it "
        "may be chance.",
    )


def _curves(lab: Lab) -> str:
    own = lab.curves
    places = [own.seen.index(n) for n in own.seen if n % 128 == 0]
    rows = [
        ["examples seen", *(str(own.seen[k]) for k in places)],
        ["gradient descent", *(f"{own.descent[k]:.4f}" for k in places)],
        ["SGD", *(f"{own.stochastic[k]:.4f}" for k in places)],
    ]
    note = f"The closed form has {own.least:.4f}. SGD is there sooner, and then wanders around it."
    return _table("Gradient descent and SGD, mean squared error over all rows", rows, note)


def _stopping(lab: Lab) -> str:
    own = lab.stopping
    marks = dict.fromkeys((0, own.best, own.stopped, own.updates[-1]))
    places = [own.updates.index(update) for update in marks]
    rows = [
        ["update", *(str(own.updates[k]) for k in places)],
        ["training", *(f"{own.train[k]:.4f}" for k in places)],
        ["validation", *(f"{own.validation[k]:.4f}" for k in places)],
    ]
    note = f"Early stopping gives up at update {own.stopped}, and keeps the weights of {own.best}."
    return _table("Early stopping, a polynomial of degree 13 on sixteen rows", rows, note)
