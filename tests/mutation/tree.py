"""Private copies of the project, in which tests run against changed code.

Nothing that a mutant does reaches the working tree, the user's home or the user's cache of
compiled kernels: a copy has its own of each."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutation.mutations import Mutation

LEFT_OUT = shutil.ignore_patterns(
    ".git",
    ".venv*",
    ".mutants",
    ".faults",
    ".hypothesis",
    ".*_cache",
    "__pycache__",
    "build",
    "dist",
)
MOST_MEMORY = 12 << 30  # bytes: a mutant may ask for without end
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
NOT_FOUND = 4  # pytest's exit code: tests that were asked for by name do not exist
NO_TESTS = 5


@dataclass(frozen=True)
class Ending:
    """How a run of tests ended: `caught`, `timeout`, `survived` or `not reached`, the test that
    failed, and how many slower tests were left out."""

    outcome: str
    test: str = ""
    left_out: int = 0


def limit_memory() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, most))


class Tree:
    """A copy of a project below `folder`, and the processes that run in it."""

    def __init__(self, project: Path, folder: Path, cache: Path | None = None) -> None:
        self.root = folder / "tree"
        self.folder = folder
        self.cache = cache
        self.process: subprocess.Popen[bytes] | None = None
        self.changes = 0
        shutil.copytree(project, self.root, ignore=LEFT_OUT)
        self.clean()

    def clean(self) -> None:
        """An empty home and an empty temporary folder; kernels as they were in the beginning."""
        for name in ("home", "temporary", "cache"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in ("home", "temporary"):
            (self.folder / name).mkdir()
        if self.cache is not None and self.cache.exists():
            shutil.copytree(self.cache, self.folder / "cache")
        else:
            (self.folder / "cache").mkdir()

    def environment(self, source: str) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(self.root / source),
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "temporary"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "OMP_NUM_THREADS": "1",
        }

    def run(self, command: Sequence[str], seconds: float, **environment: str) -> tuple[int, str]:
        """Exit code and output; a process that takes longer is killed with all it started,
        and has the exit code −9."""
        log = self.folder / "output.txt"  # no pipe: a test's leftover process would keep it open
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=limit_memory,
            )
            try:
                code = self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = -signal.SIGKILL
            self.stop()
            self.process.wait()
        return code, log.read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def run_tests(self, tests: Sequence[str], seconds: float, source: str) -> Ending:
        """Runs these tests until one fails."""
        listing = self.folder / "tests.txt"
        listing.write_text("".join(f"{test}\n" for test in tests), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-rfE", "--tb=no"]
        command += ["-p", "no:cacheprovider", "-p", "no:xdist", f"@{listing}"]
        code, output = self.run(command, seconds, **self.environment(source))
        without = list(dict.fromkeys(test.partition("[")[0] for test in tests))
        if code == NOT_FOUND and without != list(tests):
            return self.run_tests(
                without, seconds, source
            )  # names that the mutant itself has changed
        if code in (0, NO_TESTS):
            return Ending("survived")
        failed = FAILED.search(output)
        last = (output.strip().splitlines() or ["no output"])[-1]
        named = failed[1] if failed else f"exit code {code}: {last[:200]}"
        return Ending("timeout" if code == -signal.SIGKILL else "caught", named)

    def change(self, mutation: Mutation) -> tuple[Path, bytes, int]:
        """Makes a mutation; gives what `restore` needs. Every change has a time of its own, by
        which Python knows that what it compiled before is out of date."""
        path = self.root / mutation.file
        original, stamp = path.read_bytes(), path.stat().st_mtime_ns
        self.changes += 1
        path.write_bytes(mutation.applied(original))
        later = int(time.time()) + 2 * self.changes
        os.utime(path, (later, later))
        return path, original, stamp

    def restore(self, path: Path, original: bytes, stamp: int) -> None:
        path.write_bytes(original)
        os.utime(path, ns=(stamp, stamp))
        self.clean()
