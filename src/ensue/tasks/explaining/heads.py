"""Where the heads of a Transformer look."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ensue.drawing.html import block, on_page
from ensue.errors import OptionError
from ensue.layers.recorded_attention import Recorded, recorded_attention
from ensue.tasks.explaining.heads_picture import heads_picture
from ensue.tasks.explaining.heads_text import heads_text
from ensue.tasks.model import Model
from ensue.tasks.rows.part import Part

MOST_TOKENS = 200
Weights = tuple[tuple[float, ...], ...]  # (queries, keys)


@dataclass(frozen=True)
class HeadMap:
    """One layer of attention. name: "encoder self-attention"; layer: from 1 on; queries, keys: the
    tokens that look, and those that are looked at; heads: the weights of each; mean: of them."""

    name: str
    layer: int
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    heads: tuple[Weights, ...]
    mean: Weights


@dataclass(frozen=True)
class HeadMaps:
    """All layers of a network, for one input. answer: what was said of it, "" for nothing; network:
    whose weights these are."""

    answer: str
    network: str
    maps: tuple[HeadMap, ...]

    @property
    def found(self) -> HeadMaps:
        return self

    def as_text(self, width: int = 80, colour: bool = False) -> str:
        return heads_text(self, width, colour)

    def as_svg(self) -> str:
        return heads_picture(self)

    def _repr_html_(self) -> str:
        return block("Attention", on_page(self.as_svg()))


@dataclass(frozen=True)
class Looking:
    """Layers of attention of a network. title: what they are called; holds: whether the name of a
    layer is one of theirs; queries, keys: tokens; call: which of the times that they ran."""

    title: str
    holds: Callable[[str], bool]
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    call: int = 0


def head_maps(
    model: Model[Any, Part, Any],
    run: Callable[[nn.Module], object],
    looking: Sequence[Looking],
    answer: str = "",
    layer: int | None = None,
    described: str = "",
) -> HeadMaps:
    """What the heads of the first network look at while `run` runs it. layer: that one alone;
    described: the network in a few words, where the model is more than that."""
    longest = max(len(own.keys) for own in looking)
    if longest > MOST_TOKENS:
        raise OptionError(
            f"--attention: expected at most {MOST_TOKENS} tokens, got {longest:,}; give a part "
            "of the text"
        )
    network = model.networks[0] if model.networks else nn.Module()
    with torch.no_grad(), recorded_attention(network) as found:
        if not found:
            raise _no_heads(model)
        run(network)
    maps = [own for one in looking for own in _layers(one, found)]
    count = max(own.layer for own in maps)
    if layer is not None:
        if not 1 <= layer <= count:
            raise OptionError(f"--layer: expected a layer from 1 to {count}, got {layer}")
        maps = [own for own in maps if own.layer == layer]
    name, several = described or model.task.describe(model), len(model.networks)
    whose = f"the first of {several} networks, {name}" if several > 1 else name
    return HeadMaps(answer, whose, tuple(maps))


def _layers(looking: Looking, found: Recorded) -> list[HeadMap]:
    maps: list[HeadMap] = []
    for name, calls in found.items():
        if looking.holds(name):
            weights = calls[looking.call][0]  # (heads, queries, keys)
            heads = tuple(_rows(own) for own in weights)
            keys, queries = looking.keys, looking.queries
            mean = _rows(weights.mean(0))
            maps.append(HeadMap(looking.title, len(maps) + 1, queries, keys, heads, mean))
    return maps


def _rows(weights: Tensor) -> Weights:
    return tuple(tuple(row) for row in weights.double().cpu().tolist())


def _no_heads(model: Model[Any, Any, Any]) -> OptionError:
    keys: Mapping[str, Any] = model.model.table()
    key = next((own for own in ("encoder", "family") if own in keys), "")
    return OptionError(
        f"--attention: expected a Transformer, got {model.task.describe(model)}; train one with "
        f"--set model.{key}=transformer"
    )
