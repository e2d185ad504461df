"""`Model`: fit, evaluate, predict, save and load — written once, for every task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Never, Self, overload

import torch
from torch import nn
from typing_extensions import TypeVar

from ensue.cells import Cell
from ensue.data.settings import DataSettings
from ensue.errors import OptionError, enough_memory
from ensue.files.seal import Seal
from ensue.renamed import renamed_attribute, renamed_parameter
from ensue.tasks.abilities import Abilities, Explains, RequestOptions, input_tables
from ensue.tasks.any_model import table_of
from ensue.tasks.blocks.layer_settings import named_cells, with_loaded_cells
from ensue.tasks.data_argument import answered, check_words, evaluated, fit_parts_of, openings_of
from ensue.tasks.estimator import FrameType, Inputs
from ensue.tasks.evaluation.openings import Openings
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.exported import Exported
from ensue.tasks.fitting import (
    IN_MEMORY,
    AnsweredValidation,
    Curves,
    Fitting,
    answerable,
    holding,
    refuse_members,
    trained,
    trained_again,
    trained_member,
)
from ensue.tasks.model_settings import (
    BASED_INPUTS,
    NO_INPUTS,
    Base,
    InputTables,
    SettingsOverride,
    Tables,
    TableValues,
    adapt,
    base_settings,
    config_of,
    explicit_keys,
    misplaced,
    not_watched,
    run_settings,
    settings_of,
)
from ensue.tasks.options import EXPLAIN
from ensue.tasks.reader import DatasetReader, P
from ensue.tasks.recipes import with_recipe
from ensue.tasks.rows.unlabelled import learned_with_unlabelled, unlabelled_given
from ensue.tasks.saved import Saved, loading, network_files, networks_of, read_model, write_model
from ensue.tasks.saved_cells import (
    NO_TRUST,
    Trust,
    cell_facts,
    cell_sources,
    check_trust,
    kept_settings,
    with_saved_cells,
)
from ensue.tasks.settings import TextSettings
from ensue.tasks.task import AnswerShape, L, S, Task, is_solved
from ensue.tasks.transfer.layers import begin_network, rates_of
from ensue.tasks.transfer.loading import read_base
from ensue.tasks.transfer.pretrained import Beginning, Pretrained
from ensue.tasks.unfinished import write_finished
from ensue.training import (
    Outcome,
    RateCurve,
    RunFolder,
    RunSettings,
    TrainSettings,
    Watcher,
    find_rate,
    processes,
)
from ensue.training.display import where_somebody_looks
from ensue.training.processes import device_of

IN_ROWS = "row"  # name of rows in memory
A = TypeVar("A", default=Any)  # an answer


class Model(Generic[S, P, L, A]):
    """A model of a task. text, model, train: settings, or tables of those that differ from the
    defaults: Classifier(model={"cell": "GRU"}, train={"epochs": 5}). inputs: a table for each of
    several inputs, {"title": {"hidden_size": 64}}; base: pretrained model to begin from, the folder
    of a run or model, or a table with its `path`; members: ensemble size, predictions are averaged;
    recipe: "quick", about a minute of training, or "best", hours.

    >>> Classifier(model={"cell": "GRU"}, members=3).settings.cell
    'GRU'
    """

    task: ClassVar[Task[Any, Any, Any]]
    model = renamed_attribute("model", "settings")

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "task" in vars(cls):
            cls.task.model_class = cls

    def __init__(
        self,
        text: TextSettings | TableValues | None = None,
        model: S | TableValues | None = None,
        train: TrainSettings | TableValues | None = None,
        *,
        inputs: Mapping[str, TableValues] | None = None,
        base: Base = None,
        members: int | None = None,
        recipe: str = "",
        **more: Never,
    ) -> None:
        task = self.task
        if more:
            raise misplaced(task, more)
        tables = {"text": text, "model": model, "train": train}
        self.base = base_settings(base)
        based = bool(self.base.path)
        (text, model, train), self.members = with_recipe(task, recipe, tables, members, based)
        watched = {"watch": task.metrics[0].name, **task.train_defaults}
        self.text: TextSettings = settings_of(TextSettings, text, task.text_defaults, "text")
        settings: S = settings_of(task.settings, model, {}, "model")
        self.settings: S = with_loaded_cells(settings, named_cells(settings))
        train_table = (
            train.table() if isinstance(train, TrainSettings) else {**watched, **(train or {})}
        )
        if message := not_watched(task, train_table["watch"]):
            raise OptionError(message)
        self.train: TrainSettings = settings_of(TrainSettings, train, watched, "train")
        self.pretrained: Pretrained | None = None  # base of the training
        self.explicit = {
            "text": explicit_keys(text),
            "model": explicit_keys(model),
            "train": explicit_keys(train),
        }
        self.given_inputs: Mapping[str, Any] = dict(inputs or {})
        self.inputs = NO_INPUTS  # settings of each of several inputs, once the columns are known
        self.explicit_inputs: Mapping[str, frozenset[str]] = {}
        self.defaults_taken = SettingsOverride(self, {})
        self.curves = Curves()
        self.answered = AnsweredValidation()
        self.networks: list[nn.Module] = []
        self.roles: Mapping[str, Any] = {}  # columns by the keys of [data]
        self.label_type = ""  # of the labels in a data frame: bool, int or float
        self.openings = Openings()
        self._learned: L | None = None

    # ------------------------------------------------------------- what its task says of it
    # An ensemble says it of all of its models: everything outside of tasks asks here.

    @property
    def reader(self) -> DatasetReader[Any]:
        """The reader of the model's rows."""
        return self.task.reader(self)

    @property
    def abilities(self) -> Abilities:
        return self.task

    def answers_to(self, part: P, options: RequestOptions) -> Sequence[Any]:
        """The answers to a part, one for each row."""
        return self.task.answers(part, self, options)

    def evaluation_of(self, part: P, options: RequestOptions) -> Evaluation:
        return self.task.evaluate(part, self, options)

    def answer_shape(self) -> AnswerShape:
        return self.task.answer_shape(self)

    def knows_validation(self) -> str:
        """The parts of the model that also learned from the validation part; "" for none."""
        averages = self.task.averages
        return "" if averages is None else averages.knows_validation(self)

    def exported(self) -> Exported:
        """The network as graphs, for other programs."""
        return self.task.exported(self)

    def describe(self) -> str:
        """The network in a few words."""
        return self.task.describe(self)

    def facts(self) -> list[str]:
        """Lines on a fitted model, next to its size."""
        return self.task.facts(self)

    # ------------------------------------------------------------- learning
    @property
    def learned(self) -> L:
        """Everything learned except the weights."""
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
        unlabelled: Any = None,
        folder: Path | str | None = None,
        watchers: Sequence[Watcher] | None = None,
        **columns: str | Sequence[str],
    ) -> Self:
        """Fits the model to rows in memory, a data frame, or a file. Without `validation`, a tenth
        of the rows is held out. unlabelled: inputs without labels, for additional learning; folder:
        stores the run, or resumes one; watchers: callbacks for progress, None shows it in terminals
        and notebooks; columns: roles of columns, text="review", label="stars"; missing roles are
        inferred."""
        if watchers is None:
            watchers = where_somebody_looks()
        how = Fitting(None if folder is None else RunFolder(folder), watchers)
        self._learned, self.networks = None, []
        self.openings = openings_of(how.folder, data, validation, unlabelled)
        with holding(how.folder):
            self.settle({})
            self.read_base(how.folder)
            train, parts = fit_parts_of(self, data, validation, columns, how.say)
            adapt(self, train, how.say)
            more = unlabelled_given(self, unlabelled, train)
            self.fit_parts(train, parts, replace(how, unlabelled=more))
            if how.folder is not None and processes.team().first:
                write_finished(how.folder, self.as_saved())
        return self

    def read_base(self, folder: RunFolder | None = None) -> None:
        """Reads the base of the training, if there is one. folder: the folder of the run; its copy
        of the base is used if there is one."""
        self.pretrained = read_base(self, folder) if self.base.path else None

    @property
    def beginning(self) -> Beginning | None:
        pretrained = self.pretrained
        return None if pretrained is None else Beginning(pretrained, self.base.new_words)

    def read_inputs(self, data: DataSettings) -> None:
        """Determines the settings of each of several inputs: from its table, then from settings for
        all inputs, then from defaults."""
        shared = {
            key: getattr(table_of(self, table), key)
            for table in ("text", "model")
            for key in self.explicit[table]
        }
        tables = input_tables(self.task.joins, data, self.given_inputs, shared)
        if tables and self.base.path:
            raise OptionError(BASED_INPUTS)
        self.inputs = InputTables(tables)
        self.explicit_inputs = {
            name: frozenset(self.given_inputs.get(name, ())) | shared.keys() for name in tables
        }

    def settle(self, tables: Tables) -> None:
        """Takes over settings that follow from the data; the next fit begins without them."""
        self.defaults_taken.undo(self)
        self.defaults_taken = SettingsOverride(self, tables)

    def fit_parts(self, train: P, validation: P, how: Fitting = IN_MEMORY) -> list[Outcome]:
        """Fits the model to encoded rows; returns an outcome for each member."""
        with how.attempt() as attempt, enough_memory():
            return self._fit_parts(train, validation, attempt)

    def _fit_parts(self, train: P, validation: P, how: Fitting) -> list[Outcome]:
        task = self.task
        validation = self._learn(train, validation, how)
        try:
            for text in self.reader.remarks(train, validation):
                how.say(text)
            self.networks, outcomes = trained(self, train, validation, how)
            self.to(self.train.device)
            if announcement := task.announcement("calibrate", self.settings):
                how.show(announcement)
            self._learned = task.calibrate(validation, self)
            self._learned = learned_with_unlabelled(self, train, validation, how)
            self.answered = how.answered(validation, self)
            again = trained_again(self, train, validation, outcomes, how)
            if again is not None:
                self.networks = again
                self.to(self.train.device)
        except BaseException:
            self._learned, self.networks = None, []
            raise
        return outcomes

    def _learn(self, train: P, validation: P, how: Fitting) -> P:
        """Learns everything except the weights; returns the validation rows that can be
        answered."""
        device_of(self.train.device)  # reported before anything is learned, like the next
        refuse_members(self)
        self.reader.check(train, "training")
        self.reader.check(validation, "validation")
        validation = answerable(self, train, validation, how.say)
        self._learned, self.networks = None, []
        if announcement := self.task.announcement("learn", self.settings):
            how.show(announcement)
        self._learned = self.task.learn(train, validation, self)
        return validation

    def fit_member(self, member: int, train: P, validation: P, how: Fitting) -> Outcome:
        """Trains one member in its folder, where `fit_parts` finds it finished."""
        validation = self._learn(train, validation, how)
        return trained_member(self, member, train, validation, how)[1]

    def fresh(self, seed: int) -> nn.Module:
        """A network with fresh weights, determined by the seed, on the device of training."""
        device = device_of(self.train.device)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            network = self.task.build(self)
        begin_network(network, self)
        return network.to(device)

    def run_settings(self, network: nn.Module, how: Fitting) -> RunSettings:
        """Settings that must not change when the training of a network continues."""
        return run_settings(self, how, rates_of(network, self))

    def to(self, device: str) -> Self:
        """Moves the networks to a device: auto, cpu or cuda."""
        place = device_of(device)
        for network in self.networks:
            network.to(place)
        return self

    def find_rate(self, train: P) -> RateCurve:
        """Tries rising learning rates on a fresh network, and suggests one."""
        if is_solved(self.task, self.settings):
            raise OptionError(
                f"find-rate: model.family = {self.family_name} is fitted in closed form and "
                "has no learning rate"
            )
        self.reader.check(train, "training")
        self._learned = self.task.learn(train, train, self)
        try:
            source = self.task.source(train, self, self.train.seed)
            return find_rate(self.fresh(self.train.seed), source, self.train)
        finally:
            self._learned = None

    @property
    def family_name(self) -> str:
        return str(getattr(self.settings, "family", ""))

    # ------------------------------------------------------------- answers
    @overload
    def predict(self, inputs: FrameType, **options: Any) -> FrameType: ...
    @overload
    def predict(self, inputs: Inputs, **options: Any) -> list[A]: ...
    def predict(self, inputs: Any, **options: Any) -> Any:
        """An answer with its probability for each input; a data frame is returned with columns for
        the answers. options: options of the task, such as beam=5, and roles of columns, if these
        differ from `fit`."""
        self.must_be_fitted()
        with enough_memory():
            return answered(self, inputs, options)

    def evaluate(self, data: Any, **options: Any) -> Evaluation:
        """Scores with intervals, baselines, classes, the most confident mistakes. options: roles of
        columns, if a data frame differs from the frame of `fit`, and options of the task. Repeated
        evaluations of the same rows are counted; for a model of a run, in a file next to it."""
        self.must_be_fitted()
        with enough_memory():
            return evaluated(self, data, options)

    @renamed_parameter("given", "question")
    def explain(self, question: Any, **options: Any) -> Any:
        """Explains the answer to one input. options: of the task's `explain`, such as
        method="occlusion", baseline, label."""
        check_words(self.task, options, EXPLAIN)
        return self._ability(self.abilities.explains, "explain").explain(self, question, options)

    @renamed_parameter("given", "question")
    def attention(self, question: Any, layer: int | None = None) -> Any:
        """The attention of every head of a Transformer."""
        return self._ability(self.abilities.heads, "attention").explain(
            self, question, {"layer": layer}
        )

    def _ability(self, ability: Explains | None, verb: str) -> Explains:
        if ability is None:
            raise OptionError(f"{verb}: not available for a {self.task.name} model")
        return ability

    def evaluate_part(self, part: P, options: RequestOptions) -> Evaluation:
        self.reader.check(part, "test")
        names = part.names
        evaluation = self.evaluation_of(part, options)
        return evaluation.of_rows([names[row] for row in range(len(part))])

    # ------------------------------------------------------------- as files
    def save(self, folder: Path | str) -> None:
        """Saves the model as a folder of safetensors and JSON."""
        write_model(Path(folder), self.as_saved())

    def as_saved(self, seal: Seal | None = None) -> Saved:
        """The model in the form of files. seal: the files of the run that determine it."""
        packed = self.task.pack(self.learned)
        facts = {**self.settings_facts(), **packed.facts}
        networks, cells = network_files(self.networks), cell_sources(self.settings)
        known, arrays = packed.vocabularies, packed.arrays
        return Saved(self.task.name, facts, known, arrays, networks, cells, seal or {})

    @classmethod
    def load(
        cls,
        folder: Path | str,
        *,
        trust: bool | str | Sequence[str] = False,
        cell: Cell | type[Cell] | None = None,
        device: str = "auto",
    ) -> Self:
        """A saved model, or the model of a run by the run's folder. A custom cell never runs
        without permission. trust: run the Python files of the folder, or only those with these
        sha256; cell: used instead of them.
        device: where the model runs, auto, cpu or cuda."""
        run = RunFolder(folder)
        in_run = run.model.is_dir()
        saved = read_model(run.model if in_run else run.path)
        if saved.kind != cls.task.name:
            raise OptionError(
                f"{folder}: expected a {cls.task.name} model, got a {saved.kind} model; "
                "load it with the class of that task"
            )
        if saved.ensemble:
            raise OptionError(f"{folder}: this is an ensemble of models: ensue.load loads it")
        model = cls.of_saved(saved, Trust(trust, cell), device)
        model.openings = Openings(run if in_run else None)
        return model

    @classmethod
    def saved_settings(cls, saved: Saved) -> S:
        """The settings of the network; references to cells in them are inert."""
        settings: S = cls.task.settings.of(saved.facts["model"], "model")
        return settings

    @classmethod
    def of_saved(cls, saved: Saved, trust: Trust = NO_TRUST, device: str = "auto") -> Self:
        """A model from its saved form. trust: files that may run, or cells to use instead; all
        files are checked before one runs."""
        with loading(saved.place):
            check_trust([(saved, cls.saved_settings(saved))], trust)
        return cls.of_trusted(saved, trust, device)

    @classmethod
    def of_trusted(cls, saved: Saved, trust: Trust, device: str = "auto") -> Self:
        """A model from its saved form; its files have been permitted already."""
        facts = saved.facts
        with loading(saved.place):
            settings = with_saved_cells(cls.saved_settings(saved), saved, trust)
            base = facts.get("base")
            model = cls(
                facts["text"],
                settings,
                facts["train"],
                inputs=facts.get("inputs"),
                base=base,
                members=facts["members"],
            )
            model.roles, model.label_type = saved.roles, saved.label_type
            model.read_inputs(DataSettings.of({"train": [IN_ROWS], **model.roles}, "roles"))
            model._learned = cls.task.unpack(saved, model)
            count = None if is_solved(cls.task, model.settings) else model.members
            model.networks = networks_of(saved, lambda: cls.task.build(model), count)
        return model.to(device)

    def settings_facts(self) -> dict[str, Any]:
        """The JSON values that every saved model has."""
        return {
            "text": self.text.table(),
            "model": kept_settings(self.settings).table(),
            "train": self.train.table(),
            "members": self.members,
            **({"inputs": self.inputs.table()} if self.inputs else {}),
            **({"base": self.base.table()} if self.base.path else {}),
            **({"cells": cells} if (cells := cell_facts(self.settings)) else {}),
            **({"roles": dict(self.roles)} if self.roles else {}),
            **({"label_type": self.label_type} if self.label_type else {}),
        }

    def config(self) -> dict[str, Any]:
        """Every setting by `table.key`."""
        return config_of(self)

    # ------------------------------------------------------------- to be looked at
    def summary(self) -> str:
        """What the model is, in a few lines."""
        lines = [f"{type(self).__name__}: {self.describe()}"]
        if self.fitted:
            lines += [self._size_line()] if self.networks else []
            lines += [f"  {line}" for line in self.facts()]
        return "\n".join(lines)

    def _size_line(self) -> str:
        count = sum(p.numel() for p in self.networks[0].parameters())
        return f"  {count:,} parameters" + f" × {self.members}" * (self.members > 1)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from ensue.drawing.document import as_block
        from ensue.tasks.model_page import model_document  # computing must not import drawing

        return as_block(model_document(self))
