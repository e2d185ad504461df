"""N-gram models of the Penn Treebank: perplexity for every order and smoothing, times and sizes.

    ENSUE_DATA=… python benchmarks/ngram_ptb.py [--orders 5] [--synthetic 10_000_000]

Each line of the corpus is a sentence whose end is predicted and counted; the vocabulary is closed
(10,000 words with "<unk>" and the end). "interpolated" estimates its weights on the validation
text, and add-k has the k of a few that is best there. With --synthetic, random words by Zipf's
law are counted instead, to see time and memory: nearly all their longer n-grams differ, which
no text's do.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from ensue.data.ragged import Ragged
from ensue.tasks.language.ngram import (
    SMOOTHINGS,
    NgramCounts,
    NgramModel,
    NgramSymbols,
    read_arpa,
    write_arpa,
)

ADDED = (1.0, 0.1, 0.03, 0.01, 0.003, 0.001)
Result = TypeVar("Result")


def timed(call: Callable[[], Result]) -> tuple[Result, float]:
    began = time.perf_counter()
    result = call()
    return result, time.perf_counter() - began


def read(folder: Path) -> tuple[dict[str, Ragged], list[str]]:
    """The three texts, numbered, and the words."""
    numbers = {"</s>": 0}
    texts = {}
    for part in ("train", "valid", "test"):
        with gzip.open(folder / "ptb" / f"ptb.{part}.txt.gz", "rt", encoding="utf-8") as lines:
            rows = [
                [numbers.setdefault(word, len(numbers)) for word in line.split()] for line in lines
            ]
        texts[part] = Ragged.of(rows, np.int32)
    return texts, list(numbers)


def smoothed(counts: NgramCounts, smoothing: str, valid: Ragged) -> tuple[NgramModel, str]:
    """The model, and what was chosen for it."""
    if smoothing != "add-k":
        return NgramModel.smoothed(counts, smoothing, held_out=valid), ""
    tried = {k: NgramModel.smoothed(counts, smoothing, k=k) for k in ADDED}
    best = min(ADDED, key=lambda k: tried[k].perplexity(valid))
    return tried[best], f"k = {best:g}"


def perplexities(counts: NgramCounts, texts: dict[str, Ragged]) -> None:
    print(f"\n{'smoothing':22}n   valid     test      smooth    score")
    for smoothing in SMOOTHINGS:
        for order in range(1, counts.order + 1):
            (model, chosen), seconds = timed(
                lambda s=smoothing, n=order: smoothed(counts.upto(n), s, texts["valid"])
            )
            valid = model.perplexity(texts["valid"])
            test, scoring = timed(lambda m=model: m.perplexity(texts["test"]))
            times = f"{seconds:8.2f} s{scoring:8.2f} s"
            print(f"{smoothing:22}{order}{valid:9.2f}{test:9.2f}{times}  {chosen}")


def sparsity(model: NgramModel, test: Ragged) -> None:
    print("\nn    different n-grams   of the test text never seen")
    for order, (size, share) in enumerate(zip(model.sizes, model.unseen(test), strict=True), 1):
        print(f"{order}{size:18,}{share:20.1%}")
    print(f"the model: {model.bytes / 2**20:.0f} MB")


def as_file(model: NgramModel, words: list[str], test: Ragged) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ptb.arpa"
        _, writing = timed(lambda: write_arpa(path, model, words))
        (again, _), reading = timed(lambda: read_arpa(path, words))
        size = path.stat().st_size / 2**20
    same = np.array_equal(again.score(test).values, model.score(test).values)
    print(
        f"ARPA file: {size:.0f} MB, written in {writing:.1f} s, read in {reading:.1f} s, ", end=""
    )
    print("the same bits" if same else "NOT THE SAME")


def treebank(folder: Path, order: int) -> None:
    texts, words = read(folder)
    counts, seconds = timed(lambda: NgramCounts.of(texts["train"], NgramSymbols.of(words), order))
    tokens = len(texts["train"].values) + len(texts["train"])
    print(f"Penn Treebank: {tokens:,} tokens, {len(words):,} words, ends counted in both")
    print(f"counting the n-grams of 1 … {order} words: {seconds:.2f} s")
    perplexities(counts, texts)
    model = NgramModel.smoothed(counts)
    sparsity(model, texts["test"])
    as_file(model, words, texts["test"])


def synthetic(tokens: int, order: int, words: int = 50_000, length: int = 20) -> None:
    chance = np.random.default_rng(0)
    reach = np.cumsum(1 / np.arange(1, words))
    values = np.empty(tokens, np.int32)
    for at in range(0, tokens, 1 << 20):
        part = values[at : at + (1 << 20)]
        part[:] = 1 + np.searchsorted(reach, chance.random(len(part)) * reach[-1])
    rows = Ragged(values, np.append(np.arange(0, tokens, length), tokens))
    before = peak()
    counts, seconds = timed(lambda: NgramCounts.of(rows, NgramSymbols(words, words, 0), order))
    used = peak() - before
    size_of_counts = sum(array.nbytes for array in (*counts.index.keys, *counts.counts))
    print(f"{tokens:,} tokens, {sum(counts.sizes):,} different n-grams of 1 … {order}")
    print(f"counting: {seconds:.1f} s, at most {used / tokens:.1f} bytes a token, of them ", end="")
    print(
        f"{size_of_counts / tokens:.1f} for the counts, "
        f"{size_of_counts / sum(counts.sizes):.1f} an n-gram"
    )
    model, seconds = timed(lambda: NgramModel.smoothed(counts))
    used = peak() - before
    print(f"smoothing: {seconds:.1f} s, at most {used / tokens:.1f} bytes a token with the counts;")
    print(f"the model: {model.bytes / tokens:.1f}")


def peak() -> int:
    """The most memory this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--orders", type=int, default=5)
    options.add_argument("--synthetic", type=int, default=0)
    arguments = options.parse_args()
    if arguments.synthetic:
        synthetic(arguments.synthetic, arguments.orders)
        return
    folder = os.environ.get("ENSUE_DATA")
    if not folder:
        sys.exit("ENSUE_DATA: expected the folder of the data sets, got nothing")
    treebank(Path(folder), arguments.orders)


if __name__ == "__main__":
    main()
