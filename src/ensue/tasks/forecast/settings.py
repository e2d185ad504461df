"""The [model] table of a forecaster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from ensue.errors import unknown
from ensue.settings import OFF, Draws, Expected, Size, Width
from ensue.tasks.blocks.layer_settings import CellName, CellSettings

CALENDAR = ("month", "weekday", "hour", "yearday")
TARGETS_ONLY = ("segment", "linear")  # families that read only the targets
ROUNDING = 1e-9  # tolerance of shares that sum to 1
MIXED = ("mixed",)  # families that need no whole window, and choose their transform
ROLLED = ("recurrent",)  # families that continue from their own forecasts


class ForecastSettings(CellSettings):
    """Columns by name, their transforms, and the network.

    A window consists of `look_back` steps that are read, and the `horizon` steps after them.

    >>> ForecastSettings(horizon=12).interval
    0.9
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "batch_size": ("batch_windows",),
        "dropout": ("dropout_layers",),
    }

    targets: list[str] = Field([], description="Columns to forecast.")
    covariates: list[str] = Field([], description="Covariates known only up to the present.")
    known: list[str] = Field([], description="Covariates also known for future steps.")
    ids: list[str] = Field([], description="Columns that identify the series of a panel.")
    static: list[str] = Field(
        [], description="Columns that are the same at all steps of a series: numbers or names."
    )
    time: str = Field(
        "", description="Column of the time, or several: year,month,day,hour. None: rows are steps."
    )
    dates: Literal["auto", "day-first", "month-first"] = Field(
        "auto", description="How to read 01/02/2021, if the column leaves it open."
    )
    calendar: Annotated[list[str], Expected(f"a list of {', '.join(CALENDAR)}")] = Field(
        [], description="Calendar features, each encoded as a point on a circle."
    )
    split: Annotated[
        list[Annotated[float, Field(gt=0, strict=False)]],
        Expected("three shares that make 1, or three numbers of steps"),
    ] = Field([0.7, 0.1, 0.2], description="Train, validation and test part, in the order of time.")
    look_back: Size = Field(24, description="Number of past steps that a forecast reads.")
    horizon: Size = Field(12, description="Number of steps to forecast.")
    season: Annotated[int, Field(ge=0)] = Field(
        0,
        description="Length of a season in steps, for the baselines; 0 finds it by "
        "autocorrelation.",
    )
    transform: Literal["none", "log", "log1p"] = Field(
        "none", description="Transformation of the targets: none, log y, or log(1 + y)."
    )
    difference: Annotated[int, Field(ge=0)] = Field(
        0, description="Lag of the differences y_t − y_{t−lag} to forecast; 0 forecasts y_t."
    )
    normalise: Literal["none", "last", "mean", "instance"] = Field(
        "last",
        description="Normalisation of each window: none, minus its last value, minus its mean, or "
        "minus its mean and divided by its deviation.",
    )
    family: Literal["mixed", "recurrent", "direct", "segment", "linear"] = Field(
        "mixed",
        description="Forecasting method. mixed: seasonal, ridge and smoothing models that a "
        "network corrects; recurrent: step by step from its own forecasts; direct: all steps at "
        "once; segment: in segments; linear: ridge regression.",
    )
    output: Literal["auto", "gaussian", "mixture", "squared", "absolute"] = Field(
        "auto",
        description="A distribution, whose cost is −log p, or one number with its squared or "
        "absolute error; auto: absolute for mixed, gaussian for the others.",
    )
    components: Width = Field(3, description="Number of Gaussians in a mixture.")
    cell: CellName = Field("GRU", description="Recurrent cell.")
    hidden_size: Width = 64
    segment: Size = Field(12, description="Steps of a segment; divides look_back.")
    ridge: float = Field(
        1e-3, gt=0, description="Ridge of the linear family, as a share of the inputs' variance."
    )
    batch_windows: Size = Field(32, description="Batch size, in windows.")
    epoch_windows: Annotated[Size | None, OFF] = Field(
        None, description="Maximum number of windows per epoch, sampled for each epoch; off: all."
    )
    stride: Size = Field(1, description="Steps between two origins of a backtest.")
    paths: Draws = Field(200, description="Number of sampled paths for intervals.")
    interval: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.9, description="Nominal coverage of the interval of a forecast."
    )
    quantiles: Annotated[
        list[Annotated[float, Field(gt=0, lt=1, strict=False)]],
        Expected("a list of numbers between 0 and 1"),
    ] = Field([], description="Quantiles of forecasts, in addition to their interval.")
    calibrated: bool = Field(
        True, description="Calibrate the width of intervals by the errors on the validation part."
    )
    refit: bool = Field(
        False,
        description="Retrain at the end on the training and validation parts together, for "
        "the best number of updates.",
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
        names = [*self.targets, *self.covariates, *self.known, *self.static, *self.ids]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"{', '.join(twice)}: each column may have only one role (targets, covariates, "
                "known, static, ids). The past of a target is always an input, so it need not be "
                "a covariate; its future is not known, so it cannot be in known"
            )
        if self.calendar and not self.time:
            raise ValueError(f"calendar: {', '.join(self.calendar)} needs model.time, a column")
        others = [*self.covariates, *self.known, *self.calendar, *self.static]
        if self.family in TARGETS_ONLY and others:
            raise ValueError(
                f"family: {self.family} reads only the targets, got also {', '.join(others)}; "
                "leave these out, or choose mixed, direct or recurrent"
            )
        return self

    @model_validator(mode="after")
    def _mixed_alone(self) -> Self:
        if self.family not in MIXED:
            return self
        clashing = {"transform": self.transform != "none", "difference": self.difference > 0}
        if names := [name for name, clashes in clashing.items() if clashes]:
            raise ValueError(
                f"{', '.join(names)}: family mixed chooses transformations of the numbers itself; "
                "leave it out, or take another family, such as direct"
            )
        if self.output in ("gaussian", "mixture"):
            raise ValueError(
                "output: family mixed predicts one number, with squared or absolute errors, "
                f"got {self.output}; leave it out, or take another family, such as direct"
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
    def time_columns(self) -> list[str]:
        """The columns of the time: none, one, or its parts."""
        return [name.strip() for name in self.time.split(",") if name.strip()]

    @property
    def columns(self) -> list[str]:
        """The columns of numbers, in the order of a step."""
        return [*self.targets, *self.covariates, *self.known]

    @property
    def ahead(self) -> int:
        """The number of columns known ahead."""
        return len(self.known) + 2 * len(self.calendar)

    @property
    def outputs(self) -> int:
        """The number of forecast columns. A network that is rolled forward also forecasts the
        covariates, because it reads them at its next step."""
        return len(self.targets) + (len(self.covariates) if self.family in ROLLED else 0)

    @property
    def history(self) -> int:
        """Number of steps needed before the first forecast."""
        return 2 if self.family in MIXED else self.look_back + self.difference

    @property
    def says(self) -> str:
        """The output distribution or point cost."""
        if self.output != "auto":
            return self.output
        return "absolute" if self.family in MIXED else "gaussian"
