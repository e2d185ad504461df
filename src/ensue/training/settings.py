"""`TrainSettings`: the [train] table of a configuration."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator

from ensue.metrics.table import METRICS
from ensue.settings import OFF, Table, one_of, word
from ensue.training.devices import DeviceName
from ensue.training.optimiser import OPTIMISERS
from ensue.training.schedule import SCHEDULES

# These change when files are written, or where it is computed, and nothing that is learned.
WITHOUT_EFFECT = ("checkpoint_seconds", "checkpoint_updates", "device")

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(gt=0, lt=1)]
_EPOCH = word("epoch")
# Keys whose values are names of rows, and the tables that have them.
NAMED: Mapping[str, Collection[str]] = {
    "optimiser": OPTIMISERS,
    "schedule": SCHEDULES,
    "watch": METRICS,
}


class TrainSettings(Table):
    """How a model is trained. The cost of an update is the mean over its targets."""

    seed: int = Field(1, ge=0)
    epochs: int = Field(10, ge=1)
    most_updates: Annotated[Count | None, OFF] = None
    optimiser: str = "adam"  # a row of OPTIMISERS
    rate: float = Field(1e-3, gt=0)
    momentum: float = Field(0.9, ge=0, lt=1)  # used by sgd
    betas: tuple[float, float] = Field((0.9, 0.999), strict=False)  # used by adam and adamw
    weight_decay: float = Field(0.0, ge=0)  # what torch's optimiser of that name means by it
    l1: float = Field(0.0, ge=0)  # adds l1·Σ|w| to the cost, vectors left out
    l2: float = Field(0.0, ge=0)  # adds l2/2·Σw², vectors left out
    clip: Annotated[Positive | None, OFF] = 1.0  # the largest norm of the gradient
    schedule: str = "constant"  # a row of SCHEDULES
    warmup: int = Field(0, ge=0)  # updates
    decay: float = Field(0.5, gt=0, lt=1)  # the rate is multiplied by it on a plateau
    decay_patience: int = Field(1, ge=0)  # evaluations without a new best that are no plateau yet
    accumulate: int = Field(1, ge=1)  # batches of an update, in each process
    check_every: Annotated[Count | None, _EPOCH] = None  # updates
    patience: Annotated[Count | None, OFF] = None  # evaluations without a new best
    watch: str = "cost"
    averaging: Annotated[Share | None, OFF] = None
    precision: Literal["float32", "bfloat16"] = "float32"
    device: DeviceName = "auto"  # auto: a GPU where there is one
    checkpoint_seconds: Annotated[Positive | None, OFF] = 300.0
    checkpoint_updates: Annotated[Count | None, OFF] = None

    @field_validator("betas")
    @classmethod
    def _betas_below_one(cls, betas: tuple[float, float]) -> tuple[float, float]:
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"expected two numbers, each 0 ≤ beta < 1, got {list(betas)}")
        return betas

    @field_validator(*NAMED)
    @classmethod
    def _known_name(cls, name: str, field: ValidationInfo) -> str:
        known = NAMED[field.field_name or ""]
        if name not in known:
            raise ValueError(one_of(known, name))
        return name

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str = "train") -> Self:
        return super().of(values, where)

    def table(self) -> dict[str, Any]:
        """The complete table, as TOML can hold it: `of` reads it back."""
        nothing = {"check_every": "epoch"}
        values = {**self.model_dump(), "betas": list(self.betas)}
        return {k: nothing.get(k, "off") if v is None else v for k, v in values.items()}

    def better(self, score: float, best: float | None) -> bool:
        """Whether a watched score beats the best so far; of equals the earlier one stays."""
        return METRICS[self.watch].better(score, best)
