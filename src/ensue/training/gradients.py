"""Gradients between the backward pass and the update: penalties, clipping, causes of NaN."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from ensue.errors import TrainingError
from ensue.training.optimiser import decays
from ensue.training.processes import device_of_weights, moved
from ensue.training.settings import TrainSettings
from ensue.training.trainee import Carried, Source, Trainee

MOST_NAMED = 8  # rows in a message


def complete(parameters: Iterable[Tensor]) -> None:
    """Gives a parameter that no batch has used the gradient zero, for any number of processes."""
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)


@torch.no_grad()
def penalise(parameters: Iterable[Tensor], settings: TrainSettings) -> None:
    """Adds the gradient of l1·Σ|w| + l2/2·Σw² over the matrices."""
    for parameter in parameters:
        if parameter.grad is not None and decays(parameter):
            if settings.l1:
                parameter.grad.add_(parameter.sign(), alpha=settings.l1)
            if settings.l2:
                parameter.grad.add_(parameter, alpha=settings.l2)


@torch.no_grad()
def clip(parameters: Iterable[Tensor], most: float | None) -> float:
    """If ‖g‖ > most then g ← most·g/‖g‖, over all gradients together. Returns ‖g‖ before
    clipping."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = float(nn.utils.get_total_norm(gradients))
    if most is not None and most < norm < float("inf"):
        for gradient in gradients:
            gradient.mul_(most / norm)
    return norm


# --- numbers that are not finite -----------------------------------------------------------


def first_not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """The name of the first tensor that holds NaN or Inf."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            return name
    return None


def rows_by_name(source: Source, rows: Sequence[int]) -> str:
    names = [source.name(row) for row in rows[:MOST_NAMED]]
    more = len(rows) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _first_layer(trainee: Trainee, batch: object, carried: Carried) -> str | None:
    """The first layer, in the order they finish, whose output is not finite for this batch."""
    names: list[str] = []

    def watch(name: str, module: nn.Module) -> torch.utils.hooks.RemovableHandle:
        def look(_module: nn.Module, _given: object, output: object) -> None:
            if not names and any(first_not_finite({"": t}) is not None for t in _tensors(output)):
                names.append(name)

        return module.register_forward_hook(look)

    layers = trainee.named_modules() if isinstance(trainee, nn.Module) else ()
    handles = [watch(name, layer) for name, layer in layers if name]
    try:
        with torch.no_grad():
            trainee(batch, carried)
    finally:
        for handle in handles:
            handle.remove()
    return names[0] if names else None


def _tensors(value: object) -> list[Tensor]:
    """The tensors inside nested tuples, lists and mappings."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in _tensors(part)]
    return []


def not_finite_cost(
    trainee: Trainee,
    source: Source,
    update: int,
    cost: float,
    rows: Sequence[int],
    carried: Carried,
) -> TrainingError:
    """The error for a batch whose cost is NaN or Inf: the weight or the layer it comes from."""
    batch = moved(source.batch(rows), device_of_weights(trainee))
    weight = first_not_finite(trainee.state_dict())
    bad_input = any(first_not_finite({"": tensor}) is not None for tensor in _tensors(batch))
    if weight is not None:
        where, advice = f"the weight {weight} is not finite", "a lower rate may keep it so"
    elif bad_input:
        where, advice = "the batch itself holds such a number", "look at these rows"
    else:
        layer = _first_layer(trainee, batch, carried)
        where = f"first in the output of layer {layer}" if layer else "in no layer's output"
        advice = "lower the rate or the clip, or look at these rows"
    return TrainingError(
        f"update {update}: the cost is {cost}: {where}. The weights were not changed. "
        f"Rows: {rows_by_name(source, rows)}. Next: {advice}."
    )


def not_finite_gradient(
    parameters: Mapping[str, Tensor], source: Source, update: int, norm: float, rows: Sequence[int]
) -> TrainingError:
    """The error for a gradient that is NaN or Inf, by the parameter's name."""
    gradients = {name: p.grad for name, p in parameters.items() if p.grad is not None}
    name = first_not_finite(gradients)
    where = f"in that of {name}" if name else "their squares are too large to add up"
    return TrainingError(
        f"update {update}: the norm of the gradient is {norm}: {where}. The weights were not "
        f"changed. Rows: {rows_by_name(source, rows)}. "
        "Next: lower the rate, set train.clip, or look at these rows."
    )
