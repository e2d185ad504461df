"""Running a cell over time: the eager reference, explicit BPTT, RTRL."""

from ensue.engine.bptt import Gradients, bptt
from ensue.engine.eager import State, Tensors, eager
from ensue.engine.rows import check_lengths, reverse_time
from ensue.engine.rtrl import RTRL, jacobian
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
