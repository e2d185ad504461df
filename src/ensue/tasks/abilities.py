"""Abilities of some tasks: explaining and drawing answers, answering in several processes,
averaging the answers of several models, and learning from unlabelled inputs."""

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
    """An ability of some tasks: explanations of answers."""

    option: Option  # how the command line receives the input to explain

    def explain(self, model: Any, inputs: Any, options: RequestOptions = NOTHING) -> Explanation:
        """Explains the answer to an input. options: the task's further options of `explain`."""
        ...


class Explanation(Protocol):
    """An explanation. result: a dataclass, the answer with its reasons."""

    @property
    def result(self) -> Any: ...

    def as_text(self, width: int, colour: bool) -> str: ...

    def as_svg(self) -> str: ...

    def document(self, title: str) -> Document: ...


class Draws(Protocol):
    """An ability of some tasks: answers as a picture."""

    def answers(self, model: Any, part: Any, options: RequestOptions) -> str:
        """The requested picture, as SVG."""
        ...

    def evaluated(self, model: Any, part: Any) -> str:
        """Forecasts of the last steps of a part next to the actual values, as SVG."""
        ...


class Deals(Protocol):
    """An ability of some tasks: rows of files that other processes can answer independently. A
    share is a group of rows, as JSON."""

    def shares(self, model: Any, files: QuestionFiles) -> Iterator[list[Any]]: ...

    def questions(self, model: Any, share: Sequence[Any]) -> Questions[Any]: ...

    def names(self, share: Sequence[Any]) -> list[str]:
        """The file and line of each row."""
        ...


Outputs = Sequence[NDArray[np.floating[Any]]]  # of each network


class Averages(ABC):
    """An ability of some tasks: averaging the answers of several networks, of one or several
    models. Models of the same training part have outputs of the same shape, whatever columns they
    read; `model` may be any of them."""

    def alone(self, model: Any) -> bool:
        """Whether answers come from a single network."""
        return len(model.networks) == 1 and model.learned.mixture is None

    @abstractmethod
    def outputs(self, part: Any, model: Any) -> Outputs:
        """The outputs of each network of a model, mixed with the linear model if there is one."""

    def gold_outputs(self, part: Any, model: Any) -> Outputs:
        """The outputs for a part with gold labels, for evaluation."""
        return self.outputs(part, model)

    def out_of_sample(self, validation: Any, model: Any) -> Outputs:
        """The outputs for the validation part at the end of training. For `scores`, linear models
        that did not learn from this part are used."""
        return self.outputs(validation, model)

    def model_scores(self, validation: Any, model: Any) -> dict[str, float]:
        """The validation metrics of the answers of one model."""
        return self.scores(self.out_of_sample(validation, model), validation, model)

    def knows_validation(self, model: Any) -> str:
        """The parts of the model that also learned from the validation rows; "" for none."""
        return ""

    def summary(self, validation: Any, model: Any) -> Summary | None:
        """The summary of the validation part at the end of training; None if the model learned
        from this part."""
        from ensue.tasks.evaluation.summary import summary_of  # most commands need no evaluation

        if self.knows_validation(model):
            return None
        return summary_of(model.task.evaluate(validation, model, NOTHING))

    @abstractmethod
    def scores(self, outputs: Outputs, validation: Any, model: Any) -> dict[str, float]:
        """The validation metrics of the mean of these outputs."""

    @abstractmethod
    def answers(
        self, outputs: Outputs, part: Any, model: Any, options: RequestOptions
    ) -> Sequence[Any]:
        """The answers to a part, one for each row, from the mean of these outputs."""

    @abstractmethod
    def evaluate(
        self, outputs: Outputs, part: Any, model: Any, options: RequestOptions
    ) -> Evaluation:
        """Evaluation of the mean of these outputs against gold labels."""


class Refits(Protocol):
    """An ability of some tasks: networks are trained again at the end, for the best number of
    updates."""

    def part(self, train: Any, validation: Any, model: Any) -> Any | None:
        """The rows to train on again; None if the networks stay as they are."""
        ...


