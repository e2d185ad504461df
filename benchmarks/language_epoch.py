"""An epoch of a language model: Ensue against torch.nn, batch by batch in turn.

    ENSUE_DATA=… python benchmarks/language_epoch.py [--tied] [--dropout] [--bfloat16]
                                                     [--batches 100] [--threads 2]

Both train a model of two LSTM layers of 200 units on the same 20 streams of 35 tokens with the
state carried on: batching, embedding, cells, softmax, clipping and SGD, all included. Ensue runs
the loop that `ensue train` runs; torch.nn the one that a good user writes. A batch is run by both
before the next one comes, so that a change of the machine's speed meets both. Without dropout
they begin with the same weights, and the costs show that they learn the same.

The ceiling: the products of the softmax (scores, and two for the gradients) have to be computed by
anyone; torch.mm of the same shapes says how long that takes, and how much faster an epoch could
be at most if everything else took no time. The text is the Penn Treebank, or without ENSUE_DATA
the reference of the language that every Python carries with it.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ensue.layers.recurrent import Recurrent
from ensue.tasks.language.networks import DropoutRates
from ensue.tasks.language.recurrent import RecurrentLanguage
from ensue.tasks.language.streams import StreamSource
from ensue.training import TrainSettings, Update, train

COLUMNS, STEPS = 20, 35
HIDDEN, LAYERS = 200, 2
RATE, CLIP, DROPOUT = 1.0, 5.0, 0.3
WARM_UP = 5  # batches
LOW_FLAGS = ("avx512_bf16", "amx_bf16")  # instructions without which bfloat16 is slow
State = tuple[Tensor, Tensor]


class Torch(nn.Module):
    """The same model of torch.nn's parts."""

    def __init__(self, words: int, tied: bool, dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding(words, HIDDEN)
        self.lstm = nn.LSTM(HIDDEN, HIDDEN, LAYERS, dropout=dropout)
        self.output = nn.Linear(HIDDEN, words)
        self.dropout = nn.Dropout(dropout)
        for weight in (self.table.weight, self.output.weight):
            nn.init.uniform_(weight, -0.1, 0.1)
        if tied:
            self.output.weight = self.table.weight

    def forward(self, x: Tensor, y: Tensor, state: State | None) -> tuple[Tensor, State]:
        h, state = self.lstm(self.dropout(self.table(x)), state)
        scores = self.output(self.dropout(h))
        return cross_entropy(scores.flatten(0, 1), y.flatten()), state


@torch.no_grad()
def copy_weights(ours: RecurrentLanguage, other: Torch) -> None:
    """torch's second bias is zero and stays so: two that learn are one that learns twice."""
    weights = ours.state_dict()
    other.table.weight.copy_(weights["table.weight"])
    other.output.weight.copy_(weights["output.weight"])
    other.output.bias.copy_(weights["output.bias"])
    for k in range(LAYERS):
        for name, letter in (("weight_ih", "W"), ("weight_hh", "U"), ("bias_ih", "b")):
            getattr(other.lstm, f"{name}_l{k}").copy_(weights[f"recurrent.forwards.{k}.{letter}"])
        getattr(other.lstm, f"bias_hh_l{k}").zero_().requires_grad_(False)


def ensue_steps(
    model: RecurrentLanguage, tokens: NDArray[np.int32], low: bool
) -> Callable[[], float]:
    """A call makes one update and returns its cost."""
    source = StreamSource(tokens, "text", columns=COLUMNS, steps=STEPS)
    settings = TrainSettings(
        optimiser="sgd", momentum=0.0, rate=RATE, clip=CLIP, epochs=1000,
        precision="bfloat16" if low else "float32",
    )  # fmt: skip
    rows = (row for row in train(model, source, None, settings) if isinstance(row, Update))
    return lambda: next(rows).cost


def torch_steps(model: Torch, tokens: NDArray[np.int32], low: bool) -> Callable[[], float]:
    """The same with torch.nn alone."""
    usable = (len(tokens) - 1) // COLUMNS * COLUMNS
    text = torch.from_numpy(tokens.astype(np.int64))
    x = text[:usable].view(COLUMNS, -1).t().contiguous()
    y = text[1 : usable + 1].view(COLUMNS, -1).t().contiguous()
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE, fused=True)

    def updates():
        while True:
            state = None
            for at in range(0, len(x), STEPS):
                with torch.autocast("cpu", torch.bfloat16, enabled=low):
                    cost, state = model(x[at : at + STEPS], y[at : at + STEPS], state)
                state = (state[0].detach(), state[1].detach())
                optimiser.zero_grad()
                cost.backward()
                nn.utils.clip_grad_norm_(model.parameters(), CLIP)
                optimiser.step()
                yield float(cost.detach())

    rows = updates()
    return lambda: next(rows)


def products(words: int, low: bool) -> dict[str, float]:
    """Seconds of computing that the products of a batch take by torch.mm: those of the softmax,
    and those of the cells for all steps at once (x·W, h·U, and the two of each for the
    gradients)."""
    kind = torch.bfloat16 if low else torch.float32
    rows = COLUMNS * STEPS
    h, weight = torch.randn(rows, HIDDEN).to(kind), torch.randn(words, HIDDEN).to(kind)
    z = torch.randn(rows, words).to(kind)
    gates, matrix = torch.randn(rows, 4 * HIDDEN).to(kind), torch.randn(4 * HIDDEN, HIDDEN).to(kind)

    def three(rows: Tensor, matrix: Tensor, scores: Tensor) -> Callable[[], object]:
        return lambda: (rows @ matrix.t(), scores @ matrix, scores.t() @ rows)

    softmax = median_seconds(three(h, weight, z))
    return {
        "softmax": softmax,
        "softmax and cells": softmax + 2 * LAYERS * median_seconds(three(h, matrix, gates)),
    }


