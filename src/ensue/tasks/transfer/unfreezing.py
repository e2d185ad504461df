"""When the layers of a base learn, and at which rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ensue.errors import OptionError
from ensue.training.optimiser import LayerGroup, LayerRates

if TYPE_CHECKING:
    from ensue.tasks.transfer.settings import BaseSettings

HEAD = "head"  # everything that the base does not have
AUTO = "auto"  # the recipe that is resolved before training begins

# The epoch after which a layer learns, by its depth below the head (1 is directly below) and the
# value of `base.recipe`; None: never. To add a recipe, add a row.
RECIPES: dict[str, Callable[[int, BaseSettings], float | None]] = {
    "gradual": lambda depth, settings: depth * settings.unfreeze_every,
    "whole": lambda depth, settings: 0.0,
    "frozen": lambda depth, settings: None,
}


class Unfreezing(NamedTuple):
    """The resolution of `auto`. settings: the settings of [base]; why: the reason with its numbers,
    "" if nothing was measured."""

    settings: Mapping[str, Any]
    why: str = ""


FROM_THE_TOP = Unfreezing({"recipe": "gradual"})


def layer_rates(
    layers: Sequence[tuple[str, frozenset[str]]], head: frozenset[str], settings: BaseSettings
) -> LayerRates:
    """The learning rates of layers. layers: names and parameters of the base's layers, lowest
    first. The k-th layer below the head has the rate of the head divided by rate_decay to the power
    of k."""
    if settings.freeze > len(layers):
        raise OptionError(
            f"base.freeze: expected at most {len(layers)}, as many as there are to freeze "
            f"({', '.join(name for name, _ in layers)}), got {settings.freeze}"
        )
    groups = []
    for number, (name, parameters) in enumerate(layers):
        depth = len(layers) - number
        begins = RECIPES[settings.recipe](depth, settings)
        if number < settings.freeze:
            begins = None
        share = settings.rate_decay**-depth
        groups.append(LayerGroup(name, parameters, share, begins))
    return LayerRates((*groups, LayerGroup(HEAD, head)))
