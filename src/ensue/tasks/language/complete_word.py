"""Words that a model spells: letter by letter, or piece by piece."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ensue.data.subwords import WORD
from ensue.data.vocabulary import END, PAD, START, UNKNOWN

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]
Reorder = Callable[[Any, Tensor], Any]
WIDTH = 32  # words that are gone on with at a time
LONGEST = 24  # tokens of a word
WORTH_TELLING = 0.01  # of the probability of the first word


@dataclass(frozen=True)
class Letters:
    """For every token: what it adds to a word, whether a word may begin with it, and whether one
    may go on with it. What cannot go on ends the word before it."""

    texts: Sequence[str]
    begins: Tensor
    goes_on: Tensor


@dataclass(frozen=True)
class WordSpelling:
    """mark: what a token that begins a word begins with; "" where white space stands between."""

    mark: str

    def letters(self, tokens: Sequence[str]) -> Letters:
        begins, goes_on = [], []
        for token in tokens:
            written = token not in (PAD, UNKNOWN, START, END) and not token.isspace()
            first = bool(self.mark) and token.startswith(self.mark)
            begins.append(written and (first or not self.mark))
            goes_on.append(written and not first)
        texts = [token.removeprefix(self.mark) if self.mark else token for token in tokens]
        return Letters(texts, torch.tensor(begins), torch.tensor(goes_on))


SPELLINGS = {"characters": WordSpelling(""), "subwords": WordSpelling(WORD)}


def spelling_of(tokeniser: str) -> WordSpelling | None:
    """None where a token is a word."""
    return SPELLINGS.get(tokeniser)


def spelt_words(
    step: Step,
    last: Tensor,
    state: Any,
    reorder: Reorder,
    letters: Letters,
    partial: str,
    count: int,
) -> list[tuple[str, float]]:
    """The most probable words that begin with `partial`, and log p of each: that its tokens come,
    and that the word is over then. step: log p (batch, tokens) of what follows tokens (batch,)."""
    ended: dict[str, float] = {}
    texts, scores = [""], torch.zeros(1, dtype=torch.float64)
    allowed = letters.begins
    for _ in range(LONGEST):
        logs, state = step(last, state)
        logs = logs.double()
        over = logs[:, ~letters.goes_on].logsumexp(1)
        for text, score in zip(texts, (scores + over).tolist(), strict=True):
            if text and text.startswith(partial):
                ended[text] = max(score, ended.get(text, score))
        total = scores[:, None] + logs.masked_fill(~allowed, float("-inf"))
        kept = _fitting(total, texts, letters.texts, partial)
        if not kept:
            break
        rows, tokens, found = zip(*kept, strict=True)
        texts = [texts[row] + letters.texts[token] for row, token in zip(rows, tokens, strict=True)]
        scores = torch.tensor(found, dtype=torch.float64)
        last, state = torch.tensor(tokens), reorder(state, torch.tensor(rows))
        allowed = letters.goes_on
        best = sorted(ended.values(), reverse=True)[:count]
        if len(best) == count and best[-1] >= max(found):
            break
    words = sorted(ended.items(), key=lambda pair: (-pair[1], pair[0]))
    least = words[0][1] + math.log(WORTH_TELLING) if words else 0.0
    return [(word, score) for word, score in words[:count] if score >= least]


def _fitting(
    total: Tensor, texts: Sequence[str], added: Sequence[str], partial: str
) -> list[tuple[int, int, float]]:
    """(row, token, log p) of the most probable that agree with what is typed so far."""
    found: list[tuple[int, int, float]] = []
    order = total.flatten().argsort(descending=True).tolist()
    for at in order:
        row, token = divmod(at, total.shape[1])
        score = float(total[row, token])
        if score == float("-inf") or len(found) == WIDTH:
            break
        text = texts[row] + added[token]
        if text.startswith(partial) or partial.startswith(text):
            found.append((row, token, score))
    return found
