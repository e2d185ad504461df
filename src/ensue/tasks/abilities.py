"""Abilities that some tasks have: saying where an answer comes from, drawing answers, having them
given by several processes, averaging those of several models, and learning from inputs without
labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ensue.data.settings import DataSettings
from ensue.errors import ConfigError
from ensue.settings import Table
from ensue.tasks.options import Option
from ensue.tasks.search.ranges import Space

if TYPE_CHECKING:
    from ensue.drawing.document import Document
    from ensue.tasks.evaluation.report import Evaluation
    from ensue.tasks.evaluation.summary import Summary
    from ensue.tasks.reader import QuestionFiles, Questions

RequestOptions = Mapping[str, Any]  # options of a request: beam, n_best, future, …
NOTHING: RequestOptions = {}


class Explains(Protocol):
    """Where an answer comes from: an ability of some tasks."""

    option: Option  # how the command line is given what is to be explained

    def explain(self, model: Any, inputs: Any, options: RequestOptions = NOTHING) -> Explanation:
        """options: the task's further words of `explain`."""
        ...


class Explanation(Protocol):
    """result: a dataclass, the answer with its reasons."""

    @property
    def result(self) -> Any: ...

    def as_text(self, width: int, colour: bool) -> str: ...

    def as_svg(self) -> str: ...

    def document(self, title: str) -> Document: ...


class Draws(Protocol):
    """Answers as a picture: an ability of some tasks."""

    def answers(self, model: Any, part: Any, options: RequestOptions) -> str:
        """The requested picture, as SVG."""
        ...

    def evaluated(self, model: Any, part: Any) -> str:
        """Forecasts of the last steps of a part next to the actual values, as SVG."""
        ...


class Deals(Protocol):
    """Rows of files that can be answered apart from each other, in other processes: an ability of
    some tasks. A share is some rows, as JSON."""

    def shares(self, model: Any, files: QuestionFiles) -> Iterator[list[Any]]: ...

    def questions(self, model: Any, share: Sequence[Any]) -> Questions[Any]: ...

    def names(self, share: Sequence[Any]) -> list[str]:
        """The file and line of each."""
        ...


Outputs = Sequence[NDArray[np.floating[Any]]]  # of each network, what its answers are made of


class Averages(ABC):
    """Answers of several networks as one, the mean of theirs, be they of one model or of several:
    an ability of some tasks. Models of the same training part have outputs of the same shape,
    whatever they read of it; `model` may be any of them."""

    def alone(self, model: Any) -> bool:
        """Whether answers come from a single network alone."""
        return len(model.networks) == 1 and model.learned.mixture is None

    @abstractmethod
    def outputs(self, part: Any, model: Any) -> Outputs:
        """Of each network of a model, with the linear model where that answers too."""

    def gold_outputs(self, part: Any, model: Any) -> Outputs:
        """The same of a part with gold labels, to evaluate."""
        return self.outputs(part, model)

    def out_of_sample(self, validation: Any, model: Any) -> Outputs:
        """The same of the validation part, as training ends: by linear models that had not
        learned from it, as far as it needs them for `scores`."""
        return self.outputs(validation, model)

    def model_scores(self, validation: Any, model: Any) -> dict[str, float]:
        """Of the answers of one model, the metrics that validation reports."""
        return self.scores(self.out_of_sample(validation, model), validation, model)

    def knows_validation(self, model: Any) -> str:
        """What of the model has learned from the validation rows too; "" for nothing."""
        return ""

    def summary(self, validation: Any, model: Any) -> Summary | None:
        """Of the validation part, as training ends: by linear models that had not learned from it.
        None without them."""
        from ensue.tasks.evaluation.summary import summary_of  # most commands need no evaluation

        if self.knows_validation(model):
            return None
        return summary_of(model.task.evaluate(validation, model, NOTHING))

    @abstractmethod
    def scores(self, outputs: Outputs, validation: Any, model: Any) -> dict[str, float]:
        """Of their mean, the metrics that validation reports."""

    @abstractmethod
    def answers(
        self, outputs: Outputs, part: Any, model: Any, options: RequestOptions
    ) -> Sequence[Any]:
        """One a row, of all together."""

    @abstractmethod
    def evaluate(
        self, outputs: Outputs, part: Any, model: Any, options: RequestOptions
    ) -> Evaluation:
        """Evaluation of all together against gold labels."""


class Refits(Protocol):
    """Networks that are trained again at the end, for as many updates as were best: an ability of
    some tasks."""

    def part(self, train: Any, validation: Any, model: Any) -> Any | None:
        """The rows to train on again; None where the networks stay."""
        ...


class Joins(Protocol):
    """Several inputs of a row read together: an ability of some tasks."""

    def tables(
        self, data: DataSettings, tables_of_inputs: Mapping[str, Any], shared: Mapping[str, Any]
    ) -> Mapping[str, Table]:
        """The settings of each input, by its name. tables_of_inputs: the tables [inputs.NAME];
        shared: keys of [text] and [model] that were set."""
        ...

    def input_of(self, roles: Mapping[str, Any]) -> Any | None:
        """What reads columns by the keys of [data]; None where one input is read alone."""
        ...

    def space(self, model: Any) -> Space:
        """As `Task.search_space`."""
        ...