def median_seconds(call: Callable[[], object], times: int = 15) -> float:
    seconds = []
    for k in range(times + 2):
        began = time.process_time()
        call()
        if k > 1:
            seconds.append(time.process_time() - began)
    return float(np.median(seconds))


def read_text() -> tuple[str, NDArray[np.int32], int]:
    """Its name, its words and line ends as numbers, and how many words there are."""
    folder = os.environ.get("ENSUE_DATA")
    if folder:
        name = "Penn Treebank"
        with gzip.open(Path(folder) / "ptb" / "ptb.train.txt.gz", "rt", encoding="utf-8") as file:
            lines = [line.split() for line in file]
    else:
        from pydoc_data.topics import topics

        name = "Python's language reference"
        lines = [line.split() for text in topics.values() for line in text.splitlines()]
    counts = Counter(word for line in lines for word in (*line, "</s>"))
    numbers = {word: k for k, (word, _) in enumerate(counts.most_common())}
    tokens = [numbers[word] for line in lines for word in (*line, "</s>")]
    return name, np.array(tokens, np.int32), len(numbers)


def cpu() -> tuple[str, set[str]]:
    """Name and flags."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    facts = dict(line.partition(":")[::2] for line in lines)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    return facts.get("model name", "unknown"), set(facts.get("flags", "").split())


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--tied", action="store_true")
    parser.add_argument("--dropout", action="store_true")
    parser.add_argument("--bfloat16", action="store_true")
    return parser.parse_args()


def measure(steps: dict[str, Callable[[], float]], batches: int) -> dict[str, NDArray[np.float64]]:
    """Seconds by the clock, seconds of computing and cost of each batch (batches, 3), except for
    the first ones, which warm up."""
    measured: dict[str, list[tuple[float, float, float]]] = {name: [] for name in steps}
    for k in range(batches + WARM_UP):
        # who comes first has the caches of the other: in turn
        for name in list(steps) if k % 2 else reversed(list(steps)):
            began, computed = time.perf_counter(), time.process_time()
            cost = steps[name]()
            if k >= WARM_UP:
                sample = (time.perf_counter() - began, time.process_time() - computed, cost)
                measured[name].append(sample)
    return {name: np.array(samples) for name, samples in measured.items()}


def report(
    measured: dict[str, NDArray[np.float64]], epoch: int, ceilings: dict[str, float]
) -> None:
    """epoch: its batches."""
    print(f"{'':10}  ms a batch  quartiles       computing   tokens/s   an epoch  mean cost")
    for name, samples in measured.items():
        low, middle, high = np.percentile(samples[:, 0], (25, 50, 75))
        print(
            f"{name:10}{middle * 1e3:12.1f}  {low * 1e3:5.1f} … {high * 1e3:5.1f}"
            f"{np.median(samples[:, 1]) * 1e3:10.1f} ms{COLUMNS * STEPS / middle:11,.0f}"
            f"{middle * epoch:9.0f} s{samples[:, 2].mean():11.4f}"
        )
    ratios = measured["torch.nn"][:, :2] / measured["ensue"][:, :2]
    low, middle, high = np.percentile(ratios[:, 0], (25, 50, 75))
    print(
        f"torch.nn / ensue: {middle:.2f}, quartiles over the batches {low:.2f} … {high:.2f}; "
        f"of computing alone, whatever else the machine did, {np.median(ratios[:, 1]):.2f}"
    )
    theirs = float(np.median(measured["torch.nn"][:, 1]))
    for name, ceiling in ceilings.items():
        print(
            f"ceiling: the products of {name} alone are {ceiling * 1e3:.1f} ms of computing, "
            f"{ceiling / theirs:.0%} of torch.nn's batch: "
            f"at most {theirs / ceiling:.2f} times as fast"
        )


def main() -> None:
    arguments = options()
    processor, flags = cpu()
    if arguments.bfloat16 and not flags & set(LOW_FLAGS):
        sys.exit(
            f"skipped: {processor} has no instructions for bfloat16 ({', '.join(LOW_FLAGS)}), and "
            "products in it are slower than in float32"
        )
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    text, tokens, words = read_text()
    rate = DROPOUT if arguments.dropout else 0.0
    ours = RecurrentLanguage(
        words, Recurrent("LSTM", HIDDEN, HIDDEN, LAYERS, dropout=rate), tied=arguments.tied,
        rates=DropoutRates(input=rate, output=rate),
    )  # fmt: skip
    other = Torch(words, arguments.tied, rate)
    copy_weights(ours, other)
    steps = {
        "ensue": ensue_steps(ours, tokens, arguments.bfloat16),
        "torch.nn": torch_steps(other, tokens, arguments.bfloat16),
    }
    measured = measure(steps, arguments.batches)
    epoch = -(-((len(tokens) - 1) // COLUMNS) // STEPS)
    kind = "bfloat16 products" if arguments.bfloat16 else "float32"
    shape = f"{'tied' if arguments.tied else 'untied'}, dropout {rate:g}, {kind}"
    print(f"{text}, {words:,} words, LSTM {LAYERS}×{HIDDEN}, {shape}")
    print(f"{arguments.batches} of {epoch:,} batches of {COLUMNS}×{STEPS}; {processor}, "
          f"{arguments.threads} threads, torch {torch.__version__}")  # fmt: skip
    report(measured, epoch, products(words, arguments.bfloat16))


if __name__ == "__main__":
    main()
