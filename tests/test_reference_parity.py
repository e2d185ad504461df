"""Every cell against the NumPy references, and against the golden numbers.

Parity: outputs, final states and every gradient, with rows of unequal length. The golden
numbers come from the sources' own examples; that exchanged gates would not pass them is
tested by exchanging them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import reference
import torch
from laws import BATCH, GENERAL, HIDDEN, INPUT, LENGTHS, TIME
from reference import Array, Masks, Reference
from torch import Tensor
from torch.testing import assert_close

from ensue.cells import (
    CELLS,
    GRU,
    LSTM,
    MGU,
    Cell,
    CoupledLSTM,
    GRUGateThroughReset,
    GRUResetBefore,
    LeakyRNN,
    MinimalGated,
    PeepholeLSTM,
    RecurrentDropout,
    RecurrentPerceptron,
    Residual,
    SimpleRNN,
    Zoneout,
)
from ensue.engine import run
from ensue.equations import sigmoid, tanh

# --- parity ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """A cell and its reference."""

    cell: Cell
    reference: Reference
    input_size: int = INPUT


ACTIVATIONS = tuple(reference.ACTIVATIONS)
PAIRS: dict[str, Pair] = {
    **{name: Pair(cell(), reference.REFERENCES[name]()) for name, cell in CELLS.items()},
    **{f"SimpleRNN {g}": Pair(SimpleRNN(g, pieces=3), reference.SimpleRNN(g)) for g in ACTIVATIONS},
    **{
        f"RecurrentPerceptron {g}": Pair(RecurrentPerceptron(g), reference.recurrent_perceptron(g))
        for g in ("tanh", "relu", "linear")
    },
    "LeakyRNN 0.3": Pair(LeakyRNN(0.3), reference.LeakyRNN(0.3)),
    "LeakyRNN learned": Pair(LeakyRNN(learned=True), reference.LeakyRNN(learned=True)),
    "RecurrentDropout SimpleRNN": Pair(
        RecurrentDropout(SimpleRNN()), reference.RecurrentDropout(reference.SimpleRNN())
    ),
    "RecurrentDropout GRU": Pair(
        RecurrentDropout(GRU()), reference.RecurrentDropout(reference.GRU())
    ),
    "RecurrentDropout GRUResetBefore": Pair(
        RecurrentDropout(GRUResetBefore()), reference.RecurrentDropout(reference.GRUResetBefore())
    ),
    "RecurrentDropout MGU": Pair(
        RecurrentDropout(MGU()), reference.RecurrentDropout(reference.MGU())
    ),
    "RecurrentDropout LSTM": Pair(
        RecurrentDropout(LSTM()), reference.RecurrentDropout(reference.LSTM())
    ),
    "Zoneout GRU": Pair(Zoneout(GRU()), reference.Zoneout(reference.GRU())),
    "Zoneout LSTM": Pair(Zoneout(LSTM()), reference.Zoneout(reference.LSTM())),
    "Residual LSTM": Pair(Residual(LSTM()), reference.Residual(reference.LSTM()), HIDDEN),
    "Residual Zoneout RecurrentDropout LSTM": Pair(
        Residual(Zoneout(RecurrentDropout(LSTM()))),
        reference.Residual(reference.Zoneout(reference.RecurrentDropout(reference.LSTM()))),
        HIDDEN,
    ),
}


@dataclass(frozen=True)
class Case:
    """All that goes in, as arrays."""

    parameters: dict[str, Array]
    x: Array
    state: tuple[Array, ...]
    masks: dict[str, Array]
    dy: Array
    dfinal: tuple[Array, ...]


def case_of(pair: Pair) -> Case:
    random = np.random.default_rng(4)
    shapes = pair.cell.shapes(pair.input_size, HIDDEN)
    sizes = pair.cell.state_sizes(pair.input_size, HIDDEN)
    return Case(
        parameters={n: random.normal(scale=0.6, size=shape) for n, shape in shapes.items()},
        x=random.normal(size=(TIME, BATCH, pair.input_size)),
        state=tuple(random.normal(size=(BATCH, size)) for size in sizes),
        masks={
            name: random.choice(
                [0.0, 0.3, 1.0, 1.5],
                size=(*((TIME,) if mask.over == "step" else ()), BATCH, HIDDEN),
            )
            for name, mask in pair.cell.masks.items()
        },
        dy=random.normal(size=(TIME, BATCH, HIDDEN)),
        dfinal=tuple(random.normal(size=(BATCH, size)) for size in sizes),
    )


Named = dict[str, Array]


def by_reference(pair: Pair, case: Case, lengths: tuple[int, ...] | None) -> Named:
    zoneout = tuple(m for m in case.masks.values() if m.ndim == 3)
    masks = Masks(recurrent=case.masks.get("m"), zoneout=zoneout or None)
    y, final, tape = pair.reference.forward(case.parameters, case.x, case.state, masks, lengths)
    dparameters, dx, dstate = pair.reference.backward(case.parameters, tape, case.dy, case.dfinal)
    return named(pair, y, final, dx, dstate, dparameters)


def by_ensue(pair: Pair, case: Case, lengths: tuple[int, ...] | None, engine: str) -> Named:
    def leaf(v: Array) -> Tensor:
        return torch.tensor(v, requires_grad=True)

    x, state = leaf(case.x), tuple(leaf(s) for s in case.state)
    parameters = {name: leaf(v) for name, v in case.parameters.items()}
    masks = {name: torch.tensor(m) for name, m in case.masks.items()} or None
    ends = None if lengths is None else torch.tensor(lengths)
    y, final = run(pair.cell, parameters, x, state, ends, masks, engine)
    seeds = [torch.tensor(d) for d in (case.dy, *case.dfinal)]
    torch.autograd.backward([y, *final], seeds)
    gradients = {name: p.grad.numpy() for name, p in parameters.items()}
    values = (v.detach().numpy() for v in final)
    back = (s.grad.numpy() for s in state)
    return named(pair, y.detach().numpy(), values, x.grad.numpy(), back, gradients)


def named(
    pair: Pair,
    y: Array,
    final: Iterable[Array],
    dx: Array,
    dstate: Iterable[Array],
    dparameters: Named,
) -> Named:
    parts = pair.cell.parts
    return {
        "y": y,
        **{f"final {part}": v for part, v in zip(parts, final, strict=True)},
        "∂x": dx,
        **{f"∂{part}": v for part, v in zip(parts, dstate, strict=True)},
        **{f"∂{name}": v for name, v in dparameters.items()},
    }


@pytest.mark.parametrize("engine", GENERAL)
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "lengths"])
@pytest.mark.parametrize("name", PAIRS)
def test_a_cell_is_its_reference(name: str, lengths: tuple[int, ...] | None, engine: str) -> None:
    pair = PAIRS[name]
    case = case_of(pair)
    actual, expected = by_ensue(pair, case, lengths, engine), by_reference(pair, case, lengths)
    assert actual.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(actual[key], value, rtol=1e-10, atol=1e-10, err_msg=key)


def test_every_cell_has_a_reference() -> None:
    assert set(CELLS) <= reference.REFERENCES.keys()
    assert {type(pair.cell).__name__ for pair in PAIRS.values()} >= reference.REFERENCES.keys()


# --- golden numbers ----------------------------------------------------------------------

X = (1.0, -0.5, 2.0)
Numbers = dict[str, list[float]]  # a parameter's gates in order

GATED: Numbers = {"W": [1, 2], "U": [0.5, -1], "b": [0, 0.1]}  # n, u
RESET: Numbers = {"W": [0.4, -0.6, 1], "U": [-0.8, 0.9, 1.5], "b": [0, 0, 0]}  # r, z, n
MEMORY: Numbers = {"W": [0.5, -0.3, 1, 0.7], "U": [0.1, 0.2, 0.6, -0.4], "b": [0, 1, 0, 0]}  # ifgo


def scalars(parameters: Numbers) -> dict[str, Tensor]:
    """One unit and one input: a column for each matrix, a number a gate for each vector."""
    columns = {n: torch.tensor(v, dtype=torch.float64) for n, v in parameters.items()}
    return {n: v[:, None] if n in ("W", "U") else v for n, v in columns.items()}


def outputs(cell: Cell, parameters: Numbers, start: float = 0.0, engine: str = "eager") -> Tensor:
    x = torch.tensor(X, dtype=torch.float64).view(-1, 1, 1)
    state = tuple(torch.full((1, 1), start, dtype=torch.float64) for _ in cell.parts)
    return run(cell, scalars(parameters), x, state, engine=engine)[0].flatten()


def assert_golden(actual: Tensor, *expected: float) -> None:
    assert_close(actual, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=6e-8)


MINIMAL_GATED = (0.6785067, 0.5352227, 0.9665700)
RESET_BEFORE = (0.7041302, 0.4595232, 0.8200427)
RESET_AFTER = (0.7177388, 0.4942838, 0.8307773)
LONG_SHORT = (0.2949882, 0.0856206, 0.5485712)
GOLDEN: dict[str, tuple[Cell, Numbers, float, tuple[float, ...]]] = {
    "minimal gated unit": (MinimalGated(), GATED, 0.0, MINIMAL_GATED),
    "GRU, reset before": (GRUResetBefore(), RESET, 0.5, RESET_BEFORE),
    "GRU, reset after": (GRU(), {**RESET, "d": [0.25]}, 0.5, RESET_AFTER),
    "LSTM": (LSTM(), MEMORY, 0.0, LONG_SHORT),
}


@pytest.mark.parametrize("engine", GENERAL)
@pytest.mark.parametrize("name", GOLDEN)
def test_golden_outputs(name: str, engine: str) -> None:
    cell, parameters, start, expected = GOLDEN[name]
    assert_golden(outputs(cell, parameters, start, engine), *expected)


@pytest.mark.parametrize("engine", GENERAL)
def test_golden_backpropagation_through_time(engine: str) -> None:
    """h' = tanh(u x + w h), ŷ = v h, cost ½ Σ (ŷ − target)²."""
    x = torch.tensor([1, -1, 0.5, 2, -0.3], dtype=torch.float64).view(-1, 1, 1)
    targets = torch.tensor([0.2, 0.1, -0.4, 0.3, 0], dtype=torch.float64)
    weights = scalars({"W": [0.5], "U": [0.8], "b": [0.0]})
    u, w, v = weights["W"], weights["U"], torch.tensor(1.2, dtype=torch.float64)
    for leaf in (u, w, v):
        leaf.requires_grad_()
    y, _ = run(SimpleRNN(), weights, x, (torch.zeros(1, 1, dtype=torch.float64),), engine=engine)
    error = (v * y.flatten() - targets).square().sum() / 2
    error.backward()
    assert_golden(error.detach()[None], 0.6343696)
    slopes = torch.stack([leaf.grad.flatten()[0] for leaf in (u, w, v)])
    assert_golden(slopes, 1.3525651, 0.5788145, 1.0705042)


