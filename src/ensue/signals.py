"""SIGTERM, Ctrl-C and SIGHUP: the run finishes its update, writes a checkpoint and ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(Exception):
    """A signal has ended the run; the same command continues it. update: the last update, None if
    several runs were stopped; code: exit code for the shell."""

    def __init__(self, number: int, update: int | None = None) -> None:
        name = signal.Signals(number).name
        after = "" if update is None else f" after update {update}"
        super().__init__(f"stopped by {name}{after}; the same command continues it")
        self.signal, self.update, self.code = number, update, 128 + number


class Interrupted(BaseException):
    """Raised at once on a signal, if nothing would be lost."""


class Signals:
    """While entered, records the first signal. A second signal, or one inside `harmless`, raises
    Interrupted at once."""

    def __init__(self) -> None:
        self.number = 0
        self._harmless = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        again = bool(self.number)
        self.number = number
        if again or self._harmless:
            raise Interrupted

    @contextmanager
    def harmless(self, really: bool = True) -> Iterator[None]:
        """Marks a block in which an interruption loses nothing, because all results are on the
        disk."""
        if really and self.number:
            raise Interrupted
        self._harmless = really
        try:
            yield
        finally:
            self._harmless = False


def noted() -> bool:
    """Whether a signal has been recorded, to be handled after the current update."""
    handler = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return isinstance(handler, Signals) and bool(handler.number)
