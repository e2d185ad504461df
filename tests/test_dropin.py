"""`RNN`, `GRU` and `LSTM` against torch.nn's, with the same weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from laws import GENERAL
from torch import Tensor, nn
from torch.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
)
from torch.testing import assert_close

import ensue.layers as ours
from ensue.errors import OptionError, ShapeError

TIME, BATCH, INPUT, HIDDEN = 5, 3, 3, 4
KINDS = ("RNN", "GRU", "LSTM")
TIGHT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(autouse=True)
def _double() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def twins(kind: str, engine: str = "auto", **options: Any) -> tuple[nn.Module, nn.Module]:
    """Ours and torch's, with the same weights."""
    theirs = getattr(nn, kind)(INPUT, HIDDEN, **options)
    mine = getattr(ours, kind)(INPUT, HIDDEN, **options)
    mine.load_state_dict(theirs.state_dict())
    mine.engine = engine
    return mine, theirs


def start(module: nn.Module, *batch: int) -> Any:
    """A random initial state as the kind wants it."""
    torch.manual_seed(5)
    count = module.num_layers * (1 + module.bidirectional)
    parts = [torch.randn(count, *batch, HIDDEN) for _ in range(2)]
    return tuple(parts) if isinstance(module, ours.LSTM | nn.LSTM) else parts[0]


def parts_of(state: Any) -> list[Tensor]:
    return list(state) if isinstance(state, tuple) else [state]


def leaf(state: Any) -> Any:
    """The same state as leaves that get a gradient."""
    if state is None or isinstance(state, Tensor):
        return state if state is None else state.detach().clone().requires_grad_()
    return tuple(leaf(part) for part in state)


def outcome(module: nn.Module, x: Any, hx: Any = None, **lengths: Tensor) -> dict[str, Tensor]:
    """Outputs, final states, and the gradients of a cost of both by everything."""
    module.zero_grad()
    data = x.data if isinstance(x, PackedSequence) else x
    data = data.detach().clone().requires_grad_()
    inputs, hx = (x._replace(data=data) if isinstance(x, PackedSequence) else data), leaf(hx)
    y, final = module(inputs, hx, **lengths)
    values = [y.data if isinstance(y, PackedSequence) else y, *parts_of(final)]
    torch.manual_seed(6)
    cost = sum((v * torch.randn_like(v)).sum() for v in values)
    cost.backward()
    tensors = {
        "y": values[0],
        **{f"final {k}": v for k, v in enumerate(values[1:])},
        "∂x": data.grad,
    }
    if hx is not None:
        tensors |= {f"∂start {k}": part.grad for k, part in enumerate(parts_of(hx))}
    tensors |= {f"∂{name}": p.grad for name, p in module.named_parameters()}
    return {name: v.detach().clone() for name, v in tensors.items()}


