"""Files that lines are only ever added to. Each line carries the digest of itself and that of the
line before it: one that was changed, taken out or put in is noticed, as is what came before the
first such line, which version 0.1.0 wrote without. A line that a kill cut off ends without a line
break; the next one follows the last that is whole."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ensue.files.caps import HISTORY_FILE
from ensue.files.disk import disk_errors
from ensue.files.opening import append_to, read_plain, write_all

BEFORE, OWN = "before", "sha256"
DIGITS = 16  # of a digest


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:DIGITS]


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, allow_nan=False, ensure_ascii=False).encode()


def chained(value: Mapping[str, Any], before: str) -> tuple[bytes, str]:
    """The line of a value that follows the one with the digest `before`, and its own digest."""
    linked = {**value, BEFORE: before}
    own = _digest(_json(linked))
    return _json({**linked, OWN: own}) + b"\n", own


@dataclass
class Lines:
    """values: of the lines that are whole; torn: numbers of those that a kill cut off; wrong: of
    those that are not as written, or before which some are missing; digests: of the whole ones,
    the last of which the next line follows."""

    values: list[dict[str, Any]] = field(default_factory=list)
    torn: list[int] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, data: bytes) -> Lines:
        """As a file holds them; the first is line 1."""
        found, at, doubtful = cls(), 0, list[int]()
        for number, line in enumerate(data.splitlines(keepends=True), 1):
            value = _value(line)
            if value is None or (BEFORE not in value and OWN not in value and found.digests):
                doubtful.append(number)
            elif BEFORE not in value and OWN not in value:  # of version 0.1.0
                found.values.append(value)
            elif (own := _whole(value, line)) is None:
                doubtful.append(number)
            else:
                last = found.digests[-1] if found.digests else _start(data[:at])
                linked = value[BEFORE] == last
                found.torn += doubtful if linked else []
                found.wrong += [] if linked else doubtful or [number]
                doubtful = []
                found.digests.append(own)
                found.values.append({k: v for k, v in value.items() if k not in (BEFORE, OWN)})
            at += len(line)
        cut = doubtful[-1:] if data and not data.endswith(b"\n") else []
        found.torn += cut
        found.wrong += doubtful[: len(doubtful) - len(cut)]
        return found


def _start(earlier: bytes) -> str:
    """What the first line with a digest follows."""
    return _digest(earlier) if earlier else ""


def _value(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _whole(value: Mapping[str, Any], line: bytes) -> str | None:
    """The digest of a line that is as it was written."""
    own = {key: part for key, part in value.items() if key not in (BEFORE, OWN)}
    written, digest = chained(own, str(value.get(BEFORE)))
    return digest if written == line else None


def last_of(data: bytes) -> str:
    """What the next line of a file follows: its last line that has a digest, or all of it."""
    ends = data.rfind(b"\n") + 1
    line = data[data.rfind(b"\n", 0, max(ends - 1, 0)) + 1 : ends]
    value = _value(line) if line else None
    own = None if value is None else _whole(value, line)
    return own or _start(data + b"\n" * (ends < len(data)))


def add_line(path: Path, value: Mapping[str, Any]) -> tuple[Lines, str]:
    """Adds a line to a file that others may add to at the same time; gives all that it then
    holds, and the digest of this line."""
    with disk_errors(path, len(_json(value))), append_to(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        data = read_plain(path, HISTORY_FILE)
        start = b"\n" if data and not data.endswith(b"\n") else b""
        line, own = chained(value, last_of(data))
        write_all(file, start + line)
        os.fsync(file.fileno())
    return Lines.of(data + start + line), own
