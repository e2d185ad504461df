"""Two commands with different settings at one run folder: one wins, the other changes nothing."""

from __future__ import annotations

import random
import time
from pathlib import Path

from faults import material, processes
from faults.campaign import FINE, REFUSED, SILENT, TRACEBACK, Campaign, Case, Outcome
from faults.material import Material, Subject, make_ready, state

OTHERWISE = ["--set", "train.rate=0.011", "--set", "train.seed=5"]


def begin(work: Path, place: Path) -> Case:
    make_ready()
    known: dict[str, dict[str, str]] = {}

    def alone(subject: Subject, training: Material, words: list[str]) -> dict[str, str]:
        """The state that the other command ends with by itself."""
        if str(subject) not in known:
            folder = training.copy(place / "alone")
            processes.wait(processes.forked(folder, words, folder / "log"))
            known[str(subject)] = state(folder / "run")
        return known[str(subject)]

    def case(draw: random.Random) -> Outcome:
        subject = material.chosen(draw)
        training = Material(work, subject)
        one = ["train", *training.words, "--run", "run"]
        other = ["train", *training.words, *OTHERWISE, "--run", "run"]
        expected = [training.state, alone(subject, training, other)]
        folder, order = training.copy(place / "case"), draw.sample([0, 1], 2)
        started = {}
        for k in order:
            started[k] = processes.forked(folder, (one, other)[k], folder / f"log-{k}")
            time.sleep(
                draw.choice((0.0, draw.uniform(0, 0.1), draw.uniform(0, 2 * training.seconds)))
            )
        codes = [processes.wait(started[k]) for k in (0, 1)]
        what = f"{subject}: exit codes {codes}"
        logs = [processes.tail(folder / f"log-{k}") for k in (0, 1)]
        if any("Traceback" in log for log in logs):
            return Outcome(TRACEBACK, f"{what}: {logs}")
        if sorted(codes) != [0, 2]:
            return Outcome(REFUSED, f"{what}: {logs}")
        state_after, state_expected = state(folder / "run"), expected[codes.index(0)]
        if state_after != state_expected:
            names = sorted(
                n
                for n in {*state_after, *state_expected}
                if state_after.get(n) != state_expected.get(n)
            )
            return Outcome(SILENT, f"{what}: differs in {names}")
        return Outcome(FINE, what)

    return case


STARTS = Campaign("starts", 50, 180.0, begin)
