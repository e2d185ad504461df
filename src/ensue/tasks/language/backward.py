"""A language model that reads texts from the right, asked as those that read them from the left."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import END_NUMBER
from ensue.tasks.language.networks import LanguageNetwork
from ensue.tasks.language.streams import Carried, read_from, scored_columns, stream_of


class FromTheRight:
    """p(text) = Π p(token | tokens after it), the border before the text included: the same text
    has as many factors as from the left. `step` goes to the left."""

    def __init__(self, network: LanguageNetwork) -> None:
        self.network = network
        self.first = network.first

    def begin(self, batch: int) -> Carried:
        return self.network.begin(batch)

    def step(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        return self.network.step(tokens, carried)

    def reorder(self, carried: Carried, order: Tensor) -> Carried:
        return self.network.reorder(carried, order)

    def score(self, rows: Ragged) -> Ragged:
        """log p of every token of rows, given those after it, and of the border before each row,
        which stands last."""
        stream = read_from(stream_of(rows, END_NUMBER), "backward")
        found = self.network.score_stream(stream, scored_columns(rows))
        values = found[::-1]  # the border before a row, then the row
        starts = rows.starts + np.arange(len(rows) + 1)
        order = np.arange(1, len(values) + 1)
        order[starts[1:] - 1] = starts[:-1]
        return Ragged(values[order], starts)
