"""Cells with gates and one state part."""

from __future__ import annotations

from typing import Any

from ensue.cells.cell import Cell
from ensue.equations import Matrix, Vector, sigmoid, tanh


class MinimalGated(Cell):
    """Minimal gated unit of the textbook chapter: one gate, candidate from the whole state.

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
    """Minimal gated unit of the field: the gate also resets the candidate, U·(u*h).

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
    """GRU whose update gate reads the reset state too: u = σ(W·x + U·(r*h) + b).

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
