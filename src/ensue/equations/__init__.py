"""The graph of a step: writing equations, tracing, differentiation, scheduling, printing."""

from ensue.equations.calls import (
    exp,
    linear,
    log,
    maximum,
    mean,
    minimum,
    prelu,
    relu,
    sigmoid,
    softplus,
    sqrt,
    tanh,
    total,
)
from ensue.equations.declare import Mask, Matrix, Vector
from ensue.equations.derive import forward, reverse
from ensue.equations.equations import Counts, Equations, StepDerivative
from ensue.equations.node import Graph, MatrixRef, Node, VectorRef, below
from ensue.equations.trace import trace

__all__ = [
    "Counts",
    "Equations",
    "Graph",
    "Mask",
    "Matrix",
    "MatrixRef",
    "Node",
    "StepDerivative",
    "Vector",
    "VectorRef",
    "below",
    "exp",
    "forward",
    "linear",
    "log",
    "maximum",
    "mean",
    "minimum",
    "prelu",
    "relu",
    "reverse",
    "sigmoid",
    "softplus",
    "sqrt",
    "tanh",
    "total",
    "trace",
]
