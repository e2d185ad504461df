"""`Recurrent` and `Recursive`: what the table of laws does not say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from ensue.cells import (
    CELLS,
    GRU,
    LSTM,
    SCHEMES,
    Cell,
    LayerNormLSTM,
    LeakyRNN,
    RecurrentDropout,
    Residual,
    SimpleRNN,
    Zoneout,
    as_tuple,
)
from ensue.errors import OptionError, ShapeError
from ensue.layers import Recurrent, Recursive, detach, step_mask, to_length

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
    there, back = layer.ways
    zero = (torch.zeros(HIDDEN), torch.zeros(HIDDEN))
    for row, length in enumerate(LENGTHS.tolist()):
        text = x[:length, row]
        ahead, end = by_hand(there, text, zero)
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
    found = []
    for start in ("zero", "forward_end", "shared_end"):
        torch.manual_seed(2)
        layer = Recurrent(GRU(), INPUT, HIDDEN, bidirectional=True, backward_start=start)
        found.append(layer(x)[0][..., HIDDEN:])
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert (found[a] - found[b]).abs().max() > 1e-3


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
    found, found_state = turned(x.transpose(0, 1), lengths=LENGTHS)
    assert_close(found, y.transpose(0, 1), **TIGHT)
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
    given = [
        tuple(part.detach().expand(BATCH, -1).clone().requires_grad_() for part in parts)
        for parts in starts
    ]
    own, told = layer(x, lengths=LENGTHS)[0], layer(x, given, lengths=LENGTHS)[0]
    assert_close(own, told, **TIGHT)
    weight = torch.randn_like(own)
    (own * weight).sum().backward()
    (told * weight).sum().backward()
    for parts, rows in zip(starts, given, strict=True):
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
        found, lengths = to_length(x, torch.tensor([5, 4, 2]), 3, cut)
        assert lengths.tolist() == [3, 3, 2]
        assert found[:, 0, 0].tolist() == full
        assert found[:, 1, 1].tolist() == middle
        assert found[:2, 2, 0].tolist() == [1, 2]


def test_shorter_rows_are_padded_with_zeros() -> None:
    x = torch.ones(2, 3, 1, 2)
    for cut in ("end", "start"):
        found, lengths = to_length(x, None, 4, cut)
        assert found.shape == (4, 3, 1, 2)
        assert found.sum() == x.sum()
        assert not found[2:].any()
        assert lengths.tolist() == [2, 2, 2]
    assert to_length(x[:0], None, 4, "start")[0].shape == (4, 3, 1, 2)
    assert to_length(x, None, 0)[0].shape == (0, 3, 1, 2)


@pytest.mark.parametrize("cut", ["end", "start"])
def test_max_length_is_to_length_before_the_layer(cut: str) -> None:
    layer = randomised(Recurrent(GRU(), INPUT, HIDDEN, bidirectional=True, max_length=2, cut=cut))
    x = torch.randn(TIME, BATCH, INPUT)
    shorter, lengths = to_length(x, LENGTHS, 2, cut)
    found = layer(x, lengths=LENGTHS)
    layer.max_length = None
    assert_close(found, layer(shorter, lengths=lengths), **TIGHT)


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


# --- masks -------------------------------------------------------------------------------


def constant_cell(wrapper: Callable[[Cell], Cell], **values: float) -> Recurrent:
    """A linear cell of many units with these constants on the diagonal or as bias."""
    layer = Recurrent(wrapper(SimpleRNN("linear")), 1, 200)
    (way,) = layer.ways
    with torch.no_grad():
        way.W.zero_()
        way.U.copy_(values.get("U", 0.0) * torch.eye(200))
        way.b.fill_(values.get("b", 0.0))
    return layer


def test_recurrent_dropout_has_one_mask_over_time() -> None:
    """h' = m*h from ones: a unit is gone from the first step on, or is scaled at each."""
    layer = constant_cell(lambda cell: RecurrentDropout(cell, 0.5), U=1.0)
    y, _ = layer(torch.zeros(3, 2, 1), [torch.ones(2, 200)])
    assert set(y[0].unique().tolist()) == {0.0, 2.0}
    assert torch.equal(y[1], y[0] ** 2)
    assert torch.equal(y[2], y[0] ** 3)
    assert not torch.equal(y[0, 0], y[0, 1])  # but another one for each row
    assert 0.35 < (y[0] == 0).double().mean() < 0.65


