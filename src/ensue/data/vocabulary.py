"""Vocabularies: tokens and their indices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ensue.errors import DataError, OptionError

PAD, UNKNOWN, START, END = "<pad>", "<unk>", "<s>", "</s>"
SPECIALS = (PAD, UNKNOWN)
TEXT_SPECIALS = (PAD, UNKNOWN, START, END)  # for vocabularies of generated texts
START_NUMBER, END_NUMBER = TEXT_SPECIALS.index(START), TEXT_SPECIALS.index(END)
KEYS = ("specials", "tokens", "counts")


def count_tokens(rows: Iterable[Iterable[str]]) -> Counter[str]:
    """The number of occurrences of each token in the rows.

    >>> count_tokens([["to", "be"], ["or", "to"]])
    Counter({'to': 2, 'be': 1, 'or': 1})
    """
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update(row)
    return counts


class TokenNumbers(dict[str, int]):
    """A mapping token → index, with `unknown` for every other token; a lookup does not add the
    token."""

    def __init__(self, tokens: Iterable[str], unknown: int) -> None:
        super().__init__((token, number) for number, token in enumerate(tokens))
        self.unknown = unknown

    def __missing__(self, token: str) -> int:
        return self.unknown


@dataclass(frozen=True)
class Vocabulary:
    """The indices of tokens: specials first, then by falling count, equal counts in alphabetical
    order.

    Open (the default): index 0 is "<pad>"; 1 is "<unk>", for every unknown token. Closed
    (`specials=()`, such as labels): every token must be known. counts: frequencies of the tokens in
    the data that the vocabulary was built from; "<unk>" counts the tokens left out. A "<pad>" in a
    text is unknown, not padding.

    >>> words = Vocabulary.build(count_tokens([["to", "be"], ["or", "to"]]), min_count=2)
    >>> words.tokens, words.ids(["to", "be"])
    (('<pad>', '<unk>', 'to'), [2, 1])
    """

    tokens: tuple[str, ...]
    counts: tuple[int, ...]
    specials: tuple[str, ...] = SPECIALS

    def __post_init__(self) -> None:
        problems = [*_specials_problems(self.specials), *_token_problems(self.tokens)]
        if self.tokens[: len(self.specials)] != self.specials:
            problems.append(f"tokens: expected {_listed(self.specials)} first")
        if len(self.counts) != len(self.tokens):
            problems.append(f"counts: expected {len(self.tokens)} of them, got {len(self.counts)}")
        wrong = [c for c in self.counts if type(c) is not int or c < 0]
        if wrong:
            problems.append(f"counts: expected whole numbers ≥ 0, got {wrong[0]!r}")
        if problems:
            raise DataError("\n  ".join(["this is not a vocabulary", *problems]))

    @classmethod
    def build(
        cls,
        counts: Mapping[str, int],
        *,
        min_count: int = 1,
        max_size: int | None = None,
        specials: Sequence[str] = SPECIALS,
    ) -> Vocabulary:
        """A vocabulary of the tokens seen at least `min_count` times, at most `max_size` including
        specials."""
        if min_count < 1:
            raise OptionError(f"min_count: expected a number ≥ 1, got {min_count}")
        if max_size is not None and max_size <= len(specials):
            raise OptionError(
                f"max_size: expected more than the {len(specials)} specials, got {max_size}"
            )
        frequent = [
            token for token, n in counts.items() if n >= min_count and token not in specials
        ]
        frequent.sort(key=lambda token: (-counts[token], token))
        if max_size is not None:
            del frequent[max_size - len(specials) :]
        tokens = (*specials, *frequent)
        counted = {token: counts.get(token, 0) for token in tokens}
        if specials:
            if not counts:
                raise DataError(
                    "expected texts to learn words from, got none with a word in it: is this the "
                    "right column?"
                )
            if not frequent:
                raise DataError(
                    f"no token is seen {min_count} times or more: "
                    "lower min_count, or give more data"
                )
            counted[PAD] = 0
            counted[UNKNOWN] += sum(counts.values()) - sum(counted.values())
        return cls(tokens, tuple(counted.values()), tuple(specials))

    @classmethod
    def closed(cls, names: Mapping[str, int]) -> Vocabulary:
        """A vocabulary of labels in alphabetical order, without padding or unknown."""
        ordered = sorted(names)
        return cls(tuple(ordered), tuple(names[name] for name in ordered), ())

    @cached_property
    def numbers(self) -> dict[str, int]:
        """A mapping token → index. In an open vocabulary, `numbers[token]` is 1 for unknown
        tokens."""
        if not self.specials:
            return {token: number for number, token in enumerate(self.tokens)}
        numbers = TokenNumbers(self.tokens, unknown=1)
        numbers[PAD] = 1
        return numbers

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self.numbers

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """The index of each token."""
        try:
            return list(map(self.numbers.__getitem__, tokens))
        except KeyError as error:
            some = _listed(self.tokens[:10]) + (", …" if len(self) > 10 else "")
            raise DataError(f"unknown token {error.args[0]!r}: expected one of {some}") from None

    def tokens_of(self, ids: Iterable[int]) -> list[str]:
        """The token of each index."""
        numbers = list(ids)
        wrong = [number for number in numbers if not 0 <= number < len(self)]
        if wrong:
            raise DataError(f"no token has the number {wrong[0]}: there are {len(self)}, from 0 on")
        return [self.tokens[number] for number in numbers]

    def to_dict(self) -> dict[str, list[Any]]:
        """The vocabulary as JSON values; `from_dict` reads them."""
        return {
            "specials": list(self.specials),
            "tokens": list(self.tokens),
            "counts": list(self.counts),
        }

    @classmethod
    def from_dict(cls, data: Any) -> Vocabulary:
        """The inverse of `to_dict`; raises DataError for invalid values."""
        if not isinstance(data, dict) or set(data) != set(KEYS):
            got = _listed(map(str, data)) if isinstance(data, dict) else type(data).__name__
            raise DataError(
                f"this is not a vocabulary: expected the keys {_listed(KEYS)}, got {got}"
            )
        for key in KEYS:
            if not isinstance(data[key], list):
                raise DataError(
                    "this is not a vocabulary: "
                    f"{key}: expected a list, got {type(data[key]).__name__}"
                )
        return cls(tuple(data["tokens"]), tuple(data["counts"]), tuple(data["specials"]))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _specials_problems(specials: tuple[Any, ...]) -> list[str]:
    if specials and specials[:2] != SPECIALS:
        return [f"specials: expected {_listed(SPECIALS)} first, or none at all"]
    return []


def _token_problems(tokens: tuple[Any, ...]) -> list[str]:
    """Problems of tokens: values that are not strings, and duplicates."""
    wrong = [token for token in tokens if not isinstance(token, str)]
    if wrong:
        return [f"tokens: expected strings, got {wrong[0]!r}"]
    if len(set(tokens)) < len(tokens):
        twice = [token for token, n in Counter(tokens).items() if n > 1]
        return [f"tokens: {len(twice)} occur more than once, such as {twice[0]!r}"]
    return []
