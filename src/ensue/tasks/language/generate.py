"""What a language model writes: texts that go on from a prompt, and the words to choose from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from ensue.data.vocabulary import END_NUMBER
from ensue.decoding import BeamSearch, Sampling, beam, sample, stream
from ensue.errors import OptionError
from ensue.tasks.generation import Choice, Suggestion
from ensue.tasks.language.complete_word import spelling_of, spelt_words
from ensue.tasks.language.families import AnyLanguageModel, ensemble_of
from ensue.tasks.language.learned import NEVER

LINE_END = "\n"


class Writer:
    """A model that has read a prompt. Padding, unknown words and starts are never written: their
    share goes to the others."""

    def __init__(self, model: AnyLanguageModel, prompt: str, *, whole: bool = True) -> None:
        """whole: the prompt ends with a whole word; else its last one is only begun."""
        if model.model.direction == "backward":
            raise OptionError(
                "a backward language model reads from the right and cannot go on from a prompt: "
                "expected model.direction = forward"
            )
        self._ensemble = ensemble_of(model)
        self._words, self._tokeniser = model.learned.words, model.learned.tokeniser
        self._spelling = spelling_of(self._tokeniser.name)
        if self._spelling and not whole:
            before = prompt.rfind(" ") + 1
            self._read, self._partial = self._tokeniser(prompt[:before]), prompt[before:]
        else:
            self._read = self._tokeniser(prompt)
            self._partial = "" if whole or not self._read else self._read.pop()
        ids = [self._ensemble.first, *self._words.ids(self._read)]
        self._state: Any = self._ensemble.begin(1)
        for number in ids[:-1]:
            _, self._state = self._ensemble.step(torch.tensor([number]), self._state)
        self._last = torch.tensor([ids[-1]])

    @property
    def prompt(self) -> str:
        """As the model has read it, without a word that is only begun."""
        return self._tokeniser.text_of(self._read)

    def _step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        logs, state = self._ensemble.step(tokens, state)
        logs = logs.clone()
        logs[:, NEVER] = float("-inf")
        return logs.log_softmax(1), state

    def _step_on(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """After the end of a line, the next one begins."""
        begun = torch.where(tokens == END_NUMBER, self._ensemble.first, tokens)
        return self._step(begun, state)

    def after(self) -> tuple[Tensor, Any]:
        """log p (1, tokens) of what comes after the prompt, and the state there."""
        return self._step(self._last, self._state)

    def suggestions(self, count: int) -> list[Suggestion]:
        """The most probable words to come; those that go on from a word begun, if one is."""
        if self._spelling:
            found = spelt_words(
                self._step,
                self._last,
                self._state,
                self._ensemble.reorder,
                self._spelling.letters(self._words.tokens),
                self._partial,
                count,
            )
            return [Suggestion(word, math.exp(log)) for word, log in found]
        row = self.after()[0][0].clone()
        row[END_NUMBER] = float("-inf")
        if self._partial:
            tokens = enumerate(self._words.tokens)
            fits = [k for k, word in tokens if word.startswith(self._partial)]
            kept = torch.full_like(row, float("-inf"))
            kept[fits] = row[fits]
            row = kept
        best = row.topk(min(count, len(row)))
        pairs = zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
        return [Suggestion(self._words.tokens[k], p) for k, p in pairs if p > 0]

    def texts(self, choice: Choice, count: int = 1) -> list[str]:
        """`count` texts that go on from the prompt, each up to its end."""
        if choice.width > 1:
            found = beam(
                self._step,
                self._last,
                self._state,
                BeamSearch(width=max(choice.width, count), n_best=count),
                end=END_NUMBER,
                most_steps=choice.most_tokens,
                reorder=self._ensemble.reorder,
            )[0]
        else:
            found = sample(
                self._step_on if choice.on else self._step,
                self._last.expand(count).contiguous(),
                self._ensemble.reorder(self._state, torch.zeros(count, dtype=torch.int64)),
                Sampling(
                    seed=choice.seed,
                    temperature=choice.temperature,
                    top_k=choice.top_k,
                    top_p=choice.top_p,
                ),
                end=None if choice.on else END_NUMBER,
                most_steps=choice.most_tokens,
                reorder=self._ensemble.reorder,
            )
        return [self._text(hypothesis.tokens) for hypothesis in found]

    def pieces(self, choice: Choice) -> Iterator[str]:
        """One text, as it is made: put together, the pieces are the text without its prompt."""
        if choice.width > 1:
            raise OptionError("stream: a beam knows its text at the end only; expected width 1")
        numbers = stream(
            self._step_on if choice.on else self._step,
            self._last,
            self._state,
            Sampling(
                seed=choice.seed,
                temperature=choice.temperature,
                top_k=choice.top_k,
                top_p=choice.top_p,
            ),
            end=None if choice.on else END_NUMBER,
            most_steps=choice.most_tokens,
            reorder=self._ensemble.reorder,
        )
        written = list(self._read)
        shown = self.prompt
        for number in numbers:
            if number == END_NUMBER:
                if not choice.on:
                    return
                yield LINE_END
                written, shown = [], ""
                continue
            written.append(self._words.tokens[number])
            text = self._tokeniser.text_of(written)
            yield text[len(shown) :]
            shown = text

    def _text(self, numbers: Sequence[int]) -> str:
        """A line for each end but one after which nothing came."""
        lines: list[list[str]] = [[*self._read]]
        for number in numbers[:-1] if numbers and numbers[-1] == END_NUMBER else numbers:
            if number == END_NUMBER:
                lines.append([])
            else:
                lines[-1].append(self._words.tokens[number])
        return LINE_END.join(map(self._tokeniser.text_of, lines))


class Writing:
    """The ability of language models to go on from a prompt."""

    def writer(self, model: AnyLanguageModel, prompt: str, *, whole: bool = True) -> Writer:
        return Writer(model, prompt, whole=whole)
