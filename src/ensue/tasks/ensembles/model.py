"""`EnsembleModel`: models of one task with settings of their own, whose mean answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Never, Self

import numpy as np
from numpy.typing import NDArray

from ensue.data.frames.origin import FILES, Origin
from ensue.data.rows import Tell
from ensue.data.settings import DataSettings
from ensue.errors import DataError, OptionError
from ensue.files.seal import Seal
from ensue.tasks import TASKS
from ensue.tasks.abilities import Averages, Deals, Outputs
from ensue.tasks.declarations import Unfit
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.exported import Exported, refuse
from ensue.tasks.kept_cells import NO_TRUST, Trust, check_trust
from ensue.tasks.model import Model
from ensue.tasks.saved import Saved, loading
from ensue.tasks.task import NOTHING, Asked, PartFiles, Questions, RowNames, Task

Models = Sequence[Any]  # of the ensemble


@dataclass(frozen=True)
class EnsemblePart:
    """The same rows, one part for each model: models differ in what they take for a token."""

    parts: tuple[Any, ...]

    @classmethod
    def of(cls, models: Models, read: Callable[[Any], Any]) -> EnsemblePart:
        """read: gives the rows as a model reads them."""
        return cls(tuple(read(own) for own in models))

    @property
    def names(self) -> RowNames:
        found: RowNames = self.parts[0].names
        return found

    def __len__(self) -> int:
        return len(self.parts[0])

    def take(self, rows: NDArray[np.int64]) -> EnsemblePart:
        return EnsemblePart(tuple(own.take(rows) for own in self.parts))


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
        return EnsemblePart(tuple(own.part(name, other) for own, other in pairs))


class EnsembleDeals:
    """Rows that other processes answer, as those of the task itself."""

    def __init__(self, deals: Deals) -> None:
        self._deals, self.names = deals, deals.names

    def shares(
        self, model: Any, paths: Sequence[str], data: DataSettings, on_bad_row: Tell | None = None
    ) -> Iterator[list[Any]]:
        return self._deals.shares(model.models[0], paths, data, on_bad_row)

    def questions(self, model: Any, share: Sequence[Any]) -> Questions[EnsemblePart]:
        return joined([self._deals.questions(own, share) for own in model.models])


def joined(questions: Sequence[Questions[Any]]) -> Questions[EnsemblePart]:
    """The same rows as each model reads them."""
    return Questions(EnsemblePart(tuple(own.part for own in questions)), questions[0].shown)


class EnsembleTask:
    """All that is not said here is as of the task itself, and of the first model, whose settings
    and labels an ensemble has. What needs the insides of one network is not offered."""

    explains = heads = draws = generates = fills = counts = None

    def __init__(self, task: Task[Any, Any, Any], averages: Averages) -> None:
        self._task, self.averages = task, averages
        self.deals = None if task.deals is None else EnsembleDeals(task.deals)

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_task"], name)

    # ------------------------------------------------------------- read
    def files(
        self,
        data: DataSettings,
        model: Any,
        on_bad_row: Tell | None = None,
        origin: Origin = FILES,
    ) -> EnsembleFiles:
        told = [on_bad_row, *[None] * (len(model.models) - 1)]
        pairs = zip(model.models, told, strict=True)
        return EnsembleFiles([self._task.files(data, own, tell, origin) for own, tell in pairs])

    def given(
        self,
        rows: Any,
        model: Any,
        columns: Mapping[str, str],
        before: EnsemblePart | None = None,
    ) -> EnsemblePart:
        return EnsemblePart.of(model.models, lambda own: self._task.given(rows, own, columns))

    def asked(self, inputs: Any, model: Any, asked: Asked = NOTHING) -> EnsemblePart:
        given = list(inputs) if isinstance(inputs, Iterator) else inputs  # it is read several times
        return EnsemblePart.of(model.models, lambda own: self._task.asked(given, own, asked))

    def asked_lines(self, lines: Sequence[str], model: Any) -> EnsemblePart:
        return EnsemblePart.of(model.models, lambda own: self._task.asked_lines(lines, own))

    def asked_files(
        self,
        paths: Sequence[str],
        data: DataSettings,
        model: Any,
        asked: Asked = NOTHING,
        on_bad_row: Tell | None = None,
        origin: Origin = FILES,
    ) -> Iterator[Questions[EnsemblePart]]:
        told = [on_bad_row, *[None] * (len(model.models) - 1)]
        every = [
            self._task.asked_files(paths, data, own, asked, tell, origin)
            for own, tell in zip(model.models, told, strict=True)
        ]
        for questions in zip(*every, strict=True):
            yield joined(questions)

    def check(self, part: EnsemblePart, name: str) -> None:
        self._task.check(part.parts[0], name)

    # ------------------------------------------------------------- asked
    def answers(self, part: EnsemblePart, model: Any, asked: Asked = NOTHING) -> Sequence[Any]:
        first = part.parts[0]
        if not len(first):
            return []
        outputs = _outputs(part, model, self.averages.outputs)
        return self.averages.answers(outputs, first, model.models[0], asked)

    def evaluate(self, part: EnsemblePart, model: Any, asked: Asked = NOTHING) -> Evaluation:
        outputs = _outputs(part, model, self.averages.gold_outputs)
        return self.averages.evaluate(outputs, part.parts[0], model.models[0], asked)

    def learned_from_validation(self, model: Any) -> str:
        every = (self._task.learned_from_validation(own) for own in model.models)
        return next(filter(None, every), "")

    # ------------------------------------------------------------- taken elsewhere, looked at
    def exported(self, model: Any) -> Exported:
        raise refuse("ensemble", self._task.name)

    def describe(self, model: Any) -> str:
        return f"the mean of {len(model.models)} models, of different settings"

    def facts(self, model: Any) -> list[str]:
        pairs = zip(model.counts, model.models, strict=True)
        return [f"{count} × {self._task.describe(own)}" for count, own in pairs]


def _outputs(part: EnsemblePart, model: Any, of_model: Callable[[Any, Any], Outputs]) -> list[Any]:
    """Of the networks of all models, each as often as its model counts."""
    found: list[Any] = []
    for count, own, rows in zip(model.counts, model.models, part.parts, strict=True):
        found += [*of_model(rows, own)] * count
    if len({output.shape for output in found}) > 1:
        shapes = sorted({" × ".join(map(str, output.shape)) for output in found})
        raise DataError(
            f"{part.names[0]}: the models of this ensemble see different rows of it "
            f"({', '.join(shapes)}), as where some look back further: give more rows before it"
        )
    return found


AnyModel = Model[Any, Any, Any]


class EnsembleModel(Model[Any, Any, Any, Any]):
    """Predicts, evaluates and is saved as any model. counts: how often each model counts."""

    def __init__(self, models: Sequence[AnyModel], counts: Sequence[int]) -> None:
        first = models[0]
        averages = first.task.averages
        if averages is None:
            raise cannot_be_averaged(first.task.name)
        vars(self).update(vars(first))  # settings, roles and labels are the first one's
        vars(self)["task"] = EnsembleTask(first.task, averages)
        self.models, self.counts = list(models), list(counts)
        self.networks = [network for own in models for network in own.networks]

    def fit(self, *given: Any, **named: Any) -> Never:
        raise OptionError("fit: an ensemble is not trained: its models are, by `ensue.select`")

    def as_saved(self, seal: Seal | None = None) -> Saved:
        pairs = zip(self.counts, self.models, strict=True)
        own = [(count, model.as_saved({})) for count, model in pairs]
        facts = {**self.settings_facts(), "ensemble": list(self.counts)}
        return Saved(self.models[0].task.name, facts, {}, {}, [], {}, seal or {}, ensemble=own)

    @classmethod
    def of_saved(cls, saved: Saved, trust: Trust = NO_TRUST, device: str = "auto") -> Self:
        with loading(saved.place):
            kind = TASKS[saved.kind].model_class
            if {own.kind for _, own in saved.ensemble} != {saved.kind}:
                raise Unfit(f"expected models to {saved.kind}", "ensemble")
            check_trust([(own, kind.saved_settings(own)) for _, own in saved.ensemble], trust)
            models = [kind.of_trusted(own, trust, device) for _, own in saved.ensemble]
            found = cls(models, [count for count, _ in saved.ensemble])
            found.roles, found.label_type = saved.roles, saved.label_type
        return found

    def _size_line(self) -> str:
        count = sum(p.numel() for network in self.networks for p in network.parameters())
        return f"  {count:,} parameters in all"


def cannot_be_averaged(task: str) -> OptionError:
    known = ", ".join(name for name in TASKS if TASKS[name].averages is not None)
    return OptionError(
        f"--together: answers of models to {task} have no mean; it is for {known}. Leave it out"
    )
