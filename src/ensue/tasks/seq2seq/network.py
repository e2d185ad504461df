"""Networks that generate words: bridges to a decoder, and the kinds by `model.family`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.decoding import Shared, State
from ensue.engine.rows import check_lengths, reverse_time
from ensue.errors import OptionError, ShapeError
from ensue.layers.lengths import step_mask
from ensue.layers.recurrent import Recurrent
from ensue.layers.transformer import Decoded, DecoderBlocks, Design, EncoderBlocks, placed
from ensue.tasks.blocks.attention_decoder import AttentionDecoder, DecoderState, embedding_table
from ensue.tasks.blocks.recurrent_layers import layers_of
from ensue.tasks.blocks.softmax_output import Output
from ensue.tasks.model import Model
from ensue.tasks.seq2seq.pairs import PairBatch, Taught
from ensue.tasks.seq2seq.settings import PairSettings
from ensue.tasks.seq2seq.source import LearnedPairs
from ensue.tasks.task import Family

SPREAD = 0.1  # of a random state


class StateBridge(nn.Module):
    """Initial decoder states from the end states of an encoder, layer by layer: s = [→; ←] if the
    sizes fit, else tanh(P·[→; ←] + b).

    Each part of a state comes from the encoder's part of the same name, or from its first part if
    there is none; each has a separate P and b."""

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
    """Initial decoder states from one vector (rows, width), such as the features of a picture:
    every part of every layer's state is tanh(P·v + b), with a separate P and b."""

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
    """The same initial state for all rows, drawn from N(0, 0.1²) and stored with the weights."""

    def __init__(self, decoder: Recurrent) -> None:
        super().__init__()
        self.counts = [len(way.state_sizes) for way in decoder.ways]
        sizes = [size for way in decoder.ways for size in way.state_sizes]
        for k, size in enumerate(sizes):
            self.register_buffer(f"part{k}", nn.init.normal_(torch.empty(size), std=SPREAD))

    def forward(self, ends: Sequence[State]) -> tuple[State, ...]:
        """The initial states. ends: an encoder's end states, which tell the number of rows."""
        rows = ends[0][0].shape[0]
        parts = iter(self.buffers())
        return tuple(
            tuple(next(parts).expand(rows, -1) for _ in range(count)) for count in self.counts
        )


def _squashed(width: int, size: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, size), nn.Tanh())


class DecodedPairs(nn.Module, ABC):
    """A `PairNetwork` without the encoder of the source. sampling: the share of the decoder's
    inputs in training that are its own predictions."""

    decoder: AttentionDecoder
    sampling: float

    @abstractmethod
    def begin(self, source: Tensor, lengths: Tensor) -> DecoderState:
        """Reads the source; returns the state for the first step."""

    def forward(self, batch: PairBatch) -> Tensor:
        state = self.begin(batch.source, batch.lengths)
        sampling = self.sampling if self.training else 0.0
        r, _ = self.decoder(batch.before, state, batch.target_lengths, sampling)
        return self.decoder.cost(r, batch.targets, batch.target_lengths)

    @torch.no_grad()
    def costs(self, batch: PairBatch) -> Tensor:
        state = self.begin(batch.source, batch.lengths)
        r, _ = self.decoder(batch.before, state, batch.target_lengths)
        return self.decoder.costs(r, batch.targets, batch.target_lengths)

    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        return self.decoder.step(tokens, state)

    def alignment(self, state: DecoderState) -> Tensor | None:
        return state.weights


# --- the kinds that read words or vectors ------------------------------------------------------


@dataclass(frozen=True)
class SourceSize:
    """The size of a source. words: size of its vocabulary; or features: size of a vector."""

    words: int = 0
    features: int = 0


