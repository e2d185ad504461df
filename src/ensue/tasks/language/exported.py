"""The exported form of a language model: from words and the state before them to log p of the next
words and the state after them. With one word at a time, it streams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ensue.data.vocabulary import END, END_NUMBER
from ensue.tasks.any_model import AnyModel
from ensue.tasks.exported import (
    BATCH,
    TIME,
    Exported,
    Graph,
    Input,
    Piecewise,
    joining,
    look_up_step,
    refuse,
    tokenise_step,
)
from ensue.tasks.language.learned import NEVER
from ensue.tasks.language.networks import LanguageNetwork

PAST = "past"  # name of a growing axis


class NextWords(nn.Module):
    """The network of an export; p is the mean over the members. names: the names of each member's
    states."""

    def __init__(self, members: Sequence[nn.Module], names: Sequence[Sequence[str]]) -> None:
        super().__init__()
        self.members, self.names = nn.ModuleList(members), [list(name) for name in names]

    def forward(self, words: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        rest, logs, after = list(states), [], list[Tensor]()
        for member, names in zip(self.members, self.names, strict=True):
            carried = {name: rest.pop(0) for name in names}
            y, new = member.run(words, carried)  # type: ignore[operator]
            logs.append(member.output.log_probabilities(y))  # type: ignore[union-attr, operator]
            after += [new[name] for name in names]
        log = logs[0]
        if len(logs) > 1:
            log = torch.logsumexp(torch.stack(logs), 0) - math.log(len(logs))
        return (log, *after)


@torch.no_grad()
def exported(model: AnyModel) -> Exported:
    learned = model.learned
    members = [network for network in model.networks if isinstance(network, LanguageNetwork)]
    if not members:
        raise refuse("counted", "language")
    if model.settings.direction == "backward":
        raise refuse("backward", "language")
    carried = [member.eval().begin(1) for member in members]
    twice = [member.begin(2) for member in members]
    states, begun = list[Input](), dict[str, Any]()
    for number, (parts, others) in enumerate(zip(carried, twice, strict=True)):
        for k, (part, other) in enumerate(zip(parts.values(), others.values(), strict=True)):
            name, axes = f"state_{number}_{k}", _axes(part, other)
            count = 0 if part.is_floating_point() else len(learned.words)
            states.append(Input(name, axes, count))
            begun[name] = part.select(axes.index(BATCH), 0).tolist()
    words = Input("words", (TIME, BATCH), len(learned.words))
    network = NextWords(members, [list(parts) for parts in carried])
    outputs = ("log_probabilities", *(f"next_{state.name}" for state in states))
    before = (
        tokenise_step(learned.tokeniser),
        look_up_step(learned.words.tokens, to="said"),
        {"step": "begin", "from": "said", "to": "words", "first": members[0].first}
        | {"states": begun},
    )
    after = {
        "step": "surprise",
        "vocabulary": list(learned.words.tokens),
        "end": END_NUMBER,
        "ends": END,
        "never": list(NEVER),
        **joining(learned.tokeniser),
    }
    graph = Graph("model", network, (words, *states), outputs)
    return Exported("language", (graph,), before, (after,), Piecewise(already=True))


def _axes(part: Tensor, other: Tensor) -> tuple[str | int, ...]:
    """The axes of a state, from states of one and of two rows; an axis of size 0 grows."""
    sizes = zip(part.shape, other.shape, strict=True)
    return tuple(BATCH if a != b else a or PAST for a, b in sizes)
