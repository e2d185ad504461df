"""What a matcher learns from its training part, beside the weights of its networks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.tasks.baselines.linear import LinearModel, fit_linear
from ensue.tasks.baselines.ridge import RidgeModel, fit_ridge
from ensue.tasks.match.network import MatchColumns
from ensue.tasks.match.overlap import overlap_numbers, overlap_rows
from ensue.tasks.match.settings import MatcherSettings
from ensue.tasks.rows.inputs import LearnedInputs
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.saved import Saved
from ensue.tasks.settings import TextSettings
from ensue.tasks.targets.classes import SeveralTarget
from ensue.tasks.targets.kinds import TARGETS, target_facts, target_kind, target_of_facts
from ensue.tasks.targets.numbers import NumberTarget
from ensue.tasks.targets.target import Target
from ensue.tasks.task import Packed
from ensue.tasks.transfer.pretrained import Beginning

RARE = 2  # rows that a feature of the baseline has at least


@dataclass(frozen=True)
class LearnedMatch:
    """linear, ridge: of classes and of scores, on overlap and n-grams; None of vectors."""

    inputs: LearnedInputs
    target: Target
    linear: LinearModel | None = None
    ridge: RidgeModel | None = None

    @classmethod
    def learn(
        cls,
        train: Part,
        validation: Part,
        text: TextSettings,
        model: MatcherSettings,
        base: Beginning | None = None,
    ) -> LearnedMatch:
        target = TARGETS[kind_of(train, model)].learn(train, model)
        found = cls(LearnedInputs.learn(train, text, model, base=base), target)
        words = found.inputs.words
        if words is None:
            return found
        rows, values = overlap_rows(train, words), target.encode(train)
        if isinstance(target, NumberTarget):
            held = overlap_rows(validation, words), target.encode(validation)[:, 0]
            return replace(found, ridge=fit_ridge(rows, values[:, 0], *held, min_rows=RARE))
        linear = fit_linear(rows, values, target.width, longest=2, min_rows=RARE)
        return replace(found, linear=linear)

    @property
    def tokenisers(self) -> Tokenisers:
        return self.inputs.tokenisers

    def columns(self, part: Part, text: TextSettings) -> MatchColumns:
        """A part as the networks see it."""
        assert part.second is not None
        targets = None if part.labels is None else self.target.encode(part)
        first = replace(self.inputs.columns(part, text), targets=targets)
        second = self.inputs.columns(replace(part, inputs=part.second), text)
        return MatchColumns(first, second)

    def baselines(self, part: Part) -> dict[str, Tensor]:
        """z by the linear model, (rows, width), by its name; none of vectors."""
        words = self.inputs.words
        if words is None:
            return {}
        rows = overlap_rows(part, words)
        if self.ridge is not None:
            z = torch.from_numpy(self.ridge.values(rows))[:, None]
        else:
            assert self.linear is not None
            z = torch.from_numpy(self.linear.scores(rows))
        return {"linear on overlap": z}

    # ------------------------------------------------------------- as files
    def pack(self) -> Packed:
        arrays: dict[str, NDArray[Any]] = self.inputs.arrays()
        for name, baseline in (("linear", self.linear), ("ridge", self.ridge)):
            if baseline is not None:
                arrays |= {f"{name}.{key}": value for key, value in baseline.arrays().items()}
        facts = {**self.inputs.facts(), "target": target_facts(self.target)}
        return Packed(facts, self.inputs.vocabularies(), arrays)

    @classmethod
    def unpack(cls, saved: Saved, model: MatcherSettings) -> LearnedMatch:
        inputs = LearnedInputs.unpack(saved)
        target = target_of_facts(saved.facts["target"], model)
        if inputs.words is None:
            return cls(inputs, target)
        numbers = overlap_numbers(inputs.words)
        if isinstance(target, NumberTarget):
            ridge = RidgeModel.from_arrays(saved.part("ridge"), numbers)
            return cls(inputs, target, ridge=ridge)
        several = isinstance(target, SeveralTarget)
        own = saved.part("linear")
        return cls(inputs, target, LinearModel.from_arrays(own, numbers, target.width, several))


def kind_of(train: Part, model: MatcherSettings) -> str:
    """The kind of target that the settings name, or that the labels look like."""
    return target_kind(train) if model.target == "auto" else model.target
