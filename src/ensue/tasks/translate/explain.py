"""Where the words of a translation come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from torch import nn

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import END, START
from ensue.errors import OptionError
from ensue.tasks.explaining.heads import HeadMaps, Looking, head_maps
from ensue.tasks.explaining.options import EXPLAINED
from ensue.tasks.rows.part import Part
from ensue.tasks.seq2seq.search import searched
from ensue.tasks.seq2seq.source import PairColumns, Taught
from ensue.tasks.seq2seq.task import pair_networks
from ensue.tasks.task import NOTHING, Asked
from ensue.tasks.translate.alignment import alignment_picture, alignment_text
from ensue.tasks.translate.answer import Explained
from ensue.tasks.translate.learned import source_texts
from ensue.training.devices import device_of_weights, moved

if TYPE_CHECKING:
    from ensue.tasks.translate.task import Translator


@dataclass(frozen=True)
class TranslationExplanation:
    """A translation drawn as a matrix: the darker, the more a word looked there."""

    found: Explained

    def as_text(self, width: int, colour: bool) -> str:
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
