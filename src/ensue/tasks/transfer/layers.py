"""A network that begins from a base: its first weights, and how its layers learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from ensue.tasks.blocks.encoders import ENCODERS
from ensue.tasks.transfer.pretrained import taken_layers
from ensue.tasks.transfer.takeover import layer_of
from ensue.tasks.transfer.unfreezing import layer_rates
from ensue.training.optimiser import ALL_LEARN, LayerRates

if TYPE_CHECKING:
    from ensue.tasks.any_model import AnyModel

WORDS = "words"  # the word vectors, and what stands before the lowest layer


def begin_network(network: nn.Module, model: AnyModel) -> None:
    """The weights of the model's base into a fresh network."""
    own = model.pretrained
    if own is None or not (own.encoder or own.context):
        return
    found = model.task.transfers.first(own, model, network)
    network.load_state_dict({**network.state_dict(), **found})


def rates_of(network: nn.Module, model: AnyModel) -> LayerRates:
    """How the layers of a network learn that begins from a base; all alike without one."""
    own = model.pretrained
    if own is None:
        return ALL_LEARN
    names = model.task.transfers.names(network)
    every = [name for name, _ in network.named_parameters()]
    own = own.context or own
    taken = taken_layers(own, model.base)
    lowest = {n for n in every if n.startswith(names.table)} if own.word_width else set()
    layers: list[set[str]] = [set() for _ in range(taken)]
    for name in own.weights:
        target, layer = names.renamed(name), layer_of(name, own.encoder, own.layers)
        if target not in every:
            continue
        if layer is not None and layer < taken:
            layers[layer].add(target)
        elif layer is None:
            before = name.startswith(ENCODERS[own.encoder].entrance)
            (lowest if before else layers[-1]).add(target)
    named = [(WORDS, frozenset(lowest))] * bool(lowest)
    named += [(f"layer {k}", frozenset(own)) for k, own in enumerate(layers, 1)]
    inside = frozenset().union(*(parameters for _, parameters in named))
    return layer_rates(named, frozenset(every) - inside, model.base)
