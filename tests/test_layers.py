"""`Recurrent`: what the table of laws does not say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from ensue.cells import (
    GRU,
    LSTM,
    RecurrentDropout,
    Residual,
    SimpleRNN,
    Zoneout,
    as_tuple,
)
from ensue.errors import OptionError, ShapeError
from ensue.layers import Recurrent, detach, step_mask, to_length

TIME, BATCH, INPUT, HIDDEN = 5, 3, 3, 4
LENGTHS = torch.tensor([3, 0, 5])
TIGHT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(autouse=True)
def _seeded_and_double() -> Iterator[None]:
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def randomised(layer: nn.Module) -> nn.Module:
    """With no parameter at a special value."""
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer


# --- both directions ---------------------------------------------------------------------


def by_hand(way: Any, x: Tensor, state: tuple[Tensor, ...]) -> tuple[list[Tensor], Any]:
    """A cell over x (steps, input) of one row, one step at a time; state parts (features,)."""
    cell = way.cell.on_tensors(dict(way.way().parameters))
    outputs = []
    for step in x:
        state = as_tuple(cell.step(step, *state))
        outputs.append(cell.output(step, *state))
    return outputs, state


@pytest.mark.parametrize("start", ["zero", "forward_end", "shared_end"])
def test_where_the_backward_direction_starts(start: str) -> None:
    layer = randomised(Recurrent(LSTM(), INPUT, HIDDEN, bidirectional=True, backward_start=start))
    x = torch.randn(TIME, BATCH, INPUT)
    y, (forward, backward) = layer(x, lengths=LENGTHS)
    ahead_way, back = layer.ways
    zero = (torch.zeros(HIDDEN), torch.zeros(HIDDEN))
    for row, length in enumerate(LENGTHS.tolist()):
        text = x[:length, row]
        ahead, end = by_hand(ahead_way, text, zero)
        begin = zero if start == "zero" else end
        if start == "shared_end":  # its state at the last step is the forward one
            behind, first = by_hand(back, text[:-1].flip(0), begin)
            behind = [*ahead[-1:], *behind]
        else:
            behind, first = by_hand(back, text.flip(0), begin)
        for t in range(TIME):
            expected = torch.zeros(2 * HIDDEN)
            if t < length:
                expected = torch.cat([ahead[t], behind[length - 1 - t]])
            assert_close(y[t, row], expected, **TIGHT)
        for part in range(2):
            assert_close(forward[part][row], end[part], **TIGHT)
            assert_close(backward[part][row], first[part], **TIGHT)


def test_the_three_starts_differ() -> None:
    x = torch.randn(TIME, BATCH, INPUT)
    outputs = []
    for start in ("zero", "forward_end", "shared_end"):
        torch.manual_seed(2)
        layer = Recurrent(GRU(), INPUT, HIDDEN, bidirectional=True, backward_start=start)
        outputs.append(layer(x)[0][..., HIDDEN:])
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert (outputs[a] - outputs[b]).abs().max() > 1e-3


# --- structure ---------------------------------------------------------------------------


def test_the_state_has_one_entry_for_each_layer_and_direction() -> None:
    layer = randomised(Recurrent([LSTM(), GRU()], INPUT, HIDDEN, bidirectional=True))
    y, state = layer(torch.randn(TIME, BATCH, INPUT))
    assert [len(parts) for parts in state] == [2, 2, 1, 1]
    assert all(part.shape == (BATCH, HIDDEN) for parts in state for part in parts)
    assert y.shape == (TIME, BATCH, 2 * HIDDEN)
    assert layer.output_size == 2 * HIDDEN
    assert_close(y[-1, :, :HIDDEN], state[2][0])  # the last layer forward ends at the last step
    assert_close(y[0, :, HIDDEN:], state[3][0])  # and backward at the first


def test_an_entry_of_the_state_may_be_a_tensor_or_missing() -> None:
    layer = randomised(Recurrent(GRU(), INPUT, HIDDEN, 2))
    x, h = torch.randn(TIME, BATCH, INPUT), torch.randn(BATCH, HIDDEN)
    zero = torch.zeros(BATCH, HIDDEN)
    assert_close(layer(x, [h, None]), layer(x, [(h,), (zero,)]), **TIGHT)


def test_batch_first_is_the_other_order_of_axes() -> None:
    plain = randomised(Recurrent(LSTM(), INPUT, HIDDEN, 2, bidirectional=True))
    turned = Recurrent(LSTM(), INPUT, HIDDEN, 2, bidirectional=True, batch_first=True)
    turned.load_state_dict(plain.state_dict())
    x = torch.randn(TIME, BATCH, INPUT)
    y, state = plain(x, lengths=LENGTHS)
    output, found_state = turned(x.transpose(0, 1), lengths=LENGTHS)
    assert_close(output, y.transpose(0, 1), **TIGHT)
    assert_close(found_state, state, **TIGHT)


def test_pieces_of_batch_first_are_batch_first() -> None:
    layer = randomised(Recurrent(GRU(), INPUT, HIDDEN, batch_first=True))
    x = torch.randn(BATCH, TIME, INPUT)
    pieces = [y for y, _ in layer.pieces(x, 2, lengths=LENGTHS)]
    assert [y.shape[1] for y in pieces] == [2, 2, 1]
    assert_close(torch.cat(pieces, 1), layer(x, lengths=LENGTHS)[0], **TIGHT)


def test_max_length_is_brought_about_once_before_pieces_are_cut() -> None:
    layer = randomised(Recurrent(Zoneout(GRU(), 0.5), INPUT, HIDDEN, max_length=4, cut="start"))
    x = torch.randn(TIME + 2, BATCH, INPUT)
    lengths = torch.tensor([7, 2, 5])
    torch.manual_seed(0)
    pieces = [y for y, _ in layer.pieces(x, 3, lengths=lengths)]
    assert [len(y) for y in pieces] == [3, 1]
    torch.manual_seed(0)
    assert_close(torch.cat(pieces), layer(x, lengths=lengths)[0], **TIGHT)


def test_a_learned_start_is_the_start_of_every_row_and_gets_its_gradient() -> None:
    layer = randomised(Recurrent(LSTM(), INPUT, HIDDEN, 2, initial="learned"))
    x = torch.randn(TIME, BATCH, INPUT)
    starts = [(way.start_h, way.start_c) for way in layer.ways]
    states = [
        tuple(part.detach().expand(BATCH, -1).clone().requires_grad_() for part in parts)
        for parts in starts
    ]
    learned, given_start = layer(x, lengths=LENGTHS)[0], layer(x, states, lengths=LENGTHS)[0]
    assert_close(learned, given_start, **TIGHT)
    weight = torch.randn_like(learned)
    (learned * weight).sum().backward()
    (given_start * weight).sum().backward()
    for parts, rows in zip(starts, states, strict=True):
        for part, row in zip(parts, rows, strict=True):
            assert part.grad.abs().max() > 1e-4
            assert_close(part.grad, row.grad.sum(0), **TIGHT)


def test_a_start_that_is_not_learned_is_zero_and_no_parameter() -> None:
    layer = Recurrent(LSTM(), INPUT, HIDDEN)
    assert not [name for name, _ in layer.named_parameters() if "start" in name]
    _, ((h, c),) = layer(torch.randn(TIME, BATCH, INPUT), lengths=torch.tensor([0, 0, 0]))
    assert not h.any()
    assert not c.any()


def test_detached_state_has_no_past() -> None:
    layer = Recurrent(LSTM(), INPUT, HIDDEN, 2)
    _, state = layer(torch.randn(TIME, BATCH, INPUT))
    assert all(part.requires_grad for parts in state for part in parts)
    assert not any(part.requires_grad for parts in detach(state) for part in parts)
    assert_close(detach(state), state)


def test_dropout_between_layers_is_for_training_and_not_after_the_last() -> None:
    layer = Recurrent(SimpleRNN("linear"), 1, 1, 2, dropout=0.5)
    for name, parameter in layer.named_parameters():
        nn.init.constant_(parameter, float(name.endswith("W")))  # y = x
    x = torch.ones(2000, 1, 1)
    y, _ = layer(x)
    assert set(y.unique().tolist()) == {0.0, 2.0}
    assert 0.4 < (y == 0).double().mean() < 0.6
    assert torch.equal(layer.eval()(x)[0], x)


# --- lengths and windows -----------------------------------------------------------------


def test_longer_rows_lose_their_end_or_their_start() -> None:
    x = torch.arange(1.0, 6.0)[:, None, None].repeat(1, 3, 2)  # rows of 1 2 3 4 5
    for cut, full, middle in (("end", [1, 2, 3], [1, 2, 3]), ("start", [3, 4, 5], [2, 3, 4])):
        shortened, lengths = to_length(x, torch.tensor([5, 4, 2]), 3, cut)
        assert lengths.tolist() == [3, 3, 2]
        assert shortened[:, 0, 0].tolist() == full
        assert shortened[:, 1, 1].tolist() == middle
        assert shortened[:2, 2, 0].tolist() == [1, 2]


def test_shorter_rows_are_padded_with_zeros() -> None:
    x = torch.ones(2, 3, 1, 2)
    for cut in ("end", "start"):
        padded, lengths = to_length(x, None, 4, cut)
        assert padded.shape == (4, 3, 1, 2)
        assert padded.sum() == x.sum()
        assert not padded[2:].any()
        assert lengths.tolist() == [2, 2, 2]
    assert to_length(x[:0], None, 4, "start")[0].shape == (4, 3, 1, 2)
    assert to_length(x, None, 0)[0].shape == (0, 3, 1, 2)


@pytest.mark.parametrize("cut", ["end", "start"])
def test_max_length_is_to_length_before_the_layer(cut: str) -> None:
    layer = randomised(Recurrent(GRU(), INPUT, HIDDEN, bidirectional=True, max_length=2, cut=cut))
    x = torch.randn(TIME, BATCH, INPUT)
    shorter, lengths = to_length(x, LENGTHS, 2, cut)
    outcome = layer(x, lengths=LENGTHS)
    layer.max_length = None
    assert_close(outcome, layer(shorter, lengths=lengths), **TIGHT)


WINDOWS: dict[str, tuple[tuple[int, int | None], list[list[int]]]] = {
    "all": ((0, None), [[0, 1, 2], [], [0, 1, 2, 3, 4]]),
    "from 1 to 2": ((1, 2), [[1, 2], [], [1, 2]]),
    "from 2 on": ((2, None), [[2], [], [2, 3, 4]]),
    "the last": ((-1, None), [[2], [], [4]]),
    "the last but one": ((-2, -2), [[1], [], [3]]),
    "the last four": ((-4, -1), [[0, 1, 2], [], [1, 2, 3, 4]]),
    "beyond": ((9, None), [[], [], []]),
}


@pytest.mark.parametrize("window", WINDOWS)
def test_step_mask(window: str) -> None:
    (first, last), expected = WINDOWS[window]
    mask = step_mask(LENGTHS, TIME, first, last)
    assert mask.dtype == torch.bool
    assert [mask[:, row].nonzero()[:, 0].tolist() for row in range(BATCH)] == expected


@pytest.mark.parametrize("engine", ["eager", "bptt"])
def test_a_cost_on_some_outputs_is_a_cost_on_their_slice(engine: str) -> None:
    """No gradient through the outputs left out, but the state there still passes it on."""
    layer = randomised(Recurrent(LSTM(), INPUT, HIDDEN, engine=engine))
    x = torch.randn(TIME, BATCH, INPUT, requires_grad=True)
    by = [x, *layer.parameters()]
    y, _ = layer(x)
    full = torch.full((BATCH,), TIME)
    masked = torch.autograd.grad(y[step_mask(full, TIME, 2, 3)].square().sum(), by)
    y, _ = layer(x)
    sliced = torch.autograd.grad(y[2:4].square().sum(), by)
    assert_close(masked, sliced, **TIGHT)
    assert masked[0][:2].abs().min() > 0  # back through the steps before
    assert not masked[0][4].any()  # and nothing of those after


# --- errors ------------------------------------------------------------------------------

X = (TIME, BATCH, INPUT)


def layer_of(**options: Any) -> Recurrent:
    return Recurrent(GRU(), INPUT, HIDDEN, **options)


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "cell": (
        lambda: Recurrent("GRUResetbefor", INPUT, HIDDEN),
        OptionError,
        "unknown cell 'GRUResetbefor': did you mean 'GRUResetBefore'?",
    ),
    "class for cell": (
        lambda: Recurrent(GRU, INPUT, HIDDEN),
        OptionError,
        "cell: expected a cell, got the class; write GRU()",
    ),
    "init": (
        lambda: layer_of(init="orthogonl"),
        OptionError,
        "unknown initialisation 'orthogonl'",
    ),
    "init, nearly": (
        lambda: layer_of(init="glorott"),
        OptionError,
        "unknown initialisation 'glorott': did you mean 'glorot'?",
    ),
    "initial": (
        lambda: layer_of(initial="learnt"),
        OptionError,
        "unknown initial state 'learnt': did you mean 'learned'?",
    ),
    "backward start": (
        lambda: layer_of(bidirectional=True, backward_start="forward"),
        OptionError,
        "unknown backward start 'forward': did you mean 'forward_end'?",
    ),
    "engine": (
        lambda: layer_of(engine="eagre"),
        OptionError,
        "unknown engine 'eagre': did you mean 'eager'?",
    ),
    "activation": (
        lambda: SimpleRNN("sigmod"),
        OptionError,
        "unknown activation 'sigmod': did you mean 'sigmoid'?",
    ),
    "input size": (
        lambda: Recurrent(GRU(), 0, HIDDEN),
        OptionError,
        "input_size: expected a whole number ≥ 1, got 0",
    ),
    "hidden size": (
        lambda: Recurrent(GRU(), 3, 2.5),  # type: ignore[arg-type]
        OptionError,
        "hidden_size: expected a whole number ≥ 1, got 2.5",
    ),
    "layers": (
        lambda: layer_of(num_layers=0),
        OptionError,
        "num_layers: expected a whole number ≥ 1, got 0",
    ),
    "layers and cells": (
        lambda: Recurrent([GRU(), LSTM()], INPUT, HIDDEN, 3),
        OptionError,
        "num_layers: 2 cells are given, got 3",
    ),
    "dropout": (lambda: layer_of(dropout=1.0), OptionError, "dropout: expected 0 ≤ rate < 1"),
    "rate": (
        lambda: RecurrentDropout(GRU(), 1.0),
        OptionError,
        "rate: expected a number from 0 up to, not including, 1, got 1.0",
    ),
    "zoneout part": (
        lambda: Zoneout(LSTM(), {"d": 0.1}),
        OptionError,
        "rate: expected state parts of LSTM, h, c, got d",
    ),
    "residual widths": (
        lambda: Recurrent(Residual(GRU()), INPUT, HIDDEN),
        Exception,
        "the shapes do not fit",
    ),
    "x features": (
        lambda: layer_of()(torch.zeros(TIME, BATCH, 7)),
        ShapeError,
        "x: expected 3 axes, the last with 3 features, got (5, 3, 7)",
    ),
    "x axes": (
        lambda: layer_of()(torch.zeros(TIME, INPUT)),
        ShapeError,
        "one sequence alone is x.unsqueeze(1) (or unsqueeze(0) with batch_first)",
    ),
    "x dtype": (
        lambda: layer_of()(torch.zeros(X, dtype=torch.float32)),
        ShapeError,
        "x: expected torch.float64, the parameters' type, got torch.float32",
    ),
    "states": (
        lambda: layer_of(num_layers=2)(torch.zeros(X), [None]),
        ShapeError,
        "state: expected 2 entries, one for each layer and direction, got 1",
    ),
    "state shape": (
        lambda: layer_of()(torch.zeros(X), [torch.zeros(BATCH, 9)]),
        ShapeError,
        "state[0]: expected h of shapes [(3, 4)] (batch, features), got [(3, 9)]",
    ),
    "lengths": (
        lambda: layer_of()(torch.zeros(X), lengths=torch.tensor([1, 2, 6])),
        ShapeError,
        "lengths[2] = 6: expected 0 to 5, the number of steps in x",
    ),
    "pieces both ways": (
        lambda: list(layer_of(bidirectional=True).pieces(torch.zeros(X), 2)),
        OptionError,
        "pieces: a bidirectional layer needs the whole sequence at once",
    ),
    "pieces of nothing": (
        lambda: list(layer_of().pieces(torch.zeros(X), 0)),
        OptionError,
        "size: expected a number of steps ≥ 1, got 0",
    ),
    "RTRL both ways": (
        lambda: layer_of(bidirectional=True).rtrl(1),
        OptionError,
        "RTRL: a bidirectional layer needs the whole sequence at once",
    ),
    "cut": (
        lambda: to_length(torch.zeros(X), None, 2, "begin"),
        OptionError,
        "unknown cut 'begin'. Known: end, start",
    ),
    "negative length": (
        lambda: to_length(torch.zeros(X), None, -1),
        OptionError,
        "length: expected a number ≥ 0, got -1",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said(what: str) -> None:
    call, kind, text = WRONG[what]
    with pytest.raises(kind) as error:
        call()
    assert text in str(error.value)
