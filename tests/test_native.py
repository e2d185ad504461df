"""The native engine: as close to exact as eager, whatever the cell, shape, stride and type;
only what was requested; the same bits every time; torch and the processor left as they were."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from laws import NumberTimesState, OneNumber, Reading, SeveralOperands, Sizes
from parity import KernelInputs, as_it_is, assert_as_close_as_eager, needs_native, spaced, turned
from random_cells import random_cells
from torch import Tensor
from torch.autograd import forward_ad, gradgradcheck
from torch.testing import assert_close

from ensue.cells import (
    CELLS,
    GRU,
    LSTM,
    Cell,
    GRUResetBefore,
    LayerNormLSTM,
    RecurrentDropout,
    Residual,
    SimpleRNN,
    Zoneout,
)
from ensue.engine import run
from ensue.engine.native import single_step
from ensue.engine.native.call import Needed
from ensue.engine.native.gradients import GradientProducts
from ensue.engine.native.kernel import Kernel
from ensue.engine.native.single_step import SingleStep
from ensue.equations import Matrix, tanh
from ensue.errors import OptionError, ShapeError

pytestmark = needs_native
LENGTHS = torch.tensor([6, 3, 0, 5, 6, 2, 6, 4, 1, 6])
RANDOM = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
EXACT = {"rtol": 0, "atol": 0}
TIGHT = {"rtol": 1e-9, "atol": 1e-10}


@pytest.fixture(autouse=True, scope="module")
def _new_memory_is_no_number() -> Iterator[None]:
    """What is used before it was written shows."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


def drawn(cell: Cell, input_size: int, hidden: int) -> Callable[[int], KernelInputs]:
    """Numbers for a cell by seed, with and without lengths, in both directions."""

    def draw(seed: int) -> KernelInputs:
        one = KernelInputs.of(cell, input_size, hidden, 6, len(LENGTHS), seed)
        return replace(one, lengths=None if seed % 2 else LENGTHS, reverse=seed % 4 > 1)

    return draw


def drawn_once(cell: Cell, input_size: int, hidden: int) -> Callable[[int], KernelInputs]:
    """The same for one step, which has a kernel of its own."""

    def draw(seed: int) -> KernelInputs:
        one = KernelInputs.of(cell, input_size, hidden, 1, seed % 5, seed)
        return replace(one, reverse=seed % 4 > 1)

    return draw


def without_masks(draw: Callable[[int], KernelInputs]) -> Callable[[int], KernelInputs]:
    return lambda seed: replace(draw(seed), masks=None)


# --- as close as eager -------------------------------------------------------------------


@RANDOM
@given(random_cells(hidden=(1, 5, 17)))
def test_random_cells_are_as_close_as_eager(cell: Cell) -> None:
    assert_as_close_as_eager(drawn(cell, cell.input_size, cell.hidden_size))


MANY_SIZES = (1, 2, 4, 7, 16, 23, 40)


@pytest.mark.slow
@settings(RANDOM, max_examples=200)
@given(random_cells(hidden=MANY_SIZES), st.booleans())
def test_many_random_cells_are_as_close_as_eager(cell: Cell, masked: bool) -> None:
    draw = drawn(cell, cell.input_size, cell.hidden_size)
    assert_as_close_as_eager(draw if masked else without_masks(draw))


