"""Cells without a recurrent product: matrices read x alone, the old state goes on elementwise.

All products are taken for all steps at once, before the loop over time: on a CPU the fastest
cells there are for their size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ensue.cells.cell import Cell
from ensue.equations import Matrix, Vector, sigmoid, tanh


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

    f near 1 keeps; r near 1 lets c through, near 0 the input. That input is W.s·x, so that any
    input size will do; where it has the size of h, Lei et al. 2018 take x itself.

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
