"""What is searched of models that read texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ensue.tasks.rows.part import Part
from ensue.tasks.search.ranges import Choice, Searched, Space
from ensue.tasks.search.usual import without

OF_TEXTS = ("model.embedding_size", "model.word_dropout", "text.level", "text.min_count")
SHORT = 40  # tokens of a text: of longer ones single letters take too long to read
LEVEL = Searched(Choice(("words", "pieces", "characters")))
LONG_LEVEL = Searched(Choice(("words", "pieces")))
MIN_COUNT = Searched(Choice((1, 2, 3), ordered=True))
# Found by hand on IMDB: much dropout, a rate that falls to nothing, averaged weights.
DROPPED_OUT: Mapping[str, Any] = {
    "model.pooling": "mean+max",
    "model.word_dropout": 0.1,
    "model.dropout_input": 0.4,
    "model.dropout_output": 0.4,
    "train.rate": 0.002,
    "train.schedule": "linear",
    "train.averaging": 0.999,
}


def text_space(space: Space, train: Part) -> Space:
    """The space for these rows: vectors have no words, and long texts are not read by letters."""
    if not train.texts:
        return without(space, *OF_TEXTS)
    long = len(train) and len(train.inputs.values) / len(train) > SHORT
    return {key: LONG_LEVEL if long and row is LEVEL else row for key, row in space.items()}
