"""`label_curve`: runs on ever more rows of a run's training part, with its base and without.

Each run has a folder, so the same call continues after an interruption. Each sample of rows
contains the smaller samples. All runs are scored on the validation part of the original run, never
on the test part.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ensue.cells.permission import CellPermission
from ensue.drawing.document import Document, Printed
from ensue.errors import EnsueError, OptionError, RunError
from ensue.files.atomic_folder import finite
from ensue.files.run_folder import RunFolder
from ensue.jobs import Job, Local, ProgressCallback, in_order, stoppable, work
from ensue.metrics.table import METRICS
from ensue.runs.config import BASE, RunConfig, changed
from ensue.runs.messages import Message, MessageCallback, nobody
from ensue.runs.train import complete, read_parts
from ensue.study.selection.folder import measure_of
from ensue.tasks.blocks.layer_settings import cell_references
from ensue.tasks.saved_cells import NO_TRUST, Trust


@work
def train_point(
    tell: ProgressCallback,
    folder: str,
    config: Mapping[str, Any],
    cells: Mapping[str, Any],
    measure: str,
) -> dict[str, Any]:
    """Trains, or continues from the folder's newest checkpoint; returns the validation score of the
    combined model, or of a single network. cells: the files of `CellPermission`."""
    from ensue.runs.config import RunConfig
    from ensue.runs.run import seconds_trained
    from ensue.runs.train import attempted, train_run

    place, began = RunFolder(folder), time.monotonic()
    earlier = seconds_trained(place.path)
    try:
        with attempted(place):
            trained = train_run(RunConfig.of(config, CellPermission(**cells)), place)
    except EnsueError as error:
        return {"failure": str(error)}
    networks = [(outcome.scores or {}).get(measure) for outcome in trained.outcomes]
    known = [score for score in networks if score is not None]
    alone = sum(known) / len(known) if known else None
    score = finite({"score": trained.answer.get(measure, alone)})["score"]
    failure = "" if score is not None else f"{measure} on validation is not a finite number"
    return {"score": score, "seconds": earlier + time.monotonic() - began, "failure": failure}


STEPS = (1, 3)  # times powers of ten, from 100
FIRST = 100
FOLLOWS = ("digest", "train_rows")  # settings that differ between the runs


@dataclass(frozen=True)
class LabelPoint:
    """A run on `rows` labelled rows. score: validation score of the combined model; failure: why it
    is missing, else ""."""

    rows: int
    base: bool
    folder: str
    score: float | None = None
    seconds: float = 0.0
    failure: str = ""


@dataclass(frozen=True)
class LabelCurve(Printed):
    """Scores by the number of labels. task, measure: the task, and the score; base: the base of
    half of the runs; validation: number of scored rows; points: with and without the base, by
    rising rows."""

    task: str
    measure: str
    base: str
    validation: int
    points: tuple[LabelPoint, ...]

    @property
    def higher_is_better(self) -> bool:
        return METRICS[self.measure].higher_is_better

    def of(self, base: bool) -> list[LabelPoint]:
        """The points with or without the base that have a score."""
        return [point for point in self.points if point.base == base and point.score is not None]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def document(self) -> Document:
        from ensue.study.labels.table import document

        return document(self)


def label_curve(
    run: Path | str,
    place: Path | str,
    counts: Sequence[int] = (),
    workers: int = 1,
    settings: Sequence[str] = (),
    say: MessageCallback = nobody,
    trust: Trust = NO_TRUST,
) -> LabelCurve:
    """Trains runs on ever more rows, with and without a base. run: a run with a base; place: the
    folder for the runs; counts: numbers of rows, by default 100, 300, 1,000, … and all; settings:
    for all runs, such as "train.epochs=3"; trust: files of the run's cells that may run."""
    config = _with_cells(_with_base(RunFolder(run)), RunFolder(run), settings, trust)
    train, validation = (len(part) for part in _parts(config))
    differences = changed(_described(config), list(settings))
    rows = row_counts(train, counts)
    label_counts = [
        (LabelPoint(count, base, _folder(count, base)), _tables(differences, count, train, base))
        for count in rows
        for base in (True, False)
    ]
    measure = measure_of(config)
    jobs = [
        Job(
            _title(point),
            train_point,
            {
                "folder": str(Path(place).resolve() / point.folder),
                "config": tables,
                "cells": asdict(config.permission),
                "measure": measure,
            },
        )
        for point, tables in label_counts
    ]
    points = []
    with stoppable():
        results = zip(label_counts, in_order(jobs, Local(workers)), strict=True)
        for (point, _), result in results:
            points.append(replace(point, **result.get()))
            message = points[-1].failure or f"{measure} {points[-1].score:.4f} on validation"
            say(Message(f"{result.job.name}: {message}", warning=bool(points[-1].failure)))
    called = ", ".join(Path(path).name for path in config.base.path)
    return LabelCurve(config.task, measure, called, validation, tuple(points))


