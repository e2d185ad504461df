"""The [model] table of a forecaster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from ensue.errors import unknown
from ensue.settings import Rate, Size, Table
from ensue.tasks.blocks.cell_name import CellName

CALENDAR = ("month", "weekday", "hour", "yearday")
TARGETS_ONLY = ("segment", "linear")  # families that read the targets alone
ROUNDING = 1e-9  # of shares that make 1
ROLLED = ("recurrent",)  # families that go on from their own forecasts


class ForecastSettings(Table):
    """Columns by name, what is done to them before a network sees them, and the network.

    A window is `look_back` steps that are read, and the `horizon` steps after them."""

    renamed: ClassVar[Mapping[str, str]] = {"dropout": "dropout_layers"}

    targets: list[str] = Field([])  # what is forecast
    covariates: list[str] = Field([])  # known up to now
    known: list[str] = Field([])  # known for the steps ahead as well
    time: str = ""
    calendar: list[str] = Field([])  # of the time: month, weekday, hour, yearday, on a circle
    # of the steps, in their order: train, validation, test; shares, or numbers of steps
    split: list[Annotated[float, Field(gt=0, strict=False)]] = Field([0.7, 0.1, 0.2])
    look_back: Size = 24
    horizon: Size = 12
    season: Annotated[int, Field(ge=0)] = 0  # steps; 0 finds it by autocorrelation
    transform: Literal["none", "log", "log1p"] = "none"  # of the targets
    difference: Annotated[int, Field(ge=0)] = 0  # y_t − y_{t−lag} in place of y_t; 0 leaves y_t
    normalise: Literal["none", "last", "mean", "instance"] = "last"  # taken off each window
    family: Literal["recurrent", "direct", "segment", "linear"] = "direct"
    output: Literal["gaussian", "mixture", "squared", "absolute"] = "gaussian"
    components: Size = 3  # of a mixture
    cell: CellName = "GRU"
    hidden_size: Size = 64
    layers: Size = 1
    segment: Size = 12  # steps of a segment
    dropout_layers: Rate = 0.0
    ridge: float = Field(1e-3, gt=0)  # of the linear family, as a share of the inputs' variance
    batch_windows: Size = 32
    stride: Size = 1  # between the origins of a backtest
    paths: Size = 200  # sampled for intervals
    interval: Annotated[float, Field(gt=0, lt=1)] = 0.9
    calibrated: bool = True  # intervals by the errors on the validation part
    refit: bool = False  # at the end the weights are learned anew, from both parts together

    @field_validator("split")
    @classmethod
    def _whole_split(cls, split: list[float]) -> list[float]:
        shares = len(split) == 3 and abs(sum(split) - 1) < ROUNDING
        counts = len(split) == 3 and all(part == int(part) for part in split)
        if not (shares or counts):
            raise ValueError(
                "expected three shares that make 1, or three numbers of steps, for train, "
                f"validation and test, got {split}"
            )
        return split

    @field_validator("calendar")
    @classmethod
    def _known_features(cls, calendar: list[str]) -> list[str]:
        for name in calendar:
            if name not in CALENDAR:
                raise ValueError(str(unknown("calendar feature", name, CALENDAR)))
        return calendar

    @model_validator(mode="after")
    def _columns(self) -> Self:
        names = [*self.targets, *self.covariates, *self.known]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"{', '.join(twice)}: expected each column once among targets, covariates and "
                "known; a target is read as it is, and is never known ahead"
            )
        if self.calendar and not self.time:
            raise ValueError(f"calendar: {', '.join(self.calendar)} needs model.time, a column")
        others = [*self.covariates, *self.known, *self.calendar]
        if self.family in TARGETS_ONLY and others:
            raise ValueError(
                f"family: {self.family} reads the targets alone, got {', '.join(others)} beside "
                "them; leave these out, or take direct or recurrent"
            )
        return self

    @model_validator(mode="after")
    def _whole_segments(self) -> Self:
        if self.family == "segment" and self.look_back % self.segment:
            raise ValueError(
                f"segment: expected a divisor of model.look_back, {self.look_back}, "
                f"got {self.segment}"
            )
        return self

    @property
    def split_in_shares(self) -> bool:
        """Whether `split` has shares, not numbers of steps."""
        return abs(sum(self.split) - 1) < ROUNDING

    @property
    def columns(self) -> list[str]:
        """Of numbers, in the order in which a step holds them."""
        return [*self.targets, *self.covariates, *self.known]

    @property
    def ahead(self) -> int:
        """How many numbers of a step are known ahead."""
        return len(self.known) + 2 * len(self.calendar)

    @property
    def outputs(self) -> int:
        """How many numbers of a step are forecast: a network that is rolled forward forecasts the
        covariates too, for it reads them at its next step."""
        return len(self.targets) + (len(self.covariates) if self.family in ROLLED else 0)

    @property
    def history(self) -> int:
        """Steps that must stand before the first forecast."""
        return self.look_back + self.difference
