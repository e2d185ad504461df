"""Names under which something is written beside its place, and what a killed process left of it."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

UNFINISHED = ".tmp-"
OLD = "-old"  # of what stood in the place, while it is replaced


def unfinished(place: Path) -> Path:
    """A name beside the place that no process had before: numbers of processes come again."""
    return place.parent / f"{UNFINISHED}{place.name}-{os.getpid()}-{secrets.token_hex(4)}"


def leftovers(place: Path) -> Iterator[Path]:
    """What processes that are gone left of this place."""
    name = re.compile(rf"{re.escape(UNFINISHED + place.name)}-(\d{{1,18}})-[0-9a-f]{{8}}({OLD})?")
    if not place.parent.is_dir():
        return
    for path in place.parent.iterdir():
        match = name.fullmatch(path.name)
        if match and not is_another_process(int(match[1])):
            yield path


def remove_leftovers(place: Path) -> None:
    for path in leftovers(place):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def is_another_process(number: int) -> bool:
    """Whether another process of that number is alive, so that it may be writing."""
    if number == os.getpid():
        return False
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # there is one, and it is not ours
    return True
