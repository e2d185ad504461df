"""A folder from somebody else with valid digests: it answers or is refused with one error of ours."""

from __future__ import annotations

import math
import random
import signal
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hostile import hostile_files, models

import ensue
from ensue.errors import EnsueError

SECONDS = 20  # of processor time for one folder


def stop(number: int, frame: FrameType | None) -> None:
    raise AssertionError("hangs")


def written(place: Path, files: dict[str, bytes]) -> Path:
    place.mkdir()
    for name, data in files.items():
        (place / name).write_bytes(data)
    return place


def tried(place: Path) -> str:
    """ "refused", or "loaded"; anything but an error of ours is a failure."""
    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        ensue.load(place)
    except EnsueError as error:
        assert len(str(error)) < 4000
        return "refused"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return "loaded"


@pytest.mark.parametrize("model", models(), ids=lambda path: path.parent.parent.name)
def test_a_changed_model_is_refused_or_loads(model: Path, tmp_path: Path) -> None:
    draw = random.Random(f"{model.parent.parent.name} 1")
    seen = set()
    for number in range(6):
        files, what = hostile_files(model, draw)
        try:
            seen.add(tried(written(tmp_path / str(number), files)))
        except Exception as error:
            raise AssertionError(what) from error
    assert "refused" in seen


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [n for own in value.values() for n in numbers(own)]
    if isinstance(value, list | tuple):
        return [n for own in value for n in numbers(own)]
    return [value] if isinstance(value, float) else []
