"""A number from a text, from tokens, or from a sequence of vectors, with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from ensue.data.series import is_number
from ensue.metrics.table import NUMBER_METRICS
from ensue.tasks.baselines.mixture import fitted_numbers
from ensue.tasks.blocks.embeddings import Embed
from ensue.tasks.blocks.encoders import ENCODERS, encoder_of
from ensue.tasks.blocks.heads import TargetHead
from ensue.tasks.blocks.pooled_network import PooledNetwork
from ensue.tasks.blocks.pooling import Pooling
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.explaining.attribution import Attributions
from ensue.tasks.explaining.encoder_heads import EncoderHeads
from ensue.tasks.explaining.heads import HeadMaps
from ensue.tasks.exported import Exported, Rounding
from ensue.tasks.given import check_words
from ensue.tasks.model import Model
from ensue.tasks.options import EXPLAIN
from ensue.tasks.regress.averaging import NumberAverages
from ensue.tasks.regress.explain import ExplainNumber, run_network
from ensue.tasks.regress.exported import exported
from ensue.tasks.regress.learned import LearnedNumber
from ensue.tasks.regress.options import OPTIONS
from ensue.tasks.regress.outputs import RegressorModel, mixed_outputs, network_outputs
from ensue.tasks.regress.settings import RegressorSettings
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.recipe import text_recipe
from ensue.tasks.rows.recognise import (
    RowRoles,
    as_guess,
    doubtful_number,
    number_wanted,
    recognised,
    roles_of,
)
from ensue.tasks.rows.shown import shown_of
from ensue.tasks.rows.source import ColumnScores, SequenceSource
from ensue.tasks.rows.task import RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Space
from ensue.tasks.search.texts import DROPPED_OUT, LEVEL, MIN_COUNT
from ensue.tasks.targets.answers import Estimated
from ensue.tasks.targets.numbers import label_values
from ensue.tasks.targets.target import TargetOutputs
from ensue.tasks.task import NOTHING, Asked, Packed, Recipe
from ensue.tasks.transfer.rows import RowTransfers


class Regress(RowTask[RegressorSettings, LearnedNumber]):
    """A number from a text or a sequence of vectors, with its interval."""

    name = "regress"
    settings = RegressorSettings
    text_defaults: ClassVar[Mapping[str, Any]] = {"max_length": 20_000, "level": "auto"}
    train_defaults: ClassVar[Mapping[str, Any]] = {"epochs": 20, "patience": 4}
    metrics = NUMBER_METRICS
    options = OPTIONS
    ranges: ClassVar[Space] = {"text.level": LEVEL, "text.min_count": MIN_COUNT}
    favourites = (DROPPED_OUT,)
    columns: ClassVar[Mapping[str, str]] = {**RowTask.columns, "columns": "data.columns"}
    estimators = ("SequenceRegressor",)
    new_labels = True
    adapts = True
    explains = ExplainNumber()
    heads = EncoderHeads(run_network)
    transfers = RowTransfers(
        pooled=True, goals=lambda train, model: label_values(train)[:, np.newaxis]
    )
    averages = NumberAverages()

    # ------------------------------------------------------------- recognised
    def recognise(self, sample: Sample) -> Guess | None:
        return recognised(
            sample,
            lambda own: (
                not own.by_step
                and not own.several
                and (number_wanted(sample, own.label) or doubtful_number(sample, own))
            ),
            self._guess,
        )

    def infer(self, sample: Sample) -> Guess:
        roles = roles_of(sample)
        numbers = [own for own in roles.readings if sample.numeric(own.label)]
        return as_guess(numbers or roles.readings, self._guess)

    def _guess(self, roles: RowRoles) -> Guess:
        return Guess(f"{roles.label} is a number to predict", roles.data)

    # ------------------------------------------------------------- learned
    def fitted_settings(self, train: Part, model: RegressorModel) -> Recipe:
        return text_recipe(train, model, mixed=model.model.distribution == "gaussian")

    def learn(self, train: Part, validation: Part, model: RegressorModel) -> LearnedNumber:
        return LearnedNumber.learn(train, validation, model.text, model.model, model.beginning)

    def build(self, model: RegressorModel) -> nn.Module:
        settings, learned = model.model, model.learned
        embed = Embed([learned.inputs.feature(settings)], settings.dropout_input)
        encoder = encoder_of(settings, embed.width)
        return PooledNetwork(
            embed,
            encoder,
            Pooling(settings.pooling, encoder.output_size, encoder.final_size),
            TargetHead(learned.target.width, learned.target.cost),
            beside=None if learned.beside is None else learned.beside.network(),
            standardise=settings.standardise,
            dropout=settings.dropout_output,
            norm_weight=settings.norm_weight,
        )

    def source(self, train: Part, model: RegressorModel, seed: int) -> SequenceSource:
        columns = model.learned.columns(train, model.text)
        return SequenceSource.of(columns, train.names, model.model, seed)

    def validation(self, network: nn.Module, part: Part, model: RegressorModel) -> ColumnScores:
        def score(columns: Columns) -> dict[str, float]:
            z = network_outputs(network, columns, model)
            y = torch.as_tensor(columns.targets)
            return model.learned.target.score(z, y, model.train.watch)

        return ColumnScores(score, model.learned.columns(part, model.text))

    def calibrate(self, validation: Part, model: RegressorModel) -> LearnedNumber:
        learned = model.learned
        if learned.held is None:
            return learned
        columns = learned.columns(validation, model.text)
        outputs = [network_outputs(network, columns, model) for network in model.networks]
        fitted = fitted_numbers(outputs, learned.held, torch.as_tensor(columns.targets))
        return replace(learned, mixture=fitted)

    # ------------------------------------------------------------- asked
    def answer_names(self, model: RegressorModel) -> tuple[str, ...]:
        return model.learned.target.answer_names

    def is_label(self, text: str, model: RegressorModel) -> bool:
        return is_number(text)

    def answers(self, part: Part, model: RegressorModel, asked: Asked = NOTHING) -> list[Estimated]:
        if not len(part):
            return []
        own = self.averages
        return own.answers(own.outputs(part, model), part, model, asked)

    def learned_from_validation(self, model: RegressorModel) -> str:
        return "" if model.learned.text_linear is None else "the linear model"

    def evaluate(self, part: Part, model: RegressorModel, asked: Asked = NOTHING) -> Evaluation:
        columns = model.learned.columns(part, model.text)
        outputs = [network_outputs(network, columns, model) for network in model.networks]
        baselines = model.learned.baselines(part)
        mixed = mixed_outputs(outputs, baselines, model)
        if model.learned.mixture is not None:
            alone = torch.stack([z[:, :1] for z in outputs]).mean(0)
            baselines["network alone"] = alone
        given = TargetOutputs(mixed, baselines, part, shown_of(part), model.train.seed)
        return model.learned.target.evaluate(given)

    # ------------------------------------------------------------- kept, looked at
    def exported(self, model: RegressorModel) -> Exported:
        return exported(model)

    def rounded(self, learned: LearnedNumber, rounding: Rounding) -> LearnedNumber:
        own = learned.text_linear
        if own is None:
            return learned
        return replace(learned, text_linear=replace(own, weights=rounding(own.weights.T).T))

    def pack(self, learned: LearnedNumber) -> Packed:
        return learned.pack()

    def unpack(self, saved: Saved, model: RegressorModel) -> LearnedNumber:
        return LearnedNumber.unpack(saved, model.model)

    def describe(self, model: RegressorModel) -> str:
        network = ENCODERS[model.model.encoder].describe(model.model)
        if not model.fitted or model.learned.mixture is None:
            return network
        return f"{network}, together with a linear model: {model.learned.mixture}"

    def facts(self, model: RegressorModel) -> list[str]:
        beside = model.learned.beside
        return [model.learned.target.describe(), *([] if beside is None else [beside.describe()])]


TASK = Regress()


class Regressor(Model[RegressorSettings, Part, LearnedNumber, Estimated]):
    """A number from a text, from tokens, or from a sequence of vectors, with its interval.

    >>> rows = [("a fine film", 8.5), ("dull and long", 3.0)] * 10
    >>> model = Regressor(model={"hidden_size": 8}, train={"epochs": 6, "rate": 0.05}).fit(rows)
    >>> fine, dull = model.predict(["a fine one", "dull"])
    >>> fine.value > dull.value
    True
    """

    task = TASK

    def explain(self, given: Any, **asked: Any) -> Attributions:
        """What the answer to one input rests on. asked: method ("occlusion", "gradient" or
        "integrated"), baseline."""
        check_words(TASK, asked, EXPLAIN)
        return TASK.explains.explain(self, given, asked)

    def attention(self, given: Any, layer: int | None = None) -> HeadMaps:
        """Where every head of a Transformer looks."""
        return TASK.heads.explain(self, given, {"layer": layer})
