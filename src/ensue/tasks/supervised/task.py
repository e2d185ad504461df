"""`Supervised`: all tasks with one kind of input and one target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.errors import OptionError
from ensue.metrics.classes import class_counts, macro_f1
from ensue.tasks.abilities import NOTHING, Averages, Outputs, RequestOptions
from ensue.tasks.any_model import AnyModel
from ensue.tasks.baselines.mixture import FEW_TEXTS, FIRST
from ensue.tasks.baselines.regression import Regression
from ensue.tasks.codec import Packed, unpacked
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.evaluation.summary import NETWORK_ALONE, Summary, summary_of
from ensue.tasks.exported import Exported, Graph, refuse
from ensue.tasks.model import Model
from ensue.tasks.reader import DatasetReader
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.source import ColumnScores, SequenceSource
from ensue.tasks.rows.task import RowTask
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Space
from ensue.tasks.search.usual import text_space
from ensue.tasks.supervised.input import Input
from ensue.tasks.supervised.learned import InputQuestion, Learned, LinearQuestion, Share
from ensue.tasks.supervised.network import (
    LabelledRows,
    SupervisedNetwork,
    network_outputs,
)
from ensue.tasks.targets.classes import ClassTarget
from ensue.tasks.targets.kinds import TARGETS, target_kind
from ensue.tasks.targets.target import Mixture, Target, TargetOutputs
from ensue.tasks.task import AnswerShape, Recipe, S, Task

SupervisedModel = Model[Any, Any, Learned]

FEWEST = 8  # rows of the minority class that a fit needs
ENOUGH = 20  # rows of the minority class in the validation part, enough to fit on it alone
FOLDS = 5
RIDGE = 1e-3  # of the linear model
TRIED_THRESHOLDS = np.arange(2, 51) / 100
WORTH = 0.01  # gain of macro-F1 required for a threshold other than 0.5


def is_tuned(target: object, setting: object) -> TypeGuard[ClassTarget]:
    """Whether the threshold between two classes is fitted."""
    return setting == "auto" and isinstance(target, ClassTarget) and len(target.labels) == 2


def fitted_threshold(p: NDArray[np.float64], gold: NDArray[np.int64], rare: int) -> float | None:
    """The threshold with the highest macro-F1 on held-out rows, averaged over neighbouring
    thresholds; None if the rare class has too few rows, or nothing is gained. p (rows, 2)."""
    if p.shape[1] != 2 or (gold == rare).sum() < FEWEST:
        return None

    def score(threshold: float) -> float:
        guess = np.where(p[:, rare] >= threshold, rare, 1 - rare)
        return float(macro_f1(class_counts(gold, guess, 2)))

    scores = np.array([score(threshold) for threshold in TRIED_THRESHOLDS])
    smooth = np.convolve(np.pad(scores, 2, mode="edge"), np.ones(5) / 5, "valid")
    best = int(np.argmax(smooth))
    return float(TRIED_THRESHOLDS[best]) if smooth[best] > score(0.5) + WORTH else None


def cross_fitted_threshold(x: Tensor, y: Tensor, rare: int, ridge: float = RIDGE) -> float | None:
    """The threshold for a linear model's probabilities of training rows, by cross-validation. The
    validation part of a small table has too few rows of the minority class to fit a threshold;
    the training part has eight times as many. x (rows, n), y (rows,)."""
    if (y == rare).sum() < FEWEST:
        return None
    folds = torch.empty_like(y)
    for label in range(2):
        is_label = y == label
        folds[is_label] = torch.arange(int(is_label.sum())) % FOLDS  # each class in equal shares
    p = torch.zeros(len(y), 2, dtype=torch.float64)
    for fold in range(FOLDS):
        in_fold = folds == fold
        linear = Regression(x.shape[1], 2, "softmax").double()
        p[in_fold] = linear.solve(x[~in_fold], y[~in_fold], ridge).answers(x[in_fold]).detach()
    return fitted_threshold(p.numpy(), y.numpy(), rare)


class SupervisedGraph(nn.Module):
    """The exported graph: z of each network, mixed with z of the linear model or divided by the
    temperature, then the target's answer."""

    def __init__(
        self,
        members: Sequence[nn.Module],
        learned: Learned,
        read: InputQuestion,
        linear: LinearQuestion | None,
        answers: nn.Module,
    ) -> None:
        super().__init__()
        self.members, self.answers = nn.ModuleList(members), answers
        self.learned, self.read = learned, read
        self.linear = None if linear is None else linear.scores
        inputs = (*read.inputs, *(() if linear is None else linear.inputs))
        self.names = [graph_input.name for graph_input in inputs]

    def forward(self, *values: Tensor) -> Any:
        named = dict(zip(self.names, values, strict=True))
        batch = self.read.batch(named)
        outputs = [network.scores(batch) for network in self.members]  # type: ignore[operator]
        linear = None if self.linear is None else self.linear(named)
        return self.answers(self.learned.combined(outputs, linear))


