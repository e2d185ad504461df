"""What checkpoints say of a training that is not finished, without reading the weights."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ensue.errors import RunError
from ensue.files.atomic_folder import MANIFEST, Damaged, manifest_of, read_listed
from ensue.files.caps import HISTORY_FILE
from ensue.files.opening import read_plain

STATE = "state.json"
NAME = re.compile(r"step-(\d{6,})(-final)?")
# What reading one that is not as Ensue writes it may end in.
FAULTS = (OSError, RunError, Damaged, ValueError, KeyError, TypeError, RecursionError)


def present(folder: Path) -> list[Path]:
    """What is called a checkpoint, the newest last."""
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        match = NAME.fullmatch(path.name)
        if match:
            found.append((int(match[1]), bool(match[2]), path))
    return [path for _, _, path in sorted(found)]


def newest_scalars(folder: Path) -> dict[str, Any]:
    """Where the training stood at the newest checkpoint whose state is as written; {} where there
    is none: resuming says what is wrong with the others."""
    for place in reversed(present(folder)):
        try:
            listed = manifest_of(read_plain(place / MANIFEST))["files"]
            return dict(json.loads(read_listed(place, listed, STATE))["scalars"])
        except FAULTS:
            continue
    return {}


def history_seen(folder: Path) -> dict[str, Any] | None:
    """What the newest checkpoint saw of the history: see `read_history`."""
    mark = newest_scalars(folder).get("history")
    if isinstance(mark, dict) and isinstance(mark.get("length"), int) and "sha256" in mark:
        return mark
    return None


def read_history(path: Path, mark: Mapping[str, Any] | None) -> bytes:
    """All of a history; RunError where it does not begin with what a checkpoint saw of it. mark:
    length and sha256 of that; None where nothing is known."""
    try:
        data = read_plain(path, HISTORY_FILE)
    except FileNotFoundError:
        data = b""
    length = mark["length"] if mark else 0
    seen = data[:length]
    if mark and (len(seen) < length or sha256(seen).hexdigest() != mark["sha256"]):
        raise RunError(
            f"{path}: its first {length:,} bytes are not those that the checkpoint saw "
            f"({len(seen):,} bytes found). Put the file back as it was, or start in another "
            "run folder"
        )
    return data
