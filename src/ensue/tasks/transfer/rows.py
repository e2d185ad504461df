"""Transfers of tasks whose networks embed and encode rows of words or vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.errors import OptionError
from ensue.tasks.baselines.ridge import explained
from ensue.tasks.baselines.text_features import LETTERS, WORDS, TextFeatures
from ensue.tasks.blocks.embeddings import Embed, Words
from ensue.tasks.blocks.encoders import ENCODERS, Encoder, encoder_of
from ensue.tasks.blocks.pooling import Pooling
from ensue.tasks.rows.inputs import LearnedInputs
from ensue.tasks.rows.part import Part, shortened, texts_of
from ensue.tasks.rows.source import in_batches
from ensue.tasks.saved_cells import cell_facts
from ensue.tasks.transfer.ability import DROPOUT, TEXT, EncoderNames, Transfers
from ensue.tasks.transfer.pretrained import Pretrained, renamed, taken_layers
from ensue.tasks.transfer.takeover import encoder_settings, first_weights, text_recipe_of
from ensue.tasks.transfer.unfreezing import FROM_THE_TOP, Unfreezing

if TYPE_CHECKING:
    from ensue.tasks.any_model import AnyModel

ROWS, TOKENS = 1_000, 300_000  # maximum rows of the training part
LEAST_ROWS = 100  # fewer tell nothing
LEAST_TOLD, SHARE = 0.05, 0.5  # explained by words; by layers, relative to words
ALL_AT_ONCE: Mapping[str, Any] = {"recipe": "whole", "rate_decay": 1.0}
POOLING = "last+mean+max"
LEAST_SPREAD = 1e-3  # minimum spread, for nearly constant features


class Probe(NamedTuple):
    """Shares of the targets' variance that linear readouts explain on held-out rows: from the
    frozen layers, and from the words of the texts."""

    layers: float
    words: float


def can_be_probed(model: AnyModel, train: Part) -> bool:
    """Whether a base can be probed: it needs enough rows of text with labels, and layers over
    words."""
    pretrained = model.pretrained
    known = pretrained is not None and bool(pretrained.encoder) and pretrained.table is not None
    return known and train.texts and train.labels is not None and len(train) >= LEAST_ROWS


def told_by(probed: Probe) -> Unfreezing:
    """The unfreezing from a probe. Layers that explain about as much as the words are unfrozen one
    by one; others must change, so all layers learn at once."""
    weak = probed.words >= LEAST_TOLD and probed.layers < SHARE * probed.words
    chosen = ALL_AT_ONCE if weak else FROM_THE_TOP.settings
    return Unfreezing(
        chosen,
        f"(of the variance of the labels the layers of the base explain "
        f"{max(probed.layers, 0):.0%} before they learn, the words alone "
        f"{max(probed.words, 0):.0%})",
    )


def probe(model: AnyModel, train: Part, goals: NDArray[Any]) -> Probe:
    """Probes a model that has the settings of its base. goals (rows, k): the targets."""
    cut = shortened(train.inputs, model.text.max_length, model.text.cut)  # as networks see them
    rows = probed_rows(cut.lengths, model.train.seed)
    some = replace(train.take(rows), inputs=cut.take(rows))
    targets = torch.from_numpy(np.asarray(goals[rows], np.float64))
    states = _states(model, some)
    return Probe(explained(states @ states.T, targets), explained(_word_products(some), targets))


def probed_rows(lengths: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Indices of a few rows with these lengths, drawn by the seed."""
    drawn = np.random.default_rng(seed).permutation(len(lengths))[:ROWS]
    steps = np.cumsum(lengths[drawn])
    return np.sort(drawn[: max(int((steps <= TOKENS).sum()), 1)])


@torch.no_grad()
def _states(model: AnyModel, part: Part) -> Tensor:
    """The pooled states of the base, each feature of mean 0 and spread 1; shape (rows,
    features)."""
    pretrained = model.pretrained
    assert pretrained is not None
    layers = taken_layers(pretrained, model.base)
    settings = model.settings.model_copy(update={"layers": layers})
    inputs = LearnedInputs.learn(part, model.text, settings, base=model.beginning)
    with torch.random.fork_rng(devices=[]):
        embed = Embed([inputs.feature(settings)], 0.0).eval()
        encoder = encoder_of(settings, embed.width).eval()
    names = EncoderNames("", {"": ""})
    encoder.load_state_dict(
        {**encoder.state_dict(), **first_weights(pretrained, layers, names, encoder)}
    )
    pooling = Pooling(POOLING, encoder.output_size, encoder.final_size)
    states = torch.zeros(len(part), pooling.width)
    columns = inputs.columns(part, model.text)
    for rows, batch in in_batches(columns, encoder, model.settings.batch_tokens):
        y, final = encoder(embed(batch.inputs), batch.lengths)
        states[torch.from_numpy(rows)] = pooling(y, final, batch.lengths)
    spread = states.std(0, correction=0).clamp(min=LEAST_SPREAD)
    return (states - states.mean(0)) / spread


