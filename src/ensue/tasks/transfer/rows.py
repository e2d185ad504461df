"""The transfer of tasks whose networks embed rows of words or vectors and encode them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.tasks.blocks.embeddings import Embed, Words
from ensue.tasks.blocks.encoders import ENCODERS, Encoder
from ensue.tasks.kept_cells import cell_facts
from ensue.tasks.rows.inputs import LearnedInputs
from ensue.tasks.rows.part import Part
from ensue.tasks.transfer.ability import DROPOUT, TEXT, EncoderNames, Transfers
from ensue.tasks.transfer.first_weights import encoder_settings, first_weights
from ensue.tasks.transfer.pretrained import Pretrained, renamed, taken_layers
from ensue.tasks.transfer.probe import can_be_probed, probe, told_by
from ensue.tasks.transfer.takeover import text_recipe_of
from ensue.tasks.transfer.unfreezing import FROM_THE_TOP, Unfreezing

if TYPE_CHECKING:
    from ensue.tasks.model import Model

# Of a fresh head on pooled states: it reads three times as many numbers as there are states.
HEAD = {"pooling": "last+mean+max", "standardise": True, "dropout_output": 0.5}


Goals = Callable[[Part, Any], NDArray[Any]]


class EmbeddedRows(Protocol):
    """A network that embeds and encodes its rows."""

    embed: Embed
    encoder: Encoder


class RowTransfers(Transfers):
    """The words or vectors that a network reads first, and its encoder. pooled: the network makes
    one vector of a row, for which the last, the mean and the highest states stand side by side;
    goals: the labels of a training part as numbers (rows, k), by the settings of [model], of tasks
    whose bases are probed for what they tell of these."""

    def __init__(self, pooled: bool = False, goals: Goals | None = None) -> None:
        self.pooled, self.goals = pooled, goals

    def gives(self, model: Model[Any, Any, Any], called: str, digest: str) -> Pretrained:
        network = cast(EmbeddedRows, model.networks[0])
        inputs: LearnedInputs = model.learned.inputs
        settings, first = model.model, network.embed.features[0]
        cells = {key: own for key, own in cell_facts(settings).items() if key == "cell"}
        keys = ENCODERS[settings.encoder].keys
        scale = inputs.scale
        return Pretrained(
            called,
            digest,
            inputs.tokenisers.input if inputs.words is not None else None,
            {key: getattr(model.text, key) for key in TEXT} if inputs.words is not None else {},
            inputs.words,
            first.table.weight.detach().cpu().clone() if isinstance(first, Words) else None,
            None if scale is None else scale.mean,
            None if scale is None else scale.spread,
            settings.encoder,
            {"layers": settings.layers} | {key: settings.table()[key] for key in keys},
            renamed(network.encoder.state_dict(), {"": ""}),
            cells,
            {key: getattr(settings, key) for key in DROPOUT},
        )

    def architecture(self, own: Pretrained, model: Model[Any, Any, Any]) -> dict[str, Any]:
        return encoder_settings(own, model.base)

    def recipe(
        self, own: Pretrained, model: Model[Any, Any, Any], rows: int
    ) -> Mapping[str, Mapping[str, Any]]:
        found = {table: dict(keys) for table, keys in text_recipe_of(own, model, rows).items()}
        if self.pooled and own.encoder:
            found["model"] |= HEAD
        return found

    def unfreezing(self, model: Model[Any, Any, Any], train: Part) -> Unfreezing:
        if self.goals is None or not can_be_probed(model, train):
            return FROM_THE_TOP
        return told_by(probe(model, train, self.goals(train, model.model)))

    def learned(self, own: Pretrained, model: Model[Any, Any, Any]) -> Pretrained:
        inputs: LearnedInputs = model.learned.inputs
        if inputs.start is None:
            return own
        return replace(own, words=inputs.words, table=inputs.start, vectors="")

    def names(self, network: nn.Module) -> EncoderNames:
        return EncoderNames("embed.features.0.table.weight", {"": "encoder."})

    def first(
        self, own: Pretrained, model: Model[Any, Any, Any], network: nn.Module
    ) -> dict[str, Tensor]:
        """Those of the layers; the vectors of words are there already."""
        return first_weights(own, taken_layers(own, model.base), self.names(network), network)
