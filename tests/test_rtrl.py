"""Real-time recurrent learning as it is used: on a stream that never ends."""

from __future__ import annotations

import gc
import itertools

import pytest
import torch
from torch import Tensor, nn

from ensue.cells import GRU, Cell, SimpleRNN
from ensue.engine import RTRL
from ensue.layers import Recurrent

DELAY = 2


def echo(step: int, stream: Tensor) -> tuple[Tensor, Tensor]:
    """(x, target) of one step: the target is what came DELAY steps before."""
    return stream[step + DELAY], stream[step]


def learn(cell: Cell, steps: int, hidden: int = 6, batch: int = 4) -> list[float]:
    """Learns the echo online: one update after each step, no past kept but J. The errors."""
    torch.manual_seed(1)
    layer, readout = Recurrent(cell, 1, hidden), nn.Linear(hidden, 1)
    optimiser = torch.optim.Adam([*layer.parameters(), *readout.parameters()], lr=0.01)
    stream = torch.randint(0, 2, (steps + DELAY, batch, 1)).float() - 0.5
    learner, errors = layer.rtrl(batch), []
    for step in range(steps):
        x, target = echo(step, stream)
        y = learner.step(x).requires_grad_()
        optimiser.zero_grad()
        cost = (readout(y) - target).square().mean()
        cost.backward()
        for way, gradients in zip(layer.ways, learner.gradient(y.grad), strict=True):
            for name, gradient in gradients.items():
                getattr(way, name).grad = gradient
        optimiser.step()
        errors.append(cost.item())
    return errors


@pytest.mark.parametrize(
    ("cell", "steps"), [(SimpleRNN(), 400), (GRU(), 500)], ids=["SimpleRNN", "GRU"]
)
def test_it_learns_an_endless_echo(cell: Cell, steps: int) -> None:
    """From 0.25, the error of knowing nothing about a coin of ±½, to a tenth of it and less."""
    errors = learn(cell, steps)
    assert sum(errors[:20]) / 20 > 0.2
    assert sum(errors[-100:]) / 100 < 0.02


def test_it_needs_the_past_to_learn_it() -> None:
    """The same with J forgotten before each step, so that gradients reach no further back."""

    class Forgetful(RTRL):
        def step(self, x: Tensor, masks: object = None) -> Tensor:
            for layer in self.layers:
                layer.influence = torch.zeros_like(layer.influence)
            return super().step(x)

    torch.manual_seed(1)
    layer = Recurrent(SimpleRNN(), 1, 4)
    exact = layer.rtrl(2)
    state = [tuple(torch.zeros(2, 4) for _ in way.cell.parts) for way in layer.ways]
    forgetful = Forgetful([way.way() for way in layer.ways], state)
    for t, x in enumerate(torch.randn(3, 2, 1)):
        assert torch.equal(exact.step(x), forgetful.step(x))
        seed = torch.ones(2, 4)
        gradient, cut = exact.gradient(seed)[0]["U"], forgetful.gradient(seed)[0]["U"]
        assert torch.allclose(gradient, cut) == (t < 2)  # h is zero before the first step


def test_a_learned_start_has_its_gradient_too() -> None:
    """By central differences of Σ y², step by step; BPTT is compared by the law of RTRL."""
    torch.manual_seed(1)
    layer, x = Recurrent(GRU(), 2, 3, 2, initial="learned").double(), torch.randn(3, 2, 2).double()
    learner, starts = layer.rtrl(2), [way.start_h for way in layer.ways]
    for t in range(len(x)):
        y = learner.step(x[t])
        gradients = [slopes["start_h"] for slopes in learner.gradient(2 * y)]
        for start, gradient in zip(starts, gradients, strict=True):
            differences = torch.zeros_like(gradient)
            for k, by in itertools.product(range(len(start)), (1e-5, -1e-5)):
                with torch.no_grad():
                    start[k] += by
                    differences[k] += layer(x[: t + 1])[0][t].square().sum() / (2 * by)
                    start[k] -= by
            assert gradient.abs().max() > 1e-3
            assert torch.allclose(gradient, differences, atol=1e-8)


def test_a_state_that_is_given_stands_in_the_place_of_the_learned_start() -> None:
    layer = Recurrent(SimpleRNN(), 2, 3, initial="learned")
    learner = layer.rtrl(1, [(torch.ones(1, 3),)])
    learner.step(torch.zeros(1, 2))
    assert "start_h" not in learner.gradient(torch.ones(1, 3))[0]


def tensors_alive() -> int:
    """Numbers in all tensors there are."""
    gc.collect()
    tensors = [o for o in gc.get_objects() if type(o) is Tensor]
    return sum(t.numel() for t in tensors)


def test_memory_does_not_grow_with_time() -> None:
    layer = Recurrent(GRU(), 2, 5, 2)
    learner = layer.rtrl(3)
    x = torch.randn(3, 2)

    def run(steps: int) -> int:
        for _ in range(steps):
            y = learner.step(x)
            learner.gradient(torch.ones_like(y))
        del y
        return tensors_alive()

    assert run(5) == run(200)
    assert not any(layer.influence.requires_grad for layer in learner.layers)


def test_updates_of_the_parameters_are_seen_at_once() -> None:
    layer = Recurrent(SimpleRNN(), 2, 3)
    learner = layer.rtrl(1)
    x = torch.randn(1, 2)
    learner.step(x)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
    assert not learner.step(x).any()


def test_a_gradient_needs_a_step() -> None:
    with pytest.raises(RuntimeError, match="call step first"):
        Recurrent(SimpleRNN(), 2, 3).rtrl(1).gradient(torch.zeros(1, 3))
