"""`Pretrained`: what a trained model gives to another, and its copy in the folder of a run."""

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
    """called: as messages name it. digest: of what it was read from.

    tokeniser, text: what its texts were cut by, and the settings of [text] that say so; None, {}
    where any will do. words, table: its vocabulary, and a vector for each (words, width); mean,
    spread: the scale of a model of vectors. encoder: its kind in ENCODERS, "" where it has none;
    settings: those of [model] that the layers follow from; weights: of the layers, by their names
    in that kind of encoder; cells: what is known of cells of one's own among them. dropout: the
    rates that it was trained with, by their keys in [model]. direction: "backward" of layers that
    read from the right, which are no base without others from the left. vectors, width: a file
    that has the vectors of words, of so many numbers, where these are not known yet. context: a
    character language model whose states stand beside the words of the task; then there is nothing
    else to take over. language, whole: of a language model, the settings of [model] that its
    network follows from, and all weights of it by their names there, for another language model.
    recipe_settings: of the copy in a run's folder, the settings of [base] that `base.recipe =
    auto` chose, {} where it was not set; None of a base that no run has begun from yet."""

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
        """Of the vector of a word; 0 where it has none."""
        return self.width if self.table is None else self.table.shape[1]


def taken_layers(pretrained: Pretrained, base: BaseSettings) -> int:
    """How many layers are taken over."""
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
    """A base, and how words that it does not have begin."""

    pretrained: Pretrained
    new_words: str


# What JSON holds of a copy: the field, by its key in the file.
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
ENCODER, WHOLE = "encoder.", "whole."  # how the names of weights begin in a copy


def write_copy(folder: Path, pretrained: Pretrained) -> None:
    """All of it, as a folder that can be checked: the base itself is not needed any more."""
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
    """Those whose names begin so, by the rest of their names."""
    return {n.removeprefix(begin): t for n, t in weights.items() if n.startswith(begin)}


def _plain(value: Any) -> Any:
    """As JSON holds it."""
    return dict(value) if isinstance(value, Mapping) else value


def renamed(weights: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, Tensor]:
    """Copies of the weights whose names begin with a key, which its value takes the place of."""
    return {
        new_begin + name.removeprefix(begin): tensor.detach().cpu().to(torch.float32).clone()
        for begin, new_begin in names.items()
        for name, tensor in weights.items()
        if name.startswith(begin)
    }
