"""Updates of weights: learning rates by layer and by schedule, and torch's optimisers with their
state as a flat table of tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import unwrap
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import Tensor
from torch.optim import Optimizer

from ensue.errors import RunError

if TYPE_CHECKING:
    from ensue.training.settings import TrainSettings


# --- rates by layer --------------------------------------------------------------------------


@dataclass(frozen=True)
class LayerGroup:
    """A group of parameters. share: factor of the learning rate; begins: epoch after which they
    learn, None for never."""

    name: str
    parameters: frozenset[str]
    share: float = 1.0
    begins: float | None = 0.0

    def learns(self, update: int, in_epoch: int) -> bool:
        """Whether the group learns in an update (the first is 0). in_epoch: updates per epoch."""
        return self.begins is not None and update >= math.ceil(self.begins * in_epoch)


@dataclass(frozen=True)
class LayerRates:
    """Learning rates by layer. They depend only on the number of the update, so a resumed training
    has the same rates. Parameters in no group learn at the full rate."""

    groups: tuple[LayerGroup, ...] = ()

    def shares(self, update: int, in_epoch: int) -> dict[str, float]:
        """The factor of the learning rate in an update, by group; 0 for frozen groups."""
        return {g.name: g.share * g.learns(update, in_epoch) for g in self.groups}

    def group_of(self, parameter: str) -> str:
        """The name of a parameter's group, "" for none."""
        return next((g.name for g in self.groups if parameter in g.parameters), "")

    def frozen(self, shares: Mapping[str, float]) -> frozenset[str]:
        """The parameters that do not learn at these shares."""
        still = [g.parameters for g in self.groups if not shares[g.name]]
        return frozenset().union(*still)


ALL_LEARN = LayerRates()


# --- rates by schedule -----------------------------------------------------------------------


@dataclass(frozen=True)
class Moment:
    """An update after the warm-up. t: share of the updates after the warm-up that are done, from 0
    to 1; factor: product of the decays at plateaus."""

    update: int
    warmup: int
    t: float
    factor: float


# Schedules: the share of `train.rate`, by the value of `train.schedule`. To add a schedule, add a
# row.
SCHEDULES: dict[str, Callable[[Moment], float]] = {
    "constant": lambda at: 1.0,
    "linear": lambda at: 1 - at.t,
    "cosine": lambda at: (1 + math.cos(math.pi * at.t)) / 2,
    "inverse-sqrt": lambda at: _inverse_sqrt(at),
    "plateau": lambda at: at.factor,
    "slanted": lambda at: _slanted(at.t),
    "one-cycle": lambda at: _one_cycle(at.t),
}
RISE = 0.1  # share of the updates over which a slanted triangle rises
LOW = 1 / 32  # share of the rate at both of its ends
CYCLE_RISE = 0.3  # share of the updates over which a cycle rises
CYCLE_LOW = 1 / 25  # share of the rate where it begins; it ends near zero


def _inverse_sqrt(at: Moment) -> float:
    """√(warmup / update)."""
    start = max(at.warmup, 1)
    return math.sqrt(start / max(at.update + 1, start))


def _slanted(t: float) -> float:
    """The slanted triangle: linearly up to 1 over the first tenth, then linearly down."""
    height = t / RISE if t < RISE else (1 - t) / (1 - RISE)
    return LOW + (1 - LOW) * height


def _one_cycle(t: float) -> float:
    """A factor that rises to 1 over the first three tenths and falls to nearly 0, each along half a
    cosine."""
    if t < CYCLE_RISE:
        return 1 - (1 - CYCLE_LOW) * (1 + math.cos(math.pi * t / CYCLE_RISE)) / 2
    return (1 + math.cos(math.pi * (t - CYCLE_RISE) / (1 - CYCLE_RISE))) / 2


def scheduled_rate(
    settings: TrainSettings, update: int, updates: int, factor: float = 1.0
) -> float:
    """The learning rate of an update (the first is 0) out of `updates`. factor: product of the
    decays at plateaus.

    It grows in equal steps over `warmup` updates, then follows the schedule."""
    warmup = settings.warmup
    if update < warmup:
        return settings.rate * factor * (update + 1) / warmup
    t = min((update - warmup) / max(updates - warmup, 1), 1.0)
    return settings.rate * SCHEDULES[settings.schedule](Moment(update, warmup, t, factor))