def test_zoneout_draws_at_every_step() -> None:
    """h' = 1 from zeros: a unit is still 0 after t steps with probability rate^t."""
    layer = constant_cell(lambda cell: Zoneout(cell, 0.5), b=1.0)
    y, _ = layer(torch.zeros(3, 50, 1))
    assert set(y.unique().tolist()) == {0.0, 1.0}
    for t in range(3):
        assert abs((y[t] == 0).double().mean().item() - 0.5 ** (t + 1)) < 0.03
    assert (y[1] >= y[0]).all()  # once 1, 1 for good: what is kept is the old value


def test_outside_training_masks_are_their_expectation() -> None:
    x = torch.randn(TIME, BATCH, HIDDEN)
    plain = randomised(Recurrent(LSTM(), HIDDEN, HIDDEN))
    dropped = Recurrent(RecurrentDropout(LSTM(), 0.6), HIDDEN, HIDDEN).eval()
    dropped.load_state_dict(plain.state_dict())
    assert_close(dropped(x), plain(x), **TIGHT)
    zoned = Recurrent(Zoneout(LSTM(), {"h": 0.2, "c": 0.7}), HIDDEN, HIDDEN).eval()
    zoned.load_state_dict(plain.state_dict())
    h, c = torch.randn(BATCH, HIDDEN), torch.randn(BATCH, HIDDEN)
    for step in x:  # by hand, step after step
        _, ((new_h, new_c),) = plain(step[None], [(h, c)])
        _, ((found_h, found_c),) = zoned(step[None], [(h, c)])
        h, c = 0.8 * new_h + 0.2 * h, 0.3 * new_c + 0.7 * c
        assert_close(found_h, h, **TIGHT)
        assert_close(found_c, c, **TIGHT)


@pytest.mark.parametrize(
    "cell", [RecurrentDropout(GRU()), Zoneout(GRU()), Residual(Zoneout(GRU()))], ids=["r", "z", "n"]
)
def test_masks_are_drawn_in_training_from_torchs_generator(cell: Cell) -> None:
    layer, x = Recurrent(cell, HIDDEN, HIDDEN), torch.randn(TIME, BATCH, HIDDEN)

    def seeded(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return layer(x)[0]

    assert torch.equal(seeded(1), seeded(1))
    assert not torch.equal(seeded(1), seeded(2))
    assert not torch.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])


def test_masks_have_their_rates_and_scale() -> None:
    cell = Zoneout(RecurrentDropout(LSTM(), 0.3), {"h": 0.05, "c": 0.5})
    layer = Recurrent(cell, INPUT, 50, 2)
    masks = layer.sample_masks(torch.zeros(20, 30, INPUT))
    assert len(masks) == 2
    for drawn in masks:
        assert {name: tuple(m.shape) for name, m in drawn.items()} == {
            "m": (30, 50),
            "m_h": (20, 30, 50),
            "m_c": (20, 30, 50),
        }
        assert_close(drawn["m"].unique(), torch.tensor([0.0, 1 / 0.7]))
        assert set(drawn["m_c"].unique().tolist()) == {0.0, 1.0}
        for name, rate, most in (("m", 0.3, 0.06), ("m_h", 0.05, 0.01), ("m_c", 0.5, 0.02)):
            assert abs((drawn[name] == 0).double().mean().item() - rate) < most
    assert not torch.equal(masks[0]["m"], masks[1]["m"])
    rows = masks[0]["m_c"]
    assert not torch.equal(rows[0], rows[1])


def test_a_part_of_rate_zero_has_no_mask() -> None:
    assert list(Zoneout(LSTM(), {"h": 0.0, "c": 0.5}).masks) == ["m_c"]


def test_masks_given_are_the_masks_used() -> None:
    layer = constant_cell(lambda cell: Zoneout(cell, 0.5), b=1.0)
    mask = torch.zeros(3, 2, 200)
    mask[1, :, :7] = 1.0
    y, _ = layer(torch.zeros(3, 2, 1), masks=[{"m_h": mask}])
    assert y.sum(-1).tolist() == [[0, 0], [7, 7], [7, 7]]
    with pytest.raises(KeyError):
        layer(torch.zeros(3, 2, 1), masks=[{"m": mask}])


# --- initialisation ----------------------------------------------------------------------

WIDE, DEEP = 40, 30  # input and hidden size


