"""A command opens each data file once, sees the same bytes at every reading, and locks its run
folder once."""

from __future__ import annotations

import gzip
import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from commands import Ensue, commands_in
from reviews import SMALL, refused, reviews

from ensue.data import stream
from ensue.data.fingerprint import digest_of
from ensue.data.stream import opened_once, pieces
from ensue.files.opening import HELD_FILES
from ensue.runs import train
from ensue.runs.run import Run

CHANGED = "expected the same bytes at every reading, but the file was changed or replaced"

_EVENTS: list[tuple[str, object]] | None = None  # what is being recorded


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _EVENTS is not None and event in ("open", "fcntl.flock"):
        _EVENTS.append((event, arguments[0]))


sys.addaudithook(_audit)  # which cannot be removed again


@contextmanager
def recorded() -> Iterator[list[tuple[str, object]]]:
    """The files that are opened inside of it, and the descriptors that are locked."""
    global _EVENTS
    _EVENTS = recorded_events = []
    try:
        yield recorded_events
    finally:
        _EVENTS = None


def opens_of(path: Path, events: list[tuple[str, object]]) -> int:
    named = [
        argument
        for event, argument in events
        if event == "open" and isinstance(argument, str | Path)
    ]
    return sum(Path(name).absolute() == path for name in named)


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


# --- how often ---------------------------------------------------------------------------------


def texts(folder: Path) -> list[str]:
    reviews(folder / "r.csv", 90)
    return ["r.csv", "--text", "review", "--label", "stars", *small(*SMALL)]


def packed_texts(folder: Path) -> list[str]:
    data = reviews(folder / "r.csv", 90).read_bytes()
    (folder / "r.csv.gz").write_bytes(gzip.compress(data))
    return ["r.csv.gz", "--text", "review", "--label", "stars", *small(*SMALL)]


def table(folder: Path) -> list[str]:
    draw = random.Random(1)
    rows = [(draw.random(), draw.choice("abc")) for _ in range(90)]
    lines = [f"{x:.3f},{kind},{'yes' if x > 0.5 else 'no'}" for x, kind in rows]
    (folder / "t.csv").write_text("\n".join(["size,kind,sold", *lines]) + "\n")
    return ["t.csv", "--task", "table", "--label", "sold", *small("train.epochs=1")]


def series(folder: Path) -> list[str]:
    lines = [f"{1990 + k // 12}-{k % 12 + 1:02},{100 + k + 10 * (k % 12)}" for k in range(96)]
    (folder / "s.csv").write_text("\n".join(["month,sales", *lines]) + "\n")
    return ["s.csv", "--target", "sales", "--horizon", "2", *small("train.epochs=1")]


def parallel_texts(folder: Path) -> list[str]:
    words = ["one", "two", "three", "four", "five", "six"]
    pairs = [random.Random(k).choices(words, k=3) for k in range(90)]
    (folder / "a.en").write_text("".join(" ".join(pair) + "\n" for pair in pairs))
    (folder / "a.de").write_text("".join(" ".join(pair[::-1]) + "\n" for pair in pairs))
    return ["a.en,a.de", "--format", "text", *small(*SMALL)]


def small(*settings: str) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


KINDS: dict[str, Callable[[Path], list[str]]] = {
    "a text classifier": texts,
    "a packed file": packed_texts,
    "a table": table,
    "a forecast": series,
    "parallel files": parallel_texts,
}


@pytest.mark.parametrize("kind", KINDS)
def test_training_opens_a_data_file_once_and_locks_its_folder_once(
    kind: str, ensue: Ensue, tmp_path: Path
) -> None:
    words = KINDS[kind](tmp_path)
    with recorded() as events:
        code, _, err = ensue("train", *words, "--run", "run", "--quiet")
    assert code == 0, err
    files = [tmp_path / name for name in words[0].split(",")]
    opens = [opens_of(file, events) for file in files]
    assert opens == [1] * len(files)
    assert Run("run").state == "finished"


