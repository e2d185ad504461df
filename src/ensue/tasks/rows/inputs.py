"""The inputs of a network: words with their vocabulary, or vectors with their scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.ragged import Ragged
from ensue.data.vectors import read_vectors
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError, OptionError
from ensue.files.opening import VECTOR_WIDTH
from ensue.tasks.blocks.embeddings import Feature, Vectors, Words
from ensue.tasks.declarations import NEXT_TO, NOT_SAVED, OfClass, Range, ReadWords, Shape, Unfit
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.part import Part, Tokenisers, counts_of, renumbered, shortened
from ensue.tasks.settings import NetworkSettings, TextSettings
from ensue.tasks.transfer.new_words import extended, with_rows
from ensue.tasks.transfer.pretrained import Beginning


@dataclass(frozen=True)
class Scale:
    """mean, spread (n,): of each feature; a constant feature has spread 1."""

    mean: Annotated[NDArray[np.float32], Shape(None)]
    spread: Annotated[NDArray[np.float32], Shape("mean"), Range(above=0)]

    def check_saved(self) -> None:
        if not len(self.mean):
            raise Unfit("expected a number or more, got none", "mean")

    @classmethod
    def of(cls, vectors: NDArray[np.float32]) -> Scale:
        """The scale of vectors (steps, n)."""
        if not len(vectors):
            raise DataError("the training part: expected sequences with steps, got empty ones only")
        spread = vectors.std(0, dtype=np.float64)
        return cls(
            vectors.mean(0, dtype=np.float64).astype(np.float32),
            np.where(spread > 0, spread, 1).astype(np.float32),
        )

    @property
    def width(self) -> int:
        return len(self.mean)

    def feature(self) -> Vectors:
        return Vectors(self.width, torch.tensor(self.mean), torch.tensor(self.spread))

    def vectors(self, part: Part) -> Ragged:
        """The vectors of a part; raises an error if their width differs from training."""
        values = part.inputs.values
        if not len(values):  # without steps, the width is unknown
            return Ragged(np.zeros((0, self.width), np.float32), part.inputs.starts)
        if values.ndim != 2 or values.shape[1] != self.width:
            got = f"steps of {values.shape[1]} numbers" if values.ndim == 2 else "text"
            raise DataError(
                f"{part.names[0]}: expected sequences of vectors with {self.width} numbers a "
                f"step, as in training, got {got}"
            )
        return part.inputs


@dataclass(frozen=True)
class LearnedInputs:
    """Everything that is learned about inputs. words: the vocabulary of a model of text; scale: the
    scale of a model of vectors; word_width: the width of a word's vector; start: initial vectors,
    if read from a file."""

    tokenisers: Annotated[Tokenisers, NEXT_TO]
    words: ReadWords | None = None
    scale: Annotated[
        Scale | None, OfClass(lambda record: Scale if record.words is None else None)
    ] = None
    word_width: Annotated[int, Range(high=VECTOR_WIDTH)] = 0
    start: Annotated[Tensor | None, NOT_SAVED] = None

    @classmethod
    def learn(
        cls,
        train: Part,
        text: TextSettings,
        model: NetworkSettings,
        counts: Mapping[str, int] | None = None,
        base: Beginning | None = None,
        column: str = "",
    ) -> LearnedInputs:
        """Learns the inputs. counts: counts of words, if not by their original spelling; base: the
        base of the training; column: the column of the text, for messages."""
        if not train.texts:
            return cls(train.tokenisers, scale=_scale(train, base))
        counted = token_counts(train) if counts is None else counts
        if not counted and len(train):
            raise DataError(
                f"{train.names[0]}: {column or 'text'}: expected texts to learn words from, got "
                "none with a word in it: is this the right column?"
            )
        words = vocabulary_of(counted, text)
        if base is not None:
            return cls._of_base(train.tokenisers, words, model, base)
        if not model.vectors:
            return cls(train.tokenisers, words, word_width=model.embedding_size)
        start = torch.from_numpy(read_vectors(Path(model.vectors), words).matrix)
        return cls(train.tokenisers, words, word_width=start.shape[1], start=start)

    @classmethod
    def _of_base(
        cls, cut: Tokenisers, words: Vocabulary, model: NetworkSettings, base: Beginning
    ) -> LearnedInputs:
        """The words of the base and further ones, with their initial vectors."""
        base_encoder = base.pretrained
        if model.vectors:
            raise OptionError(
                f"model.vectors: {base_encoder.called} has word vectors already; leave out one "
                "of the two"
            )
        if base_encoder.mean is not None:
            raise OptionError(
                f"{base_encoder.called}: this base reads steps of {len(base_encoder.mean)} "
                "numbers, and the training "
                "part is text"
            )
        if base_encoder.vectors:
            start = torch.from_numpy(read_vectors(Path(base_encoder.vectors), words).matrix)
            return cls(cut, words, word_width=base_encoder.width, start=start)
        if base_encoder.words is None or base_encoder.table is None:
            return cls(cut, words, word_width=model.embedding_size)
        every = extended(base_encoder.words, words)
        start = with_rows(base_encoder.table, base_encoder.words, every, base.new_words)
        return cls(cut, every, word_width=start.shape[1], start=start)

    def columns(self, part: Part, text: TextSettings) -> Columns:
        """The part encoded for the networks, without targets."""
        cut = (text.max_length, text.cut)
        if self.scale is not None:
            return Columns(vectors=shortened(self.scale.vectors(part), *cut))
        assert self.words is not None
        return Columns(words=shortened(vocabulary_rows(part, self.words.numbers), *cut))

    def feature(self, model: NetworkSettings, once_dropout: float | None = None) -> Feature:
        """The feature of a network. once_dropout: dropout rate of words that occur once; None for
        the rate of all other words."""
        if self.scale is not None:
            return self.scale.feature()
        assert self.words is not None
        once = (
            None
            if once_dropout is None
            else torch.tensor([count == 1 for count in self.words.counts])
        )
        return Words(
            len(self.words),
            self.word_width,
            start=self.start,
            frozen=model.freeze_vectors,
            dropout=model.word_dropout,
            once=once,
            once_dropout=once_dropout or 0.0,
        )

    @property
    def word_count(self) -> int:
        """The number of word indices; 0 for vectors."""
        return 0 if self.words is None else len(self.words)


def _scale(train: Part, base: Beginning | None) -> Scale:
    """The scale of the training part, or of a base, whose layers require it."""
    scale = Scale.of(train.inputs.values)
    if base is None or (base.pretrained.mean is None and base.pretrained.words is None):
        return scale
    known, spread = base.pretrained.mean, base.pretrained.spread
    if known is None or spread is None:
        raise OptionError(
            f"{base.pretrained.called}: this base reads words, and the training part has steps of "
            f"{scale.width} numbers"
        )
    if len(known) != scale.width:
        raise OptionError(
            f"{base.pretrained.called}: this base reads steps of {len(known)} numbers, and the "
            "training "
            f"part has {scale.width}: expected the same features"
        )
    return Scale(known, spread)


def token_counts(part: Part) -> dict[str, int]:
    """The counts of each token in a part, including both sides of pairs."""
    counts = counts_of(part.inputs, part.numbers.tokens)
    if part.second is not None:
        for token, count in counts_of(part.second, part.numbers.tokens).items():
            counts[token] = counts.get(token, 0) + count
    return counts


def vocabulary_of(counts: Mapping[str, int], text: TextSettings) -> Vocabulary:
    """The vocabulary of counts. min_count comes from the settings, unless all words are rarer."""
    least = min(text.min_count, max(counts.values(), default=1))
    return Vocabulary.build(counts, min_count=least, max_size=text.max_words)


def vocabulary_rows(part: Part, ids: dict[str, int]) -> Ragged:
    """The tokens of a part as indices of a vocabulary; raises an error for vectors."""
    if not part.texts:
        raise DataError(f"{part.names[0]}: expected text, as in training, got vectors")
    return renumbered(part.inputs, part.numbers.tokens, ids)
