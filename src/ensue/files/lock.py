"""The lock of a folder: a file that one process holds; the system frees it when that process ends,
however."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path

from ensue.errors import RunError
from ensue.files.disk import advice, disk_errors
from ensue.files.opening import open_plain, read_plain, write_all

PATIENCE = 1.0  # seconds until the holder of a lock has written its name
TRIES = 20  # of taking a lock whose file is removed at the same time


class Lock:
    """A lock that is held inside of `with`. made_with: folders that are made with it."""

    def __init__(self, place: Path, made_with: Sequence[Path] = ()) -> None:
        self.place, self._with = place, made_with
        self._made: list[Path] = []  # what was not there before, the innermost first
        self._file: FileIO | None = None

    def __enter__(self) -> Lock:
        name = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
        for attempt in range(1, TRIES + 1):
            try:
                self._make_folders()
            except OSError as error:
                if isinstance(error, FileNotFoundError) and attempt < TRIES:
                    continue  # whoever made the folder has just removed it
                raise self._not_made(error) from error
            with disk_errors(self.place, len(name)):
                try:
                    file = open_plain(self.place, os.O_RDWR | os.O_APPEND | os.O_CREAT)
                except FileNotFoundError:  # whoever made the folder has just removed it
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
            f"{self.place}: expected to take this lock, but others take and remove it again and "
            "again. Run the same command once more, or name another run folder"
        )

    def _make_folders(self) -> None:
        folder = self.place.parent
        wanted = [*self._with, self.place, folder, *folder.parents]
        self._made = [own for own in wanted if not os.path.lexists(own)]
        for own in (folder, *self._with):
            own.mkdir(parents=True, exist_ok=True)

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
        """RunError where the folder was removed or replaced while the lock was held."""
        assert self._file is not None
        if not _is_at(self._file, self.place):
            raise RunError(
                f"{self.place.parent}: this folder was removed or replaced while the run was at "
                "work, and what was learned went with it. Next: run the same command again"
            )

    def undo(self) -> None:
        """Removes what was made for the lock, while nobody else can have it."""
        assert self._file is not None
        with suppress(OSError):
            if not _is_at(self._file, self.place):
                return
            for own in self._made:
                if own in self._with:
                    shutil.rmtree(own)
                elif own == self.place:
                    own.unlink()
                else:
                    own.rmdir()

    def __exit__(self, *error: object) -> None:
        assert self._file is not None
        with suppress(OSError):  # a disk that fails now: the lock is free all the same
            self._file.truncate(0)
        self._file.close()


def _is_at(file: FileIO, place: Path) -> bool:
    try:
        return os.path.samestat(os.lstat(place), os.fstat(file.fileno()))
    except OSError:
        return False


def holder_of(place: Path) -> str:
    """Who holds a lock at this moment; "" where nobody does."""
    try:
        with open_plain(place) as file:
            if not file.read(1):  # emptied by whoever frees it
                return ""
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _name_of_holder(place)
    except OSError:
        return ""
    return ""


def _name_of_holder(place: Path) -> str:
    """It writes its name a moment after it has the lock."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            name = json.loads(read_plain(place))
            return f"process {int(name['pid'])} on {name['host']}"
        except (ValueError, TypeError, KeyError, OSError):
            time.sleep(0.01)
    return "another process"
