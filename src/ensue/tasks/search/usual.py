"""The ranges of common settings: a task's space has the rows of this table that apply to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ensue.settings import OFF
from ensue.tasks.rows.part import Part
from ensue.tasks.search.ranges import Around, Between, Choice, Searched, Sizes, Space

if TYPE_CHECKING:
    from ensue.tasks.task import Task

HEADS = 8  # widths are multiples of it, so that Transformer heads divide them
SEVERAL = (2, 3, 4)
TRIED_CELLS = ("LSTM", "GRU", "MGU")

# For every [model] table with the key. A setting that is off is not searched, unless off is a
# choice.
RANGES: Mapping[str, Searched] = {
    "layers": Searched(Choice((1, 2, 3), ordered=True)),
    "hidden_size": Searched(Sizes(2, HEADS)),
    "embedding_size": Searched(Sizes(2, HEADS)),
    "pooling": Searched(Choice(("max", "mean", "mean+max", "attention", "last"))),
    "dropout_input": Searched(Between(0.0, 0.6)),
    "dropout_layers": Searched(Between(0.0, 0.5), {"model.layers": SEVERAL}),
    "dropout_output": Searched(Between(0.0, 0.6)),
    "word_dropout": Searched(Between(0.0, 0.3)),
    "batch_rows": Searched(Sizes(1, 4)),
}
TRAINING: Mapping[str, Searched] = {
    "train.rate": Searched(Around(5)),
    "train.schedule": Searched(Choice(("constant", "linear", "cosine"))),
    "train.averaging": Searched(Choice((OFF.word, 0.99, 0.999))),
}


def usual_space(task: Task[Any, Any, Any]) -> dict[str, Searched]:
    """The search space of every task with such settings: the kind of network first, then cells,
    sizes, dropout, batches and training. Solved networks have no training."""
    from ensue.tasks.blocks.encoders import ENCODERS  # loaded late: the space does not need them

    fields = task.settings.model_fields
    space: dict[str, Searched] = {}
    kinds: dict[str, tuple[str, ...]] = {"family": (*task.families,), "encoder": (*ENCODERS,)}
    kind = next((kind for kind in kinds if kind in fields), "")
    trained: dict[str, tuple[Any, ...]] = {}
    recurrent: dict[str, tuple[Any, ...]] = {}
    if kind:
        key, names = f"model.{kind}", kinds[kind]
        space[key] = Searched(Choice(names))
        learn = tuple(name for name in names if kind != "family" or not task.families[name].solved)
        trained = {key: learn} if learn != names else {}
        recurrent = {key: ("recurrent",)} if "recurrent" in names else {}
    if "cell" in fields:
        space["model.cell"] = Searched(Choice(TRIED_CELLS), recurrent)
    of_task = {f"model.{name}": row for name, row in RANGES.items() if name in fields}
    for key, row in {**of_task, **TRAINING}.items():
        space[key] = Searched(row.range, {**trained, **row.when})
    return space


def without(space: Space, *keys: str) -> dict[str, Searched]:
    """The space without these settings, which are then not searched."""
    return {key: row for key, row in space.items() if key not in keys}


OF_TEXTS = ("model.embedding_size", "model.word_dropout", "text.level", "text.min_count")
SHORT = 40  # maximum characters of a text for searching the level of characters
LEVEL = Searched(Choice(("words", "pieces", "characters")))
LONG_LEVEL = Searched(Choice(("words", "pieces")))
MIN_COUNT = Searched(Choice((1, 2, 3), ordered=True))
# Found by hand on IMDB: much dropout, a rate that falls to 0, averaged weights.
DROPPED_OUT: Mapping[str, Any] = {
    "model.pooling": "mean+max",
    "model.word_dropout": 0.1,
    "model.dropout_input": 0.4,
    "model.dropout_output": 0.4,
    "train.rate": 0.002,
    "train.schedule": "linear",
    "train.averaging": 0.999,
}


def text_space(space: Space, train: Part) -> Space:
    """The search space for these rows: vectors have no words, and long texts are not read as
    characters."""
    if not train.texts:
        return without(space, *OF_TEXTS)
    long = len(train) and len(train.inputs.values) / len(train) > SHORT
    return {key: LONG_LEVEL if long and row is LEVEL else row for key, row in space.items()}
