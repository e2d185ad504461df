"""`Seq2Seq`: all tasks with texts as answers, for any kind of source."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import torch
from torch import nn

from ensue.data.fingerprint import fingerprint
from ensue.data.ragged import Ragged
from ensue.decoding import Hypothesis
from ensue.errors import OptionError
from ensue.metrics.classes import TextAnswers
from ensue.metrics.table import TEXT_METRICS, scores_of
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.any_model import AnyModel
from ensue.tasks.codec import Packed
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.exported import Exported
from ensue.tasks.rows.source import SequenceSource, in_batches
from ensue.tasks.rows.task import RowTask
from ensue.tasks.saved import Saved
from ensue.tasks.seq2seq.answer import Alternative, Best, Words
from ensue.tasks.seq2seq.evaluation import Compared, PairEvaluation, Scoring, evaluate_pairs
from ensue.tasks.seq2seq.exported import exported
from ensue.tasks.seq2seq.pairs import (
    PairColumns,
    PairNetwork,
    Taught,
    pair_networks,
)
from ensue.tasks.seq2seq.search import Search, searched
from ensue.tasks.seq2seq.source import LearnedPairs, SourceReader
from ensue.tasks.seq2seq.target import targets_of
from ensue.tasks.task import AnswerShape, S

TOKENS, ROWS = 8_000, 256  # of a batch
FEW = 4  # rows of a trial evaluation


class References(NamedTuple):
    """Indices of sources to answer, and their reference texts."""

    sources: Ragged
    texts: list[str]

    def first(self, count: int) -> References:
        return References(self.sources.take(np.arange(len(self.texts))[:count]), self.texts[:count])


class PairValidation:
    """A validation: a score function over all columns and references, or only over a few long
    rows."""

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
        return self._score(self._columns.take(longest), self._references.first(FEW))


@torch.no_grad()
def mean_cost(network: PairNetwork, columns: PairColumns) -> float:
    """The mean −log p of a target word, including the end."""
    batches = in_batches(columns, network, TOKENS, ROWS)
    total = sum(float(network.costs(batch).double().sum()) for _, batch in batches)
    return total / float(columns.targets.sum())


class Seq2Seq(RowTask[S, LearnedPairs]):
    """p(text | source) = Π p(word | words before it, source), including the end.

    reader_class, learned_class: the reader of sources, and the learned part of both sides; answer:
    the class of its answers; where_words: the description of attention in messages."""

    metrics = TEXT_METRICS
    evaluation_class = PairEvaluation
    reader_class: ClassVar[type[SourceReader[Any]]]
    learned_class: type[LearnedPairs]
    answer: ClassVar[type[Words]]
    where_words: ClassVar[str]

    # ------------------------------------------------------------- learned
    def learn(self, train: Any, validation: Any, model: AnyModel) -> LearnedPairs:
        return self.learned_class.learn(self.reader_class(model).short(train), model)

    def pair_columns(self, part: Any, model: AnyModel) -> PairColumns:
        """A part, encoded for the networks."""
        learned = model.learned
        return PairColumns(learned.source.encode(part), learned.target.numbered(part))

    def source(self, train: Any, model: AnyModel, seed: int) -> SequenceSource:
        short = self.reader_class(model).short(train)
        columns = self.pair_columns(short, model)
        budget, rows = model.settings.budget(int(columns.lengths.max()))
        return SequenceSource(columns, short.names, seed=seed, budget=budget, most_rows=rows)

    def validation(self, network: nn.Module, part: Any, model: AnyModel) -> PairValidation:
        settings, target = model.settings, model.learned.target
        pairs = cast(Taught, network).pairs
        width = settings.beam if settings.validation_search == "beam" else 1
        how = replace(self.search(model), width=width)

        def score(columns: PairColumns, references: References) -> Mapping[str, float]:
            texts: list[str] = []
            if references.texts:
                best = searched([pairs], references.sources, how)
                texts = [target.text_of(hypotheses[0].content) for hypotheses in best]
            answers = TextAnswers(
                texts,
                references.texts,
                settings.bleu_tokenize,
                settings.bleu_lowercase,
                mean_cost(pairs, columns),
            )
            return scores_of(self.metrics, answers, model.train.watch)

        columns = self.pair_columns(part, model)
        return PairValidation(score, columns, self._references(part, columns, model))

    def _references(self, part: Any, columns: PairColumns, model: AnyModel) -> References:
        """Rows that every validation answers, spread over the part."""
        count = min(model.settings.validation_rows, len(part))
        rows = np.linspace(0, len(part) - 1, count).astype(np.int64)
        texts = model.learned.target.texts(targets_of(part).take(rows), part.numbers)
        return References(columns.source.take(rows), texts)

    # ------------------------------------------------------------- asked
    def search(self, model: AnyModel, options: RequestOptions = NOTHING) -> Search:
        """The search of the settings, changed by options: beam, n_best, alignment. An n_best above
        the beam width of the settings widens the beam."""
        settings = model.settings
        for flag, key in (("--beam", "beam"), ("--nbest", "n_best")):
            if (number := options.get(key)) is not None and number < 0:
                raise OptionError(f"{flag}: expected a number ≥ 1, got {number}")
        n_best = options.get("n_best") or 1
        width = options.get("beam") or max(settings.beam, n_best)
        if n_best > width:
            raise OptionError(f"--nbest: expected at most --beam, {width}, got {n_best}")
        factor, extra = settings.longest_answer
        return Search(
            width,
            n_best,
            settings.length_penalty,
            settings.alpha,
            factor,
            extra,
            bool(options.get("alignment")),
        )

    def answer_shape(self, model: AnyModel) -> AnswerShape:
        return AnswerShape(("text", "score"))

    def answers(self, part: Any, model: AnyModel, options: RequestOptions = NOTHING) -> list[Any]:
        how = self.search(model, options)
        if how.aligned:
            self.must_attend(model)
        if not len(part):
            return []
        source = model.learned.source
        ranked = searched(pair_networks(model), source.encode(part), how)
        rows = zip(ranked, source.positions(part), strict=True)
        return [self.answer.of(_best(some, names, how, model)) for some, names in rows]

    def must_attend(self, model: AnyModel) -> None:
        """Raises an error unless the decoder attends to the source."""
        if not model.settings.attends:
            other = ", or with model.family=transformer" if self.families else ""
            raise OptionError(
                f"this model has no attention to show {self.where_words}; train one with "
                f"--set model.attention=additive (dot, general, concat){other}"
            )

    # ------------------------------------------------------------- evaluated
    def evaluate(self, part: Any, model: AnyModel, options: RequestOptions = NOTHING) -> Evaluation:
        rows = self._compared(part, self.answers(part, model, options), model)
        settings, learned = model.settings, model.learned
        baselines: dict[str, Sequence[str]] = {}
        if learned.source.copied:
            baselines["copied source"] = rows.sources
        frequent = [learned.target.frequent_text] * len(rows.expected)
        baselines[f"frequent {self.reader_class.text}"] = frequent
        train = model.train
        scoring = Scoring(
            settings.bleu_tokenize, settings.bleu_lowercase, train.watch == "exact", train.seed
        )
        return evaluate_pairs(rows, baselines, scoring, getattr(settings, "attributes", None))

    def _compared(self, part: Any, answers: Sequence[Words], model: AnyModel) -> Compared:
        numbers, targets = dict(part.numbers.labels), targets_of(part)
        tokens = [
            [numbers.setdefault(token, len(numbers)) for token in answer.tokens]
            for answer in answers
        ]
        sources, lengths = model.learned.source.source_texts(part)
        return Compared(
            part.names,
            sources,
            model.learned.target.texts(targets, part.numbers),
            [answer.text for answer in answers],
            targets,
            Ragged.of(tokens, np.int32),
            lengths,
            [math.exp(answer.score) for answer in answers],
        )

    # ------------------------------------------------------------- kept, looked at
    def pack(self, learned: LearnedPairs) -> Packed:
        return learned.pack()

    def unpack(self, saved: Saved, model: AnyModel) -> LearnedPairs:
        return self.learned_class.unpack(saved, model.settings)

    def exported(self, model: AnyModel) -> Exported:
        return exported(self.name, model, self.search(model))

    def facts(self, model: AnyModel) -> list[str]:
        learned = model.learned
        facts: list[str] = learned.source.facts(learned.target, pair_networks(model))
        return facts


def _best(
    ranked: Sequence[Hypothesis], source: tuple[str, ...], how: Search, model: AnyModel
) -> Best:
    """The answer from the hypotheses of a row, best first. source: names of its positions."""
    best, target = ranked[0], model.learned.target
    several = tuple(Alternative(target.text_of(one.content), one.log_probability) for one in ranked)
    weights = None
    if how.aligned:
        count = len(source) or None  # unnamed positions have no padding
        rows = [] if best.watched is None else best.watched[:, :count].tolist()
        weights = tuple(tuple(row) for row in rows[: len(best.content)])
    return Best(
        several[0].text,
        best.log_probability,
        tuple(target.words.tokens_of(best.content)),
        several if how.n_best > 1 else (),
        source,
        weights,
    )
