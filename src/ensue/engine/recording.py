"""Recurrences that keep every state, for those who look inside: `with recording() as unrolled`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from torch import Tensor

from ensue.engine.eager import Step, assembled, sort_rows, steps
from ensue.engine.recurrence import Recurrence, State
from ensue.engine.rows import Rows, reverse_time


@dataclass(frozen=True)
class Unrolled:
    """One recurrence with all that it went through, in the order in which its cell went: of one in
    reverse, the last step comes first. Rows are sorted, longest first; `rows` knows their own
    places."""

    recurrence: Recurrence
    rows: Rows
    steps: tuple[Step, ...]


_unrolled: ContextVar[list[Unrolled] | None] = ContextVar("recurrences unrolled", default=None)


@contextmanager
def recording() -> Iterator[list[Unrolled]]:
    """Every recurrence that runs inside runs eagerly and is kept; its states are those that
    autograd knows."""
    found: list[Unrolled] = []
    token = _unrolled.set(found)
    try:
        yield found
    finally:
        _unrolled.reset(token)


def recorder() -> list[Unrolled] | None:
    """Where recurrences are to be kept; None for nowhere."""
    return _unrolled.get()


def record(recurrence: Recurrence, kept: list[Unrolled]) -> tuple[Tensor, State]:
    """Runs a recurrence and keeps it: outputs and final state, as of every engine. x is one that
    autograd knows: a state may be nothing but the x before."""
    if not recurrence.x.requires_grad:
        recurrence = recurrence._replace(x=recurrence.x.detach().requires_grad_())
    ordered, rows = sort_rows(recurrence.forwards())
    made = tuple(steps(ordered, rows))
    kept.append(Unrolled(ordered, rows, made))
    y, final = assembled(ordered, rows, made)
    return (reverse_time(y, recurrence.lengths) if recurrence.reverse else y), final