def row_counts(rows: int, counts: Sequence[int] = ()) -> list[int]:
    """The given counts, or 100, 300, 1,000, … up to all rows.

    >>> row_counts(2500)
    [100, 300, 1000, 2500]
    """
    if low := [count for count in counts if not 1 <= count <= rows]:
        raise OptionError(
            f"--labels: expected numbers from 1 to {rows:,}, the rows of the training part, got "
            f"{low[0]:,}"
        )
    return sorted({*counts} or {*_usual(rows), rows})


def _usual(rows: int) -> Iterator[int]:
    power = FIRST
    while power < rows:
        yield from (power * step for step in STEPS if power * step < rows)
        power *= 10


def _folder(count: int, base: bool) -> str:
    return f"{count}-{'with' if base else 'without'}"


def _title(point: LabelPoint) -> str:
    many = f"{point.rows:,} label{'s' * (point.rows != 1)}"
    return f"{many}, {'with' if point.base else 'without'} the base"


# --- configurations ------------------------------------------------------------------------------


def _with_base(folder: RunFolder) -> RunConfig:
    if not folder.config.exists():
        raise RunError(f"{folder.path}: expected the folder of a run, got none")
    config = RunConfig.of_run(folder)
    if not config.base.path:
        raise OptionError(
            f"{folder.path}: this run has no base to compare with; name one that was trained with "
            "--base"
        )
    if gone := [path for path in config.base.path if not Path(path).exists()]:
        raise RunError(
            f"{folder.path}: its base {gone[0]} is missing, and other runs must start from "
            "it; restore it"
        )
    return config


def _with_cells(
    config: RunConfig, folder: RunFolder, settings: Sequence[str], trust: Trust
) -> RunConfig:
    """The configuration with permission for the files of cells in the settings of all runs, and
    for the run's other files of cells that are trusted."""
    alone = {"task": config.task, "data": config.tables()["data"]}
    named = RunConfig.of(changed(alone, settings)).with_named_cells()
    cells = cell_references(named.model)
    others = config.changed({"model": dict.fromkeys(cells, "")}) if cells else config
    permission = others.with_trusted_cells(folder, trust).permission | named.permission
    return replace(config.changed({"model": cells}) if cells else config, permission=permission)


def _parts(config: RunConfig) -> tuple[Any, Any]:
    model = config.new_model()
    model.read_base()
    return read_parts(config, model, nobody)


def _described(config: RunConfig) -> dict[str, Any]:
    """The tables of a run without the defaults that follow from its data and its base: with fewer
    rows, or without a base, these defaults are computed again."""
    tables = config.tables()
    alone = {"task": config.task, "data": tables["data"], BASE: tables[BASE]}
    usual = complete(RunConfig.of(alone, config.permission)).tables()
    described: dict[str, Any] = {"task": config.task, "members": config.members}
    for name, table in tables.items():
        if isinstance(table, Mapping):
            described_table = table if name in ("data", BASE) else _others(table, usual[name])
            described[name] = {
                key: value for key, value in described_table.items() if key not in FOLLOWS
            }
    return described


def _others(table: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if usual.get(key) != value}


def _tables(described: Mapping[str, Any], count: int, rows: int, base: bool) -> dict[str, Any]:
    """The tables of a run on `count` rows, with or without the base."""
    tables = {name: table for name, table in described.items() if base or name != BASE}
    return {**tables, "data": {**described["data"], "train_rows": count if count < rows else "all"}}
