"""Backpropagation through time for a terminal, and as JSON."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ensue.data.layout import aligned
from ensue.study.foundations.backprop_text import NAMES, number, vector
from ensue.study.foundations.bptt_walk import BpttWalk, Term, readout_names

FORMAT = 1
COST_TEXTS = {
    "linear": "½‖ŷ − y‖²",
    "logistic": "cross-entropy of σ",
    "softmax": "cross-entropy of softmax",
}


def heading(walk: BpttWalk) -> str:
    sizes = f"{len(walk.steps[0].x)} → {walk.hidden_size} → {len(walk.steps[0].guess)}"
    return (
        f"{type(walk.cell).__name__}, {sizes}, "
        f"{len(walk.steps)} steps; J(t) = {COST_TEXTS[walk.output]} of the outputs "
        f"{walk.first} to {walk.last}, summed"
    )


def shown(values: Tensor) -> str:
    """One number as it is, several as their norm."""
    return number(values.flatten()[0]) if values.numel() == 1 else f"‖{number(values.norm())}‖"


def as_text(walk: BpttWalk) -> str:
    lines = [heading(walk), "", *_indented(equations_of(walk).splitlines())]
    through = "" if walk.output == "linear" else f", through {NAMES[walk.output]}"
    lines += ["", f"forward: ŷ = {'·h + '.join(readout_names(walk.cell))}{through}"]
    lines += _indented(aligned(_forward(walk)))
    lines += ["", "backward: ∂J(t)/∂h_k, by the paths from the cost to each state"]
    lines += _indented(aligned(_paths(walk)))
    for parameter in walk.cell_parameters:
        for block in walk.blocks(parameter, walk.parameters[parameter]):
            lines += ["", f"∂J(t)/∂{block}: terms by t (downwards) and k (to the right)"]
            lines += _indented(aligned(_terms(walk, parameter, block)))
    lines += ["", f"one update, θ ← θ − {walk.rate:g}·∂J/∂θ"]
    lines += _indented(aligned(_update(walk)))
    lines += [
        f"  J = {number(walk.cost)} → {number(walk.cost_after)}",
        "",
        f"largest difference from the automatic gradient: {walk.difference:.1e}",
    ]
    return "\n".join(lines)


def equations_of(walk: BpttWalk) -> str:
    return walk.cell.equations(len(walk.steps[0].x), walk.hidden_size).text()


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _forward(walk: BpttWalk) -> list[list[str]]:
    head = ["t", "x", "state", "ŷ", "y", "J(t)"]
    rows = [
        [
            str(t),
            vector(own.x),
            vector(own.state),
            vector(own.guess),
            vector(own.wanted),
            "costs nothing" if own.cost is None else number(own.cost),
        ]
        for t, own in enumerate(walk.steps, 1)
    ]
    return [head, *rows]


def _paths(walk: BpttWalk) -> list[list[str]]:
    head = ["path", "∂J(t)/∂h_k", "norm"]
    return [head, *([own.path, vector(own.delta), number(own.delta.norm())] for own in walk.terms)]


def block_of(walk: BpttWalk, term: Term, parameter: str, block: str) -> Tensor:
    return walk.blocks(parameter, term.by_parameter[parameter])[block]


def _terms(walk: BpttWalk, parameter: str, block: str) -> list[list[str]]:
    last = max((own.k for own in walk.terms), default=0)
    rows = [["", *(f"k = {k}" for k in range(1, last + 1)), "sum"]]
    for t in range(walk.first, walk.last + 1):
        own = {term.k: block_of(walk, term, parameter, block) for term in walk.terms if term.t == t}
        cells = [shown(own[k]) if k in own else "" for k in range(1, last + 1)]
        total = sum(own.values(), start=0 * next(iter(own.values())))
        rows.append([f"t = {t}", *cells, shown(total)])
    whole = walk.blocks(parameter, walk.gradient[parameter])[block]
    return [*rows, ["all", *[""] * last, shown(whole)]]


def _update(walk: BpttWalk) -> list[list[str]]:
    rows = [["", "before", "∂J/∂θ", "after"]]
    for name, values in walk.parameters.items():
        kinds = (values, walk.gradient[name], walk.updated[name])
        before, slope, after = (walk.blocks(name, own) for own in kinds)
        rows += [
            [block, *(vector(own[block].flatten()) for own in (before, slope, after))]
            for block in before
        ]
    return rows


def as_json(walk: BpttWalk) -> dict[str, Any]:
    def plain(values: dict[str, Tensor]) -> dict[str, Any]:
        return {name: own.tolist() for name, own in values.items()}

    return {
        "format": FORMAT,
        "cell": type(walk.cell).__name__,
        "output": walk.output,
        "cost_at": [walk.first, walk.last],
        "rate": walk.rate,
        "parameters": plain(walk.parameters),
        "steps": [
            {
                "x": own.x.tolist(),
                "state": own.state.tolist(),
                "output": own.guess.tolist(),
                "target": own.wanted.tolist(),
                "cost": own.cost,
            }
            for own in walk.steps
        ],
        "terms": [
            {
                "t": own.t,
                "k": own.k,
                "path": own.path,
                "delta": own.delta.tolist(),
                "norms": {name: float(v.norm()) for name, v in own.by_parameter.items()},
                "terms": plain(own.by_parameter),
            }
            for own in walk.terms
        ],
        "gradient": plain(walk.gradient),
        "updated": plain(walk.updated),
        "cost": walk.cost,
        "cost_after": walk.cost_after,
        "difference": walk.difference,
    }
