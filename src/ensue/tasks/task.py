"""`Task`: what a task says of itself. Every verb is written once, over this."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ensue.data.frames.origin import FILES, Origin
from ensue.data.rows import Tell
from ensue.data.settings import DataSettings
from ensue.data.split import by_share
from ensue.errors import ConfigError, DataError
from ensue.metrics.table import Metric
from ensue.settings import Table
from ensue.tasks.abilities import NOTHING as NOTHING
from ensue.tasks.abilities import Asked as Asked
from ensue.tasks.abilities import Averages as Averages
from ensue.tasks.abilities import Counts, Fills, Generates
from ensue.tasks.abilities import Deals as Deals
from ensue.tasks.abilities import Draws as Draws
from ensue.tasks.abilities import Explains as Explains
from ensue.tasks.abilities import Explanation as Explanation
from ensue.tasks.abilities import Unlabelled as Unlabelled
from ensue.tasks.codec import Packed, packed, unpacked
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.exported import Exported, Rounding, refuse
from ensue.tasks.options import Option
from ensue.tasks.recipes import usual_recipes
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Space
from ensue.tasks.search.usual import usual_space
from ensue.tasks.transfer.ability import Refuses, Transfers
from ensue.training import Source, Validation

if TYPE_CHECKING:
    from ensue.tasks.model import Model

HELD_OUT = 0.1  # of the rows, where no validation is given


class RowNames(Protocol):
    """Where each row comes from."""

    def __getitem__(self, row: int) -> str: ...


class AnyPart(Protocol):
    """Rows that belong together, as arrays: what a task reads, learns from and answers."""

    @property
    def names(self) -> RowNames: ...

    def __len__(self) -> int: ...

    def take(self, rows: NDArray[np.int64]) -> Self: ...


S = TypeVar("S", bound=Table)  # the [model] table
P = TypeVar("P", bound=AnyPart)  # rows as arrays
L = TypeVar("L")  # what was learned beside the weights
P_co = TypeVar("P_co", bound=AnyPart, covariant=True)


class PartFiles(Protocol[P_co]):
    """The parts of a run's files."""

    @property
    def rejected(self) -> int:
        """Rows of the last part that were left out."""
        ...

    def part(self, name: str, like: Any = None) -> P_co:
        """train, validation or test. like: the training part, whose tokenisers, numbers or shape
        the others share; a fitted model's own take its place."""
        ...


@dataclass(frozen=True)
class Questions(Generic[P]):
    """Rows that answers are wanted for. shown: each as the answer is shown beside it; None where
    answers are not those of rows."""

    part: P
    shown: Sequence[Any] | None = None


@dataclass(frozen=True)
class Recipe:
    """Defaults that follow from the training part, by table and key; why: a line that says what
    was chosen and for which reason, "" where nobody need know."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True)
class Solved:
    """What a family that is solved rather than trained has found."""

    networks: list[nn.Module]
    reason: str
    scores: Mapping[str, float]


class Family(ABC, Generic[S]):
    """One kind of network of a task: a row of its `families`."""

    solved: ClassVar[bool] = False  # found in one go, by counting or by linear algebra

    @abstractmethod
    def build(self, model: Model[S, Any, Any]) -> nn.Module:
        """A network with fresh weights, drawn from torch's generator."""

    @abstractmethod
    def describe(self, settings: S) -> str:
        """In a few words: "2 × LSTM of 200"."""


