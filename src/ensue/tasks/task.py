"""`Task`: the description of a task. Every command is written once, over this."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from torch import nn

from ensue.errors import DataError
from ensue.metrics.table import Metric
from ensue.settings import Table
from ensue.tasks.abilities import NOTHING, Abilities, RequestOptions
from ensue.tasks.codec import Packed, packed, unpacked
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.exported import Exported, refuse
from ensue.tasks.options import Option
from ensue.tasks.reader import DatasetReader, P
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Space
from ensue.tasks.search.usual import usual_space
from ensue.tasks.splits import HashSplit, Split
from ensue.tasks.transfer.ability import Refuses, Transfers
from ensue.training import Source, Validation

if TYPE_CHECKING:
    from ensue.tasks.model import Model

S = TypeVar("S", bound=Table)  # the [model] table
L = TypeVar("L")  # everything learned except the weights


@dataclass(frozen=True)
class Recipe:
    """Defaults that follow from the training part, by table and key; why: a line with the choice
    and its reason; empty: not logged."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True)
class AnswerShape:
    """The shape of answers. columns: the columns that answers add to a data frame, () if these
    depend on the answers; time: the first column of answers that do not belong to rows; decision: a
    description of how answers are chosen, if the options of a question change it."""

    columns: tuple[str, ...] = ()
    time: str = ""
    decision: Callable[[RequestOptions], list[str]] = lambda options: []


@dataclass(frozen=True)
class Solved:
    """The result of a family that is solved instead of trained."""

    networks: list[nn.Module]
    reason: str
    scores: Mapping[str, float]


class Family(ABC, Generic[S]):
    """One kind of network of a task: a row of its `families`."""

    solved: ClassVar[bool] = False  # solved directly, by counting or by linear algebra

    @abstractmethod
    def build(self, model: Model[S, Any, Any]) -> nn.Module:
        """A network with fresh weights, drawn from torch's generator."""

    @abstractmethod
    def describe(self, settings: S) -> str:
        """A short description: "2 × LSTM of 200"."""

    def solve(self, train: Any, validation: Any, model: Model[S, Any, Any]) -> Solved:
        """The networks of a solved family."""
        raise AssertionError(f"{type(self).__name__} is called solved, and no solve says how")


