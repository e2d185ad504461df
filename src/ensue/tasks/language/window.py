"""A feed-forward network that says what comes next, from the last few words."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.data.vocabulary import END_NUMBER
from ensue.errors import OptionError, ShapeError
from ensue.tasks.blocks.encoders import bridge
from ensue.tasks.language.networks import (
    NO_DROPOUT,
    DropoutRates,
    LanguageNetwork,
)
from ensue.tasks.language.settings import LanguageSettings
from ensue.tasks.language.softmaxes import FULL, Softmax, small, softmax_of
from ensue.tasks.language.streams import Carried


class WindowLanguage(LanguageNetwork):
    """p(w_{t+1}) = softmax(W·tanh(H·[e(w_t); …; e(w_{t−n+1})] + d) + b): n words are seen.

    Before a text begins, the window holds the word number `before`. one_hot: e is the unit vector
    of the word, so that H is a table for each place of the window."""

    def __init__(
        self,
        words: int,
        *,
        window: int,
        embedding_size: int,
        hidden_size: int,
        before: int,
        tied: bool = False,
        one_hot: bool = False,
        rates: DropoutRates = NO_DROPOUT,
        softmax: Softmax = FULL,
    ) -> None:
        super().__init__()
        if window < 1:
            raise OptionError(f"window: expected a number of words ≥ 1, got {window}")
        if one_hot and tied:
            raise OptionError("tied: expected false with one_hot, which has no embedding to tie to")
        self.window, self.before, self.one_hot, self.rates = window, before, one_hot, rates
        if one_hot:
            self.tables = nn.ModuleList(nn.Embedding(words, hidden_size) for _ in range(window))
            self.shift = nn.Parameter(torch.zeros(hidden_size))
        else:
            self.table = softmax.table(words, embedding_size, small)
            self.hidden = nn.Linear(window * embedding_size, hidden_size)
        self.between = bridge(hidden_size, embedding_size if tied else hidden_size)
        self.output = softmax.output(words, hidden_size, self.table if tied else None)

    @classmethod
    def of(cls, settings: LanguageSettings, words: int) -> WindowLanguage:
        return cls(
            words,
            window=settings.window,
            embedding_size=settings.embedding_size,
            hidden_size=settings.hidden_size,
            before=END_NUMBER,
            tied=settings.tied and not settings.one_hot,
            one_hot=settings.one_hot,
            rates=DropoutRates.of(settings),
            softmax=softmax_of(settings.softmax, settings.softmax_cuts, words),
        )

    @staticmethod
    def describe(settings: LanguageSettings) -> str:
        return f"window of {settings.window} tokens, {settings.hidden_size} hidden units"

    def run(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        """y (time, batch, width); carried: the last window − 1 tokens (window − 1, batch)."""
        past = carried["past"] if carried else self.begin(tokens.shape[1])["past"]
        if past.shape[1] != tokens.shape[1]:
            raise ShapeError(f"carried: expected {tokens.shape[1]} columns, got {past.shape[1]}")
        whole = torch.cat([past, tokens])
        count = tokens.shape[0]
        seen = [whole[self.window - 1 - k :][:count] for k in range(self.window)]
        if self.one_hot:
            found = [table(words) for table, words in zip(self.tables, seen, strict=True)]
            z = torch.stack(found).sum(0) + self.shift
        else:
            x = torch.cat([self.table(words) for words in seen], -1)
            z = self.hidden(dropout(x, self.rates.input, self.training))
        y = self.between(dropout(z.tanh(), self.rates.output, self.training))
        return y, {"past": whole[count:]}

    def begin(self, batch: int) -> Carried:
        device = self.output.bias.device
        past = torch.full((self.window - 1, batch), self.before, dtype=torch.int64, device=device)
        return {"past": past}

    def reorder(self, carried: Carried, order: Tensor) -> Carried:
        return {"past": carried["past"].index_select(1, order.to(carried["past"].device))}
