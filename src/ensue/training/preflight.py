"""Checks before the first update, which find errors in seconds instead of hours later."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from ensue.engine.machine import why_no_bfloat16
from ensue.errors import ConfigError, RunError, TrainingError, no_memory
from ensue.files.disk import free_bytes, sweep, unfinished
from ensue.training import checkpoint, gradients
from ensue.training.loop import Costing, checked_scores
from ensue.training.optimiser import OPTIMISERS
from ensue.training.processes import device_of_weights, moved, team
from ensue.training.progress import Progress, copy_of
from ensue.training.settings import TrainSettings
from ensue.training.trainee import REHEARSAL, Sampled, Source, Trainee, Validation, seeded

SMALL_FILES = 1 << 20  # bytes: histories, manifests, vocabularies
CHECKPOINTS = 4  # number of checkpoints on disk: the newest two, the best, and one being written


def rehearse(
    trainee: Trainee,
    source: Source,
    validation: Validation | None,
    settings: TrainSettings,
    at: Progress,
    checkpoints: Path | None,
) -> None:
    """Checks the disk space, the largest batches, an evaluation, and writing and reading a
    checkpoint. Restores model and random state."""
    check_precision(trainee, settings)
    if checkpoints is not None and team().first:
        check_space(trainee, settings, checkpoints)
    with _unchanged(trainee), seeded(settings.seed, at.update, REHEARSAL):
        for rows in largest(source, min(at.epoch, settings.epochs - 1)):
            try_batch(trainee, source, settings, at, rows)
        if validation is not None and team().first:
            trainee.train(False)
            with torch.no_grad():
                sampled = isinstance(validation, Sampled)
                scores = cast(Sampled, validation).sample() if sampled else validation()
            checked_scores(scores, settings, at.update)
    if checkpoints is not None and team().first:
        try_checkpoint(trainee, at, checkpoints)


@contextmanager
def _unchanged(trainee: Trainee) -> Iterator[None]:
    """Restores weights, buffers and gradients afterwards."""
    weights = copy_of(trainee.state_dict())
    try:
        yield
    finally:
        trainee.load_state_dict(weights)
        for _, parameter in trainee.named_parameters():
            parameter.grad = None


def check_precision(trainee: Trainee, settings: TrainSettings) -> None:
    """Raises an error if bfloat16 does not work on the processor, which would crash the process."""
    if settings.precision != "bfloat16" or device_of_weights(trainee).type != "cpu":
        return
    if why := why_no_bfloat16():
        raise ConfigError(
            f"train.precision: expected float32, got bfloat16, which fails on this machine: {why}"
        )


def check_space(trainee: Trainee, settings: TrainSettings, checkpoints: Path) -> None:
    weights = sum(t.numel() * t.element_size() for t in trainee.state_dict().values())
    copies = 2 + (settings.averaging is not None)  # the weights themselves and the best
    each = weights * (copies + OPTIMISERS[settings.optimiser].moments)
    needed = CHECKPOINTS * each + 2 * weights + SMALL_FILES  # two: the model, and its successor
    free = free_bytes(checkpoints)
    if free < needed:
        raise RunError(
            f"{checkpoints}: expected room for {CHECKPOINTS} checkpoints and the model, "
            f"{needed:,} bytes, got {free:,}. Make room, or name a run folder on another disk"
        )


def largest(source: Source, epoch: int) -> list[Sequence[int]]:
    """The batches that may need the most memory: with the most tokens, the most rows, and the
    fewest rows (with a budget of tokens, these are the longest)."""
    batches = [rows for rows in source.batches(epoch) if len(rows)]
    if not batches:
        return []
    extremes = [max(batches, key=source.tokens), max(batches, key=len), min(batches, key=len)]
    return [
        rows for k, rows in enumerate(extremes) if not any(rows is other for other in extremes[:k])
    ]


def try_batch(
    trainee: Trainee, source: Source, settings: TrainSettings, at: Progress, rows: Sequence[int]
) -> None:
    """Runs a batch forward and backward; raises TrainingError if it does not fit into memory or its
    cost is not finite."""
    trainee.train()
    try:
        batch = moved(source.batch(rows), device_of_weights(trainee))
        cost, _ = Costing(trainee, settings)(batch, {})
        cost.backward()
    except (MemoryError, RuntimeError) as error:
        if not no_memory(error):
            raise
        raise TrainingError(
            f"a batch of {len(rows)} rows and {source.tokens(rows):,.0f} tokens does not fit in "
            f"memory. Rows: {gradients.rows_by_name(source, rows)}. Next: lower the number of "
            "tokens in a batch, or cut long rows"
        ) from error
    value = float(cost.detach())
    if not math.isfinite(value):
        raise gradients.not_finite_cost(trainee, source, at.update + 1, value, rows, {})


def try_checkpoint(trainee: Trainee, at: Progress, checkpoints: Path) -> None:
    """Writes a checkpoint, reads it and compares every bit."""
    folder = unfinished(checkpoints / "rehearsal")
    tensors = at.tensors(trainee)
    try:
        place = checkpoint.save(folder, at.update, tensors, at.scalars(), {})
        restored = checkpoint.read(place)
    finally:
        sweep(checkpoints)
    same = restored.tensors.keys() == tensors.keys() and all(
        same_bits(tensors[group], restored.tensors[group]) for group in tensors
    )
    if not same or restored.scalars != at.scalars():
        raise RunError(
            f"{checkpoints}: the data read back differs from the data saved. Check the disk"
        )


def same_bits(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and torch.equal(one[name].cpu(), other[name])
        for name in one
    )
