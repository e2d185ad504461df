"""The record of a beam search, and the sequences read back from it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ensue.decoding.hypothesis import Hypothesis
from ensue.decoding.step import check_same_shape


@dataclass(frozen=True)
class Layer:
    """One step of the sentences that were still searched: each had `before` beginnings, row by row
    in watched (sentences · before, …); what went on is parents and words (sentences, width)."""

    sentences: Tensor
    before: int
    parents: Tensor
    words: Tensor
    watched: Tensor | None

    def places(self, count: int) -> Tensor:
        """(count, 1): where each of `count` sentences stands here, 0 for one that is gone."""
        place = self.sentences.new_zeros(count, 1)
        place[self.sentences, 0] = torch.arange(len(self.sentences), device=place.device)
        return place


@dataclass
class Ended:
    """The best of each sentence that are over, best first: scores and log_probs (sentences, n),
    −inf where there is none; ends (sentences, n, 3): number of words, beginning, last word."""

    scores: Tensor
    log_probs: Tensor
    ends: Tensor

    @classmethod
    def none(cls, sentences: int, n_best: int, device: torch.device) -> Ended:
        nothing = torch.full((sentences, n_best), -torch.inf, dtype=torch.float64, device=device)
        ends = torch.zeros(sentences, n_best, 3, dtype=torch.int64, device=device)
        return cls(nothing, nothing.clone(), ends)

    def add(self, sentences: Tensor, scores: Tensor, log_probs: Tensor, ends: Tensor) -> None:
        """Keeps the best; of equals those that were there, then the first."""
        scores = torch.cat([self.scores[sentences], scores], 1)
        log_probs = torch.cat([self.log_probs[sentences], log_probs], 1)
        ends = torch.cat([self.ends[sentences], ends], 1)
        scores, order = scores.sort(dim=1, descending=True, stable=True)
        order = order[:, : self.scores.shape[1]]
        self.scores[sentences] = scores[:, : self.scores.shape[1]]
        self.log_probs[sentences] = log_probs.gather(1, order)
        self.ends[sentences] = ends.gather(1, order[:, :, None].expand(-1, -1, 3))


def traced(layers: list[Layer], ended: Ended, end: int) -> list[list[Hypothesis]]:
    """Each sentence's hypotheses, followed from their ends to the start."""
    if not layers:
        return []
    lengths, at, last = ended.ends.unbind(2)  # (sentences, n)
    check_same_shape([layer.watched for layer in layers if layer.watched is not None])
    words, seen = [], []
    for number, layer in reversed(list(enumerate(layers, 1))):
        place = layer.places(len(lengths))
        inner = lengths > number  # those of which this layer's word is not the last
        slot = at.where(inner, 0)
        words.append(layer.words[place, slot].where(inner, last))
        at = layer.parents[place, slot].where(inner, at)
        if layer.watched is not None:
            row = place * layer.before + at.where(lengths >= number, 0)
            seen.append(layer.watched[row])
    watched = None if layers[0].watched is None else torch.stack(seen[::-1], 2)
    return _hypotheses(ended, torch.stack(words[::-1], 2), watched, end)


def _hypotheses(
    ended: Ended, words: Tensor, watched: Tensor | None, end: int
) -> list[list[Hypothesis]]:
    found = []
    rows = zip(
        ended.scores.tolist(),
        ended.log_probs.tolist(),
        ended.ends[:, :, 0].tolist(),
        words.tolist(),
        strict=True,
    )
    for k, row in enumerate(rows):
        own = []
        for j, (score, log_prob, length, tokens) in enumerate(zip(*row, strict=True)):
            if length:
                seen = None if watched is None else watched[k, j, :length]
                tokens = tuple(tokens[:length])
                own.append(Hypothesis(tokens, log_prob, score, tokens[-1] == end, seen))
        found.append(own)
    return found
