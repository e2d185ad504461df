"""`CellPermission`: which Python files of cells may run.

Naming a cell in a file (a `CellReference`) runs nothing. Only the user gives permission: by
`--cell`, `--set model.cell=…`, `--trust-cell`, or a cell named in Python. A permission covers a
file by its path and its sha256, and the bytes that run are the bytes that were compared.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from ensue.errors import OptionError, RunError


@dataclass(frozen=True)
class CellPermission:
    """Permission to run Python files. files: the sha256 of each file that may run, by absolute
    path; neighbours: whether these files may import the modules next to them, as files that the
    user named may."""

    files: Mapping[str, str] = field(default_factory=dict)
    neighbours: bool = False

    @classmethod
    def named(cls, files: Iterable[str]) -> CellPermission:
        """The permission for files that the user named, in their current version."""
        return cls({_absolute(file): _digest(_read(file)) for file in files}, neighbours=True)

    @classmethod
    def trusted(cls, digests: Mapping[str, str]) -> CellPermission:
        """The permission for files that a folder names and the user trusts, each with the sha256
        that the user was shown. They may not import the modules next to them."""
        return cls({_absolute(file): digest for file, digest in digests.items()})

    def __or__(self, other: CellPermission) -> CellPermission:
        """Permission for the files of both; neighbours are permitted only if both permit them."""
        return CellPermission({**self.files, **other.files}, self.neighbours and other.neighbours)

    def source(self, file: str) -> bytes:
        """The bytes of a file that may run; raises an error for other files."""
        expected = self.files.get(_absolute(file))
        if expected is None:
            raise RunError(
                f"cell: {file} is named by a saved file. Saved files run no code by themselves. "
                f"Nothing was run. Read {file} first; to allow it, name the cell yourself: "
                "--set model.cell=FILE:NAME, or --trust-cell for the cells of a run"
            )
        source = _read(file)
        if _digest(source) != expected:
            raise RunError(
                f"cell: {file} has changed since it was allowed to run: expected sha256 "
                f"{expected}, got {_digest(source)}. Nothing was run. Read the file, then repeat "
                "the command"
            )
        return source


NO_PERMISSION = CellPermission()


def _absolute(file: str) -> str:
    return os.path.abspath(file)


def _digest(source: bytes) -> str:
    return sha256(source).hexdigest()


def _read(file: str) -> bytes:
    path = Path(file)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "there is no such file"
        raise OptionError(f"{path}: {what}; expected a Python file with a cell in it")
    return path.read_bytes()