class Joins(Protocol):
    """An ability of some tasks: reading several inputs of a row together."""

    def tables(
        self, data: DataSettings, tables_of_inputs: Mapping[str, Any], shared: Mapping[str, Any]
    ) -> Mapping[str, Table]:
        """The settings of each input, by its name. tables_of_inputs: the tables [inputs.NAME];
        shared: keys of [text] and [model] that were set."""
        ...

    def input_of(self, roles: Mapping[str, Any]) -> Any | None:
        """The input that reads several columns by the keys of [data]; None for a single input."""
        ...

    def space(self, model: Any) -> Space:
        """Like `Task.search_space`."""
        ...


def input_tables(
    joins: Joins | None,
    data: DataSettings,
    tables_of_inputs: Mapping[str, Any],
    shared: Mapping[str, Any],
) -> Mapping[str, Table]:
    """Like `Joins.tables`; {} for a single input, which has no tables."""
    if joins is not None and data.joins:
        return joins.tables(data, tables_of_inputs, shared)
    if tables_of_inputs:
        raise ConfigError(
            f"{', '.join(f'[inputs.{name}]' for name in tables_of_inputs)}: only for a model of "
            "several inputs, and this model has a single one; name several inputs by a list in "
            "data.text, or by data.image or data.tree"
        )
    return {}


class Unlabelled(Protocol):
    """An ability of some tasks: learning from unlabelled inputs."""

    def refused(self, model: Any) -> str:
        """Why a model with these settings cannot learn from unlabelled inputs; "" if it can."""
        ...

    def learned(self, unlabelled: Any, train: Any, validation: Any, model: Any) -> tuple[Any, str]:
        """The learned part of a trained model after learning from these rows too, and a line on
        their benefit."""
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
        """The prompt as the model has read it."""
        ...

    def texts(self, choice: Choice, count: int = 1) -> list[str]:
        """`count` texts that continue the prompt, each up to its end."""
        ...

    def pieces(self, choice: Choice) -> Iterator[str]:
        """One text, piece by piece as it is generated, without its prompt."""
        ...

    def suggestions(self, count: int) -> Sequence[Suggestion]:
        """The most probable next words, or the completions of an incomplete word."""
        ...


class Generates(Protocol):
    """An ability of some tasks: texts that continue a prompt."""

    def writer(self, model: Any, prompt: str, *, whole: bool = True) -> TextWriter:
        """A writer for a prompt. whole: the prompt ends with a complete word; else its last word is
        incomplete."""
        ...


@dataclass(frozen=True)
class Filled:
    """A text whose blank was filled.

    fillers: words for the blank, most probable first, given the words on both sides; before_alone:
    the same, given only the words before the blank. words: the text with the best filler at
    `blank`. bits: −log₂ p of each word given all others; bits_before: given only the words before
    it."""

    text: str
    fillers: tuple[Suggestion, ...]
    before_alone: tuple[Suggestion, ...]
    words: tuple[str, ...]
    blank: int
    bits: tuple[float, ...]
    bits_before: tuple[float, ...]

    def as_text(self) -> str:
        """Two tables: the fillers, and the surprise of each word."""
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
    """An ability of some tasks: words for a blank."""

    def fill(self, model: Any, text: str, count: int = 5) -> Filled:
        """Fills the blank of a text, ___."""
        ...


class Counted(Protocol):
    """The result of counting, a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def as_text(self) -> str: ...


class Counts(Protocol):
    """An ability of some tasks: studying the n-gram counts of files."""

    def study(
        self,
        files: Sequence[str],
        held_out: Sequence[str],
        *,
        order: int,
        level: str,
        after: str | None,
    ) -> Counted:
        """Counts the n-grams of files. held_out: separate files; if there are none, a tenth of the
        text is split off."""
        ...


class Abilities:
    """Abilities that only some tasks and models have; None for those that are missing."""

    explains: Explains | None = None
    heads: Explains | None = None  # attention of the heads of a Transformer
    draws: Draws | None = None
    deals: Deals | None = None
    averages: Averages | None = None
    refits: Refits | None = None
    joins: Joins | None = None
    unlabelled: Unlabelled | None = None
    generates: Generates | None = None
    fills: Fills | None = None
    counts: Counts | None = None
