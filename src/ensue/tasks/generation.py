"""What is asked of a model that writes text, and what it gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class Suggestion(NamedTuple):
    token: str
    probability: float


@dataclass(frozen=True)
class Choice:
    """How the next token is chosen: drawn with a temperature, from the top_k most probable or
    from those that make up top_p; width > 1 searches for the most probable text instead."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    width: int = 1
    seed: int = 1
    most_tokens: int = 100


class TextWriter(Protocol):
    """A model that has read a prompt."""

    @property
    def prompt(self) -> str:
        """As the model has read it."""
        ...

    def texts(self, choice: Choice, count: int = 1) -> list[str]:
        """`count` texts that go on from the prompt, each up to its end."""
        ...

    def pieces(self, choice: Choice) -> Iterator[str]:
        """One text, as it is made: put together, the pieces are the text without its prompt."""
        ...

    def suggestions(self, count: int) -> Sequence[Suggestion]:
        """The most probable words to come; those that go on from a word begun, if one is."""
        ...


class Generates(Protocol):
    """Texts that go on from a prompt: an ability of some tasks."""

    def writer(self, model: Any, prompt: str, *, whole: bool = True) -> TextWriter:
        """whole: the prompt ends with a whole word; else its last one is only begun."""
        ...
