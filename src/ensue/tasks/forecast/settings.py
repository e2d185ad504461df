"""The [model] table of a forecaster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from ensue.errors import unknown
from ensue.settings import Depth, Expected, Rate, Size, Table, Width
from ensue.tasks.blocks.cell_name import CellName

CALENDAR = ("month", "weekday", "hour", "yearday")
TARGETS_ONLY = ("segment", "linear")  # families that read the targets alone
ROUNDING = 1e-9  # of shares that make 1
ROLLED = ("recurrent",)  # families that go on from their own forecasts


class ForecastSettings(Table):
    """Columns by name, what is done to them before a network sees them, and the network.

    A window is `look_back` steps that are read, and the `horizon` steps after them.

    >>> ForecastSettings(horizon=12).interval
    0.9
    """

    renamed: ClassVar[Mapping[str, str]] = {"dropout": "dropout_layers"}

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "batch_size": ("batch_windows",),
        "dropout": ("dropout_layers",),
    }

    targets: list[str] = Field([], description="Columns that are forecast.")
    covariates: list[str] = Field([], description="Columns that are known up to now.")
    known: list[str] = Field([], description="Columns that are known for the steps ahead as well.")
    time: str = Field("", description="Column of the time.")
    calendar: Annotated[list[str], Expected(f"a list of {', '.join(CALENDAR)}")] = Field(
        [], description="What of the time is read, each as a point on a circle."
    )
    split: Annotated[
        list[Annotated[float, Field(gt=0, strict=False)]],
        Expected("three shares that make 1, or three numbers of steps"),
    ] = Field([0.7, 0.1, 0.2], description="Train, validation and test part, in the order of time.")
    look_back: Size = Field(24, description="Steps that a forecast is made from.")
    horizon: Size = Field(12, description="Steps that are forecast.")
    season: Annotated[int, Field(ge=0)] = Field(
        0, description="Steps of a season, for the baselines; 0 finds it by autocorrelation."
    )
    transform: Literal["none", "log", "log1p"] = Field(
        "none", description="Transformation of the targets: none, log y, or log(1 + y)."
    )
    difference: Annotated[int, Field(ge=0)] = Field(
        0, description="Lag of the differences y_t − y_{t−lag} that are forecast; 0 forecasts y_t."
    )
    normalise: Literal["none", "last", "mean", "instance"] = Field(
        "last",
        description="What is taken off each window: nothing, its last value, its mean, or its "
        "mean with division by its deviation.",
    )
    family: Literal["recurrent", "direct", "segment", "linear"] = Field(
        "direct",
        description="How it forecasts: step by step from its own forecasts, all steps at once, in "
        "segments, or by ridge regression.",
    )
    output: Literal["gaussian", "mixture", "squared", "absolute"] = Field(
        "gaussian",
        description="A distribution, whose cost is −log p, or one number with its squared or "
        "absolute error.",
    )
    components: Width = Field(3, description="Gaussians of a mixture.")
    cell: CellName = Field("GRU", description="Recurrent cell.")
    hidden_size: Width = Field(64, description="Size of a cell's state.")
    layers: Depth = Field(1, description="Number of recurrent layers.")
    segment: Size = Field(12, description="Steps of a segment; divides look_back.")
    dropout_layers: Rate = Field(0.0, description="Dropout between layers.")
    ridge: float = Field(
        1e-3, gt=0, description="Ridge of the linear family, as a share of the inputs' variance."
    )
    batch_windows: Size = Field(32, description="Windows of a batch.")
    stride: Size = Field(1, description="Steps between two origins of a backtest.")
    paths: Size = Field(200, description="Sampled paths that intervals are taken from.")
    interval: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.9, description="Probability that the interval of a forecast should have."
    )
    calibrated: bool = Field(
        True, description="Widen or narrow intervals by the errors on the validation part."
    )
    refit: bool = Field(
        False,
        description="Learn the weights anew at the end, from training and validation part, for "
        "as many updates as were best.",
    )

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
