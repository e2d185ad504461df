"""`EnsembleModel`: models of one task with different settings, whose predictions are averaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Never, Self

import numpy as np
from numpy.typing import NDArray

from ensue.data.frames.origin import FILES, Origin
from ensue.data.rows import ProblemCallback
from ensue.data.settings import DataSettings
from ensue.errors import DataError, OptionError
from ensue.files.seal import Seal
from ensue.tasks import TASKS
from ensue.tasks.abilities import NOTHING, Abilities, Averages, Deals, Outputs, RequestOptions
from ensue.tasks.any_model import AnyModel
from ensue.tasks.declarations import Unfit
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.exported import Exported, refuse
from ensue.tasks.model import Model
from ensue.tasks.reader import (
    NO_COLUMNS,
    DatasetReader,
    PartFiles,
    QuestionFiles,
    Questions,
    RowNames,
)
from ensue.tasks.saved import Saved, loading
from ensue.tasks.saved_cells import NO_TRUST, Trust, check_trust
from ensue.tasks.task import AnswerShape


@dataclass(frozen=True)
class EnsemblePart:
    """The same rows, as one part for each model, because models differ in tokenisation."""

    parts: tuple[Any, ...]

    @property
    def names(self) -> RowNames:
        row_names: RowNames = self.parts[0].names
        return row_names

    def __len__(self) -> int:
        return len(self.parts[0])

    def take(self, rows: NDArray[np.int64]) -> EnsemblePart:
        return EnsemblePart(tuple(part.take(rows) for part in self.parts))


class EnsembleFiles:
    """The parts of a run's files."""

    def __init__(self, files: Sequence[PartFiles[Any]]) -> None:
        self._files = files

    @property
    def rejected(self) -> int:
        return self._files[0].rejected

    def part(self, name: str, like: EnsemblePart | None = None) -> EnsemblePart:
        before = [None] * len(self._files) if like is None else like.parts
        pairs = zip(self._files, before, strict=True)
        return EnsemblePart(tuple(files.part(name, other) for files, other in pairs))


class EnsembleDeals:
    """Rows that other processes answer, as for the task itself."""

    def __init__(self, deals: Deals) -> None:
        self._deals, self.names = deals, deals.names

    def shares(self, model: Any, files: QuestionFiles) -> Iterator[list[Any]]:
        return self._deals.shares(model.models[0], files)

    def questions(self, model: Any, share: Sequence[Any]) -> Questions[EnsemblePart]:
        return joined([self._deals.questions(each, share) for each in model.models])


def joined(questions: Sequence[Questions[Any]]) -> Questions[EnsemblePart]:
    """The questions of all models combined: the same rows as each model reads them."""
    return Questions(
        EnsemblePart(tuple(question.part for question in questions)), questions[0].shown_inputs
    )


class EnsembleReader(DatasetReader[EnsemblePart]):
    """Reads the same rows for each model, because models differ in tokenisation."""

    def __init__(self, model: EnsembleModel) -> None:
        super().__init__(model)
        self.readers: list[DatasetReader[Any]] = [one.reader for one in model.models]

    def _callbacks(self, on_bad_row: ProblemCallback | None) -> list[ProblemCallback | None]:
        """The callbacks of each model's reader: rejected rows are reported once."""
        return [on_bad_row, *[None] * (len(self.readers) - 1)]

    def files(
        self, data: DataSettings, on_bad_row: ProblemCallback | None = None, origin: Origin = FILES
    ) -> EnsembleFiles:
        pairs = zip(self.readers, self._callbacks(on_bad_row), strict=True)
        return EnsembleFiles([reader.files(data, callback, origin) for reader, callback in pairs])

    def labelled(
        self,
        rows: Any,
        columns: Mapping[str, str] = NO_COLUMNS,
        before: EnsemblePart | None = None,
    ) -> EnsemblePart:
        return EnsemblePart(tuple(reader.labelled(rows, columns) for reader in self.readers))

    def check(self, part: EnsemblePart, name: str) -> None:
        self.readers[0].check(part.parts[0], name)

    def questions(self, inputs: Any, options: RequestOptions = NOTHING) -> EnsemblePart:
        rows = list(inputs) if isinstance(inputs, Iterator) else inputs  # read several times
        return EnsemblePart(tuple(reader.questions(rows, options) for reader in self.readers))

    def question_lines(self, lines: Sequence[str]) -> EnsemblePart:
        return EnsemblePart(tuple(reader.question_lines(lines) for reader in self.readers))

    def question_files(
        self, files: QuestionFiles, options: RequestOptions = NOTHING
    ) -> Iterator[Questions[EnsemblePart]]:
        pairs = zip(self.readers, self._callbacks(files.on_bad_row), strict=True)
        batches = [
            reader.question_files(replace(files, on_bad_row=callback), options)
            for reader, callback in pairs
        ]
        for questions in zip(*batches, strict=True):
            yield joined(questions)

    def question_keys(self, origin: Origin) -> tuple[str, ...]:
        return self.readers[0].question_keys(origin)

    def shown_line(self, line: str) -> Any:
        return self.readers[0].shown_line(line)


