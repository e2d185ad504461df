"""A classifier's epoch on unequal lengths: Ensue against torch.nn, batch by batch in turn.

    ENSUE_DATA=… python benchmarks/classifier_epoch.py [--batches 60] [--threads 2]

Each contender trains its own copy of one model (embedding, BiLSTM, max pooling, softmax) on the
same batches of IMDB: collating, forward, backward, clipping and Adam. A batch is run by all of
them before the next one comes, so that a change of the machine's speed meets them all.

    packed    torch.nn.LSTM over packed sequences
    padded    torch.nn.LSTM over the padded batch, rows of like length together
    shuffled  the same with rows in random order, as many in each batch
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ensue.data.options import ReadOptions
from ensue.data.read import gather
from ensue.data.tokenise import Tokeniser, build_and_encode
from ensue.layers import step_mask
from ensue.tasks.blocks.embeddings import Embed, Words
from ensue.tasks.blocks.encoders import RecurrentEncoder
from ensue.tasks.blocks.heads import CategoricalHead
from ensue.tasks.blocks.pooling import Pooling
from ensue.tasks.rows.batch import Columns, SequenceBatch, collate
from ensue.tasks.rows.part import shortened
from ensue.tasks.rows.source import SequenceSource
from ensue.tasks.supervised.inputs.text import TextEncoder
from ensue.tasks.supervised.network import LabelledBatch, SupervisedNetwork

HIDDEN, EMBEDDING, LONGEST, ROWS = 128, 100, 400, 32


class Torch(nn.Module):
    """The same model of torch.nn's parts."""

    def __init__(self, words: int, packed: bool) -> None:
        super().__init__()
        self.packed = packed
        self.table = nn.Embedding(words, EMBEDDING, padding_idx=0)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN, bidirectional=True)
        self.output = nn.Linear(2 * HIDDEN, 2)

    def forward(self, batch: SequenceBatch, carried: object) -> tuple[Tensor, None]:
        x, lengths = self.table(batch.inputs["words"]), batch.lengths
        if self.packed:
            y, _ = self.lstm(pack_padded_sequence(x, lengths.clamp(min=1), enforce_sorted=False))
            y, _ = pad_packed_sequence(y, total_length=len(x))
        else:
            y, _ = self.lstm(x)
        real = step_mask(lengths, len(x))[..., None]
        pooled = y.masked_fill(~real, float("-inf")).amax(0)
        cost = nn.functional.cross_entropy(self.output(pooled), batch.targets, reduction="sum")
        return cost, None


def ours(words: int) -> nn.Module:
    embed = Embed([Words(words, EMBEDDING)])
    encoder = RecurrentEncoder(EMBEDDING, cell="LSTM", hidden_size=HIDDEN, bidirectional=True)
    pooling = Pooling("max", encoder.output_size, encoder.final_size)
    return SupervisedNetwork(TextEncoder(embed, encoder, pooling), CategoricalHead(2))


def stepper(model: nn.Module) -> Callable[[Columns, np.ndarray], None]:
    """One update, from row numbers to new weights."""
    optimiser = torch.optim.Adam(model.parameters(), fused=True)

    def step(columns: Columns, rows: np.ndarray) -> None:
        inputs = collate(columns, rows)
        assert inputs.targets is not None
        labelled = LabelledBatch(inputs, inputs.targets, len(rows))
        cost, _ = model(labelled if isinstance(model, SupervisedNetwork) else inputs, {})
        (cost / len(rows)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()

    return step


def read_columns(folder: Path) -> tuple[Columns, int]:
    options = ReadOptions(header=("label", "stars", "number", "review"))
    labels: list[int] = []

    def texts() -> object:
        for row in gather([folder / "imdb" / "imdb.train.tsv.gz"], options):
            labels.append(int(row.fields["label"]))
            yield row.fields["review"]

    tokeniser = Tokeniser("words", lower=True, breaks="space")
    vocabulary, words = build_and_encode(texts(), tokeniser, min_count=2, max_size=30_000)
    columns = Columns(words=shortened(words, LONGEST, "start"), targets=np.array(labels))
    return columns, len(vocabulary)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--batches", type=int, default=60)
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = options.parse_args()
    folder = os.environ.get("ENSUE_DATA")
    if not folder:
        sys.exit("ENSUE_DATA: expected the folder of the data sets, got nothing")
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    columns, words = read_columns(Path(folder))
    source = SequenceSource(columns, None, seed=1, budget=ROWS * LONGEST, most_rows=ROWS)
    near = source.batches(0)[: arguments.batches]
    shuffled = np.array_split(
        np.random.default_rng(1).permutation(len(columns)), len(columns) // ROWS
    )
    models = {
        "ensue": ours(words),
        "packed": Torch(words, packed=True),
        "padded": Torch(words, packed=False),
        "shuffled": Torch(words, packed=False),
        "ensue, shuffled": ours(words),
    }
    steps = {name: stepper(model) for name, model in models.items()}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for k in range(arguments.batches):
        for name, step in steps.items():
            rows = shuffled[k] if "shuffled" in name else near[k]
            began = time.perf_counter()
            step(columns, rows)
            if k:  # the first compiles and warms up
                seconds[name].append(time.perf_counter() - began)
    share = np.mean([columns.lengths[r].sum() / (len(r) * columns.lengths[r].max()) for r in near])
    loose = np.mean(
        [columns.lengths[r].sum() / (len(r) * columns.lengths[r].max()) for r in shuffled]
    )
    print(
        f"IMDB, {arguments.batches - 1} batches of up to {ROWS} reviews, "
        f"{arguments.threads} threads"
    )
    print(f"real tokens in a padded batch: {share:.1%} bucketed, {loose:.1%} shuffled")
    print(f"{'':18}ms a batch  an epoch    times ensue's")
    for name, times in seconds.items():
        total = sum(times)
        epoch = total / len(times) * len(source.batches(0))
        ratio = total / sum(seconds["ensue"])
        print(f"{name:18}{total / len(times) * 1e3:9.1f}{epoch:9.0f} s{ratio:12.2f}×")


if __name__ == "__main__":
    main()
