"""A classifier for export: words or vectors in, the probability of each class out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ensue.tasks.blocks.pooled_network import PooledNetwork
from ensue.tasks.exported import BATCH, TIME, Exported, Input, Step, refuse, tokenise_step
from ensue.tasks.model import Model
from ensue.tasks.rows.batch import SequenceBatch
from ensue.tasks.targets.classes import THRESHOLD


class MeanOfMembers(nn.Module):
    """p = mean over the members of softmax(z), of several labels of σ(z): (batch, classes)."""

    def __init__(self, members: Sequence[nn.Module], name: str, several: bool) -> None:
        super().__init__()
        self.members, self.name, self.several = nn.ModuleList(members), name, several

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        batch = SequenceBatch({self.name: x}, lengths)
        found = [own.scores(batch) for own in self.members]  # type: ignore[operator]
        each = [z.sigmoid() if self.several else z.softmax(-1) for z in found]
        return torch.stack(each).mean(0)


def exported(model: Model[Any, Any, Any]) -> Exported:
    settings, learned = model.model, model.learned
    for network in model.networks:
        if not isinstance(network, PooledNetwork) or network.ngrams is not None:
            raise refuse("classify", "n-grams beside the network", "train with model.ngrams=0")
    if learned.beside is not None:
        raise refuse("classify", "columns beside the text", "train without data.columns")
    if learned.mixture is not None:
        alone = "model.ngram_share=0" if settings.ngrams else "model.linear=alone"
        raise refuse("classify", "a mixture with a linear model", f"train with {alone}")
    inputs = learned.inputs
    cut: Step = {"step": "cut", "max_length": model.text.max_length, "cut": model.text.cut}
    before: tuple[Step, ...]
    if inputs.words is not None:
        given = Input("words", (TIME, BATCH), len(inputs.words))
        look_up: Step = {
            "step": "look up",
            "vocabulary": list(inputs.words.tokens),
            "padding": 0,
            "unknown": 1,
        }
        before = (tokenise_step(inputs.tokenisers.input), look_up, cut)
    else:
        given = Input("vectors", (TIME, BATCH, inputs.scale.width))
        before = ({"step": "vectors", "width": inputs.scale.width}, cut)
    members = tuple(network.float() for network in model.networks)
    return Exported(
        "classify",
        MeanOfMembers(members, given.name, settings.several),
        members,
        (given,),
        ("probabilities",),
        before,
        (
            {
                "step": "labels",
                "labels": list(learned.labels.tokens),
                "several": settings.several,
                "threshold": THRESHOLD,
            },
        ),
    )
