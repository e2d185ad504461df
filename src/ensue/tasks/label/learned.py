"""The learned part of a labeller, except the weights of its networks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError, OptionError
from ensue.metrics.spans import OUTSIDE
from ensue.tasks.baselines.majority import MajorityLabel
from ensue.tasks.blocks.embeddings import Characters, Feature, Symbols
from ensue.tasks.declarations import NEXT_TO, Labels, Let, SavedAs, Unfit, Words
from ensue.tasks.exported import Rounding
from ensue.tasks.label.linear_chain import LinearChain, fit_linear_chain
from ensue.tasks.label.mixture import EQUAL, ChainMixture
from ensue.tasks.label.settings import LabellerSettings
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.inputs import LearnedInputs, token_counts, vocabulary_rows
from ensue.tasks.rows.labels import label_numbers, learned_labels
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.rows.surfaces import (
    SurfaceTable,
    ends_of,
    part_counts,
    shape_of,
    starts_of,
    surface_table,
)
from ensue.tasks.settings import TextSettings
from ensue.tasks.transfer.letter_context import NAME as CONTEXT
from ensue.tasks.transfer.letter_context import LetterContext
from ensue.tasks.transfer.pretrained import Beginning

RARE = 2  # letters, affixes or shapes with fewer occurrences are unknown
NARROWEST = 4  # width of the vector of an affix or a shape


@dataclass(frozen=True)
class WordParts:
    """The features of word parts. known: the vocabularies of "letters", "prefixes", "suffixes" and
    "shapes", as far as they are used."""

    known: Annotated[Mapping[str, Words], SavedAs("part ")]

    @classmethod
    def learn(cls, counts: Mapping[str, int], settings: LabellerSettings) -> WordParts:
        """Learns the vocabularies. counts: the count of each word in its original spelling."""
        longest = settings.affixes
        parts: dict[str, tuple[bool, Callable[[str], Iterable[str]]]] = {
            "letters": (settings.character_size > 0, list),
            "prefixes": (longest > 0, lambda word: starts_of(word, longest)),
            "suffixes": (longest > 0, lambda word: ends_of(word, longest)),
            "shapes": (settings.shapes, lambda word: [shape_of(word)]),
        }
        known_parts = {}
        for name, (used, parts_of) in parts.items():
            if used:
                part_numbers = part_counts(counts, parts_of)
                least = min(RARE, max(part_numbers.values(), default=1))
                known_parts[name] = Vocabulary.build(part_numbers, min_count=least)
        return cls(known_parts)

    def table(
        self,
        surfaces: Iterable[str],
        words: Vocabulary,
        fold: Callable[[str], str],
        affixes: int,
        spelling: Ragged | None = None,
    ) -> SurfaceTable:
        """The features of each surface, with padding before the first. spelling: see
        SurfaceTable."""
        known = self.known
        return surface_table(
            ["", *surfaces],
            words,
            fold=fold,
            characters=known.get("letters"),
            prefixes=(known["prefixes"], affixes) if "prefixes" in known else None,
            suffixes=(known["suffixes"], affixes) if "suffixes" in known else None,
            shapes=known.get("shapes"),
            spelling=spelling,
        )

    def features(self, settings: LabellerSettings) -> list[Feature]:
        """The features of a network, one for each kind of part, with fresh weights."""
        known, listed = self.known, list[Feature]()
        width = max(NARROWEST, settings.embedding_size // 4)
        if "letters" in known:
            size, hidden = settings.character_size, settings.character_hidden
            listed.append(Characters(len(known["letters"]), size, settings.cell, hidden))
        if "prefixes" in known:
            listed.append(Symbols("prefix", len(known["prefixes"]), width, settings.affixes))
            listed.append(Symbols("suffix", len(known["suffixes"]), width, settings.affixes))
        if "shapes" in known:
            listed.append(Symbols("shape", len(known["shapes"]), width))
        return listed


MOST_STEPS = 400_000  # for the linear chain; of more, every 2nd row, 3rd, …


@dataclass(frozen=True)
class LearnedLabels:
    """Everything a labeller learns except weights. parts: features of words, empty for vectors;
    majority: the most frequent label of each word, a baseline; linear, mixture: the linear chain of
    a model of text, and its mixture with the network, if both contribute; context: the character
    language model whose states are read next to the words."""

    inputs: Annotated[LearnedInputs, NEXT_TO]
    labels: Labels
    parts: Annotated[WordParts, NEXT_TO]
    majority: Annotated[MajorityLabel, Let(word_count=lambda record: record.inputs.word_count or 1)]
    linear: Annotated[LinearChain | None, SavedAs("chain")] = None
    mixture: ChainMixture | None = None
    context: Annotated[LetterContext | None, SavedAs(CONTEXT)] = None

    def rounded(self, rounding: Rounding) -> LearnedLabels:
        if self.linear is None:
            return self
        weights = rounding(self.linear.weights.T).T
        return replace(self, linear=replace(self.linear, weights=weights))

    def check_saved(self) -> None:
        if self.mixture is not None and self.linear is None:
            raise Unfit("expected the linear chain that is mixed with the network", "chain")
        if self.mixture is not None and self.mixture.outside and OUTSIDE not in self.labels:
            raise Unfit(
                f"expected 0, because the labels do not contain {OUTSIDE}, got "
                f"{self.mixture.outside:g}",
                "mixture.outside",
            )

    @classmethod
    def learn(
        cls,
        train: Part,
        text: TextSettings,
        model: LabellerSettings,
        base: Beginning | None = None,
    ) -> LearnedLabels:
        labels = learned_labels(train)
        targets = step_targets(train, labels.tokens)
        context = _context(train, base)
        base = None if context else base
        if not train.texts:
            inputs = LearnedInputs.learn(train, text, model, base=base)
            majority = MajorityLabel.fitted(same_word(targets), targets, 1)
            return cls(inputs, labels, WordParts({}), majority)
        counts = token_counts(train)
        fold, folded = folding(text), dict[str, int]()
        for word, count in counts.items():
            key = fold(word)
            folded[key] = folded.get(key, 0) + count
        inputs = LearnedInputs.learn(train, text, model, folded, base)
        assert inputs.words is not None
        words = word_numbers(train, inputs.words, text)
        majority = MajorityLabel.fitted(words, targets, len(inputs.words))
        learned = cls(inputs, labels, WordParts.learn(counts, model), majority, context=context)
        share = model.linear_share
        if not share:
            return learned
        mixture = EQUAL if share == "fitted" else ChainMixture(1 - share, share)
        return replace(learned, linear=_linear(train, targets, len(labels)), mixture=mixture)

    @property
    def tokenisers(self) -> Tokenisers:
        return self.inputs.tokenisers

    def columns(self, part: Part, text: TextSettings, model: LabellerSettings) -> Columns:
        """A part, encoded for the networks."""
        targets = None if part.labels is None else step_targets(part, self.labels.tokens)
        words = self.inputs.words
        if words is None:
            return replace(self.inputs.columns(part, text), targets=targets)
        if not part.texts:
            raise DataError(f"{part.names[0]}: expected text, as in training, got vectors")
        surfaces = Ragged(part.inputs.values.astype(np.int64) + 1, part.inputs.starts)
        tokens, fold = part.numbers.tokens, folding(text)
        spelling = None if self.context is None else self.context.spelling(tokens)
        table = self.parts.table(tokens, words, fold, model.affixes, spelling)
        return Columns(surfaces=surfaces, table=table, targets=targets)

    def words(self, part: Part, text: TextSettings) -> Ragged:
        """The vocabulary's index of every step; for vectors one index for all."""
        if self.inputs.words is None:
            return same_word(part.inputs)
        return word_numbers(part, self.inputs.words, text)

    def features(self, model: LabellerSettings) -> list[Feature]:
        """The features of a step, with fresh weights."""
        listed = [self.inputs.feature(model, model.once_dropout), *self.parts.features(model)]
        return listed if self.context is None else [*listed, self.context.feature()]