def exported(task: Supervised[Any], model: SupervisedModel) -> Exported:
    learned = model.learned
    whole: Exported | None = learned.input.exported(model)
    if whole is not None:
        return whole
    read = learned.input.question(model)
    linear = None
    if learned.mixed_linear is not None:
        linear = learned.mixed_linear.question(model)
        if linear is None:
            raise refuse("ngrams", task.name)
    target = learned.target.answering()
    members, graphs = learned.input.members(model)
    network = SupervisedGraph(members, learned, read, linear, target.answers)
    inputs = (*read.inputs, *(() if linear is None else linear.inputs))
    steps = (*read.steps, *(() if linear is None else linear.steps))
    graph = Graph("model", network, inputs, target.outputs)
    return Exported(task.name, (graph, *graphs), steps, target.after, read.piecewise)


AUTO = "auto"


class RowAverages(Averages):
    """Averages the answers of several networks, of one or several models. Outputs are z (rows,
    width) of each network, mixed with the linear model if there is one."""

    def outputs(self, part: Any, model: SupervisedModel) -> list[NDArray[Any]]:
        return _arrays(combined_outputs(part, model))

    def out_of_sample(self, validation: Any, model: SupervisedModel) -> list[NDArray[Any]]:
        """Outputs with linear scores of models that did not learn from these rows."""
        learned = model.learned
        if learned.out_of_sample is None:
            return self.outputs(validation, model)
        return _arrays(learned.combined(outputs_of(validation, model), learned.out_of_sample))

    def knows_validation(self, model: SupervisedModel) -> str:
        linear = model.learned.linear
        return "the linear model" if linear is not None and linear.knows_validation else ""

    def summary(self, validation: Any, model: SupervisedModel) -> Summary | None:
        if model.learned.out_of_sample is None:
            return super().summary(validation, model)
        outputs = tensors_of(self.out_of_sample(validation, model))
        return summary_of(evaluated(outputs, validation, model, NOTHING, held_out=True))

    def scores(self, outputs: Outputs, validation: Any, model: SupervisedModel) -> dict[str, float]:
        target = model.learned.target
        y = torch.as_tensor(target.encode(model.learned.input.labelled(validation)))
        return target.mean_score(tensors_of(outputs), y, model.train.watch)

    def answers(
        self, outputs: Outputs, part: Any, model: SupervisedModel, options: RequestOptions
    ) -> list[Any]:
        return model.learned.target.answers(tensors_of(outputs), options)

    def evaluate(
        self, outputs: Outputs, part: Any, model: SupervisedModel, options: RequestOptions
    ) -> Evaluation:
        return evaluated(tensors_of(outputs), part, model, options)


