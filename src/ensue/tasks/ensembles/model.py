"""`EnsembleModel`: models of one task with settings of their own, whose mean answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never, Self

from ensue.errors import OptionError
from ensue.files.seal import Seal
from ensue.tasks import TASKS
from ensue.tasks.checks import Unfit
from ensue.tasks.ensembles.task import EnsembleTask
from ensue.tasks.kept_cells import NO_TRUST, Trust
from ensue.tasks.model import Model
from ensue.tasks.saved import Saved, loading

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
                raise Unfit(f"ensemble: expected models to {saved.kind}")
            models = [kind.of_saved(own, trust, device) for _, own in saved.ensemble]
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
