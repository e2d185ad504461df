"""What fewer bits a weight cost: the scores on the validation part, before and after."""

from __future__ import annotations

from typing import Any

from ensue.data.settings import DataSettings
from ensue.export.grid import with_stored_weights
from ensue.tasks.model import Model
from ensue.tasks.task import NOTHING


def change_of_scores(
    data: DataSettings, model: Model[Any, Any, Any], weights: str
) -> dict[str, tuple[float, float]]:
    """(as trained, with rounded weights) of each score."""
    part = model.task.files(data, model).part("validation")
    before = model.evaluate_part(part, NOTHING).scores
    kept = [{k: v.clone() for k, v in own.state_dict().items()} for own in model.networks]
    try:
        for network in model.networks:
            network.load_state_dict(with_stored_weights(network, weights).state_dict())
        after = model.evaluate_part(part, NOTHING).scores
    finally:
        for network, own in zip(model.networks, kept, strict=True):
            network.load_state_dict(own)
    return {name: (own.value, after[name].value) for name, own in before.items()}