def blocks(scheme: str, cell: Cell | None = None) -> dict[str, dict[str, Tensor]]:
    """The parameters gate by gate after initialisation."""
    (way,) = Recurrent(cell or LSTM(), WIDE, DEEP, init=scheme).ways
    return {
        name: dict(zip(d.gates, getattr(way, name).detach().chunk(len(d.gates)), strict=True))
        for name, d in way.cell.parameters.items()
    }


GLOROT = math.sqrt(6 / (WIDE + DEEP))


def spread_over(block: Tensor, low: float, high: float) -> bool:
    """Uniform: inside the range, and close to both of its ends."""
    near = 0.05 * (high - low)
    inside = low <= block.min() and block.max() <= high
    return inside and block.min() < low + near and block.max() > high - near


def test_standard_is_glorot_and_orthogonal_gate_by_gate() -> None:
    found = blocks("standard")
    assert list(found["U"]) == list("ifgo")
    for gate in "ifgo":
        u = found["U"][gate]
        assert_close(u @ u.t(), torch.eye(DEEP), rtol=0, atol=1e-12)
        assert spread_over(found["W"][gate], -GLOROT, GLOROT)
        assert (found["b"][gate] == (1.0 if gate == "f" else 0.0)).all()
    assert not torch.equal(found["U"]["i"], found["U"]["f"])


def test_standard_is_the_default() -> None:
    torch.manual_seed(3)
    default = Recurrent(LSTM(), WIDE, DEEP).state_dict()
    torch.manual_seed(3)
    assert_close(default, Recurrent(LSTM(), WIDE, DEEP, init="standard").state_dict())


def test_torch_is_uniform_everywhere() -> None:
    bound = DEEP**-0.5
    found = blocks("torch")
    assert all(
        spread_over(torch.cat([b.flatten() for b in gates.values()]), -bound, bound)
        for gates in found.values()
    )


def test_glorot_he_identity_and_positive() -> None:
    for gate in "ifgo":
        assert spread_over(blocks("glorot")["U"][gate], -(0.1**0.5), 0.1**0.5)  # √(6 / 60)
        he = blocks("he")
        assert abs(he["W"][gate].std().item() - math.sqrt(2 / WIDE)) < 0.02
        assert abs(he["U"][gate].std().item() - math.sqrt(2 / DEEP)) < 0.03
        identity = blocks("identity")
        assert torch.equal(identity["U"][gate], torch.eye(DEEP))
        assert spread_over(identity["W"][gate], -GLOROT, GLOROT)
        for scheme in (blocks("glorot"), he, identity):
            assert (scheme["b"][gate] == (1.0 if gate == "f" else 0.0)).all()
        positive = blocks("positive")
        assert spread_over(positive["W"][gate], 0.0, 0.1)
        assert spread_over(positive["U"][gate], 0.0, 0.1)
        assert not positive["b"][gate].any()


def test_vectors_start_where_their_cell_says() -> None:
    norm = blocks("standard", LayerNormLSTM())
    assert all((gain == 1).all() for gain in norm["s"].values())
    leak = blocks("standard", LeakyRNN(0.2, learned=True))
    assert_close(torch.sigmoid(leak["a"][""]), torch.full((DEEP,), 0.2))
    assert (blocks("standard", SimpleRNN("prelu"))["a"][""] == 0.25).all()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("cell", CELLS)
def test_every_scheme_fills_every_cell(cell: str, scheme: str) -> None:
    layer = Recurrent(cell, INPUT, HIDDEN, init=scheme)
    first = {name: p.detach().clone() for name, p in layer.named_parameters()}
    assert all(p.isfinite().all() for p in first.values())
    layer.reset_parameters()
    assert not torch.equal(layer.ways[0].W, first["forwards.0.W"])


# --- trees -------------------------------------------------------------------------------


def chain(steps: int) -> Tensor:
    """Each node's parent is the next one."""
    return torch.tensor([*range(1, steps), -1])


@pytest.mark.parametrize("combine", ["sum", "mean"])
@pytest.mark.parametrize("cell", [SimpleRNN(), LSTM(), Residual(GRU())], ids=["rnn", "lstm", "gru"])
def test_a_chain_is_a_sequence(cell: Cell, combine: str) -> None:
    tree = randomised(Recursive(cell, HIDDEN, HIDDEN, combine=combine))
    line = Recurrent(cell, HIDDEN, HIDDEN)
    line.ways[0].load_state_dict(tree.inner.state_dict())
    x = torch.randn(TIME, HIDDEN, requires_grad=True)
    y, state = tree(x, chain(TIME))
    expected, (final,) = line(x[:, None])
    assert_close(y, expected[:, 0], **TIGHT)
    assert_close([part[-1] for part in state], [part[0] for part in final], **TIGHT)
    assert_close(
        torch.autograd.grad(y.square().sum(), x),
        torch.autograd.grad(expected.square().sum(), x),
        **TIGHT,
    )


