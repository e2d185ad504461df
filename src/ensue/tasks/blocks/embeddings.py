"""Converts a batch's inputs to one vector for each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.errors import OptionError, ShapeError, check_rates, unknown
from ensue.layers.recurrent import Recurrent
from ensue.tasks.rows.batch import PADDING, UNKNOWN

Inputs = Mapping[str, Tensor]
DROPPED = ("element", "step", "sequence")


class Feature(nn.Module):
    """A feature of every step, and the width of its vectors."""

    width: int


class Words(Feature):
    """A vector for each word: inputs["words"] (time, batch) → (time, batch, width).

    start: initial vectors (words, width); frozen: they do not change. In training a word is
    replaced by the unknown word with probability `dropout`, or `once_dropout` for words that occur
    only once, by the mask `once` (words,): the unknown word is then learned from the words most
    similar to it."""

    rates: Tensor

    def __init__(
        self,
        count: int,
        width: int,
        *,
        start: Tensor | None = None,
        frozen: bool = False,
        dropout: float = 0.0,
        once: Tensor | None = None,
        once_dropout: float = 0.0,
        deviation: float = 0.1,
    ) -> None:
        super().__init__()
        check_rates({"dropout": dropout, "once_dropout": once_dropout})
        self.width = width
        self.table = _table(count, width, deviation)
        if start is not None:
            if start.shape != (count, width):
                raise ShapeError(
                    f"start: expected ({count}, {width}), words and width, got {tuple(start.shape)}"
                )
            with torch.no_grad():
                self.table.weight.copy_(start)
                self.table.weight[PADDING] = 0
        self.table.weight.requires_grad_(not frozen)
        rates = torch.full((count,), dropout)
        if once is not None:
            rates[once] = once_dropout
        rates[PADDING] = 0
        self.register_buffer("rates", rates, persistent=False)

    def forward(self, inputs: Inputs) -> Tensor:
        ids = inputs["words"]
        if self.training:
            chance = torch.rand(ids.shape, device=ids.device)
            ids = torch.where(chance < self.rates[ids], UNKNOWN, ids)
        vectors: Tensor = self.table(ids)
        return vectors


class Characters(Feature):
    """Vectors from a word's letters, read in both directions: the final states, computed once for
    each distinct word.

    e_w = [forward end; backward end] of the cell over the letters; (time, batch, 2·hidden)."""

    def __init__(self, count: int, width: int, cell: str, hidden_size: int) -> None:
        super().__init__()
        self.table = _table(count, width, 1.0)
        self.reader = Recurrent(cell, width, hidden_size, bidirectional=True)
        self.width = 2 * hidden_size

    def forward(self, inputs: Inputs) -> Tensor:
        letters = self.table(inputs["characters"])
        _, (ahead, behind) = self.reader(letters, lengths=inputs["characters.lengths"])
        return torch.cat([ahead[0], behind[0]], -1)[inputs["characters.index"]]


class Symbols(Feature):
    """Vectors of a discrete feature, concatenated if a step has k values: prefix, suffix (time,
    batch, k) or shape (time, batch) → (time, batch, k·width)."""

    def __init__(self, feature: str, count: int, width: int, columns: int = 1) -> None:
        super().__init__()
        self.feature, self.width = feature, width * columns
        self.table = _table(count, width, 0.1)

    def forward(self, inputs: Inputs) -> Tensor:
        table: Tensor = self.table(inputs[self.feature])
        return table.flatten(2)


class Vectors(Feature):
    """Feature vectors of the data, scaled to (v − mean)/scale: inputs["vectors"] (time, batch,
    width)."""

    mean: Tensor
    scale: Tensor

    def __init__(self, width: int, mean: Tensor | None = None, scale: Tensor | None = None) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("mean", torch.zeros(width) if mean is None else mean)
        self.register_buffer("scale", torch.ones(width) if scale is None else scale)

    def forward(self, inputs: Inputs) -> Tensor:
        return (inputs["vectors"] - self.mean) / self.scale


class Embed(nn.Module):
    """The concatenated features of each step, with dropout: (time, batch, width).

    over: what is dropped together: "element", each number separately; "step", all features of a
    step; "sequence", a feature at all steps of a row (variational)."""

    def __init__(
        self, features: Sequence[Feature], dropout: float = 0.0, over: str = "element"
    ) -> None:
        super().__init__()
        if not features:
            raise OptionError("features: expected at least one, such as Words(1000, 100), got none")
        check_rates({"dropout": dropout})
        if over not in DROPPED:
            raise unknown("dropout over", over, DROPPED)
        self.features = nn.ModuleList(features)
        self.dropout, self.over = dropout, over
        self.width = sum(feature.width for feature in features)

    def forward(self, inputs: Inputs) -> Tensor:
        x = torch.cat([feature(inputs) for feature in self.features], -1)
        if not self.training or not self.dropout:
            return x
        if self.over == "element":
            return dropout(x, self.dropout)
        mask = x.new_ones((*x.shape[:2], 1) if self.over == "step" else (1, *x.shape[1:]))
        return x * dropout(mask, self.dropout)


def _table(count: int, width: int, deviation: float) -> nn.Embedding:
    """Vectors drawn with this standard deviation; padding is and stays zero."""
    table = nn.Embedding(count, width, padding_idx=PADDING)
    with torch.no_grad():
        nn.init.normal_(table.weight, std=deviation)[PADDING] = 0
    return table
