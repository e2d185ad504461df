"""Cells without gates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, ClassVar

from ensue.cells.cell import Cell
from ensue.equations import Matrix, Vector, linear, maximum, prelu, relu, sigmoid, tanh
from ensue.errors import OptionError, unknown

# -------------------------------------------------------------------------------------------------
# Cells without a recurrent product: matrices multiply only x; the old state is used elementwise.
#
# All products are computed for all steps at once, before the loop over time: on a CPU these are
# the fastest cells of their size.


class QRNN(Cell):
    """Quasi-recurrent network: convolution over two steps, fo-pooling.

    p is the x before, so that W·x + V·p is a filter of width 2. f near 1 keeps.
    Bradbury et al. 2017.

    >>> QRNN().shapes(input_size=8, hidden_size=16)
    {'W': (48, 8), 'V': (48, 8), 'b': (48,)}
    """

    part_sizes: ClassVar[Mapping[str, str]] = {"p": "input"}
    W, V, b = Matrix("x", "zfo"), Matrix("p", "zfo"), Vector("zfo", init={"f": 1.0})

    def step(self, x: Any, h: Any, c: Any, p: Any) -> Any:
        W, V, b = self.W, self.V, self.b
        z = tanh(W.z @ x + V.z @ p + b.z)
        f = sigmoid(W.f @ x + V.f @ p + b.f)
        o = sigmoid(W.o @ x + V.o @ p + b.o)
        c = f * c + (1 - f) * z
        return o * c, c, x


class SRU(Cell):
    """Simple recurrent unit: gates see the old c feature by feature, and h skips past it.

    f near 1 keeps; r near 1 outputs c, r near 0 the input. The input here is W.s·x, so x may have
    any size; Lei et al. 2018 use x itself if it has the size of h.

    >>> SRU().shapes(input_size=8, hidden_size=16)
    {'W': (64, 8), 'v': (32,), 'b': (32,)}
    """

    W, v, b = Matrix("x", "gfrs"), Vector("fr"), Vector("fr", init={"f": 1.0})

    def step(self, x: Any, h: Any, c: Any) -> Any:
        W, v, b = self.W, self.v, self.b
        f = sigmoid(W.f @ x + v.f * c + b.f)
        r = sigmoid(W.r @ x + v.r * c + b.r)
        c = f * c + (1 - f) * (W.g @ x)
        return r * c + (1 - r) * (W.s @ x), c


class MinGRU(Cell):
    """GRU whose gate and candidate read x alone; the candidate is linear, without tanh.

    h' = (1 − z)*h + z*n: z near 0 keeps. Feng et al. 2024, as in their main text.

    >>> MinGRU().shapes(input_size=8, hidden_size=16)
    {'W': (32, 8), 'b': (32,)}
    """

    W, b = Matrix("x", "zn"), Vector("zn")

    def step(self, x: Any, h: Any) -> Any:
        W, b = self.W, self.b
        z = sigmoid(W.z @ x + b.z)
        n = W.n @ x + b.n
        return (1 - z) * h + z * n


class MinLSTM(Cell):
    """LSTM whose gates and candidate read x alone, without c; f and i are scaled to sum to 1.

    h' = (f*h + i*n)/(f + i); the candidate n is linear. Feng et al. 2024, as in their main text.

    >>> MinLSTM().shapes(input_size=8, hidden_size=16)
    {'W': (48, 8), 'b': (48,)}
    """

    W, b = Matrix("x", "fin"), Vector("fin", init={"f": 1.0})

    def step(self, x: Any, h: Any) -> Any:
        W, b = self.W, self.b
        f = sigmoid(W.f @ x + b.f)
        i = sigmoid(W.i @ x + b.i)
        n = W.n @ x + b.n
        return (f * h + i * n) / (f + i)


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "tanh": tanh,
    "sigmoid": sigmoid,
    "relu": relu,
    "linear": linear,
}


def _check_activation(activation: object, known: Iterable[str]) -> None:
    if not isinstance(activation, str):
        name = getattr(activation, "__name__", "")
        meant = f"; by name it is {name!r}" if name in known else ""
        raise OptionError(
            f"activation: expected a name ({', '.join(known)}), got {activation!r}{meant}. Other "
            "functions need a custom cell"
        )
    if activation not in known:
        raise unknown("activation", activation, known)


class SimpleRNN(Cell):
    """Simple recurrent network: h' = g(W·x + U·h + b), g chosen by name.

    g is tanh (the default), sigmoid, relu, linear, prelu (its slopes a are learned, one a unit)
    or maxout (the largest of `pieces` such sums; at a tie the first). Elman 1990.

    >>> print(SimpleRNN("relu").equations())
    s  = W·x + U·h + b
    h' = relu(s)
    """

    def __init__(self, activation: str = "tanh", pieces: int = 2) -> None:
        _check_activation(activation, [*ACTIVATIONS, "prelu", "maxout"])
        if not isinstance(pieces, int) or pieces < 1:
            raise OptionError(f"pieces: expected a whole number ≥ 1, got {pieces!r}")
        self.activation = activation
        gates = tuple(str(k) for k in range(1, pieces + 1)) if activation == "maxout" else ""
        self.W, self.U, self.b = Matrix("x", gates), Matrix("h", gates), Vector(gates)
        if activation == "prelu":
            self.a = Vector(init=0.25)

    def step(self, x: Any, h: Any) -> Any:
        if self.activation == "maxout":
            pieces = zip(self.W, self.U, self.b, strict=True)
            return reduce(maximum, [W @ x + U @ h + b for W, U, b in pieces])
        s = self.W @ x + self.U @ h + self.b
        return prelu(s, self.a) if self.activation == "prelu" else ACTIVATIONS[self.activation](s)


class RecurrentPerceptron(Cell):
    """Recurrent perceptron: its own output is fed back, y' = f(W·x + U·y + b).

    f is sigmoid (the default), tanh, relu or linear. The state is the output (Jordan 1986).

    >>> RecurrentPerceptron("tanh").shapes(input_size=8, hidden_size=16)
    {'W': (16, 8), 'U': (16, 16), 'b': (16,)}
    """

    W, U, b = Matrix("x"), Matrix("y"), Vector()

    def __init__(self, activation: str = "sigmoid") -> None:
        _check_activation(activation, ACTIVATIONS)
        self.activation = activation

    def step(self, x: Any, y: Any) -> Any:
        return ACTIVATIONS[self.activation](self.W @ x + self.U @ y + self.b)


class LeakyRNN(Cell):
    """Leaky integration: h' = (1 − α)*h + α*tanh(W·x + U·h + b).

    α is the fixed `rate`, or with `learned` a number σ(a) for each unit, which starts at `rate`.
    Jaeger et al. 2007.

    >>> print(LeakyRNN(rate=0.25).equations())
    g  = tanh(W·x + U·h + b)
    h' = 0.75*h + 0.25*g
    """

    W, U, b = Matrix("x"), Matrix("h"), Vector()

    def __init__(self, rate: float = 0.5, learned: bool = False) -> None:
        if not isinstance(rate, int | float) or not 0 < rate <= 1 or (learned and rate == 1):
            raise OptionError(f"rate: expected 0 < rate ≤ 1 (< 1 if learned), got {rate!r}")
        self.rate, self.learned = rate, learned
        if learned:
            self.a = Vector(init=math.log(rate / (1 - rate)))

    def step(self, x: Any, h: Any) -> Any:
        alpha = sigmoid(self.a) if self.learned else self.rate
        g = tanh(self.W @ x + self.U @ h + self.b)
        return (1 - alpha) * h + alpha * g
