"""The softmax over 33,000 words: in clusters against all at once, batch by batch in turn.

    ENSUE_DATA=… python benchmarks/softmax_words.py [--batches 30] [--columns 20] [--steps 35]
                                                    [--cuts 600,6000] [--tenth 5] [--threads 1]

A language model of two LSTM layers of 200 units, tied, on the training texts of IMDB in lower
case, is trained by the loop of `ensue train`, all of it: batching, embedding, cells, softmax,
clipping and Adam. A batch is run by both before the next one comes, so that a change of the
machine's speed meets both; tokens for each second of computing, medians.

--tenth EPOCHS: then both train on a tenth of the texts for this number of epochs. Their
perplexities on texts that are held out are compared after each.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser, build_and_encode, encode_texts
from ensue.data.vocabulary import END_NUMBER, TEXT_SPECIALS
from ensue.layers.recurrent import Recurrent
from ensue.tasks.language.networks import DropoutRates
from ensue.tasks.language.recurrent import RecurrentLanguage
from ensue.tasks.language.softmaxes import FULL, AdaptiveSoftmax, Softmax, default_cuts
from ensue.tasks.language.streams import StreamSource, stream_of
from ensue.training import TrainSettings, Update, train

WORDS = 33_000
HIDDEN, LAYERS = 200, 2
HELD_OUT = 250  # texts
WARM_UP = 3  # batches
Tokens = NDArray[np.int32]


def texts() -> list[str]:
    """The training texts, in an order that is always the same."""
    path = Path(os.environ["ENSUE_DATA"]) / "imdb" / "imdb.train.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        reviews = [line.rstrip("\n").split("\t")[3].replace("<br />", " ") for line in file]
    random.Random(1).shuffle(reviews)
    return reviews


def streams() -> tuple[Tokens, Tokens, Tokens, int]:
    """All texts but those held out, a tenth of them, those held out; how many words there are."""
    read, tokeniser = texts(), Tokeniser("words", lower=True)
    vocabulary, rows = build_and_encode(
        read[HELD_OUT:], tokeniser, max_size=WORDS, specials=TEXT_SPECIALS
    )
    tenth = len(rows) // 10
    part = Ragged(rows.values[: rows.starts[tenth]], rows.starts[: tenth + 1])
    held_out = encode_texts(read[:HELD_OUT], tokeniser, vocabulary)
    streams_of_parts = (stream_of(part_rows, END_NUMBER) for part_rows in (rows, part, held_out))
    return (*streams_of_parts, len(vocabulary))


def network(words: int, softmax: Softmax, arguments: argparse.Namespace) -> RecurrentLanguage:
    torch.manual_seed(1)
    rate = arguments.dropout
    return RecurrentLanguage(
        words, Recurrent("LSTM", HIDDEN, HIDDEN, LAYERS, dropout=rate), softmax=softmax,
        rates=DropoutRates(input=rate, output=rate),
    )  # fmt: skip


def updates(
    model: RecurrentLanguage, tokens: Tokens, arguments: argparse.Namespace
) -> Iterator[None]:
    """Each of them one update, epoch after epoch."""
    source = StreamSource(tokens, "texts", columns=arguments.columns, steps=arguments.steps)
    settings = TrainSettings(rate=arguments.rate, clip=arguments.clip, epochs=1000)
    for row in train(model, source, None, settings):
        if isinstance(row, Update):
            yield


def seconds(call: Callable[[], object]) -> float:
    """Of computing."""
    began = time.process_time()
    call()
    return time.process_time() - began


def speed(
    softmaxes: dict[str, Softmax], tokens: Tokens, words: int, arguments: argparse.Namespace
) -> None:
    size = arguments.columns * arguments.steps
    steps = {
        k: updates(network(words, softmax, arguments), tokens, arguments)
        for k, softmax in softmaxes.items()
    }
    for _ in range(WARM_UP):
        for step in steps.values():
            next(step)
    times = {k: [] for k in steps}
    for k in range(arguments.batches):
        for name in list(steps) if k % 2 else reversed(list(steps)):
            times[name].append(seconds(lambda name=name: next(steps[name])))
    for name, step in times.items():
        print(f"{name:10}{size / np.median(step):10,.0f} tokens for each second of computing")
    ratios = np.array(times["full"]) / np.array(times["adaptive"])
    low, middle, high = np.percentile(ratios, (25, 50, 75))
    print(f"adaptive / full: {middle:.2f} times as fast, quartiles {low:.2f} … {high:.2f}")


def quality(
    softmaxes: dict[str, Softmax],
    part: Tokens,
    held_out: Tokens,
    words: int,
    arguments: argparse.Namespace,
) -> None:
    """Perplexity on what is held out, after each epoch."""
    models = {name: network(words, softmax, arguments) for name, softmax in softmaxes.items()}
    steps = {name: updates(model, part, arguments) for name, model in models.items()}
    count = -(-((len(part) - 1) // arguments.columns) // arguments.steps)
    for epoch in range(1, arguments.tenth + 1):
        perplexities = {}
        for name, step in steps.items():
            for _ in range(count):
                next(step)
            models[name].eval()
            perplexities[name] = float(np.exp(-models[name].score_stream(held_out).mean()))
            models[name].train()
        scores = ", ".join(f"{name} {value:.1f}" for name, value in perplexities.items())
        change = (
            perplexities["adaptive"] / perplexities["full"] - 1 if "full" in perplexities else 0
        )
        print(
            f"epoch {epoch}, {epoch * len(part):,} tokens: perplexity {scores} ({change:+.1%})",
            flush=True,
        )


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--steps", type=int, default=35)
    parser.add_argument("--cuts", default="")
    parser.add_argument("--tenth", type=int, default=0, metavar="EPOCHS")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    arguments = options()
    torch.set_num_threads(arguments.threads)
    whole, part, held_out, words = streams()
    cuts = tuple(map(int, filter(None, arguments.cuts.split(",")))) or default_cuts(words)
    softmaxes = {"full": FULL, "adaptive": AdaptiveSoftmax(cuts)}
    print(
        f"IMDB, {words:,} words, LSTM {LAYERS}×{HIDDEN}, tied, dropout {arguments.dropout:g}, "
        f"batches of {arguments.columns}×{arguments.steps}, Adam; cuts {cuts}"
    )
    if arguments.batches:
        speed(softmaxes, whole, words, arguments)
    if arguments.tenth:
        quality(softmaxes, part, held_out, words, arguments)


if __name__ == "__main__":
    main()
