"""Gates that begin open for as long as a task lasts (Tallec and Ollivier, 2018, "chrono").

A unit whose gate keeps the share σ(b) of its state forgets within about 1 + e^b steps. Biases
b = log u, u uniform in [1, T − 1], give units of every time scale up to T."""

from __future__ import annotations

import torch
from torch import Tensor

from ensue.cells import Cell
from ensue.layers.recurrent import Recurrent
from ensue.study.memory.budget import RATE, RATE_WITHOUT_GATES, Budget

# the gates of the bias `b`, with the sign that keeps: +1 keeps the state at 1, −1 at 0
KEEPING = {
    "GRU": {"z": 1},
    "GRUResetBefore": {"z": 1},
    "GRUGateThroughReset": {"u": -1},
    "MinimalGated": {"u": -1},
    "MGU": {"u": -1},
    "LSTM": {"f": 1, "i": -1},
    "PeepholeLSTM": {"f": 1, "i": -1},
    "LayerNormLSTM": {"f": 1, "i": -1},
    "CoupledLSTM": {"f": 1},
    "LSTM1997": {"i": -1},
    "QRNN": {"f": 1},
    "SRU": {"f": 1},
    "MinGRU": {"z": -1},
    "MinLSTM": {"f": 1, "i": -1},
}


def built_in(cell: Cell) -> bool:
    return type(cell).__module__.startswith("ensue.cells.")


def keeping(cell: Cell) -> dict[str, int]:
    """The gates of a built-in cell; none for cells without and for cells of one's own."""
    return KEEPING.get(type(cell).__name__, {}) if built_in(cell) else {}


def rate_of(cell: Cell, budget: Budget) -> float:
    """The rate that was asked for, else the one for cells of this kind."""
    if budget.rate is not None:
        return budget.rate
    return RATE_WITHOUT_GATES if built_in(cell) and not keeping(cell) else RATE


@torch.no_grad()
def chrono(layer: Recurrent, steps: int) -> None:
    """Sets the keeping biases of every way of the layer for sequences of that many steps."""
    for way in layer.ways:
        signs = keeping(way.cell)
        if not signs:
            continue
        bias: Tensor = way.way().parameters["b"]
        blocks = dict(
            zip(way.cell.parameters["b"].gates, bias.view(-1, way.hidden_size), strict=True)
        )
        b = torch.empty(way.hidden_size).uniform_(1.0, max(steps - 1.0, 1.0)).log_()
        for gate, sign in signs.items():
            blocks[gate].copy_(sign * b)
