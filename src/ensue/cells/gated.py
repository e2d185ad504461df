"""Cells with gates and one state part."""

from __future__ import annotations

from typing import Any

from ensue.cells.cell import Cell
from ensue.equations import Matrix, Vector, mean, sigmoid, sqrt, tanh


class LSTM(Cell):
    """Long short-term memory with forget gate: weight-compatible with torch.nn.LSTM.

    torch's two biases add up to b. The forget bias starts at 1 (Gers et al. 2000).

    >>> LSTM().shapes(input_size=8, hidden_size=16)
    {'W': (64, 8), 'U': (64, 16), 'b': (64,)}
    """

    W, U, b = Matrix("x", "ifgo"), Matrix("h", "ifgo"), Vector("ifgo", init={"f": 1.0})

    def step(self, x: Any, h: Any, c: Any) -> Any:
        W, U, b = self.W, self.U, self.b
        i = sigmoid(W.i @ x + U.i @ h + b.i)
        f = sigmoid(W.f @ x + U.f @ h + b.f)
        g = tanh(W.g @ x + U.g @ h + b.g)
        o = sigmoid(W.o @ x + U.o @ h + b.o)
        c = f * c + i * g
        return o * tanh(c), c


class LSTM1997(Cell):
    """LSTM as first published, without a forget gate: c' = c + i*g (f = 1).

    Hochreiter & Schmidhuber 1997, with tanh for their scaled logistic functions.

    >>> LSTM1997().shapes(input_size=8, hidden_size=16)
    {'W': (48, 8), 'U': (48, 16), 'b': (48,)}
    """

    W, U, b = Matrix("x", "igo"), Matrix("h", "igo"), Vector("igo")

    def step(self, x: Any, h: Any, c: Any) -> Any:
        W, U, b = self.W, self.U, self.b
        i = sigmoid(W.i @ x + U.i @ h + b.i)
        g = tanh(W.g @ x + U.g @ h + b.g)
        o = sigmoid(W.o @ x + U.o @ h + b.o)
        c = c + i * g
        return o * tanh(c), c


class PeepholeLSTM(Cell):
    """LSTM whose gates see the cell state: i and f the old c, o the new one.

    Peepholes p are diagonal. Gers & Schmidhuber 2000.

    >>> PeepholeLSTM().shapes(input_size=8, hidden_size=16)
    {'W': (64, 8), 'U': (64, 16), 'b': (64,), 'p': (48,)}
    """

    W, U, b = Matrix("x", "ifgo"), Matrix("h", "ifgo"), Vector("ifgo", init={"f": 1.0})
    p = Vector("ifo")

    def step(self, x: Any, h: Any, c: Any) -> Any:
        W, U, b, p = self.W, self.U, self.b, self.p
        i = sigmoid(W.i @ x + U.i @ h + p.i * c + b.i)
        f = sigmoid(W.f @ x + U.f @ h + p.f * c + b.f)
        g = tanh(W.g @ x + U.g @ h + b.g)
        c = f * c + i * g
        o = sigmoid(W.o @ x + U.o @ h + p.o * c + b.o)
        return o * tanh(c), c


class CoupledLSTM(Cell):
    """LSTM that writes what it forgets: c' = f*c + (1 − f)*g.

    f near 1 keeps. Greff et al. 2017 (CIFG).

    >>> CoupledLSTM().shapes(input_size=8, hidden_size=16)
    {'W': (48, 8), 'U': (48, 16), 'b': (48,)}
    """

    W, U, b = Matrix("x", "fgo"), Matrix("h", "fgo"), Vector("fgo", init={"f": 1.0})

    def step(self, x: Any, h: Any, c: Any) -> Any:
        W, U, b = self.W, self.U, self.b
        f = sigmoid(W.f @ x + U.f @ h + b.f)
        g = tanh(W.g @ x + U.g @ h + b.g)
        o = sigmoid(W.o @ x + U.o @ h + b.o)
        c = f * c + (1 - f) * g
        return o * tanh(c), c


def normalise(v: Any, epsilon: float = 1e-5) -> Any:
    """Zero mean and unit variance over the features; the biased variance, as torch.nn.LayerNorm."""
    d = v - mean(v)
    return d / sqrt(mean(d * d) + epsilon)


