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
# the place's name and the number of the process; 0.1.0 ended names there
NAMES = tuple(
    re.compile(rf"{re.escape(UNFINISHED)}(.+)-(\d{{1,18}}){end}", re.DOTALL)
    for end in (rf"-[0-9a-f]{{8}}(?:{OLD})?", "")
)


def unfinished(place: Path) -> Path:
    """A name beside the place that no process had before: numbers of processes come again."""
    return place.parent / f"{UNFINISHED}{place.name}-{os.getpid()}-{secrets.token_hex(4)}"


def leftovers(place: Path) -> Iterator[Path]:
    """What processes that are gone left of this place."""
    for path, name in _left_in(place.parent):
        if name == place.name:
            yield path


def remove_leftovers(place: Path) -> None:
    for path in leftovers(place):
        _remove(path)


def sweep(folder: Path) -> list[str]:
    """Removes what processes that are gone left in a folder, of any place, and names it; not what
    was moved away in order to be replaced and is still missing."""
    removed = []
    for path, name in sorted(_left_in(folder)):
        if not path.name.endswith(OLD) or os.path.lexists(folder / name):
            _remove(path)
            removed.append(path.name)
    return removed


def _left_in(folder: Path) -> Iterator[tuple[Path, str]]:
    """What is left, and the name of the place that it is of."""
    for path in folder.iterdir() if folder.is_dir() else ():
        match = next(filter(None, (own.fullmatch(path.name) for own in NAMES)), None)
        if match and not is_another_process(int(match[2])):
            yield path, match[1]


def _remove(path: Path) -> None:
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
