"""Messages of a run: lines of text with a severity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Message:
    """warning: printed even with --quiet."""

    text: str
    warning: bool = False


Say = Callable[[Message], None]


def nobody(message: Message) -> None:
    """For callers who want no messages."""


def rejected_message(count: int) -> list[Message]:
    """A warning on rows that were left out, if there are any."""
    if not count:
        return []
    return [Message(f"{count:,} bad row{'s' * (count > 1)} left out", warning=True)]
