"""The engine "torch": torch's own recurrent kernels, for the cells that have the same weights."""

from __future__ import annotations

import torch
from torch import Tensor

from ensue.cells import GRU, LSTM, SimpleRNN
from ensue.cells.cell import Cell
from ensue.engine.recurrence import Recurrence, State


def why_not_torch(cell: Cell, x: Tensor, lengths: Tensor | None) -> str:
    """Why torch's kernels cannot run this; "" if they can."""
    same = type(cell) in (GRU, LSTM)
    same |= type(cell) is SimpleRNN and cell.activation in ("tanh", "relu")
    if not same:
        return f"engine torch: {type(cell).__name__} has no kernel there"
    if lengths is not None:
        return "engine torch: unequal lengths need packed sequences there"
    if 0 in x.shape[:2]:
        return "engine torch: no steps or no rows"
    return ""


def torch_kernel(recurrence: Recurrence) -> tuple[Tensor, State]:
    """As `eager`, by the functions behind torch.nn.RNN, GRU and LSTM."""
    cell, parameters, x, state, *_ = recurrence
    W, U, b = parameters["W"], parameters["U"], parameters["b"]
    second = torch.zeros_like(b)
    if isinstance(cell, GRU):
        second = torch.cat([second[: -len(parameters["d"])], parameters["d"]])
    weights = [W, U, b, second]
    options = (True, 1, 0.0, torch.is_grad_enabled(), False, False)
    begin = [s.unsqueeze(0) for s in state]
    if isinstance(cell, LSTM):
        y, h, c = torch.lstm(x, begin, weights, *options)
        return y, (h[0], c[0])
    if isinstance(cell, GRU):
        y, h = torch.gru(x, begin[0], weights, *options)
        return y, (h[0],)
    assert isinstance(cell, SimpleRNN)
    kernel = torch.rnn_tanh if cell.activation == "tanh" else torch.rnn_relu
    y, h = kernel(x, begin[0], weights, *options)
    return y, (h[0],)