class Supervised(RowTask[S, Learned]):
    """A task from a row to a class, several labels or a number. input: the kind of input;
    target_kinds: possible kinds of targets, default first; joins: combination of several inputs, if
    supported."""

    input: Input
    target_kinds: ClassVar[tuple[str, ...]]
    classes: ClassVar[bool] = False  # whether labels are always classes, at least two
    averages: Averages = RowAverages()

    def input_of(self, model: AnyModel) -> Input:
        """The input of a model."""
        several = None if self.joins is None else self.joins.input_of(model.roles)
        return self.input if several is None else several

    def target_kind(self, train: Any, settings: S) -> str:
        """The kind of target: from the settings, or the one that fits the labels."""
        kind = str(getattr(settings, "target", self.target_kinds[0]))
        return target_kind(train) if kind == AUTO else kind

    # ------------------------------------------------------------- read
    def share(self, model: AnyModel, target: Target) -> Share:
        """The mixture with the linear model; None if only networks answer."""
        return (
            None if target.mixture is None else self.input_of(model).share(model.settings, target)
        )

    def reader(self, model: AnyModel) -> DatasetReader[Any]:
        return self.input_of(model).reader(model)

    def fitted_settings(self, train: Any, model: SupervisedModel) -> Recipe:
        """A watched score of this target, if the default belongs to another kind of target."""
        kind = self.target_kind(train, model.settings)
        names = [metric.name for metric in TARGETS[kind].metrics]
        watched = model.train.watch in names
        return Recipe() if watched else Recipe({"train": {"watch": names[0]}})

    def search_space(self, train: Any, model: SupervisedModel) -> Space:
        if self.joins is not None and model.inputs:
            return self.joins.space(model)
        space = Task.search_space(self, train, model)
        return text_space(space, train) if isinstance(train, Part) else space

    # ------------------------------------------------------------- learned
    def learn(self, train: Any, validation: Any, model: SupervisedModel) -> Learned:
        settings = model.settings
        reads = self.input_of(model)
        read = reads.learn(train, model)
        target = TARGETS[self.target_kind(train, settings)].learn(train, settings)
        linear = read.linear(train, validation, target, model)
        learned = Learned(read, target)
        if linear is not None:
            share = self.share(model, target)
            if share is not None and (why := target.why_not_mixed()):
                raise OptionError(why)
            mixture = None if share is None else target.first_mixture(share)
            learned = replace(
                learned, linear=linear.model, out_of_sample=linear.out_of_sample, mixture=mixture
            )
        return replace(learned, target=_with_threshold(learned, train, validation, model))

    def build(self, model: SupervisedModel) -> nn.Module:
        learned = model.learned
        head = learned.target.head(model.settings)
        side = learned.input.side(model, head.classes)
        return SupervisedNetwork(learned.input.encoder(model), head, side)

    def labelled_rows(self, part: Any, model: SupervisedModel) -> LabelledRows:
        """A part, encoded for the training loop."""
        read, target = model.learned.input, model.learned.target
        units = read.unit_targets(part, target)
        targets = target.encode(read.labelled(part)) if units is None else units
        return LabelledRows(read.encode(part, model), targets)

    def source(self, train: Any, model: SupervisedModel, seed: int) -> SequenceSource:
        rows = self.labelled_rows(train, model)
        budget = self.input_of(model).budget(model.settings)
        if not budget.tokens:  # all rows at once
            budget = budget._replace(tokens=max(int(rows.lengths.sum()), 1))
        return SequenceSource(
            rows, train.names, seed=seed, budget=budget.tokens, most_rows=budget.rows
        )

    def validation(
        self, network: nn.Module, part: Any, model: SupervisedModel
    ) -> ColumnScores[LabelledRows]:
        def score(rows: LabelledRows) -> dict[str, float]:
            z = network_outputs(network, rows.inputs, self._at_once(model))
            return model.learned.target.score(z, rows.row_targets, model.train.watch)

        return ColumnScores(score, self.labelled_rows(part, model))

    def _at_once(self, model: SupervisedModel) -> int:
        return self.input_of(model).answer_budget(model.settings)

    @torch.no_grad()
    def calibrate(self, validation: Any, model: SupervisedModel) -> Learned:
        """Fits the weights of the mixture, or a temperature, to the validation part."""
        learned, target = model.learned, model.learned.target
        y = torch.as_tensor(target.encode(learned.input.labelled(validation)))
        outputs, linear = outputs_of(validation, model), None
        if learned.mixture is None:
            learned = replace(learned, temperature=target.temperature(outputs, y))
        else:
            assert learned.linear is not None
            linear, guess = learned.out_of_sample, FEW_TEXTS
            if linear is None:
                linear, guess = learned.linear.scores(validation), FIRST
            if self.share(model, target) == "fitted":
                mixture = target.fitted_mixture(outputs, linear, y, guess)
                learned = replace(learned, mixture=mixture)
        if is_tuned(target, threshold_setting(model)) and (y == target.rare).sum() >= ENOUGH:
            p = target.probabilities(learned.combined(outputs, linear))
            threshold = fitted_threshold(p, y.numpy(), target.rare)
            learned = replace(learned, target=replace(target, threshold=threshold))
        return learned

    # ------------------------------------------------------------- asked
    def answer_shape(self, model: SupervisedModel) -> AnswerShape:
        target = model.learned.target
        return AnswerShape(target.answer_names, decision=target.decision_lines)

    def answers(
        self, part: Any, model: SupervisedModel, options: RequestOptions = NOTHING
    ) -> list[Any]:
        if not len(part):
            return []
        return [*self.averages.answers(self.averages.outputs(part, model), part, model, options)]

    def evaluate(
        self, part: Any, model: SupervisedModel, options: RequestOptions = NOTHING
    ) -> Evaluation:
        alone = outputs_of(part, model)
        linear = linear_scores(part, model)
        combined = model.learned.combined(alone, linear)
        others = {NETWORK_ALONE: alone} if model.learned.mixture is not None else {}
        return evaluated(combined, part, model, options, others)

    # ------------------------------------------------------------- kept, looked at
    def exported(self, model: SupervisedModel) -> Exported:
        return exported(self, model)

    def pack(self, learned: Learned) -> Packed:
        return learned.pack()

    def unpack(self, saved: Saved, model: SupervisedModel) -> Learned:
        reads = self.input_of(model)
        read = reads.unpack(saved, model)

        def mixture_of(learned: Learned) -> type[Mixture] | None:
            mixed = learned.linear is not None and self.share(model, learned.target) is not None
            return learned.target.mixture if mixed else None

        return unpacked(
            Learned,
            saved,
            settings=model.settings,
            input=read,
            targets=TARGETS,
            linear_of=lambda target: reads.unpack_linear(saved, read, target, model),
            mixture_of=mixture_of,
        )

    def describe(self, model: SupervisedModel) -> str:
        network = self.input_of(model).describe(model.settings)
        if not model.fitted or model.learned.mixture is None:
            return network
        return f"{network}, together with a linear model: {model.learned.mixture}"

    def facts(self, model: SupervisedModel) -> list[str]:
        read, target = model.learned.input, model.learned.target.describe()
        lines = [f"{fact} → {target}" if (fact := read.fact()) else target]
        for number, network in enumerate(model.networks, 1):
            which = f" by network {number}" if len(model.networks) > 1 else ""
            lines += [f"{line}{which}" for line in read.encoder_facts(network.reader)]
        return lines


