"""Whether a cell is one of ONNX's recurrent operators, and the operator's tensors if it is.

The cell's graph is compared with those of `cells.py`: terms and factors may be in any order, a bias
may be missing or a sum of several, and a gate may be inverted (u = 1 − z: σ(−v) = 1 − σ(v), so its
weights change their sign).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.cells import Cell
from ensue.engine.native.emission.buffers import gate_number
from ensue.equations import (
    Equations,
    Matrix,
    MatrixRef,
    Node,
    Vector,
    VectorRef,
    below,
    exp,
    maximum,
    minimum,
    prelu,
    relu,
    sigmoid,
    softplus,
    tanh,
)
from ensue.errors import OptionError, unknown
from ensue.export.stack import Direction

# -------------------------------------------------------------------------------------------------
# ONNX's recurrent operators as cells: the result of `from_onnx`, and the patterns with which cells
# are compared.
#
# Gates have the letters of ONNX's documentation: RNN i; GRU z r h; LSTM i o f c. Its two biases add
# up to b, except the bias d inside a GRU's reset.

Parameters = tuple[float, float]  # defaults of a function's alpha and beta

FUNCTIONS: dict[str, Callable[[Any, float, float], Any]] = {
    "Relu": lambda v, a, b: relu(v),
    "Tanh": lambda v, a, b: tanh(v),
    "Sigmoid": lambda v, a, b: sigmoid(v),
    "Affine": lambda v, a, b: v if (a, b) == (1.0, 0.0) else a * v + b,
    "LeakyRelu": lambda v, a, b: prelu(v, a),
    "ScaledTanh": lambda v, a, b: a * tanh(b * v),
    "HardSigmoid": lambda v, a, b: maximum(minimum(a * v + b, 1.0), 0.0),
    "Elu": lambda v, a, b: relu(v) + a * (exp(-relu(-v)) - 1),
    "Softsign": lambda v, a, b: v / (1 + maximum(v, -v)),
    "Softplus": lambda v, a, b: softplus(v),
}
DEFAULTS: dict[str, Parameters] = {
    "Affine": (1.0, 0.0),
    "LeakyRelu": (0.01, 0.0),
    "ScaledTanh": (1.0, 1.0),
    "HardSigmoid": (0.2, 0.5),
    "Elu": (1.0, 0.0),
}


class Activation:
    """A function by its ONNX name, with alpha and beta; its argument is clipped first."""

    def __init__(
        self, name: str, alpha: float | None = None, beta: float | None = None, clip: float = 0.0
    ) -> None:
        known = {name.lower(): name for name in FUNCTIONS}
        if name.lower() not in known:
            raise unknown("ONNX activation", name, FUNCTIONS)
        self.name = known[name.lower()]
        usual = DEFAULTS.get(self.name, (1.0, 0.0))
        self.alpha = usual[0] if alpha is None else alpha
        self.beta = usual[1] if beta is None else beta
        if clip < 0:
            raise OptionError(f"clip: expected a number ≥ 0, got {clip}")
        self.clip = clip

    def __call__(self, v: Any) -> Any:
        if self.clip:
            v = minimum(maximum(v, -self.clip), self.clip)
        return FUNCTIONS[self.name](v, self.alpha, self.beta)


class OperatorRNN(Cell):
    """RNN: h' = f(W·x + R·h + b)."""

    W, R, b = Matrix("x", "i"), Matrix("h", "i"), Vector("i")

    def __init__(self, f: Activation) -> None:
        self.f = f

    def step(self, x: Any, h: Any) -> Any:
        return self.f(self.W.i @ x + self.R.i @ h + self.b.i)


class OperatorGRU(Cell):
    """GRU: h' = (1 − z)*n + z*h, reset before the product, or after it (linear_before_reset)."""

    W, R, b = Matrix("x", "zrh"), Matrix("h", "zrh"), Vector("zrh")

    def __init__(self, f: Activation, g: Activation, linear_before_reset: bool = False) -> None:
        self.f, self.g, self.linear_before_reset = f, g, linear_before_reset
        if linear_before_reset:
            self.d = Vector()

    def step(self, x: Any, h: Any) -> Any:
        W, R, b = self.W, self.R, self.b
        z = self.f(W.z @ x + R.z @ h + b.z)
        n = self._candidate(x, h)
        return (1 - z) * n + z * h

    def _candidate(self, x: Any, h: Any) -> Any:
        W, R, b = self.W, self.R, self.b
        r = self.f(W.r @ x + R.r @ h + b.r)
        if self.linear_before_reset:
            return self.g(W.h @ x + r * (R.h @ h + self.d) + b.h)
        return self.g(W.h @ x + R.h @ (r * h) + b.h)


