"""The relation of two texts or sequences: a class, several labels, or a score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ensue.metrics.table import CLASS_METRICS, NUMBER_METRICS
from ensue.settings import OneOf
from ensue.tasks.explaining.heads import EncoderHeads
from ensue.tasks.model import Model
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.recognise import named_pair, pair_guess
from ensue.tasks.rows.task import LineSplit
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.search.ranges import Choice, Searched, Space
from ensue.tasks.search.usual import MIN_COUNT
from ensue.tasks.settings import LabelSettings
from ensue.tasks.supervised.explain import ExplainSteps
from ensue.tasks.supervised.inputs.pair import Pair, PairInputSettings, asked_pair
from ensue.tasks.supervised.learned import Learned
from ensue.tasks.supervised.options import OPTIONS
from ensue.tasks.supervised.task import AUTO, Supervised, run_network
from ensue.tasks.targets.kinds import TARGETS
from ensue.tasks.targets.target import Classified, Estimated, NumberSettings, ThresholdSettings
from ensue.tasks.transfer.rows import ReaderTransfers


class MatcherSettings(ThresholdSettings, NumberSettings, PairInputSettings, LabelSettings):
    """The encoder that both sides share, how they are compared, and what is predicted.

    >>> MatcherSettings(compare='attention').pooling
    'max'
    """

    target: Annotated[str, OneOf(lambda: (AUTO, *TARGETS), "target")] = Field(
        AUTO, description="Kind of target; auto: inferred from the labels."
    )


class Match(Supervised[MatcherSettings]):
    """The relation of two texts or sequences: a class, several labels, or a score."""

    name = "match"
    settings = MatcherSettings
    input = Pair()
    target_kinds = (AUTO,)
    text_defaults: ClassVar[Mapping[str, Any]] = {"max_length": 20_000}
    train_defaults: ClassVar[Mapping[str, Any]] = {"patience": 4, "epochs": 15}
    metrics = tuple({metric.name: metric for metric in (*NUMBER_METRICS, *CLASS_METRICS)}.values())
    options = OPTIONS["match"]
    ranges: ClassVar[Space] = {
        "model.compare": Searched(Choice(("vectors", "attention"))),
        "text.min_count": MIN_COUNT,
    }
    columns: ClassVar[Mapping[str, str]] = {
        "text": "data.text",
        "second": "data.second",
        "label": "data.label",
    }
    explains = ExplainSteps(asked_pair)
    heads = EncoderHeads(run_network, asked_pair)
    transfers = ReaderTransfers(pooled=True)
    split = LineSplit("each pair")

    def recognise(self, sample: Sample) -> Guess | None:
        return pair_guess(sample)

    def infer(self, sample: Sample) -> Guess:
        return named_pair(sample)


TASK = Match()


class Matcher(Model[MatcherSettings, Part, Learned, Classified | Estimated]):
    """The relation of two texts or sequences: a class, several labels, or a score.

    >>> rows = [(("it rains", "it is wet"), "yes"), (("it rains", "it is dry"), "no")] * 10
    >>> model = Matcher(model={"hidden_size": 8}, train={"epochs": 6, "rate": 0.05}).fit(rows)
    >>> model.predict([("it rains", "it is dry")])[0].label
    'no'
    """

    task = TASK
