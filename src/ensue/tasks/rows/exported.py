"""What the rooms of texts and sequences share of an export: the steps from a text to the inputs of
a network, and the linear model beside it."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.tokenise import TOKENISERS, Tokeniser
from ensue.tasks.baselines.text_features import LONGEST, SHORTEST, TextFeatures
from ensue.tasks.baselines.text_linear import TextLinear
from ensue.tasks.exported import (
    BATCH,
    TIME,
    Input,
    Step,
    count_step,
    cut_step,
    look_up_step,
    refuse,
    tokenise_step,
)
from ensue.tasks.rows.inputs import LearnedInputs
from ensue.tasks.rows.words import WHOLE_WORDS
from ensue.tasks.settings import TextSettings

COLUMNS, VALUES, ENTRIES = "linear_columns", "linear_values", "entries"


class ReadSteps(NamedTuple):
    """The inputs of a network, and how a question becomes their values."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]


def read_steps(
    learned: LearnedInputs, text: TextSettings, question: str = "question", prefix: str = ""
) -> ReadSteps:
    """Words or vectors, and `lengths`. prefix: of their names, and of the axis of time, where
    there are two."""
    time, lengths = f"{prefix}{TIME}", f"{prefix}lengths"
    count = Input(lengths, (BATCH,), steps_of=time)
    if learned.words is None:
        assert learned.scale is not None
        name = f"{prefix}vectors"
        given = Input(name, (time, BATCH, learned.scale.width))
        first: tuple[Step, ...] = ({"step": "vectors", "from": question, "to": name},)
    else:
        name, tokens = f"{prefix}words", f"{prefix}tokens"
        given = Input(name, (time, BATCH), len(learned.words))
        first = (
            tokenise_step(learned.tokenisers.input, question, tokens),
            look_up_step(learned.words.tokens, tokens, name),
        )
    cut = cut_step(name, text.max_length, text.cut)
    return ReadSteps((given, count), (*first, cut, count_step(name, lengths)))


def linear_steps(features: TextFeatures, tokeniser: Tokeniser) -> ReadSteps:
    """The columns of a linear model, and the value of each."""
    width = max(1, len(features))
    inputs = (Input(COLUMNS, (BATCH, ENTRIES), width), Input(VALUES, (BATCH, ENTRIES)))
    steps, tokens = list[Step](), "tokens"
    if tokeniser.name not in WHOLE_WORDS:
        kind, tokens = TOKENISERS[tokeniser.name], "linear_words"
        assert kind is not None
        steps.append({"step": "join", "from": "tokens", "to": "text", "between": kind.between})
        steps.append(tokenise_step(Tokeniser("words"), "text", tokens))
    blocks = [
        {
            "kind": own.kind,
            "shortest": SHORTEST[own.kind],
            "longest": LONGEST[own.kind],
            "hashes": _encoded(own.hashes.astype("<u8")),
            "idf": _encoded(own.idf.astype("<f4")),
        }
        for own in features.blocks
    ]
    step = {"step": "ngrams", "from": tokens, "columns": COLUMNS, "values": VALUES}
    return ReadSteps(inputs, (*steps, {**step, "blocks": blocks}))


def _encoded(values: NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()


class LinearScores(nn.Module):
    """z = Σ_e values_e·weight[:, columns_e] + bias, over a row's entries e: (batch, k). weight (k,
    columns): a scale for each of its rows is a scale for each class."""

    bias: Tensor

    def __init__(self, model: TextLinear) -> None:
        super().__init__()
        weights = model.weights if len(model.weights) else np.zeros((1, len(model.bias)))
        self.weight = nn.Parameter(torch.tensor(weights.T.copy(), dtype=torch.float32))
        self.register_buffer("bias", torch.tensor(model.bias, dtype=torch.float32))

    def forward(self, columns: Tensor, values: Tensor) -> Tensor:
        chosen = columns_of(self.weight, columns)  # (k, batch, entries)
        found: Tensor = (chosen * values).sum(-1).t() + self.bias
        return found


def columns_of(weight: Tensor, columns: Tensor) -> Tensor:
    """weight[:, columns], as one operator of ONNX: (rows, *shape of columns)."""
    return weight.index_select(1, columns.flatten()).reshape(len(weight), *columns.shape)


def linear_member(
    model: TextLinear, tokeniser: Tokeniser, task: str
) -> tuple[LinearScores, ReadSteps]:
    """The linear model beside a network. Columns that do not come from the text are refused."""
    more = linear_steps(model.features, tokeniser)
    if len(model.weights) != len(model.features):
        raise refuse("columns", task)
    return LinearScores(model), more
