"""A network that begins from a base: its initial weights and learning rates."""

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

WORDS = "words"  # the word vectors, and weights before the lowest layer


def begin_network(network: nn.Module, model: AnyModel) -> None:
    """Copies the weights of the model's base into a fresh network."""
    pretrained = model.pretrained
    if pretrained is None or not (pretrained.encoder or pretrained.context):
        return
    first = model.task.transfers.first(pretrained, model, network)
    network.load_state_dict({**network.state_dict(), **first})


def rates_of(network: nn.Module, model: AnyModel) -> LayerRates:
    """Learning rates of the layers of a network with a base; without one, all are equal."""
    pretrained = model.pretrained
    if pretrained is None:
        return ALL_LEARN
    names = model.task.transfers.names(network)
    every = [name for name, _ in network.named_parameters()]
    pretrained = pretrained.context or pretrained
    count = taken_layers(pretrained, model.base)
    lowest = {n for n in every if n.startswith(names.table)} if pretrained.word_width else set()
    layers: list[set[str]] = [set() for _ in range(count)]
    for name in pretrained.weights:
        target, layer = names.renamed(name), layer_of(name, pretrained.encoder, pretrained.layers)
        if target not in every:
            continue
        if layer is not None and layer < count:
            layers[layer].add(target)
        elif layer is None:
            before = name.startswith(ENCODERS[pretrained.encoder].entrance)
            (lowest if before else layers[-1]).add(target)
    named = [(WORDS, frozenset(lowest))] * bool(lowest)
    named += [(f"layer {k}", frozenset(layer)) for k, layer in enumerate(layers, 1)]
    inside = frozenset().union(*(parameters for _, parameters in named))
    return layer_rates(named, frozenset(every) - inside, model.base)
