"""Which weights of a base go where in a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from ensue.errors import OptionError
from ensue.tasks.blocks.encoders import ENCODERS
from ensue.tasks.transfer.pretrained import Pretrained, taken_layers

if TYPE_CHECKING:
    from ensue.tasks.transfer.ability import EncoderNames
    from ensue.tasks.transfer.settings import BaseSettings


def encoder_settings(own: Pretrained, base: BaseSettings) -> dict[str, Any]:
    """The settings of [model] that make an encoder with the layers of a base, and its words."""
    found: dict[str, Any] = {}
    if own.encoder:
        found["encoder"] = own.encoder
        known = own.settings  # the copy of an older version does not have every key
        found |= {key: known[key] for key in ENCODERS[own.encoder].keys if key in known}
        found["layers"] = taken_layers(own, base) + base.added
    if own.word_width:
        found["embedding_size"] = own.word_width
    return found


def layer_of(name: str, encoder: str, layers: int) -> int | None:
    """The number of the layer that a weight of an encoder belongs to, the lowest being 0; None
    where it stands before or after all of them."""
    for number in range(layers):
        if name.startswith(ENCODERS[encoder].layer(number)):
            return number
    return None


def first_weights(
    own: Pretrained, taken: int, names: EncoderNames, network: nn.Module
) -> dict[str, Tensor]:
    """The weights of a base by their names in a fresh network; an error names the first that does
    not fit."""
    found: dict[str, Tensor] = {}
    there = network.state_dict()
    for name, tensor in own.weights.items():
        layer = layer_of(name, own.encoder, own.layers)
        target = names.renamed(name)
        if (layer is not None and layer >= taken) or target not in there:
            continue
        if there[target].shape != tensor.shape:
            raise OptionError(
                f"{own.called}: {name} has the shape {tuple(tensor.shape)}, and the network wants "
                f"{tuple(there[target].shape)}: the inputs or layers are of another size"
            )
        found[target] = tensor
    _refuse_missing(own, taken, names, there, found)
    return found


def _refuse_missing(
    own: Pretrained,
    taken: int,
    names: EncoderNames,
    there: Mapping[str, Tensor],
    found: Iterable[str],
) -> None:
    """Every weight of the layers that were taken over is there."""
    kind = ENCODERS[own.encoder] if own.encoder else None
    if kind is None:
        return
    begins = [names.renamed(begin) for k in range(taken) for begin in kind.layer(k)]
    begins += [names.renamed(begin) for begin in kind.entrance]
    looked_for = tuple(begin for begin in begins if begin)  # the others are not in such a network
    for name in there:
        if name.startswith(looked_for) and name not in set(found):
            raise OptionError(
                f"{own.called}: it has no {name}, which the layer has in this network: its layers "
                "are not made the same way (model.output_layers and fresh layers on top do not go "
                "together)"
            )
