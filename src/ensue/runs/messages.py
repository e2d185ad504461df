"""Messages of a run: lines of text with a severity."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Message:
    """A message for the user. warning: whether it is printed even with --quiet."""

    text: str
    warning: bool = False


MessageCallback = Callable[[Message], None]


def nobody(message: Message) -> None:
    """A message callback that does nothing."""


def log(message: Message) -> None:
    """The default message callback in Python: logs warnings."""
    if message.warning:
        logging.getLogger("ensue").warning(message.text)


def rejected_message(count: int) -> list[Message]:
    """A warning on rows that were left out, if there are any."""
    if not count:
        return []
    return [Message(f"{count:,} bad row{'s' * (count > 1)} left out", warning=True)]
