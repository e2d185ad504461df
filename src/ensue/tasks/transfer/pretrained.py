"""`Pretrained`: the transferable parts of a trained model, and their copy in the folder of a
run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.tokenise import Tokeniser
from ensue.data.vocabulary import Vocabulary
from ensue.errors import OptionError
from ensue.tasks.saved import Saved, loading, read_model, write_model

if TYPE_CHECKING:
    from ensue.tasks.transfer.settings import BaseSettings

KIND = "base"  # of the copy


@dataclass(frozen=True)
class Pretrained:
    """A base to begin training from.

    called: the base's name in messages.
    digest: one digest of the files that the base was read from.
    tokeniser: the tokeniser of the base's texts; None if any tokeniser fits.
    text: the base's settings in [text]; {} if any settings fit.
    words, table: the vocabulary, and the word vectors (words, width).
    mean, spread: the scale of a model of vectors.
    encoder: the kind of encoder in ENCODERS, "" without an encoder.
    settings: the settings of [model] that define the layers.
    weights: the weights of the layers, by their names in that kind of encoder.
    cells: facts of custom cells in the layers.
    dropout: the dropout rates of the base's training, by their keys in [model].
    direction: "backward" if the layers read from right to left; they are used together with layers
    that read from left to right.
    vectors, width: an unread file of word vectors, and the size of a vector.
    context: a character language model whose states are read next to the words of the task; nothing
    else is then taken over.
    language, whole: for a language model, the settings of [model] that define its network, and all
    its weights by name; another language model can begin from them.
    recipe_settings: in the copy of a run's folder, the settings of [base] chosen for
    `base.recipe = auto`, {} for another recipe; None before any run has begun from the base."""

    called: str
    digest: str
    tokeniser: Tokeniser | None = None
    text: Mapping[str, Any] = field(default_factory=dict)
    words: Vocabulary | None = None
    table: Tensor | None = None
    mean: NDArray[np.float32] | None = None
    spread: NDArray[np.float32] | None = None
    encoder: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, Tensor] = field(default_factory=dict)
    cells: Mapping[str, Any] = field(default_factory=dict)
    dropout: Mapping[str, float] = field(default_factory=dict)
    direction: str = "forward"
    vectors: str = ""
    width: int = 0
    context: Pretrained | None = None
    language: Mapping[str, Any] = field(default_factory=dict)
    whole: Mapping[str, Tensor] = field(default_factory=dict)
    recipe_settings: Mapping[str, Any] | None = None

    @property
    def layers(self) -> int:
        return int(self.settings.get("layers", 0))

    @property
    def word_width(self) -> int:
        """The width of word vectors; 0 if there are none."""
        return self.width if self.table is None else self.table.shape[1]


def taken_layers(pretrained: Pretrained, base: BaseSettings) -> int:
    """The number of layers that are taken over."""
    if base.layers is None:
        return pretrained.layers
    if base.layers > pretrained.layers:
        raise OptionError(
            f"base.layers: expected at most {pretrained.layers}, the layers of "
            f"{pretrained.called}, got "
            f"{base.layers}; for fresh layers on top say base.added"
        )
    return base.layers


class Beginning(NamedTuple):
    """A base, and the initial vectors of words that it does not have."""

    pretrained: Pretrained
    new_words: str


# The fields of a copy in JSON, by their key in the file.
PLAIN = {
    **{
        name: name
        for name in (
            *("called", "digest", "text", "encoder", "settings", "cells", "dropout", "width"),
            *("direction", "language"),
        )
    },
    "settled": "recipe_settings",
}
ENCODER, WHOLE = "encoder.", "whole."  # prefix of the names of weights in a copy


def write_copy(folder: Path, pretrained: Pretrained) -> None:
    """Writes a complete, verifiable copy; afterwards the base itself is no longer needed."""
    pretrained = replace(pretrained, recipe_settings=pretrained.recipe_settings or {})
    facts = {key: _plain(getattr(pretrained, name)) for key, name in PLAIN.items()}
    facts["tokeniser"] = None if pretrained.tokeniser is None else pretrained.tokeniser.to_dict()
    words = {} if pretrained.words is None else {"words": pretrained.words.to_dict()}
    scale = {"mean": pretrained.mean, "spread": pretrained.spread}
    arrays = {name: array for name, array in scale.items() if array is not None}
    stored = {ENCODER: pretrained.weights, WHOLE: pretrained.whole}
    weights = {
        f"{begin}{n}": t.contiguous() for begin, some in stored.items() for n, t in some.items()
    }
    if pretrained.table is not None:
        weights["table"] = pretrained.table.contiguous()
    write_model(folder, Saved(KIND, facts, words, arrays, [weights]))


def read_copy(folder: Path) -> Pretrained:
    """The inverse of `write_copy`."""
    saved = read_model(folder)
    with loading(folder):
        cut, known = saved.facts["tokeniser"], saved.vocabularies.get("words")
        (weights,) = saved.networks
        return Pretrained(
            **{name: saved.facts[key] for key, name in PLAIN.items()},
            tokeniser=None if cut is None else Tokeniser.from_dict(cut),
            words=None if known is None else Vocabulary.from_dict(known),
            table=weights.get("table"),
            mean=saved.arrays.get("mean"),
            spread=saved.arrays.get("spread"),
            weights=_named(weights, ENCODER),
            whole=_named(weights, WHOLE),
        )


def _named(weights: Mapping[str, Tensor], begin: str) -> dict[str, Tensor]:
    """The weights whose names have this prefix, under the rest of their names."""
    return {n.removeprefix(begin): t for n, t in weights.items() if n.startswith(begin)}


def _plain(value: Any) -> Any:
    """A value in the form of JSON."""
    return dict(value) if isinstance(value, Mapping) else value


def renamed(weights: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, Tensor]:
    """Copies of the weights with these prefixes, each prefix replaced by its value."""
    return {
        new_begin + name.removeprefix(begin): tensor.detach().cpu().to(torch.float32).clone()
        for begin, new_begin in names.items()
        for name, tensor in weights.items()
        if name.startswith(begin)
    }
