"""How a model is fitted: what is kept, who is told, what may have changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ensue.training import RunFolder, Said, Validated, Watcher
from ensue.training.rows import Row


@dataclass(frozen=True)
class Fitting:
    """How a model is fitted. folder: keeps the run, None leaves it in memory; watchers: callbacks
    for the rows of a training; config: what must be the same when it goes on, None the model's own
    settings; allow: what of it may have changed."""

    folder: RunFolder | None = None
    watchers: Sequence[Watcher] = ()
    config: Mapping[str, Any] | None = None
    allow: Collection[str] = ()

    def say(self, text: str) -> None:
        for watcher in self.watchers:
            watcher(Said(text))


IN_MEMORY = Fitting()


class Curves:
    """The validation scores of every member, as training went on."""

    def __init__(self) -> None:
        self.members: dict[int, list[Validated]] = {}

    def watch(self, member: int) -> Watcher:
        """A callback that writes down those of a member, from its start."""
        found = self.members[member] = []

        def watcher(row: Row) -> None:
            if isinstance(row, Validated):
                found.append(row)

        return watcher
