"""ARPA files: n-grams as text, each with log₁₀ P and log₁₀ of its back-off weight.

Numbers have enough digits to restore the same bits; −99 stands for −∞, as usual. A word in such a
file cannot contain white space, so tokens of white space get names.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ensue.data.decode import lines
from ensue.data.options import ReadOptions
from ensue.data.rows import Broken, FileProblems
from ensue.data.vocabulary import END, PAD, START
from ensue.errors import DataError, OptionError
from ensue.files.disk import replacing
from ensue.tasks.language.ngram.counts import NgramIndex
from ensue.tasks.language.ngram.model import NgramModel
from ensue.tasks.language.ngram.smoothing import ADD_K
from ensue.tasks.language.ngram.symbols import NgramSymbols

NAMED = {" ": "<space>", "\t": "<tab>", "\n": "<newline>", "\r": "<return>"}
NOTHING = -99.0  # log₁₀ of 0
BLOCK = 1 << 15


def write_arpa(path: Path | str, model: NgramModel, tokens: Sequence[str]) -> None:
    """Writes a model. tokens: the name of each index. The file is replaced completely or not at
    all."""
    path = Path(path)
    if model.smoothing == ADD_K and model.order > 1:
        raise OptionError(
            f"{path}: not written: {ADD_K!r} gives the left-over probability to all words equally, "
            "and an ARPA file can only give it to the shorter context: choose another smoothing"
        )
    names = _names(path, model, tokens)
    try:
        with replacing(path) as file:
            file.writelines(line.encode() for line in _lines(model, names))
    except OSError as error:
        raise DataError(f"{path}: not written: {error.strerror or error}") from None


def _names(path: Path, model: NgramModel, tokens: Sequence[str]) -> list[str]:
    """The name of each token in the file."""
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
        raise DataError(
            "\n  ".join([f"{path}: not written: an ARPA file cannot hold these words", *problems])
        )
    return names


def _lines(model: NgramModel, names: list[str]) -> Iterator[str]:
    listed = model.symbols.predicted
    listed[model.symbols.start] = True
    numbers = [np.flatnonzero(listed), *(np.arange(len(keys)) for keys in model.index.keys)]
    yield "\\data\\\n"
    yield from (f"ngram {order}={len(number)}\n" for order, number in enumerate(numbers, 1))
    for order, number in enumerate(numbers, 1):
        yield f"\n\\{order}-grams:\n"
        for at in range(0, len(number), BLOCK):
            yield from _entries(model, names, order, number[at : at + BLOCK])
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


MOST_PROBLEMS = 20
ANNOUNCED = re.compile(r"ngram[ \t]+([0-9]{1,3})[ \t]*=[ \t]*([0-9]{1,18})[ \t]*")
TOKENS = {name: token for token, name in NAMED.items()}
READ = "arpa"  # the smoothing of a model read from a file
Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]


class ArpaFile(NamedTuple):
    """A model, and the tokens of its indices."""

    model: NgramModel
    tokens: tuple[str, ...]


def read_arpa(
    path: Path | str, tokens: Sequence[str] | None = None, *, sentences: bool = True
) -> ArpaFile:
    """Reads a model. tokens: the order of the file's words ("<pad>" may be additional, "<s>"
    missing); None for the order of the file. Without `sentences`, rows have no ends."""
    path = Path(path)
    reading = _Reading(path)
    sizes = reading.sizes()
    names: dict[str, int] = {}  # in the order of the file
    entries = reading.section(1, sizes, names)
    listed = [TOKENS.get(name, name) for name in names]
    tokens = tuple(listed if tokens is None else tokens)
    symbols = _symbols(path, listed, tokens, sentences)
    numbers = {START: symbols.start, **{NAMED.get(t, t): n for n, t in enumerate(tokens)}}
    entries.words[:, 0] = np.array([numbers[name] for name in names])[entries.words[:, 0]]
    _, log_p, back_off = reading.sorted(1, NgramIndex(symbols, ()), entries)
    log_p[symbols.start] = -np.inf  # it is never predicted, even if the file has a probability
    keys, logs, weights = list[Numbers](), [log_p], [back_off]
    for order in range(2, len(sizes) + 1):
        entries = reading.section(order, sizes, numbers)
        ngrams, log_p, back_off = reading.sorted(order, NgramIndex(symbols, tuple(keys)), entries)
        keys.append(ngrams)
        logs.append(log_p)
        weights.append(back_off)
    reading.end(len(sizes))
    index = NgramIndex(symbols, tuple(keys))
    present = logs[0] > -np.inf
    return ArpaFile(NgramModel(index, tuple(logs), tuple(weights[:-1]), present, READ), tokens)


def _symbols(
    path: Path, listed: Sequence[str], tokens: Sequence[str], sentences: bool
) -> NgramSymbols:
    """The roles of the tokens; given tokens must match the file."""
    problems = [
        *(f"{t!r} is a word of the file, not of the vocabulary" for t in {*listed} - {*tokens}),
        *(f"{t!r} is a word of the vocabulary, not of the file" for t in {*tokens} - {*listed}),
    ]
    problems = sorted(p for p in problems if not p.startswith((f"{START!r}", f"{PAD!r}")))
    if len(set(tokens)) < len(tokens):
        problems.append("a word of the vocabulary stands there twice")
    if sentences and END not in listed:
        problems.append(f"no {END!r}, which ends every sentence: use sentences=False for a stream")
    if problems:
        messages = [*problems[:MOST_PROBLEMS], *(["…"] if len(problems) > MOST_PROBLEMS else [])]
        raise DataError(
            "\n  ".join([f"{path}: its words differ from the expected ones", *messages])
        )
    known = set(listed)
    numbers = {token: number for number, token in enumerate(tokens)}
    return NgramSymbols(
        size=len(tokens),
        start=numbers.get(START, len(tokens)),
        end=numbers[END] if sentences else None,
        unpredicted=tuple(n for t, n in numbers.items() if t not in known and t != START),
    )


class _Entries(NamedTuple):
    """The n-grams of one section: their lines, their words (n-grams, order), log₁₀ P and
    back-off."""

    lines: Numbers
    words: Numbers
    log_p: Floats
    back_off: Floats


class _Reading:
    """The state of a reading: the number of the current line, and its text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.line, self.text = 0, ""
        self.problems = FileProblems(path)
        self._lines = self._not_empty()

    def _not_empty(self) -> Iterator[tuple[int, str]]:
        try:
            for number, text, fault in lines(self.path, ReadOptions()):
                if fault:
                    self.fail(fault, number)
                if text.strip(" \t"):
                    yield number, text.strip(" \t")
        except Broken as broken:
            self.fail(broken.problem.reason, broken.problem.place.line)

    def next(self, expected: str) -> str:
        line, text = next(self._lines, (self.line, None))
        if text is None:
            self.fail(f"the file ends here, expected {expected} (cut off?)", line)
        self.line, self.text = line, text
        return text

    def fail(self, reason: str, line: int) -> NoReturn:
        self.problems.add(line, reason)
        self.problems.raise_any()
        raise AssertionError("there is a problem")

    # --- the parts of the file ---------------------------------------------------------------

    def sizes(self) -> list[int]:
        """The announced number of n-grams of each order; reads up to the first section."""
        while self.next("\\data\\") != "\\data\\":
            pass  # anything before is not part of the model
        sizes: list[int] = []
        while not self.next("\\1-grams:").startswith("\\"):
            match = ANNOUNCED.fullmatch(self.text)
            if not match or int(match[1]) != len(sizes) + 1:
                self.fail(f"expected ngram {len(sizes) + 1}=…, found {self.text!r}", self.line)
            sizes.append(int(match[2]))
        if not sizes:
            self.fail(f"expected ngram 1=…, found {self.text!r}", self.line)
        return sizes

    def section(self, order: int, sizes: list[int], numbers: dict[str, int]) -> _Entries:
        """The n-grams of one order, from its title on; reads up to the next title. numbers: indices
        of the words, filled by order 1."""
        if self.text != f"\\{order}-grams:":
            self.fail(f"expected \\{order}-grams:, found {self.text!r}", self.line)
        title, highest = self.line, order == len(sizes)
        expected = "\\end\\" if highest else f"\\{order + 1}-grams:"
        places, words, log_p, back_off = list[int](), list[int](), list[float](), list[float]()
        while not self.next(expected).startswith("\\"):
            entry = self._entry(order, highest, numbers)
            if entry:
                places.append(self.line)
                words += entry[0]
                log_p.append(entry[1])
                back_off.append(entry[2])
        if not self.problems.count and len(places) != sizes[order - 1]:
            reason = f"{sizes[order - 1]} {order}-grams are announced, {len(places)} follow"
            self.problems.add(title, reason)
        self.problems.raise_any()
        ids = np.array(words, np.int64).reshape(-1, order)
        return _Entries(np.array(places, np.int64), ids, np.array(log_p), np.array(back_off))

    def _entry(
        self, order: int, highest: bool, numbers: dict[str, int]
    ) -> tuple[list[int], float, float] | None:
        """Words, log₁₀ P and back-off of the line; None for a faulty line, which is reported."""
        fields = self.text.replace("\t", " ").split(" ")
        if "" in fields:
            fields = [field for field in fields if field]
        words = fields[1 : order + 1]
        if not order + 1 <= len(fields) <= order + 2 - highest:
            most = "" if highest else " and at most a back-off weight"
            reason = f"expected a number, {order} words{most}, found {len(fields)} fields"
            self.problems.add(self.line, reason)
            return None
        if order == 1:
            numbers.setdefault(words[0], len(numbers))
        try:
            log_p = _logarithm(fields[0])
            back_off = _logarithm(fields[-1]) if len(fields) > order + 1 else 0.0
            if log_p > 0 and words != [START]:
                raise ValueError(f"expected log₁₀ of a probability, at most 0, found {fields[0]}")
            return _numbered(words, numbers), log_p, back_off
        except ValueError as error:
            self.problems.add(self.line, str(error))
            return None

    def sorted(
        self, order: int, index: NgramIndex, ngrams: _Entries
    ) -> tuple[Numbers, Floats, Floats]:
        """Keys, log₁₀ P and back-off of the entries, sorted by key. A key combines the number of
        the n-gram's context (all words except the last) with the last word."""
        contexts = np.zeros(len(ngrams.words), np.int64)
        for k in range(1, order):
            contexts = index.find(k, contexts, ngrams.words[:, k - 1])
        for at in np.flatnonzero(contexts < 0):
            reason = f"its first {order - 1} words are no {order - 1}-gram of the file"
            self.problems.add(int(ngrams.lines[at]), reason)
        keys = contexts * index.symbols.width + ngrams.words[:, -1]
        by_key = np.argsort(keys, kind="stable")
        keys, places = keys[by_key], ngrams.lines[by_key]
        for at in np.flatnonzero((keys[1:] == keys[:-1]) & (keys[1:] >= 0)):
            self.problems.add(int(places[at + 1]), f"the {order}-gram of line {places[at]} again")
        self.problems.raise_any()
        if order > 1:
            return keys, ngrams.log_p[by_key], ngrams.back_off[by_key]
        log_p, back_off = np.full(index.size(1), -np.inf), np.zeros(index.size(1))
        log_p[keys], back_off[keys] = ngrams.log_p[by_key], ngrams.back_off[by_key]
        return keys, log_p, back_off

    def end(self, order: int) -> None:
        if self.text != "\\end\\":
            self.fail(f"expected \\end\\ after the {order}-grams, found {self.text!r}", self.line)
        after = next(self._lines, None)
        if after:
            self.fail(f"expected nothing after \\end\\, found {after[1]!r}", after[0])


def _numbered(words: list[str], numbers: dict[str, int]) -> list[int]:
    """The indices of an n-gram's words; raises ValueError with the reason if they are invalid."""
    try:
        numbered = [numbers[word] for word in words]
    except KeyError as error:
        raise ValueError(f"{error.args[0]!r} is not among the 1-grams") from None
    if START in words[1:]:
        raise ValueError(f"{START!r} stands after another word")
    if END in words[:-1]:
        raise ValueError(f"{END!r} stands before another word")
    return numbered


def _logarithm(text: str) -> float:
    """A number, −∞ for −99 and below; raises ValueError for other notations that Python accepts."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value < math.inf or "_" in text:
        raise ValueError(f"expected a finite number, found {text!r}")
    return -math.inf if value <= NOTHING else value
