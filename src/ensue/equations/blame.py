"""Errors of tracing, with the line of the author's code that caused them."""

from __future__ import annotations

from ensue.equations.author import author_frames, show_places
from ensue.errors import EnsueError, EquationError


class UntraceableAttribute(EquationError, AttributeError):
    """An attribute that a symbol does not have; also an AttributeError, so `hasattr` works."""


def blame(problem: str, instead: str, kind: type[EnsueError] = EquationError) -> EnsueError:
    """The error to raise: where in the author's step, what is wrong, what to write instead."""
    where = show_places([(frame.f_code, frame.f_lineno) for frame in author_frames()])
    return kind(f"{where}{problem}\n  {instead}")


USABLE = (
    "+ - * / @, sigmoid, tanh, relu, prelu, maximum, minimum, exp, log, softplus, sqrt, mean, total"
)
_MATRICES = "declare a Matrix of the cell and write W @ v"
_GATES = (
    "a step works on all features alike; for blocks declare gates, such as Matrix('x', 'ifgo'), "
    "and use W.i, W.f, …"
)
_CHOICE = "write maximum(a, b), relu(v), or a mask; one step must do the same for every value"
_SIZES = "declare sizes: Vector(size='hidden'), or self.memory = 16 and Vector(size='memory')"
_NORM = "write d = v - mean(v), then d / sqrt(mean(d * d) + 1e-5)"

# what to write in place of torch's, numpy's and Python's words
_ADVICE = {
    **dict.fromkeys(("matmul", "mm", "linear", "bmm", "addmm", "einsum", "dot"), _MATRICES),
    **dict.fromkeys(("chunk", "split", "unbind", "view", "reshape", "narrow"), _GATES),
    **dict.fromkeys(("where", "gt", "ge", "lt", "le", "eq", "ne", "heaviside"), _CHOICE),
    **dict.fromkeys(("shape", "size", "dim", "ndim"), _SIZES),
    **dict.fromkeys(("layer_norm", "rms_norm", "var", "std", "norm"), _NORM),
    **dict.fromkeys(("max", "maximum", "fmax", "amax"), "write maximum(a, b), feature by feature"),
    **dict.fromkeys(("min", "minimum", "fmin", "amin"), "write minimum(a, b), feature by feature"),
    **dict.fromkeys(("clamp", "clip", "hardtanh"), "write maximum(minimum(v, high), low)"),
    **dict.fromkeys(("abs", "absolute", "fabs"), "write maximum(v, -v)"),
    **dict.fromkeys(("cat", "concat", "stack", "hstack"), "write W @ x + U @ h for [W U] [x h]"),
    **dict.fromkeys(("softmax", "log_softmax"), "write e = exp(v), then e / total(e)"),
    **dict.fromkeys(("pow", "square", "power", "float_power"), "write v * v, or v ** 2"),
    **dict.fromkeys(("dropout", "bernoulli"), "declare a mask: m = Mask(0.25), and write m * v"),
    **dict.fromkeys(("silu", "swish"), "write v * sigmoid(v)"),
    **dict.fromkeys(("leaky_relu", "prelu"), "write prelu(v, slope)"),
    **dict.fromkeys(("zeros_like", "ones_like", "full_like"), "write a plain number, or 0 * v"),
    "elu": "write relu(v) + exp(minimum(v, 0.0)) - 1",
    "rsqrt": "write 1 / sqrt(v)",
    "reciprocal": "write 1 / v",
    "softplus": "write softplus(v) of ensue.equations",
}


def advice(name: str) -> str:
    """What to write in place of an operation that is called `name` elsewhere."""
    return _ADVICE.get(name, f"use {USABLE}")
