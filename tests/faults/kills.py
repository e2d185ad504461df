"""Trainings that are killed, up to five times each, and then left alone: they end with the bits of
a training that was never stopped."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from faults import material, processes
from faults.campaign import ABORT, FINE, REFUSED, SILENT, TRACEBACK, Campaign, Case, Outcome
from faults.events import count_events, kill_at_event
from faults.material import Material, Subject, done, make_ready, state
from faults.scenes import Command, Scene, further, ready, result

MOST_KILLS = 5
STARTING = 4.0  # seconds until the executable has loaded torch; kills fall there, too
CALLS = ("rename", "renameat2", "fsync", "openat", "write", "unlink", "unlinkat", "mkdir", "flock")
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

OTHER_SHARE = 0.25  # selections, bases, several networks, exports


class Measured(NamedTuple):
    """Of an undisturbed call: seconds, and how often it changed something on the disk."""

    seconds: float
    events: int


class Undisturbed(NamedTuple):
    """What a command makes if nothing stops it, and how long that takes."""

    expected: dict[str, str]
    measured: Measured


Killing = Callable[[Path, list[str], "Material | Measured", random.Random], int]


def _at_a_moment(
    folder: Path, words: list[str], training: Material | Measured, draw: random.Random
) -> int:
    process = processes.forked(folder, words, folder / "log")
    time.sleep(draw.uniform(0, 1.2 * training.seconds))
    os.kill(process, signal.SIGKILL)
    return processes.wait(process)


def _by_a_signal(
    folder: Path, words: list[str], training: Material | Measured, draw: random.Random
) -> int:
    process, number = processes.forked(folder, words, folder / "log"), draw.choice(STOPS)
    time.sleep(draw.uniform(0, 1.2 * training.seconds))
    os.kill(process, number)
    return processes.wait(process)


def _at_an_event(
    folder: Path, words: list[str], training: Material | Measured, draw: random.Random
) -> int:
    number = draw.randint(1, training.events)
    return processes.wait(
        processes.forked(folder, words, folder / "log", lambda: kill_at_event(number))
    )


def _at_a_system_call(
    folder: Path, words: list[str], training: Material | Measured, draw: random.Random
) -> int:
    """strace attaches while the child waits, and kills at the so-many-th call."""
    call, number = draw.choice(CALLS), draw.randint(1, max(2, training.events // 2))
    ready, go = os.pipe()

    def wait_for_strace() -> None:
        os.close(go)
        os.read(ready, 1)

    process = processes.forked(folder, words, folder / "log", wait_for_strace)
    os.close(ready)
    inject = f"inject={call}:signal=SIGKILL:when={number}"
    with subprocess.Popen(
        ["strace", "-p", str(process), "-e", f"trace={call}", "-e", inject],
        stderr=subprocess.PIPE,
        text=True,
    ) as strace:
        assert strace.stderr is not None
        attached = "attached" in strace.stderr.readline()
        os.close(go)
        if not attached:
            os.kill(process, signal.SIGKILL)
        strace.stderr.read()
    return processes.wait(process)


def _the_executable(
    folder: Path, words: list[str], training: Material | Measured, draw: random.Random
) -> int:
    process = processes.executable(folder, words, folder / "log")
    time.sleep(draw.uniform(0, STARTING + training.seconds))
    os.kill(process, signal.SIGKILL)
    return processes.wait(process)


WAYS: dict[Killing, int] = {
    _at_a_moment: 9,
    _at_an_event: 6,
    _by_a_signal: 2,
    _at_a_system_call: 2 if shutil.which("strace") else 0,
    _the_executable: 1,
}
ENDINGS = {0, -signal.SIGKILL, *(128 + number for number in STOPS), *(-n for n in STOPS)}


@dataclass(frozen=True)
class Work:
    """What is killed: a command in a folder, and what it has to end with. alone: takes processes
    of its own, which Python's events do not see."""

    name: str
    words: list[str]
    folder: Path
    expected: dict[str, str]
    measured: Material | Measured
    result: Callable[[Path], dict[str, str]]
    alone: bool = True


def _training(work: Path, place: Path, subject: Subject) -> Work:
    training = Material(work, subject)
    folder = training.copy(place / "case")
    words = ["train", *training.words, "--run", "run"]
    return Work(
        str(subject), words, folder, training.state, training, lambda at: state(at / "run"),
        subject.row.task != "tally",
    )  # fmt: skip


@cache
def _undisturbed(work: Path, place: Path, scene: Scene, row: Command) -> Undisturbed:
    """A command of the table once, in the folder where it is killed later: models name the place of
    their base."""
    folder = _without(work, place, scene, row)
    events, log, begun = place / "events", place / "log", time.monotonic()
    done(processes.forked(folder, row.words, log, partial(count_events, events)), log)
    seconds = time.monotonic() - begun
    return Undisturbed(result(folder, row.writes), Measured(seconds, int(events.read_text())))


def _without(work: Path, place: Path, scene: Scene, row: Command) -> Path:
    """The folder of a scene without what the command makes."""
    folder = place / "case"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ready(work, scene), folder)
    path = folder / row.writes
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return folder


def _other(work: Path, place: Path, scene: Scene, row: Command) -> Work:
    """A command of the table."""
    expected, measured = _undisturbed(work, place, scene, row)
    folder = _without(work, place, scene, row)
    name, words = f"{scene} {' '.join(row.words)}", list(row.words)
    return Work(name, words, folder, expected, measured, lambda at: result(at, row.writes))


def begin(work: Path, place: Path) -> Case:
    make_ready()

    def work_of(draw: random.Random) -> Work:
        if draw.random() < OTHER_SHARE:
            scene = draw.choice([scene for scene in further() if scene.commands("kills")])
            return _other(work, place, scene, draw.choice(scene.commands("kills")))
        return _training(work, place, material.chosen(draw))

    def case(draw: random.Random) -> Outcome:
        killed, kills = work_of(draw), draw.randint(1, MOST_KILLS)
        folder, hits, ways = killed.folder, 0, list[str]()
        for _ in range(kills):
            (way,) = draw.choices([*WAYS], [*WAYS.values()])
            if way is _the_executable and not killed.alone:
                way = _at_an_event
            code = way(folder, killed.words, killed.measured, draw)
            ways.append(f"{way.__name__.strip('_')} {code}")
            hits += code != 0
            if code not in ENDINGS:
                return _broken(folder, f"{killed.name}: {ways}", code, hits)
        code = processes.wait(processes.forked(folder, killed.words, folder / "log"))
        what = f"{killed.name}: {', '.join(ways)}"
        if code:
            return _broken(folder, what, code, hits)
        files = killed.result(folder)
        if files != killed.expected:
            names = sorted(
                n for n in {*files, *killed.expected} if files.get(n) != killed.expected.get(n)
            )
            return Outcome(SILENT, f"{what}: differs in {names}", hits)
        if left := [*folder.rglob(".tmp-*"), *folder.rglob("damaged")]:
            return Outcome(SILENT, f"{what}: left behind {left}", hits)
        return Outcome(FINE, what, hits)

    return case


def _broken(folder: Path, what: str, code: int, hits: int) -> Outcome:
    log_tail = processes.tail(folder / "log")
    kind = TRACEBACK if "Traceback" in log_tail or code == 1 else REFUSED
    return Outcome(kind if code >= 0 else ABORT, f"{what}: exit code {code}: {log_tail}", hits)


KILLS = Campaign("kills", 500, 180.0, begin)
