"""Where the words of a translation come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from torch import nn

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import END, START
from ensue.drawing.document import Drawn
from ensue.drawing.matrix import (
    column_height,
    column_names,
    matrix_text,
    shade,
    short_names,
    squares,
    weight_key,
)
from ensue.drawing.svg import INK, QUIET, Drawing, text_width
from ensue.drawing.theme import shaded
from ensue.errors import OptionError
from ensue.tasks.explaining.heads import HeadMaps, Looking, head_maps
from ensue.tasks.explaining.options import EXPLAINED
from ensue.tasks.rows.part import Part
from ensue.tasks.seq2seq.search import searched
from ensue.tasks.seq2seq.source import PairColumns, Taught
from ensue.tasks.seq2seq.task import pair_networks
from ensue.tasks.task import NOTHING, Asked
from ensue.tasks.translate.answer import Explained
from ensue.tasks.translate.learned import source_texts
from ensue.training.processes import device_of_weights, moved

if TYPE_CHECKING:
    from ensue.tasks.translate.task import Translator

LONGEST_NAME = 16  # cells of a word
CELL, MARGIN = 26.0, 20.0  # pixels


def alignment_text(found: Explained, width: int = 80, colour: bool = False) -> str:
    """A row for each word said, with its probability; a column for each word of the source. The
    darker a cell, the more the word looked there."""
    said = short_names(found.tokens, LONGEST_NAME)
    rows = [[word, f"{p:4.0%}"] for word, p in zip(said, found.probabilities, strict=True)]
    source = short_names(found.source, LONGEST_NAME)
    return matrix_text(rows, source, found.alignment, lambda own: shaded(own, colour), width)


def alignment_picture(found: Explained) -> str:
    """The same as SVG: the source along the top, the words said with their probabilities on the
    left, the weights as shades and, under the pointer, as numbers."""
    drawing = Drawing()
    source = short_names(found.source, 2 * LONGEST_NAME)
    said = short_names(found.tokens, 2 * LONGEST_NAME)
    left = MARGIN + max(text_width(word, 14) for word in said) + 52
    top = MARGIN + 24 + column_height(source)
    beyond = column_names(drawing, source, (left, top), CELL)
    for line, (word, probability) in enumerate(zip(said, found.probabilities, strict=True)):
        middle = top + (line + 0.5) * CELL - 1
        drawing.words((left - 50, middle), word, 14, INK, "end", weight=600)
        drawing.words((left - 10, middle), f"{probability:.0%}", 11, QUIET, "end")
    at = left, top
    squares(drawing, found.alignment, at, CELL, shade, lambda i, j: f"{said[i]} ← {source[j]}")
    bottom = top + len(said) * CELL + 16
    weight_key(drawing, (left, bottom), "attention")
    wide = max(left + len(source) * CELL + beyond + MARGIN, left + 260)
    return drawing.svg(wide, bottom + MARGIN, "Where each word comes from")


@dataclass(frozen=True)
class TranslationExplanation(Drawn):
    """A translation drawn as a matrix: the darker, the more a word looked there."""

    found: Explained

    def as_text(self, width: int = 80, colour: bool = False) -> str:
        return f"{self.found.text}\n\n{alignment_text(self.found, width, colour)}"

    def as_svg(self) -> str:
        return alignment_picture(self.found)


class ExplainTranslation:
    """The best translation of a text, with the probability of each word and where it looked."""

    option = EXPLAINED

    def explain(
        self, model: Translator, given: str, asked: Asked = NOTHING
    ) -> TranslationExplanation:
        model.must_be_fitted()
        task = model.task
        task.must_attend(model)
        part = _source(model, given)
        target = model.learned.target
        best, probabilities = task.explained(task.sources(part, model), model)
        assert best.watched is not None
        return TranslationExplanation(
            Explained(
                source_texts(part)[0],
                tuple(target.words.tokens_of(best.tokens)),
                probabilities,
                tuple(tuple(row) for row in best.watched.tolist()),
                target.text_of(best.content),
            )
        )


class TranslationHeads:
    """Self-attention of the source, masked self-attention of what is said, and cross-attention from
    it to the source, while the best translation is read."""

    option = EXPLAINED

    def explain(self, model: Translator, given: str, asked: Asked = NOTHING) -> HeadMaps:
        """asked: layer."""
        part, target = _source(model, given), model.learned.target
        task = model.task
        sources = task.sources(part, model)
        best = searched(pair_networks(model), sources, task.search(model))[0][0]
        batch = PairColumns(sources, Ragged.of([best.content], np.int32)).batch([0])
        source = source_texts(part)[0]
        words = target.words.tokens_of(best.content)
        read, said = (START, *words), (*words, END)
        looking = [
            Looking("encoder self-attention", _named("encoder", "self_attn"), source, source),
            Looking("decoder masked self-attention", _named("decoder", "self_attn"), read, read),
            Looking("decoder cross-attention", _named("decoder", "multihead_attn"), said, source),
        ]

        def run(network: nn.Module) -> object:
            pairs = cast(Taught, network).pairs
            return pairs.costs(moved(batch, device_of_weights(network)))

        return head_maps(model, run, looking, target.text_of(best.content), asked.get("layer"))


def _named(stack: str, layer: str) -> Callable[[str], bool]:
    """Whether a layer of attention is this one of that stack."""
    return lambda name: f"{stack}." in name and name.endswith(layer)


def _source(model: Translator, given: str) -> Part:
    """The text as a part; an error where it has no tokens."""
    model.must_be_fitted()
    part = model.task.asked([given], model)
    if not len(part.inputs.values):
        raise OptionError("explain: expected a text with at least one token, got none")
    return part
