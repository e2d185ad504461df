"""Rows as each model of an ensemble reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.rows import Tell
from ensue.data.settings import DataSettings
from ensue.tasks.abilities import Deals
from ensue.tasks.task import PartFiles, Questions, RowNames

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
