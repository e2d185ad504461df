"""torch's optimisers with a state that is a flat table of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ensue.errors import RunError
from ensue.training.layer_rates import ALL_LEARN, LayerRates
from ensue.training.torch_optimisers import SGD, Adam, AdamW

if TYPE_CHECKING:
    from ensue.training.settings import TrainSettings


@dataclass(frozen=True)
class OptimiserKind:
    """build: from groups of parameters and the settings; moments: tensors that it keeps of each
    weight, which checkpoints need room for."""

    build: Callable[[Any, TrainSettings], torch.optim.Optimizer]
    moments: int


def _sgd(groups: Any, s: TrainSettings) -> torch.optim.Optimizer:
    return SGD(groups, lr=s.rate, momentum=s.momentum, fused=True)


def _adam(groups: Any, s: TrainSettings) -> torch.optim.Optimizer:
    return Adam(groups, lr=s.rate, betas=s.betas, fused=True)


def _adamw(groups: Any, s: TrainSettings) -> torch.optim.Optimizer:
    return AdamW(groups, lr=s.rate, betas=s.betas, fused=True)


# By the value of `train.optimiser`: a new one is a row here, and nothing else.
OPTIMISERS = {
    "sgd": OptimiserKind(_sgd, 1),
    "adam": OptimiserKind(_adam, 2),
    "adamw": OptimiserKind(_adamw, 2),
}


NO_SHARES: Mapping[str, float] = {}  # every layer has the full rate


def decays(parameter: Tensor) -> bool:
    """Whether weights are drawn towards zero: matrices are, biases and gains are not."""
    return parameter.dim() > 1


class Optimiser:
    """Turns gradients into new weights, at the given rate. layers: parameters whose rate is
    another one; those without a gradient stay, and have no state until they learn."""

    def __init__(
        self,
        parameters: Iterable[tuple[str, Tensor]],
        settings: TrainSettings,
        layers: LayerRates = ALL_LEARN,
    ) -> None:
        self.parameters = {name: p for name, p in parameters if p.requires_grad}
        groups: dict[tuple[str, bool], list[Tensor]] = {}
        for drawn in (True, False):
            for name, own in self.parameters.items():
                if decays(own) is drawn:
                    groups.setdefault((layers.group_of(name), drawn), []).append(own)
        filled = [
            {"params": own, "weight_decay": settings.weight_decay * drawn, "layer": layer}
            for (layer, drawn), own in groups.items()
        ]
        self._torch = OPTIMISERS[settings.optimiser].build(filled, settings)

    def step(self, rate: float, shares: Mapping[str, float] = NO_SHARES) -> None:
        """One update from the gradients that the parameters hold. shares: of the rate, by layer."""
        for group in self._torch.param_groups:
            group["lr"] = rate * shares.get(group["layer"], 1.0)
        self._torch.step()

    def tensors(self) -> dict[str, Tensor]:
        """`parameter/moment` → tensor, for a checkpoint; not copied."""
        return {
            f"{name}/{key}": value
            for name, parameter in self.parameters.items()
            for key, value in self._torch.state.get(parameter, {}).items()
            if isinstance(value, Tensor)
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """The state that `tensors` once gave."""
        self._torch.state.clear()
        for path, value in tensors.items():
            name, _, key = path.rpartition("/")
            if name not in self.parameters:
                raise RunError(
                    f"the optimiser's state has {name!r}, which this model does not have"
                )
            parameter = self.parameters[name]
            if value.shape not in ((), parameter.shape) or not value.is_floating_point():
                raise RunError(
                    f"the optimiser's state does not fit this model: {path}: expected floating "
                    f"point {tuple(parameter.shape)}, got {value.dtype} {tuple(value.shape)}"
                )
            self._torch.state[parameter][key] = value.to(parameter.device, copy=True)
        kept = {name: {*self._torch.state.get(own, {})} for name, own in self.parameters.items()}
        known = set().union(*kept.values())
        if partly := sorted(name for name, own in kept.items() if own and own != known):
            raise RunError(f"the optimiser's state is not whole: {partly[0]} lacks a moment")
