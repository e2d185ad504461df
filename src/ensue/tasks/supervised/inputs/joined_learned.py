"""The learned part of several inputs: the joined vector, and a linear model for each input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.ragged import Ragged
from ensue.settings import Table
from ensue.tasks.baselines.regression import KINDS, minimise
from ensue.tasks.codec import Packed, packed
from ensue.tasks.declarations import Derived, SavedAs, Shape
from ensue.tasks.exported import BATCH, Graph, Rounding, Step
from ensue.tasks.exported import Input as GraphInput
from ensue.tasks.pictures.part import PicturePart
from ensue.tasks.rows.part import Names, Numbers, Tokenisers
from ensue.tasks.rows.source import Encoded
from ensue.tasks.saved import Saved
from ensue.tasks.settings import TextSettings
from ensue.tasks.supervised.learned import (
    FittedLinear,
    InputQuestion,
    Learned,
    LearnedInput,
    Linear,
    LinearQuestion,
    Named,
    Occlusions,
    joined_pack,
)
from ensue.tasks.supervised.network import Cost, InputEncoder, SupervisedNetwork, Whole
from ensue.tasks.targets.target import Target

if TYPE_CHECKING:
    from ensue.tasks.any_model import ModelView

PREFIX = "inputs"  # prefix of the names of one input
SEVERAL = "linear model"  # name of all linear models in evaluations
DOUBT = 0.5  # weight of Σ (log w/w₀)² and Σ b²
FOLDS = 5


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JoinedPart:
    """Rows of several inputs: a part for each, by name, with the same rows and labels.

    labels, names, numbers, unlabelled: the same as in a part of one input."""

    parts: Mapping[str, Any]
    labels: Ragged | None
    names: Names
    numbers: Numbers
    unlabelled: str = ""

    def __len__(self) -> int:
        return len(self.names.line)

    def take(self, rows: NDArray[np.int64]) -> JoinedPart:
        """The rows with these indices."""
        return replace(
            self,
            parts={name: part.take(rows) for name, part in self.parts.items()},
            labels=None if self.labels is None else self.labels.take(rows),
            names=self.names.take(rows),
        )


def stacked(parts: Sequence[Any]) -> Any:
    """The rows of parts of one input, without labels."""
    first = parts[0]
    names = Names(
        first.names.files,
        np.concatenate([part.names.file for part in parts]),
        np.concatenate([part.names.line for part in parts]),
    )
    if isinstance(first, PicturePart):
        pixels = np.concatenate([part.pixels for part in parts])
        return replace(first, pixels=pixels, labels=None, names=names)
    lengths = np.concatenate([part.inputs.lengths for part in parts])
    values = np.concatenate([part.inputs.values for part in parts])
    inputs = Ragged(values, np.concatenate([[0], np.cumsum(lengths)]))
    return replace(first, inputs=inputs, labels=None, names=names)


@dataclass(frozen=True)
class JoinedRows:
    """Encoded rows of every input. unit: cost of a step of each input."""

    inputs: Sequence[Encoded]
    units: Sequence[int]

    def __len__(self) -> int:
        return len(self.inputs[0])

    @property
    def lengths(self) -> Whole:
        """The costs of the inputs added up; shape (rows,)."""
        each = [unit * rows.lengths for rows, unit in zip(self.inputs, self.units, strict=True)]
        total: Whole = np.sum(each, axis=0)
        return total

    def take(self, rows: Whole) -> JoinedRows:
        return JoinedRows([each.take(rows) for each in self.inputs], self.units)

    def arrays(self) -> Mapping[str, Any]:
        return {
            f"{number}.{name}": values
            for number, rows in enumerate(self.inputs)
            for name, values in rows.arrays().items()
        }

    def batch(self, rows: Sequence[int] | Whole) -> list[Any]:
        return [each.batch(rows) for each in self.inputs]


# --- one of several ------------------------------------------------------------------------------


@dataclass(frozen=True)
class InputView:
    """The view of a model for one of its inputs, with the settings and the learned part of this
    input. unit: cost of a step in a batch."""

    of: ModelView
    name: str
    kind: str
    column: str
    settings: Table
    text: TextSettings
    unit: int = 1
    networks: tuple[nn.Module, ...] = ()
    pretrained: None = None
    beginning: None = None

    @property
    def task(self) -> Any:
        return self.of.task

    @property
    def train(self) -> Any:
        return self.of.train

    @property
    def fitted(self) -> bool:
        return self.of.fitted

    @property
    def roles(self) -> Mapping[str, Any]:
        return {"text": self.column} if self.kind == "text" else {}

    @property
    def inputs(self) -> Mapping[str, Any]:
        return {}

    @property
    def encoders(self) -> list[nn.Module]:
        """The encoder of this input, for each member."""
        place = list(self.of.learned.input.inputs).index(self.name)
        return [encoders_of(network)[place] for network in self.of.networks]

    @property
    def learned(self) -> Learned:
        whole = self.of.learned
        linear = whole.linear.views.get(self.name) if whole.linear is not None else None
        return Learned(whole.input.inputs[self.name], whole.target, linear)


Views = Mapping[str, InputView]
ViewsOf = Callable[["ModelView"], Views]


# --- learned -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LearnedJoined(LearnedInput):
    """The learned part of each input, by name, in order. views: a function from a model to the view
    of each input."""

    by_unit: ClassVar[bool] = True

    inputs: Mapping[str, LearnedInput]
    views: ViewsOf

    @property
    def tokenisers(self) -> Tokenisers:
        raise AssertionError("each of several inputs has tokenisers of its own")

    def _each(self, model: ModelView) -> list[tuple[str, Any, Any]]:
        """The name, the learned part and the view of each input."""
        views = self.views(model)
        return [(name, learned, views[name]) for name, learned in self.inputs.items()]

    def encode(self, part: JoinedPart, model: ModelView) -> JoinedRows:
        each = self._each(model)
        return JoinedRows(
            [learned.encode(part.parts[name], view) for name, learned, view in each],
            [view.unit for _, _, view in each],
        )

    def encoder(self, model: ModelView) -> JoinedEncoder:
        return JoinedEncoder([learned.encoder(view) for _, learned, view in self._each(model)])

    def row_texts(self, part: JoinedPart) -> Callable[[int], tuple[str, str]]:
        each = [learned.row_texts(part.parts[name]) for name, learned in self.inputs.items()]

        def row_text(row: int) -> tuple[str, str]:
            texts = [text for _, text in (one(row) for one in each) if text]
            return part.names[row], " | ".join(texts)

        return row_text

    def linear(
        self, train: JoinedPart, validation: JoinedPart, target: Target, model: ModelView
    ) -> FittedLinear | None:
        """The linear model: each input's model is fitted separately, then their scores are weighted
        on rows that they did not learn from."""
        views, out_of_sample = dict[str, Linear](), list[Tensor]()
        for name, learned, view in self._each(model):
            fitted = learned.linear(train.parts[name], validation.parts[name], target, view)
            if fitted is None:
                continue
            views[name] = fitted.model
            scores = fitted.out_of_sample
            out_of_sample.append(
                fitted.model.scores(validation.parts[name]) if scores is None else scores
            )
        if not views:
            return None
        if len(views) == 1:
            return FittedLinear(JoinedLinear.alone(views, target), fitted.out_of_sample)
        y = torch.as_tensor(target.encode(validation))
        weights, bias = view_weights(out_of_sample, y, target.regression)
        return FittedLinear(
            JoinedLinear(views, weights, bias), crossed(out_of_sample, y, target.regression)
        )

    def remarks(self, train: JoinedPart, target: Target, model: ModelView) -> list[str]:
        return [
            f"{name}: {line}"
            for name, learned, view in self._each(model)
            for line in learned.remarks(train.parts[name], target, view)
        ]

    def fact(self) -> str:
        facts = [
            f"{name} ({fact})" if (fact := learned.fact()) else name
            for name, learned in self._named
        ]
        return f"{' + '.join(facts)}, side by side"

    @property
    def _named(self) -> list[tuple[str, LearnedInput]]:
        return list(self.inputs.items())

    def encoder_facts(self, encoder: JoinedEncoder) -> list[str]:
        return [
            f"{name}: {line}"
            for (name, learned), one in zip(self._named, encoder.readers, strict=True)
            for line in learned.encoder_facts(one)
        ]

    def occlusions(self, part: JoinedPart, model: ModelView) -> Occlusions:
        """The occlusions of each input, with the others unchanged."""
        each = self._each(model)
        by_name = {name: learned.occlusions(part.parts[name], view) for name, learned, view in each}
        present = {
            name: occlusions
            for name, occlusions in by_name.items()
            if occlusions is not None and occlusions.names
        }
        counts = [len(occlusions.names) for occlusions in present.values()]
        parts = {}
        for name, rows in part.parts.items():
            same = [rows.take(np.zeros(count, np.int64)) for count in counts]
            for k, other in enumerate(present):
                if other == name:
                    same[k] = present[name].part
            parts[name] = stacked(same)
        units = tuple(
            f"{name}: {unit}" for name, occlusions in present.items() for unit in occlusions.names
        )
        how = "; ".join(f"{name}: {occlusions.how}" for name, occlusions in present.items())
        again = part.take(np.zeros(sum(counts), np.int64))
        sizes = dict(zip(present, counts, strict=True))
        return Occlusions(units, how, replace(again, parts=parts, labels=None), sizes)

    # ------------------------------------------------------------- exported, kept
    def question(self, model: ModelView) -> InputQuestion:
        """A question is a row by column name: each input is read from its column."""
        each = self._each(model)
        questions = [(view, learned.question(view)) for _, learned, view in each]
        inputs = tuple(one for view, read in questions for one in prefixed(view.name, read.inputs))
        steps = tuple(of_input(view, read.steps, read.inputs) for view, read in questions)

        def batch(named: Named) -> list[Any]:
            return [read.batch(inner(view.name, named, read.inputs)) for view, read in questions]

        return InputQuestion(inputs, steps, batch)

    def members(self, model: ModelView) -> tuple[Sequence[nn.Module], tuple[Graph, ...]]:
        """The networks for an export. A tree has a separate graph, which runs first; the network
        takes its vectors."""
        graphs: tuple[Graph, ...] = ()
        members = list(model.networks)
        for place, (_, learned, view) in enumerate(self._each(model)):
            graph = learned.vectors_graph(view)
            if graph is None:
                continue
            graphs = (*graphs, graph)
            members = [deepcopy(network) for network in members]
            for number, network in enumerate(members):
                encoders = encoders_of(network)
                width = encoders[place].width
                assert isinstance(width, int)
                encoders[place] = FixedVector(number, width)
        return members, graphs

    def pack(self) -> Packed:
        return packed_by_name("learned_inputs", self.inputs)


def packed_by_name(key: str, parts: Mapping[str, LearnedInput | Linear]) -> Packed:
    """Packs the learned part of each input under its name. key: the key of the inputs' facts."""
    facts, known, arrays = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    for name, part in parts.items():
        of_part = part.pack()
        facts[name] = dict(of_part.facts)
        known |= {f"{PREFIX}.{name}.{key}": value for key, value in of_part.vocabularies.items()}
        arrays |= {f"{PREFIX}.{name}.{key}": value for key, value in of_part.arrays.items()}
    return Packed({key: facts}, known, arrays)


