"""One long text in columns read side by side: how language models are trained and scored."""

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
Carried = Mapping[str, Tensor]  # what a network remembers, from a batch to the next
COLUMNS, STEPS = 10, 100  # of a text that is scored


@dataclass(frozen=True)
class StreamBatch:
    """tokens (time, batch), and those that follow each of them; real (time, batch) says which
    targets count, None all of them.

    For networks that read from the right too: ahead (steps, batch), what comes after the last
    targets; after (batch,), how many tokens come after each column's first target, None all."""

    tokens: Tensor
    targets: Tensor
    real: Tensor | None = None
    ahead: Tensor | None = None
    after: Tensor | None = None


def stream_of(rows: Ragged, end: int) -> Tokens:
    """All rows one after another, the number `end` after each and before the first."""
    starts = rows.starts + np.arange(len(rows) + 1)
    tokens = np.full(int(starts[-1]) + 1, end, np.int32)
    text = np.ones(len(tokens), bool)
    text[0] = False
    text[starts[1:]] = False
    tokens[text] = rows.values
    return tokens


def read_from(tokens: Tokens, direction: str) -> Tokens:
    """A text as a model of that direction reads it: a backward one from its last token to its
    first. Their end token separates texts, so that it also is the start of the one before."""
    return tokens[::-1].copy() if direction == "backward" else tokens


def scored_columns(rows: Ragged) -> int:
    """How many columns, each with a fresh state, a scored text may be cut into. A single text is
    read as a whole: each of its tokens given all tokens before it."""
    return 1 if len(rows) == 1 else COLUMNS


class StreamSource:
    """A text as `columns` streams, in pieces of `steps` tokens: what is carried from a piece to
    the next is the state at its end. ahead: how many tokens after it a batch holds."""

    def __init__(
        self, tokens: Tokens, name: str, *, columns: int, steps: int, ahead: int = 0
    ) -> None:
        self._name, self.steps, self.ahead = name, steps, ahead
        # every target has its token before it, also across the border of two columns
        usable = (len(tokens) - 1) // columns * columns
        if not usable:
            raise too_few(len(tokens) - 1, columns)
        self.x = np.concatenate(list(contiguous(tokens[:usable], columns, steps)))
        self.y = np.concatenate(list(contiguous(tokens[1 : usable + 1], columns, steps)))
        self.fingerprint = fingerprint({"tokens": tokens})

    def batches(self, epoch: int) -> Sequence[Sequence[int]]:
        """Pieces in the order of the text; a row is a piece's number."""
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
    """All targets of a text once, in `columns` streams; with each batch, where its targets stand
    (time, batch), and the tokens `ahead` of it. The last stream is padded with the last token, its
    padding is not real."""
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
