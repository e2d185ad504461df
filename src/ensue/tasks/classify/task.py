"""The class of a sequence, or all of its labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from ensue.metrics.table import CLASS_METRICS
from ensue.tasks.baselines.mixture import FEW_TEXTS, fitted_mixture
from ensue.tasks.blocks.embeddings import Embed
from ensue.tasks.blocks.encoders import ENCODERS, encoder_of
from ensue.tasks.blocks.heads import BernoulliHead, CategoricalHead, balanced
from ensue.tasks.blocks.pooled_network import NgramScores, PooledNetwork
from ensue.tasks.blocks.pooling import Pooling
from ensue.tasks.classify.averaging import ClassAverages, class_scores
from ensue.tasks.classify.evaluation import evaluated
from ensue.tasks.classify.explain import ExplainClass, run_network
from ensue.tasks.classify.exported import exported
from ensue.tasks.classify.learned import LearnedClasses, class_indicators
from ensue.tasks.classify.options import OPTIONS
from ensue.tasks.classify.scoring import (
    ClassifierModel,
    columns_of,
    linear_scores,
    mixed_in,
    network_scores,
    probabilities_of,
)
from ensue.tasks.classify.settings import ClassifierSettings
from ensue.tasks.classify.word_topics import WordTopics
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.explaining.attribution import Attributions
from ensue.tasks.explaining.encoder_heads import EncoderHeads
from ensue.tasks.explaining.heads import HeadMaps
from ensue.tasks.exported import Exported, Rounding
from ensue.tasks.given import check_words
from ensue.tasks.model import Model
from ensue.tasks.options import EXPLAIN
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.labels import labels_line
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.recipe import text_recipe
from ensue.tasks.rows.recognise import RowRoles, as_guess, number_wanted, recognised, roles_of
from ensue.tasks.rows.source import ColumnScores, SequenceSource
from ensue.tasks.rows.task import RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Space
from ensue.tasks.search.texts import DROPPED_OUT, LEVEL, MIN_COUNT
from ensue.tasks.targets.answers import Classified
from ensue.tasks.targets.decision import Decision
from ensue.tasks.task import NOTHING, Asked, Packed, Recipe
from ensue.tasks.transfer.rows import RowTransfers


class Classify(RowTask[ClassifierSettings, LearnedClasses]):
    """The class of a text, of tokens, or of a sequence of vectors."""

    name = "classify"
    settings = ClassifierSettings
    text_defaults: ClassVar[Mapping[str, Any]] = {"max_length": 20_000, "level": "auto"}
    train_defaults: ClassVar[Mapping[str, Any]] = {"patience": 3}
    metrics = CLASS_METRICS
    options = OPTIONS
    ranges: ClassVar[Space] = {"text.level": LEVEL, "text.min_count": MIN_COUNT}
    favourites = (DROPPED_OUT,)
    columns: ClassVar[Mapping[str, str]] = {**RowTask.columns, "columns": "data.columns"}
    estimators = ("SequenceClassifier",)
    classes = True
    adapts = True
    explains = ExplainClass()
    heads = EncoderHeads(run_network)
    transfers = RowTransfers(pooled=True, goals=class_indicators)
    averages = ClassAverages()
    unlabelled = WordTopics()

    # ------------------------------------------------------------- recognised
    def recognise(self, sample: Sample) -> Guess | None:
        return recognised(
            sample,
            lambda own: not own.by_step and (own.several or not number_wanted(sample, own.label)),
            partial(self._guess, sample),
        )

    def infer(self, sample: Sample) -> Guess:
        return as_guess(roles_of(sample).readings, partial(self._guess, sample))

    def _guess(self, sample: Sample, roles: RowRoles) -> Guess:
        unit = sample.data.sequence or "row"
        why = f"several labels for each {unit}" if roles.several else f"one label for each {unit}"
        return Guess(why, roles.data, {"model": {"several": True}} if roles.several else {})

    # ------------------------------------------------------------- learned
    def fitted_settings(self, train: Part, model: ClassifierModel) -> Recipe:
        return text_recipe(train, model, mixed=not model.told["model"] & {"ngrams"})

    def learn(self, train: Part, validation: Part, model: ClassifierModel) -> LearnedClasses:
        return LearnedClasses.learn(train, validation, model.text, model.model, model.beginning)

    def remarks(self, train: Part, validation: Part, model: ClassifierModel) -> list[str]:
        most, lengths = model.text.max_length, train.inputs.lengths
        long = 0 if most is None else int((lengths > most).sum())
        if not long:
            return []
        row = int(lengths.argmax())
        return [
            f"{long:,} row{'s' * (long > 1)} longer than text.max_length = {most:,} steps: cut at "
            f"the {model.text.cut} (the longest, {train.names[row]}, has {lengths[row]:,})"
        ]

    def build(self, model: ClassifierModel) -> nn.Module:
        settings, learned = model.model, model.learned
        embed = Embed([learned.inputs.feature(settings)], settings.dropout_input)
        encoder = encoder_of(settings, embed.width)
        weights = None
        if settings.class_weights == "balanced":
            weights = balanced(torch.tensor(learned.labels.counts))
        head = (BernoulliHead if settings.several else CategoricalHead)(
            len(learned.labels), smoothing=settings.smoothing, class_weights=weights
        )
        return PooledNetwork(
            embed,
            encoder,
            Pooling(settings.pooling, encoder.output_size, encoder.final_size),
            head,
            ngrams=_side_scores(settings, learned),
            beside=None if learned.beside is None else learned.beside.network(),
            standardise=settings.standardise,
            dropout=settings.dropout_output,
            norm_weight=settings.norm_weight,
        )

    def source(self, train: Part, model: ClassifierModel, seed: int) -> SequenceSource:
        return SequenceSource.of(columns_of(train, model), train.names, model.model, seed)

    def validation(self, network: nn.Module, part: Part, model: ClassifierModel) -> ColumnScores:
        def score(columns: Columns) -> dict[str, float]:
            scores = [network_scores(network, columns, model)]
            linear = None if columns.ngrams is None else linear_scores(columns, model)
            return class_scores(probabilities_of(scores, linear, model), columns, model)

        return ColumnScores(score, columns_of(part, model))

    def calibrate(self, validation: Part, model: ClassifierModel) -> LearnedClasses:
        learned = model.learned
        if learned.held is None and (
            learned.mixture is None or model.model.ngram_share != "fitted"
        ):
            return learned
        columns = columns_of(validation, model)
        assert isinstance(columns.targets, np.ndarray)
        scores = [network_scores(network, columns, model) for network in model.networks]
        targets = torch.from_numpy(columns.targets)
        if learned.held is None:
            fitted = fitted_mixture(scores, linear_scores(columns, model), targets)
        else:
            fitted = fitted_mixture(scores, learned.held, targets, FEW_TEXTS)
        return replace(learned, mixture=fitted)

    # ------------------------------------------------------------- asked
    def answer_names(self, model: ClassifierModel) -> tuple[str, ...]:
        return ("labels" if model.model.several else "label", "probability")

    def decision_lines(self, asked: Asked, model: ClassifierModel) -> list[str]:
        return Decision.of(asked, model.learned.labels, model.model.several).lines()

    def is_label(self, text: str, model: ClassifierModel) -> bool:
        return text in model.learned.labels.tokens

    def answers(
        self, part: Part, model: ClassifierModel, asked: Asked = NOTHING
    ) -> list[Classified]:
        own = self.averages
        return own.answers(own.outputs(part, model), part, model, asked)

    def learned_from_validation(self, model: ClassifierModel) -> str:
        return "" if model.learned.text_linear is None else "the linear model"

    def evaluate(self, part: Part, model: ClassifierModel, asked: Asked = NOTHING) -> Evaluation:
        columns = columns_of(replace(part, labels=None), model)
        scores = [network_scores(network, columns, model) for network in model.networks]
        linear = mixed_in(part, columns, model)
        return evaluated(
            probabilities_of(scores, linear, model),
            part,
            model,
            asked,
            None if model.learned.mixture is None else probabilities_of(scores, None, model),
        )

    # ------------------------------------------------------------- kept, looked at
    def exported(self, model: ClassifierModel) -> Exported:
        return exported(model)

    def rounded(self, learned: LearnedClasses, rounding: Rounding) -> LearnedClasses:
        own = learned.text_linear
        if own is None:
            return learned
        return replace(learned, text_linear=replace(own, weights=rounding(own.weights.T).T))

    def pack(self, learned: LearnedClasses) -> Packed:
        return learned.pack()

    def unpack(self, saved: Saved, model: ClassifierModel) -> LearnedClasses:
        return LearnedClasses.unpack(saved, model.model)

    def describe(self, model: ClassifierModel) -> str:
        network = ENCODERS[model.model.encoder].describe(model.model)
        if not model.fitted or model.learned.mixture is None:
            return network
        ngrams = f"{model.model.ngrams}-grams" if model.model.ngrams else "a linear model"
        return f"{network}, together with {ngrams}: {model.learned.mixture}"

    def facts(self, model: ClassifierModel) -> list[str]:
        beside = model.learned.beside
        more = [] if beside is None else [beside.describe()]
        return [labels_line(model.learned.labels.tokens), *more]


TASK = Classify()


class Classifier(Model[ClassifierSettings, Part, LearnedClasses, Classified]):
    """The class of a text, of tokens, or of a sequence of vectors.

    >>> rows = [("a fine film", "good"), ("dull and long", "bad")] * 10
    >>> model = Classifier(model={"hidden_size": 8}, train={"epochs": 6, "rate": 0.05}).fit(rows)
    >>> model.predict(["a fine one"])[0].label
    'good'
    """

    task = TASK

    def explain(self, given: Any, **asked: Any) -> Attributions:
        """What the answer to one input rests on. asked: method ("occlusion", "gradient" or
        "integrated"), baseline, label."""
        check_words(TASK, asked, EXPLAIN)
        return TASK.explains.explain(self, given, asked)

    def attention(self, given: Any, layer: int | None = None) -> HeadMaps:
        """Where every head of a Transformer looks."""
        return TASK.heads.explain(self, given, {"layer": layer})

    def most_telling(self, label: str, count: int = 10) -> list[str]:
        """The n-grams that speak most for a class, by the linear model."""
        return self.learned.most_telling(label, count)


def _side_scores(settings: ClassifierSettings, learned: LearnedClasses) -> NgramScores | None:
    """The n-grams inside of the network; None where they answer beside it, or not at all."""
    if not settings.ngrams or settings.ngram_share or learned.linear is None:
        return None
    return NgramScores(
        len(learned.linear.ngrams),
        len(learned.labels),
        start=torch.from_numpy(learned.linear.weights),
        dropout=settings.ngram_dropout,
        l2=settings.ngram_l2,
    )