def _word_products(part: Part) -> Tensor:
    """Products of the TF-IDF of words and pairs of words; of letters if tokens are
    characters; shape (rows, rows)."""
    kind = LETTERS if part.tokenisers.input.name == "characters" else WORDS
    _, x = TextFeatures.learn(texts_of(part), [kind])
    return x.row_products


# Settings of a fresh head on pooled states, which reads three times as many numbers as there are
# states.
HEAD = {"pooling": "last+mean+max", "standardise": True, "dropout_output": 0.5}


Goals = Callable[[Part, Any], NDArray[Any]]


class EmbeddedRows(Protocol):
    """A network that embeds and encodes its rows."""

    embed: Embed
    encoder: Encoder


class RowTransfers(Transfers):
    """Transfers of a network's word vectors or scale, and its encoder. pooled: the network pools a
    row to one vector, by concatenating its last, mean and maximum states; goals: the targets (rows,
    k) of a training part by the settings of [model], for tasks whose bases are probed."""

    def __init__(self, pooled: bool = False, goals: Goals | None = None) -> None:
        self.pooled, self.goals = pooled, goals

    def encoder_of(self, network: nn.Module) -> EmbeddedRows:
        """The part of a network that embeds and encodes."""
        return cast(EmbeddedRows, network)

    def inputs_of(self, model: AnyModel) -> LearnedInputs:
        """The learned inputs of a model: its words or vectors."""
        inputs: LearnedInputs = model.learned.inputs
        return inputs

    def gives(self, model: AnyModel, called: str, digest: str) -> Pretrained:
        network, inputs = self.encoder_of(model.networks[0]), self.inputs_of(model)
        settings, first = model.settings, network.embed.features[0]
        cells = {key: fact for key, fact in cell_facts(settings).items() if key == "cell"}
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

    def architecture(self, pretrained: Pretrained, model: AnyModel) -> dict[str, Any]:
        return encoder_settings(pretrained, model.base)

    def recipe(
        self, pretrained: Pretrained, model: AnyModel, rows: int
    ) -> Mapping[str, Mapping[str, Any]]:
        tables = {
            table: dict(keys) for table, keys in text_recipe_of(pretrained, model, rows).items()
        }
        if self.pooled and pretrained.encoder:
            tables["model"] |= HEAD
        return tables

    def unfreezing(self, model: AnyModel, train: Part) -> Unfreezing:
        if self.goals is None or not can_be_probed(model, train):
            return FROM_THE_TOP
        return told_by(probe(model, train, self.goals(train, model.settings)))

    def learned(self, pretrained: Pretrained, model: AnyModel) -> Pretrained:
        inputs = self.inputs_of(model)
        if inputs.start is None:
            return pretrained
        return replace(pretrained, words=inputs.words, table=inputs.start, vectors="")

    def names(self, network: nn.Module) -> EncoderNames:
        return EncoderNames("embed.features.0.table.weight", {"": "encoder."})

    def first(
        self, pretrained: Pretrained, model: AnyModel, network: nn.Module
    ) -> dict[str, Tensor]:
        """The weights of the layers; word vectors are already set."""
        return first_weights(
            pretrained, taken_layers(pretrained, model.base), self.names(network), network
        )


class ReaderTransfers(RowTransfers):
    """Transfers of supervised tasks, whose networks have a reader."""

    def gives(self, model: AnyModel, called: str, digest: str) -> Pretrained:
        if model.inputs:
            raise OptionError(
                f"{called}: a model of several inputs cannot be a base: expected one that reads a "
                "text alone"
            )
        return super().gives(model, called, digest)

    def encoder_of(self, network: nn.Module) -> EmbeddedRows:
        return cast(EmbeddedRows, network.reader)

    def inputs_of(self, model: AnyModel) -> LearnedInputs:
        inputs: LearnedInputs = model.learned.input.inputs
        return inputs

    def names(self, network: nn.Module) -> EncoderNames:
        return EncoderNames("reader.embed.features.0.table.weight", {"": "reader.encoder."})
