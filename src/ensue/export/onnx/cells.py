"""ONNX's recurrent operators as cells: what `from_onnx` reads into, and what a cell is held
against to see whether it is one of them.

Gates have the letters of ONNX's documentation: RNN i; GRU z r h; LSTM i o f c. Its two biases add
up to b, but for the bias d inside of a GRU's reset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ensue.cells import Cell
from ensue.equations import (
    Matrix,
    Vector,
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

Parameters = tuple[float, float]  # alpha and beta of a function

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
        known = {own.lower(): own for own in FUNCTIONS}
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
        r = self.f(W.r @ x + R.r @ h + b.r)
        if self.linear_before_reset:
            n = self.g(W.h @ x + r * (R.h @ h + self.d) + b.h)
        else:
            n = self.g(W.h @ x + R.h @ (r * h) + b.h)
        return (1 - z) * n + z * h


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
        W, R, b = (getattr(own, name) for own in (self.W, self.R, self.b))
        total = W @ x + R @ h
        return self.f(total + getattr(self.p, name) * c + b if self.peepholes else total + b)

    def step(self, x: Any, h: Any, c: Any) -> Any:
        i = self._gate("i", x, h, c)
        f = 1 - i if self.input_forget else self._gate("f", x, h, c)
        n = self.g(self.W.c @ x + self.R.c @ h + self.b.c)
        c = f * c + i * n
        o = self._gate("o", x, h, c)
        return o * self.squash(c), c
