"""Those who watch a training: history, timing, the display; and the signals they all survive."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from ensue import Classifier
from ensue.training import (
    Began,
    CheckpointSaved,
    Display,
    Finished,
    Notice,
    Update,
    Validated,
    display,
)
from ensue.training.display import where_somebody_looks
from ensue.training.run import History, Timing, recorded

COST = 0.1 + 0.2  # a number that takes 17 digits


def update(number: int) -> Update:
    return Update(number, 1, COST, 1e-3, 1 / 3, 4.0, 8.0)


def test_the_history_has_every_tenth_update_and_every_evaluation() -> None:
    written = [number for number in range(1, 32) if recorded(update(number))]
    assert written == [1, 10, 20, 30]
    assert recorded(Validated(7, 1, {"cost": COST}, True))
    for row in (
        Began(0, 9, "cost"),
        CheckpointSaved(3, Path("a")),
        Notice("a line"),
        Finished(9, "epochs"),
    ):
        assert recorded(row) is None


def test_numbers_are_read_back_exactly(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    history.add(update(10))
    history.close()
    row = json.loads(history.path.read_bytes())
    assert (row["cost"], row["norm"], row["rate"]) == (COST, 1 / 3, 1e-3)
    assert row["row"] == "update"
    assert not {"time", "seconds", "clock"} & row.keys()


def test_a_history_is_cut_back_to_its_mark(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    history.begin(None)
    history.add(update(1))
    mark = history.mark()
    whole = history.path.read_bytes()
    history.add(update(10))
    history.close()
    again = History(history.path)
    again.begin(mark)
    assert again.path.read_bytes() == whole
    assert again.mark() == mark
    again.add(update(10))
    again.begin(None)
    assert again.path.read_bytes() == b""
    again.close()


def test_timing_has_the_clock(tmp_path: Path) -> None:
    timing = Timing(tmp_path / "timing.jsonl")
    for row in (*map(update, range(1, 11)), CheckpointSaved(10, tmp_path), Notice("nothing")):
        timing.add(row)
    timing.close()
    rows = [json.loads(line) for line in (tmp_path / "timing.jsonl").read_text().splitlines()]
    assert [row["row"] for row in rows] == ["update", "update", "saved"]
    assert rows[-1]["targets"] == 40
    assert rows[-1]["seconds"] >= 0
    assert rows[-1]["clock"].endswith("Z")


# --- the display ---------------------------------------------------------------------------


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that tests set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock_of_test = Clock()
    monkeypatch.setattr(display, "time", clock_of_test)
    return clock_of_test


def display_text(stream: Any, clock: Clock, quiet: bool = False) -> str:
    """What the display writes of twenty updates, four seconds each, and an evaluation."""
    display = Display(stream, quiet)
    display(Began(0, 40, "accuracy"))
    for number in range(1, 21):
        clock.now += 4
        display(Update(number, 1, 0.5, 1e-3, 1.0, 40.0, 400.0))
        if number == 10:
            display(Validated(10, 1, {"cost": 0.25, "accuracy": 0.875}, True))
    display(CheckpointSaved(20, Path("a")))
    display(Notice("step-000003 is damaged"))
    display(Finished(20, "patience"))
    return str(stream.getvalue())


def test_without_a_terminal_there_are_plain_lines(clock: Clock) -> None:
    assert display_text(io.StringIO(), clock).splitlines() == [
        "update 3/40, cost 0.5, 100 tokens/s, 2:28 left",
        "update 6/40, cost 0.5, 100 tokens/s, 2:16 left",
        "update 9/40, cost 0.5, 100 tokens/s, 2:04 left",
        "epoch 1, update 10: validation cost 0.25, accuracy 0.875, the best so far",
        "update 12/40, cost 0.5, validation accuracy 0.875 (best 0.875), 100 tokens/s, 1:52 left",
        "update 15/40, cost 0.5, validation accuracy 0.875 (best 0.875), 100 tokens/s, 1:40 left",
        "update 18/40, cost 0.5, validation accuracy 0.875 (best 0.875), 100 tokens/s, 1:28 left",
        "step-000003 is damaged",
        "finished after update 20: accuracy did not improve for as long as train.patience allows",
    ]


def test_on_a_terminal_a_bar_is_drawn_over_itself(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = display_text(Screen(), clock)
    drawn = [part for part in text.split("\r") if "█" in part or "·" in part]
    assert len(drawn) == 20
    assert all(len(part.rstrip("\n")) <= 59 for part in drawn)
    assert drawn[-1].startswith("██████████··········  50% update 20/40, cost 0.5")
    lines = text.split("\n")[:-1]
    assert len(lines) == 3  # the evaluation and the two last rows
    assert lines[-1].endswith(
        "finished after update 20: accuracy did not improve for as long as train.patience allows"
    )


def test_a_run_that_continues_counts_from_there(clock: Clock) -> None:
    stream = io.StringIO()
    display = Display(stream=stream)
    display(Began(30, 40, "cost"))
    clock.now += 10
    display(Update(35, 1, 0.5, 1e-3, 1.0, 5.0, 50.0))
    assert stream.getvalue() == "update 35/40, cost 0.5, 5 tokens/s, 0:10 left\n"


@pytest.mark.parametrize("stream", [io.StringIO, Screen])
def test_a_quiet_display_warns_and_is_silent_otherwise(clock: Clock, stream: Any) -> None:
    assert display_text(stream(), clock, quiet=True) == "step-000003 is damaged\n"
    for quiet, words in ((True, ""), (False, "continuing from step-000003\n")):
        screen = stream()
        Display(screen, quiet)(Notice("continuing from step-000003", progress=True))
        assert screen.getvalue() == words


# --- shown where a user looks --------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Cell(io.StringIO):
    """As Jupyter has it, which does not report a terminal."""


Cell.__module__ = "ipykernel.iostream"
ROWS = [("a fine film", "good"), ("dull and long", "bad")] * 10


@pytest.mark.parametrize("stream", [Terminal, Cell])
def test_python_shows_progress_in_terminals_and_notebooks(
    stream: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"hidden_size": 2, "embedding_size": 2, "linear": "alone"}
    for watchers, is_shown in ((None, True), ([], False)):
        screen = stream()
        monkeypatch.setattr("sys.stderr", screen)
        Classifier(model=small, train={"epochs": 1}).fit(ROWS, ROWS, watchers=watchers)
        assert ("epoch 1, update" in screen.getvalue()) == is_shown


def test_python_writes_nothing_into_files_and_pipes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert where_somebody_looks() == []
