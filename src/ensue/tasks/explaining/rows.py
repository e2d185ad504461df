"""Explanations of answers for sequences: the shared part, and the interface for each task."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.errors import OptionError, unknown
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.any_model import AnyModel
from ensue.tasks.explaining.attribution import Attribution, Attributions, LinearAttribution
from ensue.tasks.explaining.methods import (
    LEFT_OUT,
    MEAN,
    UNKNOWN,
    Sides,
    all_replaced,
    baseline_of,
    gradient_times_input,
    integrated_gradients,
    occluded,
    sides_of,
)
from ensue.tasks.explaining.options import EXPLAINED
from ensue.tasks.rows.inputs import Scale
from ensue.tasks.rows.part import Part

if TYPE_CHECKING:
    from ensue.tasks.explaining.measures import ExplainedOutput

Floats = NDArray[np.float64]
MOST_STEPS = 1000  # maximum steps for occlusion


class RowExplainer(ABC):
    """One row of a fitted model, explained by its task.

    measure: the explained value; occluded_by: the default baseline of occlusion; explained: the
    answers."""

    measure: str = "log-odds"
    linear_measure: str = "score against the mean of the other labels"
    occluded_by: str = LEFT_OUT
    explained: Sequence[ExplainedOutput]

    def __init__(self, model: AnyModel, part: Part) -> None:
        self.model: Any = model
        self.part = part

    @abstractmethod
    def whole(self, part: Part) -> Floats:
        """The measure of the explained answers, by the combined model; shape (rows, answers)."""

    @abstractmethod
    def embedded(self, network: nn.Module, part: Part) -> Sides:
        """The embedded steps of the only row."""

    @abstractmethod
    def outputs(self, network: nn.Module, sides: Sides) -> Tensor:
        """The measure of the explained answers, by one network; shape (rows, answers)."""

    def answerers(self) -> str:
        """A description of the other parts of the combined model; "" if there are only networks."""
        return ""

    def linear(self) -> tuple[LinearAttribution, ...]:
        """The part of the linear model, if it contributes to answers."""
        return ()

    @property
    def scale(self) -> Scale | None:
        """The scale of vectors; None for words."""
        scale: Scale | None = self.model.learned.inputs.scale
        return scale

    # ------------------------------------------------------------- what follows
    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens; for vectors the indices of their steps."""
        names = self.part.numbers.token_names
        labels: list[str] = []
        for side in sides_of(self.part):
            labels += [names[k] if self.part.texts else str(at + 1) for at, k in enumerate(side)]
        return tuple(labels)

    def networks_alone(self) -> str:
        """A phrase for the part of the model whose output the gradients explain."""
        count = len(self.model.networks)
        several = f"the mean of the {count} networks" if count > 1 else "the network"
        beside = self.answerers()
        return f"{several} alone, not of the whole answer ({beside})" if beside else several


def explained_row(model: AnyModel, inputs: Any) -> Part:
    """The only input as a part; raises an error if it has no steps."""
    model.must_be_fitted()
    part: Part = model.reader.questions([inputs])
    if not sum(len(side) for side in sides_of(part)):
        raise OptionError("explain: expected a text with at least one token, got none")
    return part


class ExplainRows(ABC):
    """Attributions of the answer to a row, by one of three methods. question: the row and its
    options."""

    option = EXPLAINED

    def __init__(
        self, question: Callable[[Any, RequestOptions], Any] = lambda inputs, options: inputs
    ) -> None:
        self._question = question

    @abstractmethod
    def explainer(self, model: Any, part: Part, options: RequestOptions) -> RowExplainer:
        """The explainer for the only row of a part. options: label, step."""

    def explain(
        self, model: AnyModel, inputs: Any, options: RequestOptions = NOTHING
    ) -> Attributions:
        """Explains an input. options: method, baseline, and others of the task."""
        part = explained_row(model, self._question(inputs, options))
        method = options.get("method", "occlusion")
        if method not in METHODS:
            raise unknown("method", method, METHODS)
        return METHODS[method](self.explainer(model, part, options), options.get("baseline", ""))


# --- methods -------------------------------------------------------------------------------------


