"""The folder of a run: the names of its files, and its lock."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ensue.errors import RunError
from ensue.files.disk import advice, disk_errors
from ensue.files.opening import open_plain, read_plain, refuse_strange

MEMBERS, REFIT = "members", "refit"
PATIENCE = 1.0  # seconds until the holder of a lock has written its name


class RunFolder:
    """The files of a run.

    config.toml, data.json: what it follows from; history.jsonl, timing.jsonl, checkpoints/: how it
    went; learned/: what was learned beside the weights, until the model is there; model/,
    training.json, card.md: what came of it; evaluation.json, evaluation-rows/: how good it is;
    failure.json: why it ended before its time; lock: held while it is trained."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.config = self.path / "config.toml"
        self.data = self.path / "data.json"
        self.history = self.path / "history.jsonl"
        self.timing = self.path / "timing.jsonl"
        self.checkpoints = self.path / "checkpoints"
        self.learned = self.path / "learned"
        self.model = self.path / "model"
        self.training = self.path / "training.json"
        self.card = self.path / "card.md"
        self.evaluation = self.path / "evaluation.json"
        self.evaluation_rows = self.path / "evaluation-rows"
        self.failure = self.path / "failure.json"
        self.lock = self.path / "lock"

    def check(self) -> None:
        """RunError where a link, a FIFO or a device stands under one of the names: what is read
        or written by a name of the folder is inside of it."""
        files = (self.config, self.history, self.timing, self.lock)
        folders = (self.checkpoints, self.model, self.path / MEMBERS, self.path / REFIT)
        refuse_strange(dict.fromkeys(files, stat.S_IFREG) | dict.fromkeys(folders, stat.S_IFDIR))

    def create(self) -> None:
        self.check()
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"{self.path}: cannot be made a run folder: {error.strerror}. Next: "
                f"{advice(error)}, then run the same command again"
            ) from error

    def member(self, number: int) -> RunFolder:
        """The folder of another network of an ensemble, inside of this one."""
        return RunFolder(self.path / MEMBERS / str(number))

    def refit(self, number: int) -> RunFolder:
        """The folder of a network that learns again from all rows, inside of this one."""
        return RunFolder(self.path / REFIT / str(number))

    def members(self) -> list[RunFolder]:
        """This folder and those of the other networks that have been begun."""
        found, number = [self], 2
        while self.member(number).path.is_dir():
            found.append(self.member(number))
            number += 1
        return found

    def has_weights(self) -> bool:
        """Whether anything was learned here: a model, or a checkpoint of one of its networks."""
        folders = [own.checkpoints for own in self.members()]
        return self.model.is_dir() or any(any(own.glob("step-*")) for own in folders)

    def holder(self) -> str:
        """Who trains in it at this moment; "" where nobody does."""
        try:
            with open(self.lock, "rb") as file:
                if not file.read():  # emptied by whoever frees it
                    return ""
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._holder()
        except OSError:
            return ""
        return ""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Held for the moment in which files beside those of a training are exchanged."""
        with disk_errors(self.path, 0):
            handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Held by one process at a time; the system frees it when that process ends, however."""
        self.create()
        name = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
        with ExitStack() as stack:
            with disk_errors(self.lock, len(name)):
                opened = open_plain(self.lock, os.O_RDWR | os.O_APPEND | os.O_CREAT)
                file = stack.enter_context(opened)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise RunError(
                        f"{self.path} is in use by {self._holder()}. Wait for it, stop it, or "
                        "name another run folder"
                    ) from None
                file.truncate(0)
                file.write(name)
            try:
                yield
                self._still_there(file.fileno())
            finally:
                with suppress(OSError):  # a disk that fails now: the lock is free all the same
                    file.truncate(0)

    def _still_there(self, handle: int) -> None:
        """RunError where the folder was removed or replaced while the lock was held."""
        try:
            same = os.path.samestat(os.lstat(self.lock), os.fstat(handle))
        except OSError:
            same = False
        if not same:
            raise RunError(
                f"{self.path}: this folder was removed or replaced while the run was at work, and "
                "what was learned went with it. Next: run the same command again"
            )

    def _holder(self) -> str:
        """Who holds the lock; it writes its name a moment after it has it."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                name = json.loads(read_plain(self.lock))
                return f"process {name['pid']} on {name['host']}"
            except ValueError:
                time.sleep(0.01)
        return "another process"
