"""The table of laws: every cell, wrapper and layer, and what it is exempt from.

`test_laws.py` runs every law over every row in every engine. A row that a law cannot apply to
names it under `exempt`, with the reason; that the law then really breaks is tested too.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar
from zlib import crc32

import torch
from subjects import Data, Subject, subject_of
from torch import nn

from ensue.cells import (
    CELLS,
    GRU,
    LSTM,
    Cell,
    GRUResetBefore,
    LeakyRNN,
    MinimalGated,
    OutputLayer,
    RecurrentDropout,
    RecurrentPerceptron,
    Residual,
    SimpleRNN,
    Zoneout,
)
from ensue.cells.simple import ACTIVATIONS
from ensue.engine import ENGINES
from ensue.engine.native import why_not_native
from ensue.equations import (
    Mask,
    Matrix,
    Vector,
    exp,
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
from ensue.layers import GRU as GRULayer
from ensue.layers import LSTM as LSTMLayer
from ensue.layers import RNN, Recurrent, Recursive

# engines that run every cell; "torch" knows three, and native needs a compiler
CPU = torch.device("cpu")
NATIVE = () if why_not_native(CPU, torch.float64) else ("native",)
GENERAL = (*NATIVE, *(name for name in ENGINES if name not in ("native", "torch")))
TIME, BATCH, INPUT, HIDDEN = 4, 3, 3, 4
LENGTHS = (2, 0, 4)  # unsorted, with an empty row and a full one


def example(name: str) -> ModuleType:
    """A module of examples/, which is no package."""
    if name not in sys.modules:
        path = Path(__file__).resolve().parent.parent / "examples" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


# --- cells for tests only: what a cell may do and no built-in one does --------------------


class Sizes(Cell):
    """State parts of three sizes: hidden, one of its own, and that of the input."""

    part_sizes: ClassVar = {"m": "pages", "last": "input"}
    pages = 2
    W, U, V, b = Matrix("x"), Matrix("h"), Matrix("m"), Vector()
    R, a = Matrix("last", size="pages"), Vector(size="pages")

    def step(self, x: Any, h: Any, m: Any, last: Any) -> Any:
        m = 0.5 * m + tanh(self.R @ last + self.a)
        h = tanh(self.W @ x + self.U @ h + self.V @ m + self.b)
        return h, m, 0.3 * last + x


class Elementwise(Cell):
    """x enters without a matrix too, and a product's operand is a parameter alone."""

    U, k, b = Matrix("h"), Vector("io"), Vector()

    def step(self, x: Any, h: Any) -> Any:
        return tanh(self.k.i * x + self.U @ h) + x * sigmoid(self.U @ tanh(self.b)) * self.k.o


class Functions(Cell):
    """Every function there is, away from where it has no value."""

    W, U, b = Matrix("x", "pqr"), Matrix("h", "pqr"), Vector("pqr")

    def step(self, x: Any, h: Any) -> Any:
        p, q, r = (W @ x + U @ h + b for W, U, b in zip(self.W, self.U, self.b, strict=True))
        share = exp(p) / (1 + total(exp(p)))
        root = sqrt(1 + q**2) - log(2 + softplus(r) * softplus(-p))
        bounded = minimum(maximum(q, -r), 1.5) - minimum(0.2, p)
        return 0.3 * (share + root + bounded - relu(r) + prelu(q, 0.1) / (2 + p * p)) + mean(r)


class Clipped(Cell):
    """Bounds stand first: a step that is no number must not come out as one of them."""

    W, U, b = Matrix("x"), Matrix("h"), Vector()

    def step(self, x: Any, h: Any) -> Any:
        return maximum(-0.9, minimum(0.9, self.W @ x + self.U @ h + self.b))


class Reading(Cell):
    """The output is not a state part and has a width of its own."""

    reading = 2
    W, U, b = Matrix("x"), Matrix("h"), Vector()
    V, R = Matrix("h", size="reading"), Matrix("x", size="reading")

    def step(self, x: Any, h: Any) -> Any:
        return tanh(self.W @ x + self.U @ h + self.b)

    def output(self, x: Any, h: Any) -> Any:
        return self.V @ (h * h) + sigmoid(self.R @ x)


class OneNumber(Cell):
    """A state part, two parameters and the output are a single number each."""

    part_sizes: ClassVar = {"level": "one"}
    W, U, V, b = Matrix("x"), Matrix("h"), Matrix("h"), Vector()
    k = Vector(("rate", "heat"), size="one")

    def step(self, x: Any, h: Any, level: Any) -> Any:
        level = sigmoid(self.k.rate) * level + mean(self.V @ h)
        n = tanh((self.W @ x + self.U @ h + self.b) * exp(self.k.heat) - level)
        return 0.5 * h + level * n, level

    def output(self, x: Any, h: Any, level: Any) -> Any:
        return total(h) * level


