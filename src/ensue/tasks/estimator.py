"""`Estimator`: the methods of every task model, with the same signatures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, overload

from ensue.cells import Cell
from ensue.tasks.evaluation.report import Evaluation
from ensue.training import Watcher


class HasColumns(Protocol):
    """Data frames of pandas and polars, tables of pyarrow."""

    @property
    def columns(self) -> Any: ...


class HasColumnNames(Protocol):
    """Data sets of Hugging Face."""

    @property
    def column_names(self) -> Any: ...


FrameType = TypeVar("FrameType", bound=HasColumns | HasColumnNames)
Inputs = Iterable[Any] | Mapping[str, Sequence[Any]] | Path | str
A_co = TypeVar("A_co", covariant=True)  # an answer


class Estimator(Protocol[A_co]):
    """Base class of all task models: fit, evaluate, predict, save and load."""

    def fit(
        self,
        data: Any,
        validation: Any = None,
        *,
        folder: Path | str | None = None,
        watchers: Sequence[Watcher] | None = None,
        **columns: str | Sequence[str],
    ) -> Self: ...

    def evaluate(self, data: Any, **options: Any) -> Evaluation: ...

    @overload
    def predict(self, inputs: FrameType, **options: Any) -> FrameType: ...
    @overload
    def predict(self, inputs: Inputs, **options: Any) -> Sequence[A_co]: ...

    def save(self, folder: Path | str) -> None: ...

    @classmethod
    def load(
        cls,
        folder: Path | str,
        *,
        trust: bool | str | Sequence[str] = False,
        cell: Cell | type[Cell] | None = None,
        device: str = "auto",
    ) -> Self: ...
