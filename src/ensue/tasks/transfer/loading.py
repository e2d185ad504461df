"""Reading a base: a run, a saved model, a file of word vectors or of weights."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ensue.data.formats import endings
from ensue.data.vectors import vector_width
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError, OptionError, RunError
from ensue.escape import in_shell
from ensue.files.atomic_folder import MANIFEST
from ensue.files.opening import read_plain
from ensue.files.run_folder import RunFolder
from ensue.tasks import TASKS
from ensue.tasks.blocks.layer_settings import cell_references
from ensue.tasks.saved import Saved, read_model
from ensue.tasks.saved_cells import Trust
from ensue.tasks.transfer.pretrained import Pretrained, read_copy
from ensue.tasks.transfer.two_ways import joined

if TYPE_CHECKING:
    from ensue.tasks.any_model import AnyModel

PIECE = 1 << 20  # bytes per read
LAYER = re.compile(r"(.*)weight_ih_l(\d+)$")
WORDS = "words"  # the metadata key for the list of words, and the ending of a file with them
# The cell of torch.nn, by the number of rows of a layer relative to the width of its state.
CELLS = {4: "LSTM", 3: "GRU", 1: "SimpleRNN"}


def vectors_base(path: str) -> Pretrained:
    """A file of word vectors: in the text format of word2vec, GloVe or fastText, or in the binary
    format of word2vec."""
    width = vector_width(Path(path))
    return Pretrained(path, _digest(path), vectors=path, width=width)


def weights_base(path: str) -> Pretrained:
    """A file of weights of torch.nn's RNN, GRU or LSTM (`weight_ih_l0` and so on, with any prefix),
    with the table of an `nn.Embedding`. Its words are in the metadata, `words` as JSON, or in a
    file next to it, one per line."""
    weights, listed = _read_weights(path)
    prefixes = sorted({match[1] for name in weights if (match := LAYER.match(name))})
    if len(prefixes) > 1:
        raise OptionError(
            f"{path}: expected the weights of one recurrent network, got the weights of "
            f"{len(prefixes)}: {', '.join(prefix or 'no prefix' for prefix in prefixes)}"
        )
    table = _table(path, weights)
    if not prefixes and table is None:
        raise OptionError(
            f"{path}: expected weights of torch.nn, weight_ih_l0, weight_hh_l0, …, or the table "
            f"of an embedding, got {', '.join(sorted(weights)[:5]) or 'none'}"
        )
    words = _words(path, listed, table)
    base = Pretrained(path, _digest(path), words=words, table=table)
    if not prefixes:
        return base
    settings, layers = _layers(path, weights, prefixes[0])
    return Pretrained(
        path,
        base.digest,
        words=words,
        table=table,
        encoder="recurrent",
        settings=settings,
        weights=layers,
    )


def _read_weights(path: str) -> tuple[dict[str, Tensor], str]:
    try:
        with safe_open(path, "pt") as file:
            weights = {name: file.get_tensor(name).to(torch.float32) for name in file.keys()}  # noqa: SIM118
            return weights, (file.metadata() or {}).get(WORDS, "")
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: this is not a file of weights as safetensors: {error}") from None


def _digest(path: str) -> str:
    hashed = sha256()
    with Path(path).open("rb") as file:
        while piece := file.read(PIECE):
            hashed.update(piece)
    return hashed.hexdigest()


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
    """The settings of an equivalent encoder, and its weights under Ensue's names."""
    numbers = sorted(int(match[2]) for name in weights if (match := LAYER.match(name)))
    both = f"{prefix}weight_ih_l0_reverse" in weights
    hidden = weights[f"{prefix}weight_hh_l0"].shape[1]
    times, rest = divmod(weights[f"{prefix}weight_ih_l0"].shape[0], hidden)
    if times not in CELLS or rest or numbers != list(range(len(numbers))):
        raise OptionError(
            f"{path}: expected layers of torch.nn, numbered from 0, with {hidden} rows (RNN), "
            f"{3 * hidden} (GRU) or {4 * hidden} (LSTM) in weight_ih, got layers {numbers} with "
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
    tensors: dict[str, Tensor] = {}
    for number in numbers:
        for way, end in (("forwards", ""), ("backwards", "_reverse"))[: 1 + both]:
            suffix, begin = f"_l{number}{end}", f"recurrent.{way}.{number}."
            tensors |= {
                begin + name: tensor
                for name, tensor in _way(weights, prefix, suffix, times, hidden).items()
            }
    return settings, tensors


def _way(
    weights: Mapping[str, Tensor], prefix: str, suffix: str, times: int, hidden: int
) -> dict[str, Tensor]:
    """One layer in one direction. torch's two biases are added, except for the candidate of a GRU,
    which needs both."""
    W, U = weights[f"{prefix}weight_ih{suffix}"], weights[f"{prefix}weight_hh{suffix}"]
    zeros = W.new_zeros(len(W))
    ih, hh = (weights.get(f"{prefix}bias_{side}{suffix}", zeros) for side in ("ih", "hh"))
    if CELLS[times] != "GRU":
        return {"W": W, "U": U, "b": ih + hh}
    edge = 2 * hidden
    return {"W": W, "U": U, "b": torch.cat([ih[:edge] + hh[:edge], ih[edge:]]), "d": hh[edge:]}


# Readers by the ending of a file; other files have word vectors.
READERS: Mapping[str, Callable[[str], Pretrained]] = {".safetensors": weights_base}
TEXT = "text"  # the data format whose endings word vectors share
NAME_THE_CELL = "name the cell for this training too, --set model.cell=FILE:NAME"


def read_base(model: AnyModel, folder: RunFolder | None) -> Pretrained:
    """The base of a training: its copy in the run's folder if it exists, else the base itself.
    Raises an error if the base changed after the training began."""
    base = model.base
    if folder is not None and folder.base.is_dir():
        copy = read_copy(folder.base)
        _refuse_changed(model, copy, folder)
        return _adapted(copy, model)
    pretrained = _located_base(model)
    if base.digest and base.digest != pretrained.digest:
        raise RunError(
            f"{pretrained.called}: this is not the base that the configuration names: expected the "
            f"digest {base.digest[:12]}…, got {pretrained.digest[:12]}…. Restore the old base, or "
            'take the new one: --set base.digest=""'
        )
    return _adapted(pretrained, model)


def _adapted(base: Pretrained, model: AnyModel) -> Pretrained:
    """The parts of a base that the model's task uses."""
    pretrained: Pretrained = model.task.transfers.adapted(base, model)
    return pretrained


def _refuse_changed(model: AnyModel, copy: Pretrained, folder: RunFolder) -> None:
    """Raises an error if the named base exists and is not the one that the run began from."""
    base = model.base
    now = base.digest
    if not now and all(Path(path).exists() for path in base.path):
        now = _located_base(model).digest
    if now and now != copy.digest:
        raise RunError(
            f"{', '.join(base.path)}: the base has changed since {folder.path} began: was "
            f"{copy.digest[:12]}…, now {now[:12]}…. Next: `ensue train --run "
            f"{in_shell(folder.path)}` resumes the run with the base that it began from; for the "
            "new one name another folder"
        )


def _located_base(model: AnyModel) -> Pretrained:
    """The combination of the bases that a configuration names."""
    read = [_read(path, model) for path in model.base.path]
    return joined(read, model.task.transfers.backward_alone)


def _read(path: str, model: AnyModel) -> Pretrained:
    place = Path(path)
    if not path or not place.exists():
        raise OptionError(
            f"base: expected a run, a model or a file, got {path or 'an empty name'}, which "
            "does not exist; `ensue runs` lists runs"
        )
    if place.is_dir():
        return _model(path, model)
    data = endings().get(place.suffix, TEXT)
    if data != TEXT:
        raise OptionError(
            f"base: expected a run, a model, word vectors or weights, got {path}, a file of data "
            f"({data}); a base is trained first, `ensue pretrain {in_shell(path)} --run NAME`, and "
            "then named"
        )
    return READERS.get(place.suffix, vectors_base)(path)


def _model(path: str, model: AnyModel) -> Pretrained:
    """The encoder of a run's model, or of a saved one."""
    run = RunFolder(path)
    run.check_weights()
    if not run.model.is_dir() and not (run.path / MANIFEST).exists():
        raise RunError(
            f"{path}: this run is not finished, and has no model to begin from yet; `ensue train "
            f"--run {in_shell(path)}` resumes it"
            if run.config.is_file()
            else f"{path}: expected the folder of a run or of a saved model, got one of neither; "
            "`ensue runs` lists runs"
        )
    saved = read_model(run.model if run.model.is_dir() else run.path)
    if saved.kind not in TASKS:
        raise RunError(f"{path}: unknown kind of model {saved.kind!r}")
    task = TASKS[saved.kind]
    loaded = task.model_class.of_saved(saved, _trust(saved, model), "cpu")
    return task.transfers.gives(loaded, path, saved.digest)


def _trust(saved: Saved, model: AnyModel) -> Trust:
    """Permission to load the base with the custom cell of this training; no file of the base's
    folder is run."""
    references = cell_references(model.settings)
    if saved.facts.get("cells") and references:
        return Trust(cell=next(iter(references.values())).ready(), command=NAME_THE_CELL)
    return Trust(command=NAME_THE_CELL, instead=NAME_THE_CELL)