class LayerNormLSTM(Cell):
    """LSTM with layer normalisation of each gate's W·x + U·h, and of the new c inside tanh.

    This variant has one normalisation per gate, over the sum of both products. The carried c is not
    normalised. s are the gains. (Ba et al. 2016 normalise the two products separately.)

    >>> LayerNormLSTM().shapes(input_size=8, hidden_size=16)
    {'W': (64, 8), 'U': (64, 16), 's': (80,), 'b': (80,)}
    """

    W, U = Matrix("x", "ifgo"), Matrix("h", "ifgo")
    s, b = Vector("ifgoc", init=1.0), Vector("ifgoc", init={"f": 1.0})

    def step(self, x: Any, h: Any, c: Any) -> Any:
        W, U, s, b = self.W, self.U, self.s, self.b
        i = sigmoid(s.i * normalise(W.i @ x + U.i @ h) + b.i)
        f = sigmoid(s.f * normalise(W.f @ x + U.f @ h) + b.f)
        g = tanh(s.g * normalise(W.g @ x + U.g @ h) + b.g)
        o = sigmoid(s.o * normalise(W.o @ x + U.o @ h) + b.o)
        c = f * c + i * g
        return o * tanh(s.c * normalise(c) + b.c), c


class MinimalGated(Cell):
    """Minimal gated unit, textbook variant: one gate; the candidate reads the whole state.

    h' = u*n + (1 − u)*h: u near 1 overwrites, u near 0 keeps. The gate does not touch the
    candidate's recurrent product; in `MGU` it does.

    >>> MinimalGated().shapes(input_size=8, hidden_size=16)
    {'W': (32, 8), 'U': (32, 16), 'b': (32,)}
    """

    W, U, b = Matrix("x", "nu"), Matrix("h", "nu"), Vector("nu")

    def step(self, x: Any, h: Any) -> Any:
        W, U, b = self.W, self.U, self.b
        n = tanh(W.n @ x + U.n @ h + b.n)
        u = sigmoid(W.u @ x + U.u @ h + b.u)
        return u * n + (1 - u) * h


class MGU(Cell):
    """Minimal gated unit as published: the gate also resets the candidate, U·(u*h).

    h' = u*n + (1 − u)*h: u near 1 overwrites. Zhou et al. 2016, who call the gate f.

    >>> MGU().shapes(input_size=8, hidden_size=16)
    {'W': (32, 8), 'U': (32, 16), 'b': (32,)}
    """

    W, U, b = Matrix("x", "nu"), Matrix("h", "nu"), Vector("nu")

    def step(self, x: Any, h: Any) -> Any:
        W, U, b = self.W, self.U, self.b
        u = sigmoid(W.u @ x + U.u @ h + b.u)
        n = tanh(W.n @ x + U.n @ (u * h) + b.n)
        return u * n + (1 - u) * h


class GRU(Cell):
    """GRU, reset after the product: weight-compatible with torch.nn.GRU.

    h' = (1 − z)*n + z*h: z near 1 keeps. The candidate has a bias inside the reset, d.

    >>> GRU().shapes(input_size=8, hidden_size=16)
    {'W': (48, 8), 'U': (48, 16), 'b': (48,), 'd': (16,)}
    """

    W, U, b, d = Matrix("x", "rzn"), Matrix("h", "rzn"), Vector("rzn"), Vector()

    def step(self, x: Any, h: Any) -> Any:
        W, U, b, d = self.W, self.U, self.b, self.d
        r = sigmoid(W.r @ x + U.r @ h + b.r)
        z = sigmoid(W.z @ x + U.z @ h + b.z)
        n = tanh(W.n @ x + b.n + r * (U.n @ h + d))
        return (1 - z) * n + z * h


class GRUResetBefore(Cell):
    """GRU, reset before the product: the candidate reads U·(r*h).

    h' = (1 − z)*n + z*h: z near 1 keeps. Cho et al. 2014; with u = 1 − z the same cell.

    >>> GRUResetBefore().shapes(input_size=8, hidden_size=16)
    {'W': (48, 8), 'U': (48, 16), 'b': (48,)}
    """

    W, U, b = Matrix("x", "rzn"), Matrix("h", "rzn"), Vector("rzn")

    def step(self, x: Any, h: Any) -> Any:
        W, U, b = self.W, self.U, self.b
        r = sigmoid(W.r @ x + U.r @ h + b.r)
        z = sigmoid(W.z @ x + U.z @ h + b.z)
        n = tanh(W.n @ x + U.n @ (r * h) + b.n)
        return (1 - z) * n + z * h


class GRUGateThroughReset(Cell):
    """GRU whose update gate also reads the reset state: u = σ(W·x + U·(r*h) + b).

    h' = (1 − u)*h + u*n: u near 0 keeps. The lecture notes' main text.

    >>> GRUGateThroughReset().shapes(input_size=8, hidden_size=16)
    {'W': (48, 8), 'U': (48, 16), 'b': (48,)}
    """

    W, U, b = Matrix("x", "run"), Matrix("h", "run"), Vector("run")

    def step(self, x: Any, h: Any) -> Any:
        W, U, b = self.W, self.U, self.b
        r = sigmoid(W.r @ x + U.r @ h + b.r)
        u = sigmoid(W.u @ x + U.u @ (r * h) + b.u)
        n = tanh(W.n @ x + U.n @ (r * h) + b.n)
        return (1 - u) * h + u * n
