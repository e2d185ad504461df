"""`Model`: fitted, evaluated, asked, saved and loaded — written once, for every task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Self

import torch
from torch import nn

from ensue.cells import Cell
from ensue.errors import DataError, OptionError, unknown
from ensue.settings import Table, one_of
from ensue.tasks.answers import Answers
from ensue.tasks.blocks.cell_name import with_loaded_cells
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.fitting import IN_MEMORY, Curves, Fitting, answerable
from ensue.tasks.kept_cells import (
    NO_TRUST,
    Trust,
    cell_facts,
    cell_sources,
    kept_settings,
    with_kept_cells,
)
from ensue.tasks.options import EVALUATE, PREDICT
from ensue.tasks.saved import (
    Saved,
    loading,
    network_files,
    networks_of,
    read_model,
    write_model,
)
from ensue.tasks.settings import TextSettings
from ensue.tasks.task import Asked, L, P, S, Task
from ensue.tasks.unfinished import KeepsLearned
from ensue.training import (
    Outcome,
    RateCurve,
    RunFolder,
    RunSettings,
    TrainSettings,
    Watcher,
    find_rate,
    fit,
)
from ensue.training.devices import device_of

Given = Mapping[str, Any]


class Model(Generic[S, P, L]):
    """A model of a task. text, model, train: settings, or tables of those that are not as
    usual: Classifier(model={"cell": "GRU"}, train={"epochs": 5}). members: how many networks,
    whose mean answers."""

    task: ClassVar[Task[Any, Any, Any]]

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "task" in vars(cls):
            cls.task.model_class = cls

    def __init__(
        self,
        text: TextSettings | Given | None = None,
        model: S | Given | None = None,
        train: TrainSettings | Given | None = None,
        *,
        members: int = 1,
    ) -> None:
        task = self.task
        watched = {"watch": task.metrics[0].name, **task.train_defaults}
        self.text: TextSettings = _settings(TextSettings, text, task.text_defaults, "text")
        self.model: S = with_loaded_cells(_settings(task.settings, model, {}, "model"))
        given = train.table() if isinstance(train, TrainSettings) else {**watched, **(train or {})}
        if told := not_watched(task, given["watch"]):
            raise OptionError(told)
        self.train: TrainSettings = _settings(TrainSettings, train, watched, "train")
        if members < 1:
            raise OptionError(f"members: expected a number of networks ≥ 1, got {members}")
        self.members, self.curves = members, Curves()
        self.networks: list[nn.Module] = []
        self.roles: Mapping[str, str] = {}  # columns by role, as `fit` was told
        self._learned: L | None = None

    # ------------------------------------------------------------- learning
    @property
    def learned(self) -> L:
        """Everything that was learned beside the weights."""
        self.must_be_fitted()
        assert self._learned is not None
        return self._learned

    @property
    def fitted(self) -> bool:
        return self._learned is not None

    def must_be_fitted(self) -> None:
        if not self.fitted:
            raise OptionError(
                f"this {self.task.name} model has not been fitted: call fit or load first"
            )

    def fit(
        self,
        data: Any,
        validation: Any = None,
        *,
        folder: Path | str | None = None,
        watchers: Sequence[Watcher] = (),
        **columns: str,
    ) -> Self:
        """From rows in memory. Without validation, a tenth of them is held out. folder: keeps the
        run, and goes on with one that is there; columns: roles by name, text="review"."""
        for role in columns:
            if role not in self.task.columns:
                raise unknown("role of a column", role, self.task.columns)
        self._learned, self.networks, self.roles = None, [], columns
        train = self.task.given(data, self, columns)
        if validation is None:
            train, held = self.task.hold_out(train, self)
        else:
            held = self.task.given(validation, self, columns, before=train)
        place = None if folder is None else RunFolder(folder)
        self.fit_parts(train, held, Fitting(place, watchers))
        return self

    def fit_parts(self, train: P, validation: P, how: Fitting = IN_MEMORY) -> list[Outcome]:
        """Learns from rows as arrays; one outcome for each member."""
        with how.attempt() as kept:
            return self._fit_parts(train, validation, kept)

    def _fit_parts(self, train: P, validation: P, how: Fitting) -> list[Outcome]:
        task = self.task
        device_of(self.train.device)  # told before anything is learned, as the next
        self._refuse_members()
        task.check(train, "training")
        task.check(validation, "validation")
        validation = answerable(self, train, validation, how.say)
        self._learned, self.networks = None, []
        self._learned = task.learn(train, validation, self)
        try:
            for text in task.remarks(train, validation, self):
                how.say(text)
            outcomes = self._trained(train, validation, how)
            self._learned = task.calibrate(validation, self)
            self._refit(train, validation, outcomes, how)
        except BaseException:
            self._learned, self.networks = None, []
            raise
        return outcomes

    def _refuse_members(self) -> None:
        family = self.task.family(self.model)
        if family is not None and family.solved and self.members > 1:
            raise OptionError(
                f"members: expected 1 with model.family = {self._family_name()}, which is "
                f"solved and has no seed, got {self.members}"
            )

    def _trained(self, train: P, validation: P, how: Fitting) -> list[Outcome]:
        """Each member with a seed of its own; a family that is solved has one."""
        family = self.task.family(self.model)
        if family is not None and family.solved:
            solved = self.task.solve(train, validation, self)
            self.networks = solved.networks
            self.to(self.train.device)
            return [Outcome(0, 0, solved.reason, solved.scores, None)]
        config, watchers = self._facts(how), how.watchers
        if how.folder is not None:
            watchers = [*watchers, KeepsLearned(how.folder, self.as_saved)]
        networks, outcomes = [], []
        for member in range(self.members):
            settings = self.train.model_copy(update={"seed": self.train.seed + member})
            network = self.fresh(settings.seed)
            place = how.folder
            if member and how.folder is not None:
                place = how.folder.member(member + 1)
            source = self.task.source(train, self, settings.seed)
            scored = self.task.validation(network, validation, self)
            outcomes.append(
                fit(
                    network,
                    source,
                    scored,
                    settings,
                    place,
                    (*watchers, self.curves.watch(member)),
                    config=config,
                    allow=how.allow,
                )
            )
            networks.append(network.eval())
        self.networks = networks
        return outcomes

    def _refit(self, train: P, validation: P, outcomes: Sequence[Outcome], how: Fitting) -> None:
        """All again on both parts, for as many updates as were best; nothing is left to stop by.
        What was learned and calibrated stays as it is."""
        whole = self.task.refit(train, validation, self)
        if whole is None:
            return
        family = self.task.family(self.model)
        if family is not None and family.solved:
            self.networks = self.task.solve(whole, validation, self).networks
            self.to(self.train.device)
            return
        config = self._facts(how)
        for member, outcome in enumerate(outcomes):
            changed = {"seed": self.train.seed + member, "most_updates": outcome.best_update}
            settings = self.train.model_copy(update={**changed, "patience": None})
            network = self.fresh(settings.seed)
            place = None
            if how.folder is not None:
                place = how.folder.refit(member + 1)
            source = self.task.source(whole, self, settings.seed)
            fit(network, source, None, settings, place, config=config)
            self.networks[member] = network.eval()

    def fresh(self, seed: int) -> nn.Module:
        """A network whose weights follow from the seed alone, on the device of training."""
        device = device_of(self.train.device)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return self.task.build(self).to(device)

    def to(self, device: str) -> Self:
        """Answers come from there: auto, cpu or cuda."""
        place = device_of(device)
        for network in self.networks:
            network.to(place)
        return self

    def find_rate(self, train: P) -> RateCurve:
        """Tries ever higher learning rates on a fresh network, and suggests one."""
        family = self.task.family(self.model)
        if family is not None and family.solved:
            raise OptionError(
                f"find-rate: model.family = {self._family_name()} is solved and has no learning "
                "rate"
            )
        self.task.check(train, "training")
        self._learned = self.task.learn(train, train, self)
        try:
            source = self.task.source(train, self, self.train.seed)
            return find_rate(self.fresh(self.train.seed), source, self.train)
        finally:
            self._learned = None

    def _family_name(self) -> str:
        return str(getattr(self.model, "family", ""))

    # ------------------------------------------------------------- answers
    def predict(self, inputs: Any, **asked: Any) -> list[Any]:
        """An answer with its probability for each input. asked: the task's own words, beam=5."""
        self.must_be_fitted()
        self._check_asked(asked, PREDICT)
        found = self.task.answers(self.task.asked(inputs, self, asked), self, asked)
        return Answers.of(found, inputs)

    def evaluate(self, data: Any, **given: Any) -> Evaluation:
        """Scores with intervals, baselines, classes, the surest mistakes. given: roles of columns
        by name, and the task's own words."""
        self.must_be_fitted()
        columns = {role: given.pop(role) for role in self.task.columns if role in given}
        self._check_asked(given, EVALUATE)
        part = self.task.given(data, self, columns)
        if not len(part):
            raise DataError("evaluate: expected rows, got none")
        return self.evaluate_part(part, given)

    def evaluate_part(self, part: P, asked: Asked) -> Evaluation:
        self.task.check(part, "test")
        names = part.names
        found = self.task.evaluate(part, self, asked)
        return found.of_rows([names[row] for row in range(len(part))])

    def _check_asked(self, asked: Asked, verb: str) -> None:
        known = [own.word for own in self.task.options if verb in own.verbs]
        for name in asked:
            if name not in known:
                raise unknown(f"word of {verb}", name, known)

    # ------------------------------------------------------------- as files
    def save(self, folder: Path | str) -> None:
        """A folder of safetensors and JSON; nothing else is ever read back."""
        write_model(Path(folder), self.as_saved())

    def as_saved(self) -> Saved:
        packed = self.task.pack(self.learned)
        facts = {**self.settings_facts(), **packed.facts}
        networks, cells = network_files(self.networks), cell_sources(self.model)
        known, arrays = packed.vocabularies, packed.arrays
        return Saved(self.task.name, facts, known, arrays, networks, cells)

    @classmethod
    def load(
        cls,
        folder: Path | str,
        *,
        trust: bool = False,
        cell: Cell | type[Cell] | None = None,
        device: str = "auto",
    ) -> Self:
        """A model that was saved, or that of a run by the run's folder. A cell of one's own is
        never run unasked: trust runs the file that the folder keeps, cell takes its place.
        device: where it answers, auto, cpu or cuda."""
        place = Path(folder)
        saved = read_model(place / "model" if (place / "model").is_dir() else place)
        if saved.kind != cls.task.name:
            raise OptionError(
                f"{folder}: expected a {cls.task.name} model, got a {saved.kind} model; "
                "load it with the class of its own"
            )
        return cls.of_saved(saved, Trust(trust, cell), device)

    @classmethod
    def of_saved(cls, saved: Saved, trust: Trust = NO_TRUST, device: str = "auto") -> Self:
        facts = saved.facts
        with loading(saved.place):
            settings = with_kept_cells(
                cls.task.settings.of(facts["model"], "model"),
                facts.get("cells", {}),
                saved.cells,
                trust,
                saved.place,
            )
            found = cls(facts["text"], settings, facts["train"], members=facts["members"])
            found._learned = cls.task.unpack(saved, found)
            found.networks = networks_of(saved, lambda: cls.task.build(found))
        return found.to(device)

    def settings_facts(self) -> dict[str, Any]:
        """What every saved model holds, as JSON."""
        return {
            "text": self.text.table(),
            "model": kept_settings(self.model).table(),
            "train": self.train.table(),
            "members": self.members,
            **({"cells": cells} if (cells := cell_facts(self.model)) else {}),
        }

    def config(self) -> dict[str, Any]:
        """Every setting by `table.key`."""
        tables: dict[str, Table] = {"text": self.text, "model": self.model, "train": self.train}
        return {f"{t}.{k}": v for t, own in tables.items() for k, v in own.table().items()}

    def _facts(self, how: Fitting) -> RunSettings:
        """What must be the same when a training goes on: every setting, and the equations of
        cells of one's own, wherever their files are."""
        found = dict(self.config() if how.config is None else how.config)
        for key, cell in cell_facts(self.model).items():
            found[f"model.{key}"] = f"{cell['name']}@{cell['equations']}"
        return RunSettings(found, self._upgraded)

    def _upgraded(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """A configuration by `table.key` under the keys of this version."""
        begin = "model."
        old = {k.removeprefix(begin): v for k, v in config.items() if k.startswith(begin)}
        rest = {k: v for k, v in config.items() if not k.startswith(begin)}
        return rest | {f"{begin}{k}": v for k, v in self.task.settings.upgraded(old).items()}

    # ------------------------------------------------------------- to be looked at
    def summary(self) -> str:
        """What the model is, in a few lines."""
        lines = [f"{type(self).__name__}: {self.task.describe(self)}"]
        if self.fitted:
            if self.networks:
                lines.append(self._size_line())
            lines += [f"  {line}" for line in self.task.facts(self)]
        return "\n".join(lines)

    def _size_line(self) -> str:
        count = sum(p.numel() for p in self.networks[0].parameters())
        return f"  {count:,} parameters" + f" × {self.members}" * (self.members > 1)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from ensue.tasks.model_page import model_html  # drawing is no part of computing

        return model_html(self)


def _settings(kind: type[Any], given: Any, defaults: Given, where: str) -> Any:
    """Settings as they are, or made of a table."""
    if isinstance(given, kind):
        return given
    return kind.of({**defaults, **(given or {})}, where)


def not_watched(task: Task[Any, Any, Any], watch: object) -> str:
    """What is wrong with a score to watch that is no metric of the task; "" where it is one."""
    known = [metric.name for metric in task.metrics]
    return "" if watch in known else f"train.watch: {one_of(known, watch)}"
