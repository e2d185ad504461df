"""The files of a folder in memory, so that it can be put back as it was."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path


class Snapshot:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
        self._folders = [p for p in folder.rglob("*") if p.is_dir()]

    def below(self, name: str) -> list[Path]:
        """The files of one part that are not empty, by their names."""
        return [p for p, data in self.files.items() if (self.folder / name) in p.parents and data]

    def restore(self) -> None:
        known = {*self.files, *self._folders}
        for path in sorted(self.folder.rglob("*")):
            if path not in known and path.parent in (*self._folders, self.folder):
                _remove(path)
        for kept_folder in self._folders:
            if kept_folder.is_symlink() or not kept_folder.is_dir():
                _remove(kept_folder)
                kept_folder.mkdir(parents=True)
        for path, data in self.files.items():
            if not _holds(path, data):
                _remove(path)
                path.write_bytes(data)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _holds(path: Path, data: bytes) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return (
        stat.S_ISREG(status.st_mode) and status.st_size == len(data) and path.read_bytes() == data
    )