class OperatorLSTM(Cell):
    """LSTM: c' = f*c + i*n, h' = o*tanh(c'), with peepholes, or with f = 1 − i (input_forget)."""

    def __init__(
        self,
        f: Activation,
        g: Activation,
        h: Activation,
        peepholes: bool = False,
        input_forget: bool = False,
    ) -> None:
        self.f, self.g, self.squash = f, g, h
        self.peepholes, self.input_forget = peepholes, input_forget
        gates = "ioc" if input_forget else "iofc"
        self.W, self.R, self.b = Matrix("x", gates), Matrix("h", gates), Vector(gates)
        if peepholes:
            self.p = Vector(gates[:-1])

    def _gate(self, name: str, x: Any, h: Any, c: Any) -> Any:
        W, R, b = (getattr(field, name) for field in (self.W, self.R, self.b))
        total = W @ x + R @ h
        return self.f(total + getattr(self.p, name) * c + b if self.peepholes else total + b)

    def step(self, x: Any, h: Any, c: Any) -> Any:
        i = self._gate("i", x, h, c)
        f = 1 - i if self.input_forget else self._gate("f", x, h, c)
        n = self.g(self.W.c @ x + self.R.c @ h + self.b.c)
        c = f * c + i * n
        o = self._gate("o", x, h, c)
        return o * self.squash(c), c


Floats = NDArray[np.float32]
Binding = dict[MatrixRef | VectorRef, Any]  # to a MatrixRef, or to VectorRefs that add up
MOST_TERMS = 6  # maximum terms of a sum whose orders are all tried


class UpdatingGRU(OperatorGRU):
    """A GRU with the inverted update gate: h' = u*n + (1 − u)*h."""

    def step(self, x: Any, h: Any) -> Any:
        W, R, b = self.W, self.R, self.b
        u = self.f(W.z @ x + R.z @ h + b.z)
        n = self._candidate(x, h)
        return u * n + (1 - u) * h


class ForgettingLSTM(OperatorLSTM):
    """An LSTM with coupled gates, written with the forget gate: c' = f*c + (1 − f)*n."""

    def step(self, x: Any, h: Any, c: Any) -> Any:
        f = self._gate("i", x, h, c)
        n = self.g(self.W.c @ x + self.R.c @ h + self.b.c)
        c = f * c + (1 - f) * n
        o = self._gate("o", x, h, c)
        return o * self.squash(c), c


@dataclass(frozen=True)
class Pattern:
    """A kind of operator with some of its options. gates: the gates in the order of the operator's
    tensors; negated: gates whose weights change their sign."""

    operator: str
    cell: Cell
    gates: str
    activations: tuple[Activation, ...]
    negated: str = ""
    attributes: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Operator:
    """A node of ONNX: its attributes, and tensors with an axis of one direction in front."""

    name: str
    attributes: dict[str, Any]
    W: Floats
    R: Floats
    B: Floats
    P: Floats | None = None


@cache
def patterns(clip: float) -> list[Pattern]:
    def scaled_activation(name: str) -> Activation:
        return Activation(name, clip=clip)

    limits = (("clip", clip),) if clip else ()
    matching = []
    for name in ("Tanh", "Relu", "Sigmoid", "Affine", "Softplus"):
        f = scaled_activation(name)
        matching.append(Pattern("RNN", OperatorRNN(f), "i", (f,), "", limits))
    gate = scaled_activation("Sigmoid")
    for name in ("Tanh", "Relu", "Sigmoid"):
        g = scaled_activation(name)
        for after in (False, True):
            more = (*limits, ("linear_before_reset", int(after)))
            for gru, negated in ((OperatorGRU, ""), (UpdatingGRU, "z")):
                own_gru = gru(gate, g, after)
                matching.append(Pattern("GRU", own_gru, "zrh", (gate, g), negated, more))
    for name in ("Tanh", "Relu", "Sigmoid"):
        g, h = scaled_activation(name), Activation("Tanh")
        for peepholes in (False, True):
            plain = OperatorLSTM(gate, g, h, peepholes)
            matching.append(Pattern("LSTM", plain, "iofc", (gate, g, h), "", limits))
            more = (*limits, ("input_forget", 1))
            for lstm, negated in ((OperatorLSTM, ""), (ForgettingLSTM, "i")):
                coupled = lstm(gate, g, h, peepholes, True)
                matching.append(Pattern("LSTM", coupled, "iofc", (gate, g, h), negated, more))
    return matching


# --- matching ------------------------------------------------------------------------------------


def match(pattern: Equations, equations: Equations) -> Binding | None:
    """Maps the pattern's parameters to the cell's parameters; None if the cell does not match."""
    sizes = [node.width for node in equations.old.values()]
    parts = dict(zip(pattern.old.values(), equations.old.values(), strict=False))
    if len(pattern.old) != len(equations.old) or len(set(sizes)) > 1:
        return None
    if equations.output is not next(iter(equations.state.values())):
        return None
    matcher = _Matcher(parts, pattern.x, equations.x)
    pairs = list(zip(pattern.state.values(), equations.state.values(), strict=True))
    return next(matcher.all_of(pairs, {}), None)


