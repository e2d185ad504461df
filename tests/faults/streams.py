"""Streams that are closed, full or without a reader: training continues, exit codes are true."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

from faults import material, processes
from faults.campaign import FINE, REFUSED, SILENT, TRACEBACK, Campaign, Case, Outcome
from faults.material import Material, Subject, make_ready
from faults.scenes import further, of_subject, ready, result

NAMES = ("stdin", "stdout", "stderr")
FURTHER_SHARE = 0.3  # selections, bases, several networks, exports
FAULTS = ("closed", "full", "without a reader")


def _spoiled(stream: int, fault: str) -> None:
    """In the child: one of its streams is spoiled before Python starts."""
    if fault == "closed":
        os.close(stream)
    elif fault == "full":
        os.dup2(os.open("/dev/full", os.O_RDWR), stream)
    else:
        ours, theirs = os.pipe()
        os.close(ours)
        os.dup2(theirs, stream)


def run(folder: Path, words: list[str], stream: int, fault: str) -> tuple[int, str, str]:
    """The executable with one spoiled stream: exit code, standard output and error."""
    done = subprocess.run(
        [processes.program(), *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        preexec_fn=lambda: _spoiled(stream, fault),
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def begin(work: Path, place: Path) -> Case:
    make_ready()

    def known(subject: Subject) -> bool:
        """The executable knows the tasks of Ensue."""
        return subject.row.task != "tally" and not subject.cell

    def case(draw: random.Random) -> Outcome:
        stream, fault = draw.randrange(3), draw.choice(FAULTS)
        if draw.random() < FURTHER_SHARE:
            scene = draw.choice([scene for scene in further() if scene.commands("streams")])
        else:
            scene = of_subject(material.chosen(draw, known))
        row = draw.choice(scene.commands("streams"))
        folder = place / "case"
        shutil.rmtree(folder, ignore_errors=True)
        whole = ready(work, scene)
        shutil.copytree(whole, folder)
        words, writes, expected = list(row.words), row.writes, dict[str, str]()
        if scene.subject is not None and row.verb == "train":  # from its start
            shutil.rmtree(folder / "run")
            words = ["train", *Material(work, scene.subject).words, "--run", "run"]
            expected = Material(work, scene.subject).state
        elif writes:
            expected = result(whole, writes)
        code, _, err = run(folder, words, stream, fault)
        what = f"{scene} {row.name}, {NAMES[stream]} {fault}: exit code {code}: {err[-200:]}"
        if "Traceback" in err or "Exception ignored" in err or code == 1:
            return Outcome(TRACEBACK, what)
        if writes or stream != 1:
            if code:
                return Outcome(REFUSED, what)
            made = result(folder, writes) if writes else {}
            if writes and (not made or (expected and made != expected)):
                return Outcome(SILENT, what)
        elif fault != "without a reader" and not code:
            return Outcome(SILENT, f"{what}: the result is lost")
        return Outcome(FINE, what)

    return case


STREAMS = Campaign("streams", 60, 120.0, begin)
