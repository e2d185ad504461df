"""The learned part of a language model, except the weights of its networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.data.vocabulary import END, PAD, START, TEXT_SPECIALS, UNKNOWN, Vocabulary
from ensue.errors import DataError
from ensue.tasks.declarations import NEXT_TO, Arrays, TextWords, Unfit
from ensue.tasks.language.ngram import NgramModel, NgramSymbols, arrays_of, model_of
from ensue.tasks.rows.inputs import vocabulary_rows
from ensue.tasks.rows.part import Part, Tokenisers, counts_of
from ensue.tasks.settings import TextSettings
from ensue.tasks.transfer.new_words import extended
from ensue.tasks.transfer.pretrained import Pretrained

NEVER = tuple(TEXT_SPECIALS.index(token) for token in (PAD, UNKNOWN, START))  # not to be written


class NgramDesign(NamedTuple):
    """The order of n-grams, their smoothing, and the constant of add-k."""

    order: int
    smoothing: str
    add: float = 1.0


def vocabulary_of(train: Part, text: TextSettings) -> Vocabulary:
    """The vocabulary of a training part, by falling frequency after the specials; raises an error
    if there are no words."""
    counts = counts_of(train.inputs, train.numbers.tokens)
    least = min(text.min_count, max(counts.values()))
    counts[END] = len(train)
    return Vocabulary.build(
        counts, min_count=least, max_size=text.max_words, specials=TEXT_SPECIALS
    )


@dataclass(frozen=True)
class LearnedLanguage:
    """Everything a language model learns except weights. ngrams: the model itself, or the baseline
    of networks."""

    tokenisers: Annotated[Tokenisers, NEXT_TO]
    words: TextWords
    ngrams: Annotated[NgramModel, Arrays(arrays_of, lambda arrays, _: model_of(arrays))]

    def check_saved(self) -> None:
        known, words = self.ngrams.symbols.size, len(self.words)
        if known != words:
            raise Unfit(f"expected n-grams of {words:,} words, got {known:,}", "ngrams")

    @classmethod
    def learn(
        cls,
        train: Part,
        validation: Part,
        text: TextSettings,
        design: NgramDesign,
        base: Pretrained | None = None,
    ) -> LearnedLanguage:
        """Learns from a training part. base: a base whose words come first and keep their
        indices."""
        if not train.texts or not len(train.inputs.values):
            raise DataError("the training part: expected text, got none")
        words = vocabulary_of(train, text)
        if base is not None and base.words is not None:
            words = extended(base.words, words)
        ngrams = NgramModel.fit(
            vocabulary_rows(train, words.numbers),
            NgramSymbols.of(words.tokens),
            order=design.order,
            smoothing=design.smoothing,
            k=design.add,
            held_out=vocabulary_rows(validation, words.numbers),
        )
        return cls(train.tokenisers, words, ngrams)

    @property
    def tokeniser(self) -> Tokeniser:
        return self.tokenisers.input

    def rows(self, part: Part) -> Ragged:
        """A part in the indices of the vocabulary."""
        return vocabulary_rows(part, self.words.numbers)