def plateau(
    settings: TrainSettings, factor: float, waited: int, improved: bool
) -> tuple[float, int]:
    """The factor, and the number of evaluations without a new best, after one more evaluation. A
    number above `decay_patience` multiplies the factor by `decay` and restarts at 0."""
    waited = 0 if improved else waited + 1
    if settings.schedule == "plateau" and waited > settings.decay_patience:
        return factor * settings.decay, 0
    return factor, waited


K = TypeVar("K", bound=Optimizer)


def without_compiler(kind: type[K]) -> type[K]:
    """The same optimiser without torch's wrappers. They keep torch's compiler away from these
    methods, but import the compiler. The last wrapper also turns gradients off."""
    inside = {
        "add_param_group": unwrap(kind.add_param_group),
        "zero_grad": unwrap(kind.zero_grad),
        "step": torch.no_grad()(unwrap(kind.step)),
    }
    return cast(type[K], type(kind.__name__, (kind,), inside))


SGD = without_compiler(torch.optim.SGD)
Adam = without_compiler(torch.optim.Adam)
AdamW = without_compiler(torch.optim.AdamW)
LBFGS = without_compiler(torch.optim.LBFGS)


@dataclass(frozen=True)
class OptimiserKind:
    """A kind of optimiser. build: from groups of parameters and the settings; moments: number of
    tensors in its state for each weight, for the size of checkpoints."""

    build: Callable[[Any, TrainSettings], torch.optim.Optimizer]
    moments: int


def _sgd(groups: Any, s: TrainSettings) -> torch.optim.Optimizer:
    return SGD(groups, lr=s.rate, momentum=s.momentum, fused=True)


def _adam(groups: Any, s: TrainSettings) -> torch.optim.Optimizer:
    return Adam(groups, lr=s.rate, betas=s.betas, fused=True)


def _adamw(groups: Any, s: TrainSettings) -> torch.optim.Optimizer:
    return AdamW(groups, lr=s.rate, betas=s.betas, fused=True)


# Optimisers by the value of `train.optimiser`. To add one, add a row.
OPTIMISERS = {
    "sgd": OptimiserKind(_sgd, 1),
    "adam": OptimiserKind(_adam, 2),
    "adamw": OptimiserKind(_adamw, 2),
}


NO_SHARES: Mapping[str, float] = {}  # every layer has the full rate


def decays(parameter: Tensor) -> bool:
    """Whether a parameter has weight decay: matrices have, biases and gains do not."""
    return parameter.dim() > 1


class Optimiser:
    """Updates weights from gradients at a given rate. layers: parameters with another rate.
    Parameters without a gradient do not change, and have no state until they learn."""

    def __init__(
        self,
        parameters: Iterable[tuple[str, Tensor]],
        settings: TrainSettings,
        layers: LayerRates = ALL_LEARN,
    ) -> None:
        self.parameters = {name: p for name, p in parameters if p.requires_grad}
        groups: dict[tuple[str, bool], list[Tensor]] = {}
        for drawn in (True, False):
            for name, parameter in self.parameters.items():
                if decays(parameter) is drawn:
                    groups.setdefault((layers.group_of(name), drawn), []).append(parameter)
        filled = [
            {"params": group, "weight_decay": settings.weight_decay * drawn, "layer": layer}
            for (layer, drawn), group in groups.items()
        ]
        self._torch = OPTIMISERS[settings.optimiser].build(filled, settings)

    def step(self, rate: float, shares: Mapping[str, float] = NO_SHARES) -> None:
        """One update from the parameters' gradients. shares: factors of the rate, by group."""
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
        """Loads a state that `tensors` returned."""
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
        state_names = {
            name: {*self._torch.state.get(parameter, {})}
            for name, parameter in self.parameters.items()
        }
        known = set().union(*state_names.values())
        if partly := sorted(
            name for name, value in state_names.items() if value and value != known
        ):
            raise RunError(f"the optimiser's state is not whole: {partly[0]} lacks a moment")