def _outputs(part: EnsemblePart, model: Any, of_model: Callable[[Any, Any], Outputs]) -> list[Any]:
    """The outputs of the networks of all models, repeated by the weight of their model."""
    outputs: list[Any] = []
    for count, each, rows in zip(model.counts, model.models, part.parts, strict=True):
        outputs += [*of_model(rows, each)] * count
    if len({output.shape for output in outputs}) > 1:
        shapes = sorted({" × ".join(map(str, output.shape)) for output in outputs})
        raise DataError(
            f"{part.names[0]}: the models of this ensemble see different rows of it "
            f"({', '.join(shapes)}), for example if some look back further: give more rows before "
            "it"
        )
    return outputs


class EnsembleModel(Model[Any, Any, Any, Any]):
    """An ensemble of models, which predicts, evaluates and is saved like a model. Its answers are
    averages over all networks of its models. counts: the weight of each model. Methods that need a
    single network are not available."""

    def __init__(self, models: Sequence[AnyModel], counts: Sequence[int]) -> None:
        first = models[0]
        if first.task.averages is None:
            raise cannot_be_averaged(first.task.name)
        vars(self).update(vars(first))  # settings, roles and labels of the first model
        vars(self)["task"] = first.task
        self.models, self.counts = list(models), list(counts)
        self.networks = [network for model in models for network in model.networks]

    # ------------------------------------------------------------- said of all models together
    @property
    def reader(self) -> EnsembleReader:
        return EnsembleReader(self)

    @property
    def abilities(self) -> Abilities:
        abilities, deals = Abilities(), self.task.deals
        abilities.deals = None if deals is None else EnsembleDeals(deals)
        return abilities

    @property
    def _averages(self) -> Averages:
        averages = self.task.averages
        assert averages is not None
        return averages

    def answers_to(self, part: EnsemblePart, options: RequestOptions) -> Sequence[Any]:
        first, averages = part.parts[0], self._averages
        if not len(first):
            return []
        outputs = _outputs(part, self, averages.outputs)
        return averages.answers(outputs, first, self.models[0], options)

    def evaluation_of(self, part: EnsemblePart, options: RequestOptions) -> Evaluation:
        averages = self._averages
        outputs = _outputs(part, self, averages.gold_outputs)
        return averages.evaluate(outputs, part.parts[0], self.models[0], options)

    def answer_shape(self) -> AnswerShape:
        return self.models[0].answer_shape()

    def knows_validation(self) -> str:
        return next(filter(None, (model.knows_validation() for model in self.models)), "")

    def exported(self) -> Exported:
        raise refuse("ensemble", self.task.name)

    def describe(self) -> str:
        return f"the mean of {len(self.models)} models, of different settings"

    def facts(self) -> list[str]:
        pairs = zip(self.counts, self.models, strict=True)
        return [f"{count} × {model.describe()}" for count, model in pairs]

    # ------------------------------------------------------------- fitted, saved and loaded
    def fit(self, *positional: Any, **named: Any) -> Never:
        raise OptionError("fit: an ensemble is not trained: its models are, by `ensue.select`")

    def as_saved(self, seal: Seal | None = None) -> Saved:
        pairs = zip(self.counts, self.models, strict=True)
        saved_models = [(count, model.as_saved({})) for count, model in pairs]
        facts = {**self.settings_facts(), "ensemble": list(self.counts)}
        return Saved(
            self.models[0].task.name, facts, {}, {}, [], {}, seal or {}, ensemble=saved_models
        )

    @classmethod
    def of_saved(cls, saved: Saved, trust: Trust = NO_TRUST, device: str = "auto") -> Self:
        with loading(saved.place):
            kind = TASKS[saved.kind].model_class
            if {each.kind for _, each in saved.ensemble} != {saved.kind}:
                raise Unfit(f"expected models of task {saved.kind} only", "ensemble")
            check_trust([(each, kind.saved_settings(each)) for _, each in saved.ensemble], trust)
            models = [kind.of_trusted(each, trust, device) for _, each in saved.ensemble]
            ensemble = cls(models, [count for count, _ in saved.ensemble])
            ensemble.roles, ensemble.label_type = saved.roles, saved.label_type
        return ensemble

    def _size_line(self) -> str:
        count = sum(p.numel() for network in self.networks for p in network.parameters())
        return f"  {count:,} parameters in all"


def cannot_be_averaged(task: str) -> OptionError:
    known = ", ".join(name for name in TASKS if TASKS[name].averages is not None)
    return OptionError(
        f"--together: models to {task} cannot be averaged; expected {known}. Leave it out"
    )
