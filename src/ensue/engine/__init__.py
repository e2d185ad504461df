"""Running a cell over time: the eager reference, explicit BPTT, RTRL."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ensue.engine.bptt import Gradients, bptt
from ensue.engine.eager import State, Tensors, eager
from ensue.engine.rows import check_lengths, reverse_time
from ensue.engine.run import ENGINES, NAMES, choose, engines_used, run

__all__ = [
    "ENGINES",
    "NAMES",
    "RTRL",
    "Gradients",
    "State",
    "Tensors",
    "bptt",
    "check_lengths",
    "choose",
    "eager",
    "engines_used",
    "jacobian",
    "reverse_time",
    "run",
]

if TYPE_CHECKING:
    from ensue.engine.rtrl import RTRL as RTRL
    from ensue.engine.rtrl import jacobian as jacobian

# Loaded at first use, from the module that defines them.
_LATER = {
    "RTRL": "rtrl",
    "jacobian": "rtrl",
}

if not TYPE_CHECKING:  # a type checker would accept every name

    def __getattr__(name: str) -> Any:
        if name in _LATER:
            return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