def _context(train: Part, base: Beginning | None) -> LetterContext | None:
    """The character language model of a base, if it has one."""
    context = None if base is None else base.pretrained.context
    if context is None:
        return None
    if not train.texts:
        raise OptionError(
            f"{context.called}: this base reads letters, and the training part has steps of "
            f"{train.inputs.values.shape[1]} numbers"
        )
    return LetterContext.of(context)


def _linear(train: Part, targets: Ragged, labels: int) -> LinearChain:
    every = np.arange(0, len(train), 1 + len(targets.values) // MOST_STEPS)
    words = train.numbers.token_names
    return fit_linear_chain(words, train.inputs.take(every), targets.take(every), labels)


def step_targets(part: Part, labels: Sequence[str]) -> Ragged:
    """The index of each step's label; raises an error if a row has another number of labels."""
    assert part.labels is not None
    wrong = np.flatnonzero(part.inputs.lengths != part.labels.lengths)
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{part.names[row]}: expected a label for each of the "
            f"{part.inputs.lengths[row]} steps, got {part.labels.lengths[row]}"
        )
    return Ragged(label_numbers(part, labels), part.labels.starts)


def folding(text: TextSettings) -> Callable[[str], str]:
    """The spelling of a word in the vocabulary: case and numbers normalised by the settings."""
    tokeniser = Tokeniser("spaces", lower=text.lower, numbers=text.numbers)

    def fold(word: str) -> str:
        tokens = tokeniser(word)
        return tokens[0] if len(tokens) == 1 else tokeniser.prepared(word)

    return fold


def word_numbers(part: Part, words: Vocabulary, text: TextSettings) -> Ragged:
    """The vocabulary's index of every token."""
    fold, known = folding(text), words.numbers
    return vocabulary_rows(part, {word: known[fold(word)] for word in part.numbers.tokens})


def same_word(steps: Ragged) -> Ragged:
    """A single index for all steps, which have no words."""
    return Ragged(np.zeros(len(steps.values), np.int64), steps.starts)