class Masked(Cell):
    """Masks of x and of the state, over the sequence and at each step."""

    W, U, b = Matrix("x"), Matrix("h"), Vector()
    mx, mh = Mask(0.2, size="input", over="step"), Mask(0.3)

    def step(self, x: Any, h: Any) -> Any:
        return tanh(self.W @ (self.mx * x) + self.U @ (self.mh * h) + self.b)


class SeveralOperands(Cell):
    """One gate of a matrix multiplies two states, the other one of them."""

    U, W = Matrix("h", "ab"), Matrix("x")

    def step(self, x: Any, h: Any, c: Any) -> Any:
        h_new = tanh(self.U.a @ h) * sigmoid(self.U.b @ h) + self.W @ x
        return h_new, tanh(self.U.a @ c)


class NumberTimesState(Cell):
    """A product of size one, whose adjoint is a single number of each row."""

    W, U = Matrix("x", size="one"), Matrix("h")

    def step(self, x: Any, h: Any) -> Any:
        return (self.W @ x) * h + tanh(self.U @ h)


# --- rows --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One subject. `build` gives a cell, which runs as a layer by itself, or a layer."""

    name: str
    build: Callable[[], Cell | nn.Module]
    input_size: int = INPUT
    hidden_size: int = HIDDEN
    with_state: bool = True  # runs from an initial state that is given, else from its own
    masked: bool = True  # masks are given, as in training, else their expectations used
    engines: tuple[str, ...] = GENERAL
    exempt: Mapping[str, str] = field(default_factory=dict)
    drawn: dict[tuple[int, int], Data] = field(default_factory=dict, init=False, repr=False)

    def subject(self, engine: str = "eager", seed: int | None = None) -> Subject:
        seed = crc32(self.name.encode()) if seed is None else seed
        subject = subject_of(self.build(), self.input_size, self.hidden_size, seed)
        if hasattr(subject.module, "engine"):
            subject.module.engine = engine
        return subject

    def data(self, time: int = TIME, batch: int = BATCH) -> Data:
        key = (time, batch)
        if key not in self.drawn:
            self.drawn[key] = self.subject().data(time, batch, self.with_state, self.masked)
        return replace(self.drawn[key], x=self.drawn[key].x.clone())  # which laws change


REPRESENTATIVES: dict[str, Callable[[], Cell]] = {
    "SimpleRNN": SimpleRNN,
    "GRU": GRU,
    "GRUResetBefore": GRUResetBefore,
    "LSTM": LSTM,
}
ZONEOUT_RATES: dict[str, dict[str, float]] = {"LSTM": {"h": 0.1, "c": 0.5}}


def wrapped() -> list[Row]:
    rows = []
    for name, cell in REPRESENTATIVES.items():
        rates = ZONEOUT_RATES.get(name, {"h": 0.3})
        rows += [
            Row(f"RecurrentDropout({name})", lambda cell=cell: RecurrentDropout(cell(), 0.4)),
            Row(f"Zoneout({name})", lambda cell=cell, rates=rates: Zoneout(cell(), rates)),
            Row(f"Residual({name})", lambda cell=cell: Residual(cell()), input_size=HIDDEN),
        ]
    return rows


def nested() -> Cell:
    return Residual(Zoneout(RecurrentDropout(LSTM(), 0.4), {"h": 0.1, "c": 0.5}))


PAST, WHOLE = "the future cannot change the past", "pieces with carried state are the whole"
RTRL, TRUNCATED = "rtrl sums to the gradient", "truncated bptt cuts where it says"

NEEDS_ALL = "the backward direction reads the sequence from its end"
BIDIRECTIONAL = {PAST: NEEDS_ALL, WHOLE: NEEDS_ALL, RTRL: NEEDS_ALL, TRUNCATED: NEEDS_ALL}
DROP_IN = {
    RTRL: "torch.nn's face has none; Recurrent has",
    TRUNCATED: "torch.nn's face has no pieces; Recurrent has",
}
BOTH_WAYS = {"bidirectional": True, "num_layers": 2}
EACH_CALL = "each call is brought to max_length by itself; `pieces` does it once, before it cuts"
TREE = "a tree has no state to begin with and no time to cut"

INFLUENCE = "everything has an influence"
OUTPUT_ALONE = {INFLUENCE: "h is the output and nothing else: the next step reads c"}
EXEMPT_CELLS = {"QRNN": OUTPUT_ALONE, "SRU": OUTPUT_ALONE}

