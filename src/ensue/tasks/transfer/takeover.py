"""The settings that a training takes over from its base, and those that go well with one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from ensue.errors import OptionError
from ensue.tasks.blocks.encoders import ENCODERS
from ensue.tasks.kept_cells import cell_facts
from ensue.tasks.transfer.pretrained import Pretrained, taken_layers
from ensue.tasks.transfer.unfreezing import AUTO, FROM_THE_TOP, Unfreezing

if TYPE_CHECKING:
    from ensue.tasks.any_model import AnyModel
    from ensue.tasks.settings import TextSettings
    from ensue.tasks.transfer.ability import EncoderNames
    from ensue.tasks.transfer.settings import BaseSettings


def encoder_settings(own: Pretrained, base: BaseSettings) -> dict[str, Any]:
    """The settings of [model] that make an encoder with the layers of a base, and its words."""
    found: dict[str, Any] = {}
    if own.encoder:
        found["encoder"] = own.encoder
        found |= {key: own.settings[key] for key in ENCODERS[own.encoder].keys}
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


EPOCHS, AFTER = 6, 2  # at least so many, and so many once all layers learn
UPDATES, MOST = 600, 30  # few rows are read more often, until there were so many; epochs at most
RATE = 2e-3  # of the head, at its highest
LAYERS = "base.layers takes fewer of them, base.added puts fresh ones on top"


def text_of(model: AnyModel) -> TextSettings:
    """How the texts of a training are read: as those of its base."""
    own = model.pretrained
    return model.text if own is None else model.text.model_copy(update=dict(own.text))


def taken_over(model: AnyModel, rows: int) -> dict[str, dict[str, Any]]:
    """By table and key, what must be as in the base, and what its recipe sets where nobody said
    otherwise. rows: of the training part. Every setting that was given and does not fit is named in
    one error."""
    own = model.pretrained
    if own is None:
        return {}
    fixed = {"text": dict(own.text), "model": _architecture(model, own)}
    wrong = [
        f"{table}.{key}: the base has {value!r}, got {getattr(getattr(model, table), key)!r}"
        + f"; {LAYERS}" * (key == "layers")
        for table, keys in fixed.items()
        for key, value in keys.items()
        if key in model.told[table] and getattr(getattr(model, table), key) != value
    ]
    wrong += _other_cells(model, own)
    if wrong:
        many = "1 setting does" if len(wrong) == 1 else f"{len(wrong)} settings do"
        raise OptionError(
            f"{own.called}: {many} not fit this base; leave out what follows from it\n  "
            + "\n  ".join(wrong)
        )
    recipe = model.task.transfers.recipe(own, model, rows)
    told = {**model.told, "base": told_of_base(model)}
    for table, keys in recipe.items():
        for key, value in keys.items():
            if key not in told[table] and key not in fixed.get(table, {}):
                fixed.setdefault(table, {})[key] = value
    return {**fixed, "base": {**fixed.get("base", {}), "digest": own.digest}}


def told_of_base(model: AnyModel) -> frozenset[str]:
    """The settings of [base] that a person gave; auto leaves the recipe open."""
    left_open = {"recipe"} if model.base.recipe == AUTO else set()
    return frozenset(model.base.model_fields_set - left_open)


def settled_recipe(model: AnyModel, train: Any, told: frozenset[str]) -> Unfreezing:
    """What `base.recipe = auto` is, with the settings of the base taken over: what it was when the
    run began (gradual where it was not auto then), else what the task finds. It is kept with the
    base, so that nothing is measured again when the run goes on. told: as `told_of_base`."""
    own = model.pretrained
    if own is None or model.base.recipe != AUTO:
        return Unfreezing({})
    if own.settled is not None:
        return Unfreezing(own.settled or FROM_THE_TOP.settings)
    found = model.task.transfers.unfreezing(model, train)
    settings = {key: value for key, value in found.settings.items() if key not in told}
    model.pretrained = replace(own, settled=settings)
    named = ", ".join(f"base.{key}: {value}" for key, value in settings.items())
    return Unfreezing(settings, f"{named} {found.why}".strip() if named else "")


def _architecture(model: AnyModel, own: Pretrained) -> dict[str, Any]:
    found = model.task.transfers.architecture(own, model)
    return {key: value for key, value in found.items() if key not in own.cells}


def _other_cells(model: AnyModel, own: Pretrained) -> list[str]:
    """Cells of one's own are the same as in the base, by their equations."""
    mine = cell_facts(model.model)
    return [
        f"model.{key}: the base has a cell of its own, {known['name']}; name it for this training "
        f"too, --set model.{key}=FILE:{known['name']}"
        for key, known in own.cells.items()
        if mine.get(key, {}).get("equations") != known["equations"]
    ]


def text_recipe_of(own: Pretrained, model: AnyModel, rows: int) -> Mapping[str, dict[str, Any]]:
    """What goes well with the encoder of a language model under a head of one's own: less dropout
    than it was trained with, and epochs enough for every layer to learn."""
    base = model.base
    stages = taken_layers(own, base) + bool(own.word_width)
    in_epoch = max(rows / (model.model.batch_rows or rows), 1)
    wanted = min(math.ceil(UPDATES / in_epoch), MOST)
    epochs = max(EPOCHS, round(stages * base.unfreeze_every) + AFTER, wanted)
    dropout = {key: round(rate * base.dropout_scale, 4) for key, rate in own.dropout.items()}
    return {
        "model": {key: rate for key, rate in dropout.items() if hasattr(model.model, key)},
        "train": {"rate": RATE, "schedule": "slanted", "epochs": epochs, "patience": epochs},
    }
