"""torch modules: recurrent layers, and drop-ins for the recurrent layers of torch.nn."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ensue.layers.lengths import step_mask, to_length
from ensue.layers.recurrent import Recurrent, detach
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

if TYPE_CHECKING:
    from ensue.layers.dropin import GRU as GRU
    from ensue.layers.dropin import LSTM as LSTM
    from ensue.layers.dropin import RNN as RNN
    from ensue.layers.recursive import Recursive as Recursive

# Loaded at first use, from the module that defines them.
_LATER = {
    "GRU": "dropin",
    "LSTM": "dropin",
    "RNN": "dropin",
    "Recursive": "recursive",
}

if not TYPE_CHECKING:  # a type checker would accept every name

    def __getattr__(name: str) -> Any:
        if name in _LATER:
            return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
