"""The gates of a cell, found in its graph, and what a state keeps past them.

A gate is a logistic function of input or state that multiplies something. The share of a state part
that a step keeps is the factor of its old value in its new one, along elementwise sums and
products: z of a GRU, 1 − u of other conventions, f of an LSTM's c. A value written at step k
reaches step t by the shortcut write_k * Π_{j=k+1..t} keep_j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ensue.diagnose.observe import RowTrack, Track
from ensue.engine.bptt import step_leaves
from ensue.engine.interpreter import evaluate
from ensue.equations import Equations, Node, below

SHUT, OPEN = 0.001, 0.999  # beyond these a gate's slope is less than 1/250 of its maximum
CANDIDATES = ("tanh", "relu", "softplus")


@dataclass(frozen=True)
class GateFlow:
    """A gate over time: its mean over units and rows at each step; the shares of all its values
    below SHUT and above OPEN."""

    name: str
    mean: tuple[float, ...]
    shut: float
    open: float

    @property
    def saturated(self) -> float:
        return self.shut + self.open


@dataclass(frozen=True)
class Shortcut:
    """The direct path of a part of the state. keep: the share that each step keeps, mean over units
    and rows; arriving: the share of each step's write that remains after the last step; equation:
    both as text, "i_k * Π f_j"."""

    part: str
    equation: str
    keep: tuple[float, ...]
    arriving: tuple[float, ...]


def gates_of(equations: Equations) -> list[Node]:
    """Logistic functions of x or the state that multiply something, by themselves or as 1 − g."""
    nodes = below(equations.roots)
    factors = {argument for node in nodes if node.op == "multiply" for argument in node.args}
    gates = []
    for node in nodes:
        if node.op == "sigmoid" and any(
            node_below.op in ("x", "state") for node_below in below([node])
        ):
            turned = {each for each in nodes if each.op == "add" and _is_rest(each, node)}
            if factors & {node, *turned}:
                gates.append(node)
    return gates


def _is_rest(node: Node, gate: Node) -> bool:
    """Whether a sum is 1 − g."""
    kinds = {
        "one" if arg.is_constant(1.0) else "gate" if arg.op == "negative" and arg.args[0] is gate
        else ""
        for arg in node.args
    }  # fmt: skip
    return kinds == {"one", "gate"}


def gate_name(equations: Equations, gate: Node, number: int) -> str:
    """The author's name of a gate; if there is none, a name from its matrix."""
    if gate in equations.names:
        return equations.names[gate]
    products = [node.attr for node in below([gate]) if node.op == "product"]
    letters = {ref.gate or ref.name for ref in products}
    return letters.pop() if len(letters) == 1 else f"gate {number}"


def gate_flows(track: Track) -> list[GateFlow]:
    equations = track.equations
    gates = gates_of(equations)
    values = [_values(track, row, gates) for row in track.rows]
    flows = []
    for k, gate in enumerate(gates):
        values_of_gate = [row[k] for row in values]
        flat = torch.cat(values_of_gate)
        flows.append(
            GateFlow(
                gate_name(equations, gate, k + 1),
                mean_over_rows([track.in_time(row.mean(1)) for row in values_of_gate]),
                float((flat < SHUT).double().mean()),
                float((flat > OPEN).double().mean()),
            )
        )
    return flows


def _values(track: Track, row: RowTrack, nodes: Sequence[Node]) -> list[Tensor]:
    """The values of nodes, each (steps, features), in the order of computation."""
    if not nodes:
        return []
    leaves = step_leaves(track.equations, row.x, row.old, None)
    known = evaluate(nodes, leaves, track.blocks)
    return [known[node].expand(len(row.x), node.width) for node in nodes]


def mean_over_rows(rows: Sequence[Tensor]) -> tuple[float, ...]:
    """The mean of rows (steps,) of unequal length at each step, over the rows that have it."""
    longest = max(len(row) for row in rows)
    means = []
    for step in range(longest):
        present = [float(row[step]) for row in rows if step < len(row)]
        means.append(sum(present) / len(present))
    return tuple(means)


# --- the shortcut ----------------------------------------------------------------------------


def factor_in(root: Node, node: Node) -> Node | None:
    """The factor by which `root` multiplies `node`, feature by feature; None if `node` only occurs
    inside a function or a matrix product."""
    graph = root.graph
    if root is node:
        return graph.constant(1.0)
    if root.op == "add":
        terms = [term for term in (factor_in(argument, node) for argument in root.args) if term]
        return graph.add(*terms) if terms else None
    if root.op == "negative":
        inside = factor_in(root.args[0], node)
        return None if inside is None else -inside
    if root.op == "multiply":
        a, b = root.args
        of_a, of_b = factor_in(a, node), factor_in(b, node)
        if (of_a is None) == (of_b is None):
            return None
        return of_a * b if of_a is not None else a * of_b  # type: ignore[operator]
    return None


def shortcuts(track: Track) -> list[Shortcut]:
    """A shortcut for each part of the state that keeps a share of itself and writes a candidate."""
    equations = track.equations
    ways = []
    for part, root in equations.state.items():
        keep = factor_in(root, equations.old[part])
        candidates = [node for node in below([root]) if node.op in CANDIDATES]
        writes = [write for write in (factor_in(root, c) for c in candidates) if write is not None]
        if keep is None or len(writes) != 1 or keep.is_constant(0.0):
            continue
        ways.append(_shortcut(track, part, keep, writes[0]))
    return ways


def _shortcut(track: Track, part: str, keep: Node, write: Node) -> Shortcut:
    factors, arriving = [], []
    for row in track.rows:
        keeps, writes = _values(track, row, [keep, write])
        width = max(keeps.shape[1], writes.shape[1])
        keeps, writes = keeps.expand(-1, width), writes.expand(-1, width)
        later = torch.cat([keeps[1:].flip(0).cumprod(0).flip(0), torch.ones_like(keeps[:1])])
        factors.append(track.in_time(keeps.mean(1)))
        arriving.append(track.in_time((writes * later).mean(1)))
    names = _Names(track.equations)
    equation = f"{names.of(write)}_k Π {names.of(keep)}_j"
    return Shortcut(part, equation, mean_over_rows(factors), mean_over_rows(arriving))


class _Names:
    """Writes factors as text: u, (1 − u), 0.5."""

    def __init__(self, equations: Equations) -> None:
        gates = gates_of(equations)
        self.names = {g: gate_name(equations, g, k + 1) for k, g in enumerate(gates)}

    def of(self, node: Node) -> str:
        if node in self.names:
            return self.names[node]
        if node.op == "constant":
            return f"{node.attr:g}"
        for gate, name in self.names.items():
            if _is_rest(node, gate):
                return f"(1−{name})"
        return "factor"