@pytest.mark.slow
@settings(RANDOM, max_examples=200)
@given(random_cells(hidden=MANY_SIZES), st.booleans())
def test_many_random_cells_in_double(cell: Cell, masked: bool) -> None:
    draw = drawn(cell, cell.input_size, cell.hidden_size)
    for seed in range(4):
        one = (draw if masked else without_masks(draw))(seed)
        assert_close(one.outcome("native"), one.outcome("eager"), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", CELLS)
def test_built_in_cells_are_as_close_as_eager(name: str) -> None:
    assert_as_close_as_eager(drawn(CELLS[name](), 9, 17))


# Who does the products of a single step: the most flops that are small, and threads
PRODUCTS = {"in the call": (10**9, 1), "in the call, by three": (10**9, 3), "by torch": (0, 1)}


def done_by(who: str, patch: pytest.MonkeyPatch) -> None:
    small, threads = PRODUCTS[who]
    for name in ("SMALL", "SMALL_FOR_SEVERAL"):
        patch.setattr(single_step, name, small)
    patch.setattr(single_step, "thread_count", lambda rows, flops: max(1, min(threads, rows)))


@pytest.fixture(params=PRODUCTS)
def products(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    done_by(request.param, monkeypatch)


@pytest.mark.parametrize("who", PRODUCTS)
@settings(RANDOM, max_examples=15)
@given(random_cells(hidden=(1, 5, 17)), st.booleans())
def test_one_step_of_random_cells(who: str, cell: Cell, masked: bool) -> None:
    draw = drawn_once(cell, cell.input_size, cell.hidden_size)
    with pytest.MonkeyPatch.context() as patch:
        done_by(who, patch)
        for seed in range(4):
            one = (draw if masked else without_masks(draw))(seed)
            assert_close(one.outcome("native"), one.outcome("eager"), rtol=1e-8, atol=1e-9)


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("name", CELLS)
def test_one_step_of_built_in_cells_is_as_close_as_eager(name: str) -> None:
    assert_as_close_as_eager(drawn_once(CELLS[name](), 9, 17))


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("batch", [1, 3, 6, 37])
def test_one_wide_step_is_as_close_as_eager(batch: int) -> None:
    """Rows and columns in whole blocks and in parts of them, and sums over many units."""
    assert_as_close_as_eager(lambda seed: KernelInputs.of(LSTM(), 70, 100, 1, batch, seed))


@pytest.mark.parametrize(
    ("cell", "packed"), [(SimpleRNN(), 0), (GRU(), 0), (LSTM(), 0), (GRUResetBefore(), 1)]
)
def test_one_step_packs_no_matrix_of_what_is_given(cell: Cell, packed: int) -> None:
    """A packed matrix pays when it is used again. U·(r*h) waits for r, and stays in the kernel."""
    functions = SingleStep(cell.equations(3, 5), torch.float32).source.functions
    assert [len(functions[name].panels) for name in ("forward", "backward")] == [packed, packed]


@pytest.mark.parametrize("cell", [LSTM(), LayerNormLSTM(), Zoneout(RecurrentDropout(GRU()))])
def test_half_precision_is_as_close_as_eager(cell: Cell) -> None:
    """bfloat16 is computed in float32, so that it is a good deal closer."""
    assert_as_close_as_eager(drawn(cell, 9, 17), torch.bfloat16)


def test_long_sums_keep_their_digits() -> None:
    """A parameter's gradient is a sum over all rows and steps."""
    assert_as_close_as_eager(lambda seed: KernelInputs.of(LSTM(), 3, 5, 60, 40, seed))


# --- shapes, strides, types --------------------------------------------------------------

SHAPED = {
    "LSTM": LSTM(),
    "two stages": GRUResetBefore(),
    "reductions": LayerNormLSTM(),
    "masks of steps and sequences": Zoneout(RecurrentDropout(GRU())),
    "sizes": Sizes(),
    "single numbers": OneNumber(),
    "an output of its own": Reading(),
    "a matrix of several operands": SeveralOperands(),
    "a product of one number": NumberTimesState(),
}


@st.composite
def shaped(draw: Callable[[Any], Any]) -> tuple[KernelInputs, torch.dtype]:
    cell = SHAPED[draw(st.sampled_from(sorted(SHAPED)))]
    time, batch = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    hidden = draw(st.sampled_from((1, 2, 3, 7, 8, 9, 16, 17, 33)))
    one = KernelInputs.of(cell, draw(st.integers(1, 5)), hidden, time, batch)
    lengths = draw(st.none() | st.lists(st.integers(0, time), min_size=batch, max_size=batch))
    one = replace(
        one,
        masks=one.masks if draw(st.booleans()) else None,
        lengths=None if lengths is None else torch.tensor(lengths, dtype=torch.int64),
        reverse=draw(st.booleans()),
        layout=draw(st.sampled_from((as_it_is, spaced, turned))),
    )
    return one, draw(st.sampled_from((torch.float64, torch.float32, torch.bfloat16)))


@settings(RANDOM, max_examples=120)
@given(shaped())
def test_any_shape_stride_and_type(shaped: tuple[KernelInputs, torch.dtype]) -> None:
    case, dtype = shaped
    exact, outcome = case.outcome("eager"), case.outcome("native", dtype)
    tolerance = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 0.3}[dtype]
    for name, v in exact.items():
        assert outcome[name].shape == v.shape
        scale = float(v.abs().max()) if v.numel() else 0.0
        assert_close(
            outcome[name], v, rtol=0, atol=tolerance * (1 + scale), msg=lambda m, n=name: n + m
        )


def test_gradients_and_states_that_are_one_number_spread_out() -> None:
    """What a sum sends back, and a learned start, have strides of zero."""

    def gradients(engine: str) -> list[Tensor]:
        g = KernelInputs.of(LSTM(), 3, 5, 4, 3)
        start = torch.full((1, 5), 0.3, dtype=torch.float64, requires_grad=True)
        x, *rest = g.leaves(torch.float64).values()
        W, U, b = rest[2:]
        parameters = {"W": W, "U": U, "b": b}
        y, (h, c) = run(LSTM(), parameters, x, (start.expand(3, 5),) * 2, None, None, engine)
        return list(torch.autograd.grad(y.sum() + h.sum() + c.mean(), [start, x, W, U, b]))

    assert_close(gradients("native"), gradients("eager"), **TIGHT)


WRONG: dict[str, tuple[str, Callable[[KernelInputs], Any]]] = {
    r"state h: expected torch.float64 .* got torch.float32": (
        "state",
        lambda g: (g.state[0].float(), *g.state[1:]),
    ),
    r"state c: expected shape \(3, 5\), got \(2, 5\)": (
        "state",
        lambda g: (g.state[0], g.state[1][:2]),
    ),
    r"b: expected shape \(20,\), got \(3,\)": (
        "parameters",
        lambda g: {**g.parameters, "b": g.parameters["b"][:3]},
    ),
    r"b: expected torch.float64 .* got torch.float32": (
        "parameters",
        lambda g: {**g.parameters, "b": g.parameters["b"].float()},
    ),
    r"mask m: expected shape \(3, 5\), got \(3, 4\)": (
        "masks",
        lambda g: {**g.masks, "m": g.masks["m"][:, :4]},
    ),
    r"mask m: expected torch.float64 .* got torch.bool": (
        "masks",
        lambda g: {**g.masks, "m": g.masks["m"] > 0},
    ),
    r"mask m_h: expected a tensor of shape \(4, 3, 5\), got none": (
        "masks",
        lambda g: {"m": g.masks["m"]},
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_memory_is_never_read_as_what_it_is_not(message: str) -> None:
    name, make = WRONG[message]
    one = KernelInputs.of(Zoneout(RecurrentDropout(LSTM())), 3, 5, 4, 3)
    one = replace(one, **{name: make(one)})
    with pytest.raises(ShapeError, match=message):
        run(one.cell, one.parameters, one.x, one.state, None, one.masks, "native")


# --- only what was requested -------------------------------------------------------------


@pytest.fixture
def backward_passes(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What each backward pass was asked for, and whether the product for x was made."""
    requests: list[dict[str, Any]] = []
    whole, product = Kernel.backward, GradientProducts.x

    def backward(self: Kernel, tape: Any, p: Any, y: Any, adjoints: Any, request: Needed) -> Any:
        requests.append({"x": request.x, "parameters": set(request.parameters), "product": False})
        gradients = whole(self, tape, p, y, adjoints, request)
        requests[-1]["given"] = set(gradients.parameters)
        requests[-1]["states"] = [
            f"state {k}" for k, d in enumerate(gradients.state) if d is not None
        ]
        return gradients

    def d_x(self: GradientProducts, *arguments: Any) -> Tensor:
        requests[-1]["product"] = True
        return product(self, *arguments)

    monkeypatch.setattr(Kernel, "backward", backward)
    monkeypatch.setattr(GradientProducts, "x", d_x)
    return requests


ASKED: list[tuple[str, ...]] = [
    *[("x",), ("W",), ("U",), ("b",), ("state 0",), ("state 1",), ("state 0", "state 1")],
    *[("x", "b"), ("W", "U", "b"), ("U", "state 1"), ("x", "W", "U", "b")],
]


@pytest.mark.parametrize("names", ASKED, ids=" ".join)
def test_only_the_gradients_asked_for_are_computed(
    names: tuple[str, ...], backward_passes: list[dict[str, Any]]
) -> None:
    for lengths in (None, torch.tensor([2, 0, 4])):
        one = replace(KernelInputs.of(LSTM(), 3, 5, 4, 3), lengths=lengths)
        outcome, full = one.outcome("native", ask=names), one.outcome("eager")
        assert {n for n in outcome if n.startswith("∂")} == {f"∂{n}" for n in names}
        assert_close(outcome, {name: full[name] for name in outcome}, **TIGHT)
        (request,) = backward_passes
        parameters = {n for n in names if n in one.parameters}
        assert request == {
            "x": "x" in names,
            "product": "x" in names,
            "parameters": parameters,
            "given": parameters,
            "states": [n for n in names if n.startswith("state")],
        }
        backward_passes.clear()


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("names", [(), *ASKED], ids=" ".join)
def test_of_one_step_too(names: tuple[str, ...]) -> None:
    for cell in (LSTM(), GRUResetBefore(), SeveralOperands()):
        one = KernelInputs.of(cell, 3, 5, 1, 3)
        full = one.outcome("eager")
        here = tuple(name for name in names if f"∂{name}" in full)
        outcome = one.outcome("native", ask=here)
        assert {n for n in outcome if n.startswith("∂")} == {f"∂{n}" for n in here}
        assert_close(outcome, {name: full[name] for name in outcome}, **TIGHT)


class Inward(Cell):
    """Does not read x."""

    U = Matrix("h")

    def step(self, x: Any, h: Any) -> Any:
        return tanh(self.U @ h)


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("batch", [0, 3])
def test_what_is_not_read_has_a_derivative_of_zero(batch: int) -> None:
    for steps in (1, 4):
        one = KernelInputs.of(Inward(), 3, 5, steps, batch)
        assert_close(one.outcome("native"), one.outcome("eager"), **TIGHT)


def test_a_hook_may_give_saved_tensors_another_layout() -> None:
    def turn(v: Tensor) -> Tensor:
        return v.transpose(-1, -2).contiguous() if v.dim() > 1 else v

    def back(v: Tensor) -> Tensor:
        return v.transpose(-1, -2) if v.dim() > 1 else v

    one = KernelInputs.of(SimpleRNN(), 3, 5, 1, 4)
    with torch.autograd.graph.saved_tensors_hooks(turn, back):
        outcome = one.outcome("native")
    assert_close(outcome, one.outcome("eager"), **TIGHT)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_negative_sign_that_is_only_noted_counts(steps: int) -> None:
    one = KernelInputs.of(LSTM(), 3, 5, steps, 4)
    turned = replace(one, x=-one.x, state=tuple(-s for s in one.state))
    noted = replace(one, x=torch._neg_view(one.x), state=tuple(map(torch._neg_view, one.state)))
    cell_and_weights = (one.cell, one.parameters)
    outcome = run(*cell_and_weights, noted.x, noted.state, engine="native")
    assert_close(outcome, run(*cell_and_weights, turned.x, turned.state, engine="native"))


@pytest.mark.parametrize("steps", [1, 3])
def test_a_tensor_of_nobody_has_no_gradient(steps: int) -> None:
    one = KernelInputs.of(LSTM(), 3, 5, steps, 4)
    more = torch.ones(3, requires_grad=True)
    W = one.parameters["W"].clone().requires_grad_()
    parameters = {**one.parameters, "W": W, "more": more}
    run(one.cell, parameters, one.x, one.state, engine="native")[0].sum().backward()
    assert W.grad is not None
    assert more.grad is None


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # torch's own use
@pytest.mark.parametrize("steps", [1, 3])
def test_forward_mode_is_for_eager(steps: int) -> None:
    one = KernelInputs.of(LSTM(), 3, 5, steps, 4)
    cell_and_weights = (one.cell, one.parameters)
    expected = run(*cell_and_weights, one.x, one.state, engine="native")[0]  # the kernel is ready
    with forward_ad.dual_level():
        x = forward_ad.make_dual(one.x, torch.ones_like(one.x))
        y, _ = run(*cell_and_weights, x, one.state)
        value, tangent = forward_ad.unpack_dual(y)
        assert_close(value, expected)
        assert tangent is not None
        assert bool(tangent.any())
        with pytest.raises(OptionError, match="forward-mode derivatives"):
            run(*cell_and_weights, x, one.state, engine="native")


def products_of(cell: Cell, x: bool, parts: list[str], parameters: tuple[str, ...]) -> list[str]:
    step = SingleStep(cell.equations(3, 16), torch.float32)
    request = Needed(x, tuple(part in parts for part in step.parts), parameters)
    return [product.to.name for product in step.products_after(request)]


def test_of_one_step_only_the_products_asked_for_are_made() -> None:
    assert products_of(LSTM(), False, [], ()) == []
    assert products_of(LSTM(), True, [], ()) == ["DX"]
    assert products_of(LSTM(), False, ["h", "c"], ("b",)) == ["C_h", "G_b"]
    assert products_of(LSTM(), False, [], ("W",)) == ["G_W"]
    assert products_of(GRU(), True, ["h"], ("U",)) == ["DX", "G_U", "C_h", "G_U", "C_h"]


def test_without_gradients_nothing_is_kept() -> None:
    one = KernelInputs.of(LSTM(), 3, 5, 4, 3)
    x, h, c, *parameters = one.leaves(torch.float64, ask=()).values()
    named = dict(zip(one.parameters, parameters, strict=True))
    y, final = run(LSTM(), named, x, (h, c), engine="native")
    assert not any(v.requires_grad for v in (y, *final))
    x.requires_grad_()
    with torch.no_grad():
        assert not run(LSTM(), named, x, (h, c), engine="native")[0].requires_grad


# --- autograd ----------------------------------------------------------------------------


@pytest.mark.parametrize("cell", [LSTM(), GRUResetBefore(), Zoneout(OneNumber())])
@pytest.mark.parametrize(("time", "lengths"), [(3, None), (3, torch.tensor([2, 0, 3])), (1, None)])
def test_second_derivatives_in_reverse(cell: Cell, time: int, lengths: Tensor | None) -> None:
    one = KernelInputs.of(cell, 2, 3, time, 3)
    leaves = one.leaves(torch.float64)

    def f(*tensors: Tensor) -> tuple[Tensor, ...]:
        x, *rest = tensors
        state, parameters = rest[: len(cell.parts)], rest[len(cell.parts) :]
        named = dict(zip(one.parameters, parameters, strict=True))
        y, final = run(cell, named, x, tuple(state), lengths, one.masks, "native", reverse=True)
        return y, *final

    assert gradgradcheck(f, tuple(leaves.values()), fast_mode=True, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("lengths", [None, torch.tensor([2, 4, 3])])
def test_a_change_made_to_the_output_is_noticed(lengths: Tensor | None) -> None:
    one = KernelInputs.of(GRU(), 3, 5, 4, 3)
    x, h, *parameters = one.leaves(torch.float64).values()
    named = dict(zip(one.parameters, parameters, strict=True))
    y, _ = run(GRU(), named, x, (h,), lengths, engine="native")
    with torch.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("mask", ["m_h", "m_c"])
def test_a_change_made_to_a_mask_is_noticed(mask: str) -> None:
    cell = Zoneout(LSTM())
    one = KernelInputs.of(cell, 3, 5, 4, 3)
    x, h, c, *parameters = one.leaves(torch.float64).values()
    named = dict(zip(one.parameters, parameters, strict=True))
    masks = {name: m.clone() for name, m in (one.masks or {}).items()}
    y, _ = run(cell, named, x, (h, c), masks=masks, engine="native")
    masks[mask].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("time", [1, 4])
def test_a_final_state_may_be_changed(time: int) -> None:
    """It is a tensor of its own, not a view of what the backward pass needs."""
    one = KernelInputs.of(LSTM(), 3, 5, time, 3)
    x, h, c, *parameters = one.leaves(torch.float64).values()
    named = dict(zip(one.parameters, parameters, strict=True))
    y, end = run(LSTM(), named, x, (h, c), engine="native")
    expected = torch.autograd.grad(y.sum(), x, retain_graph=True)
    with torch.no_grad():
        for part in end:
            part.fill_(7.0)
    assert_close(torch.autograd.grad(y.sum(), x), expected, **EXACT)


@pytest.mark.parametrize("time", [1, 4])
@pytest.mark.parametrize("read", [0, 1, 2])
def test_what_nobody_reads_has_no_derivative(time: int, read: int) -> None:
    """One of the output and the final states alone: the adjoints of the others are zero."""
    one, gradients = KernelInputs.of(LSTM(), 3, 5, time, 3), []
    for engine in ("native", "eager"):
        leaves = one.leaves(torch.float64)
        x, h, c, *parameters = leaves.values()
        named = dict(zip(one.parameters, parameters, strict=True))
        y, final = run(LSTM(), named, x, (h, c), engine=engine)
        cost = (y, *final)[read].square().sum()
        by = list(leaves.values())
        gradients.append(torch.autograd.grad(cost, by, create_graph=engine == "eager"))
    assert_close(*gradients, **TIGHT)


@pytest.mark.parametrize(("time", "lengths"), [(4, None), (4, torch.tensor([2, 0, 4])), (1, None)])
@pytest.mark.parametrize("cell", [LSTM(), Residual(LayerNormLSTM()), Sizes()])
def test_backward_twice_gives_the_same(cell: Cell, time: int, lengths: Tensor | None) -> None:
    one = KernelInputs.of(cell, 5, 5, time, 3)
    leaves = one.leaves(torch.float64)
    x, *rest = leaves.values()
    state, parameters = rest[: len(cell.parts)], rest[len(cell.parts) :]
    named = dict(zip(one.parameters, parameters, strict=True))
    y, final = run(cell, named, x, tuple(state), lengths, engine="native")
    cost = (y * y).sum() + sum((f * f).sum() for f in final)
    by = list(leaves.values())
    first = torch.autograd.grad(cost, by, retain_graph=True)
    assert_close(torch.autograd.grad(cost, by), first, **EXACT)


# --- threads, bits, flags ----------------------------------------------------------------

LARGE = {"input_size": 24, "hidden": 32, "time": 20, "batch": 12}  # enough work for two threads


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def large(lengths: bool) -> KernelInputs:
    one = KernelInputs.of(LSTM(), **LARGE)
    row_lengths = torch.arange(LARGE["batch"]) * 5 % (LARGE["time"] + 1)
    return replace(one, lengths=row_lengths if lengths else None)


@pytest.mark.usefixtures("two_threads")
def test_two_threads_share_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    plans, make = [], Kernel.plan

    def plan(*arguments: Any) -> Any:
        plans.append(make(*arguments))
        return plans[-1]

    monkeypatch.setattr(Kernel, "plan", plan)
    for lengths in (False, True):
        large(lengths).outcome("native", torch.float32)
    assert [p.threads for p in plans] == [2, 2]
    assert [p.first.tolist() for p in plans] == [[0, 6, 12], [0, 6, 12]]
    KernelInputs.of(LSTM(), 3, 4, 2, 1).outcome("native", torch.float32)
    assert plans[-1].threads == 1
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("lengths", [False, True])
def test_one_and_two_threads_agree(lengths: bool) -> None:
    outcomes, before = [], torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        outcomes.append(large(lengths).outcome("native"))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert_close(outcomes[0], outcomes[1], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("lengths", [False, True])
def test_the_same_bits_every_time(threads: int, lengths: bool) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        one = large(lengths)
        first = one.outcome("native", torch.float32)
        for _ in range(4):
            assert_close(one.outcome("native", torch.float32), first, **EXACT)
    finally:
        torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_the_same_bits_in_several_python_threads() -> None:
    cases = [large(lengths) for lengths in (False, True)]
    expected = [one.outcome("native", torch.float32) for one in cases]
    outcomes: list[Any] = []

    def work() -> None:
        for k in range(6):
            outcomes.append((k % 2, cases[k % 2].outcome("native", torch.float32)))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(outcomes) == 24
    for which, outcome in outcomes:
        assert_close(outcome, expected[which], **EXACT)


def denormals_work() -> bool:
    """Whether this thread computes with numbers below the smallest normal one."""
    tiny = np.full(64, 1e-40, dtype=np.float32)
    return bool((tiny * np.float32(0.5) > 0).all()) and bool((tiny + tiny > 0).all())


class Halved(Cell):
    """Half of what was: a small state soon is a denormal number."""

    U = Matrix("h")

    def step(self, x: Any, h: Any) -> Any:
        return 0.5 * h + self.U @ x


@pytest.mark.usefixtures("two_threads")
def test_denormal_numbers_are_flushed_inside_and_only_there() -> None:
    state = (torch.full((4, 8), 3e-38),)
    x, U = torch.zeros(30, 4, 8), torch.zeros(8, 8)
    y, _ = run(Halved(), {"U": U}, x, state, engine="native")
    assert y[0].eq(1.5e-38).all()
    assert not y[1:].any()  # which costs nothing, where eager's denormal numbers are slow
    assert run(Halved(), {"U": U}, x, state, engine="eager")[0][1].gt(0).all()
    assert denormals_work()


@pytest.mark.usefixtures("two_threads")
def test_the_processor_flags_of_every_thread_are_put_back() -> None:
    answers: list[bool] = []

    def work() -> None:
        large(False).outcome("native", torch.float32)
        answers.append(denormals_work())

    work()
    other = threading.Thread(target=work)
    other.start()
    other.join()
    assert answers == [True, True]
    tiny = torch.full((1 << 18,), 1e-40)  # long enough for torch to use both of its threads
    assert (tiny * 0.5).gt(0).all()
