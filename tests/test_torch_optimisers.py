"""torch's optimisers without its compiler: the same updates, and a second less at each start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from warm import Warm

from ensue.training import optimiser

KINDS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "fused": True},
    "Adam": {"lr": 0.01, "fused": True},
    "AdamW": {"lr": 0.01, "weight_decay": 0.1, "fused": True},
    "LBFGS": {"max_iter": 5, "line_search_fn": "strong_wolfe"},
}


def updated(kind: type[torch.optim.Optimizer], options: dict[str, Any]) -> tuple[Tensor, Any]:
    """Weights after four updates of a small regression, and the optimiser's state."""
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(20, n, generator=generator) for n in (3, 1))
    w = torch.zeros(3, 1, requires_grad=True)
    search = kind([w], **options)

    def cost() -> Tensor:
        search.zero_grad()
        with torch.enable_grad():
            error = ((x @ w - y) ** 2).mean()
        error.backward()
        return error

    for _ in range(4):
        search.step(cost)
    return w.detach(), search.state_dict()["state"]


@pytest.mark.parametrize("name", KINDS)
def test_updates_are_those_of_torch(name: str) -> None:
    weights, state = updated(getattr(optimiser, name), KINDS[name])
    theirs, their_state = updated(getattr(torch.optim, name), KINDS[name])
    assert torch.equal(weights, theirs)
    assert str(state) == str(their_state)
    assert weights.abs().sum() > 0


TRAINING = """
import sys
from ensue import Classifier, LanguageModel, Labeller
quick = {"epochs": 1, "device": "cpu"}
rows = [("a fine film", "good"), ("a dull film", "bad")] * 6
Classifier(model={"hidden_size": 4}, train=quick).fit(rows, rows, watchers=[])
tagged = [(["a", "film"], ["x", "y"])] * 6
Labeller(model={"hidden_size": 4}, train=quick).fit(tagged, tagged, watchers=[])
LanguageModel(model={"hidden_size": 4}, train=quick).fit(["a b"] * 40, ["a b"], watchers=[])
assert "torch._dynamo" not in sys.modules
"""


def test_a_training_does_without_the_compiler_of_torch(warm: Warm, tmp_path: Path) -> None:
    ended = warm.fresh(["-c", TRAINING], tmp_path)
    assert ended.returncode == 0, ended.stderr
