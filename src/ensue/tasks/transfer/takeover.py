"""The settings that a training takes over from its base, and the recipe for a base."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from ensue.errors import OptionError
from ensue.tasks.any_model import table_of
from ensue.tasks.blocks.encoders import ENCODERS
from ensue.tasks.saved_cells import cell_facts
from ensue.tasks.transfer.pretrained import Pretrained, taken_layers
from ensue.tasks.transfer.unfreezing import AUTO, FROM_THE_TOP, Unfreezing

if TYPE_CHECKING:
    from ensue.tasks.any_model import AnyModel
    from ensue.tasks.settings import TextSettings
    from ensue.tasks.transfer.ability import EncoderNames
    from ensue.tasks.transfer.settings import BaseSettings


def encoder_settings(pretrained: Pretrained, base: BaseSettings) -> dict[str, Any]:
    """The settings of [model] for an encoder with the layers of a base, and its words."""
    settings: dict[str, Any] = {}
    if pretrained.encoder:
        settings["encoder"] = pretrained.encoder
        settings |= {key: pretrained.settings[key] for key in ENCODERS[pretrained.encoder].keys}
        settings["layers"] = taken_layers(pretrained, base) + base.added
    if pretrained.word_width:
        settings["embedding_size"] = pretrained.word_width
    return settings


def layer_of(name: str, encoder: str, layers: int) -> int | None:
    """The layer of an encoder's weight, the lowest being 0; None if it comes before or after all
    layers."""
    for number in range(layers):
        if name.startswith(ENCODERS[encoder].layer(number)):
            return number
    return None


def first_weights(
    pretrained: Pretrained, layer_count: int, names: EncoderNames, network: nn.Module
) -> dict[str, Tensor]:
    """The weights of a base by their names in a fresh network; an error names the first that does
    not fit."""
    weights: dict[str, Tensor] = {}
    current = network.state_dict()
    for name, tensor in pretrained.weights.items():
        layer = layer_of(name, pretrained.encoder, pretrained.layers)
        target = names.renamed(name)
        if (layer is not None and layer >= layer_count) or target not in current:
            continue
        if current[target].shape != tensor.shape:
            raise OptionError(
                f"{pretrained.called}: {name} has the shape {tuple(tensor.shape)}, and the "
                "network wants "
                f"{tuple(current[target].shape)}: the inputs or layers are of another size"
            )
        weights[target] = tensor
    _refuse_missing(pretrained, layer_count, names, current, weights)
    return weights


def _refuse_missing(
    pretrained: Pretrained,
    layer_count: int,
    names: EncoderNames,
    current: Mapping[str, Tensor],
    names_found: Iterable[str],
) -> None:
    """Raises an error if a weight of the layers taken over is missing."""
    kind = ENCODERS[pretrained.encoder] if pretrained.encoder else None
    if kind is None:
        return
    begins = [names.renamed(begin) for k in range(layer_count) for begin in kind.layer(k)]
    begins += [names.renamed(begin) for begin in kind.entrance]
    looked_for = tuple(begin for begin in begins if begin)  # others are not in it
    for name in current:
        if name.startswith(looked_for) and name not in set(names_found):
            raise OptionError(
                f"{pretrained.called} has no weights {name}, which this network needs: the layers "
                "of the two are built differently (model.output_layers cannot be combined with "
                "base.added, fresh layers on top)"
            )


EPOCHS, AFTER = 6, 2  # minimum in all, and once all layers learn
UPDATES, MOST = 600, 30  # minimum of updates, with more epochs for few rows; maximum of epochs
RATE = 2e-3  # maximum rate of the head
LAYERS = "base.layers takes fewer of them, base.added puts fresh ones on top"


def text_of(model: AnyModel) -> TextSettings:
    """The text settings of a training, which come from its base."""
    pretrained = model.pretrained
    return model.text if pretrained is None else model.text.model_copy(update=dict(pretrained.text))


def taken_over(model: AnyModel, rows: int) -> dict[str, dict[str, Any]]:
    """The settings, by table and key, that must equal the base's settings, and the settings of its
    recipe unless the user gave others. rows: number of rows of the training part. One error names
    all given settings that do not fit."""
    pretrained = model.pretrained
    if pretrained is None:
        return {}
    fixed = {"text": dict(pretrained.text), "model": _architecture(model, pretrained)}
    wrong = [
        f"{table}.{key}: the base has {value!r}, got {getattr(table_of(model, table), key)!r}"
        + f"; {LAYERS}" * (key == "layers")
        for table, keys in fixed.items()
        for key, value in keys.items()
        if key in model.explicit[table] and getattr(table_of(model, table), key) != value
    ]
    wrong += _other_cells(model, pretrained)
    if wrong:
        many = "1 setting does" if len(wrong) == 1 else f"{len(wrong)} settings do"
        raise OptionError(
            f"{pretrained.called}: {many} not fit this base; leave out the settings that "
            "follow from it\n  " + "\n  ".join(wrong)
        )
    recipe = model.task.transfers.recipe(pretrained, model, rows)
    explicit = {**model.explicit, "base": explicit_of_base(model)}
    for table, keys in recipe.items():
        for key, value in keys.items():
            if key not in explicit[table] and key not in fixed.get(table, {}):
                fixed.setdefault(table, {})[key] = value
    return {**fixed, "base": {**fixed.get("base", {}), "digest": pretrained.digest}}


def explicit_of_base(model: AnyModel) -> frozenset[str]:
    """The settings of [base] that the user gave; auto leaves the recipe open."""
    left_open = {"recipe"} if model.base.recipe == AUTO else set()
    return frozenset(model.base.model_fields_set - left_open)


def settled_recipe(model: AnyModel, train: Any, explicit: frozenset[str]) -> Unfreezing:
    """The recipe chosen for `base.recipe = auto`: the choice at the beginning of the run (gradual
    if the recipe was not auto then), else what the task measures. The choice is saved with the
    base, so that nothing is measured again on resume. explicit: from `explicit_of_base`."""
    pretrained = model.pretrained
    if pretrained is None or model.base.recipe != AUTO:
        return Unfreezing({})
    if pretrained.recipe_settings is not None:
        return Unfreezing(pretrained.recipe_settings or FROM_THE_TOP.settings)
    unfreezing = model.task.transfers.unfreezing(model, train)
    settings = {key: value for key, value in unfreezing.settings.items() if key not in explicit}
    model.pretrained = replace(pretrained, recipe_settings=settings)
    named = ", ".join(f"base.{key}: {value}" for key, value in settings.items())
    return Unfreezing(settings, f"{named} {unfreezing.why}".strip() if named else "")


def _architecture(model: AnyModel, pretrained: Pretrained) -> dict[str, Any]:
    architecture = model.task.transfers.architecture(pretrained, model)
    return {key: value for key, value in architecture.items() if key not in pretrained.cells}


def _other_cells(model: AnyModel, pretrained: Pretrained) -> list[str]:
    """Problems of custom cells whose equations differ from the base's equations."""
    mine = cell_facts(model.settings)
    return [
        f"model.{key}: the base has a cell of its own, {known['name']}; name it for this training "
        f"too, --set model.{key}=FILE:{known['name']}"
        for key, known in pretrained.cells.items()
        if mine.get(key, {}).get("equations") != known["equations"]
    ]


def text_recipe_of(
    pretrained: Pretrained, model: AnyModel, rows: int
) -> Mapping[str, dict[str, Any]]:
    """The recipe for the encoder of a language model with a new head: less dropout than in its
    training, and enough epochs for every layer to learn."""
    base = model.base
    stages = taken_layers(pretrained, base) + bool(pretrained.word_width)
    in_epoch = max(rows / (model.settings.batch_rows or rows), 1)
    epochs_needed = min(math.ceil(UPDATES / in_epoch), MOST)
    epochs = max(EPOCHS, round(stages * base.unfreeze_every) + AFTER, epochs_needed)
    dropout = {key: round(rate * base.dropout_scale, 4) for key, rate in pretrained.dropout.items()}
    return {
        "model": {key: rate for key, rate in dropout.items() if hasattr(model.settings, key)},
        "train": {"rate": RATE, "schedule": "slanted", "epochs": epochs, "patience": epochs},
    }
