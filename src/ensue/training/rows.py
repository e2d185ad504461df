"""The events of a training, as rows for its watchers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Began:
    """The beginning of a training. update: number of updates already done; updates: maximum number
    in total; watch: the score that decides which weights are best."""

    update: int
    updates: int
    watch: str


@dataclass(frozen=True)
class Update:
    """An update. cost: mean over the targets; norm: norm of the gradient before clipping; epoch:
    its number, from 1; tokens: number of input steps; layers: the rate of each layer, 0 if frozen;
    empty if all are equal."""

    update: int
    epoch: int
    cost: float
    rate: float
    norm: float
    targets: float
    tokens: float
    layers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Validated:
    """An evaluation on validation. best: whether it is the best so far."""

    update: int
    epoch: int
    scores: Mapping[str, float]
    best: bool


@dataclass(frozen=True)
class CheckpointSaved:
    """A checkpoint that was written and verified."""

    update: int
    path: Path


@dataclass(frozen=True)
class Notice:
    """A line of text for the user. progress: left out with --quiet."""

    text: str
    progress: bool = False


@dataclass(frozen=True)
class Finished:
    """The end of a training. reason: "epochs", "updates" or "patience"."""

    update: int
    reason: str


Row = Began | Update | Validated | CheckpointSaved | Notice | Finished
Watcher = Callable[[Row], None]