@pytest.mark.parametrize(("combine", "share"), [("sum", 1.0), ("mean", 0.5)])
def test_children_are_summed_or_averaged(combine: str, share: float) -> None:
    tree = randomised(Recursive(LSTM(), INPUT, HIDDEN, combine=combine))
    x = torch.randn(4, INPUT)
    y, (h, c) = tree(x, torch.tensor([2, 2, 3, -1]))
    step = LSTM().on_tensors(dict(tree.inner.way().parameters)).step
    zero = torch.zeros(1, HIDDEN)
    left, right = step(x[0:1], zero, zero), step(x[1:2], zero, zero)
    below = [share * (a + b) for a, b in zip(left, right, strict=True)]
    middle = step(x[2:3], *below)
    root = step(x[3:4], *middle)  # one child: sum and mean are itself
    assert_close(h, torch.cat([node[0] for node in (left, right, middle, root)]), **TIGHT)
    assert_close(c, torch.cat([node[1] for node in (left, right, middle, root)]), **TIGHT)
    assert_close(y, h, **TIGHT)


def test_the_order_of_nodes_does_not_matter() -> None:
    tree = randomised(Recursive(LSTM(), INPUT, HIDDEN))
    parents = torch.tensor([2, 2, 5, 5, 5, -1, 7, -1])  # two trees
    x = torch.randn(8, INPUT)
    y, state = tree(x, parents)
    order = torch.randperm(8)
    place = order.argsort()  # where each old node now stands
    moved = torch.where(parents[order] < 0, -1, place[parents[order]])
    found, found_state = tree(x[order], moved)
    assert_close(found, y[order], **TIGHT)
    assert_close(found_state, tuple(part[order] for part in state), **TIGHT)


def test_a_forest_is_its_trees() -> None:
    tree = randomised(Recursive(GRU(), INPUT, HIDDEN))
    x = torch.randn(5, INPUT)
    together, _ = tree(x, torch.tensor([2, 2, -1, 4, -1]))
    first, _ = tree(x[:3], torch.tensor([2, 2, -1]))
    second, _ = tree(x[3:], torch.tensor([1, -1]))
    assert_close(together, torch.cat([first, second]), **TIGHT)


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
        "num_layers: expected a number ≥ 1, got 0",
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
        "rate: d is no state part of LSTM, which has h, c",
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
        """cut: expected "end" or "start", got 'begin'""",
    ),
    "negative length": (
        lambda: to_length(torch.zeros(X), None, -1),
        OptionError,
        "length: expected a number ≥ 0, got -1",
    ),
    "combine": (
        lambda: Recursive(GRU(), INPUT, HIDDEN, combine="max"),
        OptionError,
        """combine: expected "sum" or "mean", got 'max'""",
    ),
    "cycle": (
        lambda: Recursive(GRU(), INPUT, HIDDEN)(torch.zeros(3, INPUT), torch.tensor([1, 2, 0])),
        ShapeError,
        "parents: the nodes form a cycle; every node must lead to a root (−1)",
    ),
    "its own parent": (
        lambda: Recursive(GRU(), INPUT, HIDDEN)(torch.zeros(2, INPUT), torch.tensor([-1, 1])),
        ShapeError,
        "parents: the nodes form a cycle",
    ),
    "parent out of range": (
        lambda: Recursive(GRU(), INPUT, HIDDEN)(torch.zeros(2, INPUT), torch.tensor([2, -1])),
        ShapeError,
        "parents[0] = 2: expected −1 (a root) or 0 to 1",
    ),
    "parents' shape": (
        lambda: Recursive(GRU(), INPUT, HIDDEN)(torch.zeros(2, INPUT), torch.tensor([-1])),
        ShapeError,
        "expected x (nodes, input) and parents (nodes,), got (2, 3) and (1,)",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said(what: str) -> None:
    call, kind, text = WRONG[what]
    with pytest.raises(kind) as error:
        call()
    assert text in str(error.value)
