"""The channels of pictures are those of the settings, whatever the files have."""

from __future__ import annotations

import numpy as np
import pytest

from ensue.tasks.image import ImageSettings
from ensue.tasks.pictures.part import collect_pictures
from ensue.tasks.pictures.reader import pictures_in_memory

GREY = np.arange(100, dtype=np.uint8).reshape(10, 10)
COLOUR = np.stack([GREY, GREY + 50, GREY + 100])


@pytest.mark.parametrize(("channels", "count"), [("auto", None), ("grey", 1), ("colour", 3)])
@pytest.mark.parametrize("picture", [GREY, COLOUR], ids=["grey", "colour"])
def test_pictures_are_brought_to_the_channels_asked_for(
    picture: np.ndarray, channels: str, count: int | None
) -> None:
    settings = ImageSettings(channels=channels, blocks="4")
    pictures = collect_pictures(pictures_in_memory([(picture, "a")]), settings).pixels
    values = picture.reshape(-1, 10, 10)
    assert pictures.shape == (1, count or len(values), 10, 10)
    if len(values) == 1:  # a grey picture is the same in every channel
        assert (pictures == GREY).all()
