"""Where parameters start: every scheme by what it promises."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from ensue.cells import CELLS, LSTM, SCHEMES, Cell, LayerNormLSTM, LeakyRNN, SimpleRNN
from ensue.layers import Recurrent

WIDE, DEEP = 40, 30  # input and hidden size


@pytest.fixture(autouse=True)
def _seeded_and_double() -> Iterator[None]:
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


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
    gates_of = blocks("standard")
    assert list(gates_of["U"]) == list("ifgo")
    for gate in "ifgo":
        u = gates_of["U"][gate]
        assert_close(u @ u.t(), torch.eye(DEEP), rtol=0, atol=1e-12)
        assert spread_over(gates_of["W"][gate], -GLOROT, GLOROT)
        assert (gates_of["b"][gate] == (1.0 if gate == "f" else 0.0)).all()
    assert not torch.equal(gates_of["U"]["i"], gates_of["U"]["f"])


def test_standard_is_the_default() -> None:
    torch.manual_seed(3)
    default = Recurrent(LSTM(), WIDE, DEEP).state_dict()
    torch.manual_seed(3)
    assert_close(default, Recurrent(LSTM(), WIDE, DEEP, init="standard").state_dict())


def test_torch_is_uniform_everywhere() -> None:
    bound = DEEP**-0.5
    gates_of = blocks("torch")
    assert all(
        spread_over(torch.cat([b.flatten() for b in gates.values()]), -bound, bound)
        for gates in gates_of.values()
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
    layer = Recurrent(cell, 3, 4, init=scheme)
    first = {name: p.detach().clone() for name, p in layer.named_parameters()}
    assert all(p.isfinite().all() for p in first.values())
    layer.reset_parameters()
    assert not torch.equal(layer.ways[0].W, first["forwards.0.W"])