def test_the_lock_of_a_folder_is_taken_once(
    ensue: Ensue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ensue.files.run_folder import Lock

    places, real = list[Path](), Lock.__enter__

    def enter(lock: Lock) -> Lock:
        places.append(lock.place)
        return real(lock)

    monkeypatch.setattr(Lock, "__enter__", enter)
    assert ensue("train", *texts(tmp_path), "--run", "run", "--quiet")[0] == 0
    assert places == [Path("run/lock")]


def test_the_digest_that_is_kept_is_of_what_was_read(tmp_path: Path) -> None:
    path = reviews(tmp_path / "r.csv")
    with opened_once(), recorded() as events:
        content = b"".join(pieces(path))
        assert digest_of([str(path)]) == sha256(content).hexdigest()
        b"".join(pieces(path))
    assert opens_of(path, events) == 1


def test_outside_of_a_command_a_file_is_opened_for_each_reading(tmp_path: Path) -> None:
    path = reviews(tmp_path / "r.csv")
    first = b"".join(pieces(path))
    reviews(path, 90)
    with recorded() as events:
        assert b"".join(pieces(path)) != first
        b"".join(pieces(path))
    assert opens_of(path, events) == 2


def test_readings_of_a_file_do_not_move_each_other(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    path.write_bytes(os.urandom(3 * stream.PIECE))
    with opened_once():
        one, other = pieces(path), pieces(path)
        pieces_read = [piece for pair in zip(one, other, strict=True) for piece in pair]
    assert b"".join(pieces_read[::2]) == b"".join(pieces_read[1::2]) == path.read_bytes()


def test_a_command_holds_no_more_files_than_it_may_and_closes_them(tmp_path: Path) -> None:
    files = [tmp_path / f"{k}.txt" for k in range(HELD_FILES + 6)]
    for file in files:
        file.write_text(file.name)
    before = len(os.listdir("/proc/self/fd"))
    with opened_once():
        for _ in range(2):
            assert [b"".join(pieces(file)).decode() for file in files] == [f.name for f in files]
        assert len(os.listdir("/proc/self/fd")) == before + HELD_FILES
        late = pieces(files[0])
        next(late)
    assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ValueError, match="closed file"):  # not of whichever file is opened next
        next(late)


# --- a file that changes -------------------------------------------------------------------------


def rewritten(path: Path) -> None:
    """As many bytes, in place, at the same time as far as its date tells."""
    facts = path.stat()
    data = path.read_bytes()
    path.write_bytes(data[::-1])
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def replaced(path: Path) -> None:
    new = path.with_suffix(".new")
    new.write_bytes(path.read_bytes())
    new.replace(path)


def appended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"one more line\n")


@pytest.mark.parametrize("change", [rewritten, replaced, appended])
def test_a_file_that_changes_between_two_readings_is_refused(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    path = reviews(tmp_path / "r.csv")
    with opened_once():
        b"".join(pieces(path))
        change(path)
        assert CHANGED in refused(lambda: b"".join(pieces(path)))


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    path.write_bytes(b"a line\n" * stream.PIECE)

    with opened_once():
        reading = pieces(path)
        next(reading)
        appended(path)
        assert CHANGED in refused(lambda: b"".join(reading))


def test_a_file_that_is_removed_is_missing(tmp_path: Path) -> None:
    path = reviews(tmp_path / "r.csv")
    with opened_once():
        b"".join(pieces(path))
        path.unlink()
        assert "no such file" in refused(lambda: b"".join(pieces(path)))


def test_training_on_a_file_that_changes_meanwhile_learns_nothing(
    ensue: Ensue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, real = texts(tmp_path), train.drawn

    def changed(*arguments: object) -> object:
        rewritten(tmp_path / "r.csv")
        return real(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(train, "drawn", changed)
        code, _, err = ensue("train", *words, "--run", "run", "--quiet")
    assert code == 2
    assert CHANGED in err
    assert err.endswith("Next: run the same command again\n")
    assert not (tmp_path / "run").exists()
