"""What a translator learns from its training part, beside the weights of its networks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from torch import Tensor

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.errors import DataError, OptionError
from ensue.tasks.declarations import NOT_SAVED, ReadWords, SavedAs
from ensue.tasks.rows.inputs import Scale
from ensue.tasks.rows.part import Part, Tokenisers, counts_of, renumbered
from ensue.tasks.seq2seq.target import LearnedTarget, most_frequent, targets_of, text_vocabulary
from ensue.tasks.settings import TextSettings
from ensue.tasks.transfer.new_words import extended, with_rows
from ensue.tasks.transfer.pretrained import Beginning

TARGET = SavedAs("", fields={"tokeniser": "target_tokeniser", "words": "target"})


@dataclass(frozen=True)
class LearnedPairs:
    """source_words: those of the target where both sides share one vocabulary; None where sources
    are vectors, whose scale stands beside it. start: the vectors of the source's words to begin
    with, where a base has them."""

    source_tokeniser: Annotated[Tokeniser, SavedAs("tokeniser")]
    source_words: Annotated[ReadWords | None, SavedAs("source")]
    target: Annotated[LearnedTarget, TARGET]
    scale: Scale | None = None
    start: Annotated[Tensor | None, NOT_SAVED] = None

    @classmethod
    def learn(
        cls, train: Part, text: TextSettings, shared: bool, base: Beginning | None = None
    ) -> LearnedPairs:
        vectors = not train.texts
        if vectors and shared:
            raise OptionError(
                "model.shared: expected false, since the sources are vectors and have no words"
            )
        source = {} if vectors else counts_of(train.inputs, train.numbers.tokens)
        target = counts_of(targets_of(train), train.numbers.labels)
        if shared:
            for word, count in source.items():
                target[word] = target.get(word, 0) + count
        words = text_vocabulary(target, len(train), text)
        cut = train.tokenisers
        assert cut.label is not None
        learned = LearnedTarget(cut.label, words, most_frequent(train))
        if vectors:
            _refuse_vectors(train, base)
            return cls(cut.input, None, learned, Scale.of(train.inputs.values))
        own = words if shared else text_vocabulary(source, len(train), text)
        if base is None or base.own.words is None or base.own.table is None:
            return cls(cut.input, own, learned)
        every = extended(base.own.words, own)
        start = with_rows(base.own.table, base.own.words, every, base.new_words)
        return cls(cut.input, every, learned, start=start)

    def as_saved(self) -> LearnedPairs:
        """As a file has it: source words that are those of the target stand there once."""
        return replace(self, source_words=None) if self.shared else self

    def as_read(self) -> LearnedPairs:
        """The inverse of `as_saved`."""
        words = None if self.scale is not None else self.source_words or self.target.words
        return replace(self, source_words=words)

    @property
    def tokenisers(self) -> Tokenisers:
        return Tokenisers(self.source_tokeniser, self.target.tokeniser)

    @property
    def shared(self) -> bool:
        return self.source_words is self.target.words

    def sources(self, part: Part) -> Ragged:
        """The sources of a part by the vocabulary's numbers, or scaled."""
        if self.scale is not None:
            own = self.scale.vectors(part)
            values = (own.values - self.scale.mean) / self.scale.spread
            return Ragged(values.astype(np.float32), own.starts)
        if not part.texts:
            raise DataError(f"{part.names[0]}: expected text, as in training, got vectors")
        assert self.source_words is not None
        return renumbered(part.inputs, part.numbers.tokens, self.source_words.numbers)


def _refuse_vectors(train: Part, base: Beginning | None) -> None:
    if base is not None:
        raise OptionError(
            f"{base.own.called}: this base reads words, and the sources have steps of "
            f"{train.inputs.values.shape[1]} numbers"
        )


def source_texts(part: Part) -> list[tuple[str, ...]]:
    """The tokens of each source, as they were cut; of vectors the numbers of their steps."""
    if not part.texts:
        lengths = part.inputs.lengths.tolist()
        return [tuple(str(k) for k in range(1, steps + 1)) for steps in lengths]
    names = part.numbers.token_names
    return [tuple(names[k] for k in part.inputs.row(row)) for row in range(len(part))]


def check_sides(part: Part, name: str) -> None:
    """Every row has a source and a target, and none of them is empty."""
    if not len(part) or part.labels is None:
        where = f", the first without a target is {part.unlabelled}" if part.unlabelled else ""
        raise DataError(
            f"the {name} part: expected pairs of source and target, got {len(part)} rows{where}"
        )
    if part.labels.values.ndim > 1:
        raise DataError(
            f"{part.names[0]}: the target: expected texts or tokens, got vectors of numbers; "
            "numbers are learned with --task regress"
        )
    for side, rows in (("source", part.inputs), ("target", part.labels)):
        empty = np.flatnonzero(rows.lengths == 0)
        if len(empty):
            many = "1 row has" if len(empty) == 1 else f"{len(empty):,} rows have"
            raise DataError(
                f"the {name} part: {many} an empty {side}, the first of them "
                f"{part.names[int(empty[0])]}: nothing can be learned from it; leave it out"
            )


def short_pairs(part: Part, most: int | None) -> Part:
    """Those of which no side has more tokens."""
    if most is None:
        return part
    long = np.maximum(part.inputs.lengths, targets_of(part).lengths) > most
    if long.all():
        raise DataError(
            f"all {len(part):,} pairs are longer than text.max_length, {most} tokens: "
            "raise it, or leave it out"
        )
    return part.take(np.flatnonzero(~long)) if long.any() else part


def long_pairs_line(part: Part, most: int | None) -> str:
    """What a user should know of the pairs that `short_pairs` leaves out; "" where there are
    none."""
    if most is None:
        return ""
    long = np.flatnonzero(np.maximum(part.inputs.lengths, targets_of(part).lengths) > most)
    if not len(long):
        return ""
    return (
        f"{len(long):,} of {len(part):,} pairs left out, longer than text.max_length, "
        f"{most} tokens, the first of them {part.names[int(long[0])]}"
    )
