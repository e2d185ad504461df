"""torch modules: recurrent layers, and the drop-ins for torch.nn's."""

from ensue.layers.dropin import GRU, LSTM, RNN
from ensue.layers.lengths import step_mask, to_length
from ensue.layers.recurrent import Recurrent, detach
from ensue.layers.recursive import Recursive
from ensue.layers.stepper import Stepper

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Recurrent",
    "Recursive",
    "Stepper",
    "detach",
    "step_mask",
    "to_length",
]
