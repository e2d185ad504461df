"""Defaults for networks of texts, by the size of the training part."""

from __future__ import annotations

from typing import Any

from ensue.tasks.any_model import AnyModel
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.reader import TEXTS_LOOKED_AT, level_of
from ensue.tasks.task import Recipe

MANY = 20_000  # minimum rows for a larger network
TOKENS = 15_000_000  # total tokens to read: a few minutes on two cores
EPOCHS, LEAST, PATIENCE = 15, 2, 3


def text_recipe(train: Part, model: AnyModel, mixed: bool = True) -> Recipe:
    """Level of tokens, and settings that learn well from this number of rows. mixed: a linear model
    is mixed with the network. Rows of vectors have no recipe."""
    if not train.texts or not len(train):
        return Recipe({"text": {"level": "words"}} if model.text.level == "auto" else {})
    level = train.tokenisers.input.name
    tables: dict[str, dict[str, Any]] = {"text": {"level": level}}
    tables["model"] = _network(len(train), level) | ({"linear": "mixed"} if mixed else {})
    tables["train"] = {"epochs": _epochs(train), "patience": PATIENCE}
    return Recipe(tables, _why(train, level) if model.text.level == "auto" else "")


def _network(rows: int, level: str) -> dict[str, Any]:
    """The settings of the network. Small data are soon memorised, so they get a small network for
    words, with much dropout."""
    size = (
        {} if rows >= MANY or level == "characters" else {"hidden_size": 64, "embedding_size": 64}
    )
    words = {"dropout_input": 0.5, "dropout_output": 0.5, "word_dropout": 0.1}
    return {"pooling": "mean+max", **size, **({} if level == "characters" else words)}


def _epochs(train: Part) -> int:
    tokens = max(len(train.inputs.values), 1)
    return max(LEAST, min(EPOCHS, TOKENS // tokens))


def _why(train: Part, level: str) -> str:
    names, tokeniser = list(train.numbers.tokens), train.tokenisers.input
    rows = range(min(len(train), TEXTS_LOOKED_AT))
    levels = level_of(tokeniser.text_of([names[k] for k in train.inputs.row(row)]) for row in rows)
    return f"text.level: {level} ({levels.why})" if levels.why else ""
