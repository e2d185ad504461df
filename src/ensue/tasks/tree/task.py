"""The class of a tree in brackets, and of each of its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.options import require
from ensue.data.ragged import Ragged
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
from ensue.tasks.rows.labels import labels_line, with_unknown
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.rows.recognise import same_column
from ensue.tasks.rows.task import Rows, RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Choice, Searched, Space
from ensue.tasks.targets.classes import ClassTarget
from ensue.tasks.targets.target import TargetOutputs
from ensue.tasks.task import NOTHING, Asked, Explains, Packed
from ensue.tasks.tree.answer import TreeAnswer
from ensue.tasks.tree.content import BARE, PLAIN, TreeContent, labels_of, tokens_of, tree_of
from ensue.tasks.tree.explain import DrawTrees, ExplainTree
from ensue.tasks.tree.exported import exported
from ensue.tasks.tree.forest import NO_TARGET, Forest, TreeScores, TreeSource
from ensue.tasks.tree.learned import LearnedTrees
from ensue.tasks.tree.network import TreeNetwork
from ensue.tasks.tree.options import OPTIONS
from ensue.tasks.tree.settings import TreeSettings

TreeModel = Model[TreeSettings, Part, LearnedTrees]
Floats = NDArray[np.float64]
HEIGHTS = 12  # that an evaluation tells one by one


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
            p = _outputs(network, forest, model).double().softmax(-1).numpy()[forest.roots]
            answers = ClassAnswers(forest.targets[forest.roots], p.argmax(1), p)
            return scores_of(self.metrics, answers, model.train.watch)

        return TreeScores(score, model.learned.forest(part))

    # ------------------------------------------------------------- asked
    def answer_names(self, model: TreeModel) -> tuple[str, ...]:
        return ("label", "probability", "tree")

    def answers(self, part: Part, model: TreeModel, asked: Asked = NOTHING) -> list[TreeAnswer]:
        learned = model.learned
        forest = learned.forest(replace(part, labels=None))
        p = probabilities(model, forest)
        names, tokens = learned.labels.tokens, part.numbers.token_names
        found = []
        for row in range(len(forest)):
            own = p[forest.starts[row] : forest.starts[row + 1]]
            best, sure = own.argmax(1), own.max(1)
            read = [tokens[k] for k in part.inputs.row(row)]
            opened = [token for token in read if token.startswith(PLAIN)]
            labels = tuple("" if t == BARE else names[k] for t, k in zip(opened, best, strict=True))
            labels = () if learned.whole else labels
            tree = tree_of(read, labels)
            order = np.argsort(-own[0], kind="stable")
            by_class = {names[k]: float(own[0, k]) for k in order}
            found.append(
                TreeAnswer(
                    names[best[0]],
                    float(sure[0]),
                    tree.as_text(),
                    labels,
                    tuple(sure.tolist()) if labels else (),
                    by_class,
                )
            )
        return found

    def evaluate(self, part: Part, model: TreeModel, asked: Asked = NOTHING) -> Evaluation:
        """Of whole trees; among the others the accuracy of all nodes, and by height."""
        learned = model.learned
        names = with_unknown(part, learned.labels)
        forest = learned.forest(part, names)
        outputs = [_outputs(network, forest, model) for network in model.networks]
        target = ClassTarget(learned.labels)
        assert part.labels is not None
        first = Ragged(part.labels.values[part.labels.starts[:-1]], np.arange(len(part) + 1))
        roots = replace(part, labels=first)
        given = TargetOutputs(
            [z[torch.from_numpy(forest.roots)] for z in outputs], {}, roots, _shown(part),
            model.train.seed,
        )  # fmt: skip
        found = target.evaluate(given)
        right = target.probabilities(outputs).argmax(1) == forest.targets
        labelled = forest.targets != NO_TARGET
        others = {"accuracy of nodes": float(right[labelled].mean()), **found.others}
        by_height = _by_height(forest, right)
        return replace(found, others=others, notes=[*by_height, *found.notes])

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


def probabilities(model: TreeModel, forest: Forest) -> Floats:
    """(nodes, classes), the mean over the members."""
    outputs = [_outputs(network, forest, model) for network in model.networks]
    return ClassTarget(model.learned.labels).probabilities(outputs)


@torch.no_grad()
def _outputs(network: nn.Module, forest: Forest, model: TreeModel) -> Tensor:
    """z (nodes, classes)."""
    assert isinstance(network, TreeNetwork)
    found = torch.zeros(int(forest.starts[-1]), len(model.learned.labels))
    for rows, batch in forest.in_batches(network, 2 * model.model.batch_nodes):
        places = [np.arange(forest.starts[row], forest.starts[row + 1]) for row in rows]
        if places:
            found[torch.from_numpy(np.concatenate(places))] = network.scores(batch).cpu()
    return found


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


def _shown(part: Part) -> Any:
    """The name of a row, and the beginning of its tree."""
    names = part.numbers.token_names

    def shown(row: int) -> tuple[str, str]:
        tree = tree_of([names[k] for k in part.inputs.row(row)])
        return part.names[row], " ".join(tree.words)

    return shown


def _by_height(forest: Forest, right: NDArray[np.bool_]) -> Sequence[str]:
    """Lines: how often nodes are right, by their height above the leaves."""
    height = np.zeros(len(right), np.int64)
    above = forest.parents + np.repeat(forest.roots, forest.lengths)
    for node in range(len(right) - 1, -1, -1):  # children come after their parent
        if forest.parents[node] >= 0:
            height[above[node]] = max(height[above[node]], height[node] + 1)
    labelled = forest.targets != NO_TARGET
    lines = ["nodes by height"]
    for own in range(min(int(height.max(initial=0)), HEIGHTS) + 1):
        here = labelled & (height == own)
        if here.any():
            lines.append(f"  {own:>6}   {right[here].mean():7.4f}   of {int(here.sum()):,}")
    return lines
