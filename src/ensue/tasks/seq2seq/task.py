"""`Seq2SeqTask`: what tasks share whose answers are the words of pair networks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ensue.data.fingerprint import fingerprint
from ensue.data.ragged import Ragged
from ensue.decoding import Hypothesis
from ensue.errors import OptionError
from ensue.metrics.classes import TextAnswers
from ensue.metrics.table import TEXT_METRICS, scores_of
from ensue.tasks.any_model import AnyModel
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.model import Model
from ensue.tasks.rows.part import LabelledPart
from ensue.tasks.seq2seq.answer import Alternative
from ensue.tasks.seq2seq.evaluation import Compared, PairEvaluation, Scoring
from ensue.tasks.seq2seq.network import PairNetwork
from ensue.tasks.seq2seq.search import Search, SearchEnsemble, searched
from ensue.tasks.seq2seq.source import PairColumns, Taught, in_batches
from ensue.tasks.seq2seq.target import LearnedTarget, targets_of
from ensue.tasks.settings import SearchSettings
from ensue.tasks.task import NOTHING, AnswerShape, Asked, Task

TOKENS, ROWS = 8_000, 256  # of a batch
FEW = 4  # rows of a trial evaluation


class References(NamedTuple):
    """Sources that are answered, by their numbers, and what they should become."""

    sources: Ragged
    texts: list[str]

    def first(self, count: int) -> References:
        return References(self.sources.take(np.arange(len(self.texts))[:count]), self.texts[:count])


class PairValidation:
    """A score function over all columns and references, or over a few long rows alone."""

    def __init__(
        self,
        score: Callable[[PairColumns, References], Mapping[str, float]],
        columns: PairColumns,
        references: References,
    ) -> None:
        self._score, self._columns, self._references = score, columns, references
        self.fingerprint = fingerprint(columns.arrays())

    def __call__(self) -> Mapping[str, float]:
        return self._score(self._columns, self._references)

    def sample(self) -> Mapping[str, float]:
        longest = np.argsort(self._columns.lengths)[-FEW:]
        return self._score(self._columns.taken(longest), self._references.first(FEW))


@torch.no_grad()
def mean_cost(network: PairNetwork, columns: PairColumns) -> float:
    """The mean −log p of a wanted word, the end counted."""
    batches = in_batches(columns, network, TOKENS, ROWS)
    total = sum(float(network.costs(batch).double().sum()) for _, batch in batches)
    return total / float(columns.wanted.sum())


class TargetPart(LabelledPart, Protocol):
    """Rows of which the label is a text: the tokens of the target."""

    def take(self, rows: NDArray[np.int64]) -> Self: ...


class LearnedPairing(Protocol):
    """What was learned from pairs."""

    @property
    def target(self) -> LearnedTarget: ...


class WordAnswer(Protocol):
    """score: log p of the tokens and the end."""

    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> tuple[str, ...]: ...
    @property
    def score(self) -> float: ...


S = TypeVar("S", bound=SearchSettings)
P = TypeVar("P", bound=TargetPart)
L = TypeVar("L", bound=LearnedPairing)


class Seq2SeqTask(Task[S, P, L]):
    """p(target | source) = Π p(word | words before it, source), the end included.

    no_attention: the error where a model without attention is asked where its words look."""

    metrics = TEXT_METRICS
    evaluation_class = PairEvaluation
    no_attention: ClassVar[str]

    # ------------------------------------------------------------- what a task says
    @abstractmethod
    def sources(self, part: P, model: Model[S, P, L]) -> Ragged:
        """The sources of a part as the networks take them."""

    @abstractmethod
    def longest(self, settings: S) -> tuple[float, int]:
        """(factor, extra): an answer has at most factor·(steps of its source) + extra tokens."""

    @abstractmethod
    def attends(self, settings: S) -> bool:
        """Whether the words look at the source."""

    @abstractmethod
    def answered(
        self, found: Sequence[list[Hypothesis]], part: P, how: Search, model: Model[S, P, L]
    ) -> list[Any]:
        """The hypotheses of each row, best first, as answers."""

    @abstractmethod
    def shown(self, part: P, model: Model[S, P, L]) -> tuple[list[str], NDArray[np.int64]]:
        """Of each row: its source as a text, and the length in tokens that scores are shown by."""

    @abstractmethod
    def evaluation(self, rows: Compared, model: Model[S, P, L]) -> PairEvaluation:
        """Scores of answers beside what was expected, with the task's baselines."""

    # ------------------------------------------------------------- learned
    def pair_columns(self, part: P, model: Model[S, P, L]) -> PairColumns:
        """A part as the networks see it."""
        return PairColumns(self.sources(part, model), model.learned.target.numbered(part))

    def validation(self, network: nn.Module, part: P, model: Model[S, P, L]) -> PairValidation:
        settings, target = model.model, model.learned.target
        pairs = cast(Taught, network).pairs
        width = settings.beam if settings.validation_search == "beam" else 1
        how = replace(self.search(model), width=width)

        def score(columns: PairColumns, references: References) -> Mapping[str, float]:
            found: list[str] = []
            if references.texts:
                best = searched([pairs], references.sources, how)
                found = [target.text_of(hypotheses[0].content) for hypotheses in best]
            answers = TextAnswers(
                found,
                references.texts,
                settings.bleu_tokenize,
                settings.bleu_lowercase,
                mean_cost(pairs, columns),
            )
            return scores_of(self.metrics, answers, model.train.watch)

        columns = self.pair_columns(part, model)
        return PairValidation(score, columns, self._references(part, columns, model))

    def _references(self, part: P, columns: PairColumns, model: Model[S, P, L]) -> References:
        """Rows that every validation answers, from all over the part."""
        count = min(model.model.validation_rows, len(part))
        rows = np.linspace(0, len(part) - 1, count).astype(np.int64)
        texts = model.learned.target.texts(targets_of(part).take(rows), part.numbers)
        return References(columns.source.take(rows), texts)

    # ------------------------------------------------------------- asked
    def search(self, model: Model[S, P, L], asked: Asked = NOTHING) -> Search:
        """As the settings say, but for what was asked: beam, n_best, alignment. More answers than
        the beam of the settings is wide widen it."""
        settings = model.model
        for flag, key in (("--beam", "beam"), ("--nbest", "n_best")):
            if (given := asked.get(key)) is not None and given < 0:
                raise OptionError(f"{flag}: expected a number ≥ 1, got {given}")
        n_best = asked.get("n_best") or 1
        width = asked.get("beam") or max(settings.beam, n_best)
        if n_best > width:
            raise OptionError(f"--nbest: expected at most --beam, {width}, got {n_best}")
        factor, extra = self.longest(settings)
        return Search(
            width,
            n_best,
            settings.length_penalty,
            settings.alpha,
            factor,
            extra,
            bool(asked.get("alignment")),
        )

    def answer_shape(self, model: Model[S, P, L]) -> AnswerShape:
        return AnswerShape(("text", "score"))

    def answers(self, part: P, model: Model[S, P, L], asked: Asked = NOTHING) -> list[Any]:
        how = self.search(model, asked)
        if how.aligned:
            self.must_attend(model)
        if not len(part):
            return []
        found = searched(pair_networks(model), self.sources(part, model), how)
        return self.answered(found, part, how, model)

    def must_attend(self, model: Model[S, P, L]) -> None:
        if not self.attends(model.model):
            raise OptionError(self.no_attention)

    def explained(
        self, sources: Ragged, model: Model[S, P, L]
    ) -> tuple[Hypothesis, tuple[float, ...]]:
        """The best answer to the one source, with where it looked, and the probability of each of
        its words."""
        self.must_attend(model)
        networks = pair_networks(model)
        best = searched(networks, sources, replace(self.search(model), aligned=True))[0][0]
        said = PairColumns(sources, Ragged.of([best.content], np.int32)).batch([0])
        logs = SearchEnsemble(networks).log_probabilities(said)[: len(best.tokens), 0]
        return best, tuple(math.exp(value) for value in logs.tolist())

    # ------------------------------------------------------------- evaluated
    def evaluate(self, part: P, model: Model[S, P, L], asked: Asked = NOTHING) -> Evaluation:
        answers = self.answers(part, model, asked)
        return self.evaluation(self._compared(part, answers, model), model)

    def _compared(self, part: P, answers: Sequence[WordAnswer], model: Model[S, P, L]) -> Compared:
        numbers, targets = dict(part.numbers.labels), targets_of(part)
        said = [
            [numbers.setdefault(token, len(numbers)) for token in answer.tokens]
            for answer in answers
        ]
        sources, lengths = self.shown(part, model)
        return Compared(
            part.names,
            sources,
            model.learned.target.texts(targets, part.numbers),
            [answer.text for answer in answers],
            targets,
            Ragged.of(said, np.int32),
            lengths,
            [math.exp(answer.score) for answer in answers],
        )


def pair_networks(model: AnyModel) -> list[PairNetwork]:
    return [cast(Taught, network).pairs for network in model.networks]


def alternatives(found: Sequence[Hypothesis], target: LearnedTarget) -> tuple[Alternative, ...]:
    """Hypotheses as texts with their log p."""
    return tuple(
        Alternative(target.text_of(hypothesis.content), hypothesis.log_probability)
        for hypothesis in found
    )


def scoring(model: Model[S, Any, Any]) -> Scoring:
    """How the texts of a model are scored."""
    settings, exact_first = model.model, model.train.watch == "exact"
    return Scoring(settings.bleu_tokenize, settings.bleu_lowercase, exact_first, model.train.seed)
