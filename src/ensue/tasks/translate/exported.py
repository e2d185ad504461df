"""A translator for export: what reads the source, one step of what says the target, the search."""

from __future__ import annotations

from typing import Any

from ensue.tasks.exported import (
    BATCH,
    TIME,
    Exported,
    Input,
    Step,
    count_step,
    look_up_step,
    tokenise_step,
)
from ensue.tasks.model import Model
from ensue.tasks.seq2seq.exported import generating_graphs, search_step
from ensue.tasks.seq2seq.search import Search
from ensue.tasks.seq2seq.task import pair_networks
from ensue.tasks.translate.learned import LearnedPairs


def exported(model: Model[Any, Any, Any], how: Search) -> Exported:
    learned: LearnedPairs = model.learned
    before: tuple[Step, ...]
    if learned.scale is not None:
        source = Input("source", (TIME, BATCH, learned.scale.width))
        scale = {"mean": learned.scale.mean.tolist(), "spread": learned.scale.spread.tolist()}
        before = ({"step": "scale", "from": "question", "to": "source", **scale},)
    else:
        assert learned.source_words is not None
        source = Input("source", (TIME, BATCH), len(learned.source_words))
        before = (
            tokenise_step(learned.source_tokeniser),
            look_up_step(learned.source_words.tokens, to="source"),
        )
    graphs = generating_graphs(pair_networks(model), source, len(learned.target.words))
    steps = (*before, count_step("source"))
    return Exported("translate", graphs, steps, (search_step(how, learned.target, "lengths"),))
