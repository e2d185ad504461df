"""Texts, tokens, or sequences of vectors as sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.errors import DataError, OptionError
from ensue.tasks.any_model import AnyModel
from ensue.tasks.codec import Packed, packed
from ensue.tasks.declarations import NEXT_TO, NOT_SAVED, ReadWords, SavedAs
from ensue.tasks.exported import (
    BATCH,
    LENGTHS,
    TIME,
    Input,
    Step,
    count_step,
    look_up_step,
    tokenise_step,
)
from ensue.tasks.rows.collect import PairContent
from ensue.tasks.rows.inputs import Scale, vocabulary_rows
from ensue.tasks.rows.part import Part, Tokenisers, counts_of
from ensue.tasks.rows.reader import Rows, tokeniser_of
from ensue.tasks.saved import Saved
from ensue.tasks.seq2seq.answer import Best, Explained
from ensue.tasks.seq2seq.drawing import TranslationExplanation
from ensue.tasks.seq2seq.pairs import PairNetwork
from ensue.tasks.seq2seq.source import LearnedPairs, LearnedSource, SourceQuestion, SourceReader
from ensue.tasks.seq2seq.target import LearnedTarget, targets_of, text_vocabulary
from ensue.tasks.transfer.ability import EncoderNames, Refuses
from ensue.tasks.transfer.new_words import extended, with_rows
from ensue.tasks.transfer.pretrained import Beginning, Pretrained, taken_layers
from ensue.tasks.transfer.takeover import encoder_settings, first_weights


class TextPairReader(SourceReader[Part]):
    """Reads texts, tokens or vectors with their target texts."""

    content = PairContent()
    rows, row, text = "pairs of source and target", "row", "target"

    def tokenisers(self, rows: Rows) -> Tokenisers:
        """A tokeniser for each side. The source's tokeniser comes from the base, if there is one.
        Shared subwords are learned from both sides."""
        model = self.model
        sources = (row.value for row in rows() if not isinstance(row.value, np.ndarray))
        targets = (row.label for row in rows() if row.label is not None)
        if model.settings.shared:
            both = tokeniser_of(model.text, chain(sources, targets))
            return Tokenisers(both, both)
        target = tokeniser_of(model.text, targets)
        if model.pretrained is not None and model.pretrained.tokeniser is not None:
            return Tokenisers(model.pretrained.tokeniser, target)
        return Tokenisers(tokeniser_of(model.text, sources), target)

    def check(self, part: Part, name: str) -> None:
        if len(part) and part.labels is not None:
            if part.labels.values.ndim > 1:
                raise DataError(
                    f"{part.names[0]}: the target: expected texts or tokens, got vectors of "
                    "numbers; numbers are learned with --task regress"
                )
            self.check_side(part, name, "source", part.inputs)
        super().check(part, name)

    def token_counts(self, part: Part) -> NDArray[np.int64]:
        return np.maximum(part.inputs.lengths, targets_of(part).lengths)


@dataclass(frozen=True)
class LearnedTextSource(LearnedSource):
    """The learned part of text sources. words: the vocabulary of the sources (the target's, if both
    share one); None for " "vectors, which have a scale instead. start: initial word vectors from a
    base."""

    tokeniser: Tokeniser
    words: Annotated[ReadWords | None, SavedAs("source")]
    scale: Scale | None = None
    start: Annotated[Tensor | None, NOT_SAVED] = None

    @property
    def copied(self) -> bool:  # type: ignore[override]
        return self.scale is None

    def encode(self, part: Part) -> Ragged:
        """The sources as indices of the vocabulary, or as scaled vectors."""
        if self.scale is not None:
            vectors = self.scale.vectors(part)
            values = (vectors.values - self.scale.mean) / self.scale.spread
            return Ragged(values.astype(np.float32), vectors.starts)
        assert self.words is not None
        return vocabulary_rows(part, self.words.numbers)

    def source_texts(self, part: Part) -> tuple[list[str], NDArray[np.int64]]:
        if not part.texts:
            return [""] * len(part), part.inputs.lengths
        texts = [self.tokeniser.text_of(tokens) for tokens in self.positions(part)]
        return texts, part.inputs.lengths

    def positions(self, part: Part) -> list[tuple[str, ...]]:
        """The tokens; for vectors, the indices of their steps."""
        if not part.texts:
            lengths = part.inputs.lengths.tolist()
            return [tuple(str(k) for k in range(1, steps + 1)) for steps in lengths]
        names = part.numbers.token_names
        return [tuple(names[k] for k in part.inputs.row(row)) for row in range(len(part))]

    def explanation(
        self, best: Best, probabilities: tuple[float, ...], inputs: Any, model: AnyModel
    ) -> TranslationExplanation:
        assert best.weights is not None
        return TranslationExplanation(
            Explained(best.source, best.tokens, probabilities, best.weights, best.text)
        )

    def question(self, networks: Sequence[PairNetwork]) -> SourceQuestion:
        steps: tuple[Step, ...]
        if self.scale is not None:
            source = Input("source", (TIME, BATCH, self.scale.width))
            scale = {"mean": self.scale.mean.tolist(), "spread": self.scale.spread.tolist()}
            steps = ({"step": "scale", "from": "question", "to": "source", **scale},)
        else:
            assert self.words is not None
            source = Input("source", (TIME, BATCH), len(self.words))
            steps = (
                tokenise_step(self.tokeniser),
                look_up_step(self.words.tokens, to="source"),
            )
        count = count_step("source")
        return SourceQuestion((source, LENGTHS), (*steps, count), _both, 0, LENGTHS.name)

    def facts(self, target: LearnedTarget, networks: Sequence[PairNetwork]) -> list[str]:
        words = f"{len(target.words):,}"
        if self.scale is not None:
            return [f"{self.scale.width} numbers a step, {words} tokens in the vocabulary"]
        assert self.words is not None
        sizes = f"{len(self.words):,} source and {words} target"
        shared = self.words is target.words
        return [f"{f'{words} shared' if shared else sizes} tokens in the vocabulary"]


def _both(source: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    return source, lengths


@dataclass(frozen=True)
class TextPairs(LearnedPairs):
    """Both sides of texts. A shared vocabulary is saved once, as the target's."""

    source: Annotated[LearnedTextSource, NEXT_TO]
    target: Annotated[
        LearnedTarget, SavedAs("", fields={"tokeniser": "target_tokeniser", "words": "target"})
    ]

    @classmethod
    def learn(cls, train: Part, model: AnyModel) -> Self:
        text, shared, base = model.text, model.settings.shared, model.beginning
        cut = train.tokenisers
        assert cut.label is not None
        if not train.texts:
            _refuse_words(train, shared, base)
            target = LearnedTarget.learn(train, cut.label, text)
            return cls(LearnedTextSource(cut.input, None, Scale.of(train.inputs.values)), target)
        counts = counts_of(train.inputs, train.numbers.tokens)
        target = LearnedTarget.learn(train, cut.label, text, counts if shared else None)
        words = target.words if shared else text_vocabulary(counts, len(train), text)
        if base is None or base.pretrained.words is None or base.pretrained.table is None:
            return cls(LearnedTextSource(cut.input, words), target)
        every = extended(base.pretrained.words, words)
        start = with_rows(base.pretrained.table, base.pretrained.words, every, base.new_words)
        return cls(LearnedTextSource(cut.input, every, start=start), target)

    def pack(self) -> Packed:
        shared = self.source.words is self.target.words
        return packed(self._with(None) if shared else self)

    @classmethod
    def unpack(cls, saved: Saved, settings: Any) -> Self:
        pairs = super().unpack(saved, settings)
        source = pairs.source
        if source.scale is not None:
            return pairs._with(None)
        return pairs if source.words else pairs._with(pairs.target.words)

    def _with(self, words: Any) -> Self:
        return replace(self, source=replace(self.source, words=words))


