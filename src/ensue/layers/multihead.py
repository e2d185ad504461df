"""Multi-head attention by scaled dot products."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, linear, scaled_dot_product_attention

from ensue.engine.check import check_same_kind, check_tensors
from ensue.errors import OptionError, ShapeError, check_rates
from ensue.renamed import renamed_parameter


class MultiHead(nn.Module):
    """Multi-head attention: each head computes α·V with α = softmax(Q·Kᵀ/√d), d = width / heads; a
    linear map then combines all heads.

    Called with tensors (time, batch, width). Inside, rows come first: queries (batch, queries,
    width), and a memory (batch, keys, 2·width), keys and values in one tensor, which can be stored,
    extended and reordered. Each row of a memory may have several consecutive rows of queries.

    mask: True where a query may attend, of a shape that broadcasts to (batch, heads, queries,
    keys); None allows everything. A query without any allowed position gets α = 0. In training each
    weight α is dropped with probability `dropout`. Parameters have the names and layout of
    torch.nn.MultiheadAttention, whose state_dict can be loaded."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise OptionError(
                f"heads: expected a divisor of the width {width}, got {heads}; "
                "each head has an equal share of it"
            )
        check_rates({"dropout of attention": dropout})
        self.width, self.heads, self.dropout = width, heads, dropout
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.in_proj_weight)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    # ------------------------------------------------------------- as a layer
    @renamed_parameter("seen", "mask")
    def forward(
        self, x: Tensor, source: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """y (time, batch, width): each step of x attends to the steps of source, or of x itself."""
        queries, memory = self._read(x, source, mask)
        return self.attend(queries, memory, mask).transpose(0, 1)

    @renamed_parameter("seen", "mask")
    def with_weights(
        self, x: Tensor, source: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """y as above, and α (batch, heads, queries, keys) before dropout."""
        queries, memory = self._read(x, source, mask)
        alpha = self.weights(queries, memory, mask)
        values = self._headed(memory[..., self.width :])
        context = dropout(alpha, self.dropout, self.training) @ values
        return self.out_proj(_joined(context)).transpose(0, 1), alpha

    def _read(self, x: Tensor, source: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        inputs = {"x": x} if source is None else {"x": x, "source": source}
        check_tensors(inputs)
        for name, value in inputs.items():
            if value.dim() != 3 or value.shape[-1] != self.width:
                raise ShapeError(
                    f"{name}: expected (time, batch, {self.width}), got {tuple(value.shape)}"
                )
            check_same_kind(name, value, self.in_proj_weight)
        self._check_rows(x, x if source is None else source, mask)
        if source is None:
            return self.own_keys(x.transpose(0, 1))
        return self.queries(x.transpose(0, 1)), self.memory(source.transpose(0, 1))

    def _check_rows(self, x: Tensor, source: Tensor, mask: Tensor | None) -> None:
        (queries, rows), (keys, batch) = x.shape[:2], source.shape[:2]
        if rows != batch and (not batch or rows % batch):
            raise ShapeError(f"x: expected {batch} rows as source, or a multiple of it, got {rows}")
        if mask is None:
            return
        check_tensors({"mask": mask})
        whole = (batch, self.heads, queries * (rows // max(batch, 1)), keys)
        sizes = zip(reversed(mask.shape), reversed(whole), strict=False)
        if mask.dtype != torch.bool or mask.dim() > 4 or any(a not in (1, b) for a, b in sizes):
            raise ShapeError(
                "mask: expected torch.bool, True where a query may look, of a shape that broadcasts"
                f" to (batch, heads, queries, keys) {whole}, got {mask.dtype} {tuple(mask.shape)}"
            )

    # ------------------------------------------------------------- its parts, rows first
    def queries(self, x: Tensor) -> Tensor:
        """Queries (batch, time, width) of x (batch, time, width)."""
        return linear(x, self.in_proj_weight[: self.width], self.in_proj_bias[: self.width])

    def memory(self, x: Tensor) -> Tensor:
        """Keys and values (batch, time, 2·width) of x (batch, time, width)."""
        return linear(x, self.in_proj_weight[self.width :], self.in_proj_bias[self.width :])

    def own_keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and memory of the same steps, in one product."""
        both = linear(x, self.in_proj_weight, self.in_proj_bias)
        return both[..., : self.width], both[..., self.width :]

    def attend(self, queries: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        """y (rows, queries, width), by torch's fused attention."""
        context = scaled_dot_product_attention(
            self._headed(_grouped(queries, memory)),
            self._headed(memory[..., : self.width]),
            self._headed(memory[..., self.width :]),
            attn_mask=mask,  # True means visible, unlike in torch's modules
            dropout_p=self.dropout if self.training else 0.0,
        )
        y: Tensor = self.out_proj(_joined(context))
        return y.reshape(queries.shape)

    def weights(self, queries: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        """α (batch, heads, queries, keys). Rows of queries that share a row of the memory are
        consecutive."""
        q = self._headed(_grouped(queries, memory))
        k = self._headed(memory[..., : self.width])
        scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2)
        if mask is None:
            return scores.softmax(-1)
        lowest = torch.finfo(scores.dtype).min  # finite: no 0/0 if no key is visible
        return scores.masked_fill(~mask, lowest).softmax(-1) * mask

    def _headed(self, x: Tensor) -> Tensor:
        """(batch, time, width) → (batch, heads, time, width of a head)."""
        return x.view(*x.shape[:2], self.heads, self.width // self.heads).transpose(1, 2)


def _grouped(queries: Tensor, memory: Tensor) -> Tensor:
    """(rows, queries, width) → (batch, each·queries, width), batch the rows of the memory."""
    each = queries.shape[0] // max(memory.shape[0], 1)
    return queries.reshape(memory.shape[0], each * queries.shape[1], queries.shape[2])


def _joined(context: Tensor) -> Tensor:
    """(batch, heads, time, width of a head) → (batch, time, width)."""
    return context.transpose(1, 2).flatten(2)


Recorded = Mapping[str, list[Tensor]]


@contextmanager
def recorded_attention(network: nn.Module) -> Iterator[Recorded]:
    """Records the weights α (batch, heads, queries, keys) of every `MultiHead` of a network inside
    the block, by the name of the module, one entry for each call.

    Weights are computed from the queries, memory and mask of the call, before dropout. Outputs do
    not change."""
    weights: dict[str, list[Tensor]] = {}
    heads = {
        name: module for name, module in network.named_modules() if isinstance(module, MultiHead)
    }
    for name, head in heads.items():
        weights[name] = []
        head.__dict__["attend"] = _recording(head, weights[name])
    try:
        yield weights
    finally:
        for head in heads.values():
            del head.__dict__["attend"]


def _recording(heads: MultiHead, recorded: list[Tensor]) -> Callable[..., Tensor]:
    attend = heads.attend

    def recording(queries: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        recorded.append(heads.weights(queries, memory, mask).detach())
        return attend(queries, memory, mask)

    return recording
