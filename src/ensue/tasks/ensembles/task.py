"""The task of an ensemble: that of its models, with their mean for an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ensue.data.frames.origin import FILES, Origin
from ensue.data.rows import Tell
from ensue.data.settings import DataSettings
from ensue.errors import DataError
from ensue.tasks.abilities import Averages, Outputs
from ensue.tasks.ensembles.part import EnsembleDeals, EnsembleFiles, EnsemblePart, joined
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.exported import Exported, refuse
from ensue.tasks.task import NOTHING, Asked, Questions, Task


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
