"""Explanations of answers in words: the attention of each word."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
from torch import nn

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import END, START
from ensue.errors import OptionError
from ensue.tasks.abilities import NOTHING, Explanation, RequestOptions
from ensue.tasks.any_model import AnyModel
from ensue.tasks.explaining.heads import HeadMaps, Looking, head_maps
from ensue.tasks.explaining.options import EXPLAINED
from ensue.tasks.options import Option
from ensue.tasks.seq2seq.answer import Best
from ensue.tasks.seq2seq.pairs import PairColumns, Taught, pair_networks
from ensue.tasks.seq2seq.search import SearchEnsemble, searched
from ensue.training.processes import device_of_weights, moved


class ExplainWords:
    """Explains the best answer to a source by the probability and the attention of each word.
    option: the command-line option that gives the source."""

    def __init__(self, option: Option) -> None:
        self.option = option

    def explain(
        self, model: AnyModel, inputs: Any, options: RequestOptions = NOTHING
    ) -> Explanation:
        model.must_be_fitted()
        task: Any = model.task
        target = model.learned.target
        task.must_attend(model)
        part = _part(model, inputs)
        sources, networks = model.learned.source.encode(part), pair_networks(model)
        best = searched(networks, sources, replace(task.search(model), aligned=True))[0][0]
        batch = PairColumns(sources, Ragged.of([best.content], np.int32)).batch([0])
        logs = SearchEnsemble(networks).log_probabilities(batch)[: len(best.tokens), 0]
        assert best.watched is not None
        answer = Best(
            target.text_of(best.content),
            best.log_probability,
            tuple(target.words.tokens_of(best.tokens)),
            (),
            model.learned.source.positions(part)[0],
            tuple(tuple(weights) for weights in best.watched.tolist()),
        )
        probabilities = tuple(math.exp(log) for log in logs.tolist())
        explanation: Explanation = model.learned.source.explanation(
            answer, probabilities, inputs, model
        )
        return explanation


class WordHeads:
    """The self-attention of the source, the masked self-attention of the target, and the
    cross-attention from target to source, for the best answer."""

    option = EXPLAINED

    def explain(self, model: AnyModel, inputs: Any, options: RequestOptions = NOTHING) -> HeadMaps:
        """Explains the answer. options: layer."""
        model.must_be_fitted()
        task: Any = model.task
        target = model.learned.target
        part = _part(model, inputs)
        sources = model.learned.source.encode(part)
        best = searched(pair_networks(model), sources, task.search(model))[0][0]
        batch = PairColumns(sources, Ragged.of([best.content], np.int32)).batch([0])
        source = model.learned.source.positions(part)[0]
        words = target.words.tokens_of(best.content)
        read, spoken = (START, *words), (*words, END)
        looking = [
            Looking("encoder self-attention", _named("encoder", "self_attn"), source, source),
            Looking("decoder masked self-attention", _named("decoder", "self_attn"), read, read),
            Looking("decoder cross-attention", _named("decoder", "multihead_attn"), spoken, source),
        ]

        def run(network: nn.Module) -> object:
            pairs = cast(Taught, network).pairs
            return pairs.costs(moved(batch, device_of_weights(network)))

        return head_maps(model, run, looking, target.text_of(best.content), options.get("layer"))


def _named(stack: str, layer: str) -> Callable[[str], bool]:
    """Whether an attention layer is this one of this stack."""
    return lambda name: f"{stack}." in name and name.endswith(layer)


def _part(model: AnyModel, inputs: Any) -> Any:
    """The source as a part; raises an error if it has no steps."""
    part = model.reader.questions([inputs])
    if not len(model.learned.source.encode(part).values):
        raise OptionError("explain: expected a text with at least one token, got none")
    return part