def _occlusion(row: RowExplainer, baseline: str) -> Attributions:
    """Attribution by occlusion: how much the measure falls without a step."""
    name = baseline or row.occluded_by
    chosen = baseline_of(name, row.part, "occluded")
    steps = len(row.tokens)
    if steps > MOST_STEPS:
        raise OptionError(
            f"explain: expected at most {MOST_STEPS:,} steps with --method occlusion, which asks "
            f"the model once for each, got {steps:,}; use --method integrated"
        )
    step = chosen.step and chosen.step(row.part, row.scale)
    output = row.whole(row.part)[0]
    scores = output - row.whole(occluded(row.part, step))  # (steps, answers)
    answers = zip(row.explained, output, scores.T, strict=True)
    attributions = tuple(_attribution(explained, value, some) for explained, value, some in answers)
    beside = f" ({answerers})" if (answerers := row.answerers()) else ""
    return _attributions(
        row, "occlusion", chosen.occluded, f"the whole answer{beside}", attributions
    )


def _gradient(row: RowExplainer, baseline: str) -> Attributions:
    if baseline:
        raise OptionError(
            f"--baseline: expected none with --method gradient, which has no baseline, got "
            f"{baseline}"
        )
    shares = []
    for network in _in_float64(row):
        x = row.embedded(network, row.part)
        products = gradient_times_input(partial(row.outputs, network), x)
        shares.append((products.output, _all_steps(row, x, products.scores)))
    output, scores = (torch.stack(parts).mean(0) for parts in zip(*shares, strict=True))
    answers = zip(row.explained, output.tolist(), scores.numpy(), strict=True)
    attributions = tuple(_attribution(one, value, some) for one, value, some in answers)
    way = "the slope at each token times its vector"
    if not row.part.texts:
        way = "the slope at each step times its distance from the mean of training"
    return _attributions(row, "gradient", way, row.networks_alone(), attributions, row.linear())


def _integrated(row: RowExplainer, baseline: str) -> Attributions:
    name = baseline or (UNKNOWN if row.part.texts else MEAN)
    chosen = baseline_of(name, row.part, "together")
    nothing = None
    if chosen.step is not None:
        step = chosen.step(row.part, row.scale)
        nothing = all_replaced(row.part, step)
    shares = []
    for network in _in_float64(row):
        x = row.embedded(network, row.part)
        if nothing is None:
            start: Sides = tuple(torch.zeros_like(side) for side in x)
        else:
            start = row.embedded(network, nothing)
        gradients = integrated_gradients(partial(row.outputs, network), x, start)
        shares.append(gradients._replace(scores=_all_steps(row, x, gradients.scores)))
    scores, output, reference = (
        torch.stack([getattr(share, name) for share in shares]).mean(0)
        for name in ("scores", "output", "reference")
    )
    errors = (scores.sum(1) - (output - reference)).abs()
    numbers = zip(output.tolist(), scores.numpy(), reference.tolist(), errors.tolist(), strict=True)
    attributions = tuple(
        _attribution(one, *values) for one, values in zip(row.explained, numbers, strict=True)
    )
    points = max(share.points for share in shares)
    return _attributions(
        row, "integrated", chosen.together, row.networks_alone(), attributions, row.linear(), points
    )


METHODS = {"occlusion": _occlusion, "gradient": _gradient, "integrated": _integrated}


def _attribution(
    explained: ExplainedOutput,
    output: float,
    scores: Floats,
    reference: float | None = None,
    error: float | None = None,
) -> Attribution:
    step = None if explained.step is None else explained.step + 1
    listed = tuple(scores.tolist())
    return Attribution(
        explained.name, step, explained.probability, float(output), listed, reference, error
    )


def _attributions(
    row: RowExplainer,
    method: str,
    baseline: str,
    of: str,
    answers: tuple[Attribution, ...],
    linear: tuple[LinearAttribution, ...] = (),
    points: int | None = None,
) -> Attributions:
    sides = tuple(len(side) for side in sides_of(row.part))
    measure = row.linear_measure if linear else ""
    return Attributions(
        row.tokens, sides, method, baseline, row.measure, of, answers, linear, measure, points
    )


# --- in double precision -------------------------------------------------------------------------


def _in_float64(row: RowExplainer) -> list[nn.Module]:
    """Runs the row with float64 copies of the networks on the CPU."""
    return [
        copy.deepcopy(network).to("cpu").double().eval().requires_grad_(False)
        for network in row.model.networks
    ]


def _all_steps(row: RowExplainer, x: Sides, scores: Tensor) -> Tensor:
    """Scores (answers, steps of x) with zeros for the steps that text.max_length cuts off."""
    text, tensors, begin = row.model.text, list[Tensor](), 0
    for steps, side in zip(sides_of(row.part), x, strict=True):
        side_scores = scores[:, begin : begin + len(side)]
        begin += len(side)
        rest = side_scores.new_zeros(len(side_scores), len(steps) - side_scores.shape[1])
        tensors += [side_scores, rest] if text.cut == "end" else [rest, side_scores]
    return torch.cat(tensors, 1)
