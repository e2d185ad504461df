"""The class of a tree in brackets, and of each of its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from torch import nn

from ensue.data.options import require
from ensue.data.rows import Place
from ensue.data.settings import DataSettings
from ensue.data.tokenise import Tokeniser
from ensue.data.trees.tree import looks_like_trees, read_tree
from ensue.data.values import Unfit
from ensue.errors import DataError, OptionError
from ensue.metrics.answers import ClassAnswers
from ensue.metrics.table import CLASS_METRICS, scores_of
from ensue.tasks.abilities import Draws
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.exported import Exported
from ensue.tasks.model import Model
from ensue.tasks.rows.collect import IN_MEMORY, Example
from ensue.tasks.rows.content import Content
from ensue.tasks.rows.labels import labels_line
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.rows.recognise import same_column
from ensue.tasks.rows.task import Rows, RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Choice, Searched, Space
from ensue.tasks.task import NOTHING, Asked, Explains, Packed
from ensue.tasks.tree.answer import TreeAnswer
from ensue.tasks.tree.averaging import TreeAverages, TreeModel, network_outputs
from ensue.tasks.tree.content import TreeContent, labels_of, tokens_of, tree_of
from ensue.tasks.tree.explain import DrawTrees, ExplainTree
from ensue.tasks.tree.exported import exported
from ensue.tasks.tree.forest import Forest, TreeScores, TreeSource
from ensue.tasks.tree.learned import LearnedTrees
from ensue.tasks.tree.network import TreeNetwork
from ensue.tasks.tree.options import OPTIONS
from ensue.tasks.tree.settings import TreeSettings


class Trees(RowTask[TreeSettings, LearnedTrees]):
    """The class of a tree in brackets, and of each of its nodes."""

    name = "tree"
    settings = TreeSettings
    text_defaults: ClassVar[Mapping[str, Any]] = {"level": "spaces", "lower": False, "min_count": 1}
    train_defaults: ClassVar[Mapping[str, Any]] = {"patience": 5}
    metrics = CLASS_METRICS
    options = OPTIONS
    ranges: ClassVar[Space] = {
        "model.combine": Searched(Choice(("ordered", "sum", "mean"))),
    }
    columns: ClassVar[Mapping[str, str]] = {"text": "data.text", "label": "data.label"}
    content: ClassVar[Content] = TreeContent()
    explains: ClassVar[Explains | None] = ExplainTree()
    draws: ClassVar[Draws | None] = DrawTrees()
    classes = True
    inputs_alone = True
    averages = TreeAverages()

    # ------------------------------------------------------------- recognised, read
    def recognise(self, sample: Sample) -> Guess | None:
        return self.infer(sample) if self._column(sample) else None

    def infer(self, sample: Sample) -> Guess:
        given = sample.data
        column = given.text or self._column(sample)
        if not column:
            raise DataError(
                f"{sample.place}: no column has trees in brackets, (S (NP the cat) (VP sat)), "
                f"among {', '.join(sample.columns)}; name it with {sample.word('text')}"
            )
        require([name for name in (column, given.label, given.group) if name], sample.columns,
                sample.place)  # fmt: skip
        if given.text and given.text == given.label:
            raise same_column(sample)
        if given.label:
            return Guess("a label for each tree", {"text": column, "label": given.label})
        return Guess("trees in brackets, with labels at their nodes", {"text": column})

    def _column(self, sample: Sample) -> str:
        """The first column with trees; "" where none has."""
        named = [sample.data.text] if sample.data.text else sample.columns
        for name in named:
            values = sample.values(name) if name in sample.columns else []
            texts = [value for value in values if isinstance(value, str)]
            if len(texts) == len(values) and looks_like_trees(texts):
                return name
        return ""

    def examples(self, rows: Any) -> Iterable[Example]:
        """Rows in memory: trees with labels at their nodes, or pairs of a tree and its label."""
        return [_example(row, line) for line, row in enumerate(rows, 1)]

    def asked(self, inputs: Any, model: TreeModel, asked: Asked = NOTHING) -> Part:
        if isinstance(inputs, str):
            raise OptionError("predict: expected a list of trees, got one text; write [text]")
        whole = model.learned.whole
        trees = [_tree(value, line) for line, value in enumerate(inputs, 1)]
        rows = [
            Example(tokens_of(tree, whole), None, Place(IN_MEMORY, line))
            for line, tree in enumerate(trees, 1)
        ]
        return self.collected(lambda: rows, model)

    def asked_content(self, data: DataSettings, model: TreeModel) -> Content:
        return TreeContent(model.learned.whole)

    def shown_input(self, example: Example) -> Any:
        return tree_of(example.value).as_text()

    def tokenisers(self, rows: Rows, model: TreeModel) -> Tokenisers:
        """Words are what stands between brackets and spaces."""
        return Tokenisers(Tokeniser("spaces"))

    # ------------------------------------------------------------- learned
    def learn(self, train: Part, validation: Part, model: TreeModel) -> LearnedTrees:
        return LearnedTrees.learn(train, model.text)

    def build(self, model: TreeModel) -> nn.Module:
        learned = model.learned
        inner = 0 if learned.inner is None else len(learned.inner)
        return TreeNetwork(len(learned.words), len(learned.labels), model.model, inner)

    def source(self, train: Part, model: TreeModel, seed: int) -> TreeSource:
        settings, forest = model.model, model.learned.forest(train)
        budget, most = settings.batch_nodes, settings.batch_rows
        return TreeSource(forest, train.names, seed=seed, budget=budget, most_rows=most)

    def validation(self, network: nn.Module, part: Part, model: TreeModel) -> TreeScores:
        def score(forest: Forest) -> dict[str, float]:
            p = network_outputs(network, forest, model).double().softmax(-1).numpy()[forest.roots]
            answers = ClassAnswers(forest.targets[forest.roots], p.argmax(1), p)
            return scores_of(self.metrics, answers, model.train.watch)

        return TreeScores(score, model.learned.forest(part))

    # ------------------------------------------------------------- asked
    def answer_names(self, model: TreeModel) -> tuple[str, ...]:
        return ("label", "probability", "tree")

    def answers(self, part: Part, model: TreeModel, asked: Asked = NOTHING) -> list[TreeAnswer]:
        own = self.averages
        return own.answers(own.outputs(part, model), part, model, asked)

    def evaluate(self, part: Part, model: TreeModel, asked: Asked = NOTHING) -> Evaluation:
        """Of whole trees; among the others the accuracy of all nodes, and by height."""
        own = self.averages
        return own.evaluate(own.outputs(part, model), part, model, asked)

    # ------------------------------------------------------------- taken elsewhere
    def exported(self, model: TreeModel) -> Exported:
        return exported(model)

    # ------------------------------------------------------------- kept, looked at
    def pack(self, learned: LearnedTrees) -> Packed:
        return learned.pack()

    def unpack(self, saved: Saved, model: TreeModel) -> LearnedTrees:
        return LearnedTrees.unpack(saved)

    def describe(self, model: TreeModel) -> str:
        settings = model.model
        children = {"ordered": "ordered", "sum": "summed", "mean": "averaged"}[settings.combine]
        return f"{settings.cell} of {settings.hidden_size} over trees, {children} children"

    def facts(self, model: TreeModel) -> list[str]:
        return [labels_line(model.learned.labels.tokens)]


TASK = Trees()


class TreeClassifier(Model[TreeSettings, Part, LearnedTrees, TreeAnswer]):
    """The class of a tree in brackets, and of each of its nodes.

    >>> rows = ["(1 (0 not) (0 bad))", "(0 (0 very) (0 bad))", "(1 (0 very) (1 good))"] * 8
    >>> model = TreeClassifier(model={"hidden_size": 8}, train={"epochs": 20, "rate": 0.05})
    >>> model.fit(rows).predict(["((not) (bad))"])[0].label
    '1'
    """

    task = TASK


def _tree(value: Any, line: int) -> Any:
    if not isinstance(value, str):
        raise DataError(
            f"{IN_MEMORY}:{line}: expected a tree in brackets, (…), got {type(value).__name__}"
        )
    try:
        return read_tree(value)
    except Unfit as unfit:
        raise DataError(f"{IN_MEMORY}:{line}: {unfit}") from None


def _example(row: Any, line: int) -> Example:
    place = Place(IN_MEMORY, line)
    if isinstance(row, tuple | list) and len(row) == 2:
        return Example(tokens_of(_tree(row[0], line), True), row[1], place)
    tree = _tree(row, line)
    try:
        return Example(tokens_of(tree, False), labels_of(tree), place)
    except Unfit as unfit:
        raise DataError(f"{place}: {unfit}") from None
