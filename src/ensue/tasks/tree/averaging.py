"""The outputs of the networks of trees, and the mean answer of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.ragged import Ragged
from ensue.metrics.answers import ClassAnswers
from ensue.metrics.table import CLASS_METRICS, scores_of
from ensue.tasks.abilities import Asked, Outputs
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.model import Model
from ensue.tasks.rows.labels import with_unknown
from ensue.tasks.rows.part import Part
from ensue.tasks.targets.classes import ClassTarget
from ensue.tasks.targets.target import TargetOutputs
from ensue.tasks.tree.answer import TreeAnswer
from ensue.tasks.tree.content import BARE, PLAIN, tree_of
from ensue.tasks.tree.forest import NO_TARGET, Forest
from ensue.tasks.tree.learned import LearnedTrees
from ensue.tasks.tree.network import TreeNetwork
from ensue.tasks.tree.settings import TreeSettings

TreeModel = Model[TreeSettings, Part, LearnedTrees]
Floats = NDArray[np.float64]
HEIGHTS = 12  # that an evaluation tells one by one


class TreeAverages:
    """Outputs are probabilities (nodes, classes)."""

    def alone(self, model: TreeModel) -> bool:
        return len(model.networks) == 1

    def outputs(self, part: Part, model: TreeModel) -> list[Floats]:
        forest = model.learned.forest(replace(part, labels=None))
        outputs = [network_outputs(network, forest, model) for network in model.networks]
        return [z.double().softmax(-1).numpy() for z in outputs]

    def gold_outputs(self, part: Part, model: TreeModel) -> list[Floats]:
        return self.outputs(part, model)

    def held(self, validation: Part, model: TreeModel) -> list[Floats]:
        return self.outputs(validation, model)

    def scores(self, outputs: Outputs, validation: Part, model: TreeModel) -> dict[str, float]:
        """Of whole trees."""
        forest = model.learned.forest(validation)
        p = _mean(outputs)[forest.roots]
        answers = ClassAnswers(forest.targets[forest.roots], p.argmax(1), p)
        return scores_of(CLASS_METRICS, answers, model.train.watch)

    def answers(
        self, outputs: Outputs, part: Part, model: TreeModel, asked: Asked
    ) -> list[TreeAnswer]:
        learned, p = model.learned, _mean(outputs)
        forest = learned.forest(replace(part, labels=None))
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

    def evaluate(self, outputs: Outputs, part: Part, model: TreeModel, asked: Asked) -> Evaluation:
        """Of whole trees; among the others the accuracy of all nodes, and by height."""
        learned, p = model.learned, _mean(outputs)
        names = with_unknown(part, learned.labels)
        forest = learned.forest(part, names)
        assert part.labels is not None
        first = Ragged(part.labels.values[part.labels.starts[:-1]], np.arange(len(part) + 1))
        roots = replace(part, labels=first)
        z = torch.from_numpy(np.log(np.maximum(p[forest.roots], np.finfo(np.float64).tiny)))
        given = TargetOutputs([z], {}, roots, _shown(part), model.train.seed)
        found = ClassTarget(learned.labels).evaluate(given)
        right = p.argmax(1) == forest.targets
        labelled = forest.targets != NO_TARGET
        others = {"accuracy of nodes": float(right[labelled].mean()), **found.others}
        by_height = _by_height(forest, right)
        return replace(found, others=others, notes=[*by_height, *found.notes])


def _mean(outputs: Outputs) -> Floats:
    return np.asarray(sum(outputs) / len(outputs))


@torch.no_grad()
def network_outputs(network: nn.Module, forest: Forest, model: TreeModel) -> Tensor:
    """z (nodes, classes)."""
    assert isinstance(network, TreeNetwork)
    found = torch.zeros(int(forest.starts[-1]), len(model.learned.labels))
    for rows, batch in forest.in_batches(network, 2 * model.model.batch_nodes):
        places = [np.arange(forest.starts[row], forest.starts[row + 1]) for row in rows]
        if places:
            found[torch.from_numpy(np.concatenate(places))] = network.scores(batch).cpu()
    return found


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
