"""What a classifier learns from its training part, beside the weights of its networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError
from ensue.tasks import checks
from ensue.tasks.baselines.linear import LinearModel, fit_linear
from ensue.tasks.baselines.mixture import EQUAL, SAVED, BaselineMixture
from ensue.tasks.baselines.text_linear import TextLinear, fit_text_linear, most_telling
from ensue.tasks.classify.settings import ClassifierSettings
from ensue.tasks.columns.beside import ColumnsBeside
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.inputs import LearnedInputs, token_counts, vocabulary_rows
from ensue.tasks.rows.labels import label_numbers, learned_labels
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.rows.words import shared_texts, texts_of
from ensue.tasks.saved import Saved
from ensue.tasks.settings import TextSettings
from ensue.tasks.task import Packed
from ensue.tasks.transfer.pretrained import Beginning

RARE = 2  # rows that an n-gram of the linear model has at least


@dataclass(frozen=True)
class LearnedClasses:
    """ngram_words, linear: the linear model of n-grams beside a model of text; text_linear: the one
    whose answers are mixed with the network's, in place of it; mixture: of network and linear
    model, where both answer. held: the scores of text_linear for the validation part, by models
    that did not learn from it; not kept. telling: the n-grams that speak most for each label;
    beside: the columns that are read beside the text, if there are any."""

    inputs: LearnedInputs
    labels: Vocabulary
    ngram_words: Vocabulary | None = None
    linear: LinearModel | None = None
    mixture: BaselineMixture | None = None
    text_linear: TextLinear | None = None
    held: Tensor | None = None
    telling: Mapping[str, Sequence[str]] = field(default_factory=dict)
    beside: ColumnsBeside | None = None

    @classmethod
    def learn(
        cls,
        train: Part,
        validation: Part,
        text: TextSettings,
        model: ClassifierSettings,
        base: Beginning | None = None,
    ) -> LearnedClasses:
        labels = learned_labels(train)
        targets = class_targets(train, labels.tokens, model.several)
        inputs = LearnedInputs.learn(train, text, model, base=base)
        beside = ColumnsBeside.learn(train, model)
        if inputs.words is None:
            return cls(inputs, labels, beside=beside)
        if model.linear == "mixed":
            held = class_targets(validation, labels.tokens, model.several)
            first, second = shared_texts(train, validation)
            both = np.concatenate([targets, held])
            more = None if beside is None else beside.matrix(train, validation)
            fitted = fit_text_linear(first, second, both, len(labels), more)
            return cls(
                inputs,
                labels,
                mixture=EQUAL,
                text_linear=fitted.model,
                held=fitted.held,
                telling=most_telling(fitted.model, first, labels.tokens),
                beside=beside,
            )
        counts = token_counts(train)
        least = min(RARE, max(counts.values(), default=1))
        words = Vocabulary.build(counts, min_count=least)
        linear = fit_linear(
            vocabulary_rows(train, words.numbers),
            targets,
            len(labels),
            longest=model.ngrams or 2,
            min_rows=RARE,
        )
        share, mixture = model.ngram_share, None
        if share:
            mixture = EQUAL if share == "fitted" else BaselineMixture(1 - share, share)
        return cls(inputs, labels, words, linear, mixture, beside=beside)

    @property
    def tokenisers(self) -> Tokenisers:
        return self.inputs.tokenisers

    def columns(self, part: Part, text: TextSettings, model: ClassifierSettings) -> Columns:
        """A part as the networks see it."""
        targets = None
        if part.labels is not None:
            targets = class_targets(part, self.labels.tokens, model.several)
        ngrams = None
        if model.ngrams and self.linear is not None:
            ngrams = self.linear.ngrams.present(self.ngram_inputs(part))
        known = replace(self.inputs.columns(part, text), ngrams=ngrams, targets=targets)
        return known if self.beside is None else self.beside.joined(known, part)

    def text_scores(self, part: Part) -> Tensor:
        """(rows, classes) by the linear model of texts, and of the columns beside them."""
        assert self.text_linear is not None
        more = None if self.beside is None else self.beside.matrix(part)
        return self.text_linear.scores(texts_of(part), more)

    def ngram_inputs(self, part: Part) -> Ragged:
        assert self.ngram_words is not None
        return vocabulary_rows(part, self.ngram_words.numbers)

    def most_telling(self, label: str, count: int) -> list[str]:
        """The n-grams that speak most for a class, by the linear model."""
        (number,) = self.labels.ids([label])
        if self.text_linear is not None:
            return list(self.telling[label][:count])
        if self.linear is None or self.ngram_words is None:
            raise DataError("most_telling: expected a model of text, got one of vectors")
        found = self.linear.most_telling(number, count)
        return [" ".join(self.ngram_words.tokens_of(words)) for words, _ in found]

    # ------------------------------------------------------------- as files
    def pack(self) -> Packed:
        known = {**self.inputs.vocabularies(), "labels": self.labels.to_dict()}
        arrays: dict[str, NDArray[Any]] = self.inputs.arrays()
        if self.linear is not None and self.ngram_words is not None:
            known["ngram_words"] = self.ngram_words.to_dict()
            arrays |= {f"linear.{name}": own for name, own in self.linear.arrays().items()}
        if self.mixture is not None:
            arrays["mixture"] = np.array(self.mixture)
        facts = self.inputs.facts()
        if self.text_linear is not None:
            own = self.text_linear.arrays()
            arrays |= {f"text_linear.{name}": array for name, array in own.items()}
            facts["telling"] = {label: list(ngrams) for label, ngrams in self.telling.items()}
        if self.beside is not None:
            facts["beside"] = self.beside.to_dict()
        return Packed(facts, known, arrays)

    @classmethod
    def unpack(cls, saved: Saved, model: ClassifierSettings) -> LearnedClasses:
        known, own = saved.vocabularies, saved.part("linear")
        labels = checks.labels(known.get("labels"), "labels")
        words = checks.maybe(checks.words)(known.get("ngram_words"), "ngram_words")
        beside = ColumnsBeside.from_dict(saved.facts.get("beside"), model)
        linear, more = None, 0 if beside is None else beside.dense_width
        if words is not None:
            linear = LinearModel.from_arrays(own, len(words), len(labels), model.several)
        telling = checks.record(dict.fromkeys(labels.tokens, checks.listed(checks.text)))
        text_linear = TextLinear.from_arrays(saved.part("text_linear"), len(labels), more)
        mixture = checks.maybe(SAVED)(saved.arrays.get("mixture"), "mixture")
        return cls(
            LearnedInputs.unpack(saved),
            labels,
            words,
            linear,
            mixture,
            text_linear,
            telling={} if text_linear is None else telling(saved.facts["telling"], "telling"),
            beside=beside,
        ).complete(model)

    def complete(self, model: ClassifierSettings) -> LearnedClasses:
        """The same, if all is there that answers with the network."""
        asked = self.text_linear if model.linear == "mixed" else self.linear
        counted = model.linear == "mixed" or bool(model.ngram_share)
        if self.inputs.words is not None and (
            asked is None or counted != (self.mixture is not None)
        ):
            raise checks.Unfit("linear: expected the model that answers beside the network")
        return self


def class_targets(part: Part, labels: tuple[str, ...], several: bool) -> NDArray[np.int64]:
    """(rows,) classes, or (rows, labels) zeros and ones."""
    assert part.labels is not None
    values, lengths = label_numbers(part, labels), part.labels.lengths
    if not several:
        if len(wrong := np.flatnonzero(lengths != 1)):
            row = int(wrong[0])
            raise DataError(
                f"{part.names[row]}: expected one label, found {lengths[row]}; "
                "for several labels at once set model.several = true"
            )
        return values
    found = np.zeros((len(part), len(labels)), np.int64)
    found[np.repeat(np.arange(len(part)), lengths), values] = 1
    return found


def class_indicators(train: Part, model: ClassifierSettings) -> NDArray[np.int64]:
    """(rows, labels) zeros and ones, of one label for each row as of several."""
    labels = learned_labels(train).tokens
    found = class_targets(train, labels, model.several)
    return found if model.several else np.eye(len(labels), dtype=np.int64)[found]
