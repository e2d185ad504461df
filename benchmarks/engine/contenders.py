"""Who takes part in a case: work in this process, made ready and checked to be the same work.

In training the work is the forward pass and the gradients for x and every parameter, written
by torch.autograd.grad rather than added to what is there; in inference the forward pass in
torch.inference_mode. Everything runs as its users call it: layers as modules.
"""

from __future__ import annotations

import functools
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.engine.case import Case, lengths_of
from benchmarks.engine.loop import Loop, torch_loop
from ensue.cells import Cell
from ensue.engine import run
from ensue.engine.native.call import core
from ensue.engine.native.kernel import Kernel
from ensue.engine.native.stream import NativeStep
from ensue.errors import EnsueError
from ensue.layers.recurrent import Recurrent

Work = Callable[[], object]
Forward = Callable[[], Tensor]
MODULES: dict[str, Callable[[int, int], nn.RNNBase]] = {
    "LSTM": nn.LSTM,
    "GRU": nn.GRU,
    "SimpleRNN": nn.RNN,
}
STEPPERS: dict[str, Callable[[int, int], nn.RNNCellBase]] = {
    "LSTM": nn.LSTMCell,
    "GRU": nn.GRUCell,
    "SimpleRNN": nn.RNNCell,
}
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.1}  # outputs are of size 1


class NotTheSame(EnsueError):
    """A contender that does not compute what the native engine computes."""


@dataclass(frozen=True)
class Contender:
    """One contender: its outputs (time, batch, hidden), and what its gradients are taken by."""

    forward: Forward
    inputs: list[Tensor]


@dataclass(frozen=True)
class Contest:
    """The work of each contender, the native engine first; and which cannot run here, and why."""

    works: dict[str, Work]
    absent: dict[str, str] = field(default_factory=dict)


def contest(entries: dict[str, Contender], case: Case, lengths: Tensor | None = None) -> Contest:
    """The work of each contender, once their outputs have been seen to be the same."""
    outputs: dict[str, Tensor] = {}
    absent: dict[str, str] = {}
    for name, entry in entries.items():
        try:
            with torch.no_grad():
                outputs[name] = entry.forward()
        except RuntimeError as problem:  # torch has no such kernel for this processor
            if name == "native":
                raise
            absent[name] = str(problem).splitlines()[0]
    check_outputs(outputs, case, lengths)
    return Contest({n: _work(entries[n], case.mode, lengths) for n in outputs}, absent)


def _work(entry: Contender, mode: str, lengths: Tensor | None) -> Work:
    if mode == "infer":

        def infer() -> None:
            with torch.inference_mode():
                entry.forward()

        return infer
    with torch.no_grad():
        y = entry.forward()
    d_y = torch.randn_like(y)
    if lengths is not None:
        d_y = d_y * _real(lengths, y)
    return lambda: torch.autograd.grad(entry.forward(), entry.inputs, d_y)


def _real(lengths: Tensor, y: Tensor) -> Tensor:
    """(time, batch, 1): whether a step is within its row."""
    return (torch.arange(y.shape[0])[:, None] < lengths)[..., None]


def check_outputs(outputs: dict[str, Tensor], case: Case, lengths: Tensor | None) -> None:
    expected = next(iter(outputs.values()))
    for name, y in outputs.items():
        apart = (y.float() - expected.float()).abs()
        apart = apart if lengths is None else apart * _real(lengths, y)
        if not apart.max() <= max(TOLERANCE[y.dtype], TOLERANCE[expected.dtype]):
            raise NotTheSame(
                f"{case.name}: the outputs of {name} differ from those of the native engine by "
                f"{apart.max():.2g}; nothing was timed"
            )


# -------------------------------------------------------------------- the layers
def make_layer(cell: Cell, hidden: int) -> Recurrent:
    """The layer that is measured, with the same weights every time."""
    torch.manual_seed(1)
    return Recurrent(cell, hidden, hidden, init="torch", engine="native").eval()


def weights(layer: Recurrent) -> list[nn.Parameter]:
    return list(layer.ways[0].way().parameters.values())  # type: ignore[arg-type]


