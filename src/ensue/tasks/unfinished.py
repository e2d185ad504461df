"""Unfinished training: everything learned except the weights is saved from the first update on,
so that the best checkpoint can be loaded as a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import safetensors.torch
from torch import Tensor

from ensue.errors import RunError
from ensue.escape import in_shell
from ensue.files.atomic_folder import Damaged, canonical, digest, remove
from ensue.files.chain import history_seen, present, read_history
from ensue.tasks.saved import Saved, loading, read_model, write_model
from ensue.training import Began, Row, RunFolder, checkpoint
from ensue.training.checkpoint import Checkpoint

TRIES = 3  # attempts to read while a training replaces its checkpoints


class KeepsLearned:
    """A callback that saves everything learned except the weights when training begins or
    continues. At that time the folder is locked, and its checkpoints match the data and
    settings."""

    def __init__(self, folder: RunFolder, learned: Callable[[], Saved]) -> None:
        self.folder, self.learned = folder, learned
        self._has_begun = False

    def __call__(self, row: Row) -> None:
        if isinstance(row, Began) and not self._has_begun:
            write_model(self.folder.learned, self.learned())
            self._has_begun = True


def write_finished(folder: RunFolder, saved: Saved) -> None:
    """Writes the model of a finished training, before the files that it replaces are deleted."""
    write_model(folder.model, saved)
    if folder.learned.is_dir():
        remove(folder.learned)


@dataclass(frozen=True)
class BestSoFar:
    """The best weights so far. saved: the model; updates, scores: update and scores of each network
    at its best on validation (None: not validated yet); members: planned number of networks."""

    saved: Saved
    updates: tuple[int, ...]
    scores: tuple[Mapping[str, float] | None, ...]
    members: int

    def line(self) -> str:
        """A line for the user who asked for the best weights so far."""
        lines = []
        for update, scores in zip(self.updates, self.scores, strict=True):
            listed = ", ".join(f"{name} {value:.4f}" for name, value in (scores or {}).items())
            lines.append(f"update {update}, {listed or 'not validated yet'}")
        many = f" of {len(self.updates)} of {self.members} networks" * (self.members > 1)
        return (
            f"the best weights so far{many}: {'; '.join(lines)}. Calibration and intervals are "
            "missing: they are fitted to the validation part at the end of a training"
        )


def best_so_far(folder: RunFolder) -> BestSoFar:
    """The best weights of the networks that have begun training. Does not change the folder."""
    if not folder.learned.is_dir():
        raise RunError(
            f"{folder.path}: there are no best weights so far: expected {folder.learned.name}/ "
            f"next to the checkpoints, which is written when training begins. Next: `ensue train "
            f"--run {in_shell(folder.path)}`"
        )
    saved = read_model(folder.learned)
    newest = [candidate for candidate in map(_newest, folder.members()) if candidate is not None]
    for member in folder.members():
        read_history(member.history, history_seen(member.checkpoints))
    if not newest:
        raise RunError(
            f"{folder.path}: there are no best weights so far: no whole checkpoint was found. "
            f"Next: `ensue train --run {in_shell(folder.path)}`"
        )
    with loading(folder.checkpoints):
        return _so_far(folder, saved, newest)


def _so_far(folder: RunFolder, saved: Saved, checkpoints: Sequence[Checkpoint]) -> BestSoFar:
    weights = [_best(each) for each in checkpoints]
    facts = {**saved.facts, "members": len(weights)}
    digests = [digest(safetensors.torch.save(dict(tensors))) for tensors in weights]
    model = replace(
        saved,
        facts=facts,
        networks=weights,
        place=str(folder.learned),
        digest=digest(canonical([saved.digest, *digests])),
    )
    scores = tuple(each.scalars["best_scores"] for each in checkpoints)
    updates = tuple(each.scalars["best_update"] or each.scalars["update"] for each in checkpoints)
    return BestSoFar(model, updates, scores, int(saved.facts["members"]))


def _newest(folder: RunFolder) -> Checkpoint | None:
    """The newest intact checkpoint; a running training may remove one while it is read."""
    for _ in range(TRIES):
        for place in reversed(present(folder.checkpoints)):
            try:
                return checkpoint.read(place)
            except Damaged:
                continue
    return None


def _best(saved: Checkpoint) -> Mapping[str, Tensor]:
    """The best weights of a checkpoint; before the first validation, the averaged or the last
    weights."""
    tensors = saved.tensors
    return tensors.get("best") or tensors.get("average") or tensors["weights"]
