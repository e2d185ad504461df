"""history.jsonl, which holds no clock and repeats byte for byte, and timing.jsonl, which does. Each
line carries the digest of the one before it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Any

from ensue.files.caps import HISTORY_FILE
from ensue.files.chain import chained, last_of
from ensue.files.checkpoint_state import read_history
from ensue.files.disk import CHECKPOINTS_STAND, disk_errors
from ensue.files.opening import append_to, read_plain, write_all
from ensue.training.rows import CheckpointSaved, Row, Update, Validated

EVERY = 10  # one of this many updates is recorded


NAMES = {Update: "update", Validated: "evaluation", CheckpointSaved: "saved"}  # in files


def recorded(row: Row) -> dict[str, Any] | None:
    """A row as the history has it; None for rows that are no part of it."""
    if isinstance(row, Update) and (row.update == 1 or row.update % EVERY == 0):
        found = {"row": NAMES[Update], **asdict(row)}
        return found if row.layers else {k: v for k, v in found.items() if k != "layers"}
    if isinstance(row, Validated):
        return {"row": NAMES[Validated], **asdict(row)}
    return None


def _appended(path: Path) -> FileIO:
    """The file, at its end: every write is with the system when it returns."""
    with disk_errors(path, 0, stands=CHECKPOINTS_STAND):
        return append_to(path)


class History:
    """Appends rows, and knows length and sha256 of all it holds."""

    def __init__(self, path: Path) -> None:
        self.path, self._hash = path, sha256()
        self._file = _appended(path)
        self.length, self._last = 0, ""

    def begin(self, mark: Mapping[str, Any] | None) -> None:
        """Cuts the file back to where a checkpoint saw it; None: to nothing."""
        length = mark["length"] if mark else 0
        kept = read_history(self.path, mark)[:length]
        with disk_errors(self.path, 0, stands=CHECKPOINTS_STAND):
            self._file.truncate(length)
        self._hash, self.length, self._last = sha256(kept), length, last_of(kept)

    def add(self, row: Row) -> None:
        value = recorded(row)
        if value is not None:
            line, self._last = chained(value, self._last)
            with disk_errors(self.path, len(line), stands=CHECKPOINTS_STAND):
                write_all(self._file, line)
            self._hash.update(line)
            self.length += len(line)

    def mark(self) -> dict[str, Any]:
        """What `begin` cuts back to; all rows so far are on the disk afterwards."""
        with disk_errors(self.path, self.length, stands=CHECKPOINTS_STAND):
            os.fsync(self._file.fileno())
        return {"length": self.length, "sha256": self._hash.hexdigest()}

    def close(self) -> None:
        self._file.close()


class Timing:
    """When rows came: seconds since the process began to train, and the clock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _appended(path)
        there = read_plain(path, HISTORY_FILE)
        self._start = b"" if there.endswith(b"\n") or not there else b"\n"  # of a line cut off
        self._last = last_of(there)
        self._began = time.monotonic()
        self._targets = 0.0

    def add(self, row: Row) -> None:
        if isinstance(row, Update):
            self._targets += row.targets
        if isinstance(row, CheckpointSaved) or recorded(row):
            assert isinstance(row, (Update, Validated, CheckpointSaved))
            value = {
                "row": NAMES[type(row)],
                "update": row.update,
                "seconds": round(time.monotonic() - self._began, 3),
                "targets": self._targets,
                "clock": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
            line, self._last = chained(value, self._last)
            with disk_errors(self.path, len(line), stands=CHECKPOINTS_STAND):
                write_all(self._file, self._start + line)
            self._start = b""

    def close(self) -> None:
        self._file.close()