class Task(Abilities, ABC, Generic[S, P, L]):
    """A task. The first line of a subclass's docstring describes it to users.

    name: its name on the command line and in files; settings: its [model] table; text_defaults,
    train_defaults: keys of other tables with a different default for this task; metrics: reported
    on validation, the first is watched; families: the families by the value of `model.family`;
    options: its own command-line options; columns: roles of columns in Python, fit(frame,
    text="review"), with the setting that each stands for; estimators: its classes in
    `ensue.sklearn`; evaluation_class: the result of `evaluate`."""

    name: ClassVar[str]
    settings: type[S]
    text_defaults: ClassVar[Mapping[str, Any]] = {}
    train_defaults: ClassVar[Mapping[str, Any]] = {}
    metrics: ClassVar[tuple[Metric, ...]]
    families: Mapping[str, Family[S]] = {}
    options: ClassVar[tuple[Option, ...]] = ()
    columns: ClassVar[Mapping[str, str]] = {"text": "data.text", "label": "data.label"}
    estimators: ClassVar[tuple[str, ...]] = ()
    compared_on: ClassVar[tuple[str, ...]] = ("data",)  # tables and keys that must be the same
    ranges: ClassVar[Space] = {}  # that `select` searches, in addition to those that tasks share
    # Settings that `select` tries right after the default, by key, because they did well on other
    # data.
    favourites: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    ranked_by: ClassVar[str] = ""  # score by which models are ranked; "": the watched one
    # Settings of recipes other than `quick` and `best`, by the recipe's name.
    more_recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    split: ClassVar[Split] = HashSplit()
    adapts: ClassVar[bool] = False  # whether `fitted_settings` says anything
    inputs_alone: ClassVar[bool] = False  # whether an input may contain its label
    needs_input: ClassVar[bool] = True  # False: without files, answers continue the training data
    evaluation_class: ClassVar[type[Evaluation]] = Evaluation
    transfers: ClassVar[Transfers] = Refuses()  # its encoder, to and from other models

    learned_class: type[L]
    model_class: type[Model[S, P, L]]  # its public name; set by the class that names this task

    @property
    def sentence(self) -> str:
        return (self.__doc__ or "").partition("\n")[0]

    # ------------------------------------------------------------- recognised
    def recognise(self, sample: Sample) -> Guess | DataError | None:
        """This task's reading of the data, and why; raises an error for data that fit only this
        task but have a fault; None for data of other tasks."""
        return None

    @abstractmethod
    def infer(self, sample: Sample) -> Guess:
        """The settings inferred from the data, for a task that the user named; an error says what
        is missing."""

    # ------------------------------------------------------------- read
    @abstractmethod
    def reader(self, model: Model[S, P, L]) -> DatasetReader[Any]:
        """The reader for the rows of a model."""

    def fitted_settings(self, train: P, model: Model[S, P, L]) -> Recipe:
        """Defaults for a training part of this size, lengths and classes. Values that the user gave
        stay; the rest is taken over and written to the configuration."""
        return Recipe()

    def search_space(self, train: P, model: Model[S, P, L]) -> Space:
        """What `select` searches for a training part like this one, around the model's settings."""
        return {**usual_space(self), **self.ranges}

    # ------------------------------------------------------------- learned
    def announcement(self, step: str, settings: S) -> str:
        """A note before `learn` or `calibrate`, if it may take long. step: its name."""
        return ""

    @abstractmethod
    def learn(self, train: P, validation: P, model: Model[S, P, L]) -> L:
        """Learns vocabularies, scales, labels and baselines from the training part only; the
        validation part serves for choices."""

    def build(self, model: Model[S, P, L]) -> nn.Module:
        """A network with fresh weights, drawn from torch's generator."""
        return _family(self, model).build(model)

    @abstractmethod
    def source(self, train: P, model: Model[S, P, L], seed: int) -> Source:
        """The training part in batches, whose order follows from the seed."""

    @abstractmethod
    def validation(self, network: nn.Module, part: P, model: Model[S, P, L]) -> Validation:
        """The scores of one network, by `metrics`."""

    def calibrate(self, validation: P, model: Model[S, P, L]) -> L:
        """The learned values, after fitting mixture and interval widths to the validation part."""
        learned: L = model.learned
        return learned

    # ------------------------------------------------------------- answers
    @abstractmethod
    def answers(
        self, part: P, model: Model[S, P, L], options: RequestOptions = NOTHING
    ) -> Sequence[Any]:
        """One answer per row, from all members together. An answer is a dataclass with
        `as_line(shown)`, and with `as_row()` if a data frame should have other columns than its
        fields."""

    def answer_shape(self, model: Model[S, P, L]) -> AnswerShape:
        """The shape of a model's answers, known before there are any."""
        return AnswerShape()

    @abstractmethod
    def evaluate(
        self, part: P, model: Model[S, P, L], options: RequestOptions = NOTHING
    ) -> Evaluation:
        """Evaluation against gold labels."""

    # ------------------------------------------------------------- saved, exported, described
    def pack(self, learned: L) -> Packed:
        """The learned values in the form of files."""
        return packed(learned)

    def unpack(self, saved: Saved, model: Model[S, P, L]) -> L:
        """The inverse of `pack`."""
        return unpacked(self.learned_class, saved, settings=model.settings)

    def exported(self, model: Model[S, P, L]) -> Exported:
        """The exported form: the network with named inputs and outputs, and the steps around it; an
        error names what cannot be exported."""
        raise refuse("task", self.name)

    def describe(self, model: Model[S, P, L]) -> str:
        """The network in a few words."""
        return _family(self, model).describe(model.settings)

    def facts(self, model: Model[S, P, L]) -> list[str]:
        """Lines on a fitted model, next to its size."""
        return []


def family_of(task: Task[Any, Any, Any], settings: Any) -> Family[Any] | None:
    """The family of [model] settings; None if the task has one kind of network."""
    name = getattr(settings, "family", None)
    return task.families.get(name, None) if name else None


def is_solved(task: Task[Any, Any, Any], settings: Any) -> bool:
    """Whether the family is solved directly instead of trained."""
    family = family_of(task, settings)
    return family is not None and family.solved


def _family(task: Task[S, Any, Any], model: Model[S, Any, Any]) -> Family[Any]:
    family = family_of(task, model.settings)
    assert family is not None
    return family
