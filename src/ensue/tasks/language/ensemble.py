"""One model or several that say what comes next, asked as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ensue.data.ragged import Ragged


class NextToken(Protocol):
    """What n-grams and networks have in common: a text begins with `begin` and the token `first`,
    and goes on by `step`."""

    @property
    def first(self) -> int:
        """The token before a text."""
        ...

    def begin(self, batch: int) -> Any:
        """The state before any token."""
        ...

    def step(self, tokens: Tensor, state: Any, /) -> tuple[Tensor, Any]:
        """log p (batch, words) of what follows tokens (batch,), and the state after them."""
        ...

    def reorder(self, state: Any, order: Tensor, /) -> Any:
        """The rows of a state in this order: what a search needs between its steps."""
        ...

    def score(self, rows: Ragged) -> Ragged:
        """log p of every token of rows, and of the end after each row."""
        ...


class Ensemble:
    """p = the mean of the members' p; a state is the tuple of theirs."""

    def __init__(self, members: Sequence[NextToken]) -> None:
        self.members = members

    @property
    def first(self) -> int:
        return self.members[0].first

    def begin(self, batch: int) -> tuple[Any, ...]:
        return tuple(member.begin(batch) for member in self.members)

    def step(self, tokens: Tensor, state: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
        pairs = zip(self.members, state, strict=True)
        logs, states = zip(*(member.step(tokens, part) for member, part in pairs), strict=True)
        return torch.logsumexp(torch.stack(logs), 0) - math.log(len(logs)), states

    def reorder(self, state: tuple[Any, ...], order: Tensor) -> tuple[Any, ...]:
        pairs = zip(self.members, state, strict=True)
        return tuple(member.reorder(part, order) for member, part in pairs)

    def score(self, rows: Ragged) -> Ragged:
        found = [member.score(rows) for member in self.members]
        logs = np.logaddexp.reduce([scored.values for scored in found]) - math.log(len(found))
        return Ragged(logs, found[0].starts)
