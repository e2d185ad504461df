"""Options that stand for a setting, whatever its key in a task: the words that people try first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

MODEL = "model"


@dataclass(frozen=True)
class Word:
    """An option for a setting. key: the key of the setting; a task whose table has another key for
    it declares this in `Table.words`. kind: type of the value; help: help text, instead of the
    meaning of the setting; also: other spellings."""

    name: str
    key: str
    kind: Literal["text", "number", "fraction"]
    metavar: str
    help: str = ""
    also: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def flags(self) -> tuple[str, ...]:
        return (self.flag, *self.also)

    @property
    def spellings(self) -> list[str]:
        """The option's flags as Python names."""
        return [flag.removeprefix("--").replace("-", "_") for flag in self.flags]


# In the order in which they are shown.
WORDS = {
    word.name: word
    for word in (
        Word("epochs", "train.epochs", "number", "N"),
        Word("rate", "train.rate", "fraction", "X", also=("--lr", "--learning-rate")),
        Word("batch_size", "model.batch_rows", "text", "N", "Batch size, in rows."),
        Word("cell", "model.cell", "text", "CELL", "Cell: a name, or a file, mine.py:MyCell."),
        Word(
            "hidden_size",
            "model.hidden_size",
            "number",
            "N",
            "Size of the hidden state, or of a layer.",
        ),
        Word("layers", "model.layers", "number", "N", "Number of layers."),
        Word(
            "dropout",
            "model.dropout",
            "fraction",
            "X",
            "Dropout: of inputs/between layers/of outputs.",
        ),
        Word("patience", "train.patience", "text", "N"),
        Word("members", "members", "number", "N"),
        Word("seed", "train.seed", "number", "N"),
    )
}

Words = Mapping[str, Any]  # the values of options that were set, by name
