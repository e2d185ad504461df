"""The search for the best answers of one or several pair networks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.batches import evaluation_batches
from ensue.data.ragged import Ragged
from ensue.data.vocabulary import (
    END_NUMBER,
    PAD,
    START,
    START_NUMBER,
    TEXT_SPECIALS,
    UNKNOWN,
)
from ensue.decoding import BeamSearch, Hypothesis, State, beam, greedy
from ensue.tasks.seq2seq.pairs import PairBatch, PairNetwork, source_tensor
from ensue.training.processes import device_of_weights, moved

NEVER = torch.tensor([TEXT_SPECIALS.index(token) for token in (PAD, UNKNOWN, START)])  # is not said
HYPOTHESES = 512  # of a batch
SOURCE_TOKENS = 16_000  # maximum rows of a batch per hypothesis of a source


@dataclass(frozen=True)
class Search:
    """The options of a search. width: width of the beam, 1 is greedy; n_best: number of answers to
    a source, ranked by log p / lp(words), see `ensue.decoding.beam`; an answer has at most
    factor·(steps of its source) + extra tokens. aligned: whether to record attention."""

    width: int = 5
    n_best: int = 1
    length_penalty: str = "wu"
    alpha: float = 0.6
    factor: float = 2.0
    extra: int = 20
    aligned: bool = False

    def most_steps(self, lengths: Tensor) -> Tensor:
        """The maximum steps for sources (rows,), including the end."""
        return (lengths.double() * self.factor).long() + self.extra + 1


class SearchEnsemble:
    """Several networks, whose p is averaged. A state is the tuple of their states, on the device of
    their weights; the search runs on the CPU."""

    def __init__(self, networks: Sequence[PairNetwork]) -> None:
        self.networks = networks

    def begin(self, source: Tensor, lengths: Tensor) -> State:
        return tuple(
            network.begin(source.to(device_of_weights(network)), lengths)
            for network in self.networks
        )

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """log p (rows, words), −∞ for words that are never generated."""
        pairs = zip(self.networks, state, strict=True)
        states = [
            network.step(tokens.to(device_of_weights(network)), before) for network, before in pairs
        ]
        logs = (
            states[0][0].cpu() if len(states) == 1 else mean_log([log.cpu() for log, _ in states])
        )
        return logs.index_fill(1, NEVER, -torch.inf), tuple(new for _, new in states)

    def alignment(self, state: State) -> Tensor:
        """α (rows, source time), the mean over the networks."""
        pairs = zip(self.networks, state, strict=True)
        alignments = [network.alignment(after) for network, after in pairs]
        return torch.stack([alpha.cpu() for alpha in alignments if alpha is not None]).mean(0)

    @torch.no_grad()
    def log_probabilities(self, batch: PairBatch) -> Tensor:
        """log p (time, batch) of each target word, 0 on padding."""
        scores = [
            -network.costs(moved(batch, device_of_weights(network))).cpu()
            for network in self.networks
        ]
        return scores[0] if len(scores) == 1 else mean_log(scores)


def mean_log(logs: Sequence[Tensor]) -> Tensor:
    """The log of the mean p of several networks."""
    return torch.logsumexp(torch.stack(list(logs)), 0) - math.log(len(logs))


@torch.no_grad()
def searched(
    networks: Sequence[PairNetwork], source: Ragged, how: Search
) -> list[list[Hypothesis]]:
    """The n best answers to each source, best first. An empty source gets an empty answer without
    running the network."""
    ensemble = SearchEnsemble(networks)
    nothing = Hypothesis((END_NUMBER,), 0.0, 0.0, True)
    results = [[nothing] for _ in range(len(source))]
    full = np.flatnonzero(source.lengths)
    batches = evaluation_batches(
        source.lengths[full],
        max(1, SOURCE_TOKENS // how.width),
        most_rows=max(1, HYPOTHESES // how.width),
    )
    for some in batches:
        rows = full[some]
        for row, hypotheses in zip(rows, _batch(ensemble, source, rows, how), strict=True):
            results[row] = hypotheses
    return results


def _batch(
    ensemble: SearchEnsemble, source: Ragged, rows: NDArray[np.int64], how: Search
) -> list[list[Hypothesis]]:
    lengths = torch.from_numpy(source.lengths[rows])
    state = ensemble.begin(source_tensor(source.padded(rows)), lengths)
    start = torch.full((len(rows),), START_NUMBER)
    watch = ensemble.alignment if how.aligned else None
    most = how.most_steps(lengths)
    if how.width == 1:
        hypotheses = greedy(
            ensemble.step, start, state, end=END_NUMBER, most_steps=most, watch=watch
        )
        return [[hypothesis] for hypothesis in hypotheses]
    return beam(
        ensemble.step,
        start,
        state,
        BeamSearch(
            width=how.width, n_best=how.n_best, length_penalty=how.length_penalty, alpha=how.alpha
        ),
        end=END_NUMBER,
        most_steps=most,
        watch=watch,
    )
