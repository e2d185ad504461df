"""The [model] table of a forecaster."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from ensue.errors import unknown
from ensue.models.settings import Rate, Size, Table, known_cell

CALENDAR = ("month", "weekday", "hour", "yearday")
TARGETS_ONLY = ("segment", "linear")  # families that read the targets alone


class ForecastSettings(Table):
    """Columns by name, what is done to them before a network sees them, and the network.

    A window is `look_back` steps that are read, and the `horizon` steps behind them."""

    targets: list[str] = Field([])  # what is forecast
    covariates: list[str] = Field([])  # known up to now
    known: list[str] = Field([])  # known for the time ahead as well
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
    cell: str = "GRU"
    hidden_size: Size = 64
    layers: Size = 1
    segment: Size = 12  # steps of a segment
    dropout: Rate = 0.0
    ridge: float = Field(1e-3, gt=0)  # of the linear family, as a share of the inputs' variance
    batch_windows: Size = 32
    stride: Size = 1  # between the origins of a backtest
    paths: Size = 200  # sampled for intervals
    interval: Annotated[float, Field(gt=0, lt=1)] = 0.9
    calibrated: bool = True  # intervals by the errors on the validation part
    refit: bool = False  # at the end the weights are learned anew, from both parts together

    @field_validator("cell")
    @classmethod
    def _known_cell(cls, cell: str) -> str:
        return known_cell(cell)

    @field_validator("split")
    @classmethod
    def _whole_split(cls, split: list[float]) -> list[float]:
        shares = len(split) == 3 and abs(sum(split) - 1) < 1e-9
        counts = len(split) == 3 and all(own == int(own) for own in split)
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
    def columns(self) -> list[str]:
        """Of numbers, in the order in which a step holds them."""
        return [*self.targets, *self.covariates, *self.known]

    @property
    def ahead(self) -> int:
        """How many numbers of a step are known ahead."""
        return len(self.known) + 2 * len(self.calendar)

    @property
    def outputs(self) -> int:
        """How many numbers of a step are forecast: a network that is rolled forward needs the
        covariates of its own forecasts too."""
        rolled = self.family == "recurrent"
        return len(self.targets) + (len(self.covariates) if rolled else 0)

    @property
    def history(self) -> int:
        """Steps that must stand before the first forecast."""
        return self.look_back + self.difference
