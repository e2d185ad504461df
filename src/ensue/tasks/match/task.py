"""Two texts or sequences, and what they are to each other: a class, or a score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ensue.data.fingerprint import fingerprint
from ensue.data.frames.origin import Origin
from ensue.data.options import require
from ensue.errors import DataError
from ensue.metrics.table import CLASS_METRICS, NUMBER_METRICS
from ensue.tasks.blocks.embeddings import Embed
from ensue.tasks.blocks.encoders import ENCODERS, encoder_of
from ensue.tasks.blocks.heads import TargetHead
from ensue.tasks.blocks.pooling import Pooling
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.explaining.attribution import Attributions
from ensue.tasks.explaining.encoder_heads import EncoderHeads
from ensue.tasks.explaining.heads import HeadMaps
from ensue.tasks.exported import Exported
from ensue.tasks.given import check_words
from ensue.tasks.match.averaging import MatcherModel, PairAverages
from ensue.tasks.match.content import (
    SIDES,
    MatchContent,
    asked_in_memory,
    pair_of_line,
    pairs_in_memory,
)
from ensue.tasks.match.explain import ExplainPair, both_sides, run_network
from ensue.tasks.match.exported import exported
from ensue.tasks.match.learned import LearnedMatch, kind_of
from ensue.tasks.match.network import MatchColumns, MatchNetwork, MatchSource, network_outputs
from ensue.tasks.match.options import OPTIONS
from ensue.tasks.match.settings import MatcherSettings
from ensue.tasks.model import Model
from ensue.tasks.options import EXPLAIN
from ensue.tasks.rows.collect import Example
from ensue.tasks.rows.content import written
from ensue.tasks.rows.labels import known_rows
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.task import RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Choice, Searched, Space
from ensue.tasks.search.texts import MIN_COUNT
from ensue.tasks.targets.answers import Classified, Estimated
from ensue.tasks.targets.numbers import NumberTarget
from ensue.tasks.task import NOTHING, Asked, Packed
from ensue.tasks.transfer.rows import RowTransfers

FEW = 4  # rows of a trial evaluation


class Match(RowTask[MatcherSettings, LearnedMatch]):
    """What two texts or sequences are to each other: a class, or a score."""

    name = "match"
    settings = MatcherSettings
    text_defaults: ClassVar[Mapping[str, Any]] = {"max_length": 20_000}
    train_defaults: ClassVar[Mapping[str, Any]] = {"patience": 4, "epochs": 15}
    metrics = tuple({metric.name: metric for metric in (*NUMBER_METRICS, *CLASS_METRICS)}.values())
    options = OPTIONS
    ranges: ClassVar[Space] = {
        "model.compare": Searched(Choice(("vectors", "attention"))),
        "text.min_count": MIN_COUNT,
    }
    columns: ClassVar[Mapping[str, str]] = {
        "text": "data.text",
        "second": "data.second",
        "label": "data.label",
    }
    explains = ExplainPair()
    heads = EncoderHeads(run_network, both_sides)
    transfers = RowTransfers(pooled=True)
    averages = PairAverages()
    content = MatchContent()
    unit = "each pair"

    # ------------------------------------------------------------- recognised
    def recognise(self, sample: Sample) -> Guess | None:
        """Two columns with the names of a well-known pair, or a second one that was named; two
        other texts beside a label may be matched."""
        data = sample.data
        if data.sequence:
            return None
        if data.second or _sides(sample) is not None:
            return self.infer(sample) if _label(sample) else None
        roles = sample.roles
        if data.text or len(roles.texts) != 2 or not roles.labels:
            return None
        return replace(self._readings(*roles.texts, roles.labels), sure=False)

    def infer(self, sample: Sample) -> Guess:
        data, place = sample.data, sample.place
        asked = [name for name in (data.text, data.second, data.label, data.group) if name]
        require(asked, sample.columns, place)
        known = _sides(sample) or _two_texts(sample)
        text, second = data.text or known[0], data.second or known[1]
        if not text or not second or text == second:
            raise DataError(
                f"{place}: which two columns are to be matched? Name them with "
                f"{sample.word('text')} and {sample.word('second')}. "
                f"Columns: {', '.join(sample.columns)}"
            )
        label = _label(sample)
        if not label:
            raise sample.no_label()
        return self._readings(text, second, [label])

    def _readings(self, text: str, second: str, labels: Sequence[str]) -> Guess:
        first, *others = (
            Guess(f"{text} with {second}", {"text": text, "second": second, "label": label})
            for label in labels
        )
        return replace(first, others=tuple(others))

    # ------------------------------------------------------------- read
    def examples(self, rows: Any) -> Iterable[Example]:
        """((first, second), label) each."""
        return pairs_in_memory(rows)

    def questions(self, inputs: Iterable[Any]) -> Iterable[Example]:
        """(first, second) each."""
        return asked_in_memory(inputs)

    def question_keys(self, origin: Origin) -> tuple[str, ...]:
        return ("text", "second")

    def asked_lines(self, lines: Sequence[str], model: MatcherModel) -> Part:
        return self.asked([pair_of_line(line) for line in lines], model)

    def shown_input(self, example: Example) -> tuple[str, str]:
        """Both texts."""
        return written(example.value), written(example.second)

    def shown_line(self, line: str) -> tuple[str, str]:
        return pair_of_line(line)

    def known_rows(self, train: Part, held: Part, model: MatcherModel) -> NDArray[np.int64] | None:
        """A score can be any; a class must be one of training."""
        number = kind_of(train, model.model) == NumberTarget.kind
        return None if number else known_rows(held, train)

    # ------------------------------------------------------------- learned
    def learn(self, train: Part, validation: Part, model: MatcherModel) -> LearnedMatch:
        return LearnedMatch.learn(train, validation, model.text, model.model, model.beginning)

    def build(self, model: MatcherModel) -> nn.Module:
        settings, learned = model.model, model.learned
        embed = Embed([learned.inputs.feature(settings)], settings.dropout_input)
        encoder = encoder_of(settings, embed.width)
        return MatchNetwork(
            embed,
            encoder,
            Pooling(settings.pooling, encoder.output_size, encoder.final_size),
            TargetHead(learned.target.width, learned.target.cost),
            compared_size=settings.compared_size,
            attention=settings.compare == "attention",
            standardise=settings.standardise,
            dropout=settings.dropout_output,
        )

    def source(self, train: Part, model: MatcherModel, seed: int) -> MatchSource:
        settings = model.model
        return MatchSource(
            model.learned.columns(train, model.text),
            train.names,
            seed=seed,
            budget=settings.batch_tokens,
            most_rows=settings.batch_rows,
        )

    def validation(self, network: nn.Module, part: Part, model: MatcherModel) -> ScoredPairs:
        def score(columns: MatchColumns) -> dict[str, float]:
            z = network_outputs(network, columns, model.model.batch_tokens)
            y = torch.as_tensor(columns.first.targets)
            return model.learned.target.score(z, y, model.train.watch)

        return ScoredPairs(score, model.learned.columns(part, model.text))

    # ------------------------------------------------------------- asked
    def decision_lines(self, asked: Asked, model: MatcherModel) -> list[str]:
        return model.learned.target.decision_lines(asked)

    def answer_names(self, model: MatcherModel) -> tuple[str, ...]:
        return model.learned.target.answer_names

    def answers(self, part: Part, model: MatcherModel, asked: Asked = NOTHING) -> list[Any]:
        """`Classified` of classes, `Estimated` of a score."""
        if not len(part):
            return []
        own = self.averages
        return own.answers(own.outputs(part, model), part, model, asked)

    def evaluate(self, part: Part, model: MatcherModel, asked: Asked = NOTHING) -> Evaluation:
        own = self.averages
        return own.evaluate(own.outputs(part, model), part, model, asked)

    # ------------------------------------------------------------- kept, looked at
    def exported(self, model: MatcherModel) -> Exported:
        return exported(model)

    def pack(self, learned: LearnedMatch) -> Packed:
        return learned.pack()

    def unpack(self, saved: Saved, model: MatcherModel) -> LearnedMatch:
        return LearnedMatch.unpack(saved, model.model)

    def describe(self, model: MatcherModel) -> str:
        settings = model.model
        how = "by attention" if settings.compare == "attention" else "as vectors"
        return f"{ENCODERS[settings.encoder].describe(settings)}, compared {how}"

    def facts(self, model: MatcherModel) -> list[str]:
        return [model.learned.target.describe()]


TASK = Match()


class Matcher(Model[MatcherSettings, Part, LearnedMatch, Classified | Estimated]):
    """What two texts or sequences are to each other: a class, or a score.

    >>> rows = [(("it rains", "it is wet"), "yes"), (("it rains", "it is dry"), "no")] * 10
    >>> model = Matcher(model={"hidden_size": 8}, train={"epochs": 6, "rate": 0.05}).fit(rows)
    >>> model.predict([("it rains", "it is dry")])[0].label
    'no'
    """

    task = TASK

    def explain(self, given: Any, **asked: Any) -> Attributions:
        """What the answer to a pair rests on. asked: method ("occlusion", "gradient" or
        "integrated"), baseline, label."""
        check_words(TASK, asked, EXPLAIN)
        return TASK.explains.explain(self, given, asked)

    def attention(self, given: Any, layer: int | None = None) -> HeadMaps:
        """Where every head of a Transformer looks, in each of the two."""
        return TASK.heads.explain(self, given, {"layer": layer})


class ScoredPairs:
    """A validation: a score function over all pairs, or over a few long ones."""

    def __init__(
        self, score: Callable[[MatchColumns], Mapping[str, float]], columns: MatchColumns
    ) -> None:
        self._score, self._columns = score, columns
        self._few = columns.take(np.argsort(columns.lengths)[-FEW:])
        self.fingerprint = fingerprint(columns.arrays())

    def __call__(self) -> Mapping[str, float]:
        return self._score(self._columns)

    def sample(self) -> Mapping[str, float]:
        return self._score(self._few)


def _sides(sample: Sample) -> tuple[str, str] | None:
    """The two columns that have the names of a well-known pair."""
    return next((pair for pair in SIDES if {*pair} <= {*sample.columns}), None)


def _two_texts(sample: Sample) -> tuple[str, str]:
    """The only two texts there are."""
    data, texts = sample.data, sample.roles.texts
    found = [name for name in texts if name != data.label]
    return (found[0], found[1]) if not data.text and len(found) == 2 else ("", "")


def _label(sample: Sample) -> str:
    """The column of the label: the one that was named, or the only one that is left."""
    if sample.data.label:
        return sample.data.label
    sides = _sides(sample) or ()
    taken = {*sides, sample.data.text, sample.data.second, sample.data.group}
    left = [name for name in sample.columns if name not in taken]
    if len(left) == 1:
        return left[0]
    return sample.roles.label or ""
