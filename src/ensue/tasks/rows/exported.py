"""Export of texts and sequences, shared by several tasks: the steps from a text to the inputs of
a network, and the linear model next to it."""

from __future__ import annotations

import base64
import zlib
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.tokenise import Tokeniser
from ensue.tasks.baselines.text_features import LONGEST, SHORTEST, TextFeatures
from ensue.tasks.baselines.text_linear import TextLinear
from ensue.tasks.exported import (
    BATCH,
    TIME,
    Input,
    Step,
    count_step,
    cut_step,
    joining,
    look_up_step,
    tokenise_step,
)
from ensue.tasks.rows.inputs import LearnedInputs
from ensue.tasks.rows.part import WHOLE_WORDS
from ensue.tasks.settings import TextSettings

COLUMNS, VALUES, ENTRIES = "linear_columns", "linear_values", "entries"


class ReadSteps(NamedTuple):
    """The inputs of a network, and the steps from a question to their values."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]


def read_steps(
    learned: LearnedInputs,
    text: TextSettings,
    question: str = "question",
    prefix: str = "",
    column: str = "",
) -> ReadSteps:
    """The inputs words or vectors, and `lengths`. prefix: the prefix of their names and of the time
    axis, if there are two inputs; column: the column of the text, if a question may be a row by
    column name."""
    time, lengths = f"{prefix}{TIME}", f"{prefix}lengths"
    count = Input(lengths, (BATCH,), steps_of=time)
    if learned.words is None:
        assert learned.scale is not None
        name = f"{prefix}vectors"
        vectors = Input(name, (time, BATCH, learned.scale.width))
        width = {"width": learned.scale.width}
        first: tuple[Step, ...] = ({"step": "vectors", "from": question, "to": name, **width},)
    else:
        name, tokens = f"{prefix}words", f"{prefix}tokens"
        vectors = Input(name, (time, BATCH), len(learned.words))
        cutting = tokenise_step(learned.tokenisers.input, question, tokens)
        first = (
            {**cutting, "column": column} if column else cutting,
            look_up_step(learned.words.tokens, tokens, name),
        )
    cut = cut_step(name, text.max_length, text.cut)
    return ReadSteps((vectors, count), (*first, cut, count_step(name, lengths)))


def linear_steps(features: TextFeatures, tokeniser: Tokeniser) -> ReadSteps:
    """The steps to the columns of a linear model and their values."""
    width = max(1, len(features))
    inputs = (Input(COLUMNS, (BATCH, ENTRIES), width), Input(VALUES, (BATCH, ENTRIES)))
    steps, tokens = list[Step](), "tokens"
    if tokeniser.name not in WHOLE_WORDS:
        tokens = "linear_words"
        steps.append({"step": "join", "from": "tokens", "to": "joined", **joining(tokeniser)})
        steps.append(tokenise_step(Tokeniser("words"), "joined", tokens))
    blocks = [
        {
            "kind": block.kind,
            "shortest": SHORTEST[block.kind],
            "longest": LONGEST[block.kind],
            **_hash_table(block.hashes),
            **_idf_table(block.idf),
        }
        for block in features.blocks
    ]
    step = {"step": "ngrams", "from": tokens, "columns": COLUMNS, "values": VALUES}
    return ReadSteps(inputs, (*steps, {**step, "blocks": blocks}))


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _hash_table(hashes: NDArray[np.uint64]) -> dict[str, Any]:
    """A compact table of rising hashes: the number of hashes for each prefix of `bits`, and the
    next `bytes` of each hash. With three bytes, one in 2²⁴ unknown n-grams is taken for a known
    one; four bytes are used if two known ones collide."""
    bits = max(1, len(hashes)).bit_length() - 1
    for rest in (3, 4):
        shifted = hashes >> np.uint64(64 - bits - 8 * rest)
        if (shifted[1:] != shifted[:-1]).all():
            break
    buckets = np.bincount((shifted >> np.uint64(8 * rest)).astype(np.int64), minlength=1 << bits)
    follow = shifted.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - rest :]
    return {
        "bits": bits,
        "bytes": rest,
        "buckets": _encoded(zlib.compress(buckets.astype(np.uint8).tobytes(), 9)),
        "rests": _encoded(follow.tobytes()),
    }


def _idf_table(idf: NDArray[np.float32]) -> dict[str, str]:
    """The distinct values, rarest n-grams first, and the index of each n-gram's value in two
    planes: low bytes, then high bytes."""
    values, codes = np.unique(-idf, return_inverse=True)
    planes = codes.astype("<u2").view(np.uint8).reshape(-1, 2).T
    return {
        "codes": _encoded(zlib.compress(planes.tobytes(), 9)),
        "idf": _encoded((-values).astype("<f4").tobytes()),
    }


class LinearScores(nn.Module):
    """z = Σ_e values_e·weight[:, columns_e] + beside·dense + bias, over a row's entries e: (batch,
    k). weight (k, columns): scales are stored per row, that is per class. Two classes whose weights
    differ only in sign are stored once. dense: the columns next to the text, if any."""

    bias: Tensor

    def __init__(self, model: TextLinear) -> None:
        super().__init__()
        of_text = len(model.features)
        weights = model.weights if of_text else np.zeros((1, len(model.bias)), np.float32)
        self.opposite = weights.shape[1] == 2 and bool((weights[:, 0] == -weights[:, 1]).all())
        stored = weights[: max(1, of_text), 1:] if self.opposite else weights[: max(1, of_text)]
        self.weight = nn.Parameter(torch.tensor(stored.T.copy(), dtype=torch.float32))
        self.register_buffer("bias", torch.tensor(model.bias, dtype=torch.float32))
        self.beside = nn.Parameter(torch.tensor(model.weights[of_text:].T.copy()))

    def forward(self, columns: Tensor, values: Tensor, dense: Tensor | None = None) -> Tensor:
        chosen = columns_of(self.weight, columns)  # (k, batch, entries)
        t: Tensor = (chosen * values).sum(-1).t()
        z = (torch.cat([-t, t], -1) if self.opposite else t) + self.bias
        return z if dense is None else z + dense @ self.beside.t()


def columns_of(weight: Tensor, columns: Tensor) -> Tensor:
    """weight[:, columns], as one operator of ONNX: (rows, *shape of columns)."""
    return weight.index_select(1, columns.flatten()).reshape(len(weight), *columns.shape)
