"""Histories of runs as TensorBoard logs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ensue.errors import MissingExtra, RunError
from ensue.files.disk import disk_errors, write_whole
from ensue.runs.run import Run, name_below

INSTALL = "pip install 'ensue[tensorboard]'"
EVENTS, MARK = "events.out.tfevents.*", ".ensue-replay"
UPDATE = ("cost", "rate", "norm")  # the values of an update that are drawn


class Point(NamedTuple):
    """A point of a curve. clock: seconds since 1970, None if unknown."""

    tag: str
    update: int
    value: float
    clock: float | None


def points(run: Run, member: int = 1) -> Iterator[Point]:
    """The points in order: train/… of updates, validation/… of evaluations."""
    clocks = {(row.get("row"), row.get("update")): row for row in run.timing(member)}
    for row in run.history(member):
        timed = clocks.get((row["row"], row["update"]))
        clock = None if timed is None else datetime.fromisoformat(timed["clock"]).timestamp()
        scores = {f"train/{name}": row[name] for name in UPDATE if name in row}
        scores |= {f"validation/{name}": value for name, value in row.get("scores", {}).items()}
        for tag, value in scores.items():
            yield Point(tag, int(row["update"]), float(value), clock)


def replay(folder: Path | str, logs: Path | str) -> dict[str, int]:
    """Writes the histories of all runs in a folder and below it, into a subfolder of `logs` for
    each network. Returns the number of points of each. Overwrites files of earlier replays."""
    writer, counts = _writer(), dict[str, int]()
    for run in Run.below(folder):
        name = name_below(run.path, Path(folder))
        for member in range(1, len(run.folder.members()) + 1):
            label = name if member == 1 else f"{name}/members/{member}"
            counts[label] = _write(writer, run, member, Path(logs) / label)
    if not counts:
        raise RunError(f"{folder}: no run in this folder or below it")
    return counts


def _write(writer: Any, run: Run, member: int, place: Path) -> int:
    events = list(place.glob(EVENTS))
    if events and not (place / MARK).exists():
        raise RunError(f"{place}: it has other logs ({events[0].name}); name another folder")
    with disk_errors(place, 0):
        place.mkdir(parents=True, exist_ok=True)
        write_whole(place / MARK, b"")
        for path in events:
            path.unlink()
        log, count = writer(str(place)), 0
        for point in points(run, member):
            log.add_scalar(point.tag, point.value, point.update, wall_time=point.clock)
            count += 1
        log.close()
    return count


def _writer() -> Any:
    try:
        return import_module("tensorboard.summary").Writer
    except ImportError:
        raise MissingExtra(
            "TensorBoard logs need the package tensorboard, which is not installed: " + INSTALL
        ) from None
