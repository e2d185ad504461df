"""What every task model is: fitted, evaluated, used, saved and loaded by the same verbs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ensue.data.split import by_share
from ensue.data.subwords import train_subwords
from ensue.data.tokenise import Tokeniser
from ensue.errors import DataError, OptionError
from ensue.models.batch import Columns
from ensue.models.collect import Collected, Examples, Numbers, collected
from ensue.models.evaluation import Evaluation
from ensue.models.saved import Saved, read_model, write_model
from ensue.models.settings import NetworkSettings, TextSettings
from ensue.models.source import Scored, SequenceSource
from ensue.training import (
    Outcome,
    RateCurve,
    RunFolder,
    TrainSettings,
    Watcher,
    find_rate,
    fit,
)

Given = Mapping[str, Any]
FEW = 4  # rows of a trial evaluation


class Estimator(ABC):
    """A model for a task. text, model, train: settings, or tables of those that are not as
    usual: Classifier(model={"cell": "GRU"}, train={"epochs": 5})."""

    kind: ClassVar[str]
    model_settings: ClassVar[type[NetworkSettings]]
    text_defaults: ClassVar[Given] = {}
    train_defaults: ClassVar[Given] = {}

    def __init__(
        self,
        text: TextSettings | Given | None = None,
        model: NetworkSettings | Given | None = None,
        train: TrainSettings | Given | None = None,
        *,
        members: int = 1,
    ) -> None:
        self.text = _settings(TextSettings, text, self.text_defaults, "text")
        self.model = _settings(self.model_settings, model, {}, "model")
        self.train = _settings(TrainSettings, train, self.train_defaults, "train")
        if members < 1:
            raise OptionError(f"members: expected a number of networks ≥ 1, got {members}")
        self.members = members
        self.networks: list[nn.Module] = []
        self.tokeniser = Tokeniser("spaces")
        self.width: int | None = None  # of the vectors, where the data has no tokens

    # ------------------------------------------------------------- what a task says
    @abstractmethod
    def learn(self, train: Collected, numbers: Numbers) -> None:
        """Vocabularies, labels and baselines of the training part."""

    @abstractmethod
    def columns(self, part: Collected, numbers: Numbers) -> Columns:
        """A part as the networks see it."""

    @abstractmethod
    def build(self) -> nn.Module:
        """A network with fresh weights, drawn from torch's generator."""

    @abstractmethod
    def score(self, network: nn.Module, columns: Columns) -> dict[str, float]:
        """Scores of one network: what validation watches."""

    @abstractmethod
    def judge(self, part: Collected, numbers: Numbers) -> Evaluation:
        """Everything that is to be said of the model's answers."""

    @abstractmethod
    def answers(self, part: Collected, numbers: Numbers) -> list[Any]:
        """One answer a row."""

    @abstractmethod
    def state(self) -> Saved:
        """All that was learned."""

    @abstractmethod
    def restore(self, saved: Saved) -> None:
        """The inverse of `state`, networks included."""

    # ------------------------------------------------------------- the verbs
    def fit(
        self,
        train: Examples,
        validation: Examples | None = None,
        *,
        folder: Path | str | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> Self:
        """From pairs of input and label. Without validation, a tenth of the rows is held out."""
        numbers = Numbers()
        tokenise = self.prepare(value for value, _ in train)
        own = collected(train, numbers, tokenise)
        if validation is None:
            split = by_share(len(own), {"train": 0.9, "validation": 0.1}, self.train.seed)
            own, held = own.taken(split["train"]), own.taken(split["validation"])
        else:
            held = collected(validation, numbers, tokenise)
        place = None if folder is None else RunFolder(folder)
        self.fit_parts(own, held, numbers, folder=place, watchers=watchers)
        return self

    def prepare(self, values: Iterable[Any]) -> Callable[[str], list[str]]:
        """The tokeniser; subwords are learned from these training values first."""
        own = self.text
        subwords = None
        if own.level == "subwords":
            plain = Tokeniser("words", lower=own.lower, numbers=own.numbers, breaks=own.breaks)
            texts = (plain.prepared(v if isinstance(v, str) else " ".join(v)) for v in values)
            subwords = train_subwords(texts, own.subword_count)
        self.tokeniser = Tokeniser(
            own.level, lower=own.lower, numbers=own.numbers, breaks=own.breaks, subwords=subwords
        )
        return self.tokeniser

    def fit_parts(
        self,
        train: Collected,
        validation: Collected,
        numbers: Numbers,
        *,
        folder: RunFolder | None = None,
        watchers: Sequence[Watcher] = (),
        config: Mapping[str, Any] | None = None,
        allow: Collection[str] = (),
    ) -> list[Outcome]:
        """Learns from collected rows; one outcome for each member."""
        for name, part in (("training", train), ("validation", validation)):
            if not len(part) or part.labels is None:
                raise DataError(f"the {name} part: expected rows with labels, got {len(part)} rows")
        self.learn(train, numbers)
        data, held = self.columns(train, numbers), self.columns(validation, numbers)
        few = held.taken(np.argsort(held.lengths)[-FEW:])
        self.networks, outcomes = [], []
        for member in range(self.members):
            settings = self.train.model_copy(update={"seed": self.train.seed + member})
            network = self._fresh(settings.seed)
            source = self._source(data, train, settings.seed)
            scored = Scored(lambda own, net=network: self.score(net, own), held, few)  # type: ignore[misc]
            place = folder if member == 0 or folder is None else folder.member(member + 1)
            outcomes.append(
                fit(network, source, scored, settings, place, watchers, config=config, allow=allow)
            )
            network.eval()
            self.networks.append(network)
        return outcomes

    def _source(self, data: Columns, part: Collected, seed: int) -> SequenceSource:
        own = self.model
        return SequenceSource(
            data, part.names, seed=seed, budget=own.batch_tokens, most_rows=own.batch_rows
        )

    def find_rate(self, train: Collected, numbers: Numbers) -> RateCurve:
        """Tries ever higher learning rates on a fresh network, and suggests one."""
        self.learn(train, numbers)
        source = self._source(self.columns(train, numbers), train, self.train.seed)
        return find_rate(self._fresh(self.train.seed), source, self.train)

    def _fresh(self, seed: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.build()

    def collect(self, examples: Examples) -> tuple[Collected, Numbers]:
        self._must_be_fitted()
        numbers = Numbers()
        return collected(examples, numbers, self.tokeniser), numbers

    def evaluate(self, examples: Examples) -> Evaluation:
        """Scores with intervals, baselines, classes, the surest mistakes."""
        return self.judge(*self.collect(examples))

    def predict(self, inputs: Iterable[Any]) -> list[Any]:
        """An answer with its probability for each input: a text, a list of tokens, or an array
        of vectors."""
        if isinstance(inputs, str):
            raise OptionError("predict: expected a list of inputs, got one text; write [text]")
        return self.answers(*self.collect([(value, None) for value in inputs]))

    def save(self, folder: Path | str) -> None:
        """A folder of safetensors and JSON; nothing else is ever read back."""
        self._must_be_fitted()
        write_model(Path(folder), self.state())

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        saved = read_model(Path(folder))
        if saved.kind != cls.kind:
            raise OptionError(
                f"{folder}: expected a {cls.kind} model, got a {saved.kind} model; "
                "load it with the class of its own"
            )
        return cls.of_saved(saved)

    @classmethod
    def of_saved(cls, saved: Saved) -> Self:
        """The model that was saved."""
        own = saved.facts
        found = cls(own["text"], own["model"], own["train"], members=own["members"])
        found.restore(saved)
        for network in found.networks:
            network.eval()
        return found

    def _must_be_fitted(self) -> None:
        if not self.networks:
            raise OptionError(f"this {self.kind} model has not been fitted: call fit or load first")

    # ------------------------------------------------------------- to be looked at
    def summary(self) -> str:
        """What the model is, in a few lines."""
        lines = [f"{type(self).__name__}: {self.describe()}"]
        if self.networks:
            count = sum(p.numel() for p in self.networks[0].parameters())
            lines.append(f"  {count:,} parameters" + f" × {self.members}" * (self.members > 1))
        return "\n".join(lines)

    def describe(self) -> str:
        own = self.model
        ways = "bidirectional " if own.bidirectional else ""
        return f"{own.layers} × {ways}{own.cell} of {own.hidden_size}"

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        lines = self.summary().splitlines()
        rest = "".join(f"<br>{line.strip()}" for line in lines[1:])
        return f"<div><b>{lines[0]}</b>{rest}</div>"


def _settings(kind: type[Any], given: Any, defaults: Given, where: str) -> Any:
    """Settings as they are, or made of a table."""
    if isinstance(given, kind):
        return given
    return kind.of({**defaults, **(given or {})}, where)


def mean_of(found: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The mean over the members of an ensemble."""
    return np.asarray(sum(found[1:], start=found[0]) / len(found))