class Task(ABC, Generic[S, P, L]):
    """A task. Its first docstring line is its one sentence.

    name: on the command line and in files; settings: its [model] table; text_defaults,
    train_defaults: keys of the other tables whose default is another one here; metrics: what
    validation reports, the first is watched; families: by the value of `model.family`; options:
    its own words on the command line; columns: the roles that columns of its data have in Python,
    fit(frame, text="review"), and the setting that each stands for; estimators: its classes in
    `ensue.sklearn`; evaluation_class: what `evaluate` gives."""

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
    ranges: ClassVar[Space] = {}  # that `select` searches, beside those that tasks share
    # What `select` tries right after the default: settings that did well on other data, by key.
    favourites: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    ranked_by: ClassVar[str] = ""  # what models are ranked by; "": the score that they watch
    adapts: ClassVar[bool] = False  # whether `fitted_settings` says anything
    inputs_alone: ClassVar[bool] = False  # whether an input may have its label inside of it
    needs_input: ClassVar[bool] = True  # False: without files, answers continue the training data
    evaluation_class: ClassVar[type[Evaluation]] = Evaluation
    explains: ClassVar[Explains | None] = None
    heads: ClassVar[Explains | None] = None  # where the heads of a Transformer look
    draws: ClassVar[Draws | None] = None
    deals: ClassVar[Deals | None] = None
    averages: ClassVar[Averages | None] = None
    unlabelled: ClassVar[Unlabelled | None] = None
    generates: ClassVar[Generates | None] = None
    fills: ClassVar[Fills | None] = None
    counts: ClassVar[Counts | None] = None
    transfers: ClassVar[Transfers] = Refuses()  # its encoder, to other models and from them

    learned_class: type[L]
    model_class: type[Model[S, P, L]]  # its public name; set by the class that names this task

    @property
    def sentence(self) -> str:
        return (self.__doc__ or "").partition("\n")[0]

    # ------------------------------------------------------------- recognised
    def recognise(self, sample: Sample) -> Guess | None:
        """Whether the data look like this task, and why; None where they do not."""
        return None

    def problem(self, sample: Sample) -> DataError | None:
        """What keeps data from this task that are hardly for any other; None where nothing does."""
        return None

    @abstractmethod
    def infer(self, sample: Sample) -> Guess:
        """The task was named: what the data tell of its settings; an error names what is not."""

    def split_line(self, data: DataSettings, settings: S) -> str:
        """By what the files are split, as a line for the person who reads it."""
        return data.split_line(self.unit)

    unit: ClassVar[str] = "each row"  # what a split takes apart
    calibrating: ClassVar[str] = ""  # said before `calibrate`, where it may take long

    def learning(self, settings: S) -> str:
        """Said before `learn`, where it may take long."""
        return ""

    def moves_with_files(self, data: DataSettings) -> bool:
        """Whether a row's part depends on its place in the file, not on its content."""
        return False

    def input_tables(
        self, data: DataSettings, given: Mapping[str, Any], shared: Mapping[str, Any]
    ) -> Mapping[str, Table]:
        """The settings of each of several inputs, by its name; {} of one alone. given: the tables
        [inputs.NAME]; shared: keys of [text] and [model] that were given."""
        if given:
            raise ConfigError(
                "inputs: expected no tables of inputs where one is read alone, got "
                f"{', '.join(f'[inputs.{name}]' for name in given)}; several are named by a list "
                "in data.text, by data.image or data.tree"
            )
        return {}

    # ------------------------------------------------------------- read
    @abstractmethod
    def files(
        self,
        data: DataSettings,
        model: Model[S, P, L],
        on_bad_row: Tell | None = None,
        origin: Origin = FILES,
    ) -> PartFiles[P]:
        """The parts of files. on_bad_row: callback for rejected rows; origin: what the rows are
        read from, a data frame where it is not files."""

    @abstractmethod
    def given(
        self,
        rows: Any,
        model: Model[S, P, L],
        columns: Mapping[str, str],
        before: P | None = None,
    ) -> P:
        """Rows in memory, with what is to be learned. columns: roles by name; before: the part
        that the rows come after, whose tokenisers and numbers they share."""

    @abstractmethod
    def asked(self, inputs: Any, model: Model[S, P, L], asked: Asked = NOTHING) -> P:
        """Inputs in memory that answers are wanted for."""

    @abstractmethod
    def asked_files(
        self,
        paths: Sequence[str],
        data: DataSettings,
        model: Model[S, P, L],
        asked: Asked = NOTHING,
        on_bad_row: Tell | None = None,
        origin: Origin = FILES,
    ) -> Iterator[Questions[P]]:
        """The rows of files, or of another origin, that answers are wanted for, some at a time."""

    def question_keys(self, origin: Origin) -> tuple[str, ...]:
        """The keys of [data] whose columns a question needs."""
        return ("text",)

    def asked_lines(self, lines: Sequence[str], model: Model[S, P, L]) -> P:
        """Lines of the standard input."""
        return self.asked(list(lines), model)

    def shown_line(self, line: str) -> Any:
        """What of such a line is shown beside its answer."""
        return line

    def hold_out(self, part: P, model: Model[S, P, L]) -> tuple[P, P]:
        """A tenth of the rows as the validation part, where none is given."""
        shares = {"train": 1 - HELD_OUT, "validation": HELD_OUT}
        split = by_share(len(part), shares, model.train.seed)
        return part.take(split["train"]), part.take(split["validation"])

    def known_rows(self, train: P, held: P, model: Model[S, P, L]) -> NDArray[np.int64] | None:
        """The rows of `held` that can be answered by what training has; None: all."""
        return None

    def check(self, part: P, name: str) -> None:
        """An error where a part cannot be learned from or evaluated."""

    @property
    def recipes(self) -> Mapping[str, Mapping[str, Any]]:
        """Settings by their full keys for less and for more effort than the default: `quick`, about
        a minute, and `best`, hours."""
        return usual_recipes(self)

    def fitted_settings(self, train: P, model: Model[S, P, L]) -> Recipe:
        """Defaults for a training part like this one: of its size, its lengths, its classes. What
        a person gave stays as it is; the rest is taken over, and stands in the configuration."""
        return Recipe()

    def search_space(self, train: P, model: Model[S, P, L]) -> Space:
        """What `select` searches for a training part like this one, around the model's settings."""
        return {**usual_space(self), **self.ranges}

    # ------------------------------------------------------------- learned
    @abstractmethod
    def learn(self, train: P, validation: P, model: Model[S, P, L]) -> L:
        """Vocabularies, scales, labels and baselines, of the training part alone; the validation
        part is for what is chosen by it."""

    def remarks(self, train: P, validation: P, model: Model[S, P, L]) -> list[str]:
        """What a user should know of the training part, if there is anything."""
        return []

    def is_solved(self, settings: S) -> bool:
        """Whether nothing is trained: its family is found in one go."""
        return (family := self.family(settings)) is not None and family.solved

    def family(self, settings: S) -> Family[S] | None:
        name = getattr(settings, "family", None)
        return self.families.get(name) if name is not None else None

    def build(self, model: Model[S, P, L]) -> nn.Module:
        """A network with fresh weights, drawn from torch's generator."""
        family = self.family(model.model)
        assert family is not None
        return family.build(model)

    @abstractmethod
    def source(self, train: P, model: Model[S, P, L], seed: int) -> Source:
        """The training part in batches, whose order follows from the seed."""

    @abstractmethod
    def validation(self, network: nn.Module, part: P, model: Model[S, P, L]) -> Validation:
        """Scores of one network: those of `metrics`."""

    def solve(self, train: P, validation: P, model: Model[S, P, L]) -> Solved:
        """The networks of a family that is solved: for tasks that have one."""
        raise AssertionError(f"{self.name}: a family is called solved, and no solve says how")

    def calibrate(self, validation: P, model: Model[S, P, L]) -> L:
        """What was learned, with mixture and widths of intervals fitted to the validation part."""
        return model.learned

    def answer_scores(self, validation: P, model: Model[S, P, L]) -> Mapping[str, float]:
        """Scores of what answers, where that is more than one network; {} for one alone. Called as
        training ends, before networks learn from the validation part."""
        own = self.averages
        if own is None or own.alone(model):
            return {}
        return own.scores(own.held(validation, model), validation, model)

    def refit(self, train: P, validation: P, model: Model[S, P, L]) -> P | None:
        """What the networks learn anew from at the end, as long as was best; None: they stay."""
        return None

    # ------------------------------------------------------------- asked
    @abstractmethod
    def answers(self, part: P, model: Model[S, P, L], asked: Asked = NOTHING) -> list[Any]:
        """One answer a row, of all members together. An answer is a dataclass with
        `as_line(shown)`; where its fields are not what a data frame should have, also with
        `as_row()`."""

    def decision_lines(self, asked: Asked, model: Model[S, P, L]) -> list[str]:
        """How answers are chosen, where a question says otherwise than training did."""
        return []

    def answer_names(self, model: Model[S, P, L]) -> tuple[str, ...]:
        """The columns that answers add to a data frame; () where only answers tell."""
        return ()

    def time_column(self, settings: S) -> str:
        """The column that answers which are not those of rows begin with: their time."""
        return ""

    def learned_from_validation(self, model: Model[S, P, L]) -> str:
        """What of the model has learned from the rows of the validation part too, for those who
        evaluate them; "" where nothing has."""
        return ""

    @abstractmethod
    def evaluate(self, part: P, model: Model[S, P, L], asked: Asked = NOTHING) -> Evaluation:
        """Evaluation against gold labels."""

    # ------------------------------------------------------------- kept
    def pack(self, learned: L) -> Packed:
        """As files hold it."""
        return packed(learned)

    def unpack(self, saved: Saved, model: Model[S, P, L]) -> L:
        """The inverse of `pack`."""
        return unpacked(self.learned_class, saved, settings=model.model)

    # ------------------------------------------------------------- taken elsewhere
    def exported(self, model: Model[S, P, L]) -> Exported:
        """The network with named inputs and outputs, and what stands around it; an error names
        what cannot be exported."""
        raise refuse("task", self.name)

    def rounded(self, learned: L, rounding: Rounding) -> L:
        """What was learned with the matrices rounded that an export stores beside the networks."""
        return learned

    # ------------------------------------------------------------- looked at
    def describe(self, model: Model[S, P, L]) -> str:
        """The network in a few words."""
        family = self.family(model.model)
        assert family is not None
        return family.describe(model.model)

    def facts(self, model: Model[S, P, L]) -> list[str]:
        """Lines on a fitted model, beside its size."""
        return []
