"""Streams that are closed, full or without a reader: training continues, exit codes are true."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

from faults import material, processes
from faults.campaign import FINE, REFUSED, SILENT, TRACEBACK, Campaign, Case, Outcome
from faults.material import Material, Subject, make_ready, state

NAMES = ("stdin", "stdout", "stderr")
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
        subject, stream, fault = (
            material.chosen(draw, known),
            draw.randrange(3),
            draw.choice(FAULTS),
        )
        training = Material(work, subject)
        verb = draw.choice(("train", "train", "evaluate", "predict", "runs"))
        folder = training.copy(place / "case", "" if verb == "train" else "run")
        words = {
            "train": ["train", *training.words, "--run", "run"],
            "evaluate": ["evaluate", "run", "--json"],
            "predict": ["predict", "run", subject.questions, "--json"],
            "runs": ["runs", "."],
        }[verb]
        code, _, err = run(folder, words, stream, fault)
        what = f"{subject} {verb}, {NAMES[stream]} {fault}: exit code {code}: {err[-200:]}"
        if "Traceback" in err or "Exception ignored" in err or code == 1:
            return Outcome(TRACEBACK, what)
        if verb == "train" or stream != 1:
            if code:
                return Outcome(REFUSED, what)
            if verb == "train" and state(folder / "run") != training.state:
                return Outcome(SILENT, what)
        elif fault != "without a reader" and not code:
            return Outcome(SILENT, f"{what}: the result is lost")
        return Outcome(FINE, what)

    return case


STREAMS = Campaign("streams", 60, 120.0, begin)
