"""A forward and a backward language model as one base, with their layers in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

import torch

from ensue.errors import OptionError
from ensue.tasks.transfer.pretrained import Pretrained, renamed

TOGETHER = "for both directions name a forward and a backward language model, --base A --base B"
# Prefixes of a backward model's weights, with their prefixes in a two-way encoder.
FROM_RIGHT = {"recurrent.": "from_right."}
TWO_WAYS = {"bidirectional": True, "backward_start": "zero", "directions": "apart"}


def joined(models: Sequence[Pretrained], backward_alone: bool = False) -> Pretrained:
    """The combination of several bases. backward_alone: whether one that reads from the right can
    be a base alone."""
    if len(models) == 1:
        if models[0].direction == "backward" and not backward_alone:
            raise OptionError(
                f"{models[0].called}: a backward language model is not a base by itself; {TOGETHER}"
            )
        return models[0]
    ways = [model.direction for model in models if _one_way(model)]
    if len(models) > 2 or sorted(ways) != ["backward", "forward"]:
        listed = ", ".join(f"{model.called} ({_kind(model)})" for model in models)
        raise OptionError(f"base.path: expected one base, got {len(models)}: {listed}; {TOGETHER}")
    left, right = sorted(models, key=lambda model: model.direction, reverse=True)
    _refuse_misfits(left, right)
    assert left.table is not None
    assert right.table is not None
    return replace(
        left,
        called=f"{left.called} and {right.called}",
        digest=sha256(f"{left.digest} {right.digest}".encode()).hexdigest(),
        table=torch.cat([left.table, right.table], 1),
        settings={**left.settings, **TWO_WAYS},
        weights={**left.weights, **renamed(right.weights, FROM_RIGHT)},
        language={},
        whole={},
    )


def _one_way(pretrained: Pretrained) -> bool:
    recurrent = (
        pretrained.encoder == "recurrent"
        and pretrained.words is not None
        and pretrained.table is not None
    )
    return recurrent and not pretrained.settings["bidirectional"]


def _kind(pretrained: Pretrained) -> str:
    return pretrained.direction if _one_way(pretrained) else "no layers of words in one direction"


def _refuse_misfits(left: Pretrained, right: Pretrained) -> None:
    """Raises an error unless both read the same words, in layers of the same kind and sizes."""
    assert left.words is not None
    assert right.words is not None
    compared = {f"text.{key}": (left.text[key], right.text[key]) for key in left.text}
    compared |= {f"model.{key}": (left.settings[key], right.settings[key]) for key in left.settings}
    compared["model.embedding_size"] = (left.word_width, right.word_width)
    wrong = [
        f"{key}: {one!r} and {other!r}" for key, (one, other) in compared.items() if one != other
    ]
    if left.words.tokens != right.words.tokens or left.tokeniser != right.tokeniser:
        sizes = f"{len(left.words):,} and {len(right.words):,} tokens"
        wrong.append(f"the vocabulary: {sizes}, different words; train both on the same files")
    if dict(left.cells) != dict(right.cells):
        wrong.append("model.cell: two different custom cells")
    if wrong:
        raise OptionError(
            f"{left.called} and {right.called} do not fit each other: expected the same words and "
            "layers\n  " + "\n  ".join(wrong)
        )
