"""`Progress`: the state of a training between two updates, except the weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

import torch
from torch import Tensor

from ensue.errors import RunError
from ensue.training.optimiser import ALL_LEARN, LayerRates, Optimiser
from ensue.training.processes import device_of_weights, moved
from ensue.training.settings import TrainSettings
from ensue.training.trainee import Trainee


def copy_of(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


class Average:
    """a ← d·a + (1 − d)·w after each update, where d = min(decay, (1 + n) / (10 + n)) at the n-th:
    early weights are soon forgotten."""

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self.decay, self.weights = decay, copy_of(weights)

    @torch.no_grad()
    def include(self, weights: Mapping[str, Tensor], update: int) -> None:
        """The weights after the update of that number (the first is 1)."""
        decay = min(self.decay, (1 + update) / (10 + update))
        for name, weight in self.weights.items():
            if weight.is_floating_point():
                weight.lerp_(weights[name], 1 - decay)
            else:
                weight.copy_(weights[name])


@contextmanager
def in_place(trainee: Trainee, weights: Mapping[str, Tensor] | None) -> Iterator[None]:
    """Gives the model these weights inside the block and restores its own afterwards, bit for bit.
    None: no change."""
    if weights is None:
        yield
        return
    held_back = copy_of(trainee.state_dict())
    trainee.load_state_dict(weights)
    try:
        yield
    finally:
        trainee.load_state_dict(held_back)


SCALARS: Mapping[str, tuple[type, ...]] = {
    "update": (int,),
    "epoch": (int,),
    "position": (int,),
    "due": (bool,),
    "stale": (int,),
    "best_update": (int, NoneType),
    "best_scores": (dict, NoneType),
    "factor": (float, int),
    "waited": (int,),
}
KEPT = ("best", "average", "carried")  # groups of tensors on the device of the weights


@dataclass
class Progress:
    """The state of a training; the loop advances it, checkpoints store it."""

    optimiser: Optimiser
    average: Average | None
    update: int = 0  # how many are done
    epoch: int = 0
    position: int = 0  # number of used batches of the epoch
    due: bool = False  # an evaluation of these weights comes next
    stale: int = 0  # evaluations since the best one
    best_update: int | None = None
    best_scores: Mapping[str, float] | None = None
    best: dict[str, Tensor] | None = None  # weights
    factor: float = 1.0  # product of the decays at plateaus
    waited: int = 0  # evaluations since the best one or the last plateau
    carried: dict[str, Tensor] = field(default_factory=dict)
    layers: LayerRates = ALL_LEARN  # layers with a separate rate or a later start

    @classmethod
    def begin(
        cls, trainee: Trainee, settings: TrainSettings, layers: LayerRates = ALL_LEARN
    ) -> Progress:
        optimiser = Optimiser(trainee.named_parameters(), settings, layers)
        decay = settings.averaging
        average = Average(trainee.state_dict(), decay) if decay else None
        return cls(optimiser, average, layers=layers)

    def judged(self) -> dict[str, Tensor] | None:
        """The weights that are evaluated and stored as best: the averaged weights, or None for the
        model's weights."""
        return self.average.weights if self.average else None

    def tensors(self, trainee: Trainee) -> dict[str, dict[str, Tensor]]:
        """The tensors of a checkpoint, by file, without empty files; not copied."""
        moments = {
            "weights": trainee.state_dict(),
            "optimiser": self.optimiser.tensors(),
            "best": self.best or {},
            "average": self.average.weights if self.average else {},
            "carried": self.carried,
        }
        return {group: tensors for group, tensors in moments.items() if tensors}

    def scalars(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SCALARS}

    def load(
        self,
        trainee: Trainee,
        tensors: Mapping[str, Mapping[str, Tensor]],
        scalars: Mapping[str, Any],
    ) -> None:
        """Restores model and progress from `tensors` and `scalars`."""
        try:
            trainee.load_state_dict(tensors["weights"])
        except RuntimeError as error:
            raise RunError(f"the saved weights do not fit this model: {error}") from None
        self.optimiser.load(tensors.get("optimiser", {}))
        by_name = {name: dict(tensor) for name, tensor in tensors.items() if name in KEPT}
        by_name = moved(by_name, device_of_weights(trainee))
        for name in {"best", "average"} & by_name.keys():
            _refuse_others(name, by_name[name], trainee.state_dict())
        self.best = by_name.get("best")
        if self.average and "average" in by_name:
            self.average.weights = by_name["average"]
        self.carried = by_name.get("carried", {})
        for name, kinds in SCALARS.items():
            value = scalars[name]
            if type(value) not in kinds or (isinstance(value, int) and value < 0):
                raise ValueError(f"{name} is {value!r}")
            setattr(self, name, value)

    def restore_best(self, trainee: Trainee) -> None:
        """Loads the best weights into the model; without an evaluation, the averaged or last
        weights."""
        weights = self.best or self.judged()
        if weights is not None:
            trainee.load_state_dict(weights)


def _refuse_others(kind: str, saved: Mapping[str, Tensor], current: Mapping[str, Tensor]) -> None:
    """Raises RunError unless weights of this kind match the model in name, shape and type."""
    for name in sorted({*saved, *current}):
        shapes = [f"{tensor.dtype} {tuple(tensor.shape)}" if tensor is not None else "nothing"
                for tensor in (current.get(name), saved.get(name))]  # fmt: skip
        if shapes[0] != shapes[1]:
            raise RunError(
                f"the saved {kind} weights do not fit this model: {name}: expected {shapes[0]}, "
                "got "
                f"{shapes[1]}"
            )
