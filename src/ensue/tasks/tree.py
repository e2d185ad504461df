"""Predictions for trees in brackets: the class of a tree and of its nodes, several labels, a
number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ensue.data.options import require
from ensue.data.trees.tree import looks_like_trees
from ensue.errors import DataError
from ensue.metrics.table import CLASS_METRICS, NUMBER_METRICS
from ensue.settings import OneOf
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.model import Model
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.recognise import same_column
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.search.ranges import Choice, Searched, Space
from ensue.tasks.supervised.inputs.tree import Tree, TreeInputSettings
from ensue.tasks.supervised.learned import Learned
from ensue.tasks.supervised.options import OPTIONS
from ensue.tasks.supervised.task import AUTO, Supervised, SupervisedModel
from ensue.tasks.targets.classes import ClassTarget
from ensue.tasks.targets.kinds import TARGETS
from ensue.tasks.targets.target import Classified, Estimated, NumberSettings, ThresholdSettings
from ensue.tasks.task import AnswerShape
from ensue.tasks.trees.averaging import TreeAverages
from ensue.tasks.trees.content import TreeAnswer
from ensue.tasks.trees.explain import DrawTrees, ExplainTree


class TreeSettings(ThresholdSettings, NumberSettings, TreeInputSettings):
    """The cell that goes up a tree, how it combines the states of a node's children, and the
    target.

    >>> TreeSettings(combine='sum').cell
    'LSTM'
    """

    target: Annotated[str, OneOf(lambda: (AUTO, *TARGETS), "target")] = Field(
        ClassTarget.kind,
        description="Kind of target; auto: inferred from the labels. Labels at the nodes are "
        "classes.",
    )


class Trees(Supervised[TreeSettings]):
    """The class of a tree in brackets, and of each of its nodes."""

    name = "tree"
    settings = TreeSettings
    input = Tree()
    target_kinds = (ClassTarget.kind,)
    averages = TreeAverages()
    text_defaults: ClassVar[Mapping[str, Any]] = {"level": "spaces", "lower": False, "min_count": 1}
    train_defaults: ClassVar[Mapping[str, Any]] = {"patience": 5}
    metrics = tuple({metric.name: metric for metric in (*CLASS_METRICS, *NUMBER_METRICS)}.values())
    options = OPTIONS["tree"]
    ranges: ClassVar[Space] = {"model.combine": Searched(Choice(("ordered", "sum", "mean")))}
    columns: ClassVar[Mapping[str, str]] = {"text": "data.text", "label": "data.label"}
    explains = ExplainTree()
    draws = DrawTrees()
    inputs_alone = True
    adapts = True

    def recognise(self, sample: Sample) -> Guess | None:
        return self.infer(sample) if self._column(sample) else None

    def infer(self, sample: Sample) -> Guess:
        data = sample.data
        column = data.text_column or self._column(sample)
        if not column:
            raise DataError(
                f"{sample.place}: no column has trees in brackets, (S (NP the cat) (VP sat)), "
                f"among {', '.join(sample.columns)}; name it with {sample.word('text')}"
            )
        roles = [name for name in (column, data.label, data.group) if name]
        require(roles, sample.columns, sample.place)
        if data.text_column and data.text_column == data.label:
            raise same_column(sample)
        if data.label:
            return Guess("a label for each tree", {"text": column, "label": data.label})
        return Guess("trees in brackets, with labels at their nodes", {"text": column})

    def _column(self, sample: Sample) -> str:
        """The first column with trees; "" if there is none."""
        for name in [sample.data.text_column] if sample.data.text_column else sample.columns:
            values = sample.values(name) if name in sample.columns else []
            texts = [value for value in values if isinstance(value, str)]
            if len(texts) == len(values) and looks_like_trees(texts):
                return name
        return ""

    def evaluate(
        self, part: Part, model: SupervisedModel, options: RequestOptions = NOTHING
    ) -> Evaluation:
        """Evaluation of whole trees; for labelled nodes also accuracy, in all and by height."""
        if model.learned.input.whole:
            return super().evaluate(part, model, options)
        return self.averages.evaluate(self.averages.outputs(part, model), part, model, options)

    def answer_shape(self, model: SupervisedModel) -> AnswerShape:
        shape = super().answer_shape(model)
        if not isinstance(model.learned.target, ClassTarget):
            return shape
        return replace(shape, columns=(*shape.columns, "tree"))


TASK = Trees()


class TreeClassifier(Model[TreeSettings, Part, Learned, TreeAnswer | Classified | Estimated]):
    """The class of a tree in brackets, and of each of its nodes; also several labels, or a number.

    >>> rows = ["(1 (0 not) (0 bad))", "(0 (0 very) (0 bad))", "(1 (0 very) (1 good))"] * 8
    >>> model = TreeClassifier(model={"hidden_size": 8}, train={"epochs": 20, "rate": 0.05})
    >>> model.fit(rows).predict(["((not) (bad))"])[0].label
    '1'
    """

    task = TASK