def _refuse_words(train: Part, shared: bool, base: Beginning | None) -> None:
    """Raises an error if vectors would be read as words."""
    if shared:
        raise OptionError(
            "model.shared: expected false, since the sources are vectors and have no words"
        )
    if base is not None:
        raise OptionError(
            f"{base.pretrained.called}: this base reads words, and the sources have steps of "
            f"{train.inputs.values.shape[1]} numbers"
        )


# --- begun from the layers of another model -----------------------------------------------------

ENCODER = "recurrent"
NOT_KEYS = ("encoder", "directions")  # there is only one kind, with joined directions


class SourceTransfers(Refuses):
    """Transfers of the words and layers that read a source; the decoder starts fresh. The text
    settings then concern only targets; sources are tokenised like the texts of the base."""

    def adapted(self, pretrained: Pretrained, model: AnyModel) -> Pretrained:
        return replace(super().adapted(pretrained, model), text={})

    def architecture(self, pretrained: Pretrained, model: AnyModel) -> dict[str, Any]:
        settings = model.settings
        misfits = {
            f"it has {_kind(pretrained)}; expected recurrent layers over words": not _fits(
                pretrained
            ),
            "model.family: expected recurrent, got transformer": settings.family != ENCODER,
            "model.shared: expected false, a base has the words of one side": settings.shared,
            "model.reverse_source: expected false, as the base reads": settings.reverse_source,
        }
        wrong = [problem for problem, misfit in misfits.items() if misfit]
        if wrong:
            raise OptionError(
                f"base: a {model.task.name} model cannot begin from {pretrained.called}: "
                f"{'; '.join(wrong)}"
            )
        known = encoder_settings(pretrained, model.base)
        return {key: value for key, value in known.items() if key not in NOT_KEYS}

    def learned(self, pretrained: Pretrained, model: AnyModel) -> Pretrained:
        source: LearnedTextSource = model.learned.source
        return replace(pretrained, words=source.words, table=source.start)

    def names(self, network: nn.Module) -> EncoderNames:
        return EncoderNames("network.table.weight", {"recurrent.": "network.encoder."})

    def first(
        self, pretrained: Pretrained, model: AnyModel, network: nn.Module
    ) -> dict[str, Tensor]:
        """The weights of the layers; word vectors are already set."""
        return first_weights(
            pretrained, taken_layers(pretrained, model.base), self.names(network), network
        )


def _fits(pretrained: Pretrained) -> bool:
    apart = pretrained.settings.get("directions") == "apart"
    return pretrained.encoder == ENCODER and pretrained.words is not None and not apart


def _kind(pretrained: Pretrained) -> str:
    if pretrained.settings.get("directions") == "apart":
        return "two directions that are apart"
    if pretrained.encoder and pretrained.words is None:
        return "layers of vectors"
    return f"{pretrained.encoder} layers" if pretrained.encoder else "no layers"
