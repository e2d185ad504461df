"""Cell, and every cell as its equations."""

from collections.abc import Callable

from ensue.cells.cell import Cell, as_tuple
from ensue.cells.gated import (
    GRU,
    LSTM,
    LSTM1997,
    MGU,
    CoupledLSTM,
    GRUGateThroughReset,
    GRUResetBefore,
    LayerNormLSTM,
    MinimalGated,
    PeepholeLSTM,
)
from ensue.cells.initialise import SCHEMES, initialise
from ensue.cells.simple import QRNN, SRU, LeakyRNN, MinGRU, MinLSTM, RecurrentPerceptron, SimpleRNN
from ensue.cells.wrappers import OutputLayer, RecurrentDropout, Residual, Wrapper, Zoneout

CELLS: dict[str, Callable[[], Cell]] = {
    cell.__name__: cell
    for cell in (
        SimpleRNN,
        RecurrentPerceptron,
        LeakyRNN,
        MinimalGated,
        MGU,
        GRU,
        GRUResetBefore,
        GRUGateThroughReset,
        LSTM,
        LSTM1997,
        PeepholeLSTM,
        CoupledLSTM,
        LayerNormLSTM,
        QRNN,
        SRU,
        MinGRU,
        MinLSTM,
    )
}
WRAPPERS: dict[str, Callable[..., Cell]] = {
    wrapper.__name__: wrapper for wrapper in (Zoneout, RecurrentDropout, Residual, OutputLayer)
}

__all__ = [
    "CELLS",
    "GRU",
    "LSTM",
    "LSTM1997",
    "MGU",
    "QRNN",
    "SCHEMES",
    "SRU",
    "WRAPPERS",
    "Cell",
    "CoupledLSTM",
    "GRUGateThroughReset",
    "GRUResetBefore",
    "LayerNormLSTM",
    "LeakyRNN",
    "MinGRU",
    "MinLSTM",
    "MinimalGated",
    "OutputLayer",
    "PeepholeLSTM",
    "RecurrentDropout",
    "RecurrentPerceptron",
    "Residual",
    "SimpleRNN",
    "Wrapper",
    "Zoneout",
    "as_tuple",
    "initialise",
]
