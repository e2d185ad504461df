"""The folder of a run: the names of its files, and its lock."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from ensue.errors import RunError
from ensue.files.disk import advice, disk_errors, sweep
from ensue.files.format import check_folder
from ensue.files.opening import open_plain, read_plain, refuse_strange, write_all

PATIENCE = 1.0  # seconds to wait for the name of a lock's holder
TRIES = 20  # attempts to take a lock whose file is removed at the same time


class Lock:
    """A lock that is held inside of `with`. made_with: folders created with it."""

    def __init__(self, place: Path, made_with: Sequence[Path] = ()) -> None:
        self.place, self._with = place, made_with
        self._made: list[Path] = []  # created folders, innermost first
        self._file: FileIO | None = None

    def __enter__(self) -> Lock:
        name = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
        for attempt in range(1, TRIES + 1):
            try:
                self._make_folders()
            except OSError as error:
                if self._removed_meanwhile(error) and attempt < TRIES:
                    continue
                raise self._not_made(error) from error
            with disk_errors(self.place, len(name)):
                try:
                    file = open_plain(self.place, os.O_RDWR | os.O_APPEND | os.O_CREAT)
                except FileNotFoundError:  # its creator has just removed the folder
                    continue
                try:
                    self._take(file)
                    if _is_at(file, self.place):
                        self._file = file
                        file.truncate(0)
                        write_all(file, name)
                        return self
                except BaseException:
                    file.close()
                    raise
            file.close()  # its last holder has removed it
        raise RunError(
            f"{self.place}: expected to take this lock, but other processes keep taking and "
            "removing it. Run the same command once more, or name another run folder"
        )

    def _make_folders(self) -> None:
        folder = self.place.parent
        folders = [*self._with, self.place, folder, *folder.parents]
        self._made = [path for path in folders if not os.path.lexists(path)]
        for path in (folder, *self._with):
            path.mkdir(parents=True, exist_ok=True)

    def _removed_meanwhile(self, error: OSError) -> bool:
        """Whether another process removed a folder while this one created it. `mkdir` reports an
        existing folder if it disappears before the check of its type."""
        if isinstance(error, FileExistsError):
            return not any(os.path.isfile(path) for path in (self.place.parent, *self._with))
        return isinstance(error, FileNotFoundError)

    def _not_made(self, error: OSError) -> RunError:
        return RunError(
            f"{self.place.parent}: cannot be made a run folder: {error.strerror}. Next: "
            f"{advice(error)}, then run the same command again"
        )

    def _take(self, file: FileIO) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(
                f"{self.place.parent} is in use by {_name_of_holder(self.place)}. Wait for it, "
                "stop it, or name another run folder"
            ) from None

    def check(self) -> None:
        """Raises RunError if the folder was removed or replaced while the lock was held."""
        assert self._file is not None
        if not _is_at(self._file, self.place):
            raise RunError(
                f"{self.place.parent}: this folder was removed or replaced while the run was "
                "training, and what was learned is lost. Next: run the same command again"
            )

    def undo(self) -> None:
        """Removes the files of the lock while this process holds it."""
        assert self._file is not None
        with suppress(OSError):
            if not _is_at(self._file, self.place):
                return
            for path in self._made:
                if path in self._with:
                    shutil.rmtree(path)
                elif path == self.place:
                    path.unlink()
                else:
                    path.rmdir()

    def __exit__(self, *error: object) -> None:
        assert self._file is not None
        with suppress(OSError):  # even if the disk fails, the lock is released
            self._file.truncate(0)
        self._file.close()


def _is_at(file: FileIO, place: Path) -> bool:
    try:
        return os.path.samestat(os.lstat(place), os.fstat(file.fileno()))
    except OSError:
        return False


def holder_of(place: Path) -> str:
    """The current holder of a lock; "" if it is free."""
    try:
        with open_plain(place) as file:
            if not file.read(1):  # emptied when the lock is released
                return ""
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _name_of_holder(place)
    except OSError:
        return ""
    return ""


def _name_of_holder(place: Path) -> str:
    """The name of the holder, which it writes shortly after it gets the lock."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            name = json.loads(read_plain(place))
            return f"process {int(name['pid'])} on {name['host']}"
        except (ValueError, TypeError, KeyError, OSError):
            time.sleep(0.01)
    return "another process"