class _Matcher:
    def __init__(self, parts: dict[Node, Node], x: Node, own_x: Node) -> None:
        self.leaves = {**parts, x: own_x}

    def all_of(self, pairs: list[tuple[Node, Node]], bound: Binding) -> Iterator[Binding]:
        if not pairs:
            yield bound
            return
        (a, b), *rest = pairs
        for binding in self.one(a, b, bound):
            yield from self.all_of(rest, binding)

    def one(self, a: Node, b: Node, bound: Binding) -> Iterator[Binding]:
        """Yields every way to match b with the pattern a."""
        if a.op in ("x", "state"):
            if self.leaves[a] is b:
                yield bound
        elif a.op == "constant":
            if b.op == "constant" and np.float32(a.attr) == np.float32(b.attr):
                yield bound
        elif a.op == "add":
            yield from self._sum(a, b, bound)
        elif a.op == "vector":
            if b.op == "vector" and b.size != "one":
                yield from self._bind(a.attr, (b.attr,), bound)
        elif a.op != b.op or len(a.args) != len(b.args):
            return
        elif a.op == "product":
            for binding in self._bind(a.attr, b.attr, bound):
                yield from self.one(a.args[0], b.args[0], binding)
        elif a.op == "multiply":
            for order in permutations(b.args):
                yield from self.all_of(list(zip(a.args, order, strict=True)), bound)
        else:
            yield from self.all_of(list(zip(a.args, b.args, strict=True)), bound)

    def _bind(self, ref: Any, value: Any, bound: Binding) -> Iterator[Binding]:
        if bound.get(ref, value) == value:
            yield {**bound, ref: value}

    def _sum(self, a: Node, b: Node, bound: Binding) -> Iterator[Binding]:
        """Matches terms in any order; the bias of the pattern is the sum of all biases."""
        biases, other_terms = _parted(_terms(a))
        own_biases, terms = _parted(_terms(b))
        if len(other_terms) != len(terms) or len(terms) > MOST_TERMS:
            return
        if own_biases and not biases:
            return
        for bias in biases:
            refs = tuple(sorted(node.attr for node in own_biases))
            if bound.get(bias.attr, refs) != refs:
                return
            bound = {**bound, bias.attr: refs}
        for order in permutations(terms):
            yield from self.all_of(list(zip(other_terms, order, strict=True)), bound)


def _terms(node: Node) -> list[Node]:
    """The terms of a sum; nested sums are flattened."""
    if node.op != "add":
        return [node]
    return [term for arg in node.args for term in _terms(arg)]


def _parted(terms: list[Node]) -> tuple[list[Node], list[Node]]:
    biases = [term for term in terms if term.op == "vector" and term.size != "one"]
    return biases, [term for term in terms if term not in biases]


def _clips(equations: Equations) -> set[float]:
    """Possible clipping bounds of values, including 0 for no clipping."""
    bounds = {
        abs(a.attr)
        for node in below(equations.roots)
        if node.op == "maximum"
        for a in node.args
        if a.is_constant()
    }
    return {0.0, *bounds}


# --- tensors -------------------------------------------------------------------------------------


def operator_of(direction: Direction) -> Operator | None:
    """The standard operator that equals the cell; None if there is none."""
    traced = direction.equations
    sizes = traced.x.width, next(iter(traced.old.values())).width
    for clip in sorted(_clips(traced)):
        for pattern in patterns(clip):
            expected = pattern.cell.equations(*sizes, training=False)
            bound = match(expected, traced)
            if bound is not None:
                return _tensors(direction, pattern, bound, sizes[1])
    return None


def _tensors(direction: Direction, pattern: Pattern, bound: Binding, hidden: int) -> Operator:
    def sign(gate: str) -> float:
        return -1.0 if gate in pattern.negated else 1.0

    def block(ref: Any) -> Floats:
        first = gate_number(direction.equations, ref) * hidden
        return np.asarray(direction.weights[ref.name].value[first : first + hidden])

    refs = {(ref.name, ref.gate): value for ref, value in bound.items()}

    def stacked(name: str, gates: str) -> Floats:
        blocks = []
        for gate in gates:
            parts = refs.get((name, gate), ())
            listed = parts if isinstance(parts, tuple) else (parts,)
            shape: tuple[int, ...] = (hidden,)
            if name in "WR":
                other = direction.input_size if name == "W" else hidden
                shape = (hidden, other)
            total = sum((block(ref) for ref in listed), np.zeros(shape, np.float32))
            blocks.append(sign(gate) * total)
        return np.concatenate(blocks).astype(np.float32)[None]

    gates = pattern.gates
    b, inside = stacked("b", gates), np.zeros((1, len(gates) * hidden), np.float32)
    if ("d", "") in refs:
        inside[0, -hidden:] = sum((block(ref) for ref in refs["d", ""]), np.zeros(hidden))
    peepholes = stacked("p", "iof") if any(name == "p" for name, _ in refs) else None
    attributes = dict(pattern.attributes) | {
        "hidden_size": hidden,
        "activations": [activation.name for activation in pattern.activations],
    }
    if any(activation.name == "Affine" for activation in pattern.activations):
        attributes |= {"activation_alpha": [1.0], "activation_beta": [0.0]}
    return Operator(
        pattern.operator,
        attributes,
        stacked("W", gates),
        stacked("R", gates),
        np.concatenate([b, inside], 1),
        peepholes,
    )
