"""Streams: one long text in parallel columns, for training and scoring language models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.batches import contiguous, too_few
from ensue.data.fingerprint import fingerprint
from ensue.data.ragged import Ragged

Tokens = NDArray[np.int32]
Carried = Mapping[str, Tensor]  # the state that a network carries from a batch to the next
COLUMNS, STEPS = 10, 100  # of a text that is scored


@dataclass(frozen=True)
class StreamBatch:
    """tokens (time, batch), and their targets, the next tokens; real (time, batch) marks the
    targets that count, None for all.

    For networks that also read from the right: ahead (steps, batch), the tokens after the last
    targets; after (batch,), the number of tokens after each column's first target, None for all."""

    tokens: Tensor
    targets: Tensor
    real: Tensor | None = None
    ahead: Tensor | None = None
    after: Tensor | None = None


def stream_of(rows: Ragged, end: int) -> Tokens:
    """All rows one after another, with the token `end` after each and before the first."""
    starts = rows.starts + np.arange(len(rows) + 1)
    tokens = np.full(int(starts[-1]) + 1, end, np.int32)
    text = np.ones(len(tokens), bool)
    text[0] = False
    text[starts[1:]] = False
    tokens[text] = rows.values
    return tokens


def read_from(tokens: Tokens, direction: str) -> Tokens:
    """A text in the reading direction of a model: backward from its last token to its first. The
    end token separates texts, so it is also the start in the other direction."""
    return tokens[::-1].copy() if direction == "backward" else tokens


def scored_columns(rows: Ragged) -> int:
    """The number of columns, each with a fresh state, for scoring a text. A single text is one
    column, so that each token is predicted from all tokens before it."""
    return 1 if len(rows) == 1 else COLUMNS


class StreamSource:
    """A text as `columns` streams, in pieces of `steps` tokens; the state at the end of a piece is
    carried to the next. ahead: number of tokens after a piece that its batch includes."""

    def __init__(
        self, tokens: Tokens, name: str, *, columns: int, steps: int, ahead: int = 0
    ) -> None:
        self._name, self.steps, self.ahead = name, steps, ahead
        # every target has its previous token, even across the border of two columns
        usable = (len(tokens) - 1) // columns * columns
        if not usable:
            raise too_few(len(tokens) - 1, columns)
        self.x = np.concatenate(list(contiguous(tokens[:usable], columns, steps)))
        self.y = np.concatenate(list(contiguous(tokens[1 : usable + 1], columns, steps)))
        self.fingerprint = fingerprint({"tokens": tokens})

    def batches(self, epoch: int) -> Sequence[Sequence[int]]:
        """The pieces in the order of the text; a row is the index of a piece."""
        return [[k] for k in range(-(-len(self.x) // self.steps))]

    def batch(self, rows: Sequence[int]) -> StreamBatch:
        (k,) = rows
        piece = slice(k * self.steps, (k + 1) * self.steps)
        after = self.y[piece.stop : piece.stop + self.ahead]
        ahead = _numbers(after) if self.ahead else None
        return StreamBatch(_numbers(self.x[piece]), _numbers(self.y[piece]), ahead=ahead)

    def targets(self, rows: Sequence[int]) -> float:
        (k,) = rows
        return float(self.x[k * self.steps : (k + 1) * self.steps].size)

    def tokens(self, rows: Sequence[int]) -> float:
        return self.targets(rows)

    def name(self, row: int) -> str:
        return f"{self._name}, steps from {row * self.steps} on"


def pieces(
    tokens: Tokens, columns: int, steps: int, ahead: int = 0
) -> Iterator[tuple[StreamBatch, Any]]:
    """All targets of a text once, in `columns` streams. Each batch comes with the positions of its
    targets (time, batch), and `ahead` tokens after it. The last stream is padded with the last
    token, and its padding is not real."""
    count = len(tokens) - 1
    length = -(-count // columns)
    places = np.arange(columns * length).reshape(columns, length).T
    for at in range(0, length, steps):
        piece = places[at : at + steps]
        real = piece < count
        inside = np.minimum(piece, count - 1)
        x, y, counted = (
            _numbers(tokens[inside]),
            _numbers(tokens[inside + 1]),
            torch.from_numpy(real),
        )
        if not ahead:
            yield StreamBatch(x, y, counted), piece
            continue
        further = places[at + steps : at + steps + ahead]
        following = tokens[np.minimum(further, count - 1) + 1]
        after = torch.from_numpy((real.sum(0) + (further < count).sum(0) - 1).clip(0))
        batch = StreamBatch(x, y, counted, _numbers(following), after)
        yield batch, piece


def _numbers(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(values.astype(np.int64))
