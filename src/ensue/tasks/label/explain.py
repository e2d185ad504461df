"""Explanations of the labels of a sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from ensue.errors import OptionError
from ensue.tasks.abilities import RequestOptions
from ensue.tasks.explaining.attribution import LinearAttribution
from ensue.tasks.explaining.measures import LEAST, ExplainedOutput, label_number, odds_of
from ensue.tasks.explaining.methods import LEFT_OUT, MEAN, UNKNOWN, Sides, against_others
from ensue.tasks.explaining.rows import ExplainRows, RowExplainer
from ensue.tasks.label.linear_chain import ENDS, OFFSETS
from ensue.tasks.label.network import LabellerNetwork
from ensue.tasks.label.predicted import Floats, answering_of, columns_of
from ensue.tasks.rows.batch import batch_of
from ensue.tasks.rows.part import Part

if TYPE_CHECKING:
    from ensue.tasks.label.predicted import LabellerModel


class LabelExplainer(RowExplainer):
    """Explains the predicted label of each step, or of a named step or label. For occlusion, a step
    is replaced, because a removed step would have no label."""

    def __init__(
        self, model: LabellerModel, part: Part, label: str | None, step: int | None
    ) -> None:
        super().__init__(model, part)
        self.occluded_by = UNKNOWN if part.texts else MEAN
        labels, p = answering_of(part, model).predicted(columns_of(part, model))
        self.labels, self.names = labels.values, model.learned.labels.tokens
        named = None if label is None else label_number(label, self.names)
        count = len(self.labels)
        if step is not None and not 1 <= step <= count:
            raise OptionError(f"--step: expected a step from 1 to {count}, got {step}")
        steps = range(count) if step is None else [step - 1]
        numbers = {t: int(self.labels[t]) if named is None else named for t in steps}
        self.explained = [
            ExplainedOutput(self.names[number], number, float(p[t, number]), t)
            for t, number in numbers.items()
        ]

    def whole(self, part: Part) -> Floats:
        predicted = answering_of(part, self.model).predicted(columns_of(part, self.model))[1]
        p = predicted.reshape(len(part), len(self.labels), -1)
        return np.stack([odds_of(p[:, item.step], item.number) for item in self.explained], 1)

    def embedded(self, network: nn.Module, part: Part) -> Sides:
        assert isinstance(network, LabellerNetwork)
        return (network.embed(batch_of(columns_of(part, self.model)).inputs),)

    def outputs(self, network: nn.Module, sides: Sides) -> Tensor:
        assert isinstance(network, LabellerNetwork)
        (x,) = sides
        rows = x.shape[1]
        labels = torch.from_numpy(self.labels)[:, None].expand(-1, rows)
        lengths = torch.full((rows,), len(x))
        p = network.probabilities_of(x, lengths, labels)  # (time, rows, labels)
        return torch.stack([_odds(p[item.step], item.number) for item in self.explained], 1)

    # ------------------------------------------------------------- the linear chain
    def answerers(self) -> str:
        mixture = self.model.learned.mixture
        return "" if mixture is None else f"network and linear chain, {mixture}"

    def linear(self) -> tuple[LinearAttribution, ...]:
        """The scores of each step's label: Σ_o w_o of the words o = −2 … 2 steps away. The bias
        comes from the ends of the row; transitions between labels are left out."""
        answering = answering_of(self.part, self.model)
        if answering.linear is None or answering.mixture is None:
            return ()
        words = self.part.inputs.row(0).astype(np.int64)
        ends = len(answering.linear.scores[0]) - len(ENDS)
        attributions = []
        for item in self.explained:
            assert item.step is not None
            direction = against_others(len(self.names), [item.number])[:, 0]
            scores, bias = np.zeros(len(words)), 0.0
            for offset, table in zip(OFFSETS, answering.linear.scores, strict=True):
                at = item.step + offset
                if 0 <= at < len(words):
                    scores[at] += float(table[words[at]].double().numpy() @ direction)
                else:
                    bias += float(table[ends + (at >= len(words))].double().numpy() @ direction)
            total = bias + float(scores.sum())
            parts = tuple(scores.tolist())
            attributions.append(
                LinearAttribution(item.name, item.step + 1, total, bias, self.tokens, parts)
            )
        return tuple(attributions)


def _odds(p: Tensor, label: int) -> Tensor:
    """Log-odds (rows,) of probabilities (rows, labels)."""
    others = [k for k in range(p.shape[-1]) if k != label]
    return p[:, label].clamp(min=LEAST).log() - p[:, others].sum(-1).clamp(min=LEAST).log()


class ExplainLabels(ExplainRows):
    def explainer(self, model: LabellerModel, part: Part, options: RequestOptions) -> RowExplainer:
        if options.get("baseline") == LEFT_OUT:
            raise OptionError(
                "--baseline: expected unknown (of vectors mean or zero) for a labeller, where each "
                "step has a label, got left-out"
            )
        return LabelExplainer(model, part, options.get("label"), options.get("step"))


def run_network(network: nn.Module, part: Part, model: LabellerModel) -> object:
    """Runs a network over the rows of a part."""
    return answering_of(part, model, [network]).predicted(columns_of(part, model))