def input_tables(
    joins: Joins | None,
    data: DataSettings,
    tables_of_inputs: Mapping[str, Any],
    shared: Mapping[str, Any],
) -> Mapping[str, Table]:
    """As `Joins.tables`; {} where one input is read alone, for which there are no tables."""
    if joins is not None and data.joins:
        return joins.tables(data, tables_of_inputs, shared)
    if tables_of_inputs:
        raise ConfigError(
            "inputs: expected no tables of inputs for a single input, got "
            f"{', '.join(f'[inputs.{name}]' for name in tables_of_inputs)}; several are named by "
            "a list "
            "in data.text, by data.image or data.tree"
        )
    return {}


class Unlabelled(Protocol):
    """Learning from unlabelled inputs: an ability of some tasks."""

    def refused(self, model: Any) -> str:
        """Why a model with these settings cannot; "" where it can."""
        ...

    def learned(self, unlabelled: Any, train: Any, validation: Any, model: Any) -> tuple[Any, str]:
        """The learned part of a trained model after learning from these rows as well, and a line on
        what they were worth."""
        ...


class Suggestion(NamedTuple):
    token: str
    probability: float


@dataclass(frozen=True)
class Choice:
    """How the next token is chosen: drawn with a temperature, from the top_k most probable or
    from those that make up top_p; width > 1 searches for the most probable text instead. on:
    whether a drawn text continues after the end of a line, up to most_tokens."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    width: int = 1
    seed: int = 1
    most_tokens: int = 100
    on: bool = False


class TextWriter(Protocol):
    """A model that has read a prompt."""

    @property
    def prompt(self) -> str:
        """As the model has read it."""
        ...

    def texts(self, choice: Choice, count: int = 1) -> list[str]:
        """`count` texts that go on from the prompt, each up to its end."""
        ...

    def pieces(self, choice: Choice) -> Iterator[str]:
        """One text, as it is made: put together, the pieces are the text without its prompt."""
        ...

    def suggestions(self, count: int) -> Sequence[Suggestion]:
        """The most probable words to come; those that go on from a word begun, if one is."""
        ...


class Generates(Protocol):
    """Texts that go on from a prompt: an ability of some tasks."""

    def writer(self, model: Any, prompt: str, *, whole: bool = True) -> TextWriter:
        """whole: the prompt ends with a whole word; else its last one is only begun."""
        ...


@dataclass(frozen=True)
class Filled:
    """A text whose blank was filled.

    fillers: by both sides, the most probable first; before_alone: by what stands before the blank.
    words: the text with the best filler at `blank`; bits: −log₂ p of each, given all others;
    bits_before: given those before it."""

    text: str
    fillers: tuple[Suggestion, ...]
    before_alone: tuple[Suggestion, ...]
    words: tuple[str, ...]
    blank: int
    bits: tuple[float, ...]
    bits_before: tuple[float, ...]

    def as_text(self) -> str:
        """Two tables: the fillers, and how much each word surprises."""
        widest = max(map(len, (*(filler.token for filler in self.fillers), "both sides")))
        lines = [f"    {'both sides':{widest}} {'':7}   before alone"]
        pairs = zip_longest(self.fillers, self.before_alone)
        for k, (both, alone) in enumerate(pairs, 1):
            one = f"{both.token:{widest}} {both.probability:7.4f}" if both else " " * (widest + 8)
            other = f"{alone.token} {alone.probability:.4f}" if alone else ""
            lines.append(f"{k:>2}  {one}   {other}".rstrip())
        width = max(map(len, self.words))
        lines += ["", f"    {'surprise, bits':{width}}   both sides   before alone"]
        for k, word in enumerate(self.words):
            mark = "→" if k == self.blank else " "
            padded = f"{word:{max(width, 14)}}"
            lines.append(f"  {mark} {padded}   {self.bits[k]:10.2f}   {self.bits_before[k]:12.2f}")
        return "\n".join(lines)


class Fills(Protocol):
    """Words for a blank: an ability of some tasks."""

    def fill(self, model: Any, text: str, count: int = 5) -> Filled:
        """text: with one blank, ___."""
        ...


class Counted(Protocol):
    """What was counted, a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def as_text(self) -> str: ...


class Counts(Protocol):
    """N-grams of files, as they are counted: an ability of some tasks."""

    def study(
        self,
        files: Sequence[str],
        held_out: Sequence[str],
        *,
        order: int,
        level: str,
        after: str | None,
    ) -> Counted:
        """held_out: files of their own; without, a tenth of the text is split off."""
        ...


class Abilities:
    """Abilities that only some tasks and models have; None for those that are missing."""

    explains: Explains | None = None
    heads: Explains | None = None  # where the heads of a Transformer look
    draws: Draws | None = None
    deals: Deals | None = None
    averages: Averages | None = None
    refits: Refits | None = None
    joins: Joins | None = None
    unlabelled: Unlabelled | None = None
    generates: Generates | None = None
    fills: Fills | None = None
    counts: Counts | None = None
