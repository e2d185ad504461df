"""What a captioner learns from its training part, beside the weights of its networks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.errors import DataError
from ensue.tasks.pictures.part import PicturePart, Shape, saved_shape
from ensue.tasks.rows.part import Tokenisers, counts_of
from ensue.tasks.saved import Saved
from ensue.tasks.seq2seq.target import LearnedTarget, most_frequent, targets_of, text_vocabulary
from ensue.tasks.settings import TextSettings
from ensue.tasks.task import Packed


@dataclass(frozen=True)
class LearnedCaptions:
    """shape: of the pictures that were learned from; others are brought to it."""

    shape: Shape
    target: LearnedTarget

    @classmethod
    def learn(cls, train: PicturePart, text: TextSettings) -> LearnedCaptions:
        counts = counts_of(targets_of(train), train.numbers.labels)
        words = text_vocabulary(counts, len(train), text)
        assert train.tokenisers is not None
        cut = train.tokenisers.input
        return cls(train.shape, LearnedTarget(cut, words, most_frequent(train)))

    @property
    def tokenisers(self) -> Tokenisers:
        return Tokenisers(self.target.tokeniser, self.target.tokeniser)

    # ------------------------------------------------------------- as files
    def pack(self) -> Packed:
        facts = {
            "tokeniser": self.target.tokeniser.to_dict(),
            "shape": list(self.shape),
            "frequent": list(self.target.frequent),
        }
        return Packed(facts, {"words": self.target.words.to_dict()})

    @classmethod
    def unpack(cls, saved: Saved) -> LearnedCaptions:
        words = saved.vocabularies.get("words")
        target = LearnedTarget.of_facts(saved.facts, "tokeniser", words)
        return cls(saved_shape(saved.facts), target)


def lines_of(pixels: NDArray[np.uint8]) -> Ragged:
    """Pictures (rows, channels, height, width) by their lines (rows·channels·height, width), as
    pair networks take a source: all of a picture's lines, one channel below the other."""
    rows, channels, height, width = pixels.shape
    lines = channels * height
    return Ragged(pixels.reshape(rows * lines, width), np.arange(rows + 1) * lines)


def check_captions(part: PicturePart, name: str) -> None:
    """Every picture has a caption, and none is empty."""
    if not len(part) or part.labels is None:
        where = f", the first without a caption is {part.unlabelled}" if part.unlabelled else ""
        raise DataError(
            f"the {name} part: expected pictures with captions, got {len(part)} rows{where}"
        )
    empty = np.flatnonzero(part.labels.lengths == 0)
    if len(empty):
        many = "1 picture has" if len(empty) == 1 else f"{len(empty):,} pictures have"
        raise DataError(
            f"the {name} part: {many} an empty caption, the first of them "
            f"{part.names[int(empty[0])]}: nothing can be learned from it; leave it out"
        )
