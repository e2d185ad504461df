"""The combined model of a labeller, networks and linear chain: labels, probabilities, weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.ragged import Ragged
from ensue.metrics.classes import span_f1
from ensue.metrics.spans import OUTSIDE, scheme_of, span_counts
from ensue.tasks.evaluation.summary import NETWORK_ALONE
from ensue.tasks.label.evaluation import tags_of_rows
from ensue.tasks.label.linear_chain import Chain, ChainOfWords
from ensue.tasks.label.mixture import (
    ChainMixture,
    ScoredChains,
    best_outside,
    fitted_weights,
    without,
)
from ensue.tasks.label.network import LabellerNetwork
from ensue.tasks.label.outputs import at_real_steps
from ensue.tasks.label.settings import LabellerSettings
from ensue.tasks.rows.batch import Columns, SequenceBatch, targets_of
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.source import in_batches

if TYPE_CHECKING:
    from ensue.tasks.label.learned import LearnedLabels
    from ensue.tasks.model import Model

    LabellerModel = Model[LabellerSettings, Part, LearnedLabels]

Floats = NDArray[np.float64]
AT_ONCE = 2000  # tokens that are answered together; letters of words need memory


@dataclass(frozen=True)
class Answering:
    """The parts of the combined model. linear, mixture: the linear chain over the words of a part
    and its weight, if it contributes; names: the names of the labels."""

    networks: Sequence[nn.Module]
    settings: LabellerSettings
    names: Sequence[str]
    linear: ChainOfWords | None = None
    mixture: ChainMixture | None = None

    def _batches(self, columns: Columns) -> Iterator[tuple[NDArray[np.int64], SequenceBatch]]:
        return in_batches(columns, self.networks[0], min(AT_ONCE, 2 * self.settings.batch_tokens))

    @torch.no_grad()
    def predicted(self, columns: Columns) -> tuple[Ragged, Floats]:
        """The label of every step, and (steps, labels) probabilities, the mean of the networks."""
        starts = np.concatenate([[0], np.cumsum(columns.lengths)])
        labels = np.zeros(starts[-1], np.int64)
        probabilities = np.zeros((starts[-1], len(self.names)))
        for rows, batch in self._batches(columns):
            best, mean = self._of_batch(batch, self._linear(columns, rows))
            _put(labels, starts, rows, best)
            _put(probabilities, starts, rows, mean)
        return Ragged(labels, starts), probabilities

    def _linear(self, columns: Columns, rows: NDArray[np.int64]) -> Chain | None:
        if self.linear is None or columns.surfaces is None:
            return None
        steps = columns.surfaces.take(rows)
        return self.linear.chain(Ragged(steps.values - 1, steps.starts))  # 0 is padding

    def _of_batch(
        self, batch: SequenceBatch, linear: Chain | None
    ) -> tuple[NDArray[np.int64], Floats]:
        """Labels (time, batch) and probabilities (time, batch, labels). For one network, the best
        label sequence by its search; for several, the best label of each step by the mean."""
        outputs = [self._of_network(network, batch, linear) for network in self.networks]
        mean = np.asarray(sum(p.double().cpu().numpy() for _, p in outputs) / len(outputs))
        return (outputs[0][0].cpu().numpy() if len(outputs) == 1 else mean.argmax(-1)), mean

    def _of_network(
        self, network: nn.Module, batch: SequenceBatch, linear: Chain | None
    ) -> tuple[Tensor, Tensor]:
        assert isinstance(network, LabellerNetwork)
        search = self.settings.search
        mixed = linear is not None and self.mixture is not None and search == "exact"
        chain = network.chain(batch) if mixed else None
        if chain is None or linear is None or self.mixture is None:
            return network.label(batch, search, self.settings.beam)
        both = self.mixture.joined(on_cpu(chain), linear)
        best, _ = self._ready(both).best()
        return best, at_real_steps(both.log_marginals().exp(), both.lengths)

    def _ready(self, chain: Chain) -> Chain:
        """The chain for choosing labels: with a lower score of O for spans."""
        assert self.mixture is not None
        if not self.mixture.outside:
            return chain
        return without(chain, self.names.index(OUTSIDE), self.mixture.outside)

    @torch.no_grad()
    def cost(self, columns: Columns) -> float:
        """−log p per step, of the network alone."""
        total = sum(float(self.networks[0](batch, {})[0]) for _, batch in self._batches(columns))
        return total / max(1, int(columns.lengths.sum()))

    @torch.no_grad()
    def alone(self, columns: Columns) -> dict[str, Ragged]:
        """The labels of each part of the combined model alone, and of the linear chain in any
        case."""
        if self.linear is None or columns.surfaces is None:
            return {}
        starts = np.concatenate([[0], np.cumsum(columns.lengths)])
        labels = np.zeros(starts[-1], np.int64)
        for rows, _ in self._batches(columns):
            linear = self._linear(columns, rows)
            assert linear is not None
            _put(labels, starts, rows, linear.best()[0].numpy())
        by_name = {"linear chain": Ragged(labels, starts)}
        if self.mixture is not None:
            by_name[NETWORK_ALONE] = replace(self, mixture=None).predicted(columns)[0]
        return by_name

    # ------------------------------------------------------------- fitted
    @torch.no_grad()
    def fitted(self, columns: Columns) -> ChainMixture | None:
        """The mixture with the highest likelihood of the labels of these columns and the highest
        span F1; None if the output of the networks is not a chain."""
        batches = []
        for rows, batch in self._batches(columns):
            chains = [network.chain(batch) for network in self.networks]  # type: ignore[operator]
            linear = self._linear(columns, rows)
            if self.settings.search != "exact" or linear is None or None in chains:
                return None
            targets = targets_of(batch).cpu()
            batches.append(ScoredChains([on_cpu(chain) for chain in chains], linear, targets))
        mixture = fitted_weights(batches)
        return mixture._replace(outside=self._best_outside(batches, mixture))

    def _best_outside(self, batches: Sequence[ScoredChains], mixture: ChainMixture) -> float:
        if scheme_of(self.names) is None or OUTSIDE not in self.names:
            return 0.0
        label = self.names.index(OUTSIDE)
        chains = [mixture.joined(batch.networks[0], batch.linear) for batch in batches]
        gold = [tags for batch in batches for tags in self._tags(batch.targets, batch.linear)]

        def f1(outside: float) -> float:
            scores = []
            for chain in chains:
                scores += self._tags(without(chain, label, outside).best()[0], chain)
            return float(span_f1(span_counts(gold, scores).sum(0)))

        return best_outside(f1)

    def _tags(self, labels: Tensor, chain: Chain) -> list[list[str]]:
        """The tags of each row, from labels (time, batch)."""
        flat = labels.T[torch.arange(chain.time) < chain.lengths[:, None]].numpy()
        starts = np.concatenate([[0], np.cumsum(chain.lengths.numpy())])
        return tags_of_rows(self.names, Ragged(flat, starts))


def columns_of(part: Part, model: LabellerModel) -> Columns:
    """A part, encoded for the networks."""
    return model.learned.columns(part, model.text, model.settings)


def answering_of(
    part: Part, model: LabellerModel, networks: Sequence[nn.Module] | None = None
) -> Answering:
    """The networks of a model, or the given ones, with its linear chain over the words of a
    part."""
    learned, linear = model.learned, None
    if learned.linear is not None and part.texts:
        linear = learned.linear.of_words(part.numbers.token_names)
    return Answering(
        model.networks if networks is None else networks,
        model.settings,
        learned.labels.tokens,
        linear,
        learned.mixture,
    )


def on_cpu(chain: Chain) -> Chain:
    return Chain(
        chain.first.cpu(),
        lambda t: chain.pair(t).cpu(),
        chain.last.cpu(),
        chain.lengths.cpu(),
        chain.time,
    )


def _put(
    values: NDArray[Any], starts: NDArray[np.int64], rows: NDArray[np.int64], padded: NDArray[Any]
) -> None:
    """Writes padded rows (time, batch, …) to their positions among the steps of all rows."""
    lengths = starts[rows + 1] - starts[rows]
    at = np.arange(lengths.sum()) + np.repeat(starts[rows] - np.cumsum(lengths) + lengths, lengths)
    values[at] = padded.swapaxes(0, 1)[np.arange(len(padded)) < lengths[:, None]]
