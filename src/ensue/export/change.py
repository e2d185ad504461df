"""What fewer bits a weight cost: the scores on the validation part, before and after."""

from __future__ import annotations

from copy import copy
from typing import Any

from torch import nn

from ensue.data.settings import DataSettings
from ensue.export.grid import with_stored_weights
from ensue.export.weights import store
from ensue.tasks.any_model import AnyModel
from ensue.tasks.exported import rounded
from ensue.tasks.task import NOTHING


def changed(model: AnyModel, learned: Any, networks: list[nn.Module]) -> AnyModel:
    """A copy of the model with these in place of what it had."""
    other: Any = copy(model)
    other._learned, other.networks = learned, networks
    changed_model: AnyModel = other
    return changed_model


def change_of_scores(
    data: DataSettings, model: AnyModel, weights: str
) -> dict[str, tuple[float, float]]:
    """(as trained, with rounded weights) of each score: those of the networks, and of the linear
    model beside them."""
    part = model.reader.files(data).part("validation")
    networks = [with_stored_weights(own, weights) for own in model.networks]
    learned = rounded(model.learned, lambda own: store(own, weights).value)
    before = model.evaluate_part(part, NOTHING).scores
    after = changed(model, learned, networks).evaluate_part(part, NOTHING).scores
    return {name: (own.value, after[name].value) for name, own in before.items()}
