"""What fewer bits a weight cost: the scores on the validation part, before and after."""

from __future__ import annotations

from copy import copy
from typing import Any

from torch import nn

from ensue.data.settings import DataSettings
from ensue.export.grid import with_stored_weights
from ensue.export.weights import store
from ensue.tasks.model import Model
from ensue.tasks.task import NOTHING


def changed(
    model: Model[Any, Any, Any], learned: Any, networks: list[nn.Module]
) -> Model[Any, Any, Any]:
    """The same model with others in their place; the one that is given stays as it is."""
    found = copy(model)
    found._learned, found.networks = learned, networks
    return found


def change_of_scores(
    data: DataSettings, model: Model[Any, Any, Any], weights: str
) -> dict[str, tuple[float, float]]:
    """(as trained, with rounded weights) of each score: those of the networks, and of the linear
    model beside them."""
    part = model.task.files(data, model).part("validation")
    networks = [with_stored_weights(own, weights) for own in model.networks]
    learned = model.task.rounded(model.learned, lambda own: store(own, weights).value)
    before = model.evaluate_part(part, NOTHING).scores
    after = changed(model, learned, networks).evaluate_part(part, NOTHING).scores
    return {name: (own.value, after[name].value) for name, own in before.items()}