def saved_of(saved: Saved, name: str) -> Saved:
    """The saved part of one input."""
    begin = f"{PREFIX}.{name}."
    facts: dict[str, Any] = dict(saved.facts["learned_inputs"][name])
    facts |= saved.facts.get("linear_inputs", {}).get(name, {})

    def of_view(values: Mapping[str, Any]) -> dict[str, Any]:
        return {k.removeprefix(begin): v for k, v in values.items() if k.startswith(begin)}

    return replace(
        saved, facts=facts, vocabularies=of_view(saved.vocabularies), arrays=of_view(saved.arrays)
    )


# --- the network ---------------------------------------------------------------------------------


class JoinedEncoder(InputEncoder):
    """The concatenated vectors of all inputs: (rows, Σ width)."""

    def __init__(self, encoders: Sequence[InputEncoder]) -> None:
        super().__init__()
        self.readers = nn.ModuleList(encoders)
        self.width = sum(encoder.width for encoder in encoders)

    def forward(self, inputs: Sequence[Any]) -> Tensor:
        return torch.cat(self._vectors(inputs), -1)

    def _vectors(self, inputs: Sequence[Any]) -> list[Tensor]:
        dtype = torch.get_default_dtype()
        encoded = [
            encoder(batch_of_input)
            for encoder, batch_of_input in zip(self.readers, inputs, strict=True)
        ]
        return [vectors.to(dtype) for vectors in encoded]

    def begin(self, output: nn.Linear) -> None:
        if len(self.readers) == 1:
            self.readers[0].begin(output)  # type: ignore[operator]
        else:
            super().begin(output)

    def penalty(self, inputs: Sequence[Any], cost: Cost) -> Tensor | None:
        """The regularisers of all inputs; for each, the vectors of the others are constant."""
        total: Tensor | None = None
        for k, (encoder, batch_of_input) in enumerate(zip(self.readers, inputs, strict=True)):

            def beside(vectors: Tensor, k: int = k) -> Tensor:
                with torch.no_grad():
                    others = self._vectors(inputs)
                return cost(torch.cat([*others[:k], vectors, *others[k + 1 :]], -1))

            assert isinstance(encoder, InputEncoder)
            cost_of_input = encoder.penalty(batch_of_input, beside)
            if cost_of_input is not None:
                total = cost_of_input if total is None else total + cost_of_input
        return total


