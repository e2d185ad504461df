"""What is asked of a task that writes text, fills a blank or counts n-grams, and what it gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, ClassVar, NamedTuple, Protocol


class Suggestion(NamedTuple):
    token: str
    probability: float


@dataclass(frozen=True)
class Choice:
    """How the next token is chosen: drawn with a temperature, from the top_k most probable or
    from those that make up top_p; width > 1 searches for the most probable text instead. on:
    whether a text that is drawn goes on over ends, line after line, to most_tokens."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    width: int = 1
    seed: int = 1
    most_tokens: int = 100
    on: bool = False


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


@dataclass(frozen=True)
class Filled:
    """A text whose blank was filled.

    fillers: by both sides, the most probable first; before_alone: by what stands before the blank.
    words: the text with the best filler at `blank`; bits: −log₂ p of each, given all others;
    bits_before: given those before it."""

    text: str
    fillers: tuple[Suggestion, ...]
    before_alone: tuple[Suggestion, ...]
    words: tuple[str, ...]
    blank: int
    bits: tuple[float, ...]
    bits_before: tuple[float, ...]

    def as_text(self) -> str:
        """Two tables: the fillers, and how much each word surprises."""
        widest = max(map(len, (*(own.token for own in self.fillers), "both sides")))
        lines = [f"    {'both sides':{widest}} {'':7}   before alone"]
        pairs = zip_longest(self.fillers, self.before_alone)
        for k, (both, alone) in enumerate(pairs, 1):
            one = f"{both.token:{widest}} {both.probability:7.4f}" if both else " " * (widest + 8)
            other = f"{alone.token} {alone.probability:.4f}" if alone else ""
            lines.append(f"{k:>2}  {one}   {other}".rstrip())
        width = max(map(len, self.words))
        lines += ["", f"    {'surprise, bits':{width}}   both sides   before alone"]
        for k, word in enumerate(self.words):
            mark = "→" if k == self.blank else " "
            shown = f"{word:{max(width, 14)}}"
            lines.append(f"  {mark} {shown}   {self.bits[k]:10.2f}   {self.bits_before[k]:12.2f}")
        return "\n".join(lines)


class Fills(Protocol):
    """Words for a blank: an ability of some tasks."""

    def fill(self, model: Any, text: str, count: int = 5) -> Filled:
        """text: with one blank, ___."""
        ...


class Counted(Protocol):
    """What was counted, a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def as_text(self) -> str: ...


class Counts(Protocol):
    """N-grams of files, as they are counted: an ability of some tasks."""

    def study(
        self,
        files: Sequence[str],
        held_out: Sequence[str],
        *,
        order: int,
        level: str,
        after: str | None,
    ) -> Counted:
        """held_out: files of their own; without, a tenth of the text is split off."""
        ...
