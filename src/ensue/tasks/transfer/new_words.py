"""A base's vocabulary with the words of a task added, and first vectors for these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from ensue.data.vocabulary import Vocabulary

Start = Callable[[Sequence[str], Vocabulary, Tensor], Tensor]
GRAM = 3  # letters


def extended(known: Vocabulary, vocabulary: Vocabulary) -> Vocabulary:
    """The words of `known` at their numbers, then those of `wanted` that it does not have, in
    their order; counts are those of `wanted`."""
    present = set(known.tokens)
    specials = set(vocabulary.specials)
    new = [word for word in vocabulary.tokens if word not in present and word not in specials]
    counts = dict(zip(vocabulary.tokens, vocabulary.counts, strict=True))
    tokens = (*known.tokens, *new)
    return Vocabulary(tokens, tuple(counts.get(word, 0) for word in tokens), known.specials)


def with_rows(table: Tensor, known: Vocabulary, all_words: Vocabulary, start: str) -> Tensor:
    """table (known, width) with a row for each of `all_words` after those known."""
    new = all_words.tokens[len(known) :]
    if not new:
        return table.clone()
    return torch.cat([table, STARTS[start](new, known, table)])


def _mean(new: Sequence[str], known: Vocabulary, table: Tensor) -> Tensor:
    """The mean vector of all words, for each."""
    return table[len(known.specials) :].mean(0).expand(len(new), -1).clone()


def _letters(new: Sequence[str], known: Vocabulary, table: Tensor) -> Tensor:
    """Each the mean over its letter trigrams of the mean vector of the words that have it,
    lengthened to the usual norm; the mean of all words where no trigram is known."""
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
    """Of the letters of a word, its beginning and its end marked.

    >>> trigrams("cat")
    ['<ca', 'cat', 'at>']
    """
    marked = f"<{word}>"
    return [marked[at : at + GRAM] for at in range(max(len(marked) - GRAM + 1, 1))]


STARTS: Mapping[str, Start] = {"letters": _letters, "mean": _mean}
