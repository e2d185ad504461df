"""The author's code while it runs on symbols: its stack frames and their source lines."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

from ensue.errors import EnsueError, EquationError

STEP = ("step", "output")
_LIBRARIES = ("ensue.equations.", "torch.", "numpy.", "functools.", "contextlib.")
_COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")

# (code, line): outlives its frame
Place = tuple[CodeType, int]


def is_author(frame: FrameType) -> bool:
    """Whether a frame runs the author's code: not Ensue's equations, no library, no
    comprehension."""
    module = f"{frame.f_globals.get('__name__')}."
    return not module.startswith(_LIBRARIES) and frame.f_code.co_name not in _COMPREHENSIONS


def _stack() -> Iterator[FrameType]:
    """The current stack, innermost frame first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def author_frames() -> list[FrameType]:
    """The author's frames, innermost first, up to `step`; outside of a step only the innermost."""
    frames = []
    for frame in _stack():
        if is_author(frame):
            frames.append(frame)
            if frame.f_code.co_name in STEP:
                return frames
    return frames[:1]


def places_of(traceback: TracebackType | None) -> list[Place]:
    """The author's source lines in a traceback, innermost first, up to `step`."""
    places: list[Place] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_author(traceback.tb_frame):
            places = [] if code.co_name in STEP else places
            places.append((code, traceback.tb_lineno))
        traceback = traceback.tb_next
    return places[::-1]


def place_of(function: Callable[..., Any]) -> list[Place]:
    """The first line of a Python function; [] for other callables."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return [(code, code.co_firstlineno)] if code else []


def _show(place: Place) -> str:
    code, number = place
    text = linecache.getline(code.co_filename, number).strip()
    where = f"{Path(code.co_filename).name}:{number}, in {code.co_name}"
    return f"{where}\n    {text}" if text else where


def show_places(places: list[Place]) -> str:
    """Text for messages: the innermost place with its source line, and the outermost."""
    if not places:
        return ""
    lines = [_show(p) for p in dict.fromkeys((places[0], places[-1]))]
    return "\n  called from ".join(lines) + "\n  "


class Watch:
    """While active, keeps the frames that create symbols, so that their variables stay readable
    after they return. (A profiling hook would disturb a running profiler.)"""

    def __init__(self) -> None:
        self.frames: dict[FrameType, None] = {}
        self.called: FrameType | None = None  # the outermost frame that has created a symbol

    def __enter__(self) -> Watch:
        self._entered, self._token = sys._getframe(1), _WATCH.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _WATCH.reset(self._token)
        del self._entered

    def notice(self) -> None:
        for frame in _stack():
            if frame is self._entered:
                break
            if is_author(frame):
                self.frames.setdefault(frame)
                if frame.f_code.co_name in STEP:
                    self.called = frame


_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


def notice() -> None:
    """Notifies the active watch, if any, that the author's code creates a symbol."""
    watch = _WATCH.get()
    if watch is not None:
        watch.notice()


class UntraceableAttribute(EquationError, AttributeError):
    """An attribute that a symbol does not have; also an AttributeError, so `hasattr` works."""


def blame(problem: str, instead: str, kind: type[EnsueError] = EquationError) -> EnsueError:
    """The error to raise: the line in the author's step, the problem, and what to write instead."""
    where = show_places([(frame.f_code, frame.f_lineno) for frame in author_frames()])
    return kind(f"{where}{problem}\n  {instead}")


USABLE = (
    "+ - * / @, sigmoid, tanh, relu, prelu, maximum, minimum, exp, log, softplus, sqrt, mean, total"
)
_MATRICES = "declare a Matrix of the cell and write W @ v"
_GATES = (
    "a step treats all features the same; for blocks declare gates, such as Matrix('x', 'ifgo'), "
    "and use W.i, W.f, …"
)
_CHOICE = "write maximum(a, b), relu(v), or a mask; one step must do the same for every value"
_SIZES = "declare sizes: Vector(size='hidden'), or self.memory = 16 and Vector(size='memory')"
_NORM = "write d = v - mean(v), then d / sqrt(mean(d * d) + 1e-5)"

# what to write instead of torch's, numpy's and Python's words
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
    """Advice on how to write torch's or numpy's operation `name` in a step."""
    return _ADVICE.get(name, f"use {USABLE}")
