"""Attention: each query scores the positions of a memory and gets their weighted mean.

A memory is (rows, positions, width), with real (rows, positions), True at real positions. `prepare`
computes its keys once; a step then costs one score for each position.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from ensue.errors import OptionError, ShapeError, unknown


class Memory(NamedTuple):
    """A memory to attend to: values (rows, positions, width), their keys (rows, positions, key
    width), and a mask of real positions (rows, positions)."""

    values: Tensor
    keys: Tensor
    real: Tensor


class Score(nn.Module, ABC):
    """score(s, h_i) of every query with every position, in two parts."""

    @abstractmethod
    def keys(self, memory: Tensor) -> Tensor:
        """The part that does not depend on the query: memory (rows, positions, width) → (…, key
        width)."""

    @abstractmethod
    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """queries (rows, queries, width), keys (rows, positions, key width) → (rows, queries,
        positions)."""


class Dot(Score):
    """s · h_i. Luong et al. 2015."""

    def __init__(self, query_size: int, memory_size: int, hidden_size: int) -> None:
        super().__init__()
        if query_size != memory_size:
            raise OptionError(
                f"dot: expected a memory as wide as the queries, {query_size}, got {memory_size}; "
                "choose 'general', which learns a map between them, or project the memory"
            )

    def keys(self, memory: Tensor) -> Tensor:
        return memory

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return queries @ keys.transpose(1, 2)


class General(Score):
    """sᵀ·W·h_i. Luong et al. 2015."""

    def __init__(self, query_size: int, memory_size: int, hidden_size: int) -> None:
        super().__init__()
        self.map = nn.Linear(memory_size, query_size, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        keys: Tensor = self.map(memory)
        return keys

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return queries @ keys.transpose(1, 2)


class Additive(Score):
    """v · tanh(W·s + U·h_i). Bahdanau et al. 2015."""

    def __init__(self, query_size: int, memory_size: int, hidden_size: int) -> None:
        super().__init__()
        self.of_query = nn.Linear(query_size, hidden_size, bias=False)
        self.of_memory = nn.Linear(memory_size, hidden_size, bias=False)
        self.v = _direction(hidden_size)

    def keys(self, memory: Tensor) -> Tensor:
        return 2 * linear(memory, self.of_memory.weight)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return _through_tanh(2 * linear(queries, self.of_query.weight), keys, self.v)


class Concat(Score):
    """v · tanh(W·[s; h_i]): one matrix W, with one half for s and one for h_i. Luong et al.
    2015."""

    def __init__(self, query_size: int, memory_size: int, hidden_size: int) -> None:
        super().__init__()
        self.query_size = query_size
        self.joint = nn.Linear(query_size + memory_size, hidden_size, bias=False)
        self.v = _direction(hidden_size)

    def keys(self, memory: Tensor) -> Tensor:
        return 2 * linear(memory, self.joint.weight[:, self.query_size :])

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        of_query = linear(queries, self.joint.weight[:, : self.query_size])
        return _through_tanh(2 * of_query, keys, self.v)


SCORES: dict[str, type[Dot] | type[General] | type[Additive] | type[Concat]] = {
    "additive": Additive,
    "dot": Dot,
    "general": General,
    "concat": Concat,
}


class Attention(nn.Module):
    """α_i = softmax_i score(s, h_i) over the real positions; the context is Σ_i α_i·h_i.

    project: a learned map first brings the memory to the queries' width, so that every score works.
    A row without real positions has weights 0 and context 0."""

    def __init__(
        self,
        score: str,
        query_size: int,
        memory_size: int,
        *,
        hidden_size: int | None = None,
        project: bool = False,
    ) -> None:
        super().__init__()
        if score not in SCORES:
            raise unknown("attention score", score, SCORES)
        self.map = nn.Linear(memory_size, query_size, bias=False) if project else nn.Identity()
        self.query_size, self.memory_size = query_size, memory_size
        self.context_size = query_size if project else memory_size
        self.score = SCORES[score](query_size, self.context_size, hidden_size or query_size)

    def prepare(self, memory: Tensor, real: Tensor) -> Memory:
        """memory (rows, positions, width) and real (rows, positions) → the `Memory` for all
        steps."""
        if memory.dim() != 3 or memory.shape[2] != self.memory_size:
            raise ShapeError(
                f"memory: expected (rows, positions, {self.memory_size}), got {tuple(memory.shape)}"
            )
        if real.shape != memory.shape[:2] or real.dtype != torch.bool:
            raise ShapeError(
                f"real: expected a bool for each row and position, {tuple(memory.shape[:2])}, "
                f"got {real.dtype} of shape {tuple(real.shape)}"
            )
        values = self.map(memory)
        return Memory(values, self.score.keys(values), real)

    def forward(self, queries: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """The contexts (…, width) and the weights α (…, positions) of queries (…, query width): one
        for each row, (rows, …), or of all steps, (time, rows, …).

        A row of the memory may have several consecutive rows of queries, as in `decoding.Shared`;
        the memory is not copied."""
        rows, count, width = memory.real.shape[0], *queries.shape[-2:]
        fits = count == rows or (queries.dim() == 2 and count % max(rows, 1) == 0)
        if queries.dim() not in (2, 3) or width != self.query_size or not fits:
            raise ShapeError(
                f"queries: expected (time, {rows}, {self.query_size}), or (rows, "
                f"{self.query_size}) with a multiple of the memory's {rows} rows, got "
                f"{tuple(queries.shape)}"
            )
        if queries.dim() == 3:
            context, weights = self._look(queries.transpose(0, 1), memory)
            return context.transpose(0, 1), weights.transpose(0, 1)
        each = 1 if count == rows else count // max(rows, 1)
        context, weights = self._look(queries.view(rows, each, width), memory)
        return context.flatten(0, 1), weights.flatten(0, 1)

    def _look(self, queries: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """queries (rows, queries, width) → contexts and weights (rows, queries, …)."""
        weights = over_real(self.score(queries, memory.keys), memory.real[:, None])
        return weights @ memory.values, weights


def over_real(scores: Tensor, real: Tensor) -> Tensor:
    """softmax along the last axis over real positions; exactly 0 elsewhere, also if no position is
    real."""
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~real, lowest).softmax(-1) * real


def _through_tanh(twice_queries: Tensor, twice_keys: Tensor, v: Tensor) -> Tensor:
    """v · tanh(q + k) of 2q (rows, queries, n) and 2k (rows, positions, n).

    tanh z = 2σ(2z) − 1. This is most of attention's work, and torch's σ is 3.5 times as fast."""
    z = twice_queries[:, :, None] + twice_keys[:, None]
    return 2 * (torch.sigmoid(z) @ v) - v.sum()


def _direction(size: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(size).uniform_(-(size**-0.5), size**-0.5))
