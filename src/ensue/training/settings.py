"""`TrainSettings`: the [train] table of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator

from ensue.metrics.table import METRICS
from ensue.settings import OFF, Expected, NoneWord, OneOf, Table
from ensue.training.optimiser import OPTIMISERS, SCHEDULES
from ensue.training.processes import DeviceName

# These decide when files are written and where to compute, but do not change what is learned.
WITHOUT_EFFECT = ("checkpoint_seconds", "checkpoint_updates", "device")

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(gt=0, lt=1)]


class TrainSettings(Table):
    """How a model is trained. The cost of an update is the mean over its targets.

    >>> TrainSettings(epochs=3).rate
    0.001
    """

    seed: int = Field(1, ge=0, description="Random seed of weights, batches and dropout.")
    epochs: int = Field(10, ge=1, description="Maximum number of epochs.")
    most_updates: Annotated[Count | None, OFF] = Field(
        None, description="Maximum number of updates, in any number of epochs."
    )
    optimiser: Annotated[str, OneOf(lambda: OPTIMISERS)] = Field(
        "adam", description="Optimiser of torch."
    )
    rate: float = Field(1e-3, gt=0, description="Learning rate.")
    momentum: float = Field(0.9, ge=0, lt=1, description="Momentum of sgd.")
    betas: Annotated[tuple[float, float], Expected("two numbers, each ≥ 0 and < 1")] = Field(
        (0.9, 0.999), strict=False, description="β₁ and β₂ of adam and adamw."
    )
    weight_decay: float = Field(
        0.0, ge=0, description="Weight decay, as torch's optimiser of that name defines it."
    )
    l1: float = Field(0.0, ge=0, description="Adds l1·Σ|w| over all matrices to the cost.")
    l2: float = Field(0.0, ge=0, description="Adds l2/2·Σw² over all matrices to the cost.")
    clip: Annotated[Positive | None, OFF] = Field(
        1.0, description="Maximum norm of the gradient; larger ones are scaled down."
    )
    schedule: Annotated[str, OneOf(lambda: SCHEDULES)] = Field(
        "constant", description="Course of the learning rate."
    )
    warmup: int = Field(
        0, ge=0, description="Updates over which the rate grows from zero at the beginning."
    )
    decay: float = Field(
        0.5, gt=0, lt=1, description="Factor by which the plateau schedule multiplies the rate."
    )
    decay_patience: int = Field(
        1, ge=0, description="Evaluations without a new best before the plateau schedule decays."
    )
    accumulate: int = Field(
        1, ge=1, description="Gradient accumulation: batches per update, in each process."
    )
    check_every: Annotated[Count | None, NoneWord("epoch")] = Field(
        None, description="Updates between two evaluations on the validation part."
    )
    patience: Annotated[Count | None, OFF] = Field(
        None,
        description="Early stopping: evaluations without a new best score before training ends.",
    )
    watch: Annotated[str, OneOf(lambda: METRICS)] = Field(
        "cost", description="Validation score that decides which weights are the best."
    )
    averaging: Annotated[Share | None, OFF] = Field(
        None,
        description="Decay of a moving average of the weights, which replaces them in the model.",
    )
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="Number format of the computation."
    )
    device: DeviceName = Field(
        "auto", description="Device: auto (a GPU if there is one), cpu or cuda."
    )
    checkpoint_seconds: Annotated[Positive | None, OFF] = Field(
        300.0, description="Seconds between two checkpoints."
    )
    checkpoint_updates: Annotated[Count | None, OFF] = Field(
        None, description="Updates between two checkpoints."
    )

    @field_validator("betas")
    @classmethod
    def _betas_below_one(cls, betas: tuple[float, float]) -> tuple[float, float]:
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"expected two numbers, each 0 ≤ beta < 1, got {list(betas)}")
        return betas

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str = "train") -> Self:
        return super().of(values, where)

    def better(self, scores: Mapping[str, float], best: Mapping[str, float] | None) -> bool:
        """Whether the watched score beats the best so far."""
        return METRICS[self.watch].better(scores[self.watch], best[self.watch] if best else None)

    def keeps(self, scores: Mapping[str, float], best: Mapping[str, float] | None) -> bool:
        """Whether these weights replace the best so far: a better watched score, or an equal one at
        a lower cost. (On few validation rows all answers may soon be right, while the network still
        improves.) If both are equal, the earlier weights stay."""
        if best is None or scores[self.watch] != best[self.watch]:
            return self.better(scores, best)
        return scores.get("cost", 0.0) < best.get("cost", 0.0)
