"""The learned part of the target side of pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.data.vocabulary import END, TEXT_SPECIALS, Vocabulary
from ensue.tasks.declarations import TextWords
from ensue.tasks.rows.part import LabelledPart, Numbers, counts_of, renumbered
from ensue.tasks.settings import TextSettings


@dataclass(frozen=True)
class LearnedTarget:
    """The learned part of targets. tokeniser: the tokeniser of the texts; words: the vocabulary of
    their tokens; frequent: the tokens of the most frequent text in training."""

    tokeniser: Tokeniser
    words: TextWords
    frequent: tuple[str, ...]

    @classmethod
    def learn(
        cls,
        train: LabelledPart,
        tokeniser: Tokeniser,
        text: TextSettings,
        others: Mapping[str, int] | None = None,
    ) -> LearnedTarget:
        """Learns the target side. others: counts of words in sources that share the vocabulary."""
        counts = Counter(counts_of(targets_of(train), train.numbers.labels))
        counts.update(others or {})
        words = text_vocabulary(counts, len(train), text)
        return cls(tokeniser, words, most_frequent(train))

    def text_of(self, numbers: Iterable[int]) -> str:
        """The text of tokens, from indices of the vocabulary."""
        return self.tokeniser.text_of(self.words.tokens_of(numbers))

    @property
    def frequent_text(self) -> str:
        return self.tokeniser.text_of(self.frequent)

    def numbered(self, part: LabelledPart) -> Ragged:
        """The targets of a part as indices of the vocabulary."""
        return renumbered(targets_of(part), part.numbers.labels, self.words.numbers)

    def texts(self, targets: Ragged, numbers: Numbers) -> list[str]:
        """The texts of targets, except for the tokeniser's normalisation."""
        names = list(numbers.labels)
        rows = ([names[k] for k in targets.row(row)] for row in range(len(targets)))
        return [self.tokeniser.text_of(row) for row in rows]


def targets_of(part: LabelledPart) -> Ragged:
    """The tokens of each row's target."""
    assert part.labels is not None
    return part.labels


def text_vocabulary(counts: Mapping[str, int], rows: int, text: TextSettings) -> Vocabulary:
    """The vocabulary of words with the special tokens of a text; the end token counts once for each
    row. min_count comes from the settings, unless all words are rarer."""
    least = min(text.min_count, max(counts.values()))
    return Vocabulary.build(
        {**counts, END: rows},
        min_count=least,
        max_size=text.max_words,
        specials=TEXT_SPECIALS,
    )


def most_frequent(part: LabelledPart) -> tuple[str, ...]:
    """The tokens of the target that occurs most often."""
    names, targets = list(part.numbers.labels), targets_of(part)
    rows = Counter(targets.row(k).tobytes() for k in range(len(targets)))
    most, _ = rows.most_common(1)[0]
    return tuple(names[token] for token in np.frombuffer(most, np.int32))