def encoders_of(network: nn.Module) -> nn.ModuleList:
    """The encoder of each input in a network of several inputs."""
    assert isinstance(network, SupervisedNetwork)
    assert isinstance(network.reader, JoinedEncoder)
    return network.reader.readers


class FixedVector(InputEncoder):
    """The vector of an input, computed by a separate graph, for one member."""

    def __init__(self, member: int, width: int) -> None:
        super().__init__()
        self.member, self.width = member, width

    def forward(self, inputs: Named) -> Tensor:
        return inputs[f"vector_{self.member}"]


# --- linear views --------------------------------------------------------------------------------


def view_weights(
    scores: Sequence[Tensor], y: Tensor, kind: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """w (views,) > 0 and b (outputs,) for which z = Σ w_v·z_v + b has the lowest cost on rows that
    the views did not learn from, plus ½·Σ (log w_v/w₀)² and ½·Σ b²: so that few rows change the
    weights only little from w₀ = 1/views. scores: z_v (rows, outputs) of each view; kind: the kind
    of cost, as in `Regression`."""
    views = torch.stack([z.double() for z in scores])
    count, rows, outputs = views.shape
    viewweights = ViewWeights(count, outputs)
    if rows and bool(views.isfinite().all()):
        goal = y.double() if y.is_floating_point() or y.ndim == 2 else y

        def cost() -> Tensor:
            prior = DOUBT * (viewweights.moved.square().sum() + viewweights.bias.square().sum())
            return KINDS[kind].cost(viewweights(views), goal).sum() + prior

        minimise(viewweights, cost)
    weights, bias = viewweights.weights.detach().numpy(), viewweights.bias.detach().numpy()
    return weights.copy(), bias.copy()


class ViewWeights(nn.Module):
    """z (views, rows, outputs) → Σ w_v·z_v + b (rows, outputs)."""

    def __init__(self, views: int, outputs: int) -> None:
        super().__init__()
        self.moved = nn.Parameter(torch.zeros(views, dtype=torch.float64))
        self.bias = nn.Parameter(torch.zeros(outputs, dtype=torch.float64))

    @property
    def weights(self) -> Tensor:
        return self.moved.exp() / len(self.moved)

    def forward(self, views: Tensor) -> Tensor:
        return (self.weights[:, None, None] * views).sum(0) + self.bias


def crossed(scores: Sequence[Tensor], y: Tensor, kind: str) -> Tensor:
    """z of each row, by weights fitted to the other folds."""
    folds = torch.arange(len(y)) % FOLDS
    z = torch.zeros(scores[0].shape, dtype=torch.float64)
    for fold in range(FOLDS):
        inside, outside = folds == fold, folds != fold
        weights, bias = view_weights([score[outside] for score in scores], y[outside], kind)
        z[inside] = weighted([score[inside] for score in scores], weights, bias)
    return z


def weighted(
    scores: Sequence[Tensor], weights: NDArray[np.float64], bias: NDArray[np.float64]
) -> Tensor:
    pairs = zip(weights.tolist(), scores, strict=True)
    return sum((w * z.double() for w, z in pairs), start=torch.from_numpy(bias))


@dataclass(frozen=True)
class JoinedLinear(Linear):
    """z = Σ w_v·z_v + b over the linear models z_v of the inputs, by name; a single model is
    unchanged.

    weights (views,), bias (outputs,): fitted to the validation part."""

    knows_validation: ClassVar[bool] = True

    views: Annotated[Mapping[str, Linear], Derived("views")]
    weights: Annotated[
        NDArray[np.float64], SavedAs("linear.weights"), Shape(lambda record: len(record.views))
    ]
    bias: Annotated[
        NDArray[np.float64],
        SavedAs("linear.bias"),
        Shape(lambda record: record.target.linear_width),
    ]

    @classmethod
    def alone(cls, views: Mapping[str, Linear], target: Target) -> JoinedLinear:
        return cls(views, np.ones(1), np.zeros(target.linear_width))

    @property
    def name(self) -> str:
        names = [view.name for view in self.views.values()]
        return names[0] if len(names) == 1 else SEVERAL

    def scores(self, part: JoinedPart) -> Tensor:
        each = [view.scores(part.parts[name]) for name, view in self.views.items()]
        return each[0] if len(each) == 1 else weighted(each, self.weights, self.bias)

    def rounded(self, rounding: Rounding) -> JoinedLinear:
        views = {name: view.rounded(rounding) for name, view in self.views.items()}
        return replace(self, views=views)

    def question(self, model: ModelView) -> LinearQuestion | None:
        views = model.learned.input.views(model)
        by_name = {name: linear.question(views[name]) for name, linear in self.views.items()}
        known = {name: question for name, question in by_name.items() if question is not None}
        if len(known) < len(by_name):
            return None
        inputs = tuple(one for n, question in known.items() for one in prefixed(n, question.inputs))
        steps = [
            of_input(views[n], question.steps, question.inputs)
            for n, question in known.items()
            if question.steps
        ]
        names = {
            name: [*model.learned.input.inputs[name].question(views[name]).inputs, *question.inputs]
            for name, question in known.items()
        }
        scores = [question.scores for question in known.values()]
        return LinearQuestion(inputs, tuple(steps), JoinedScores(names, scores, self))

    def pack(self) -> Packed:
        return joined_pack([packed(self), packed_by_name("linear_inputs", self.views)])


class JoinedScores(nn.Module):
    """Computes z of the linear models of all inputs from the inputs of an exported graph. names:
    the graph's inputs for each input of the model."""

    def __init__(
        self,
        names: Mapping[str, Sequence[GraphInput]],
        scores: Sequence[nn.Module],
        linear: JoinedLinear,
    ) -> None:
        super().__init__()
        self.names, self.scores = names, nn.ModuleList(scores)
        weights, bias = linear.weights, linear.bias
        self.weights = weights.tolist()
        self.register_buffer("bias", torch.tensor(bias, dtype=torch.float32))

    def forward(self, named: Named) -> Tensor:
        total: Any = self.bias
        pairs = zip(self.names.items(), self.scores, self.weights, strict=True)
        for (name, inputs), scores, weight in pairs:
            total = total + weight * scores(inner(name, named, inputs))
        scores_of_all: Tensor = total
        return scores_of_all


# --- export --------------------------------------------------------------------------------------


def _outer(name: str, axis: str | int) -> str | int:
    return f"{name}_{axis}" if isinstance(axis, str) and axis != BATCH else axis


def prefixed(name: str, inputs: Sequence[GraphInput]) -> tuple[GraphInput, ...]:
    """The inputs of a graph, with the name of their input as a prefix."""
    return tuple(
        GraphInput(
            f"{name}_{each.name}",
            tuple(_outer(name, axis) for axis in each.axes),
            f"{name}_{each.count}" if isinstance(each.count, str) else each.count,
            f"{name}_{each.steps_of}" if each.steps_of else "",
        )
        for each in inputs
    )


def inner(name: str, named: Named, inputs: Sequence[GraphInput]) -> dict[str, Tensor]:
    """The values of one input, by names without the prefix."""
    return {each.name: named[f"{name}_{each.name}"] for each in inputs}


def of_input(view: InputView, steps: Sequence[Step], inputs: Sequence[GraphInput]) -> Step:
    """An export step that runs the steps of one input. They read its column, or the whole row if it
    has none; the values in `gives` are then prefixed with the input's name."""
    return {
        "step": "input",
        "name": view.name,
        "column": view.column,
        "steps": list(steps),
        "gives": [each.name for each in inputs],
    }
