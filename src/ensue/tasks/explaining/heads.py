"""Attention of the heads of a Transformer, as text and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ensue.drawing.chart import MARGIN
from ensue.drawing.document import Drawn
from ensue.drawing.layout import cut, downwards, width_of
from ensue.drawing.matrix import (
    column_height,
    column_names,
    shade,
    short_names,
    squares,
    weight_key,
)
from ensue.drawing.svg import INK, QUIET, Drawing, Point, text_width
from ensue.drawing.theme import shaded
from ensue.errors import OptionError
from ensue.escape import printable
from ensue.layers.multihead import Recorded, recorded_attention
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.any_model import AnyModel
from ensue.tasks.blocks.encoders import ENCODERS
from ensue.tasks.explaining.attribution import wrapped
from ensue.tasks.explaining.methods import sides_of
from ensue.tasks.explaining.options import EXPLAINED
from ensue.tasks.explaining.rows import explained_row
from ensue.tasks.rows.part import Part, shortened

LONGEST_TYPED = 14  # cells of a token
TYPED_GAP = 3  # cells between two matrices
NARROWEST = 8  # width of the name of a head


def heads_text(maps: HeadMaps, width: int, colour: bool) -> str:
    """Matrices of attention as text. Each layer begins with the mean of its heads, then shows each
    head: a row for each query token, a column for each key token; darker means more attention."""
    blocks = [f"answer: {printable(maps.answer)}"] if maps.answer else []
    blocks.append(f"of {maps.network}; each row sums up to 1")
    for head_map in maps.maps:
        blocks.append(f"{head_map.name}, layer {head_map.layer}")
        blocks += _rows_of_matrices(head_map, width, colour)
    return "\n\n".join(blocks)


def _rows_of_matrices(head_map: HeadMap, width: int, colour: bool) -> list[str]:
    names = short_names(head_map.queries, LONGEST_TYPED)
    left = max(map(width_of, names)) + 2
    wide = max(2 * len(head_map.keys), NARROWEST)
    beside = max(1, (width - left + TYPED_GAP) // (wide + TYPED_GAP))
    matrices = [
        ("mean", head_map.mean),
        *((f"head {k}", w) for k, w in enumerate(head_map.heads, 1)),
    ]
    heading = downwards(short_names(head_map.keys, LONGEST_TYPED))
    blocks = []
    for first in range(0, len(matrices), beside):
        some = matrices[first : first + beside]
        lines = [[" " * left, *(title for title, _ in some)]]
        lines += [[" " * left, *(line for _ in some)] for line in heading]
        for k, name in enumerate(names):
            cells = ["".join(shaded(v, colour) for v in weights[k]) for _, weights in some]
            lines.append([name + " " * (left - width_of(name)), *cells])
        blocks.append("\n".join(_joined(line, wide, colour) for line in lines))
    return blocks


def _joined(cells: Sequence[str], wide: int, colour: bool) -> str:
    """A name and its matrices on one line. wide: width in cells; colour codes do not count."""
    name, *rest = cells
    padded = [text if "\x1b" in text else text + " " * (wide - width_of(text)) for text in rest]
    return (name + (" " * TYPED_GAP).join(padded)).rstrip()


LARGEST, SMALLEST = 24.0, 6.0  # cells
MEAN, HEAD = 280.0, 120.0  # approximate width of the matrix of the mean, and of a head
MOST_CELLS = 150_000
GAP = 26.0
LONGEST_NAME = 20
MOST_BESIDE = 4  # heads in a row


def heads_picture(maps: HeadMaps) -> str:
    """A row for each layer: the mean of its heads with the tokens at its sides, then each head;
    weights are tooltips."""
    cells = sum(
        len(head_map.keys) * len(head_map.queries) * (1 + len(head_map.heads))
        for head_map in maps.maps
    )
    if cells > MOST_CELLS:
        raise OptionError(
            f"--picture: expected at most {MOST_CELLS:,} weights, got {cells:,}; choose one with "
            "--layer, or give a shorter text"
        )
    drawing = Drawing()
    drawing.words((MARGIN, 36), "Attention", 20, INK, "start", weight=600)
    top, wide = 62.0, 460.0
    note = f"of {maps.network}; each row sums up to 1, the bolder the more"
    for line in [*wrapped(note), *([f"answer: {maps.answer}"] if maps.answer else [])]:
        drawing.words((MARGIN, top), cut(printable(line), 116), 13, QUIET, "start")
        wide = max(wide, 2 * MARGIN + text_width(line, 13))
        top += 20
    for head_map in maps.maps:
        title = f"{head_map.name}, layer {head_map.layer}"
        drawing.words((MARGIN, top + 20), title, 16, INK, "start", weight=600)
        top, right = _layer(drawing, head_map, top + 40)
        wide = max(wide, right + MARGIN)
    weight_key(drawing, (MARGIN, top + 14))
    return drawing.svg(wide, top + 40, "Attention of the heads of a Transformer")


def _layer(drawing: Drawing, head_map: HeadMap, top: float) -> tuple[float, float]:
    """Draws a layer; returns where the next one begins, and the width of this one."""
    keys, queries = (
        short_names(head_map.keys, LONGEST_NAME),
        short_names(head_map.queries, LONGEST_NAME),
    )
    cell, small = _side(MEAN, len(keys)), _side(HEAD, len(keys))
    left = MARGIN + max(text_width(name, 13) for name in queries) + 8
    begin = top + 18 + column_height(keys)
    right = left + len(keys) * cell + column_names(drawing, keys, (left, begin), cell)
    for k, name in enumerate(queries):
        drawing.words((left - 8, begin + (k + 0.5) * cell - 1), name, 13, INK, "end")
    _weights(drawing, head_map, "mean of the heads", head_map.mean, (left, begin), cell)
    bottom = begin + len(queries) * cell
    drawing.words((left + len(keys) * cell / 2, bottom + 12), "mean", 12, QUIET)
    first, across = right + GAP, max(len(keys) * small, 46.0) + GAP
    down = len(queries) * small + 40
    for k, weights in enumerate(head_map.heads):
        x = first + (k % MOST_BESIDE) * across
        y = begin + (k // MOST_BESIDE) * down
        drawing.words((x, y - 10), f"head {k + 1}", 12, QUIET, "start")
        _weights(drawing, head_map, f"head {k + 1}", weights, (x, y), small)
        right = max(right, x + across - GAP)
        bottom = max(bottom, y + down - 40)
    return bottom + 34, right


def _weights(
    drawing: Drawing, head_map: HeadMap, title: str, weights: Weights, at: Point, cell: float
) -> None:
    """Draws weights; masked ones, which are 0, stay empty."""

    def tip(row: int, column: int) -> str:
        return f"{title}: {printable(head_map.queries[row])} → {printable(head_map.keys[column])}"

    squares(drawing, weights, at, cell, lambda weight: shade(weight) if weight else "", tip)


def _side(wide: float, cells: int) -> float:
    """Cell size in pixels for `cells` cells that are together about `wide`."""
    return min(max(wide / cells, SMALLEST), LARGEST)


MOST_TOKENS = 200
Weights = tuple[tuple[float, ...], ...]  # (queries, keys)


@dataclass(frozen=True)
class HeadMap:
    """One layer of attention. name: "encoder self-attention"; layer: its number, from 1; queries,
    keys: tokens; heads: the weights of each head; mean: the mean over the heads."""

    name: str
    layer: int
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    heads: tuple[Weights, ...]
    mean: Weights


@dataclass(frozen=True)
class HeadMaps(Drawn):
    """All layers of a network, for one input. answer: the model's answer, or ""; network: a
    description of the network."""

    answer: str
    network: str
    maps: tuple[HeadMap, ...]

    title: ClassVar[str] = "Attention"

    @property
    def result(self) -> HeadMaps:
        return self

    def as_text(self, width: int = 80, colour: bool = False) -> str:
        return heads_text(self, width, colour)

    def as_svg(self) -> str:
        return heads_picture(self)


@dataclass(frozen=True)
class Looking:
    """A group of attention layers. title: their name; holds: whether a layer's name belongs to the
    group; queries, keys: tokens; call: index of the call, if they ran several times."""

    title: str
    holds: Callable[[str], bool]
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    call: int = 0


def head_maps(
    model: AnyModel,
    run: Callable[[nn.Module], object],
    looking: Sequence[Looking],
    answer: str = "",
    layer: int | None = None,
    described: str = "",
) -> HeadMaps:
    """The attention of the heads of the first network while `run` runs it. layer: only this one;
    described: a description of the network, if the model is more than the network."""
    longest = max(len(look.keys) for look in looking)
    if longest > MOST_TOKENS:
        raise OptionError(
            f"--attention: expected at most {MOST_TOKENS} tokens, got {longest:,}; give a part "
            "of the text"
        )
    network = model.networks[0] if model.networks else nn.Module()
    with torch.no_grad(), recorded_attention(network) as recorded:
        if not recorded:
            raise _no_heads(model)
        run(network)
    maps = [layer for one in looking for layer in _layers(one, recorded)]
    count = max(head_map.layer for head_map in maps)
    if layer is not None:
        if not 1 <= layer <= count:
            raise OptionError(f"--layer: expected a layer from 1 to {count}, got {layer}")
        maps = [head_map for head_map in maps if head_map.layer == layer]
    name, several = described or model.describe(), len(model.networks)
    whose = f"the first of {several} networks, {name}" if several > 1 else name
    return HeadMaps(answer, whose, tuple(maps))


def _layers(looking: Looking, recorded: Recorded) -> list[HeadMap]:
    maps: list[HeadMap] = []
    for name, calls in recorded.items():
        if looking.holds(name):
            weights = calls[looking.call][0]  # (heads, queries, keys)
            heads = tuple(_rows(weight) for weight in weights)
            keys, queries = looking.keys, looking.queries
            mean = _rows(weights.mean(0))
            maps.append(HeadMap(looking.title, len(maps) + 1, queries, keys, heads, mean))
    return maps


def _rows(weights: Tensor) -> Weights:
    return tuple(tuple(row) for row in weights.double().cpu().tolist())


def _no_heads(model: AnyModel) -> OptionError:
    keys: Mapping[str, Any] = model.settings.table()
    key = next((key for key in ("encoder", "family") if key in keys), "")
    return OptionError(
        f"--attention: expected a Transformer, got {model.describe()}; train one with "
        f"--set model.{key}=transformer"
    )


SIDES = ("first text", "second text")


class EncoderHeads:
    """Self-attention of every step to all steps of its row; for a pair, of each side.

    run: runs a network over the only row of a part."""

    option = EXPLAINED

    def __init__(
        self,
        run: Callable[[nn.Module, Part, Any], object],
        question: Callable[[Any, RequestOptions], Any] = lambda inputs, options: inputs,
    ) -> None:
        self._run, self._question = run, question

    def explain(self, model: AnyModel, inputs: Any, options: RequestOptions = NOTHING) -> HeadMaps:
        """The attention for an input. options: layer."""
        if model.inputs:
            raise OptionError("attention: expected a model of one input, got several")
        part = _cut(explained_row(model, self._question(inputs, options)), model)
        names, sides = part.numbers.token_names, sides_of(part)
        looking = []
        for call, side in enumerate(sides):
            labels = tuple(names[k] if part.texts else str(at + 1) for at, k in enumerate(side))
            of = f" of the {SIDES[call]}" if len(sides) > 1 else ""
            looking.append(Looking(f"encoder self-attention{of}", _every, labels, labels, call))
        (answer,) = model.task.answers(part, model)
        answer_text = answer.as_line("").rstrip("\t").replace("\t", " ")

        def run(network: nn.Module) -> object:
            return self._run(network, part, model)

        described = ENCODERS[model.settings.encoder].describe(model.settings)
        return head_maps(model, run, looking, answer_text, options.get("layer"), described)


def _cut(part: Part, model: AnyModel) -> Part:
    """The part of the row that the networks read."""
    how = model.text.max_length, model.text.cut
    second = None if part.second is None else shortened(part.second, *how)
    return replace(part, inputs=shortened(part.inputs, *how), second=second)


def _every(name: str) -> bool:
    return True
