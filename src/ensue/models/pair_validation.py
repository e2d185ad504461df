"""What a translator is watched by while it learns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ensue.data.fingerprint import fingerprint
from ensue.data.ragged import Ragged
from ensue.decoding import Hypothesis
from ensue.models.bleu import corpus_of
from ensue.models.pair_judge import Counting
from ensue.models.pair_search import Search, searched
from ensue.models.pair_source import PairColumns, Taught, in_batches

TOKENS, ROWS = 8_000, 256  # of a batch
FEW = 4  # rows of a trial


class References(NamedTuple):
    """Sources by their numbers, and what they should become."""

    sources: Ragged
    texts: list[str]

    def first(self, count: int) -> References:
        return References(self.sources.take(np.arange(len(self.texts))[:count]), self.texts[:count])


class PairValidation:
    """The mean cost of a word; of the references, the share translated exactly, and BLEU and chrF
    where these are watched."""

    def __init__(
        self,
        network: Taught,
        columns: PairColumns,
        references: References,
        search: Search,
        text: Callable[[Hypothesis], str],
        *,
        bleu: bool,
        counting: Counting,
    ) -> None:
        self.network, self.columns, self.references = network, columns, references
        self._search, self._text, self._bleu, self._counting = search, text, bleu, counting
        self.fingerprint = fingerprint(columns.arrays())

    def __call__(self) -> Mapping[str, float]:
        return self._scores(self.columns, self.references)

    def sample(self) -> Mapping[str, float]:
        longest = np.argsort(self.columns.lengths)[-FEW:]
        return self._scores(self.columns.taken(longest), self.references.first(FEW))

    def _scores(self, columns: PairColumns, references: References) -> dict[str, float]:
        network = self.network.pairs
        total = sum(
            float(network.costs(batch).double().sum())
            for _, batch in in_batches(columns, TOKENS, ROWS)
        )
        cost = total / float(columns.wanted.sum())
        scores = {"cost": cost, "perplexity": math.exp(min(cost, 700.0))}
        if references.texts:
            scores |= self._searched(references)
        return scores

    def _searched(self, references: References) -> dict[str, float]:
        best = searched([self.network.pairs], references.sources, self._search)
        found = [self._text(own[0]) for own in best]
        pairs = list(zip(found, references.texts, strict=True))
        scores = {"exact": sum(f == w for f, w in pairs) / len(pairs)}
        if self._bleu:
            own = self._counting
            corpus = corpus_of(
                found, references.texts, tokenize=own.tokenize, lowercase=own.lowercase
            )
            scores |= {"bleu": corpus.bleu, "chrf": corpus.chrf}
        return scores
