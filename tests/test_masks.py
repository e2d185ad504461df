"""Masks: when they are drawn, how often, at what rate, and what stands for them elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from ensue.cells import GRU, LSTM, Cell, RecurrentDropout, Residual, SimpleRNN, Zoneout
from ensue.errors import ShapeError
from ensue.layers import Recurrent

TIME, BATCH, INPUT, HIDDEN = 5, 3, 3, 4
TIGHT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(autouse=True)
def _seeded_and_double() -> Iterator[None]:
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


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
    plain = Recurrent(LSTM(), HIDDEN, HIDDEN, init="torch")
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
    with pytest.raises(ShapeError, match="mask m_h: expected a tensor of shape"):
        layer(torch.zeros(3, 2, 1), masks=[{"m": mask}])