@torch.no_grad()
def make_torch(name: str, layer: Recurrent) -> nn.RNNBase:
    """torch.nn's layer with the weights of ours."""
    module = MODULES[name](layer.input_size, layer.hidden_size)
    _, matrices = layer.ways[0].way()
    copy_weights(
        matrices["W"], matrices["U"], matrices["b"], matrices.get("d"), [*module.parameters()]
    )
    return module


def copy_weights(W: Tensor, U: Tensor, b: Tensor, d: Tensor | None, to: list[nn.Parameter]) -> None:
    """Into torch's parameters: input and recurrent weights, and the two biases."""
    second = torch.zeros_like(b)
    if d is not None:
        second[-len(d) :] = d
    for parameter, value in zip(to, (W, U, b, second), strict=True):
        parameter.copy_(value)


def make_loop(cell: Cell, hidden: int) -> Loop:
    """The torch loop of a cell, seen to be equal to the eager engine, gradients included."""
    if not getattr(cell, "_loop_is_checked", False):
        check_loop(cell)
        cell.__dict__["_loop_is_checked"] = True
    return torch_loop(cell.equations(hidden, hidden, training=False))


def check_loop(cell: Cell, sizes: tuple[int, int, int] = (4, 3, 5)) -> None:
    """Compares outputs, final states and gradients in float64."""
    steps, batch, hidden = sizes
    torch.manual_seed(1)
    layer = Recurrent(cell, hidden, hidden, init="torch").double()
    parameters = {n: p.detach().requires_grad_() for n, p in layer.ways[0].way().parameters.items()}
    x = torch.randn(steps, batch, hidden, dtype=torch.float64, requires_grad=True)
    state = tuple(torch.randn(batch, n).double() for n in cell.state_sizes(hidden, hidden))
    loop = torch_loop(cell.equations(hidden, hidden, training=False))
    inputs = [x, *parameters.values()]
    results = []
    for y, final in (
        run(cell, parameters, x, state, engine="eager"),
        loop(x, state, *parameters.values()),
    ):
        cost = sum(((v * v).sum() for v in (y, *final)), start=torch.zeros(()).double())
        results.append([y, *final, *torch.autograd.grad(cost, inputs, materialize_grads=True)])
    if not all(torch.allclose(a, b, atol=1e-9) for a, b in zip(*results, strict=True)):
        raise NotTheSame(f"{type(cell).__name__}: its loop is not equal to the eager engine")


# -------------------------------------------------------------------- entries, kind by kind
def dense(case: Case, cell: Cell, against: frozenset[str]) -> Contest:
    layer = make_layer(cell, case.hidden)
    x = torch.randn(case.shape).requires_grad_(case.mode == "train")
    parameters = weights(layer)
    entries = {"native": Contender(lambda: layer(x)[0], [x, *parameters])}
    if "torch.nn" in against and case.cell in MODULES:
        module = make_torch(case.cell, layer)
        entries["torch.nn"] = Contender(lambda: module(x)[0], [x, *module.parameters()])
    if "loop" in against:
        loop = make_loop(cell, case.hidden)
        state = layer.ways[0].start(x)
        entries["loop"] = Contender(lambda: loop(x, state, *parameters)[0], [x, *parameters])
    return contest(entries, case)


def unequal(case: Case, cell: Cell) -> Contest:
    """Native with lengths; torch.nn over all padded steps; torch.nn packed, from padded x to
    padded outputs."""
    layer = make_layer(cell, case.hidden)
    lengths = torch.tensor(lengths_of(case.spread, case.steps, case.batch))
    x = torch.randn(case.shape).requires_grad_(case.mode == "train")
    module = make_torch(case.cell, layer)

    def packed() -> Tensor:
        rows = pack_padded_sequence(x, lengths, enforce_sorted=False)
        return pad_packed_sequence(module(rows)[0], total_length=case.steps)[0]

    inputs = [x, *module.parameters()]
    entries = {
        "native": Contender(lambda: layer(x, lengths=lengths)[0], [x, *weights(layer)]),
        "padded": Contender(lambda: module(x)[0], inputs),
        "packed": Contender(packed, inputs),
    }
    return contest(entries, case, lengths)


def equal_steps(case: Case) -> int:
    """How many steps rows of equal length would have, to be as much work as the lengths."""
    return max(1, round(sum(lengths_of(case.spread, case.steps, case.batch)) / case.batch))