def assert_same(computed: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert computed.keys() == expected.keys()
    for name, value in expected.items():
        assert_close(computed[name], value, **TIGHT, msg=lambda m, name=name: f"{name}: {m}")


# --- the same results --------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Options, and what goes in for a module with them."""

    options: dict[str, Any] = field(default_factory=dict)
    x: Callable[[], Any] = lambda: torch.randn(TIME, BATCH, INPUT)
    batch: tuple[int, ...] = (BATCH,)


def packed(lengths: list[int], enforce_sorted: bool) -> Callable[[], PackedSequence]:
    return lambda: pack_padded_sequence(
        torch.randn(TIME, BATCH, INPUT), torch.tensor(lengths), enforce_sorted=enforce_sorted
    )


CASES: dict[str, Case] = {
    "plain": Case(),
    "stacked": Case({"num_layers": 3}),
    "bidirectional": Case({"bidirectional": True}),
    "stacked and bidirectional": Case({"num_layers": 2, "bidirectional": True}),
    "without bias": Case({"bias": False, "num_layers": 2}),
    "batch first": Case({"batch_first": True}, lambda: torch.randn(BATCH, TIME, INPUT)),
    "one step": Case({"num_layers": 2}, lambda: torch.randn(1, BATCH, INPUT)),
    "one row": Case({}, lambda: torch.randn(TIME, 1, INPUT), (1,)),
    "unbatched": Case(
        {"num_layers": 2, "bidirectional": True}, lambda: torch.randn(TIME, INPUT), ()
    ),
    "unbatched, batch first": Case({"batch_first": True}, lambda: torch.randn(TIME, INPUT), ()),
    "packed, sorted": Case({"num_layers": 2, "bidirectional": True}, packed([5, 5, 2], True)),
    "packed, unsorted": Case({"num_layers": 2, "bidirectional": True}, packed([2, 5, 3], False)),
    "packed, batch first": Case({"batch_first": True}, packed([2, 5, 3], False)),
}


@pytest.mark.parametrize("engine", ["auto", *GENERAL])
@pytest.mark.parametrize("with_start", [False, True], ids=["zero start", "given start"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_results_and_gradients_are_torchs(
    kind: str, case: str, with_start: bool, engine: str
) -> None:
    mine, theirs = twins(kind, engine, **CASES[case].options)
    x = CASES[case].x()
    hx = start(theirs, *CASES[case].batch) if with_start else None
    assert_same(outcome(mine, x, hx), outcome(theirs, x, hx))


@pytest.mark.parametrize("engine", GENERAL)
def test_relu_is_torchs(engine: str) -> None:
    mine, theirs = twins("RNN", engine, nonlinearity="relu", num_layers=2, bidirectional=True)
    x, hx = torch.randn(TIME, BATCH, INPUT), start(theirs, BATCH)
    assert_same(outcome(mine, x, hx), outcome(theirs, x, hx))


@pytest.mark.parametrize("kind", KINDS)
def test_a_packed_output_is_packed_as_torch_packs_it(kind: str) -> None:
    mine, theirs = twins(kind)
    x = packed([2, 5, 3], False)()
    output, expected = mine(x)[0], theirs(x)[0]
    assert isinstance(output, PackedSequence)
    for name in ("batch_sizes", "sorted_indices", "unsorted_indices"):
        assert torch.equal(getattr(output, name), getattr(expected, name))
    sorted_x = pack_sequence([torch.randn(3, INPUT), torch.randn(2, INPUT)])
    assert mine(sorted_x)[0].sorted_indices is None


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_lengths_do_what_packing_does(kind: str, batch_first: bool) -> None:
    mine, theirs = twins(kind, num_layers=2, bidirectional=True, batch_first=batch_first)
    lengths, hx = torch.tensor([2, 5, 3]), start(theirs, BATCH)
    x = torch.randn(BATCH, TIME, INPUT) if batch_first else torch.randn(TIME, BATCH, INPUT)
    bundle = pack_padded_sequence(x, lengths, batch_first, enforce_sorted=False)
    y, final = theirs(bundle, hx)
    expected, _ = pad_packed_sequence(y, batch_first)
    output, mine_final = mine(x, hx, lengths=lengths)
    assert_close(output, expected, **TIGHT)
    assert_close(parts_of(mine_final), parts_of(final), **TIGHT)


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_may_be_zero_which_packing_refuses(kind: str) -> None:
    mine, theirs = twins(kind)
    x, hx = torch.randn(TIME, BATCH, INPUT), start(theirs, BATCH)
    y, final = mine(x, hx, lengths=torch.tensor([0, 5, 3]))
    assert not y[:, 0].any()
    for part, initial in zip(parts_of(final), parts_of(hx), strict=True):
        assert torch.equal(part[:, 0], initial[:, 0])
    with pytest.raises(RuntimeError, match="greater than 0"):
        pack_padded_sequence(x, torch.tensor([0, 5, 3]), enforce_sorted=False)


# --- the same weights --------------------------------------------------------------------

EVERYTHING = {"num_layers": 2, "bidirectional": True}


@pytest.mark.parametrize("options", [{}, EVERYTHING, {"bias": False}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_state_dicts_fit_both_ways(kind: str, options: dict[str, Any]) -> None:
    theirs, mine = getattr(nn, kind)(3, 4, **options), getattr(ours, kind)(3, 4, **options)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    theirs.load_state_dict(mine.state_dict())
    x = torch.randn(TIME, BATCH, INPUT)
    assert_close(mine(x), theirs(x), **TIGHT)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_weights(kind: str) -> None:
    states = []
    for origin in (ours, nn):
        torch.manual_seed(3)
        states.append(getattr(origin, kind)(INPUT, HIDDEN, **EVERYTHING).state_dict())
    for name, weight in states[1].items():
        assert torch.equal(states[0][name], weight), name


@pytest.mark.parametrize("kind", KINDS)
def test_positional_arguments_are_in_torchs_order(kind: str) -> None:
    middle = ("relu",) if kind == "RNN" else ()
    arguments = (INPUT, HIDDEN, 2, *middle, False, True, 0.5, True)
    mine, theirs = getattr(ours, kind)(*arguments), getattr(nn, kind)(*arguments)
    for name in ("num_layers", "bias", "batch_first", "dropout", "bidirectional"):
        assert getattr(mine, name) == getattr(theirs, name), name


@pytest.mark.parametrize("kind", KINDS)
def test_device_and_dtype_are_taken(kind: str) -> None:
    layer = getattr(ours, kind)(INPUT, HIDDEN, device="meta", dtype=torch.float32)
    assert {(p.device.type, p.dtype) for p in layer.parameters()} == {("meta", torch.float32)}


# --- dropout -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_between_layers_is_random_in_training_alone(kind: str) -> None:
    mine, theirs = twins(kind, num_layers=2, dropout=0.5)
    x = torch.randn(TIME, BATCH, INPUT)
    assert not torch.equal(mine(x)[0], mine(x)[0])
    mine.eval()
    assert_close(mine(x), theirs.eval()(x), **TIGHT)
    once, _ = twins(kind, dropout=0.0, num_layers=2)
    assert torch.equal(once(x)[0], once(x)[0])


def test_dropout_drops_between_layers_only() -> None:
    """The last output is whole: with one weight set to copy, drops would show as zeros there."""
    torch.manual_seed(0)
    layer = ours.RNN(1, 1, num_layers=2, nonlinearity="relu", bias=False, dropout=0.5)
    for name, weight in layer.named_parameters():
        nn.init.constant_(weight, float("ih" in name))  # y = relu(relu(x))
    y, _ = layer(torch.ones(2000, 1, 1))
    assert set(y.unique().tolist()) == {0.0, 2.0}  # dropped once, and scaled by 1 / 0.5 once
    assert 0.4 < (y == 0).double().mean() < 0.6


# --- errors ------------------------------------------------------------------------------


def test_projections_are_refused() -> None:
    with pytest.raises(OptionError) as error:
        ours.LSTM(INPUT, HIDDEN, proj_size=2)
    assert str(error.value) == (
        "proj_size=2: projections are not supported; write the cell with `part_sizes`, or use "
        "torch.nn.LSTM"
    )


def test_an_unknown_nonlinearity_is_named() -> None:
    with pytest.raises(OptionError, match="unknown nonlinearity 'rely': did you mean 'relu'"):
        ours.RNN(INPUT, HIDDEN, nonlinearity="rely")


WRONG: dict[str, tuple[Callable[[nn.Module], Any], type[Exception], str]] = {
    "features": (
        lambda layer: layer(torch.randn(TIME, BATCH, 7)),
        ShapeError,
        "input: expected (time, 3) or 3 axes, the last with 3 features, got (5, 3, 7)",
    ),
    "axes": (
        lambda layer: layer(torch.randn(2, TIME, BATCH, 3)),
        ShapeError,
        "input: expected (time, 3) or 3 axes, the last with 3 features, got (2, 5, 3, 3)",
    ),
    "hx": (
        lambda layer: layer(torch.randn(TIME, BATCH, 3), torch.zeros(1, BATCH, HIDDEN)),
        ShapeError,
        "initial h: expected (layers·directions, batch, hidden) = (2, 3, 4), got (1, 3, 4)",
    ),
    "lengths with packed": (
        lambda layer: layer(packed([5, 5, 2], True)(), lengths=torch.tensor([5, 5, 2])),
        OptionError,
        "lengths: a packed sequence already has lengths; pass only one",
    ),
    "lengths too long": (
        lambda layer: layer(torch.randn(TIME, BATCH, 3), lengths=torch.tensor([5, 6, 1])),
        ShapeError,
        "lengths[1] = 6: expected 0 to 5, the number of steps in x",
    ),
    "lengths negative": (
        lambda layer: layer(torch.randn(TIME, BATCH, 3), lengths=torch.tensor([5, 1, -1])),
        ShapeError,
        "lengths[2] = -1: expected 0 to 5, the number of steps in x",
    ),
    "lengths float": (
        lambda layer: layer(torch.randn(TIME, BATCH, 3), lengths=torch.tensor([5.0, 1, 2])),
        ShapeError,
        "lengths: expected integers, got torch.float64; to convert a mask of real "
        "steps, sum it over time",
    ),
    "lengths of another batch": (
        lambda layer: layer(torch.randn(TIME, BATCH, 3), lengths=torch.tensor([5, 1])),
        ShapeError,
        "lengths: expected one number a row, shape (3,), got (2,)",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said(what: str) -> None:
    call, kind, text = WRONG[what]
    with pytest.raises(kind) as error:
        call(ours.GRU(INPUT, HIDDEN, bidirectional=True))
    assert str(error.value) == text


@pytest.mark.parametrize(("kind", "count"), [("LSTM", 1), ("LSTM", 3), ("GRU", 2), ("RNN", 2)])
def test_the_parts_of_the_state_are_counted(kind: str, count: int) -> None:
    parts = (torch.zeros(1, BATCH, HIDDEN),) * count
    hx = parts if count > 1 else parts[0]
    with pytest.raises(ShapeError) as error:
        getattr(ours, kind)(INPUT, HIDDEN)(torch.randn(TIME, BATCH, INPUT), hx)
    expected = "h and c" if kind == "LSTM" else "h"
    assert str(error.value) == f"hx: expected {expected}, one tensor each, got {count}"
