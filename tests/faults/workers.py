"""Processes that try cases one after another. One that dies or hangs costs its case and nothing
else."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import selectors
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from pathlib import Path

from faults.campaign import ABORT, HANG, TRACEBACK, Campaign, Outcome


class Worker:
    """A forked process; the numbers go to it, the outcomes come back. It leads a group of its own,
    so that the processes that it starts end with it."""

    def __init__(self, campaign: Campaign, work: Path, seed: int) -> None:
        theirs, self._numbers = os.pipe()
        self.outcomes, ours = os.pipe()
        self.place = Path(tempfile.mkdtemp(dir=work, prefix="worker-"))
        self.process = os.fork()
        if not self.process:
            os.close(self._numbers)
            os.close(self.outcomes)
            _serve(campaign, work, self.place, seed, theirs, ours)
        os.close(theirs)
        os.close(ours)
        self._campaign, self.number, self.until = campaign, -1, 0.0

    def ask(self, number: int) -> None:
        self.number, self.until = number, time.monotonic() + self._campaign.seconds
        os.write(self._numbers, f"{number}\n".encode())

    def answer(self) -> Outcome:
        """Of the case that it was asked; abort if the process has died instead."""
        data = b""
        while not data.endswith(b"\n"):
            piece = os.read(self.outcomes, 1 << 16)
            if not piece:
                status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
                self.process = 0
                return Outcome(ABORT, f"the process ended with {status}")
            data += piece
        return Outcome(*json.loads(data))

    def end(self) -> None:
        os.close(self._numbers)
        os.close(self.outcomes)
        if self.process:
            with suppress(ProcessLookupError):  # it does not lead a group yet
                os.killpg(self.process, signal.SIGKILL)
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            self.process = 0


def _serve(
    campaign: Campaign, work: Path, place: Path, seed: int, numbers: int, outcomes: int
) -> None:
    """What a worker does; never returns."""
    try:
        os.setsid()
        faulthandler.disable()  # a dump of every abort is of no use
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        case = campaign.begin(work, place)
        with os.fdopen(numbers) as stream:
            for line in stream:
                outcome = tried(case, campaign, seed, int(line))
                os.write(outcomes, json.dumps(outcome).encode() + b"\n")
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(70)


def tried(case: Callable[..., Outcome], campaign: Campaign, seed: int, number: int) -> Outcome:
    """A case; what it raises by itself is a fault of the code that is tried, or of the case."""
    try:
        return case(campaign.draw(seed, number))
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return Outcome(TRACEBACK, f"{type(error).__name__} at {where}: {str(error)[:300]}")


def outcomes(
    campaign: Campaign, work: Path, seed: int, numbers: Sequence[int], workers: int
) -> Generator[tuple[int, Outcome], None, None]:
    """Every number with what became of its case, as they end."""
    left, free = list(reversed(numbers)), selectors.DefaultSelector()

    def start() -> None:
        worker = Worker(campaign, work, seed)
        free.register(worker.outcomes, selectors.EVENT_READ, worker)
        worker.ask(left.pop())

    def stop(worker: Worker) -> None:
        free.unregister(worker.outcomes)
        worker.end()

    try:
        for _ in range(min(workers, len(left))):
            start()
        while free.get_map():
            for key, _ in free.select(timeout=1.0):
                worker: Worker = key.data
                number, outcome = worker.number, worker.answer()
                if worker.process and left:
                    worker.ask(left.pop())
                else:
                    stop(worker)
                    if left:
                        start()
                yield number, outcome
            for key in list(free.get_map().values()):
                worker = key.data
                if time.monotonic() > worker.until:
                    stop(worker)
                    if left:
                        start()
                    yield worker.number, Outcome(HANG, f"over {campaign.seconds:.0f} s")
    finally:
        for key in list(free.get_map().values()):
            stop(key.data)
