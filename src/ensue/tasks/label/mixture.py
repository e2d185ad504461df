"""The mixture of a network and the linear chain, and the bias of O.

score(l) = network·score_network(l) + linear·score_linear(l)

is a chain again, so the best labels and the marginals are exact. Both weights maximise the
likelihood of the validation part. For span tags, maximum likelihood finds too few spans. So
`outside` is subtracted from the score of O when labels are chosen; it maximises the span F1 of the
validation part. Probabilities are still those of the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ensue.tasks.baselines.mixture import Weight
from ensue.tasks.declarations import Range
from ensue.tasks.label.linear_chain import Chain
from ensue.tasks.label.outputs import score_of
from ensue.training.optimiser import LBFGS

DOUBT = 2.0  # weight of (log 2·network)² + (log 2·linear)²
ITERATIONS = 20
TRIED = tuple(0.25 * k for k in range(-2, 13))  # candidates to subtract from the score of O
TOLD = 0.004  # gain of span F1 required for each 1 away from 0


class ChainMixture(NamedTuple):
    """The weights of both; linear is 0 if only the network answers."""

    network: Weight
    linear: Weight
    outside: Annotated[float, Range(low=-1e6, high=1e6)] = 0.0

    def __str__(self) -> str:
        return f"weights {self.network:.2f} and {self.linear:.2f}"

    def joined(self, network: Chain, linear: Chain) -> Chain:
        return joined(network, linear, self.network, self.linear)


EQUAL = ChainMixture(0.5, 0.5)


def joined(one: Chain, other: Chain, a: float | Tensor, b: float | Tensor) -> Chain:
    """The chain whose scores are a·one + b·other."""
    return Chain(
        a * one.first + b * other.first,
        lambda t: a * one.pair(t) + b * other.pair(t),
        a * one.last + b * other.last,
        one.lengths,
        one.time,
    )


def without(chain: Chain, label: int, less: float) -> Chain:
    """The chain with the score of one label lowered at each step."""
    change = chain.first.new_zeros(chain.first.shape[1])
    change[label] = -less
    return Chain(
        chain.first + change,
        lambda t: chain.pair(t) + change,
        chain.last,
        chain.lengths,
        chain.time,
    )


class ScoredChains(NamedTuple):
    """A batch of rows: the chains of every network, that of the linear model, the gold labels
    (time, batch)."""

    networks: Sequence[Chain]
    linear: Chain
    targets: Tensor


def fitted_weights(batches: Sequence[ScoredChains]) -> ChainMixture:
    """Both weights a, b > 0 with the highest likelihood of the gold labels, with the penalty 2·(log
    2a)² + 2·(log 2b)², so that few rows change them only little. Several networks are fitted by
    their mean cost."""
    from_equal = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    search = LBFGS([from_equal], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def cost() -> Tensor:
        total = DOUBT * from_equal.detach().square().sum()
        slope = 2 * DOUBT * from_equal.detach()
        for batch in batches:  # one at a time, so that only one graph is in memory
            grad = from_equal.detach().clone().requires_grad_()
            a, b = 0.5 * grad.exp()
            costs = [_cost(joined(one, batch.linear, a, b), batch) for one in batch.networks]
            mean = torch.stack(costs).mean()
            slope = slope + torch.autograd.grad(mean, grad)[0]
            total = total + mean.detach()
        from_equal.grad = slope
        return total

    with torch.enable_grad():
        search.step(cost)  # type: ignore[no-untyped-call]
    a, b = (0.5 * from_equal.detach().exp()).tolist()
    return ChainMixture(a, b) if np.isfinite([a, b]).all() else EQUAL


def _cost(chain: Chain, batch: ScoredChains) -> Tensor:
    return (chain.log_partition() - score_of(chain, batch.targets)).sum().double()


def best_outside(f1: Callable[[float], float], tried: Iterable[float] = TRIED) -> float:
    """The value to subtract from the score of O for the highest span F1. A single peak may be
    chance, so each value is averaged with its neighbours, and values far from 0 must gain more."""
    values = list(tried)
    scores = np.array([f1(value) for value in values])
    padded = np.concatenate([scores[:1], scores, scores[-1:]])
    smooth = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4 - TOLD * np.square(values)
    return float(values[int(np.argmax(smooth))])
