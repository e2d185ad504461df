"""Pairs of sequences as networks take them, and what is asked of a network that turns one into
the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from ensue.decoding import State
from ensue.errors import ShapeError
from ensue.layers.recurrent import Recurrent
from ensue.tasks.blocks.attention_decoder import AttentionDecoder, DecoderState

SPREAD = 0.1  # of a random state


class StateBridge(nn.Module):
    """The end states of an encoder, layer by layer, both directions side by side: s = [→; ←]
    where that fits, and tanh(P·[→; ←] + b) where it does not.

    Each part of a state comes from the part of the same name, or, where the encoder's cell has
    none such, from its first; each has a P and b of its own."""

    def __init__(self, encoder: Recurrent, decoder: Recurrent) -> None:
        super().__init__()
        self.directions = 1 + encoder.bidirectional
        self.read: list[list[int]] = []  # for each layer and part: the encoder's part
        self.maps = nn.ModuleList()
        for ours, theirs in zip(decoder.ways, encoder.ways[:: self.directions], strict=True):
            names = theirs.cell.parts
            self.read.append([names.index(p) if p in names else 0 for p in ours.cell.parts])
            for part, size, at in zip(
                ours.cell.parts, ours.state_sizes, self.read[-1], strict=True
            ):
                width = theirs.state_sizes[at] * self.directions
                fits = part in names and width == size
                self.maps.append(nn.Identity() if fits else _squashed(width, size))

    def forward(self, ends: Sequence[State]) -> tuple[State, ...]:
        """The encoder's end states, one for each layer and direction → the decoder's."""
        maps = iter(self.maps)
        begun = []
        for layer, parts in enumerate(self.read):
            ways = ends[layer * self.directions : (layer + 1) * self.directions]
            sides = [torch.cat([way[at] for way in ways], -1) for at in parts]
            begun.append(tuple(next(maps)(side) for side in sides))
        return tuple(begun)


class VectorBridge(nn.Module):
    """One vector (rows, width), such as the features of a picture: every part of every layer's
    state begins as tanh(P·v + b), with a P and b of its own."""

    def __init__(self, width: int, decoder: Recurrent) -> None:
        super().__init__()
        self.width = width
        self.counts = [len(way.state_sizes) for way in decoder.ways]
        sizes = [size for way in decoder.ways for size in way.state_sizes]
        self.maps = nn.ModuleList(_squashed(width, size) for size in sizes)

    def forward(self, vector: Tensor) -> tuple[State, ...]:
        if vector.dim() != 2 or vector.shape[1] != self.width:
            raise ShapeError(f"vector: expected (rows, {self.width}), got {tuple(vector.shape)}")
        maps = iter(self.maps)
        return tuple(tuple(next(maps)(vector) for _ in range(count)) for count in self.counts)


class RandomStart(nn.Module):
    """The same state for all rows, drawn from N(0, 0.1²) with the weights and kept with them."""

    def __init__(self, decoder: Recurrent) -> None:
        super().__init__()
        self.counts = [len(way.state_sizes) for way in decoder.ways]
        sizes = [size for way in decoder.ways for size in way.state_sizes]
        for k, size in enumerate(sizes):
            self.register_buffer(f"part{k}", nn.init.normal_(torch.empty(size), std=SPREAD))

    def forward(self, ends: Sequence[State]) -> tuple[State, ...]:
        """ends: an encoder's end states, for the number of their rows."""
        rows = ends[0][0].shape[0]
        parts = iter(self.buffers())
        return tuple(
            tuple(next(parts).expand(rows, -1) for _ in range(count)) for count in self.counts
        )


def _squashed(width: int, size: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, size), nn.Tanh())


class DecodedPairs(nn.Module, ABC):
    """A `PairNetwork` but for how a source is read. sampling: the share of the decoder's own words
    among its inputs while it is trained."""

    decoder: AttentionDecoder
    sampling: float

    @abstractmethod
    def begin(self, source: Tensor, lengths: Tensor) -> DecoderState:
        """The source read: what the first step needs."""

    def forward(self, batch: PairBatch) -> Tensor:
        state = self.begin(batch.source, batch.lengths)
        sampling = self.sampling if self.training else 0.0
        r, _ = self.decoder(batch.before, state, batch.wanted_lengths, sampling)
        return self.decoder.cost(r, batch.wanted, batch.wanted_lengths)

    @torch.no_grad()
    def costs(self, batch: PairBatch) -> Tensor:
        state = self.begin(batch.source, batch.lengths)
        r, _ = self.decoder(batch.before, state, batch.wanted_lengths)
        return self.decoder.costs(r, batch.wanted, batch.wanted_lengths)

    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        return self.decoder.step(tokens, state)

    def alignment(self, state: DecoderState) -> Tensor | None:
        return state.weights


@dataclass(frozen=True)
class PairBatch:
    """Rows of a batch on axis 1 of what has steps; 0 is padding.

    source (time, batch), or vectors (time, batch, n), with lengths (batch,); for a target w_1 … w_n
    before (time, batch): <s> w_1 … w_n, what stands before each word that is to be said;
    wanted (time, batch): w_1 … w_n </s>; wanted_lengths (batch,): n + 1."""

    source: Tensor
    lengths: Tensor
    before: Tensor
    wanted: Tensor
    wanted_lengths: Tensor

    def __len__(self) -> int:
        return len(self.lengths)


class PairNetwork(Protocol):
    """What training, search and evaluation see of any of them."""

    def __call__(self, batch: PairBatch) -> Tensor:
        """The cost summed over all real words that are wanted, with teacher forcing."""
        ...

    def costs(self, batch: PairBatch) -> Tensor:
        """−log p (time, batch) of each wanted word, 0 on padding; no smoothing, no dropout."""
        ...

    def begin(self, source: Tensor, lengths: Tensor) -> State:
        """The source read: what the first step needs. Rows are on axis 0 of every tensor of the
        state, so that `decoding.reordered` works; what all hypotheses share is `Shared`."""
        ...

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """log p (rows, words) of what follows tokens (rows,), and the new state."""
        ...

    def alignment(self, state: State) -> Tensor | None:
        """α (rows, source time): where the step that gave this state looked; None without
        attention. Zero on padding, each row sums to one."""
        ...
