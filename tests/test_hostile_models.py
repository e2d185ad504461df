"""A model from somebody else with valid digests: it loads, or is refused with one error of ours."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from types import FrameType

import pytest
from hostile import hostile_files, models

import ensue
from ensue.errors import EnsueError

SECONDS = 20  # of processor time for one folder
LONGEST = 4000  # characters of a message


class Hangs(BaseException):
    """A folder that takes longer than any model does."""


def stop(number: int, frame: FrameType | None) -> None:
    raise Hangs


def refusal(place: Path) -> str:
    """What a folder is refused with; "" if it loads."""
    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        ensue.load(place)
    except EnsueError as error:
        return str(error)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ""


@pytest.mark.parametrize("model", models(), ids=lambda path: path.parent.parent.name)
def test_a_changed_model_is_refused_or_loads(model: Path, tmp_path: Path) -> None:
    draw = random.Random(model.parent.parent.name)
    for number in range(4):
        files, what = hostile_files(model, draw)
        place = tmp_path / str(number)
        place.mkdir()
        for name, data in files.items():
            (place / name).write_bytes(data)
        try:
            told = refusal(place)
        except (Exception, Hangs) as error:
            raise AssertionError(f"{what}: {type(error).__name__}") from error
        assert len(told) < LONGEST, what


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    draw = random.Random(1)
    for _ in range(1000):
        files, what = hostile_files(models()[0], draw)
        if what.startswith("network-") and what.endswith("not finite"):
            break
    (tmp_path / "model").mkdir()
    for name, data in files.items():
        (tmp_path / "model" / name).write_bytes(data)
    assert "holds NaN or infinity" in refusal(tmp_path / "model")
