"""Checkpoints: either complete or absent, and verified.

    checkpoints/step-000123/   weights.safetensors …  state.json  manifest.json
    checkpoints/damaged/       damaged checkpoints

Each is an atomic folder, read back before an older one is deleted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from ensue import __version__
from ensue.errors import EnsueError, RunError, TrainingError
from ensue.files.atomic_folder import (
    MANIFEST,
    Damaged,
    canonical,
    digest,
    read_files,
    remove,
    with_manifest,
    write_folder,
)
from ensue.files.chain import STATE, present
from ensue.files.disk import CHECKPOINTS_STAND, advice, disk_errors
from ensue.files.format import FORMAT, check_folder, check_format
from ensue.training.gradients import first_not_finite

KEPT = 2  # besides the best
DAMAGED = "damaged"

Tensors = Mapping[str, Mapping[str, Tensor]]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint. tensors: the tensors by file and name; scalars: the state of the training;
    facts: its settings, data and environment."""

    path: Path
    tensors: dict[str, dict[str, Tensor]]
    scalars: dict[str, Any]
    facts: dict[str, Any]


def name_of(update: int, final: bool = False) -> str:
    return f"step-{update:06d}" + ("-final" if final else "")


# --- writing -------------------------------------------------------------------------------


def contents(
    tensors: Tensors, scalars: Mapping[str, Any], facts: Mapping[str, Any]
) -> dict[str, bytes]:
    """The files of a checkpoint; raises TrainingError if a tensor is not finite."""
    files = {}
    for group, table in tensors.items():
        wrong = first_not_finite(table)
        if wrong is not None:
            raise TrainingError(
                f"{group} {wrong} holds a number that is not finite, so it is not saved; the last "
                "checkpoint stands. Next: lower the rate and run again"
            )
        # copies, since tied weights share their memory, which the format refuses
        plain = {
            name: t.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, t in table.items()
        }
        files[f"{group}.safetensors"] = safetensors.torch.save(plain)
    files[STATE] = canonical({"scalars": scalars, "facts": facts})
    return with_manifest(
        files,
        {
            "format": FORMAT,
            "ensue": __version__,
            "torch": torch.__version__,
            "threads": facts.get("threads"),
            "config": digest(canonical(facts.get("config"))),
            "data": facts.get("data"),
        },
    )


def save(
    folder: Path,
    update: int,
    tensors: Tensors,
    scalars: Mapping[str, Any],
    facts: Mapping[str, Any],
    *,
    final: bool = False,
    best: int | None = None,
) -> Path:
    """Writes a checkpoint, reads it back, and removes all others except the newest two and the
    checkpoint of update `best`."""
    files = contents(tensors, scalars, facts)
    place = folder / name_of(update, final)
    write_folder(place, files, stands=CHECKPOINTS_STAND)
    try:
        if read_files(place) != files:
            raise Damaged("what was read back differs from what was written")
    except Damaged as why:
        moved = set_aside(place)
        raise RunError(f"{place}: {why}; moved to {moved}. Check the disk") from None
    _prune(folder, best)
    return place


def _prune(folder: Path, best: int | None) -> None:
    """Removes all checkpoints except the newest two and the checkpoint of the best update."""
    names = present(folder)
    for path in names[:-KEPT]:
        if best is not None and path.name == name_of(best):
            continue
        try:
            remove(path)
        except OSError as error:
            raise RunError(
                f"{path}: cannot be removed: {error.strerror}, though newer ones have been saved. "
                f"Next: {advice(error)}, then run the same command again"
            ) from error


# --- reading -------------------------------------------------------------------------------


def read(place: Path) -> Checkpoint:
    """Reads and verifies a checkpoint. Raises Damaged if a byte differs, RunError if another
    version wrote it in another format."""
    check_folder(place)
    files = read_files(place)
    check_format(json.loads(files[MANIFEST]).get("format"), place)
    try:
        state = json.loads(files[STATE])
        scalars, facts = dict(state["scalars"]), dict(state["facts"])
        tensors = {
            name.removesuffix(".safetensors"): safetensors.torch.load(data)
            for name, data in files.items()
            if name.endswith(".safetensors")
        }
    except (KeyError, TypeError, ValueError, RecursionError, SafetensorError) as why:
        raise Damaged(f"it is not what Ensue writes ({type(why).__name__}: {why})") from None
    for name, tensor in tensors.items():
        if wrong := first_not_finite(tensor):
            raise Damaged(f"{name}: {wrong} holds NaN or infinity")
    return Checkpoint(place, tensors, scalars, facts)


@contextmanager
def used(place: Path) -> Iterator[None]:
    """Converts errors in reading a checkpoint's content into one: digests may be right although
    Ensue did not write the content."""
    try:
        yield
    except EnsueError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as why:
        raise RunError(
            f"{place}: this is not a checkpoint written by Ensue ({type(why).__name__}: {why}). "
            "Remove it to use the checkpoint before it"
        ) from None


def set_aside(place: Path) -> Path:
    """Moves a damaged checkpoint to a folder of its own."""
    aside = place.parent / DAMAGED
    with disk_errors(aside, 0):
        aside.mkdir(exist_ok=True)
        target, count = aside / place.name, 1
        while target.exists():
            count += 1
            target = aside / f"{place.name}-{count}"
        os.rename(place, target)
    return target


def newest(folder: Path, say: Callable[[str], None]) -> Checkpoint | None:
    """The newest intact checkpoint. Damaged ones are moved to damaged/, each with a message."""
    for place in reversed(present(folder)):
        try:
            return read(place)
        except Damaged as why:
            moved = set_aside(place)
            say(f"{place.name} is damaged: {why}; moved to {moved}; trying the one before")
    return None
