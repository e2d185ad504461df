"""A picture as the input of a network, for export."""

from __future__ import annotations

from ensue.data.pictures.images import GREY
from ensue.tasks.exported import Step
from ensue.tasks.pictures.part import Shape


def picture_step(shape: Shape) -> Step:
    """Bytes (channels, height, width) or (height, width), brought to the shape of training."""
    return {
        "step": "picture",
        "from": "question",
        "to": "pictures",
        "shape": list(shape),
        "grey": [float(own) for own in GREY],
    }