@pytest.mark.parametrize("engine", GENERAL)
def test_golden_counting(engine: str) -> None:
    """The linear cell with W = U = 1 counts the ones."""
    x = torch.tensor([1.0, 0, 1, 1, 0]).view(-1, 1, 1)
    one = {"W": torch.ones(1, 1), "U": torch.ones(1, 1), "b": torch.zeros(1)}
    y, _ = run(SimpleRNN("linear"), one, x, (torch.zeros(1, 1),), engine=engine)
    assert y.flatten().tolist() == [1, 1, 2, 3, 3]


# --- exchanged gates do not pass ---------------------------------------------------------


def permuted(numbers: Numbers, *order: int) -> Numbers:
    """The gates in another order: what a cell would read that has them so."""
    return {n: [v[k] for k in order] if len(v) == len(order) else v for n, v in numbers.items()}


WITH_D: Numbers = {**RESET, "d": [0.25]}
EXCHANGED: dict[str, tuple[Cell, Numbers, float, tuple[float, ...]]] = {
    "reset and update": (GRU(), permuted(WITH_D, 1, 0, 2), 0.5, RESET_AFTER),
    "update and candidate": (GRU(), permuted(WITH_D, 0, 2, 1), 0.5, RESET_AFTER),
    "no bias inside the reset": (GRU(), {**RESET, "d": [0.0]}, 0.5, RESET_AFTER),
    "gate through reset": (GRUGateThroughReset(), RESET, 0.5, RESET_BEFORE),
    "the candidate gated too": (MGU(), GATED, 0.0, MINIMAL_GATED),
    "candidate and gate": (MinimalGated(), permuted(GATED, 1, 0), 0.0, MINIMAL_GATED),
    "input and forget": (LSTM(), permuted(MEMORY, 1, 0, 2, 3), 0.0, LONG_SHORT),
    "input and output": (LSTM(), permuted(MEMORY, 3, 1, 2, 0), 0.0, LONG_SHORT),
    "candidate and output": (LSTM(), permuted(MEMORY, 0, 1, 3, 2), 0.0, LONG_SHORT),
}


