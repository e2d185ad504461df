"""The engines by name, and the choice that `auto` makes.

native the cell as compiled C++ (CPU) torch torch's own kernels, for the cells that have the same
weights (SimpleRNN, GRU, LSTM) eager the cell's `step` in a loop of torch operations: the reference,
anywhere bptt as eager, with the derivative graph walked explicitly instead of autograd auto native
on a CPU; if it cannot run, torch or eager, and one line says why
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache

import torch
from torch import Tensor

from ensue.cells import GRU, LSTM, SimpleRNN
from ensue.cells.cell import Cell
from ensue.engine.bptt import explicit, record, recorder
from ensue.engine.check import check_given, under_autocast
from ensue.engine.eager import eager_engine
from ensue.engine.native.native import (
    in_forward_mode,
    native,
    ready_kernel,
    why_no_kernel,
    why_no_operator,
    why_not_native,
    with_kernel,
)
from ensue.engine.recurrence import Recurrence, State, Tensors
from ensue.engine.rows import reverse_time
from ensue.errors import OptionError, unknown


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
    """Like `eager`, but calls the functions behind torch.nn.RNN, GRU and LSTM."""
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


Engine = Callable[[Recurrence], tuple[Tensor, State]]
_is_exporting = getattr(torch.compiler, "is_exporting", lambda: False)  # torch 2.7 and newer
_used: ContextVar[list[str] | None] = ContextVar("engines used", default=None)


def _in_both_directions(engine: Engine) -> Engine:
    """Makes an engine that supports `reverse` from one that only goes forward in time."""

    def both(recurrence: Recurrence) -> tuple[Tensor, State]:
        if not recurrence.reverse:
            return engine(recurrence)
        y, final = engine(recurrence.forwards())
        return reverse_time(y, recurrence.lengths), final

    return both


ENGINES: dict[str, Engine] = {
    "native": native,
    "torch": _in_both_directions(torch_kernel),
    "eager": _in_both_directions(eager_engine),
    "bptt": _in_both_directions(explicit),
}
LOOPS = ("eager", "bptt")  # in Python, over the steps
NAMES = ("auto", *ENGINES)


def choose(cell: Cell, x: Tensor, lengths: Tensor | None = None) -> tuple[str, str]:
    """The engine that `auto` takes for this input, and why it is not native ("" if it is)."""
    reason = why_not_native(x.device, x.dtype)
    if not reason:
        return "native", ""
    return _without_native(cell, x, lengths), reason


def _without_native(cell: Cell, x: Tensor, lengths: Tensor | None) -> str:
    return "eager" if why_not_torch(cell, x, lengths) else "torch"


@cache
def _say(line: str) -> None:
    """Prints a line once per process."""
    logging.getLogger("ensue").warning(line)


@contextlib.contextmanager
def engines_used() -> Iterator[list[str]]:
    """The names of the engines that run inside the block: `with engines_used() as used:
    layer(x)`."""
    used: list[str] = []
    token = _used.set(used)
    try:
        yield used
    finally:
        _used.reset(token)


def run(
    cell: Cell,
    parameters: Tensors,
    x: Tensor,
    state: State,
    lengths: Tensor | None = None,
    masks: Tensors | None = None,
    engine: str = "auto",
    reverse: bool = False,
) -> tuple[Tensor, State]:
    """Runs the cell over x (time, batch, input); returns outputs (time, batch, features) and the
    final state.

    Outputs beyond a row's end are zero. A row's final state is the state after its last real step
    (the initial state for an empty row). Training passes `masks`; without them each mask is its
    expectation. In reverse, the cell goes from each row's last real step to its first; x, outputs
    and masks stay in the order of time. Everything is computed in the type of the tensors, inside
    autocast too."""
    if under_autocast(x):
        with torch.autocast(x.device.type, enabled=False):
            return run(cell, parameters, x, state, lengths, masks, engine, reverse)
    recurrence = Recurrence(cell, parameters, x, state, lengths, masks, reverse)
    if torch.compiler.is_compiling():
        return _in_graph(recurrence, engine)
    if (unrolled := recorder()) is not None:
        check_given(cell.equations(*recurrence.sizes), recurrence)
        return record(recurrence, unrolled)
    sizes = recurrence.sizes
    if in_forward_mode():
        engine = "eager" if engine == "auto" else engine
    elif engine in ("auto", "native"):
        kernel = ready_kernel(recurrence, sizes)
        if kernel is not None:
            check_given(kernel.program.equations, recurrence)
            _note("native")
            return with_kernel(kernel, recurrence)
    check_given(cell.equations(*sizes), recurrence)
    if engine == "auto":
        engine, reason = choose(cell, x, lengths)
        if not reason:
            reason = why_no_kernel(recurrence, sizes)
            engine = _without_native(cell, x, lengths) if reason else engine
        if reason:
            _say(f"{reason}; running {engine}")
    else:
        _check_engine(recurrence, engine)
    _note(engine)
    return ENGINES[engine](recurrence)


def _in_graph(recurrence: Recurrence, engine: str) -> tuple[Tensor, State]:
    """`run` while torch.compile or torch.export traces: shapes are not checked and the engine is
    not recorded. An exported graph has one operator for the cell, whichever engine would run it
    here."""
    if _is_exporting() and not why_no_operator(recurrence.x.device, recurrence.x.dtype):
        return native(recurrence)
    if engine == "auto":
        engine, _ = choose(recurrence.cell, recurrence.x, recurrence.lengths)
    else:
        _check_engine(recurrence, engine)
    call = _call_apart if engine in LOOPS else _call
    return call(engine, recurrence)


def _check_engine(recurrence: Recurrence, engine: str) -> None:
    if engine not in ENGINES:
        raise unknown("engine", engine, NAMES)
    if reason := refusal(engine, recurrence.cell, recurrence.x, recurrence.lengths):
        raise OptionError(reason)


def _note(engine: str) -> None:
    used = _used.get()
    if used is not None:
        used.append(engine)


def _call(engine: str, recurrence: Recurrence) -> tuple[Tensor, State]:
    return ENGINES[engine](recurrence)


# torch.compile would unroll the loop into a graph, and again for every shape. This is
# torch.compiler.disable without importing the compiler.
_call_apart = torch._disable_dynamo(_call)  # type: ignore[attr-defined]


def refusal(engine: str, cell: Cell, x: Tensor, lengths: Tensor | None) -> str:
    """Why the chosen engine cannot run this; "" if it can."""
    if engine == "native":
        return why_not_native(x.device, x.dtype)
    return why_not_torch(cell, x, lengths) if engine == "torch" else ""
