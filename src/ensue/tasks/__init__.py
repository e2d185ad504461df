"""The registry of tasks. Each task is a folder here, and only this file lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ensue.errors import ConfigError, DataError, OptionError, unknown
from ensue.tasks.options import Option

if TYPE_CHECKING:
    from ensue.tasks.sample import Guess, Sample
    from ensue.tasks.task import Task

# The most specific first: data belong to the first task that recognises them.
ROOMS = (
    "image",
    "caption",
    "forecast",
    "tree",
    "match",
    "translate",
    "table",
    "label",
    "regress",
    "classify",
    "language",
)


# Tasks that are one file here, by the folder that they share; the others are folders.
FILES = {
    "caption": "seq2seq",
    "classify": "supervised",
    "image": "supervised",
    "match": "supervised",
    "regress": "supervised",
    "table": "supervised",
    "translate": "seq2seq",
    "tree": "supervised",
}


# Tasks whose data are recognised without loading their networks, by this function of a module here.
RECOGNISERS = {
    "caption": ("seq2seq.recognise", "recognised_captions"),
    "forecast": ("forecast.tables.recognise", "recognised"),
    "label": ("rows.recognise", "recognised_steps"),
    "translate": ("seq2seq.recognise", "recognised_pairs"),
}


class Tasks(Mapping[str, "Task[Any, Any, Any]"]):
    """The tasks by name. A task is loaded at first use, as TASK of `ensue.tasks.NAME` or, for a
    folder, of `ensue.tasks.NAME.task`. Its command-line options are in the `options` of its folder
    or of the folder that it shares, which load no torch."""

    def __init__(self, rooms: tuple[str, ...]) -> None:
        self._rooms = rooms
        self._added: dict[str, Task[Any, Any, Any]] = {}
        self._metrics: dict[str, tuple[str, ...]] = {}  # that came with them

    def __getitem__(self, name: str) -> Task[Any, Any, Any]:
        if name in self._added:
            return self._added[name]
        if name not in self._rooms:
            raise KeyError(name)
        place = f"ensue.tasks.{name}" if name in FILES else f"ensue.tasks.{name}.task"
        task: Task[Any, Any, Any] = import_module(place).TASK
        return task

    def recognise(self, name: str, sample: Sample) -> Guess | DataError | None:
        """A task's reading of the data; None if they are not for this task. Its networks are loaded
        only if necessary."""
        if name in self._added or name not in RECOGNISERS:
            return self[name].recognise(sample)
        module, function = RECOGNISERS[name]
        guess: Guess | DataError | None = getattr(import_module(f"ensue.tasks.{module}"), function)(
            sample
        )
        return guess

    def __contains__(self, name: object) -> bool:
        """Whether a task exists. Loads no task."""
        return name in self._added or name in self._rooms

    def __iter__(self) -> Iterator[str]:
        return iter((*self._added, *self._rooms))

    def __len__(self) -> int:
        return len(self._rooms) + len(self._added)

    def unknown(self, name: str) -> ConfigError:
        """The error for an unknown task."""
        from ensue.settings import of_your_own

        message = str(unknown("task", name, self))
        return ConfigError(message + of_your_own("task") * ("did you mean" not in message))

    def register(self, task: Task[Any, Any, Any]) -> None:
        """Registers a task from outside of Ensue. It is the first to be asked whether it recognises
        data, and its metrics can be watched."""
        from ensue.metrics.table import METRICS

        if task.name in self:
            raise OptionError(f"task {task.name}: this name is taken")
        for metric in task.metrics:
            known = METRICS.get(metric.name, metric)
            if known.higher_is_better != metric.higher_is_better:
                raise OptionError(
                    f"task {task.name}: its metric {metric.name} has the opposite direction "
                    "of the known metric with this name; rename it"
                )
        for option in task.options:
            for name in self:
                if any(_clash(option, other) for other in self.options(name)):
                    raise OptionError(
                        f"task {task.name}: {option.flag} has another meaning in {name}; "
                        "rename it, or use the same Option"
                    )
        new = {metric.name: metric for metric in task.metrics if metric.name not in METRICS}
        METRICS.update(new)
        self._added[task.name], self._metrics[task.name] = task, tuple(new)

    def unregister(self, name: str) -> None:
        """Removes a registered task."""
        from ensue.metrics.table import METRICS

        del self._added[name]
        for metric in self._metrics.pop(name):
            del METRICS[metric]

    def options(self, name: str) -> tuple[Option, ...]:
        """A task's own command-line options."""
        if name in self._added:
            return self._added[name].options
        every = import_module(f"ensue.tasks.{FILES.get(name, name)}.options").OPTIONS
        options: tuple[Option, ...] = every[name] if name in FILES else every
        return options


def _clash(one: Option, other: Option) -> bool:
    """Whether two options would clash in the same command."""
    return one != other and one.flag == other.flag and bool({*one.verbs} & {*other.verbs})


TASKS = Tasks(ROOMS)
