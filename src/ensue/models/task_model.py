"""What a run sees of a task model: it is fitted, judged, asked, saved and loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import nn

from ensue.data.split import by_share
from ensue.data.subwords import train_subwords
from ensue.data.tokenise import Tokeniser
from ensue.errors import OptionError
from ensue.models.collect import Collected, Examples, Numbers, collected
from ensue.models.evaluation import Evaluation
from ensue.models.saved import Saved, read_model, write_model
from ensue.models.settings import Table, TextSettings
from ensue.training import (
    Outcome,
    RateCurve,
    RunFolder,
    Source,
    TrainSettings,
    Validation,
    Watcher,
    fit,
)

Given = Mapping[str, Any]


@dataclass(frozen=True)
class Fitting:
    """How a model is fitted. folder: keeps the run, None leaves it in memory; watchers: hear of its
    rows; config: what must be the same when it goes on, None the model's own settings; allow:
    what of it may have changed."""

    folder: RunFolder | None = None
    watchers: Sequence[Watcher] = ()
    config: Given | None = None
    allow: Collection[str] = ()


IN_MEMORY = Fitting()


class TaskModel(ABC):
    """A model for a task. text, model, train: settings, or tables of those that are not as
    usual: Classifier(model={"cell": "GRU"}, train={"epochs": 5}). members: how many networks,
    whose mean answers."""

    kind: ClassVar[str]
    model_settings: ClassVar[type[Table]]
    text_defaults: ClassVar[Given] = {}
    train_defaults: ClassVar[Given] = {}

    def __init__(
        self,
        text: TextSettings | Given | None = None,
        model: Table | Given | None = None,
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
        self.tokeniser = Tokeniser("spaces")
        self.networks: list[nn.Module] = []

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

    def _fit_rows(
        self,
        train: Examples,
        validation: Examples | None,
        folder: Path | str | None,
        watchers: Sequence[Watcher],
    ) -> Self:
        """From pairs of input and label in memory; without validation, a tenth is held out."""
        numbers = Numbers()
        tokenise = self.prepare(value for value, _ in train)
        own = collected(train, numbers, tokenise)
        held = None if validation is None else collected(validation, numbers, tokenise)
        return self._fit_collected(own, held, numbers, folder, watchers)

    def _fit_collected(
        self,
        own: Collected,
        held: Collected | None,
        numbers: Numbers,
        folder: Path | str | None,
        watchers: Sequence[Watcher],
    ) -> Self:
        """held: the validation part; None takes a tenth of the rows."""
        if held is None:
            split = by_share(len(own), {"train": 0.9, "validation": 0.1}, self.train.seed)
            own, held = own.taken(split["train"]), own.taken(split["validation"])
        place = None if folder is None else RunFolder(folder)
        self.fit_parts(own, held, numbers, Fitting(place, watchers))
        return self

    @abstractmethod
    def fit_parts(
        self,
        train: Collected,
        validation: Collected,
        numbers: Numbers,
        how: Fitting = IN_MEMORY,
    ) -> list[Outcome]:
        """Learns from collected rows; one outcome for each member."""

    @abstractmethod
    def build(self) -> nn.Module:
        """A network with fresh weights, drawn from torch's generator."""

    def fresh(self, seed: int) -> nn.Module:
        """A network whose weights follow from the seed alone."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.build()

    def fit_members(
        self,
        source: Callable[[int], Source],
        validation: Callable[[nn.Module], Validation],
        how: Fitting,
    ) -> list[Outcome]:
        """Trains each member with a seed of its own. source: the data of a seed; validation: of a
        network."""
        config = self.config() if how.config is None else how.config
        self.networks, outcomes = [], []
        for member in range(self.members):
            settings = self.train.model_copy(update={"seed": self.train.seed + member})
            network = self.fresh(settings.seed)
            place = how.folder
            if member and how.folder is not None:
                place = how.folder.member(member + 1)
            data, scored = source(settings.seed), validation(network)
            outcomes.append(
                fit(
                    network,
                    data,
                    scored,
                    settings,
                    place,
                    how.watchers,
                    config=config,
                    allow=how.allow,
                )
            )
            network.eval()
            self.networks.append(network)
        return outcomes

    @abstractmethod
    def find_rate(self, train: Collected, numbers: Numbers) -> RateCurve:
        """Tries ever higher learning rates on a fresh network, and suggests one."""

    @abstractmethod
    def judge(self, part: Collected, numbers: Numbers) -> Evaluation:
        """Everything that is to be said of the model's answers."""

    @abstractmethod
    def answers(self, part: Collected, numbers: Numbers) -> list[Any]:
        """One answer a row."""

    @abstractmethod
    def fitted(self) -> bool:
        """Whether it has learned."""

    @abstractmethod
    def state(self) -> Saved:
        """All that was learned."""

    @classmethod
    @abstractmethod
    def of_saved(cls, saved: Saved) -> Self:
        """The model that was saved."""

    def collect(self, examples: Examples) -> tuple[Collected, Numbers]:
        self.must_be_fitted()
        numbers = Numbers()
        return collected(examples, numbers, self.tokeniser), numbers

    def predict(self, inputs: Iterable[Any]) -> list[Any]:
        """An answer with its probability for each input: a text, a list of tokens, or an array
        of vectors."""
        if isinstance(inputs, str):
            raise OptionError("predict: expected a list of inputs, got one text; write [text]")
        return self.answers(*self.collect([(value, None) for value in inputs]))

    def save(self, folder: Path | str) -> None:
        """A folder of safetensors and JSON; nothing else is ever read back."""
        self.must_be_fitted()
        write_model(Path(folder), self.state())

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """A model that was saved, or that of a run by the run's folder."""
        own = Path(folder)
        saved = read_model(own / "model" if (own / "model").is_dir() else own)
        if saved.kind != cls.kind:
            raise OptionError(
                f"{folder}: expected a {cls.kind} model, got a {saved.kind} model; "
                "load it with the class of its own"
            )
        return cls.of_saved(saved)

    def must_be_fitted(self) -> None:
        if not self.fitted():
            raise OptionError(f"this {self.kind} model has not been fitted: call fit or load first")

    def settings_facts(self) -> dict[str, Any]:
        """What every saved model holds, as JSON."""
        return {
            "text": self.text.table(),
            "model": self.model.table(),
            "train": self.train.table(),
            "members": self.members,
            "tokeniser": self.tokeniser.to_dict(),
        }

    def config(self) -> dict[str, Any]:
        """Every setting by `table.key`."""
        tables = {"text": self.text, "model": self.model, "train": self.train}
        return {f"{t}.{k}": v for t, own in tables.items() for k, v in own.table().items()}

    def size_line(self) -> str:
        """How many parameters a fitted model has, as a line of its summary."""
        count = sum(p.numel() for p in self.networks[0].parameters())
        return f"  {count:,} parameters" + f" × {self.members}" * (self.members > 1)

    @abstractmethod
    def summary(self) -> str:
        """What the model is, in a few lines."""

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        lines = [escape(line) for line in self.summary().splitlines()]
        rest = "".join(f"<br>{line.strip()}" for line in lines[1:])
        return f"<div><b>{lines[0]}</b>{rest}</div>"


def _settings(kind: type[Any], given: Any, defaults: Given, where: str) -> Any:
    """Settings as they are, or made of a table."""
    if isinstance(given, kind):
        return given
    return kind.of({**defaults, **(given or {})}, where)
