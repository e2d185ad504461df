"""A recurrent decoder that generates words, with attention to the memory of a sentence or a
picture, or only from its initial state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.data.vocabulary import START_NUMBER
from ensue.decoding import Shared
from ensue.engine.recurrence import State
from ensue.errors import OptionError, unknown
from ensue.layers.attention import Attention, Memory
from ensue.layers.lengths import step_mask
from ensue.layers.stack import Masks
from ensue.tasks.blocks.recurrent_layers import layers_of
from ensue.tasks.blocks.softmax_output import Output
from ensue.tasks.settings import DecoderSettings

LUONG = ("dot", "general", "concat")
ATTEND_OUTPUTS = ("combined", "context")


class SharedMemory(NamedTuple):
    """A `Memory` shared by all hypotheses of a sentence."""

    values: Shared
    keys: Shared
    real: Shared


class DecoderState(NamedTuple):
    """The state of a decoder: the cells' states layer by layer (rows, …), the memory, and with
    input feeding the previous step's r (rows, width).

    weights α (rows, positions): the attention of the step that produced this state."""

    cells: tuple[State, ...]
    memory: SharedMemory | None
    fed: Tensor | None
    weights: Tensor | None = None


class ReadoutInputs(NamedTuple):
    """The values from which a step's words are predicted: s_t, the context c_t and the embedding e
    of the previous word, each (…, width)."""

    state: Tensor
    context: Tensor | None
    embedded: Tensor


class AttentionDecoder(nn.Module):
    """p(w_t | w_1 … w_{t−1}, memory) = softmax(W·r_t + b), with e the embedding of w_{t−1}:

        additive  c = attention(s_{t−1});  s_t = cells([e; c], s_{t−1});  r = tanh(R·[s_t; c; e])
        Luong's   s_t = cells(e, s_{t−1});  c = attention(s_t);  r = tanh(R·[c; s_t])
        none      s_t = cells(e, s_{t−1});  r = s_t

    Luong's scores are dot, general and concat. input_feeding: their cells see [e; r_{t−1}], r_0 =
    0; without it all steps run in one call. attend_output "context": r = c. tied: W is the
    embedding, after a linear map if the width of r differs. table: a shared embedding. first_word
    "zero": e is zero before the first word. Dropout of inputs and outputs is the same at all steps
    of a row. memory_size: size of the memory's vectors; None without attention."""

    def __init__(
        self,
        words: int,
        settings: DecoderSettings,
        *,
        memory_size: int | None,
        attend_output: str = "combined",
        table: nn.Embedding | None = None,
        engine: str = "auto",
    ) -> None:
        super().__init__()
        _check(settings.attention, settings.input_feeding, attend_output)
        hidden_size, embedding_size = settings.hidden_size, settings.embedding_size
        self.dropout_input, self.dropout_output = settings.dropout_input, settings.dropout_output
        self.smoothing = settings.smoothing
        self.looks_first = settings.attention == "additive"
        self.input_feeding = settings.input_feeding
        self.zero_first = settings.first_word == "zero"
        self.table = embedding_table(words, embedding_size) if table is None else table
        self.attention: Attention | None = None
        if settings.attention != "none":
            if memory_size is None:
                raise OptionError("memory_size: expected a width with attention, got None")
            self.attention = Attention(
                settings.attention, hidden_size, memory_size, project=settings.project
            )
        context = 0 if self.attention is None else self.attention.context_size
        self.reads = _reads(settings.attention, attend_output)
        sizes = {"state": hidden_size, "context": context, "embedded": embedding_size}
        width = sum(sizes[name] for name in self.reads)
        mixed = len(self.reads) > 1
        untied = hidden_size if mixed else width
        self.readout_size = embedding_size if settings.tied else untied
        fed = self.readout_size if settings.input_feeding else 0
        entering = embedding_size + (context if self.looks_first else fed)
        self.recurrent = layers_of(settings, entering, engine=engine)
        self.readout = _readout(width, self.readout_size, mixed)
        self.output = Output(words, self.readout_size, self.table if settings.tied else None)

    # ------------------------------------------------------------- beginning
    def begin(
        self, rows: int, cells: Sequence[State] | None, memory: Tensor | None, real: Tensor | None
    ) -> DecoderState:
        """The state before the first step. cells: initial states, layer by layer, None for the
        cells' own; memory (rows, positions, width) and its real positions (rows, positions), None
        without attention."""
        like = self.output.bias
        if cells is None:
            cells = [way.start(like.new_zeros(1, rows, 0)) for way in self.recurrent.ways]
        fed = like.new_zeros(rows, self.readout_size) if self.input_feeding else None
        if self.attention is None:
            return DecoderState(tuple(cells), None, fed)
        if memory is None or real is None:
            raise OptionError("memory, real: expected both, since the decoder has attention")
        ready = self.attention.prepare(memory, real)
        return DecoderState(tuple(cells), SharedMemory(*map(Shared, ready)), fed)

    # ------------------------------------------------------------- running
    def forward(
        self,
        before: Tensor,
        state: DecoderState,
        lengths: Tensor | None = None,
        sampling: float = 0.0,
    ) -> tuple[Tensor, DecoderState]:
        """before (time, rows), the previous word of each word to generate → r (time, rows, width)
        and the state after the last step.

        sampling: the share of the previous words, except the first, that are replaced by the most
        probable word of the previous step. With lengths (rows,), outputs after a row's end and the
        final state are undefined."""
        none = None
        if self.training and self.dropout_input:
            size = (before.shape[1], self.table.embedding_dim)
            none = dropout(self.output.bias.new_ones(size), self.dropout_input)
        x = self._embedded(before, none)
        masks = self.recurrent.sample_masks(x) if self.training else None
        if self.looks_first or self.input_feeding or sampling or len(x) == 1:
            return self._in_turn(before, x, state, none, masks, sampling)
        s, cells = self.recurrent(x, state.cells, lengths, masks)
        context, weights = self._look(s, state)
        state = state._replace(cells=cells, weights=None if weights is None else weights[-1])
        return self._read(ReadoutInputs(s, context, x)), state

    def _in_turn(
        self,
        before: Tensor,
        x: Tensor,
        state: DecoderState,
        mask: Tensor | None,
        masks: Sequence[Masks | None] | None,
        sampling: float,
    ) -> tuple[Tensor, DecoderState]:
        """Runs the steps one by one; values that no later step needs are computed for all steps at
        the end."""
        sampled = torch.rand(before.shape, device=before.device) < sampling if sampling else None
        looks: list[ReadoutInputs] = []
        read: list[Tensor] = []
        for t, e in enumerate(x.unbind(0)):
            if t and sampled is not None:
                likeliest = self.output.log_probabilities(read[-1].detach()).argmax(-1)
                e = self._embedded(torch.where(sampled[t], likeliest, before[t]), mask)
            step_masks = None if masks is None else self.recurrent.masks_at(masks, t)
            one, state = self._step(e, state, step_masks)
            looks.append(one)
            if self.input_feeding or sampling:
                read.append(self._read(one))
            if self.input_feeding:
                state = state._replace(fed=read[-1])
        return torch.stack(read) if read else self._read(_stacked(looks, x)), state

    def _step(
        self, e: Tensor, state: DecoderState, masks: Sequence[Masks | None] | None
    ) -> tuple[ReadoutInputs, DecoderState]:
        """One step. e (rows, embedding): of the previous word."""
        if self.looks_first:
            context, weights = self._look(state.cells[-1][0], state)
            assert context is not None
            s, cells = self.recurrent(torch.cat([e, context], -1)[None], state.cells, None, masks)
        else:
            x = e if state.fed is None else torch.cat([e, state.fed], -1)
            s, cells = self.recurrent(x[None], state.cells, None, masks)
            context, weights = self._look(s[0], state)
        return ReadoutInputs(s[0], context, e), state._replace(cells=cells, weights=weights)

    def _embedded(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        x: Tensor = self.table(tokens)
        if self.zero_first:
            x = x * (tokens != START_NUMBER)[..., None]
        return x if mask is None else x * mask

    def _look(self, s: Tensor, state: DecoderState) -> tuple[Tensor | None, Tensor | None]:
        """The contexts and weights of the queries s (rows, …) or (time, rows, …)."""
        if self.attention is None or state.memory is None:
            return None, None
        look: tuple[Tensor, Tensor] = self.attention(
            s, Memory(*(part.values for part in state.memory))
        )
        return look

    def _read(self, look: ReadoutInputs) -> Tensor:
        """r (…, readout size)."""
        r: Tensor = self.readout(torch.cat([getattr(look, name) for name in self.reads], -1))
        return r

    # ------------------------------------------------------------- words
    def cost(self, r: Tensor, targets: Tensor, lengths: Tensor) -> Tensor:
        """Σ −log p over the target words (time, rows) without padding, smoothed."""
        if self.training and self.dropout_output:
            r = r * dropout(r.new_ones(1, *r.shape[1:]), self.dropout_output)
        real = step_mask(lengths.to(r.device), len(r))
        return self.output.cost(r, targets, real, self.smoothing)

    def costs(self, r: Tensor, targets: Tensor, lengths: Tensor) -> Tensor:
        """−log p (time, rows) of each target word, 0 on padding."""
        real = step_mask(lengths.to(r.device), len(r))
        return self.output.costs(r, targets).masked_fill(~real, 0)

    @torch.no_grad()
    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """log p (rows, words) of what follows tokens (rows,), and the new state."""
        r, state = self(tokens[None], state)
        return self.output.log_probabilities(r[0]), state


def embedding_table(words: int, width: int) -> nn.Embedding:
    table = nn.Embedding(words, width)
    nn.init.uniform_(table.weight, -0.1, 0.1)
    return table


def _reads(attention: str, attend_output: str) -> tuple[str, ...]:
    """The values of a step from which words are predicted."""
    if attention == "none":
        return ("state",)
    if attend_output == "context":
        return ("context",)
    return ("state", "context", "embedded") if attention == "additive" else ("context", "state")


def _readout(width: int, size: int, mixed: bool) -> nn.Module:
    if mixed:
        return nn.Sequential(nn.Linear(width, size), nn.Tanh())
    return nn.Identity() if width == size else nn.Linear(width, size, bias=False)


def _stacked(looks: Sequence[ReadoutInputs], x: Tensor) -> ReadoutInputs:
    """The steps (rows, width) of x (time, rows, width) as one (time, rows, width)."""
    contexts = [one.context for one in looks if one.context is not None]
    context = torch.stack(contexts) if contexts else None
    return ReadoutInputs(torch.stack([one.state for one in looks]), context, x)


def _check(attention: str, input_feeding: bool, attend_output: str) -> None:
    if attend_output not in ATTEND_OUTPUTS:
        raise unknown("attend_output", attend_output, ATTEND_OUTPUTS)
    luong = ", ".join(LUONG)
    if input_feeding and attention not in LUONG:
        raise OptionError(
            f"input_feeding: expected false with attention {attention!r}; input feeding is for "
            f"{luong}: their decoder steps do not see the previous step's attention without it; "
            "with additive attention, its context enters each step"
        )
    if attend_output == "context" and attention not in LUONG:
        raise OptionError(
            f"attend_output: expected 'combined' with attention {attention!r}; only with "
            f"{luong} does the context know the previous word"
        )