@pytest.mark.parametrize("what", EXCHANGED)
def test_exchanged_weights_miss_the_golden_numbers(what: str) -> None:
    cell, parameters, start, golden = EXCHANGED[what]
    with pytest.raises(AssertionError):
        assert_golden(outputs(cell, parameters, start), *golden)


class UpdateExchanged(GRU):
    def step(self, x: Any, h: Any) -> Any:
        W, U, b, d = self.W, self.U, self.b, self.d
        r = sigmoid(W.r @ x + U.r @ h + b.r)
        z = sigmoid(W.z @ x + U.z @ h + b.z)
        n = tanh(W.n @ x + b.n + r * (U.n @ h + d))
        return z * n + (1 - z) * h


class UpdateExchangedBefore(GRUResetBefore):
    def step(self, x: Any, h: Any) -> Any:
        W, U, b = self.W, self.U, self.b
        r = sigmoid(W.r @ x + U.r @ h + b.r)
        z = sigmoid(W.z @ x + U.z @ h + b.z)
        n = tanh(W.n @ x + U.n @ (r * h) + b.n)
        return z * n + (1 - z) * h


class ResetBeforeForAfter(GRU):
    def step(self, x: Any, h: Any) -> Any:
        W, U, b, d = self.W, self.U, self.b, self.d
        r = sigmoid(W.r @ x + U.r @ h + b.r)
        z = sigmoid(W.z @ x + U.z @ h + b.z)
        n = tanh(W.n @ x + U.n @ (r * h) + r * d + b.n)
        return (1 - z) * n + z * h


