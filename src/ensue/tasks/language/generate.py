"""Text generation: texts that continue a prompt, and suggestions for the next word."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ensue.data.tokenise import WORD
from ensue.data.vocabulary import END, END_NUMBER, PAD, START, UNKNOWN
from ensue.decoding import BeamSearch, Sampling, beam, sample, stream
from ensue.errors import OptionError
from ensue.tasks.abilities import Choice, Suggestion
from ensue.tasks.language.families import AnyLanguageModel, ensemble_of
from ensue.tasks.language.learned import NEVER

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]
Reorder = Callable[[Any, Tensor], Any]
WIDTH = 32  # number of words that are extended at a time
LONGEST = 24  # tokens of a word
WORTH_TELLING = 0.01  # relative to the probability of the first word


@dataclass(frozen=True)
class Letters:
    """The letters of every token, whether a word may begin with the token, and whether the token
    may continue a word. A token that cannot continue a word ends the word before it."""

    texts: Sequence[str]
    begins: Tensor
    goes_on: Tensor


@dataclass(frozen=True)
class WordSpelling:
    """The spelling of words in tokens. mark: prefix of a token at the beginning of a word; "" if
    white space separates words."""

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
    """The spelling of words; None if each token is a word."""
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
    """The most probable words that begin with `partial`, and log p of each (of its tokens, and of
    the word's end after them). step: maps tokens (batch,) to log p (batch, tokens) of the next
    ones."""
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
        fitting = _fitting(total, texts, letters.texts, partial)
        if not fitting:
            break
        rows, tokens, bytes_of_words = zip(*fitting, strict=True)
        texts = [texts[row] + letters.texts[token] for row, token in zip(rows, tokens, strict=True)]
        scores = torch.tensor(bytes_of_words, dtype=torch.float64)
        last, state = torch.tensor(tokens), reorder(state, torch.tensor(rows))
        allowed = letters.goes_on
        best = sorted(ended.values(), reverse=True)[:count]
        if len(best) == count and best[-1] >= max(bytes_of_words):
            break
    words = sorted(ended.items(), key=lambda pair: (-pair[1], pair[0]))
    least = words[0][1] + math.log(WORTH_TELLING) if words else 0.0
    return [(word, score) for word, score in words[:count] if score >= least]


def _fitting(
    total: Tensor, texts: Sequence[str], added: Sequence[str], partial: str
) -> list[tuple[int, int, float]]:
    """(row, token, log p) of the most probable continuations that agree with the typed text."""
    fitting: list[tuple[int, int, float]] = []
    order = total.flatten().argsort(descending=True).tolist()
    for at in order:
        row, token = divmod(at, total.shape[1])
        score = float(total[row, token])
        if score == float("-inf") or len(fitting) == WIDTH:
            break
        text = texts[row] + added[token]
        if text.startswith(partial) or partial.startswith(text):
            fitting.append((row, token, score))
    return fitting


LINE_END = "\n"


class Writer:
    """A model that has read a prompt. Padding, unknown words and starts are never generated; the
    other tokens share their probability."""

    def __init__(self, model: AnyLanguageModel, prompt: str, *, whole: bool = True) -> None:
        """Reads the prompt. whole: the prompt ends with a complete word; else its last word is
        incomplete."""
        if model.settings.direction == "backward":
            raise OptionError(
                "a backward language model reads from the right and cannot continue a "
                "prompt: expected model.direction = forward"
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
        """The prompt as the model has read it, without an incomplete word."""
        return self._tokeniser.text_of(self._read)

    def _step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        logs, state = self._ensemble.step(tokens, state)
        logs = logs.clone()
        logs[:, NEVER] = float("-inf")
        return logs.log_softmax(1), state

    def _step_on(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """A step that begins the next line after the end of a line."""
        begun = torch.where(tokens == END_NUMBER, self._ensemble.first, tokens)
        return self._step(begun, state)

    def after(self) -> tuple[Tensor, Any]:
        """log p (1, tokens) of the token after the prompt, and the state."""
        return self._step(self._last, self._state)

    def suggestions(self, count: int) -> list[Suggestion]:
        """The most probable next words, or the completions of an incomplete word."""
        if self._spelling:
            words = spelt_words(
                self._step,
                self._last,
                self._state,
                self._ensemble.reorder,
                self._spelling.letters(self._words.tokens),
                self._partial,
                count,
            )
            return [Suggestion(word, math.exp(log)) for word, log in words]
        row = self.after()[0][0].clone()
        row[END_NUMBER] = float("-inf")
        if self._partial:
            tokens = enumerate(self._words.tokens)
            fits = [k for k, word in tokens if word.startswith(self._partial)]
            like = torch.full_like(row, float("-inf"))
            like[fits] = row[fits]
            row = like
        best = row.topk(min(count, len(row)))
        pairs = zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
        return [Suggestion(self._words.tokens[k], p) for k, p in pairs if p > 0]

    def texts(self, choice: Choice, count: int = 1) -> list[str]:
        """`count` texts that continue the prompt, each up to its end."""
        if choice.width > 1:
            hypotheses = beam(
                self._step,
                self._last,
                self._state,
                BeamSearch(width=max(choice.width, count), n_best=count),
                end=END_NUMBER,
                most_steps=choice.most_tokens,
                reorder=self._ensemble.reorder,
            )[0]
        else:
            hypotheses = sample(
                self._step_on if choice.on else self._step,
                self._last.expand(count).contiguous(),
                self._ensemble.reorder(self._state, torch.zeros(count, dtype=torch.int64)),
                _sampling(choice),
                end=None if choice.on else END_NUMBER,
                most_steps=choice.most_tokens,
                reorder=self._ensemble.reorder,
            )
        return [self._text(hypothesis.tokens) for hypothesis in hypotheses]

    def pieces(self, choice: Choice) -> Iterator[str]:
        """One text, piece by piece as it is generated, without its prompt."""
        if choice.width > 1:
            raise OptionError("stream: a beam knows its text at the end only; expected width 1")
        numbers = stream(
            self._step_on if choice.on else self._step,
            self._last,
            self._state,
            _sampling(choice),
            end=None if choice.on else END_NUMBER,
            most_steps=choice.most_tokens,
            reorder=self._ensemble.reorder,
        )
        written = list(self._read)
        prompt = self.prompt
        for number in numbers:
            if number == END_NUMBER:
                if not choice.on:
                    return
                yield LINE_END
                written, prompt = [], ""
                continue
            written.append(self._words.tokens[number])
            text = self._tokeniser.text_of(written)
            yield text[len(prompt) :]
            prompt = text

    def _text(self, numbers: Sequence[int]) -> str:
        """The text with a line break for each end token, except at the end."""
        lines: list[list[str]] = [[*self._read]]
        for number in numbers[:-1] if numbers and numbers[-1] == END_NUMBER else numbers:
            if number == END_NUMBER:
                lines.append([])
            else:
                lines[-1].append(self._words.tokens[number])
        return LINE_END.join(map(self._tokeniser.text_of, lines))


class Writing:
    """The ability of language models to continue a prompt."""

    def writer(self, model: AnyLanguageModel, prompt: str, *, whole: bool = True) -> Writer:
        return Writer(model, prompt, whole=whole)


def _sampling(choice: Choice) -> Sampling:
    return Sampling(
        seed=choice.seed,
        temperature=choice.temperature,
        top_k=choice.top_k,
        top_p=choice.top_p,
    )