def _steps_in(checkpoints: Path) -> list[Path]:
    """The checkpoints in a folder, which another process may remove meanwhile."""
    try:
        return list(checkpoints.glob("step-*"))
    except FileNotFoundError:
        return []


MEMBERS, REFIT = "members", "refit"


class RunFolder:
    """The files of a run.

    config.toml, data.json: the configuration and facts of the data; history.jsonl, timing.jsonl,
    checkpoints/: the course of the training; base/: a copy of the model it began from; learned/:
    what was learned in addition to the weights, until model/ exists; model/, training.json,
    card.md: the result; evaluation.json, evaluation-rows/: scores; failure.json: why the run
    failed; lock: held while it is trained."""

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
        self._locked = False

    def check(self) -> None:
        """Raises RunError if one of its files is a link, a FIFO or a device, so that reads and
        writes stay inside the folder; also if its format is of another version."""
        folders = [self.checkpoints, self.base, self.learned, self.model, self.evaluation_rows]
        folders += [self.path / MEMBERS, self.path / REFIT]
        files = [path for path in self._named() if path not in folders]
        refuse_strange(dict.fromkeys(files, stat.S_IFREG) | dict.fromkeys(folders, stat.S_IFDIR))
        self._check_format()

    def check_weights(self) -> None:
        """`check` for the files that a model is read from."""
        read = [self.checkpoints, self.learned, self.model, self.path / MEMBERS]
        refuse_strange(dict.fromkeys(read, stat.S_IFDIR))
        self._check_format()

    def _check_format(self) -> None:
        """Raises RunError if a part of the run has the format of another version."""
        places = [self.model, self.learned]
        for member in self.members():
            places += _steps_in(member.checkpoints)
        for place in places:
            check_folder(place)

    def _named(self) -> list[Path]:
        """All paths in the folder that a run uses."""
        return [
            path for path in vars(self).values() if isinstance(path, Path) and path != self.path
        ]

    @classmethod
    def lent(cls, path: Path | str) -> RunFolder:
        """A folder that is locked by the parent of this worker process."""
        folder = cls(path)
        folder._locked = True
        return folder

    def member(self, number: int) -> RunFolder:
        """The subfolder of a further ensemble member."""
        return RunFolder(self.path / MEMBERS / str(number))

    def refit(self, number: int) -> RunFolder:
        """The subfolder of a network that is trained again on all rows."""
        return RunFolder(self.path / REFIT / str(number))

    def members(self) -> list[RunFolder]:
        """This folder and the folders of the other members that have begun."""
        folders, number = [self], 2
        while self.member(number).path.is_dir():
            folders.append(self.member(number))
            number += 1
        return folders

    def has_weights(self) -> bool:
        """Whether the folder has a model, or a checkpoint of a member."""
        folders = [member.checkpoints for member in self.members()]
        return self.model.is_dir() or any(map(_steps_in, folders))

    def holder(self) -> str:
        """The process that currently trains in the folder; "" if there is none."""
        return holder_of(self.lock)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Locks the folder while files that no training writes are replaced."""
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
        """Locks the folder for one process, from its first read to its last write. The lock is
        re-entrant. A folder in which nothing was written is restored."""
        if self._locked:
            yield
            return
        self.check()
        with Lock(self.lock, made_with=[self.checkpoints]) as lock:
            self._locked = True
            try:
                sweep(self.path)
                yield
                lock.check()
            finally:
                self._locked = False
                if not self._begun():
                    lock.undo()

    def _begun(self) -> bool:
        """Whether the folder has any file of a run."""
        known = [*self._named(), self.path / MEMBERS, self.path / REFIT]
        present = [path for path in known if path not in (self.checkpoints, self.lock)]
        return any(map(os.path.lexists, present)) or bool(_steps_in(self.checkpoints))
