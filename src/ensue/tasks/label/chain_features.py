"""The features of words that a linear chain sums over: the word, its ends, its shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import Vocabulary
from ensue.tasks import checks
from ensue.tasks.rows.surfaces import part_counts, shape_of

OFFSETS = (0, -1, 1, -2, 2)  # of the words that a step sees
ENDS = ("before", "after")  # what stands for the words before and after a row
Features = Callable[[str], Iterator[str]]


def own_features(word: str) -> Iterator[str]:
    """Of the step's own word."""
    yield "always"
    yield f"word {word}"
    lower = word.lower()
    yield f"lower {lower}"
    for size in (1, 2, 3, 4):
        if len(lower) > size:
            yield f"ends {lower[-size:]}"
            yield f"begins {lower[:size]}"
    yield f"shape {shape_of(word)}"
    yield from _casing(word)


def near_features(word: str) -> Iterator[str]:
    """Of the word before and the one after."""
    lower = word.lower()
    yield f"lower {lower}"
    yield f"ends {lower[-3:]}"
    yield f"shape {shape_of(word)}"
    yield from _casing(word)


def far_features(word: str) -> Iterator[str]:
    """Of the words two steps away."""
    yield f"lower {word.lower()}"
    yield f"shape {shape_of(word)}"


def _casing(word: str) -> Iterator[str]:
    """What scripts without capitals do not have gives no feature."""
    if word.isupper():
        yield "capitals"
    if word.istitle():
        yield "title"
    if word.islower():
        yield "small"
    if any(map(str.isdigit, word)):
        yield "digits" if word.isdigit() else "digit"


KINDS: dict[str, Features] = {"own": own_features, "near": near_features, "far": far_features}
KIND_OF = {0: "own", -1: "near", 1: "near", -2: "far", 2: "far"}


@dataclass(frozen=True)
class ChainFeatures:
    """known: a vocabulary for each of KINDS. Every offset has rows of its own in the table of
    weights, one behind another in the order of OFFSETS; after each kind's features come two rows
    for what stands before and after a row."""

    known: Mapping[str, Vocabulary]

    @classmethod
    def learn(cls, surfaces: Mapping[str, int]) -> ChainFeatures:
        """surfaces: the words, with how often each occurs."""
        return cls(
            {
                name: Vocabulary.build(part_counts(surfaces, features))
                for name, features in KINDS.items()
            }
        )

    @classmethod
    def known_as(cls, known: Mapping[str, Vocabulary]) -> ChainFeatures:
        """Of vocabularies from a file, one for each of KINDS."""
        if known.keys() != KINDS.keys():
            raise checks.Unfit(
                f"chain: expected the features {', '.join(KINDS)}, got {', '.join(known)}"
            )
        return cls(known)

    def _sizes(self) -> list[int]:
        return [len(self.known[KIND_OF[offset]]) + len(ENDS) for offset in OFFSETS]

    @property
    def rows(self) -> int:
        """Of the table of weights."""
        return sum(self._sizes())

    def tables(self, surfaces: Sequence[str]) -> list[Ragged]:
        """For each of OFFSETS the rows of weights of every word, and of ENDS behind them; features
        that training has not are left out."""
        by_kind = {name: _numbers(self.known[name], KINDS[name], surfaces) for name in KINDS}
        begins = np.concatenate([[0], np.cumsum(self._sizes())])
        found = []
        for begin, offset in zip(begins, OFFSETS, strict=False):
            own = by_kind[KIND_OF[offset]]
            found.append(Ragged(own.values + begin, own.starts))
        return found


def _numbers(known: Vocabulary, features: Features, surfaces: Sequence[str]) -> Ragged:
    numbers, unknown = known.numbers, 1
    rows = [
        [n for n in map(numbers.__getitem__, features(word)) if n != unknown] for word in surfaces
    ]
    return Ragged.of([*rows, [len(known)], [len(known) + 1]], np.int64)
