"""ARPA files: n-grams as text, each with log₁₀ P and log₁₀ of its back-off weight.

Numbers have all the digits that bring back the same bits; −99 stands for −∞, as is the custom.
A word cannot hold white space in such a file, so the tokens of white space have names there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ensue.data.vocabulary import END, START
from ensue.errors import DataError, OptionError
from ensue.files.disk import replacing
from ensue.tasks.language.ngram.model import NgramModel
from ensue.tasks.language.ngram.smoothing import ADD_K

NAMED = {" ": "<space>", "\t": "<tab>", "\n": "<newline>", "\r": "<return>"}
NOTHING = -99.0  # log₁₀ of 0
BLOCK = 1 << 15


def write_arpa(path: Path | str, model: NgramModel, tokens: Sequence[str]) -> None:
    """tokens: what each number of the model is called. The file replaces what is there, whole or
    not at all."""
    path = Path(path)
    if model.smoothing == ADD_K and model.order > 1:
        raise OptionError(
            f"{path}: not written: what {ADD_K!r} leaves goes to all words alike, and an ARPA "
            "file can only give it to the shorter context: choose another smoothing"
        )
    names = _names(path, model, tokens)
    try:
        with replacing(path) as file:
            file.writelines(line.encode() for line in _lines(model, names))
    except OSError as error:
        raise DataError(f"{path}: not written: {error.strerror or error}") from None


def _names(path: Path, model: NgramModel, tokens: Sequence[str]) -> list[str]:
    """What each number is called in the file."""
    symbols = model.symbols
    if len(tokens) != symbols.size:
        raise OptionError(f"{path}: expected {symbols.size} tokens, got {len(tokens)}")
    names = [NAMED.get(token, token) for token in tokens]
    names += [START] * (symbols.width - symbols.size)
    problems = [
        f"{name!r}: a word of an ARPA file cannot be empty or hold white space"
        for name in names
        if not name or any(space in name for space in NAMED)
    ]
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        problems.append(f"{twice!r}: two tokens are called that")
    for role, number, name in (("start", symbols.start, START), ("end", symbols.end, END)):
        if number is not None and names[number] != name:
            problems.append(f"{names[number]!r}: the {role} of a row is called {name!r}")
    if problems:
        raise DataError("\n  ".join([f"{path}: not written: these are no words for it", *problems]))
    return names


def _lines(model: NgramModel, names: list[str]) -> Iterator[str]:
    listed = model.symbols.predicted
    listed[model.symbols.start] = True
    numbers = [np.flatnonzero(listed), *(np.arange(len(keys)) for keys in model.index.keys)]
    yield "\\data\\\n"
    yield from (f"ngram {order}={len(own)}\n" for order, own in enumerate(numbers, 1))
    for order, own in enumerate(numbers, 1):
        yield f"\n\\{order}-grams:\n"
        for at in range(0, len(own), BLOCK):
            yield from _entries(model, names, order, own[at : at + BLOCK])
    yield "\n\\end\\\n"


def _entries(
    model: NgramModel, names: list[str], order: int, numbers: NDArray[np.int64]
) -> Iterator[str]:
    log_p = _finite(model.log_p[order - 1][numbers])
    called = np.array(names, object)
    columns = [called[column].tolist() for column in model.index.spelled(order, numbers).T]
    words = map(" ".join, zip(*columns, strict=True))
    if order == model.order:
        yield from (f"{p!r}\t{n}\n" for p, n in zip(log_p, words, strict=True))
        return
    weights = _finite(model.back_off[order - 1][numbers])
    for p, name, weight in zip(log_p, words, weights, strict=True):
        yield f"{p!r}\t{name}\t{weight!r}\n" if weight else f"{p!r}\t{name}\n"


def _finite(logs: NDArray[np.float64]) -> list[float]:
    return np.where(np.isneginf(logs), NOTHING, logs).tolist()  # type: ignore[no-any-return]
