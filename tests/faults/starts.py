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

    def alone(subject: Subject, own: Material, words: list[str]) -> dict[str, str]:
        """The state that the other command ends with by itself."""
        if str(subject) not in known:
            folder = own.copy(place / "alone")
            processes.wait(processes.forked(folder, words, folder / "log"))
            known[str(subject)] = state(folder / "run")
        return known[str(subject)]

    def case(draw: random.Random) -> Outcome:
        subject = material.chosen(draw)
        own = Material(work, subject)
        one = ["train", *own.words, "--run", "run"]
        other = ["train", *own.words, *OTHERWISE, "--run", "run"]
        expected = [own.state, alone(subject, own, other)]
        folder, order = own.copy(place / "case"), draw.sample([0, 1], 2)
        started = {}
        for k in order:
            started[k] = processes.forked(folder, (one, other)[k], folder / f"log-{k}")
            time.sleep(draw.choice((0.0, draw.uniform(0, 0.1), draw.uniform(0, 2 * own.seconds))))
        codes = [processes.wait(started[k]) for k in (0, 1)]
        what = f"{subject}: exit codes {codes}"
        said = [processes.tail(folder / f"log-{k}") for k in (0, 1)]
        if any("Traceback" in own for own in said):
            return Outcome(TRACEBACK, f"{what}: {said}")
        if sorted(codes) != [0, 2]:
            return Outcome(REFUSED, f"{what}: {said}")
        found, wanted = state(folder / "run"), expected[codes.index(0)]
        if found != wanted:
            names = sorted(n for n in {*found, *wanted} if found.get(n) != wanted.get(n))
            return Outcome(SILENT, f"{what}: differs in {names}")
        return Outcome(FINE, what)

    return case


STARTS = Campaign("starts", 50, 180.0, begin)
