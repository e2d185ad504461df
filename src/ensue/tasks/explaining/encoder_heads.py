"""Where the heads of an encoder look, in rooms whose rows are sequences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import nn

from ensue.tasks.blocks.encoders import ENCODERS
from ensue.tasks.explaining.baselines import sides_of
from ensue.tasks.explaining.heads import HeadMaps, Looking, head_maps
from ensue.tasks.explaining.options import EXPLAINED
from ensue.tasks.explaining.rows import AnyModel, explained_row
from ensue.tasks.rows.part import Part, shortened
from ensue.tasks.task import NOTHING, Asked

SIDES = ("first text", "second text")


class EncoderHeads:
    """Self-attention of every step to all of its row; of a pair for each of the two.

    run: a network over the only row of a part."""

    option = EXPLAINED

    def __init__(
        self,
        run: Callable[[nn.Module, Part, Any], object],
        question: Callable[[Any, Asked], Any] = lambda given, asked: given,
    ) -> None:
        self._run, self._question = run, question

    def explain(self, model: AnyModel, given: Any, asked: Asked = NOTHING) -> HeadMaps:
        """asked: layer."""
        part = _cut(explained_row(model, self._question(given, asked)), model)
        names, sides = part.numbers.token_names, sides_of(part)
        looking = []
        for call, side in enumerate(sides):
            own = tuple(names[k] if part.texts else str(at + 1) for at, k in enumerate(side))
            of = f" of the {SIDES[call]}" if len(sides) > 1 else ""
            looking.append(Looking(f"encoder self-attention{of}", _every, own, own, call))
        (answer,) = model.task.answers(part, model)
        told = answer.as_line("").rstrip("\t").replace("\t", " ")

        def run(network: nn.Module) -> object:
            return self._run(network, part, model)

        described = ENCODERS[model.model.encoder].describe(model.model)
        return head_maps(model, run, looking, told, asked.get("layer"), described)


def _cut(part: Part, model: AnyModel) -> Part:
    """As much of the row as the networks read."""
    how = model.text.max_length, model.text.cut
    second = None if part.second is None else shortened(part.second, *how)
    return replace(part, inputs=shortened(part.inputs, *how), second=second)


def _every(name: str) -> bool:
    return True