def threshold_setting(model: SupervisedModel) -> Any:
    return getattr(model.settings, "threshold", None)


def _with_threshold(
    learned: Learned, train: Any, validation: Any, model: SupervisedModel
) -> Target:
    """The target with the threshold of the settings. If the threshold is fitted and the validation
    part has too few rows of the minority class, it is fitted to the training part."""
    target, setting = learned.target, threshold_setting(model)
    if isinstance(target, ClassTarget) and isinstance(setting, float):
        return replace(target, threshold=setting)
    if not is_tuned(target, setting):
        return target
    if (target.encode(learned.input.labelled(validation)) == target.rare).sum() >= ENOUGH:
        return target
    features = learned.input.features(train, model)
    if features is None:
        return target
    y = torch.from_numpy(target.encode(train))
    return replace(target, threshold=cross_fitted_threshold(features, y, target.rare))


def run_network(network: nn.Module, part: Any, model: SupervisedModel) -> Tensor:
    """Runs a network over the rows of a part."""
    task = model.task
    assert isinstance(task, Supervised)
    inputs = model.learned.input.encode(part, model)
    return network_outputs(network, inputs, task.input_of(model).answer_budget(model.settings))


# --- outputs --------------------------------------------------------------------------------------


@torch.no_grad()
def outputs_of(part: Any, model: AnyModel) -> list[Tensor]:
    """z (rows, width) of each network, unmixed."""
    task = model.task
    assert isinstance(task, Supervised)
    reads = task.input_of(model)
    networks = model.networks
    if reads.exact:
        networks = [deepcopy(network).double() for network in networks]
    inputs, tokens = model.learned.input.encode(part, model), reads.answer_budget(model.settings)
    return [network_outputs(network, inputs, tokens) for network in networks]


@torch.no_grad()
def linear_scores(part: Any, model: AnyModel) -> Tensor | None:
    """z of the linear model, if it contributes to answers."""
    linear = model.learned.mixed_linear
    return None if linear is None else linear.scores(part)


def combined_outputs(part: Any, model: AnyModel) -> list[Tensor]:
    """z of each network, mixed with the linear model or divided by the temperature."""
    learned: Learned = model.learned
    return learned.combined(outputs_of(part, model), linear_scores(part, model))


@torch.no_grad()
def evaluated(
    outputs: Sequence[Tensor],
    part: Any,
    model: SupervisedModel,
    options: RequestOptions,
    others: Mapping[str, Sequence[Tensor]] | None = None,
    held_out: bool = False,
) -> Evaluation:
    """The evaluation of a part.

    outputs: outputs of the combined model; others: z of other networks by name, to compare with;
    held_out: the part is the validation part. The linear model has learned from that part, so the
    linear scores come from models that had not seen it."""
    learned = model.learned
    baselines = dict[str, Tensor]()
    if learned.linear is not None:
        linear = learned.out_of_sample if held_out else None
        scores = learned.linear.scores(part) if linear is None else linear
        baselines[learned.linear.name] = scores
    for name, several in (others or {}).items():
        baselines[name] = learned.target.mean_of(several)
    show_row: Callable[[int], tuple[str, str]] = learned.input.row_texts(part)
    rows = learned.input.labelled(part)
    return learned.target.evaluate(
        TargetOutputs(outputs, baselines, rows, show_row, model.train.seed, options)
    )


def _arrays(outputs: Iterable[Tensor]) -> list[NDArray[Any]]:
    return [z.numpy() for z in outputs]


def tensors_of(outputs: Outputs) -> list[Tensor]:
    return [torch.from_numpy(np.asarray(z)) for z in outputs]
