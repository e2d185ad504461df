"""The worker process: runs jobs one after another until its parent process ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from ensue.jobs.job import as_json, called
from ensue.signals import Stopped, noted

PATIENCE = 60.0  # seconds for a job to write its checkpoint after the parent has ended
STOPPED = 128 + signal.SIGTERM


class Inbox:
    """The jobs that have arrived. If the parent ends, the running job is stopped as by SIGTERM."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._working = connection, False
        self._jobs: SimpleQueue[bytes | None] = SimpleQueue()
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        try:
            while True:
                self._jobs.put(self._connection.recv_bytes())
        except (EOFError, OSError):
            pass
        self._jobs.put(None)
        if self._working:
            if not noted():  # a second signal would prevent the checkpoint
                os.kill(os.getpid(), signal.SIGTERM)
            threading.Timer(PATIENCE, os._exit, [STOPPED]).start()

    def next(self) -> bytes | None:
        """The next job; None if there will be no more."""
        self._working = False
        job = self._jobs.get()
        self._working = True
        return job


def main() -> None:
    """Runs jobs from the connection whose number is on the command line. Ignores Ctrl-C and SIGHUP:
    the parent process handles them and decides about the jobs."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    inbox = Inbox(connection)

    def tell(progress: Any) -> None:
        connection.send_bytes(as_json({"progress": progress}))

    try:
        while (message := inbox.next()) is not None:
            connection.send_bytes(as_json(called(message, tell)))
    except (Stopped, OSError):  # an OSError of the connection: the parent has ended
        os._exit(STOPPED)
