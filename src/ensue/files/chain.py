"""Append-only files. Each line has its own digest and the digest of the line before it: changed,
removed and inserted lines are detected. If a killed process truncated a line, it has no line break;
the next line then follows the last complete one."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ensue.errors import RunError
from ensue.files.atomic_folder import MANIFEST, Damaged, manifest_of, read_listed
from ensue.files.disk import disk_errors
from ensue.files.opening import HISTORY_FILE, append_to, read_plain, write_all

BEFORE, OWN = "before", "sha256"
DIGITS = 16  # of a digest


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:DIGITS]


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, allow_nan=False, ensure_ascii=False).encode()


def chained(value: Mapping[str, Any], before: str) -> tuple[bytes, str]:
    """The line for a value, which follows the line with the digest `before`; and the digest of the
    new line."""
    linked = {**value, BEFORE: before}
    checksum = _digest(_json(linked))
    return _json({**linked, OWN: checksum}) + b"\n", checksum


@dataclass
class Lines:
    """The lines of a file. values, digests: the values and digests of the complete lines; torn:
    numbers of truncated lines; wrong: numbers of lines that were changed, or that follow missing
    lines."""

    values: list[dict[str, Any]] = field(default_factory=list)
    torn: list[int] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, data: bytes) -> Lines:
        """Parses the content of a file; line numbers start at 1."""
        chain, at, doubtful, altered = cls(), 0, list[int](), set[int]()
        for number, line in enumerate(data.splitlines(keepends=True), 1):
            value = _value(line)
            plain = None if value is None else _whole(value, line)
            if value is None or plain is None:
                doubtful.append(number)
                if value is not None and line.endswith(b"\n"):  # a truncated line is not valid JSON
                    altered.add(number)
            else:
                last = chain.digests[-1] if chain.digests else _start(data[:at])
                linked = value[BEFORE] == last
                chain.torn += [k for k in doubtful if linked and k not in altered]
                wrong = [k for k in doubtful if k in altered] if linked else doubtful or [number]
                chain.wrong += wrong
                doubtful = []
                chain.digests.append(plain)
                chain.values.append({k: v for k, v in value.items() if k not in (BEFORE, OWN)})
            at += len(line)
        cut = doubtful[-1:] if data and not data.endswith(b"\n") else []
        chain.torn += cut
        chain.wrong += doubtful[: len(doubtful) - len(cut)]
        return chain


def _start(earlier: bytes) -> str:
    """The digest that the first line refers to."""
    return _digest(earlier) if earlier else ""


def _value(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _whole(value: Mapping[str, Any], line: bytes) -> str | None:
    """The digest of a line, if the line is unchanged."""
    fields = {key: part for key, part in value.items() if key not in (BEFORE, OWN)}
    written, digest = chained(fields, str(value.get(BEFORE)))
    return digest if written == line else None


def last_of(data: bytes) -> str:
    """The digest that the next line of a file refers to. It belongs to the last line with a digest,
    or to the whole file."""
    ends = data.rfind(b"\n") + 1
    line = data[data.rfind(b"\n", 0, max(ends - 1, 0)) + 1 : ends]
    value = _value(line) if line else None
    plain = None if value is None else _whole(value, line)
    return plain or _start(data + b"\n" * (ends < len(data)))


def add_line(path: Path, value: Mapping[str, Any]) -> tuple[Lines, str]:
    """Adds a line to a file that other processes may extend too. Returns the file's whole content,
    and the digest of this line."""
    with disk_errors(path, len(_json(value))), append_to(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        data = read_plain(path, HISTORY_FILE)
        start = b"\n" if data and not data.endswith(b"\n") else b""
        line, checksum = chained(value, last_of(data))
        write_all(file, start + line)
        os.fsync(file.fileno())
    return Lines.of(data + start + line), checksum


# --- a training that is not finished: what its checkpoints say, without reading the weights ------

STATE = "state.json"
NAME = re.compile(r"step-(\d{6,})(-final)?")
# Errors that reading an invalid checkpoint may raise.
FAULTS = (OSError, RunError, Damaged, ValueError, KeyError, TypeError, RecursionError)


def present(folder: Path) -> list[Path]:
    """The paths named like checkpoints, newest last."""
    values = []
    for path in folder.iterdir() if folder.is_dir() else ():
        match = NAME.fullmatch(path.name)
        if match:
            values.append((int(match[1]), bool(match[2]), path))
    return [path for _, _, path in sorted(values)]


def newest_scalars(folder: Path) -> dict[str, Any]:
    """The scalars of the newest valid checkpoint; {} if there is none. Problems of invalid
    checkpoints are reported when the run resumes."""
    for place in reversed(present(folder)):
        try:
            listed = manifest_of(read_plain(place / MANIFEST))["files"]
            return dict(json.loads(read_listed(place, listed, STATE))["scalars"])
        except FAULTS:
            continue
    return {}


def history_seen(folder: Path) -> dict[str, Any] | None:
    """The history's length and sha256 at the newest checkpoint; None if it has none."""
    mark = newest_scalars(folder).get("history")
    if isinstance(mark, dict) and isinstance(mark.get("length"), int) and "sha256" in mark:
        return mark
    return None


def read_history(path: Path, mark: Mapping[str, Any] | None) -> bytes:
    """The whole history; raises RunError unless it begins with the part that existed at a
    checkpoint. mark: length and sha256 of that part, or None."""
    try:
        data = read_plain(path, HISTORY_FILE)
    except FileNotFoundError:
        data = b""
    length = mark["length"] if mark else 0
    known = data[:length]
    if mark and (len(known) < length or sha256(known).hexdigest() != mark["sha256"]):
        raise RunError(
            f"{path}: its first {length:,} bytes have changed since the checkpoint was written "
            f"({len(known):,} bytes found). Restore the file, or start in another run folder"
        )
    return data