def spread(case: Case, cell: Cell) -> Contest:
    """The same layer over unequal and over equal lengths, with as many real steps."""
    layer = make_layer(cell, case.hidden)
    lengths = torch.tensor(lengths_of(case.spread, case.steps, case.batch))
    grad = case.mode == "train"
    x = torch.randn(case.shape).requires_grad_(grad)
    short = torch.randn(equal_steps(case), *case.shape[1:]).requires_grad_(grad)
    parameters = weights(layer)
    unequal_rows = Contender(lambda: layer(x, lengths=lengths)[0], [x, *parameters])
    equal_rows = Contender(lambda: layer(short)[0], [short, *parameters])
    return Contest(
        {
            "native": _work(unequal_rows, case.mode, lengths),
            "dense": _work(equal_rows, case.mode, None),
        }
    )


def one_step(case: Case, cell: Cell) -> Contest:
    """A stream: the state of a step is what the one before has left."""
    layer = make_layer(cell, case.hidden)
    _, matrices = layer.ways[0].way()
    x = torch.randn(case.batch, case.hidden)
    step = NativeStep(cell, matrices, case.hidden, case.batch)
    here, spare = step.empty(), step.empty()
    for part in here[1]:
        part.zero_()

    def native() -> None:
        nonlocal here, spare
        here, spare = step.step(x, here[1], out=spare), here

    state = layer.ways[0].start(x[None])

    def allocating() -> None:
        nonlocal state
        state = step.step(x, state)[1]

    works: dict[str, Work] = {"native": native, "new tensors": allocating}
    if case.cell in STEPPERS:
        module = STEPPERS[case.cell](case.hidden, case.hidden)
        with torch.no_grad():
            copy_weights(
                matrices["W"],
                matrices["U"],
                matrices["b"],
                matrices.get("d"),
                [*module.parameters()],
            )
        works["torch.nn"] = torch_stream(module, x, state)
        expected = module(x, state if len(state) == 2 else state[0])
        y = step.step(x, state)[0]
        other = expected[0] if isinstance(expected, tuple) else expected
        if not torch.allclose(y, other, atol=1e-5):
            raise NotTheSame(f"{case.name}: the step differs from that of {type(module).__name__}")
    return Contest(works)


def torch_stream(module: nn.RNNCellBase, x: Tensor, zero: tuple[Tensor, ...]) -> Work:
    state = zero if len(zero) == 2 else zero[0]

    def work() -> None:
        nonlocal state
        with torch.inference_mode():
            state = module(x, state)

    return work


def bfloat16(case: Case, cell: Cell) -> Contest:
    """Ours in bfloat16 and in float32, and torch.nn's with float32 weights under autocast."""
    layer = make_layer(cell, case.hidden)
    narrow = make_layer(cell, case.hidden).bfloat16()
    module = make_torch(case.cell, layer)
    x = torch.randn(case.shape).requires_grad_(case.mode == "train")
    short = x.detach().bfloat16().requires_grad_(case.mode == "train")

    def autocast() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return module(x)[0]  # type: ignore[no-any-return]

    entries = {
        "native": Contender(lambda: narrow(short)[0], [short, *weights(narrow)]),
        "float32": Contender(lambda: layer(x)[0], [x, *weights(layer)]),
        "autocast": Contender(autocast, [x, *module.parameters()]),
    }
    return contest(entries, case)


def compile_once(cell: Cell, hidden: int) -> float:
    """Seconds from the equations to a kernel that can be called, with an empty cache."""
    core(torch.float32)  # shared by all kernels
    before = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory(prefix="ensue-bench-") as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            begin = time.perf_counter()
            Kernel(cell.equations(hidden, hidden), torch.float32)
            return time.perf_counter() - begin
        finally:
            if before is None:
                del os.environ["XDG_CACHE_HOME"]
            else:
                os.environ["XDG_CACHE_HOME"] = before


MAKERS: dict[str, Callable[[Case, Cell], Contest]] = {
    "lengths": unequal,
    "spread": spread,
    "step": one_step,
    "bf16": bfloat16,
}


def make_contest(case: Case, cell: Cell, against: frozenset[str]) -> Contest:
    """Every contender of the case that runs in this process."""
    make = functools.partial(dense, against=against) if case.kind == "dense" else MAKERS[case.kind]
    return make(case, cell)
