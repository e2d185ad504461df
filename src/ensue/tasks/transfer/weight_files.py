"""Files as bases: word vectors, and weights of torch.nn as safetensors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ensue.data.vectors import vector_width
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError, OptionError
from ensue.files.opening import read_plain
from ensue.tasks.transfer.pretrained import Pretrained

PIECE = 1 << 20  # bytes that are read at once
LAYER = re.compile(r"(.*)weight_ih_l(\d+)$")
WORDS = "words"  # the key of the metadata that lists them, and the ending of a file that does
# By how many times the state's width the rows of a layer are: the cell of torch.nn that it is.
CELLS = {4: "LSTM", 3: "GRU", 1: "SimpleRNN"}


def vectors_base(path: str) -> Pretrained:
    """A file of word vectors: text as of word2vec, GloVe or fastText, or word2vec's binary one."""
    width = vector_width(Path(path))
    return Pretrained(path, _digest(path), vectors=path, width=width)


def weights_base(path: str) -> Pretrained:
    """torch.nn's RNN, GRU or LSTM, `weight_ih_l0` and its kin under any prefix, with the table of
    an `nn.Embedding` whose words are listed in the metadata, `words` as JSON, or in a file beside
    it, one a line."""
    weights, listed = _read(path)
    prefixes = sorted({own[1] for name in weights if (own := LAYER.match(name))})
    if len(prefixes) > 1:
        raise OptionError(
            f"{path}: expected the weights of one recurrent network, got those of "
            f"{len(prefixes)}: {', '.join(own or 'no prefix' for own in prefixes)}"
        )
    table = _table(path, weights)
    if not prefixes and table is None:
        raise OptionError(
            f"{path}: expected weights of torch.nn, weight_ih_l0, weight_hh_l0, …, or those of an "
            f"embedding, got {', '.join(sorted(weights)[:5]) or 'none'}"
        )
    words = _words(path, listed, table)
    found = Pretrained(path, _digest(path), words=words, table=table)
    if not prefixes:
        return found
    settings, layers = _layers(path, weights, prefixes[0])
    return Pretrained(
        path,
        found.digest,
        words=words,
        table=table,
        encoder="recurrent",
        settings=settings,
        weights=layers,
    )


def _read(path: str) -> tuple[dict[str, Tensor], str]:
    try:
        with safe_open(path, "pt") as file:
            weights = {name: file.get_tensor(name).to(torch.float32) for name in file.keys()}  # noqa: SIM118
            return weights, (file.metadata() or {}).get(WORDS, "")
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: this is not a file of weights as safetensors: {error}") from None


def _digest(path: str) -> str:
    found = sha256()
    with Path(path).open("rb") as file:
        while piece := file.read(PIECE):
            found.update(piece)
    return found.hexdigest()


def _table(path: str, weights: Mapping[str, Tensor]) -> Tensor | None:
    tables = [n for n, t in weights.items() if t.dim() == 2 and "emb" in n.lower()]
    if len(tables) > 1:
        raise OptionError(f"{path}: expected one embedding, got {', '.join(sorted(tables))}")
    return weights[tables[0]] if tables else None


def _words(path: str, listed: str, table: Tensor | None) -> Vocabulary | None:
    """The words of an embedding. Padding and the unknown word are the first two rows."""
    if table is None:
        return None
    beside = Path(path).with_suffix(f".{WORDS}.txt")
    try:
        known = json.loads(listed) if listed else read_plain(beside).decode().splitlines()
    except (OSError, ValueError):
        raise OptionError(
            f"{path}: expected the words of its embedding, one a line, in {beside}, or as a JSON "
            f"list under {WORDS!r} in the metadata"
        ) from None
    if not isinstance(known, list) or len(known) != len(table):
        many = len(known) if isinstance(known, list) else "none"
        raise OptionError(
            f"{path}: expected {len(table):,} words, one for each row of the embedding, got {many}"
        )
    return Vocabulary(tuple(map(str, known)), (0,) * len(known))


def _layers(
    path: str, weights: Mapping[str, Tensor], prefix: str
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The settings of an encoder that computes the same, and its weights by our names."""
    numbers = sorted(int(own[2]) for name in weights if (own := LAYER.match(name)))
    both = f"{prefix}weight_ih_l0_reverse" in weights
    hidden = weights[f"{prefix}weight_hh_l0"].shape[1]
    times, rest = divmod(weights[f"{prefix}weight_ih_l0"].shape[0], hidden)
    if times not in CELLS or rest or numbers != list(range(len(numbers))):
        raise OptionError(
            f"{path}: expected the layers of an RNN, GRU or LSTM of torch.nn, 0, 1, …, with 1, 3 "
            f"or 4 times {hidden} rows, got layers {numbers} with "
            f"{weights[f'{prefix}weight_ih_l0'].shape[0]} rows"
        )
    settings: dict[str, Any] = {
        "layers": len(numbers),
        "cell": CELLS[times],
        "hidden_size": hidden,
        "bidirectional": both,
        "backward_start": "zero",
        "directions": "joined",
        "initial_state": "zero",
        "output_layers": False,
    }
    found: dict[str, Tensor] = {}
    for number in numbers:
        for way, end in (("forwards", ""), ("backwards", "_reverse"))[: 1 + both]:
            suffix, begin = f"_l{number}{end}", f"recurrent.{way}.{number}."
            found |= {
                begin + name: tensor
                for name, tensor in _way(weights, prefix, suffix, times, hidden).items()
            }
    return settings, found


def _way(
    weights: Mapping[str, Tensor], prefix: str, suffix: str, times: int, hidden: int
) -> dict[str, Tensor]:
    """One layer in one direction: torch's two biases are one of ours, but for the candidate of a
    GRU, which keeps them apart."""
    W, U = weights[f"{prefix}weight_ih{suffix}"], weights[f"{prefix}weight_hh{suffix}"]
    zeros = W.new_zeros(len(W))
    ih, hh = (weights.get(f"{prefix}bias_{side}{suffix}", zeros) for side in ("ih", "hh"))
    if CELLS[times] != "GRU":
        return {"W": W, "U": U, "b": ih + hh}
    edge = 2 * hidden
    return {"W": W, "U": U, "b": torch.cat([ih[:edge] + hh[:edge], ih[edge:]]), "d": hh[edge:]}
