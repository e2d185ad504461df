"""Gates that keep the state begin open: every cell with a gate f has a bias of one there."""

from __future__ import annotations

import pytest
import torch

from ensue.cells import CELLS
from ensue.layers import Recurrent

FORGETTING = [name for name, cell in CELLS.items() if "f" in cell().parameters["b"].gates]


def test_all_variants_are_among_them() -> None:
    assert {"LSTM", "PeepholeLSTM", "CoupledLSTM", "LayerNormLSTM"} <= set(FORGETTING)


@pytest.mark.parametrize("name", FORGETTING)
def test_the_forget_bias_is_one_and_the_others_are_zero(name: str) -> None:
    (way,) = Recurrent(name, 3, 4).ways
    gates = way.cell.parameters["b"].gates
    for gate, bias in zip(gates, way.b.detach().chunk(len(gates)), strict=True):
        assert torch.equal(bias, torch.full((4,), 1.0 if gate == "f" else 0.0)), gate
