"""What is touched outside of a case's own folder: seen by an audit hook, and by canaries."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ensue.jobs.local import START

# Names of audit events, and which of their arguments are paths.
WRITES = {
    "os.rename": (0, 1),
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.mkdir": (0,),
    "os.link": (0, 1),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.utime": (0,),
    "shutil.rmtree": (0,),
}
RUNS = {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "socket.connect"}
COMPILERS = {"c++", "g++", "clang++"}  # that kernels of cells are made with
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """Every event outside of the `allowed` folders while a case runs; an audit hook cannot be
    taken out again, so there is one for each process."""

    def __init__(self) -> None:
        self._allowed: tuple[str, ...] = ()
        self._canaries = ""
        self.events: list[str] = []
        self._on = False
        sys.addaudithook(self._hear)

    @contextmanager
    def over(self, allowed: Sequence[Path], canaries: Path) -> Iterator[list[str]]:
        """The list of what was touched, which fills as it happens. canaries: a folder that nothing
        may read either."""
        self._allowed = tuple(f"{os.path.realpath(path)}{os.sep}" for path in (*allowed, "/dev"))
        self._canaries, self.events = f"{os.path.realpath(canaries)}{os.sep}", []
        before, self._on = _content(canaries), True
        try:
            yield self.events
        finally:
            self._on = False
        if _content(canaries) != before:
            self.events.append(f"{canaries} is not what it was")

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if event == "open":
            self._opened(*arguments)
        elif event in RUNS and not _expected(arguments):
            self.events.append(f"{event} {arguments[:2]}"[:200])
        elif event in WRITES:
            for k in WRITES[event]:
                self._written(event, arguments[k])

    def _opened(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int):
            return
        if flags & WRITING:
            self._written("open", path, flags)
        elif self._real(path, flags).startswith(self._canaries):
            self.events.append(f"read {os.fsdecode(path)}")

    def _written(self, event: str, path: Any, flags: int = os.O_NOFOLLOW) -> None:
        if not isinstance(path, int):
            real = self._real(path, flags)
            if real.startswith(self._canaries) or not f"{real}{os.sep}".startswith(self._allowed):
                self.events.append(f"{event} {real}")

    def _real(self, path: Any, flags: int) -> str:
        """Where a path leads; the last link is not followed where the call does not."""
        text = os.fsdecode(path)
        if flags & os.O_NOFOLLOW:
            head, tail = os.path.split(os.path.abspath(text))
            return os.path.join(os.path.realpath(head), tail)
        return os.path.realpath(text)


def _expected(arguments: tuple[Any, ...]) -> bool:
    """Whether a process is a compiler, or a worker that Ensue starts."""
    begin = [sys.executable, "-P", "-c", START]
    worker = len(arguments) > 1 and list(arguments[1] or ())[: len(begin)] == begin
    return worker or os.path.basename(str(arguments[0])) in COMPILERS


def _content(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() if p.is_file() else b"" for p in sorted(folder.iterdir())}
