"""Selection within a time limit: free workers get new trials. At the end of the time, running
trials stop after their current update and are judged by their best weights.

Time is reserved for closing the stopped trials (fitting calibration to the validation part), and
for the test of the winner."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from ensue.errors import OptionError
from ensue.study.selection.entries import Entry
from ensue.study.selection.halving import TrialJob, bars_of
from ensue.study.selection.space import KINDS, Settings

if TYPE_CHECKING:
    from ensue.study.selection.pool import TrialPool
    from ensue.study.selection.search import Search

UNKNOWN = 0.1  # share of the time reserved until a trial has shown how long closing takes
LEAST, MOST = 0.02, 0.3  # shares of the time that are reserved
LEAST_SECONDS = 2.0  # seconds reserved for the end of the command
SLACK = 1.3  # factor of an earlier duration
PREPARED = 0.5  # maximum share of the time for preparation


@dataclass(frozen=True)
class Clock:
    """The available time of a search: `seconds` from `began`. ends: seconds that reading the files
    and writing the results take."""

    began: float
    seconds: float
    ends: float = 0.0

    @property
    def over(self) -> float:
        return self.began + self.seconds

    def last(self, leader: Entry | None) -> float:
        """The time when trials that cannot win are stopped. The rest is for the winner's test,
        which reads and answers files like the end of its trial. leader: the best so far."""
        after = 0.0 if leader is None else leader.after
        least = max(LEAST * self.seconds, LEAST_SECONDS)
        return self.over - min(max(SLACK * (self.ends + after), least), MOST * self.seconds)

    def stops(self, leader: Entry | None, alike: Sequence[Entry]) -> float:
        """The time when the others are stopped: closing a trial takes the time around its updates
        once more. alike: trials of the same kind, or all trials if there are none."""
        known = _around(alike)
        reserve = SLACK * max(known) if known else UNKNOWN * self.seconds
        return self.last(leader) - min(reserve, MOST * self.seconds)

    def room(self, leader: Entry | None, entries: Sequence[Entry]) -> bool:
        """Whether another trial can make updates before it is stopped, judged by at least half of
        the earlier ones, so that a slow kind of trial does not end the search."""
        usual = median(_around(entries) or [0.0])
        return time.time() + SLACK * usual < self.last(leader)

    def refuse_too_little(self) -> None:
        """Raises an error if preparation took more than half of the time."""
        passed = time.time() - self.began
        if passed > PREPARED * self.seconds:
            minutes = math.ceil(10 * passed / PREPARED / 60) / 10
            raise OptionError(
                f"--minutes: expected at least {minutes:g} for these files on this machine, got "
                f"{self.seconds / 60:g}: it took {passed:.0f} seconds until trials could begin"
            )


def _around(entries: Sequence[Entry]) -> list[float]:
    return [entry.around for entry in entries if not entry.failure]


def alike(entries: Sequence[Entry], settings: Settings) -> Sequence[Entry]:
    """The trials of the same kind of network; all trials if there are none."""
    kind = [settings.get(key) for key in KINDS]
    same = [entry for entry in entries if [entry.settings.get(key) for key in KINDS] == kind]
    return same or entries


def spend(search: Search, pool: TrialPool, clock: Clock) -> None:
    """Runs trials until the time is over. Possible winners among the stopped trials are closed:
    their training ends at its current update."""
    running: dict[int, TrialJob] = {}
    stopped: dict[int, TrialJob] = {}
    while True:
        known, leader = search.trials(), search.leader()
        while len(running) < pool.workers and not stopped and clock.room(leader, known):
            number = search.free_number(running)
            settings = search.proposer.next(known, [job.settings for job in running.values()])
            job = search.job(number, settings, bars_of(known, search.selection.measure))
            if job is not None:
                until, last = clock.stops(leader, alike(known, settings)), clock.last(leader)
                best = search.best_network()
                running[number] = replace(job, until=until, last=last, best=best)
                pool.begin(number, running[number])
        if not running:
            break
        for number, entry in pool.wait():
            job = running.pop(number)
            stopped |= {number: job} if entry.updates else {}
            search.take(number, entry, used=time.time() - clock.began)
    for number, entry in search.entries.items():
        if not entry.updates or not search.may_win(entry):
            continue
        job = stopped.get(number) or search.job(number, entry.settings, {})  # of an earlier call
        if job is not None:
            pool.begin(number, replace(job, until=None, last=None, updates=entry.updates))
            running[number] = job
    while running:
        for number, entry in pool.wait():
            del running[number]
            search.take(number, entry, used=time.time() - clock.began)