class VectorTable(nn.Module):
    """W·v + b, used in place of a word's vector."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.map = nn.Linear(features, width)

    def forward(self, vectors: Tensor) -> Tensor:
        """(time, batch, features) → (time, batch, width)."""
        mapped: Tensor = self.map(vectors)
        return mapped


class RecurrentPairs(DecodedPairs):
    """h_1 … h_n = encoder(x_1 … x_n); p(w_t | w_1 … w_{t−1}, x) by an `AttentionDecoder` with
    attention to h and the encoder's number of layers. It begins with the encoder's end states
    (bridge "states"), a `RandomStart`, or its cells' initial states.

    reverse_source: the encoder reads from the last word to the first; h_i stays with its word.
    source: its number of words, or its size of vectors. decoder_cell: "" for the encoder's. shared:
    one embedding for both sides. sampling: in training, the share of the decoder's inputs that are
    its own predictions. smoothing: label smoothing of the targets, see `Output`."""

    def __init__(
        self,
        source: int | SourceSize,
        target_words: int,
        settings: PairSettings,
        engine: str = "auto",
    ) -> None:
        super().__init__()
        size = SourceSize(source) if isinstance(source, int) else source
        _check(settings, size.words, target_words)
        self.reverse_source, self.sampling = settings.reverse_source, settings.sampling
        self.dropout_input = settings.dropout_input
        width = settings.embedding_size
        self.table: nn.Module
        if size.features:
            self.table = VectorTable(size.features, width)
        else:
            self.table = embedding_table(size.words, width)
        self.encoder = layers_of(
            settings,
            settings.embedding_size,
            bidirectional=settings.bidirectional,
            backward_start=settings.backward_start,
            engine=engine,
        )
        says = settings.decoder_cell or settings.cell
        self.decoder = AttentionDecoder(
            target_words,
            settings.model_copy(update={"cell": says}),
            memory_size=self.encoder.output_size,
            attend_output=settings.attend_output,
            table=self.table if isinstance(self.table, nn.Embedding) and settings.shared else None,
            engine=engine,
        )
        self.bridge: StateBridge | RandomStart | None = None
        if settings.bridge == "states":
            self.bridge = StateBridge(self.encoder, self.decoder.recurrent)
        elif settings.bridge == "random":
            self.bridge = RandomStart(self.decoder.recurrent)

    def begin(self, source: Tensor, lengths: Tensor) -> DecoderState:
        """Reads source (time, batch), or vectors (time, batch, n), with lengths (batch,)."""
        plain = check_lengths(lengths, *source.shape[:2])
        assert plain is not None
        x = self.table(reverse_time(source, plain) if self.reverse_source else source)
        if self.training and self.dropout_input:
            x = x * dropout(x.new_ones(1, *x.shape[1:]), self.dropout_input)
        memory, ends = self.encoder(x, lengths=plain)
        if self.reverse_source:
            memory = reverse_time(memory, plain)
        cells = None if self.bridge is None else self.bridge(ends)
        real = step_mask(plain.to(x.device), x.shape[0])
        # contiguous positions of a row, because every step reads them
        memory = memory.transpose(0, 1).contiguous()
        return self.decoder.begin(source.shape[1], cells, memory, real.T.contiguous())


def _check(settings: PairSettings, source_words: int, target_words: int) -> None:
    if settings.bridge != "states" and settings.attention == "none":
        raise OptionError(
            f"bridge: expected 'states' without attention, got {settings.bridge!r}: the decoder "
            "would know nothing of the source"
        )
    if settings.shared and source_words != target_words:
        raise OptionError(
            f"shared: expected one vocabulary for both sides, got {source_words} source words and "
            f"{target_words} target words"
        )


class TransformerState(NamedTuple):
    """The state between two steps of a search: for each block of the decoder its memory of previous
    words (rows, words, 2·width), and its keys and values of the source; the real positions of the
    source; looked (rows, 1, width), the queries of the last step's cross-attention."""

    past: tuple[Tensor, ...]
    memories: tuple[Shared, ...]
    real: Shared
    looked: Tensor | None = None


