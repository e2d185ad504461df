"""The mean answer of several networks, of tasks whose models have a `Target`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.tasks.abilities import Asked, Outputs
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.targets.target import TargetOutputs


class TargetAverages(ABC):
    """Outputs are z (rows, width); the model has learned a target, as `learned.target`."""

    @abstractmethod
    def of_networks(self, part: Any, model: Any) -> Sequence[Tensor]:
        """z of each network, with the linear model where that answers too."""

    @abstractmethod
    def baselines(self, part: Any, model: Any) -> Mapping[str, Tensor]:
        """z of linear models by name, which an evaluation stands beside."""

    @abstractmethod
    def shown(self, part: Any) -> Callable[[int], tuple[str, str]]:
        """Where a row comes from, and its beginning."""

    def alone(self, model: Any) -> bool:
        return len(model.networks) == 1 and getattr(model.learned, "mixture", None) is None

    def outputs(self, part: Any, model: Any) -> list[NDArray[Any]]:
        return [z.numpy() for z in self.of_networks(part, model)]

    def gold_outputs(self, part: Any, model: Any) -> list[NDArray[Any]]:
        return self.outputs(part, model)

    def held(self, validation: Any, model: Any) -> list[NDArray[Any]]:
        return self.outputs(validation, model)

    def scores(self, outputs: Outputs, validation: Any, model: Any) -> dict[str, float]:
        target = model.learned.target
        y = torch.as_tensor(target.encode(validation))
        found: dict[str, float] = target.mean_score(_tensors(outputs), y, model.train.watch)
        return found

    def answers(self, outputs: Outputs, part: Any, model: Any, asked: Asked) -> list[Any]:
        found: list[Any] = model.learned.target.answers(_tensors(outputs), asked)
        return found

    def evaluate(self, outputs: Outputs, part: Any, model: Any, asked: Asked) -> Evaluation:
        baselines, seed = self.baselines(part, model), model.train.seed
        shown, given = self.shown(part), _tensors(outputs)
        found: Evaluation = model.learned.target.evaluate(
            TargetOutputs(given, baselines, part, shown, seed, asked)
        )
        return found


def _tensors(outputs: Outputs) -> list[Tensor]:
    return [torch.from_numpy(np.asarray(z)) for z in outputs]
