"""What the class of a sequence rests on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ensue.tasks.baselines.contributions import (
    Contributions,
    ngram_contributions,
    text_contributions,
)
from ensue.tasks.baselines.text_features import Texts
from ensue.tasks.blocks.pooled_network import PooledNetwork
from ensue.tasks.classify.scoring import (
    ClassifierModel,
    Floats,
    columns_of,
    decided_of,
    mixed_in,
    network_scores,
    probabilities_of,
)
from ensue.tasks.explaining.attribution import LinearAttribution
from ensue.tasks.explaining.linear import linear_attributions
from ensue.tasks.explaining.measures import Wanted, label_number, labels_there
from ensue.tasks.explaining.odds import against_others, odds_of, odds_of_scores
from ensue.tasks.explaining.pooled import PooledExplainer
from ensue.tasks.explaining.rows import ExplainRows, RowExplainer
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.words import texts_of
from ensue.tasks.task import Asked


class ClassExplainer(PooledExplainer):
    """The answered class, or all labels that are there, unless one is named."""

    def __init__(self, model: ClassifierModel, part: Part, label: str | None) -> None:
        super().__init__(model, part)
        self.learned, self.several = model.learned, model.model.several
        names = self.learned.labels.tokens
        p = self._probabilities(part)
        if label is not None:
            numbers = [label_number(label, names)]
        elif self.several:
            numbers = labels_there(p[0])
        else:
            numbers = [int(decided_of(p, model)[0])]
        self._wanted = [Wanted(names[k], k, float(p[0, k])) for k in numbers]
        if self.several or len(names) == 2:
            self.linear_measure = "log-odds"

    @property
    def wanted(self) -> Sequence[Wanted]:
        return self._wanted

    def columns(self, part: Part) -> Columns:
        return columns_of(part, self.model)

    def _probabilities(self, part: Part) -> Floats:
        columns = self.columns(part)
        scores = [network_scores(network, columns, self.model) for network in self.model.networks]
        return probabilities_of(scores, mixed_in(part, columns, self.model), self.model)

    def whole(self, part: Part) -> Floats:
        p = self._probabilities(part)
        return np.stack([odds_of(p, own.number, self.several) for own in self.wanted], 1)

    def measured(self, z: Tensor) -> Tensor:
        numbers = [own.number for own in self.wanted]
        if self.several:
            return z[:, numbers]
        return torch.stack([odds_of_scores(z, number) for number in numbers], 1)

    # ------------------------------------------------------------- the linear model
    def answerers(self) -> str:
        mixture = self.learned.mixture
        if mixture is not None:
            return f"network and linear model, {mixture}"
        return "network with n-grams in it" if self._inside() is not None else ""

    def _inside(self) -> Tensor | None:
        """The weights of n-grams inside of the networks, (n-grams, classes), their mean."""
        own = [
            network.ngrams.weight.detach().cpu()
            for network in self.model.networks
            if isinstance(network, PooledNetwork) and network.ngrams is not None
        ]
        return torch.stack(own).mean(0) if own else None

    def linear(self) -> tuple[LinearAttribution, ...]:
        learned, inside = self.learned, self._inside()
        if learned.mixture is None and inside is None:
            return ()
        numbers = [own.number for own in self.wanted]
        directions = against_others(len(learned.labels), numbers, self.several)
        if learned.text_linear is not None:
            texts = texts_of(self.part)
            parts = text_contributions(learned.text_linear, texts, directions)
            more = None if learned.beside is None else learned.beside.matrix(self.part)
            bias = learned.text_linear.without_text(more) @ directions
        else:
            texts, parts = self._ngrams(inside, directions)
            assert learned.linear is not None
            bias = (learned.linear.bias if inside is None else 0 * learned.linear.bias) @ directions
        words = [texts.words[k] for k in texts.rows.values]
        return linear_attributions(self.wanted, words, parts, bias)

    def _ngrams(self, inside: Tensor | None, directions: Floats) -> tuple[Texts, Contributions]:
        linear = self.learned.linear
        assert linear is not None
        assert self.learned.ngram_words is not None
        rows = self.learned.ngram_inputs(self.part)
        texts = Texts(self.learned.ngram_words.tokens, rows)
        weights = linear.weights if inside is None else inside.numpy()
        return texts, ngram_contributions(linear.ngrams, weights, texts, directions)


class ExplainClass(ExplainRows):
    def explainer(self, model: ClassifierModel, part: Part, asked: Asked) -> RowExplainer:
        return ClassExplainer(model, part, asked.get("label"))


def run_network(network: nn.Module, part: Part, model: ClassifierModel) -> object:
    """A network over the rows of a part."""
    return network_scores(network, columns_of(part, model), model)
