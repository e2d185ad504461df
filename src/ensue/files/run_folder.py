"""The folder of a run: the names of its files, and how it is held."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ensue.files.disk import disk_errors
from ensue.files.lock import Lock, holder_of
from ensue.files.opening import refuse_strange
from ensue.files.unfinished import sweep

MEMBERS, REFIT = "members", "refit"


class RunFolder:
    """The files of a run.

    config.toml, data.json: what it follows from; history.jsonl, timing.jsonl, checkpoints/: how it
    went; base/: a copy of what it began from; learned/: what was learned beside the weights, until
    the model is there; model/, training.json, card.md: what came of it; evaluation.json,
    evaluation-rows/: how good it is; failure.json: why it ended before its time; lock: held while
    it is trained."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.config = self.path / "config.toml"
        self.data = self.path / "data.json"
        self.history = self.path / "history.jsonl"
        self.timing = self.path / "timing.jsonl"
        self.checkpoints = self.path / "checkpoints"
        self.base = self.path / "base"
        self.learned = self.path / "learned"
        self.model = self.path / "model"
        self.training = self.path / "training.json"
        self.card = self.path / "card.md"
        self.evaluation = self.path / "evaluation.json"
        self.evaluation_rows = self.path / "evaluation-rows"
        self.failure = self.path / "failure.json"
        self.lock = self.path / "lock"
        self._held = False

    def check(self) -> None:
        """RunError where a link, a FIFO or a device stands under one of the names: what is read
        or written by a name of the folder is inside of it."""
        folders = [self.checkpoints, self.base, self.learned, self.model, self.evaluation_rows]
        folders += [self.path / MEMBERS, self.path / REFIT]
        files = [own for own in self._named() if own not in folders]
        refuse_strange(dict.fromkeys(files, stat.S_IFREG) | dict.fromkeys(folders, stat.S_IFDIR))

    def check_weights(self) -> None:
        """The same for what a model is read from."""
        read = [self.checkpoints, self.learned, self.model, self.path / MEMBERS]
        refuse_strange(dict.fromkeys(read, stat.S_IFDIR))

    def _named(self) -> list[Path]:
        """Every name of the folder that a run uses."""
        return [own for own in vars(self).values() if isinstance(own, Path) and own != self.path]

    @classmethod
    def lent(cls, path: Path | str) -> RunFolder:
        """A folder that is held by the process which this one works for."""
        found = cls(path)
        found._held = True
        return found

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
        return holder_of(self.lock)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Held for the moment in which files beside those of a training are exchanged."""
        self.check()
        with disk_errors(self.path, 0):
            handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Held by one process, from its first look at the folder to the last file that it writes.
        Inside of it this folder may ask for it again. A folder in which nothing was written is
        afterwards as it was before."""
        if self._held:
            yield
            return
        self.check()
        with Lock(self.lock, made_with=[self.checkpoints]) as lock:
            self._held = True
            try:
                sweep(self.path)
                yield
                lock.check()
            finally:
                self._held = False
                if not self._begun():
                    lock.undo()

    def _begun(self) -> bool:
        """Whether there is anything of a run."""
        known = [*self._named(), self.path / MEMBERS, self.path / REFIT]
        there = [own for own in known if own not in (self.checkpoints, self.lock)]
        return any(map(os.path.lexists, there)) or any(self.checkpoints.glob("step-*"))
