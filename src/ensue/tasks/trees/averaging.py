"""Answers at the nodes of trees: the mean of several networks, and their evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.abilities import NOTHING, Outputs, RequestOptions
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.evaluation.summary import Summary, summary_of
from ensue.tasks.rows.labels import with_unknown
from ensue.tasks.rows.part import Part
from ensue.tasks.supervised.inputs.tree import LearnedTree
from ensue.tasks.supervised.inputs.tree_network import node_outputs
from ensue.tasks.supervised.network import NO_TARGET
from ensue.tasks.supervised.task import RowAverages, SupervisedModel, evaluated, tensors_of
from ensue.tasks.targets.classes import ClassTarget
from ensue.tasks.trees.content import BARE, PLAIN, Forest, TreeAnswer, tree_of

HEIGHTS = 12  # maximum heights that an evaluation lists separately


class TreeAverages(RowAverages):
    """If nodes have labels, outputs are z (nodes, classes); otherwise the same as for other inputs.
    The answer of a class is a tree with the class."""

    def outputs(self, part: Part, model: SupervisedModel) -> list[NDArray[Any]]:
        read: LearnedTree = model.learned.input
        if read.whole:
            return super().outputs(part, model)
        forest, tokens = read.forest(part), model.task.input.answer_budget(model.settings)  # type: ignore[attr-defined]
        outputs = [node_outputs(network, forest, tokens) for network in model.networks]
        return [z.double().numpy() / model.learned.temperature for z in outputs]

    def out_of_sample(self, validation: Part, model: SupervisedModel) -> list[NDArray[Any]]:
        if model.learned.input.whole:
            return super().out_of_sample(validation, model)
        return self.outputs(validation, model)

    def summary(self, validation: Part, model: SupervisedModel) -> Summary | None:
        """The validation metrics of whole trees."""
        rows = _rows(self.out_of_sample(validation, model), validation, model)
        return summary_of(evaluated(tensors_of(rows), validation, model, NOTHING, held_out=True))

    def scores(
        self, outputs: Outputs, validation: Part, model: SupervisedModel
    ) -> dict[str, float]:
        """The validation metrics of whole trees."""
        return super().scores(_rows(outputs, validation, model), validation, model)

    def answers(
        self, outputs: Outputs, part: Part, model: SupervisedModel, options: RequestOptions
    ) -> list[Any]:
        answers = super().answers(_rows(outputs, part, model), part, model, options)
        read, target = model.learned.input, model.learned.target
        if not isinstance(target, ClassTarget):
            return answers
        forest, names, tokens = read.forest(part), target.labels.tokens, part.numbers.token_names
        nodes = None if read.whole else target.probabilities(tensors_of(outputs))
        trees = []
        for row, answer in enumerate(answers):
            brackets = [tokens[k] for k in part.inputs.row(row)]
            labels: tuple[str, ...] = ()
            sure: tuple[float, ...] = ()
            if nodes is not None:
                p = nodes[forest.starts[row] : forest.starts[row + 1]]
                opened = [token for token in brackets if token.startswith(PLAIN)]
                best = zip(opened, p.argmax(1), strict=True)
                labels = tuple("" if token == BARE else names[k] for token, k in best)
                sure = tuple(p.max(1).tolist())
            tree = tree_of(brackets, labels).as_text()
            trees.append(
                TreeAnswer(
                    answer.label, answer.probability, tree, labels, sure, answer.probabilities
                )
            )
        return trees

    def evaluate(
        self, outputs: Outputs, part: Part, model: SupervisedModel, options: RequestOptions
    ) -> Evaluation:
        """Evaluation of whole trees; further scores are the accuracy of all nodes, and by
        height."""
        rows = tensors_of(_rows(outputs, part, model))
        evaluation = evaluated(rows, part, model, options)
        read, target = model.learned.input, model.learned.target
        if read.whole or not isinstance(target, ClassTarget):
            return evaluation
        targets = read.node_targets(part, with_unknown(part, target.labels)).values
        right = target.probabilities(tensors_of(outputs)).argmax(1) == targets
        labelled = targets != NO_TARGET
        others = {"accuracy of nodes": float(right[labelled].mean()), **evaluation.others}
        by_height = _by_height(read.forest(part), right, labelled)
        return replace(evaluation, others=others, notes=[*by_height, *evaluation.notes])


def _rows(outputs: Outputs, part: Part, model: SupervisedModel) -> Outputs:
    """The outputs of the roots, selected from the outputs of all nodes."""
    read: LearnedTree = model.learned.input
    if read.whole:
        return outputs
    roots = read.forest(part).roots
    return [np.asarray(z)[roots] for z in outputs]


def _by_height(
    forest: Forest, right: NDArray[np.bool_], labelled: NDArray[np.bool_]
) -> Sequence[str]:
    """Lines on the accuracy of nodes, by their height above the leaves."""
    height = np.zeros(len(right), np.int64)
    above = forest.parents + np.repeat(forest.roots, forest.lengths)
    for node in range(len(right) - 1, -1, -1):  # children come after their parent
        if forest.parents[node] >= 0:
            height[above[node]] = max(height[above[node]], height[node] + 1)
    lines = ["nodes by height"]
    for level in range(min(int(height.max(initial=0)), HEIGHTS) + 1):
        here = labelled & (height == level)
        if here.any():
            lines.append(f"  {level:>6}   {right[here].mean():7.4f}   of {int(here.sum()):,}")
    return lines
