"""Filling in blanks, from the words on both sides."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.vocabulary import END_NUMBER
from ensue.errors import OptionError
from ensue.tasks.abilities import Filled, Suggestion
from ensue.tasks.language.both_sides import BothSidesLanguage, around, fillers, ranks_before
from ensue.tasks.language.families import AnyLanguageModel
from ensue.tasks.language.learned import NEVER
from ensue.tasks.language.networks import LanguageNetwork
from ensue.tasks.language.streams import Tokens

BLANK = re.compile(r"_{2,}")
WORD_LEVELS = ("words", "pieces", "spaces")
TOP = 5  # number of fillers among which the true word counts as found


@dataclass(frozen=True)
class Gap:
    """A text with a blank, as tokens."""

    before: list[str]
    after: list[str]

    @classmethod
    def of(cls, model: AnyLanguageModel, text: str) -> Gap:
        blanks = BLANK.findall(text)
        if len(blanks) != 1:
            count = len(blanks) or "none"
            raise OptionError(f"fill: expected a text with one blank, ___, got {count} in {text!r}")
        before, after = BLANK.split(text)
        return cls(model.learned.tokeniser(before), model.learned.tokeniser(after))


class Filling:
    """The ability of models that read from both sides to fill a blank."""

    def fill(self, model: AnyLanguageModel, text: str, count: int = TOP) -> Filled:
        networks = both_sided(model)
        gap, words = Gap.of(model, text), model.learned.words
        before = torch.tensor([END_NUMBER, *words.ids(gap.before)])
        after = torch.tensor([*words.ids(gap.after), END_NUMBER])
        both, alone = (_fillers(logs) for logs in fillers(networks, before, after))
        best = int(both.argmax())
        stream = torch.cat([before, torch.tensor([best]), after]).numpy().astype(np.int32)
        sides = around(networks, stream)
        return Filled(
            text,
            _ranked(both, count, words.tokens),
            _ranked(alone, count, words.tokens),
            (*gap.before, words.tokens[best], *gap.after),
            len(gap.before),
            _bits(sides.logs[:-1]),  # the end has no words after it
            _bits(sides.logs_left[:-1]),
        )


def both_sided(model: AnyLanguageModel) -> list[BothSidesLanguage]:
    """The networks of a fitted model, if they read from both sides."""
    model.must_be_fitted()
    sided = [net for net in model.networks if isinstance(net, BothSidesLanguage)]
    if not sided:
        raise OptionError(
            f"fill: expected a model that reads from both sides, model.family = both, got "
            f"{model.settings.family}; train one with --set model.family=both"
        )
    if model.learned.tokeniser.name not in WORD_LEVELS:
        raise OptionError(
            f"fill: expected a model of words, text.level = {', '.join(WORD_LEVELS)}, got "
            f"{model.learned.tokeniser.name}"
        )
    return sided


def filling_scores(networks: Sequence[LanguageNetwork], stream: Tokens) -> Mapping[str, float]:
    """Evaluation of filling in each word of a text, except its ends: from the words before it and,
    for networks that read from both sides, from both."""
    words = stream[1:] != END_NUMBER
    if not words.any():
        return {}
    both = [network for network in networks if isinstance(network, BothSidesLanguage)]
    if not both:
        ranks = ranks_before(networks, stream)
        return {f"top {TOP}, before alone": float((ranks[words] <= TOP).mean())}
    sides = around(both, stream)
    return {
        "perplexity, both sides": float(np.exp(-sides.logs[words].mean())),
        f"top {TOP}, both sides": float((sides.ranks[words] <= TOP).mean()),
        f"top {TOP}, before alone": float((sides.ranks_left[words] <= TOP).mean()),
    }


def _bits(logs: NDArray[np.float64]) -> tuple[float, ...]:
    """−log₂ p, which rounding must not make negative."""
    return tuple((-logs / math.log(2)).clip(min=0).tolist())


def _fillers(logs: Tensor) -> Tensor:
    """Excludes padding, unknown words, starts and ends; the others share their probability."""
    scores = logs.clone()
    scores[[*NEVER, END_NUMBER]] = -torch.inf
    return scores.log_softmax(0)


def _ranked(logs: Tensor, count: int, tokens: Sequence[str]) -> tuple[Suggestion, ...]:
    best = logs.topk(min(count, int(logs.isfinite().sum())))
    pairs = zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
    return tuple(Suggestion(tokens[k], p) for k, p in pairs)
