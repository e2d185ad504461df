"""What a language model writes: texts that go on from a prompt, and the words to choose from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ensue.data.vocabulary import PAD, START, UNKNOWN
from ensue.decoding import beam, sample, stream
from ensue.errors import OptionError
from ensue.models.language import END_NUMBER, SPECIALS, LanguageModel
from ensue.models.spelt import spelling_of, spelt_words

NEVER = tuple(SPECIALS.index(own) for own in (PAD, UNKNOWN, START))  # not to be written


class Suggestion(NamedTuple):
    token: str
    probability: float


@dataclass(frozen=True)
class Choice:
    """How the next token is chosen: drawn with a temperature, from the top_k most probable or
    from those that make up top_p; width > 1 searches for the most probable text instead."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    width: int = 1
    seed: int = 1
    most_tokens: int = 100


class Writer:
    """A model behind a prompt. Padding, unknown words and starts are never written: their share
    goes to the others."""

    def __init__(self, model: LanguageModel, prompt: str, *, whole: bool = True) -> None:
        """whole: the prompt ends with a whole word; else its last one is only begun."""
        model.must_be_fitted()
        self.model = model
        self.spelt = spelling_of(model.tokeniser.name)
        if self.spelt and not whole:
            before = prompt.rfind(" ") + 1
            tokens, self.partial = model.tokeniser(prompt[:before]), prompt[before:]
        else:
            tokens = model.tokeniser(prompt)
            self.partial = "" if whole or not tokens else tokens.pop()
        ids = [model.first, *model.words.ids(tokens)]
        self.tokens = tokens
        self._state: Any = model.begin(1)
        for number in ids[:-1]:
            _, self._state = model.step(torch.tensor([number]), self._state)
        self._last = torch.tensor([ids[-1]])

    def _step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        logs, state = self.model.step(tokens, state)
        logs = logs.clone()
        logs[:, NEVER] = float("-inf")
        return logs.log_softmax(1), state

    def after(self) -> tuple[Tensor, Any]:
        """log p (1, tokens) of what comes after the prompt, and the state there."""
        return self._step(self._last, self._state)

    def suggestions(self, count: int) -> list[Suggestion]:
        """The most probable words to come; those that go on from a word begun, if one is."""
        if self.spelt:
            found = spelt_words(
                self._step,
                self._last,
                self._state,
                self.model.reorder,
                self.spelt.letters(self.model.words.tokens),
                self.partial,
                count,
            )
            return [Suggestion(word, math.exp(log)) for word, log in found]
        row = self.after()[0][0].clone()
        row[END_NUMBER] = float("-inf")
        if self.partial:
            fits = [
                k for k, word in enumerate(self.model.words.tokens) if word.startswith(self.partial)
            ]
            kept = torch.full_like(row, float("-inf"))
            kept[fits] = row[fits]
            row = kept
        best = row.topk(min(count, len(row)))
        pairs = zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
        return [Suggestion(self.model.words.tokens[k], p) for k, p in pairs if p > 0]

    def texts(self, choice: Choice, count: int = 1) -> list[str]:
        """`count` texts that go on from the prompt, each up to its end."""
        if choice.width > 1:
            found = beam(
                self._step,
                self._last,
                self._state,
                end=END_NUMBER,
                most_steps=choice.most_tokens,
                width=max(choice.width, count),
                n_best=count,
                reorder=self.model.reorder,
            )[0]
        else:
            found = sample(
                self._step,
                self._last.expand(count).contiguous(),
                self.model.reorder(self._state, torch.zeros(count, dtype=torch.int64)),
                end=END_NUMBER,
                most_steps=choice.most_tokens,
                seed=choice.seed,
                temperature=choice.temperature,
                top_k=choice.top_k,
                top_p=choice.top_p,
                reorder=self.model.reorder,
            )
        return [self._text(own.tokens) for own in found]

    def pieces(self, choice: Choice) -> Iterator[str]:
        """One text, as it is made: put together, the pieces are the text without its prompt."""
        if choice.width > 1:
            raise OptionError("stream: a beam knows its text at the end only; expected width 1")
        numbers = stream(
            self._step,
            self._last,
            self._state,
            end=END_NUMBER,
            most_steps=choice.most_tokens,
            seed=choice.seed,
            temperature=choice.temperature,
            top_k=choice.top_k,
            top_p=choice.top_p,
            reorder=self.model.reorder,
        )
        written = list(self.tokens)
        shown = self.model.tokeniser.text_of(written)
        for number in numbers:
            if number == END_NUMBER:
                return
            written.append(self.model.words.tokens[number])
            text = self.model.tokeniser.text_of(written)
            yield text[len(shown) :]
            shown = text

    def _text(self, numbers: Sequence[int]) -> str:
        words = self.model.words.tokens_of(n for n in numbers if n != END_NUMBER)
        return self.model.tokeniser.text_of([*self.tokens, *words])