CELL_ROWS = [
    *(Row(name, cell, exempt=EXEMPT_CELLS.get(name, {})) for name, cell in CELLS.items()),
    *(
        Row(f"SimpleRNN {g}", lambda g=g: SimpleRNN(g, pieces=3))
        for g in (*ACTIVATIONS, "prelu", "maxout")
    ),
    *(
        Row(f"RecurrentPerceptron {g}", lambda g=g: RecurrentPerceptron(g))
        for g in ACTIVATIONS
        if g != "sigmoid"  # the default
    ),
    Row("LeakyRNN 0.3", lambda: LeakyRNN(0.3)),
    Row("LeakyRNN learned", lambda: LeakyRNN(0.3, learned=True)),
    *wrapped(),
    Row("Residual(Zoneout(RecurrentDropout(LSTM)))", nested, input_size=HIDDEN),
    Row(
        "Residual(Zoneout(RecurrentDropout(LSTM))) outside training",
        nested,
        input_size=HIDDEN,
        masked=False,
    ),
    Row("OutputLayer(LSTM)", lambda: OutputLayer(LSTM())),
    Row("OutputLayer(Zoneout(Sizes))", lambda: OutputLayer(Zoneout(Sizes()))),
    Row("RecurrentDropout(Sizes)", lambda: RecurrentDropout(Sizes())),
    Row("Zoneout(OneNumber)", lambda: Zoneout(OneNumber())),
    Row("Sizes", Sizes),
    Row("Elementwise", Elementwise, input_size=HIDDEN),
    Row("Functions", Functions),
    Row("Clipped", Clipped),
    Row("Reading", Reading),
    Row("OneNumber", OneNumber),
    Row("SeveralOperands", SeveralOperands),
    Row("NumberTimesState", NumberTimesState),
    Row("Masked", Masked),
    Row("LateGate of the examples", lambda: example("your_own_cell").LateGate()),
]
# A cell is a description and holds no numbers: one for all tests of a row, traced once.
CELL_ROWS = [replace(row, build=cache(row.build)) for row in CELL_ROWS]

LAYER_ROWS = [
    Row("Recurrent stacked", lambda: Recurrent(GRU(), INPUT, HIDDEN, 2)),
    Row("Recurrent stacked, masks of x", lambda: Recurrent(Masked(), INPUT, HIDDEN, 2)),
    Row(
        "Recurrent with output layers",
        lambda: Recurrent(GRU(), INPUT, HIDDEN, 3, output_layers=True),
    ),
    Row(
        "Recurrent of different cells",
        lambda: Recurrent([GRUResetBefore(), Zoneout(LSTM()), Sizes()], INPUT, HIDDEN),
    ),
    *(
        Row(
            f"Recurrent bidirectional from {start}",
            lambda start=start: Recurrent(LSTM(), INPUT, HIDDEN, **BOTH_WAYS, backward_start=start),
            exempt=BIDIRECTIONAL,
        )
        for start in ("zero", "forward_end", "shared_end")
    ),
    Row(
        "Recurrent bidirectional with masks from shared_end",
        lambda: Recurrent(
            Zoneout(MinimalGated()), INPUT, HIDDEN, bidirectional=True, backward_start="shared_end"
        ),
        exempt=BIDIRECTIONAL,
    ),
    Row(
        "Recurrent with learned start",
        lambda: Recurrent(LSTM(), INPUT, HIDDEN, 2, initial="learned"),
        with_state=False,
    ),
    Row(
        "Recurrent padded to max_length",
        lambda: Recurrent(GRU(), INPUT, HIDDEN, max_length=6),
        exempt={WHOLE: EACH_CALL},
    ),
    Row(
        "Recurrent cut to max_length from the start",
        lambda: Recurrent(GRU(), INPUT, HIDDEN, max_length=3, cut="start"),
        exempt={
            WHOLE: EACH_CALL,
            PAST: "a step more at the end drops one at the start and moves all others",
            RTRL: "a stream of single steps has no length to cut",
        },
    ),
    Row("RNN tanh", lambda: RNN(INPUT, HIDDEN), exempt=DROP_IN),
    Row("RNN relu", lambda: RNN(INPUT, HIDDEN, nonlinearity="relu"), exempt=DROP_IN),
    Row("GRU layer", lambda: GRULayer(INPUT, HIDDEN), exempt=DROP_IN),
    Row("LSTM layer", lambda: LSTMLayer(INPUT, HIDDEN), exempt=DROP_IN),
    Row(
        "RNN stacked and bidirectional",
        lambda: RNN(INPUT, HIDDEN, **BOTH_WAYS),
        exempt=BIDIRECTIONAL | DROP_IN,
    ),
    Row(
        "GRU stacked and bidirectional",
        lambda: GRULayer(INPUT, HIDDEN, **BOTH_WAYS),
        exempt=BIDIRECTIONAL | DROP_IN,
    ),
    Row(
        "LSTM stacked and bidirectional",
        lambda: LSTMLayer(INPUT, HIDDEN, **BOTH_WAYS),
        exempt=BIDIRECTIONAL | DROP_IN,
    ),
    *(
        Row(
            f"Recursive {combine}",
            lambda combine=combine: Recursive(LSTM(), INPUT, HIDDEN, combine=combine),
            with_state=False,
            engines=("eager",),
            exempt={WHOLE: TREE, RTRL: TREE, TRUNCATED: TREE},
        )
        for combine in ("sum", "mean")
    ),
]

TABLE = CELL_ROWS + LAYER_ROWS