class ResetAfterForBefore(GRUResetBefore):
    def step(self, x: Any, h: Any) -> Any:
        W, U, b = self.W, self.U, self.b
        r = sigmoid(W.r @ x + U.r @ h + b.r)
        z = sigmoid(W.z @ x + U.z @ h + b.z)
        n = tanh(W.n @ x + b.n + r * (U.n @ h))
        return (1 - z) * n + z * h


class UpdateExchangedThroughReset(GRUGateThroughReset):
    def step(self, x: Any, h: Any) -> Any:
        W, U, b = self.W, self.U, self.b
        r = sigmoid(W.r @ x + U.r @ h + b.r)
        u = sigmoid(W.u @ x + U.u @ (r * h) + b.u)
        n = tanh(W.n @ x + U.n @ (r * h) + b.n)
        return u * h + (1 - u) * n


class KeepExchanged(MinimalGated):
    def step(self, x: Any, h: Any) -> Any:
        W, U, b = self.W, self.U, self.b
        n = tanh(W.n @ x + U.n @ h + b.n)
        u = sigmoid(W.u @ x + U.u @ h + b.u)
        return (1 - u) * n + u * h


class CouplingExchanged(CoupledLSTM):
    def step(self, x: Any, h: Any, c: Any) -> Any:
        W, U, b = self.W, self.U, self.b
        f = sigmoid(W.f @ x + U.f @ h + b.f)
        g = tanh(W.g @ x + U.g @ h + b.g)
        o = sigmoid(W.o @ x + U.o @ h + b.o)
        c = (1 - f) * c + f * g
        return o * tanh(c), c


class OutputPeepsAtTheOld(PeepholeLSTM):
    def step(self, x: Any, h: Any, c: Any) -> Any:
        W, U, b, p = self.W, self.U, self.b, self.p
        i = sigmoid(W.i @ x + U.i @ h + p.i * c + b.i)
        f = sigmoid(W.f @ x + U.f @ h + p.f * c + b.f)
        g = tanh(W.g @ x + U.g @ h + b.g)
        o = sigmoid(W.o @ x + U.o @ h + p.o * c + b.o)
        c = f * c + i * g
        return o * tanh(c), c


WRONG: dict[type[Cell], Reference] = {
    UpdateExchanged: reference.GRU(),
    UpdateExchangedBefore: reference.GRUResetBefore(),
    ResetBeforeForAfter: reference.GRU(),
    ResetAfterForBefore: reference.GRUResetBefore(),
    UpdateExchangedThroughReset: reference.GRUGateThroughReset(),
    KeepExchanged: reference.MinimalGated(),
    CouplingExchanged: reference.CoupledLSTM(),
    OutputPeepsAtTheOld: reference.PeepholeLSTM(),
}


@pytest.mark.parametrize("cell", WRONG)
def test_an_exchange_inside_the_step_misses_the_reference(cell: type[Cell]) -> None:
    """Not by rounding: by more than a hundredth, and so do the gradients."""
    pair = Pair(cell(), WRONG[cell])
    case = case_of(pair)
    actual, right = by_ensue(pair, case, LENGTHS, "eager"), by_reference(pair, case, LENGTHS)
    for key in ("y", "∂x", "∂U"):
        assert np.abs(actual[key] - right[key]).max() > 1e-2, key


def test_one_unit_cannot_tell_reset_before_from_after() -> None:
    """U·(r*h) = r*(U·h) there: only the references above, with more units, see that exchange."""
    after = outputs(GRU(), {**RESET, "d": [0.0]}, 0.5)
    assert_close(after, outputs(GRUResetBefore(), RESET, 0.5), rtol=0, atol=1e-15)