class TransformerPairs(nn.Module):
    """s = encode(√width·E(source) + positions); p(w_t) = softmax of decode(√width·E'(<s> w_1 …
    w_{t−1}) + positions; s).

    layers: number of layers of the encoder, and of the decoder. tied: E' is also the output's
    matrix; shared: E is E', with one vocabulary. dropout_layers: dropout rate of the embeddings
    with positions and of each sublayer's output. smoothing: label smoothing of the trained cost."""

    def __init__(self, source: int | SourceSize, target_words: int, settings: PairSettings) -> None:
        super().__init__()
        size = SourceSize(source) if isinstance(source, int) else source
        if settings.shared and size.words != target_words:
            raise OptionError(
                "shared: expected one vocabulary for both sides, "
                f"got {size.words} words and {target_words}"
            )
        design = Design(
            settings.hidden_size,
            settings.heads,
            settings.inner_size,
            settings.norm,
            settings.dropout_layers,
            settings.dropout_attention,
        )
        self.width, self.dropout = design.width, design.dropout
        self.smoothing = settings.smoothing
        self.target = _table(target_words, self.width)
        self.source: nn.Module
        if size.features:
            self.source = VectorTable(size.features, self.width)
        else:
            self.source = self.target if settings.shared else _table(size.words, self.width)
        self.encoder = EncoderBlocks(settings.layers, design)
        self.decoder = DecoderBlocks(settings.layers, design)
        self.output = Output(target_words, self.width, self.target if settings.tied else None)

    def _embedded(self, table: nn.Module, tokens: Tensor, first: int = 0) -> Tensor:
        """(time, batch, width) of tokens (time, batch), or of vectors, at positions first, first +
        1, …"""
        x = placed(table(tokens) * math.sqrt(self.width), first)
        return dropout(x, self.dropout, self.training)

    def _encoded(self, source: Tensor, lengths: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Keys and values of the source for each block of the decoder, and its real positions
        (batch, time)."""
        lengths = lengths.to(source.device)
        y = self.encoder(self._embedded(self.source, source), lengths)
        return self.decoder.memories(y), step_mask(lengths, source.shape[0]).t()

    def _decoded(self, batch: PairBatch) -> Tensor:
        memories, real = self._encoded(batch.source, batch.lengths)
        decoded: Decoded = self.decoder(self._embedded(self.target, batch.before), memories, real)
        return decoded.y

    def forward(self, batch: PairBatch) -> Tensor:
        real = step_mask(batch.target_lengths.to(batch.targets.device), len(batch.targets))
        return self.output.cost(self._decoded(batch), batch.targets, real, self.smoothing)

    @torch.no_grad()
    def costs(self, batch: PairBatch) -> Tensor:
        trained = self.training
        self.eval()
        try:
            costs = self.output.costs(self._decoded(batch), batch.targets)
        finally:
            self.train(trained)
        return costs * step_mask(batch.target_lengths.to(costs.device), len(costs))

    @torch.no_grad()
    def begin(self, source: Tensor, lengths: Tensor) -> TransformerState:
        memories, real = self._encoded(source, lengths)
        nothing = memories[0].new_zeros(real.shape[0], 0, 2 * self.width)
        return TransformerState(
            tuple(nothing for _ in memories),
            tuple(Shared(memory) for memory in memories),
            Shared(real),
        )

    @torch.no_grad()
    def step(self, tokens: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        x = self._embedded(self.target, tokens[None], first=state.past[0].shape[1])
        memories = tuple(memory.values for memory in state.memories)
        y, past, looked = self.decoder(x, memories, state.real.values, state.past)
        logs = self.output.log_probabilities(y[0])
        return logs, state._replace(past=past, looked=looked)

    @torch.no_grad()
    def alignment(self, state: TransformerState) -> Tensor | None:
        """The mean over the heads of the last block, computed only on request."""
        if state.looked is None:  # nothing was said yet
            return None
        memory, real = state.memories[-1].values, state.real.values
        return self.decoder.weights(state.looked, memory, real)[:, 0]


def _table(words: int, width: int) -> nn.Embedding:
    table = nn.Embedding(words, width)
    nn.init.normal_(table.weight, std=width**-0.5)  # times √width: the scale of positions
    return table


class RecurrentFamily(Family[PairSettings]):
    def build(self, model: Model[PairSettings, Any, Any]) -> Taught:
        network = RecurrentPairs(*_sizes(model.learned), model.settings)
        start = model.learned.source.start
        if start is not None:
            with torch.no_grad():
                cast(nn.Embedding, network.table).weight.copy_(start)
        return Taught(network)

    def describe(self, settings: PairSettings) -> str:
        ways = "bidirectional " if settings.bidirectional else ""
        looks = "no" if settings.attention == "none" else settings.attention
        layers = f"{settings.layers} × {ways}{settings.cell} of {settings.hidden_size}"
        return f"{layers}, {looks} attention"


class TransformerFamily(Family[PairSettings]):
    def build(self, model: Model[PairSettings, Any, Any]) -> Taught:
        return Taught(TransformerPairs(*_sizes(model.learned), model.settings))

    def describe(self, settings: PairSettings) -> str:
        layers = settings.layers
        return f"transformer, {layers} + {layers} layers of {settings.hidden_size}"


FAMILIES: dict[str, Family[PairSettings]] = {
    "recurrent": RecurrentFamily(),
    "transformer": TransformerFamily(),
}


def _sizes(learned: LearnedPairs) -> tuple[SourceSize, int]:
    """The size of sources, and the number of words of the target."""
    source, words = learned.source, len(learned.target.words)
    if source.scale is not None:
        return SourceSize(features=source.scale.width), words
    return SourceSize(words=len(source.words)), words
