"""The class of a sequence, or all of its labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ensue.metrics import classes as metrics
from ensue.metrics.answers import ClassAnswers
from ensue.metrics.table import CLASS_METRICS, further_scores, scores_of
from ensue.tasks.baselines.mixture import fitted_mixture
from ensue.tasks.blocks.embeddings import Embed
from ensue.tasks.blocks.encoders import ENCODERS, encoder_of
from ensue.tasks.blocks.heads import BernoulliHead, CategoricalHead, balanced
from ensue.tasks.blocks.pooled_network import NgramScores, PooledNetwork
from ensue.tasks.blocks.pooling import Pooling
from ensue.tasks.classify.explain import ExplainClass, run_network
from ensue.tasks.classify.exported import exported
from ensue.tasks.classify.learned import LearnedClasses, class_targets
from ensue.tasks.classify.options import OPTIONS
from ensue.tasks.classify.scoring import (
    ClassifierModel,
    Floats,
    columns_of,
    decided_of,
    linear_scores,
    mixed_in,
    network_scores,
    probabilities_of,
)
from ensue.tasks.classify.settings import ClassifierSettings
from ensue.tasks.evaluation.bootstrap import RowSums, intervals
from ensue.tasks.evaluation.mistakes import (
    class_rows,
    known_answers,
    log_loss_of_known,
    surest_mistaken_sets,
    surest_mistakes,
)
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.explaining.attribution import Attributions
from ensue.tasks.explaining.encoder_heads import EncoderHeads
from ensue.tasks.explaining.heads import HeadMaps
from ensue.tasks.exported import Exported, Rounding
from ensue.tasks.given import check_words
from ensue.tasks.model import Model
from ensue.tasks.options import EXPLAIN
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.labels import labels_line, unknown_rows, with_unknown
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.recipe import text_recipe
from ensue.tasks.rows.recognise import RowRoles, as_guess, number_wanted, recognised, roles_of
from ensue.tasks.rows.shown import shown_of
from ensue.tasks.rows.source import ColumnScores, SequenceSource
from ensue.tasks.rows.task import RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Space
from ensue.tasks.search.texts import LEVEL, MIN_COUNT
from ensue.tasks.targets.answers import Classified
from ensue.tasks.targets.classes import THRESHOLD, class_answers, several_answers
from ensue.tasks.targets.decision import Decision
from ensue.tasks.task import NOTHING, Asked, Packed, Recipe
from ensue.tasks.transfer.rows import RowTransfers

T = TypeVar("T", np.int64, np.float64)


class Classify(RowTask[ClassifierSettings, LearnedClasses]):
    """The class of a text, of tokens, or of a sequence of vectors."""

    name = "classify"
    settings = ClassifierSettings
    text_defaults: ClassVar[Mapping[str, Any]] = {"max_length": 20_000, "level": "auto"}
    train_defaults: ClassVar[Mapping[str, Any]] = {"patience": 3}
    metrics = CLASS_METRICS
    options = OPTIONS
    ranges: ClassVar[Space] = {"text.level": LEVEL, "text.min_count": MIN_COUNT}
    columns: ClassVar[Mapping[str, str]] = {**RowTask.columns, "columns": "data.columns"}
    estimators = ("SequenceClassifier",)
    classes = True
    adapts = True
    explains = ExplainClass()
    heads = EncoderHeads(run_network)
    transfers = RowTransfers(pooled=True)

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
            return self._scores(probabilities_of(scores, linear, model), columns, model)

        return ColumnScores(score, columns_of(part, model))

    def _scores(
        self, probabilities: Floats, columns: Columns, model: ClassifierModel
    ) -> dict[str, float]:
        assert isinstance(columns.targets, np.ndarray)
        decided = decided_of(probabilities, model)
        answers = ClassAnswers(columns.targets, decided, probabilities)
        return scores_of(self.metrics, answers, model.train.watch)

    def calibrate(self, validation: Part, model: ClassifierModel) -> LearnedClasses:
        learned = model.learned
        if learned.held is None and (
            learned.mixture is None or model.model.ngram_share != "fitted"
        ):
            return learned
        columns = columns_of(validation, model)
        assert isinstance(columns.targets, np.ndarray)
        scores = [network_scores(network, columns, model) for network in model.networks]
        linear = linear_scores(columns, model) if learned.held is None else learned.held
        fitted = fitted_mixture(scores, linear, torch.from_numpy(columns.targets))
        return replace(learned, mixture=fitted)

    @torch.no_grad()
    def answer_scores(self, validation: Part, model: ClassifierModel) -> dict[str, float]:
        """By scores of the linear model for rows that it had not learned from then."""
        if model.learned.held is None:
            return {}
        columns = columns_of(validation, model)
        scores = [network_scores(network, columns, model) for network in model.networks]
        return self._scores(probabilities_of(scores, model.learned.held, model), columns, model)

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
        columns = columns_of(part, model)
        scores = [network_scores(network, columns, model) for network in model.networks]
        probabilities = probabilities_of(scores, mixed_in(part, columns, model), model)
        decision = Decision.of(asked, model.learned.labels, model.model.several)
        if model.model.several:
            return several_answers(probabilities, decision)
        return class_answers(probabilities, decided_of(probabilities, model), decision)

    def learned_from_validation(self, model: ClassifierModel) -> str:
        return "" if model.learned.text_linear is None else "the linear model"

    def evaluate(self, part: Part, model: ClassifierModel, asked: Asked = NOTHING) -> Evaluation:
        learned, seed = model.learned, model.train.seed
        names = with_unknown(part, learned.labels)
        gold = class_targets(part, names, model.model.several)
        columns = columns_of(replace(part, labels=None), model)
        scores = [network_scores(network, columns, model) for network in model.networks]
        linear = mixed_in(part, columns, model)
        probabilities = probabilities_of(scores, linear, model)
        decision = Decision.of(asked, learned.labels, model.model.several)
        if model.model.several:
            guess = _among(decision.marks(probabilities, THRESHOLD), len(names))
        else:
            guess = decision.classes(probabilities, decided_of(probabilities, model))
        counts = metrics.row_counts(gold, guess, len(names))
        right = (gold == guess) if gold.ndim == 1 else (gold == guess).all(1)
        pairs = np.stack([right, np.ones(len(right))], 1)
        shown = shown_of(part)
        if gold.ndim == 1:
            others = log_loss_of_known(gold, probabilities)
            others["calibration error"] = metrics.calibration_error(gold, probabilities)
            others |= decision.scores(right, decision.answered(probabilities, guess))
            worst = surest_mistakes(gold, guess, probabilities, names, shown)
            confusion = metrics.confusion(gold, guess, len(names)).tolist()
        else:
            others = {"log loss": metrics.log_loss(gold[:, : len(learned.labels)], probabilities)}
            every = _among(probabilities, len(names))
            worst = surest_mistaken_sets(gold, guess, every, names, shown)
            confusion = []
        sums = {"accuracy": RowSums("ratio", pairs), "macro_f1": RowSums("macro_f1", counts)}
        others |= further_scores(self.metrics, known_answers(gold, guess, probabilities), sums)
        baselines = _baselines(part, model, gold)
        if learned.mixture is not None:
            alone = decided_of(probabilities_of(scores, None, model), model)
            baselines["network alone"] = metrics.accuracy(gold, _among(alone, len(names)))
        return Evaluation(
            rows=len(part),
            steps=len(part),
            scores=intervals(sums, seed),
            others=others,
            baselines=baselines,
            classes=class_rows(names, counts.sum(0)),
            confusion=confusion,
            worst=worst,
            unknown=len(unknown_rows(part, learned.labels.tokens)),
            notes=decision.lines(),
            sums=sums,
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


# --- of networks, answers and baselines ----------------------------------------------------------


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


def _baselines(part: Part, model: ClassifierModel, gold: NDArray[np.int64]) -> dict[str, float]:
    learned = model.learned
    most = int(np.argmax(learned.labels.counts))
    if gold.ndim == 1:
        found = {"majority class": metrics.accuracy(gold, np.full_like(gold, most))}
    else:
        found = {"no label": metrics.accuracy(gold, np.zeros_like(gold))}
    linear: Floats | None = None
    if learned.text_linear is not None:
        z = learned.text_scores(part)
        linear = (z.sigmoid() if model.model.several else z.softmax(1)).numpy()
    elif learned.linear is not None:
        linear = learned.linear.probabilities(learned.ngram_inputs(part)).astype(np.float64)
    if linear is not None:
        guess = _among(decided_of(linear, model), gold.shape[-1])
        found["linear n-grams"] = metrics.accuracy(gold, guess)
    return found


def _among(guess: NDArray[T], labels: int) -> NDArray[T]:
    """Of several labels (rows, known), zeros for those that are not known; classes as they are."""
    if guess.ndim == 1:
        return guess
    return np.pad(guess, ((0, 0), (0, labels - guess.shape[1])))
