"""What a regressor learns from its training part, beside the weights of its networks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.vocabulary import Vocabulary
from ensue.tasks import checks
from ensue.tasks.baselines.mixture import EVEN, SAVED_NUMBERS, NumberMixture
from ensue.tasks.baselines.regression import least_squares
from ensue.tasks.baselines.ridge import RidgeModel, fit_ridge
from ensue.tasks.baselines.text_linear import TextLinear, fit_text_ridge
from ensue.tasks.columns.beside import ColumnsBeside
from ensue.tasks.regress.settings import RegressorSettings
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.inputs import LearnedInputs, token_counts, vocabulary_rows
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.rows.words import shared_texts, texts_of
from ensue.tasks.saved import Saved
from ensue.tasks.settings import TextSettings
from ensue.tasks.targets.numbers import NumberTarget
from ensue.tasks.task import Packed
from ensue.tasks.transfer.pretrained import Beginning

RARE = 2  # rows that an n-gram of the baseline has at least
RIDGE = 1e-3  # of the linear model of vectors


@dataclass(frozen=True)
class LearnedNumber:
    """ridge: on the n-grams of a text, whose words are ngram_words; linear: on the mean and the
    last vector of a sequence, weights (2·n + 1,); text_linear: in place of ridge, where its numbers
    are mixed with the network's; held: its numbers for the validation part, by models that did not
    learn from it; not kept. beside: the columns that are read beside the text, if there are any."""

    inputs: LearnedInputs
    target: NumberTarget
    ngram_words: Vocabulary | None = None
    ridge: RidgeModel | None = None
    linear: NDArray[np.float32] | None = None
    text_linear: TextLinear | None = None
    mixture: NumberMixture | None = None
    held: Tensor | None = None
    beside: ColumnsBeside | None = None

    @classmethod
    def learn(
        cls,
        train: Part,
        validation: Part,
        text: TextSettings,
        model: RegressorSettings,
        base: Beginning | None = None,
    ) -> LearnedNumber:
        target = NumberTarget.learn(train, model)
        beside = ColumnsBeside.learn(train, model)
        found = cls(LearnedInputs.learn(train, text, model, base=base), target, beside=beside)
        values, held = target.encode(train)[:, 0], target.encode(validation)[:, 0]
        if found.inputs.words is None:
            return replace(found, linear=_least_squares(_vector_features(train), values))
        if model.linear == "mixed":
            first, second = shared_texts(train, validation)
            more = None if beside is None else beside.matrix(train, validation)
            fitted = fit_text_ridge(first, second, np.concatenate([values, held]), more)
            return replace(found, text_linear=fitted.model, mixture=EVEN, held=fitted.held)
        counts = token_counts(train)
        least = min(RARE, max(counts.values(), default=1))
        words = Vocabulary.build(counts, min_count=least)
        ridge = fit_ridge(
            vocabulary_rows(train, words.numbers),
            values,
            vocabulary_rows(validation, words.numbers),
            held,
            min_rows=RARE,
        )
        return replace(found, ngram_words=words, ridge=ridge)

    @property
    def tokenisers(self) -> Tokenisers:
        return self.inputs.tokenisers

    def columns(self, part: Part, text: TextSettings) -> Columns:
        """A part as the networks see it."""
        targets = None if part.labels is None else self.target.encode(part)
        known = replace(self.inputs.columns(part, text), targets=targets)
        return known if self.beside is None else self.beside.joined(known, part)

    def baselines(self, part: Part) -> dict[str, Tensor]:
        """The scaled number by the linear model, (rows, 1), by its name."""
        if self.text_linear is not None:
            more = None if self.beside is None else self.beside.matrix(part)
            return {"ridge on n-grams": self.text_linear.scores(texts_of(part), more).float()}
        if self.ridge is not None and self.ngram_words is not None:
            values = self.ridge.values(vocabulary_rows(part, self.ngram_words.numbers))
            return {"ridge on n-grams": torch.from_numpy(values)[:, None]}
        assert self.linear is not None
        return {"linear model": torch.from_numpy(_vector_features(part) @ self.linear)[:, None]}

    # ------------------------------------------------------------- as files
    def pack(self) -> Packed:
        known = self.inputs.vocabularies()
        arrays: dict[str, NDArray[Any]] = self.inputs.arrays()
        if self.ridge is not None and self.ngram_words is not None:
            known["ngram_words"] = self.ngram_words.to_dict()
            arrays |= {f"ridge.{name}": values for name, values in self.ridge.arrays().items()}
        if self.linear is not None:
            arrays["linear"] = self.linear
        if self.text_linear is not None:
            own = self.text_linear.arrays()
            arrays |= {f"text_linear.{name}": values for name, values in own.items()}
        if self.mixture is not None:
            arrays["mixture"] = np.array(self.mixture)
        facts = {**self.inputs.facts(), "target": self.target.facts()}
        if self.beside is not None:
            facts["beside"] = self.beside.to_dict()
        return Packed(facts, known, arrays)

    @classmethod
    def unpack(cls, saved: Saved, model: RegressorSettings) -> LearnedNumber:
        inputs, arrays = LearnedInputs.unpack(saved), saved.arrays
        words = checks.maybe(checks.words)(saved.vocabularies.get("ngram_words"), "ngram_words")
        beside = ColumnsBeside.from_dict(saved.facts.get("beside"), model)
        ridge, more = None, 0 if beside is None else beside.dense_width
        if words is not None:
            ridge = RidgeModel.from_arrays(saved.part("ridge"), len(words))
        linear = None
        if inputs.scale is not None:
            weights = checks.array((2 * inputs.scale.width + 1,), checks.SINGLE)
            linear = weights(arrays.get("linear"), "linear")
        return cls(
            inputs,
            NumberTarget.of_facts(saved.facts["target"], model),
            words,
            ridge,
            linear,
            TextLinear.from_arrays(saved.part("text_linear"), 1, more),
            checks.maybe(SAVED_NUMBERS)(arrays.get("mixture"), "mixture"),
            beside=beside,
        ).complete(model)

    def complete(self, model: RegressorSettings) -> LearnedNumber:
        """The same, if all is there that answers with the network."""
        mixed = model.linear == "mixed"
        asked = self.text_linear if mixed else self.ridge
        if self.inputs.words is not None and (asked is None or mixed != (self.mixture is not None)):
            raise checks.Unfit("linear: expected the model that answers beside the network")
        return self


def _vector_features(part: Part) -> NDArray[np.float32]:
    """(rows, 2·n + 1): the mean vector, the last one, and a 1; zeros for an empty row."""
    values, starts = part.inputs.values, part.inputs.starts
    width = values.shape[1] if values.ndim == 2 else 0
    found = np.zeros((len(part), 2 * width + 1), np.float32)
    found[:, -1] = 1
    for row in range(len(part)):
        steps = values[starts[row] : starts[row + 1]]
        if len(steps):
            found[row, :-1] = np.concatenate([steps.mean(0), steps[-1]])
    return found


def _least_squares(features: NDArray[np.float32], values: NDArray[Any]) -> NDArray[np.float32]:
    """Weights (2·n + 1,), the constant's last."""
    x, y = torch.from_numpy(features[:, :-1]).double(), torch.from_numpy(values)[:, None].double()
    weights, bias = least_squares(x, y, RIDGE)
    return torch.cat([weights[0], bias]).float().numpy()
