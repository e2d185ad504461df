"""The best sequences that a search of bounded width finds, for many sentences at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ensue.decoding.step import (
    Hypothesis,
    Reorder,
    Setting,
    State,
    Step,
    Watch,
    check_greatest,
    check_same_shape,
    largest,
    reordered,
    setting,
)
from ensue.errors import OptionError, unknown

# Functions of the number of words and α; each is 1 for α = 0 and never falls as words are added.
PENALTIES: dict[str, Callable[[Tensor, float], Tensor]] = {
    "wu": lambda words, alpha: ((5.0 + words.double()) / 6.0) ** alpha,
    "length": lambda words, alpha: words.double() ** alpha,
}


def penalty(name: str, alpha: float) -> Callable[[Tensor], Tensor]:
    """lp(n): "wu" ((5 + n) / 6)^α of Wu et al. (2016), "length" n^α, the mean for α = 1."""
    if name not in PENALTIES:
        raise unknown("length_penalty", name, PENALTIES)
    if not 0 <= alpha < float("inf"):
        raise OptionError(
            f"alpha: expected a number ≥ 0, got {alpha}; 0 ranks by log-probability, greater "
            "values favour longer sequences"
        )
    of = PENALTIES[name]
    return lambda words: of(words, alpha)


@dataclass(frozen=True)
class Layer:
    """One step of the unfinished sentences. Each had `before` beginnings, row by row in watched
    (sentences · before, …). parents and words (sentences, width): the beginnings that were
    continued, and the words they got."""

    sentences: Tensor
    before: int
    parents: Tensor
    words: Tensor
    watched: Tensor | None

    def places(self, count: int) -> Tensor:
        """The position of each of `count` sentences in this layer, 0 for finished
        ones; shape (count, 1)."""
        place = self.sentences.new_zeros(count, 1)
        place[self.sentences, 0] = torch.arange(len(self.sentences), device=place.device)
        return place


@dataclass
class Ended:
    """The best finished hypotheses of each sentence, best first: scores and log_probs (sentences,
    n), −inf for missing ones; ends (sentences, n, 3): number of words, beginning, last word."""

    scores: Tensor
    log_probs: Tensor
    ends: Tensor

    @classmethod
    def none(cls, sentences: int, n_best: int, device: torch.device) -> Ended:
        nothing = torch.full((sentences, n_best), -torch.inf, dtype=torch.float64, device=device)
        ends = torch.zeros(sentences, n_best, 3, dtype=torch.int64, device=device)
        return cls(nothing, nothing.clone(), ends)

    def add(self, sentences: Tensor, scores: Tensor, log_probs: Tensor, ends: Tensor) -> None:
        """Keeps the best hypotheses; among equals, the earlier ones."""
        scores = torch.cat([self.scores[sentences], scores], 1)
        log_probs = torch.cat([self.log_probs[sentences], log_probs], 1)
        ends = torch.cat([self.ends[sentences], ends], 1)
        scores, order = scores.sort(dim=1, descending=True, stable=True)
        order = order[:, : self.scores.shape[1]]
        self.scores[sentences] = scores[:, : self.scores.shape[1]]
        self.log_probs[sentences] = log_probs.gather(1, order)
        self.ends[sentences] = ends.gather(1, order[:, :, None].expand(-1, -1, 3))


def traced(layers: list[Layer], ended: Ended, end: int) -> list[list[Hypothesis]]:
    """Each sentence's hypotheses, traced from their ends back to the start."""
    if not layers:
        return []
    lengths, at, last = ended.ends.unbind(2)  # (sentences, n)
    check_same_shape([layer.watched for layer in layers if layer.watched is not None])
    words, watched_steps = [], []
    for number, layer in reversed(list(enumerate(layers, 1))):
        place = layer.places(len(lengths))
        inner = lengths > number  # hypotheses that do not end at this layer
        slot = at.where(inner, 0)
        words.append(layer.words[place, slot].where(inner, last))
        at = layer.parents[place, slot].where(inner, at)
        if layer.watched is not None:
            row = place * layer.before + at.where(lengths >= number, 0)
            watched_steps.append(layer.watched[row])
    watched = None if layers[0].watched is None else torch.stack(watched_steps[::-1], 2)
    return _hypotheses(ended, torch.stack(words[::-1], 2), watched, end)


def _hypotheses(
    ended: Ended, words: Tensor, watched: Tensor | None, end: int
) -> list[list[Hypothesis]]:
    hypotheses = []
    rows = zip(
        ended.scores.tolist(),
        ended.log_probs.tolist(),
        ended.ends[:, :, 0].tolist(),
        words.tolist(),
        strict=True,
    )
    for k, row in enumerate(rows):
        of_row = []
        for j, (score, log_prob, length, tokens) in enumerate(zip(*row, strict=True)):
            if length:
                watched_steps = None if watched is None else watched[k, j, :length]
                tokens = tuple(tokens[:length])
                of_row.append(Hypothesis(tokens, log_prob, score, tokens[-1] == end, watched_steps))
        hypotheses.append(of_row)
    return hypotheses


@dataclass(frozen=True)
class BeamSearch:
    """The width of a beam, and the ranking of finished sequences; `beam` explains the fields.

    >>> BeamSearch(width=5, alpha=0.6)
    BeamSearch(width=5, n_best=1, length_penalty='wu', alpha=0.6, stop_early=True)
    """

    width: int
    n_best: int = 1
    length_penalty: str = "wu"
    alpha: float = 0.0
    stop_early: bool = True


