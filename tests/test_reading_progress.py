"""Reading shows how far it is: after a second, in place on a terminal, and never with --quiet."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import Ensue, commands_in
from reviews import reviews

from ensue.cli import reading
from ensue.cli.reading import ReadingLine, reading_shown
from ensue.data.check import check, check_parallel
from ensue.data.options import ReadOptions
from ensue.data.parallel import read_any
from ensue.data.read import Gathered, gather
from ensue.data.rows import Place, Row, watch_reading, watched_rows
from ensue.data.stream import PIECE


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Advances by a step whenever it is read."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def rows(count: int) -> Iterator[Row]:
    return (Row(Place("a", k), {}) for k in range(count))


def progress_text(stream: io.StringIO, step: float, count: int) -> str:
    """The progress shown for a number of rows that take one step of the clock each."""
    with watch_reading(ReadingLine(stream, Clock(step))):
        assert sum(1 for _ in watched_rows(rows(count), "folder/a.csv")) == count
    return stream.getvalue()


# --- the line ----------------------------------------------------------------------------------


def test_nothing_is_shown_of_what_takes_less_than_a_second() -> None:
    for stream in (io.StringIO(), Terminal()):
        assert progress_text(stream, 0.001, 900) == ""


def test_lines_follow_each_other_where_there_is_no_terminal() -> None:
    text = progress_text(io.StringIO(), 1 / 64, 800)  # 12.5 seconds
    assert text.splitlines() == [f"reading a.csv: {count} rows" for count in (64, 384, 704)]


def test_the_line_is_drawn_over_on_a_terminal_and_taken_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    text = progress_text(Terminal(), 0.06, 20)
    assert "\n" not in text
    *drawn, last, rest = text.split("\r")[1:]
    assert (last, rest) == (" " * 29, "")
    assert drawn == [f"reading a.csv: {count} rows".ljust(29) for count in (17, 19)]
    assert all(len(line) == 29 for line in drawn)


def test_files_one_after_the_other_share_their_second() -> None:
    stream, clock = io.StringIO(), Clock(0.0)
    line = ReadingLine(stream, clock)
    with watch_reading(line):
        for pause in (0.4, 0.6):
            clock.now += pause
            for row, _ in enumerate(watched_rows(rows(3), f"{pause}.csv")):
                clock.now += 0.3 * (row < 2)
        assert stream.getvalue() == "", "each took 0.6 seconds, and something else came between"
        clock.now += 0.1
        assert len(list(watched_rows(rows(1), "c.csv"))) == 1
        clock.now += 0.4
        assert len(list(watched_rows(rows(1), "d.csv"))) == 1
    assert stream.getvalue() == "reading d.csv: 1 row\n"


def test_nobody_is_told_unless_somebody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(list(watched_rows(rows(3), "a"))) == 3
    with watch_reading(ReadingLine(stream := io.StringIO(), Clock(2.0))):
        with watch_reading(None):
            assert len(list(watched_rows(rows(3), "a"))) == 3
        assert stream.getvalue() == ""
        assert len(list(watched_rows(rows(1), "a"))) == 1
    assert stream.getvalue() == "reading a: 1 row\n"
    assert capsys.readouterr() == ("", "")


def test_other_processes_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    watchers: list[object] = []
    monkeypatch.setattr(reading, "watch_reading", watchers.append)
    reading_shown(quiet=False)
    reading_shown(quiet=True)
    monkeypatch.setenv("RANK", "1")
    reading_shown(quiet=False)
    assert [watcher is None for watcher in watchers] == [False, True, True]


# --- what is read ------------------------------------------------------------------------------


def last_line(read: Callable[[], object]) -> str:
    """The last thing that was shown of a reading in which every row takes ten seconds."""
    stream = io.StringIO()
    with watch_reading(ReadingLine(stream, Clock(10.0))):
        read()
    return stream.getvalue().splitlines()[-1]


def test_bytes_and_their_share(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text\n" + f"{'word' * 125}\n" * 2000)  # a piece holds a quarter of it
    assert PIECE * 3 < path.stat().st_size < PIECE * 4
    stream = io.StringIO()
    with watch_reading(ReadingLine(stream, Clock(10.0))):
        for _ in gather([path], ReadOptions()):
            pass
    lines = stream.getvalue().splitlines()
    assert lines[0] == "reading a.csv: 1 row, 0.3 of 1.0 MB (26 %)"
    assert lines[-1] == "reading a.csv: 2,000 rows, 1.0 of 1.0 MB (100 %)"
    shares = [int(line.rpartition("(")[2].partition(" ")[0]) for line in lines]
    assert shares == sorted(shares)


def test_a_packed_file_counts_as_it_is_packed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"word\n" * 1000))
    size = path.stat().st_size / 1e6
    line = last_line(lambda: list(gather([path], ReadOptions())))
    assert line == f"reading a.txt.gz: 1,000 rows, {size:.1f} of {size:.1f} MB (100 %)"


def test_two_parallel_files_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.en").write_text("word\n" * 10)
    Path("a.de").write_text("Wort\n" * 10)
    pair, options = "a.en,a.de", ReadOptions(format="text")
    source = {pair: lambda tell: read_any(pair, options, tell)}
    expected = "reading a.en,a.de: 10 rows, 0.0 of 0.0 MB (100 %)"
    assert last_line(lambda: list(Gathered(source))) == expected
    assert last_line(lambda: check_parallel({"train": [pair]}, options)) == expected


def test_the_files_of_a_folder_tell_no_bytes(tmp_path: Path) -> None:
    for label in ("good", "bad"):
        (tmp_path / "all" / label).mkdir(parents=True)
        for k in range(3):
            (tmp_path / "all" / label / f"{k}.txt").write_text("a film")
    line = last_line(lambda: list(gather([tmp_path / "all"], ReadOptions())))
    assert line == "reading all: 6 rows"


def test_checking_shows_it_too(tmp_path: Path) -> None:
    path = reviews(tmp_path / "reviews.csv", 30)
    assert last_line(lambda: check({"train": [path]}, ReadOptions())).startswith(
        "reading reviews.csv: 30 rows, "
    )


# --- commands ----------------------------------------------------------------------------------


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


def test_commands_show_it_unless_they_are_quiet(
    ensue: Ensue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reviews(tmp_path / "reviews.csv", 60)
    monkeypatch.setattr(reading, "FIRST", 0.0)
    small = ("--hidden-size", "2", "--epochs", "1", "--set", "model.embedding_size=2")
    for command in (
        ("data", "check", "reviews.csv", "--text", "review", "--label", "stars"),
        ("train", "reviews.csv", "--text", "review", "--run", "run", *small),
        ("evaluate", "run"),
        ("predict", "run", "reviews.csv"),
    ):
        code, out, err = ensue(*command)
        assert code == 0, err
        assert "reading reviews.csv: 1 row, 0.0 of 0.0 MB (100 %)\n" in err
        assert "reading" not in out
        code, _, err = ensue(*command, "--quiet")
        assert (code, "reading" in err) == (0, False)
