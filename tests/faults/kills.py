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
from pathlib import Path

from faults import material, processes
from faults.campaign import ABORT, FINE, REFUSED, SILENT, TRACEBACK, Campaign, Case, Outcome
from faults.events import kill_at_event
from faults.material import Material, make_ready, state

MOST_KILLS = 5
STARTING = 4.0  # seconds until the executable has loaded torch; kills fall there, too
CALLS = ("rename", "renameat2", "fsync", "openat", "write", "unlink", "unlinkat", "mkdir", "flock")
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Killing = Callable[[Path, list[str], Material, random.Random], int]


def _at_a_moment(folder: Path, words: list[str], training: Material, draw: random.Random) -> int:
    process = processes.forked(folder, words, folder / "log")
    time.sleep(draw.uniform(0, 1.2 * training.seconds))
    os.kill(process, signal.SIGKILL)
    return processes.wait(process)


def _by_a_signal(folder: Path, words: list[str], training: Material, draw: random.Random) -> int:
    process, number = processes.forked(folder, words, folder / "log"), draw.choice(STOPS)
    time.sleep(draw.uniform(0, 1.2 * training.seconds))
    os.kill(process, number)
    return processes.wait(process)


def _at_an_event(folder: Path, words: list[str], training: Material, draw: random.Random) -> int:
    number = draw.randint(1, training.events)
    return processes.wait(
        processes.forked(folder, words, folder / "log", lambda: kill_at_event(number))
    )


def _at_a_system_call(
    folder: Path, words: list[str], training: Material, draw: random.Random
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


def _the_executable(folder: Path, words: list[str], training: Material, draw: random.Random) -> int:
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


def begin(work: Path, place: Path) -> Case:
    make_ready()

    def case(draw: random.Random) -> Outcome:
        subject, kills = material.chosen(draw), draw.randint(1, MOST_KILLS)
        training = Material(work, subject)
        folder = training.copy(place / "case")
        words, hits, ways = ["train", *training.words, "--run", "run"], 0, []
        for _ in range(kills):
            (way,) = draw.choices([*WAYS], [*WAYS.values()])
            if way is _the_executable and subject.row.task == "tally":
                way = _at_an_event
            code = way(folder, words, training, draw)
            ways.append(f"{way.__name__.strip('_')} {code}")
            hits += code != 0
            if code not in ENDINGS:
                return _broken(folder, f"{subject}: {ways}", code, hits)
        code = processes.wait(processes.forked(folder, words, folder / "log"))
        what = f"{subject}: {', '.join(ways)}"
        if code:
            return _broken(folder, what, code, hits)
        files = state(folder / "run")
        if files != training.state:
            names = sorted(
                n for n in {*files, *training.state} if files.get(n) != training.state.get(n)
            )
            return Outcome(SILENT, f"{what}: differs in {names}", hits)
        if left := [*(folder / "run").rglob(".tmp-*"), *(folder / "run").rglob("damaged")]:
            return Outcome(SILENT, f"{what}: left behind {left}", hits)
        return Outcome(FINE, what, hits)

    return case


def _broken(folder: Path, what: str, code: int, hits: int) -> Outcome:
    log_tail = processes.tail(folder / "log")
    kind = TRACEBACK if "Traceback" in log_tail or code == 1 else REFUSED
    return Outcome(kind if code >= 0 else ABORT, f"{what}: exit code {code}: {log_tail}", hits)


KILLS = Campaign("kills", 500, 180.0, begin)
