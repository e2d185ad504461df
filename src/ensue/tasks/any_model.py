"""The interfaces of a model, for any task: `ModelView` for inputs and targets, `AnyModel` for
everything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from torch import nn

from ensue.tasks.settings import TextSettings
from ensue.training.settings import TrainSettings

if TYPE_CHECKING:
    from ensue.tasks.model import Model
    from ensue.tasks.transfer.pretrained import Beginning, Pretrained

    AnyModel: TypeAlias = Model[Any, Any, Any, Any]
else:  # only for annotations: the module itself imports models
    AnyModel = Any


class ModelView(Protocol):
    """A model, or a model as one of its inputs sees it. settings: the [model] table; learned:
    everything learned except the weights; roles: columns by the keys of [data]."""

    @property
    def task(self) -> Any: ...
    @property
    def text(self) -> TextSettings: ...
    @property
    def settings(self) -> Any: ...
    @property
    def train(self) -> TrainSettings: ...
    @property
    def roles(self) -> Mapping[str, Any]: ...
    @property
    def inputs(self) -> Mapping[str, Any]: ...
    @property
    def fitted(self) -> bool: ...
    @property
    def learned(self) -> Any: ...
    @property
    def networks(self) -> Sequence[nn.Module]: ...
    @property
    def pretrained(self) -> Pretrained | None: ...
    @property
    def beginning(self) -> Beginning | None: ...


ATTRIBUTES = {"model": "settings"}  # attributes of a model with another name than their table


def table_of(model: AnyModel, name: str) -> Any:
    """A table of the configuration of a model: text, model, train or base."""
    return getattr(model, ATTRIBUTES.get(name, name))
