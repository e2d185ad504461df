"""Extends a base's vocabulary by the words of a task, with initial vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from ensue.data.vocabulary import Vocabulary

Start = Callable[[Sequence[str], Vocabulary, Tensor], Tensor]
GRAM = 3  # letters


def extended(known: Vocabulary, vocabulary: Vocabulary) -> Vocabulary:
    """The words of `known` with their indices, then the further words of `vocabulary` in order. The
    counts come from `vocabulary`."""
    present = set(known.tokens)
    specials = set(vocabulary.specials)
    new = [word for word in vocabulary.tokens if word not in present and word not in specials]
    counts = dict(zip(vocabulary.tokens, vocabulary.counts, strict=True))
    tokens = (*known.tokens, *new)
    return Vocabulary(tokens, tuple(counts.get(word, 0) for word in tokens), known.specials)


def with_rows(table: Tensor, known: Vocabulary, all_words: Vocabulary, start: str) -> Tensor:
    """table (known, width), extended by a row for each further word of `all_words`."""
    new = all_words.tokens[len(known) :]
    if not new:
        return table.clone()
    return torch.cat([table, STARTS[start](new, known, table)])


def _mean(new: Sequence[str], known: Vocabulary, table: Tensor) -> Tensor:
    """The mean vector of all words, for each new word."""
    return table[len(known.specials) :].mean(0).expand(len(new), -1).clone()


def _letters(new: Sequence[str], known: Vocabulary, table: Tensor) -> Tensor:
    """Vectors of new words from their letter trigrams. The vector of a trigram is the mean over the
    known words that contain it. A new word gets the mean over its trigrams, scaled to the usual
    norm, or the mean of all words if no trigram is known."""
    letters, grams = _mean(new, known, table), {gram for word in new for gram in trigrams(word)}
    rows: dict[str, list[int]] = {}
    for number in range(len(known.specials), len(known)):
        for gram in set(trigrams(known.tokens[number])) & grams:
            rows.setdefault(gram, []).append(number)
    vectors = {gram: table[row].mean(0) for gram, row in rows.items()}
    usual = table[len(known.specials) :].norm(dim=1).mean()
    for number, word in enumerate(new):
        known_vectors = [vectors[gram] for gram in trigrams(word) if gram in vectors]
        if known_vectors:
            mean = torch.stack(known_vectors).mean(0)
            letters[number] = mean * (usual / mean.norm().clamp(min=1e-6))
    return letters


def trigrams(word: str) -> list[str]:
    """The letter trigrams of a word, with marks at its beginning and end.

    >>> trigrams("cat")
    ['<ca', 'cat', 'at>']
    """
    marked = f"<{word}>"
    return [marked[at : at + GRAM] for at in range(max(len(marked) - GRAM + 1, 1))]


STARTS: Mapping[str, Start] = {"letters": _letters, "mean": _mean}