def beam(
    step: Step,
    start: Tensor,
    state: State,
    how: BeamSearch,
    *,
    end: int | None,
    most_steps: int | Tensor,
    reorder: Reorder = reordered,
    watch: Watch | None = None,
) -> list[list[Hypothesis]]:
    """The n best sequences found for each sentence, start (sentences,), best first.

    At each step the beginnings of a sentence are extended by every word. Of the `width` most
    probable results, those that are over are finished. The `width` most probable results that are
    not over continue. Finished ones are ranked by log p / lp(n), n their number of words:
    length_penalty "wu" is lp(n) = ((5 + n) / 6)^α, "length" n^α. Among equals, the earlier one
    comes first, then that of the better beginning, then the word with the lower index. There are
    fewer than n_best results if fewer are possible.

    stop_early: a sentence is done once no beginning can displace one of its n best. This loses
    nothing. Let s ≤ 0 be the log p of the best beginning and N the sentence's most_steps. Every
    continuation has log p ≤ s, because no log p of a word is above 0. It has at most N words and lp
    never falls, so lp(n) ≤ lp(N), and its score is log p / lp(n) ≤ s / lp(n) ≤ s / lp(N). If the
    last of the n best has at least this score, continuations can only equal it, and then rank after
    it.

    watch(state) (rows, …) is applied to the state that a step returns. Its value is kept for each
    word chosen at that step, in `Hypothesis.watched`.

    >>> def step(words, state):  # after any word: 0 with 0.5, 1 with 0.3, the end 2 with 0.2
    ...     return torch.tensor([[0.5, 0.3, 0.2]]).log().expand(len(words), 3), state
    >>> start = torch.tensor([2])
    >>> found = beam(step, start, None, BeamSearch(width=3, n_best=2), end=2, most_steps=2)[0]
    >>> [(own.tokens, round(own.log_probability, 3)) for own in found]
    [((0, 0), -1.386), ((2,), -1.609)]
    """
    _check(how.width, how.n_best)
    search = setting(step, start, state, end, most_steps, reorder, watch)
    ranking = penalty(how.length_penalty, how.alpha)
    return _Search(search, how.width, how.n_best, ranking, how.stop_early).run()


def _check(width: int, n_best: int) -> None:
    if width < 1:
        raise OptionError(f"width: expected a number of hypotheses ≥ 1, got {width}")
    if not 1 <= n_best <= width:
        raise OptionError(f"n_best: expected a number from 1 to width, {width}, got {n_best}")


class _Search:
    def __init__(
        self,
        search: Setting,
        width: int,
        n_best: int,
        divisor: Callable[[Tensor], Tensor],
        stop_early: bool,
    ) -> None:
        self.search, self.width, self.divisor = search, width, divisor
        self.stop_early = stop_early
        self.ended = Ended.none(len(search.tokens), n_best, search.tokens.device)
        self.layers: list[Layer] = []

    @torch.no_grad()
    def run(self) -> list[list[Hypothesis]]:
        search = self.search
        tokens, state = search.tokens, search.state
        sentences = torch.arange(len(tokens), device=tokens.device)
        scores = torch.zeros(len(tokens), 1, dtype=torch.float64, device=tokens.device)
        while len(sentences):
            before = scores.shape[1]
            log_probs, state = search.ask(tokens, state)
            watched = search.watched(state, len(tokens))
            scores, parents, chosen = self._lengthened(sentences, scores, log_probs)
            self.layers.append(Layer(sentences, before, parents, chosen, watched))
            best = self._best_rows(sentences, scores)
            rows = (parents[best] + before * best[:, None]).flatten()
            sentences, scores, tokens = sentences[best], scores[best], chosen[best].flatten()
            state = search.reorder(state, rows) if len(rows) else state
        return traced(self.layers, self.ended, search.end)

    def _lengthened(
        self, sentences: Tensor, scores: Tensor, log_probs: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The continuations (sentences, width) as log p, beginning and word, from the log p of
        beginnings (sentences, before) and of their next words. Finished ones are recorded in the
        ended."""
        number = len(self.layers) + 1
        # A beginning contributes at most `width` words that continue, and the end.
        values, words = largest(log_probs, min(self.width + 1, log_probs.shape[1]))
        check_greatest(values[:, 0])
        shape = (*scores.shape, -1)
        totals = scores[:, :, None] + values.double().clamp(max=0).view(shape)
        totals, order = totals.flatten(1).sort(dim=1, descending=True, stable=True)
        parents = order // values.shape[1]
        words = words.view(len(scores), -1).gather(1, order)
        over = (words == self.search.end) | (self.search.limits[sentences] == number)[:, None]
        self._end(sentences, number, over, totals, parents, words)
        # Ended ones move after the others, which keep their order.
        going = over.to(torch.uint8).sort(dim=1, stable=True).indices[:, : self.width]
        totals = totals.masked_fill(over, -torch.inf)
        return totals.gather(1, going), parents.gather(1, going), words.gather(1, going)

    def _end(
        self,
        sentences: Tensor,
        number: int,
        over: Tensor,
        totals: Tensor,
        parents: Tensor,
        words: Tensor,
    ) -> None:
        """Records the ended hypotheses among the best `width`."""
        over, totals = over[:, : self.width], totals[:, : self.width]
        if not bool(over.any()):
            return
        totals = totals.masked_fill(~over, -torch.inf)
        lengths = torch.full_like(words[:, : self.width], number)
        ends = torch.stack([lengths, parents[:, : self.width], words[:, : self.width]], 2)
        self.ended.add(sentences, totals / self.divisor(lengths), totals, ends)

    def _best_rows(self, sentences: Tensor, scores: Tensor) -> Tensor:
        """Selects the sentences that continue."""
        best = scores.amax(1)
        going = best > -torch.inf
        if self.stop_early:
            bound = best / self.divisor(self.search.limits[sentences])
            going &= self.ended.scores[sentences, -1] < bound
        return going.nonzero()[:, 0]
