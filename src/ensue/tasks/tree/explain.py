"""A tree with the answers and the states of its nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from ensue.errors import OptionError
from ensue.tasks.rows.part import Part
from ensue.tasks.task import NOTHING, Asked
from ensue.tasks.tree.answer import TreeAnswer
from ensue.tasks.tree.network import TreeNetwork
from ensue.tasks.tree.options import EXPLAINED
from ensue.tasks.tree.picture import StateTree, tree_picture, tree_text
from ensue.training.devices import device_of_weights, moved

if TYPE_CHECKING:
    from ensue.tasks.tree.averaging import TreeModel


@dataclass(frozen=True)
class TreeExplanation:
    found: StateTree

    def as_text(self, width: int, colour: bool) -> str:
        return tree_text(self.found)

    def as_svg(self) -> str:
        return tree_picture(self.found)


class ExplainTree:
    """What is answered at each node of a tree, and the state that the answer is read from."""

    option = EXPLAINED

    def explain(self, model: TreeModel, given: str, asked: Asked = NOTHING) -> TreeExplanation:
        model.must_be_fitted()
        part = model.task.asked([given], model)
        return TreeExplanation(state_tree(model, part, 0))


class DrawTrees:
    """The first tree that was asked for, or the first of a part."""

    def answers(self, model: TreeModel, part: Part, asked: Any) -> str:
        if not len(part):
            raise OptionError("--picture: expected a tree to draw, got none")
        return tree_picture(state_tree(model, part, 0))

    def evaluated(self, model: TreeModel, part: Part) -> str:
        return self.answers(model, part, {})


@torch.no_grad()
def state_tree(model: TreeModel, part: Part, row: int) -> StateTree:
    """One tree of a part; the states are those of the first network."""
    only = replace(part.take(torch.tensor([row]).numpy()), labels=None)
    answer: TreeAnswer = model.task.answers(only, model)[0]
    network = model.networks[0]
    assert isinstance(network, TreeNetwork)
    forest = model.learned.forest(only)
    batch = moved(forest.batch([0]), device_of_weights(network))
    states = network.states(network.entering(batch), batch).cpu()
    tokens = [part.numbers.token_names[k] for k in only.inputs.row(0)]
    words: list[str] = []
    for token in tokens:
        if token.startswith("("):
            words.append("")
        elif token != ")":
            words[-1] = token
    count = len(forest.words)
    rest = count - 1
    return StateTree(
        answer.tree,
        tuple(words),
        tuple(int(k) for k in forest.parents),
        answer.labels or (answer.label, *[""] * rest),
        answer.node_probabilities or (answer.probability, *[0.0] * rest),
        tuple(tuple(round(v, 6) for v in state) for state in states.cpu().tolist()),
    )
