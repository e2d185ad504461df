"""Every loader of files that Ensue writes: a file of a model, a checkpoint or a run with other
bytes, and digests that fit them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

from hostile import resealed
from toy_runs import stopped_run, toy_run

import ensue
from ensue.files.atomic_folder import MANIFEST
from ensue.runs.run import list_runs
from ensue.training import checkpoint
from faults.readers import Reader

CASE = "classify-words"


def _run_folder() -> Path:
    return toy_run(CASE) / "run"


def _checkpoint_folder() -> Path:
    """The newest of a run that was stopped."""
    return max(stopped_run(CASE).glob("stopped/checkpoints/step-*"))


def _write(place: Path, like: Path, name: str, data: bytes) -> None:
    """A folder like another, with one file changed and sealed again; a manifest is not sealed."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    files = {path.name: path.read_bytes() for path in like.iterdir()}
    files = {**files, name: data} if name == MANIFEST else resealed({**files, name: data})
    for file_name, content in files.items():
        (place / file_name).write_bytes(content)


def _model(path: Path, name: str) -> None:
    place = path.parent / "model"
    _write(place, _run_folder() / "model", name, path.read_bytes())
    ensue.load(place)


def _checkpoint(path: Path, name: str) -> None:
    like = _checkpoint_folder()
    place = path.parent / "checkpoints" / like.name
    shutil.rmtree(place.parent, ignore_errors=True)
    _write(place, like, name, path.read_bytes())
    checkpoint.newest(place.parent, lambda line: None)


def _run(path: Path, name: str) -> None:
    place = path.parent / "runs" / "run"
    shutil.rmtree(place.parent, ignore_errors=True)
    shutil.copytree(_run_folder(), place)
    (place / name).write_bytes(path.read_bytes())
    list_runs(place.parent)
    ensue.load(place)


def _rows(kind: str, like: Path, load: Callable[[Path, str], None]) -> list[Reader]:
    """A row for each file of a folder."""
    names = sorted(path.name for path in like.iterdir() if path.is_file())
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
    run = _run_folder()
    return [
        *_rows("model", run / "model", _model),
        *_rows("checkpoint", _checkpoint_folder(), _checkpoint),
        *_rows("run", run, _run),
    ]
