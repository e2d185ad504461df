"""Every loader of files that Ensue writes: a file of a model, a checkpoint or a run with other
bytes, and digests that fit them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

from hostile import CASES, resealed

import ensue
from ensue.files.atomic_folder import MANIFEST
from ensue.runs.run import list_runs
from ensue.training import checkpoint
from faults.readers import Reader

MODEL = CASES / "classify-words" / "run" / "model"
RUN = CASES / "classify-words" / "run"
CHECKPOINT = CASES / "classify-words" / "stopped" / "checkpoints" / "step-000007"


def _write(place: Path, like: Path, name: str, data: bytes) -> None:
    """A folder like another, with one file changed and sealed again; a manifest is not sealed."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    files = {path.name: path.read_bytes() for path in like.iterdir()}
    files = {**files, name: data} if name == MANIFEST else resealed({**files, name: data})
    for own, content in files.items():
        (place / own).write_bytes(content)


def _model(path: Path, name: str) -> None:
    place = path.parent / "model"
    _write(place, MODEL, name, path.read_bytes())
    ensue.load(place)


def _checkpoint(path: Path, name: str) -> None:
    place = path.parent / "checkpoints" / CHECKPOINT.name
    shutil.rmtree(place.parent, ignore_errors=True)
    _write(place, CHECKPOINT, name, path.read_bytes())
    checkpoint.newest(place.parent, lambda line: None)


def _run(path: Path, name: str) -> None:
    place = path.parent / "runs" / "run"
    shutil.rmtree(place.parent, ignore_errors=True)
    shutil.copytree(RUN, place)
    (place / name).write_bytes(path.read_bytes())
    list_runs(place.parent)
    ensue.load(place)


def _rows(like: Path, names: Sequence[str], load: Callable[[Path, str], None]) -> list[Reader]:
    kind = like.name if like is not CHECKPOINT else "checkpoint"
    return [
        Reader(
            f"{kind} {name}",
            f"new-{name}",
            ((like / name).read_bytes() or b"{}",),
            partial(load, name=name),
        )
        for name in names
    ]


@cache
def loaders() -> Sequence[Reader]:
    """A row for each file of a model, of a checkpoint and of a run."""
    files = sorted(path.name for path in RUN.iterdir() if path.is_file())
    return [
        *_rows(MODEL, sorted(path.name for path in MODEL.iterdir()), _model),
        *_rows(CHECKPOINT, sorted(path.name for path in CHECKPOINT.iterdir()), _checkpoint),
        *_rows(RUN, files, _run),
    ]
