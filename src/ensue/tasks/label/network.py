"""The network of a labeller: a label for each step of a sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.tasks.blocks.embeddings import Embed, check_rates
from ensue.tasks.blocks.encoders import Encoder, RecurrentEncoder
from ensue.tasks.blocks.heads import weighted_sum
from ensue.tasks.blocks.norms import check_norm_weight, norm_preserving
from ensue.tasks.label.chains import Chain
from ensue.tasks.label.crf import CRF
from ensue.tasks.label.outputs import LabelOutput, Stepwise
from ensue.tasks.label.previous_label import PreviousLabel
from ensue.tasks.rows.batch import SequenceBatch, targets_of

LABEL_OUTPUTS: dict[str, type[LabelOutput]] = {
    "stepwise": Stepwise,
    "crf": CRF,
    "previous": PreviousLabel,
}


class BestLabels(NamedTuple):
    """labels (time, batch), 0 at padding; probabilities (time, batch, labels), zero there."""

    labels: Tensor
    probabilities: Tensor


class LabellerNetwork(nn.Module):
    """y = dropout(encode(embed(batch))); the output gives the labels a distribution.

    norm_weight: how much the norm-preserving regulariser of the encoder counts."""

    def __init__(
        self,
        embed: Embed,
        encoder: Encoder,
        output: LabelOutput,
        *,
        dropout: float = 0.0,
        norm_weight: float = 0.0,
    ) -> None:
        super().__init__()
        check_rates({"dropout": dropout})
        check_norm_weight(norm_weight, encoder)
        self.embed, self.encoder, self.output = embed, encoder, output
        self.dropout, self.norm_weight = dropout, norm_weight

    def forward(
        self, batch: SequenceBatch, carried: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The cost of the batch, summed over its real steps; nothing is carried on."""
        x = self.embed(batch.inputs)
        y, _ = self.encoder(x, batch.lengths)
        cost = self._cost(y, batch)
        if self.training and self.norm_weight:
            assert isinstance(self.encoder, RecurrentEncoder)
            cost = cost + self.norm_weight * norm_preserving(
                self.encoder.recurrent, x, lambda y, state: self._cost(y, batch), batch.lengths
            )
        return cost, {}

    def _cost(self, y: Tensor, batch: SequenceBatch) -> Tensor:
        y = dropout(y, self.dropout, self.training)
        return weighted_sum(self.output.cost(y, batch.lengths, targets_of(batch)), batch.weights)

    @torch.no_grad()
    def chain(self, batch: SequenceBatch) -> Chain | None:
        """The distribution over label sequences as a chain; None where the output has none."""
        y, _ = self.encoder(self.embed(batch.inputs), batch.lengths)
        return self.output.chain(y, batch.lengths)

    def probabilities_of(self, x: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
        """How probable each label is at each step (time, batch, labels), where the steps are x
        (time, batch, width) once they are embedded. labels (time, batch): those that were found
        best."""
        y, _ = self.encoder(x, lengths)
        return self.output.probabilities(y, lengths, labels)

    @torch.no_grad()
    def label(self, batch: SequenceBatch, search: str = "exact", width: int = 8) -> BestLabels:
        """The best labels by this search ("exact", "beam" of `width`, "greedy"), and how probable
        each label is at each step."""
        y, _ = self.encoder(self.embed(batch.inputs), batch.lengths)
        labels = self.output.label(y, batch.lengths, search, width)
        return BestLabels(labels, self.output.probabilities(y, batch.lengths, labels))
