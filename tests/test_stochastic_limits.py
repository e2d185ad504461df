"""Sums over all values of stochastic units: exact up to the largest number of units allowed."""

from __future__ import annotations

import pytest
import torch

from ensue.errors import OptionError
from ensue.layers.activations import MOST_UNITS, expected


def test_the_largest_number_of_units_is_still_listed() -> None:
    """E[Σ b] = Σ σ(z)."""
    z = torch.linspace(-2, 2, MOST_UNITS, dtype=torch.float64)
    assert float(expected(lambda b: b.sum(-1), z)) == pytest.approx(float(z.sigmoid().sum()))
    with pytest.raises(OptionError, match=f"n ≤ {MOST_UNITS}"):
        expected(lambda b: b.sum(-1), torch.zeros(MOST_UNITS + 1))
