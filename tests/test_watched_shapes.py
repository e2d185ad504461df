"""What is watched during a search has one shape at every step; the rows may grow fewer."""

from __future__ import annotations

import pytest
import torch

from ensue.decoding.step import check_same_shape
from ensue.errors import ShapeError


def test_two_shapes_are_one_too_many() -> None:
    check_same_shape([])
    check_same_shape([torch.zeros(5, 3), torch.zeros(2, 3)])
    with pytest.raises(ShapeError) as caught:
        check_same_shape([torch.zeros(2, 3), torch.zeros(2, 4), torch.zeros(2, 3)])
    assert str(caught.value) == ("watch: expected the same shape at every step, got [(3,), (4,)]")
