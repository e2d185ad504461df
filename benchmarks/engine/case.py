"""What is measured, by name: `dense.LSTM.T100.B64.H256.train`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from ensue.errors import OptionError, unknown

TORCH_CELLS = ("LSTM", "GRU", "SimpleRNN")  # those whose weights torch.nn can take
FOUR_SHAPES = ((100, 64, 256), (100, 32, 128), (400, 32, 64), (200, 1, 128))
GRID_STEPS = (1, 35, 100, 400)
GRID_BATCHES = (1, 16, 20, 32, 64)
GRID_HIDDEN = (64, 100, 128, 200, 256, 512, 650)
MODES = ("train", "infer")
KINDS = {
    "dense": "all rows equally long",
    "lengths": "unequal lengths, against torch.nn padded and packed",
    "spread": "unequal lengths of several kinds, against equal ones: cost of a real step",
    "step": "one step at a time, for a stream",
    "bf16": "bfloat16, against float32 and torch.nn under autocast",
    "compile": "making the kernel, with an empty cache",
}


@dataclass(frozen=True)
class Case:
    """One row of a table. Sizes: steps (time), batch, hidden; the input is as wide as hidden."""

    kind: str
    cell: str
    steps: int
    batch: int
    hidden: int
    mode: str
    spread: str = ""  # of the lengths, one of SPREADS

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.steps, self.batch, self.hidden

    @property
    def sizes(self) -> str:
        return f"T{self.steps} B{self.batch} H{self.hidden}"

    @property
    def words(self) -> list[str]:
        sizes = [f"T{self.steps}", f"B{self.batch}", f"H{self.hidden}"]
        return [self.kind, self.cell, *sizes, *filter(None, [self.spread]), self.mode]

    @property
    def name(self) -> str:
        return ".".join(self.words)


# -------------------------------------------------------------------- lengths
def _between(low: float, high: float, bend: float, rows: int) -> list[float]:
    """From low to high, evenly (bend 1) or with more short ones (bend > 1)."""
    return [low + (high - low) * (k / max(1, rows - 1)) ** bend for k in range(rows)]


def _rows(shares: Iterable[float], steps: int) -> list[int]:
    return [round(share * steps) for share in shares]


SPREADS = {
    "equal": "all of full length",
    "nearly": "90 to 100 %",
    "half": "50 to 100 %, evenly",
    "wide": "2.5 to 100 %, mean 46 % (10 to 400, mean 183)",
    "steep": "2.5 to 100 %, mean 25 %: many short ones",
    "outlier": "one of full length, the others 10 %",
    "empty": "half of the rows empty, half of full length",
}


def lengths_of(spread: str, steps: int, batch: int) -> list[int]:
    """The lengths of a batch; neighbours differ, as in a shuffled data set.

    "wide" at 400 steps: 10 to 400 with a mean of 183."""
    shares = {
        "equal": lambda: [1.0] * batch,
        "nearly": lambda: _between(0.9, 1.0, 1.0, batch),
        "half": lambda: _between(0.5, 1.0, 1.0, batch),
        "wide": lambda: _between(0.025, 1.0, 1.254, batch),
        "steep": lambda: _between(0.025, 1.0, 3.3, batch),
        "outlier": lambda: [1.0] + [0.1] * (batch - 1),
        "empty": lambda: [1.0] * (batch - batch // 2) + [0.0] * (batch // 2),
    }[spread]()
    stride = next(k for k in range(max(1, batch * 5 // 8), 2 * batch) if math.gcd(k, batch) == 1)
    rows = _rows(shares, steps)
    return [rows[k * stride % batch] for k in range(batch)]


# -------------------------------------------------------------------- lists of cases
def quick_cases(cells: Sequence[str]) -> list[Case]:
    """The four shapes in training for every cell, in inference for torch.nn's; and the rest."""
    train = [Case("dense", cell, *shape, "train") for cell in cells for shape in FOUR_SHAPES]
    known = [cell for cell in TORCH_CELLS if cell in cells]
    infer = [Case("dense", cell, *shape, "infer") for cell in known for shape in FOUR_SHAPES]
    return [*train, *infer, *other_cases(cells)]


def full_cases(cells: Sequence[str]) -> list[Case]:
    """The quick cases, and the whole grid for the cells of torch.nn."""
    known = [cell for cell in TORCH_CELLS if cell in cells]
    shapes = list(product(GRID_STEPS, GRID_BATCHES, GRID_HIDDEN))
    grid = [
        Case("dense", cell, *shape, mode) for mode in MODES for cell in known for shape in shapes
    ]
    quick = quick_cases(cells)
    dense = dict.fromkeys([*(c for c in quick if c.kind == "dense"), *grid])
    return [*dense, *(c for c in quick if c.kind != "dense")]


def other_cases(cells: Sequence[str]) -> list[Case]:
    known = [cell for cell in TORCH_CELLS if cell in cells]
    others = [Case("lengths", cell, 400, 64, 128, "train", "wide") for cell in known]
    others += [
        Case("spread", cell, 400, 64, 128, "train", spread) for cell in known for spread in SPREADS
    ]
    others += [Case("step", cell, 1, 1, 128, "infer") for cell in known]
    if "LSTM" in cells:
        others += [
            Case("bf16", "LSTM", 100, 64, hidden, mode) for mode in MODES for hidden in (256, 512)
        ]
    return [*others, *(Case("compile", cell, 1, 1, 64, "train") for cell in cells)]


def _unknown_word(word: str, patterns: Sequence[str], known: Collection[str]) -> OptionError:
    files = [pattern for pattern in patterns if pattern.partition(":")[0].endswith(".py")]
    if files:
        return OptionError(f"{files[0]}: a file is no case; for its cell use --cell {files[0]}")
    return unknown("word in the name of a case", word, known)


def chosen_cases(cases: Sequence[Case], patterns: Sequence[str]) -> list[Case]:
    """The cases with all words of one of the patterns: "LSTM.train", "lengths", "T400.B32"."""
    if not patterns:
        return list(cases)
    known = {word for case in cases for word in case.words}
    pattern_words = [pattern.split(".") for pattern in patterns]
    for word in (word for words in pattern_words for word in words):
        if word not in known:
            raise _unknown_word(word, patterns, known)
    for pattern, words in zip(patterns, pattern_words, strict=True):
        if not any(set(words) <= set(case.words) for case in cases):
            raise OptionError(f"no case has all words of {pattern}; --list prints their names")
    return [case for case in cases if any(set(words) <= set(case.words) for words in pattern_words)]
