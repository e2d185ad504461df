"""The CRF against its definition: every parameter counts, in its own place.

A field that forgets one of its scores is still a distribution, searches itself exactly and has
the right gradient. Only the formula, written once more in plain Python, tells."""

from __future__ import annotations

import math
from itertools import pairwise, product

import pytest
import torch
from torch.testing import assert_close

from ensue.tasks.label.outputs import CRF

LABELS, WIDTH = 3, 4
TIGHT = {"rtol": 1e-9, "atol": 1e-9}


def field(seed: int = 5) -> CRF:
    made = CRF(WIDTH, LABELS).double()
    draw = torch.Generator().manual_seed(seed)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, generator=draw)
    return made


def score(made: CRF, y: torch.Tensor, labels: tuple[int, ...]) -> float:
    """first[l_1] + Σ_t e_t[l_t] + Σ_t follow[l_{t−1}, l_t] + last[l_T]; y (time, width)."""
    value = made.state_dict()
    e = (y @ value["scores.weight"].T + value["scores.bias"]).tolist()
    total = float(value["first"][labels[0]]) + float(value["last"][labels[-1]])
    total += sum(e[t][label] for t, label in enumerate(labels))
    for before, after in pairwise(labels):
        total += float(value["follow"][before, after])
    return total


@pytest.mark.parametrize("length", [1, 2, 3])
def test_the_cost_is_that_of_the_definition(length: int) -> None:
    made = field()
    y = torch.randn(length, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    every = list(product(range(LABELS), repeat=length))
    scores = [score(made, y, labels) for labels in every]
    partition = math.log(sum(math.exp(one) for one in scores))
    targets = torch.tensor(every).T
    costs = made.cost(
        y[:, None].expand(-1, len(every), -1), torch.full((len(every),), length), targets
    )
    assert_close(
        costs, torch.tensor([partition - one for one in scores], dtype=torch.float64), **TIGHT
    )
    best = made.label(y[:, None], torch.tensor([length]), "exact", 1)[:, 0].tolist()
    assert tuple(best) == every[max(range(len(every)), key=scores.__getitem__)]


def test_rows_of_unequal_length_end_with_their_own_last_label() -> None:
    made, lengths = field(), [3, 1, 2]
    draw = torch.Generator().manual_seed(2)
    y = torch.randn(3, len(lengths), WIDTH, dtype=torch.float64, generator=draw)
    targets = torch.randint(0, LABELS, (3, len(lengths)), generator=draw)
    costs = made.cost(y, torch.tensor(lengths), targets).tolist()
    for row, length in enumerate(lengths):
        every = product(range(LABELS), repeat=length)
        partition = math.log(sum(math.exp(score(made, y[:length, row], one)) for one in every))
        score_of_row = score(made, y[:length, row], tuple(targets[:length, row].tolist()))
        assert costs[row] == pytest.approx(partition - score_of_row, rel=1e-9)
