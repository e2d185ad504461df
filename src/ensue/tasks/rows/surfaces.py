"""The distinct words of a data set, and the features of their spelling, computed once for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged


class Numbering(Protocol):
    """The interface of vocabularies: the index of each token, 1 for unknown ones."""

    def ids(self, tokens: Sequence[str], /) -> Sequence[int]: ...


@dataclass(frozen=True)
class SurfaceTable:
    """Features of each surface; index 0 is padding: words (surfaces,), characters one row each,
    prefix and suffix (surfaces, k), shape (surfaces,). spelling: its letters as indices of a
    character language model, one row each; the row of padding contains the border of texts and the
    space."""

    words: NDArray[np.int64]
    characters: Ragged | None = None
    prefix: NDArray[np.int64] | None = None
    suffix: NDArray[np.int64] | None = None
    shape: NDArray[np.int64] | None = None
    spelling: Ragged | None = None


def surface_table(
    surfaces: Sequence[str],
    words: Numbering,
    *,
    fold: Callable[[str], str] = str,
    characters: Numbering | None = None,
    prefixes: tuple[Numbering, int] | None = None,
    suffixes: tuple[Numbering, int] | None = None,
    shapes: Numbering | None = None,
    spelling: Ragged | None = None,
) -> SurfaceTable:
    """The features of each surface; the first is padding.

    fold: maps a surface to its spelling in the vocabulary of words (`str.lower`). prefixes,
    suffixes: their vocabulary and maximum length: 3 means affixes of 1, 2 and 3 letters."""
    real = list(surfaces[1:])
    return SurfaceTable(
        words=_after_padding(words.ids([fold(s) for s in real])),
        characters=_spellings(real, characters),
        prefix=_affixes(real, prefixes, starts_of),
        suffix=_affixes(real, suffixes, ends_of),
        shape=None if shapes is None else _after_padding(shapes.ids([shape_of(s) for s in real])),
        spelling=spelling,
    )


def in_sentences(
    spelling: Ragged, surfaces: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The letters (letters, batch) of rows of surfaces (time, batch), with the border of texts
    around each row and a space between words; and the positions (time, batch) of the space or
    border after each word, at padding the position for the last word. spelling: see
    SurfaceTable."""
    border, space = spelling.row(0)
    real = surfaces > 0
    counts = np.where(real, spelling.lengths[surfaces], 0)
    after = np.cumsum(np.where(real, counts + 1, 0), 0)
    ends = after[-1] if len(after) else np.zeros(surfaces.shape[1], np.int64)
    rows = np.arange(surfaces.shape[1])
    letters = np.zeros((int(ends.max(initial=0)) + 1, len(rows)), np.int64)
    letters[after[real], np.broadcast_to(rows, surfaces.shape)[real]] = space
    letters[0] = letters[ends, rows] = border
    firsts, many = (after - counts)[real], counts[real]
    inside = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    places = np.repeat(firsts, many) + inside
    columns = np.repeat(np.broadcast_to(rows, surfaces.shape)[real], many)
    letters[places, columns] = spelling.take(surfaces[real]).values
    return letters, after


def _after_padding(ids: Sequence[int]) -> NDArray[np.int64]:
    return np.array([0, *ids], np.int64)


def _spellings(surfaces: list[str], characters: Numbering | None) -> Ragged | None:
    if characters is None:
        return None
    letters = np.array(characters.ids(list("".join(surfaces))), np.int64)
    lengths = [0, *(len(s) for s in surfaces)]
    return Ragged(letters, np.concatenate([[0], np.cumsum(lengths)]))


def _affixes(
    surfaces: list[str],
    numbering: tuple[Numbering, int] | None,
    affixes_of: Callable[[str, int], list[str]],
) -> NDArray[np.int64] | None:
    """The affixes of 1 … k letters, 0 if a word is shorter; shape (surfaces, k)."""
    if numbering is None:
        return None
    vocabulary, longest = numbering
    lists = [affixes_of(s, longest) for s in surfaces]
    ids = iter(vocabulary.ids([affix for affixes in lists for affix in affixes]))
    table = np.zeros((len(surfaces) + 1, longest), np.int64)
    for row, affixes in enumerate(lists, 1):
        table[row, : len(affixes)] = [next(ids) for _ in affixes]
    return table


def starts_of(word: str, longest: int) -> list[str]:
    """too → t, to, too: the first letters, at most `longest`."""
    return [word[:n] for n in range(1, min(longest, len(word)) + 1)]


def ends_of(word: str, longest: int) -> list[str]:
    """The last letters, at most `longest`."""
    return [word[-n:] for n in range(1, min(longest, len(word)) + 1)]


def shape_of(word: str) -> str:
    """The kinds of characters in order; runs of one kind are shortened to two.

    >>> shape_of("McDonald's"), shape_of("2026-11-15"), shape_of("USA")
    ("XxXxx'x", 'dd-dd-dd', 'XX')
    """
    return "".join(kind * min(2, sum(1 for _ in run)) for kind, run in groupby(_kinds(word)))


def _kinds(word: str) -> Iterator[str]:
    for letter in word:
        if letter.isdigit():
            yield "d"
        elif letter.isalpha():
            yield "X" if letter.isupper() else "x"
        else:
            yield letter


def part_counts(
    words: Mapping[str, int], parts_of: Callable[[str], Iterable[str]]
) -> dict[str, int]:
    """The counts of parts of words (letters, affixes, shapes). words: the counts of words."""
    counts: dict[str, int] = {}
    for word, times in words.items():
        for part in parts_of(word):
            counts[part] = counts.get(part, 0) + times
    return counts
