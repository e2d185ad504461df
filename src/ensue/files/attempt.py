"""Failed trainings: the folder is restored if nothing was learned yet; later failures are
recorded."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ensue.errors import RunError
from ensue.files.atomic_folder import Damaged, sealed, unsealed
from ensue.files.disk import write_whole
from ensue.files.opening import read_plain
from ensue.files.run_folder import MEMBERS, REFIT, RunFolder

LONGEST = 300  # characters of a reason


# --- why a run ended before its time ---------------------------------------------------------


@dataclass(frozen=True)
class Failure:
    """A failed training. reason: the first line of the error; when: its time, UTC."""

    reason: str
    when: str


def note_failure(folder: RunFolder, error: BaseException) -> None:
    """Records why a training failed, if the folder can be written to."""
    reason = (str(error).partition("\n")[0] or type(error).__name__)[:LONGEST]
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with suppress(OSError, RunError):
        write_whole(folder.failure, sealed({"reason": reason, "when": when}))


def failure_of(folder: RunFolder) -> Failure | None:
    """Why a run failed, if it did."""
    try:
        content = unsealed(read_plain(folder.failure), folder.failure.name)
        return Failure(str(content["reason"]), str(content["when"]))
    except FileNotFoundError:
        return None
    except (OSError, Damaged, KeyError) as why:
        raise RunError(f"{folder.failure}: cannot be read: {why}; remove it") from None


def add_note(error: BaseException, note: str) -> None:
    """Adds a line after the message of an error, once."""
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


# --- as it was before ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Before:
    """The state of a folder before a training. existing: the files of a run in the folder; config:
    the content of its configuration."""

    existing: frozenset[Path]
    config: bytes | None

    @classmethod
    def of(cls, folder: RunFolder) -> _Before:
        files = frozenset(path for path in _files(folder) if os.path.lexists(path))
        return cls(files, read_plain(folder.config) if folder.config in files else None)

    def restore(self, folder: RunFolder) -> None:
        for path in _files(folder):
            if path not in self.existing and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path not in self.existing:
                path.unlink(missing_ok=True)
        if self.config is not None and read_plain(folder.config) != self.config:
            write_whole(folder.config, self.config)


def _files(folder: RunFolder) -> list[Path]:
    """The files that a training writes before anything is learned."""
    folders = [folder.path / MEMBERS, folder.path / REFIT, folder.checkpoints]
    folders += [folder.base, folder.learned]
    return [folder.config, folder.history, folder.timing, *folders, folder.failure]


@contextmanager
def restored(folder: RunFolder, stops: type[Exception]) -> Iterator[None]:
    """Restores the folder if the block fails before anything was learned: a new folder is removed,
    an existing configuration is kept. The folder is locked inside the block. stops: an exception
    that is not a failure, because the training will be resumed."""
    with folder.locked():
        before = _Before.of(folder)
        try:
            yield
        except Exception as error:
            if not isinstance(error, stops) and not folder.has_weights():
                with suppress(OSError, RunError):
                    before.restore(folder)
            raise
