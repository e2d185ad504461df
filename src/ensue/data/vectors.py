"""Word vectors from a file, for the words of a vocabulary.

The text format of word2vec and GloVe: a word and its numbers on each line, separated by spaces,
optionally after a first line with two integers (number of words, dimension). gzip is unpacked.
Names that end in .bin are word2vec's binary files.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ensue.data.rows import FileProblems
from ensue.data.stream import open_file
from ensue.data.vocabulary import SPECIALS, Vocabulary
from ensue.errors import DataError
from ensue.files.opening import VECTOR_LINE, VECTOR_NUMBER, VECTOR_WIDTH

SUFFIX = ".bin"
COUNT = re.compile(rb"\d{1,18}")
GZIP = b"\x1f\x8b"
# spellings under which a word is searched, best first
SPELLINGS = (str, str.lower, str.capitalize, str.upper)


@dataclass(frozen=True)
class WordVectors:
    """matrix (tokens of the vocabulary, width): the file's vectors; for words without one, a draw
    from a normal distribution of the same spread; zero for the padding."""

    matrix: NDArray[np.float32]
    exact: int  # tokens found as they are spelled
    other_case: int  # tokens found in another case only
    missing: tuple[str, ...]  # tokens drawn at random
    token_share: float  # share of the running text whose words were found

    def __str__(self) -> str:
        known = self.exact + self.other_case
        return (
            f"vectors of width {self.matrix.shape[1]} for {known} of {known + len(self.missing)} "
            f"words ({self.other_case} in another case), {self.token_share:.1%} of the text"
        )


def read_vectors(path: Path, vocabulary: Vocabulary, *, seed: int = 0) -> WordVectors:
    """The vectors of a vocabulary's words, with exact spelling or else in another case.

    Only the lines of wanted words are read as numbers, so memory depends on the vocabulary; for
    other lines only the width is checked."""
    reading = _Reading(path, vocabulary)
    if path.suffix == SUFFIX:
        for number, word, vector in _binary_vectors(path):
            reading.words, reading.width = reading.words + 1, len(vector)
            if word in reading.by_spelling:
                reading.keep(number, word, vector)
        return reading.result(seed)
    for line, content in _lines(path):
        reading.take(line, content)
    return reading.result(seed)


def vector_width(path: Path) -> int:
    """The width of the vectors of a file."""
    if path.suffix == SUFFIX:
        return _binary_width(path)
    reading = _Reading(path, Vocabulary(SPECIALS, (0, 0)))
    for line, content in _lines(path):
        reading.take(line, content)
        if reading.width:
            return reading.width
    raise DataError(f"{path}: expected a word and its numbers on each line, got an empty file")


class _Reading:
    """The state of a reading: the best vector so far for each token."""

    def __init__(self, path: Path, vocabulary: Vocabulary) -> None:
        self.path, self.vocabulary = path, vocabulary
        self.by_spelling: dict[bytes, list[tuple[int, int]]] = {}  # spelling → token, rank
        for number in range(len(vocabulary.specials), len(vocabulary)):
            spellings = [spell(vocabulary.tokens[number]) for spell in SPELLINGS]
            for rank, spelling in enumerate(dict.fromkeys(spellings)):
                self.by_spelling.setdefault(spelling.encode("utf-8", "surrogatepass"), []).append(
                    (number, rank)
                )
        self.rank = np.full(len(vocabulary), len(SPELLINGS))
        self.matrix: NDArray[np.float32] | None = None
        self.width = 0
        self.promised: int | None = None
        self.words = 0
        self.lines_of: dict[bytes, int] = {}
        self.problems = FileProblems(path)

    def take(self, line: int, content: bytes) -> None:
        fields = content.rstrip(b" \r").split(b" ")
        if line == 1 and len(fields) == 2 and all(COUNT.fullmatch(field) for field in fields):
            self.promised, self.width = int(fields[0]), int(fields[1])
            self._check_width(line)
            return
        self.words += 1
        if not self.width:
            self.width = len(fields) - 1
            self._check_width(line)
        beyond = len(fields) - self.width  # parts of the word: a few have spaces inside
        if not self.width or beyond < 1 or (beyond > 1 and _is_number(fields[beyond - 1])):
            expected = self.width or "a word and its"
            self.problems.add(line, f"expected {expected} numbers, found {len(fields) - 1}")
            return
        word = b" ".join(fields[:beyond])
        if word in self.by_spelling:
            self.read(line, word, fields[beyond:])

    def _check_width(self, line: int) -> None:
        if self.width > VECTOR_WIDTH:
            raise DataError(
                f"{self.path}:{line}: expected vectors of at most {VECTOR_WIDTH:,} numbers, got "
                f"{self.width:,}: is this a file of word vectors?"
            )

    def read(self, line: int, word: bytes, numbers: list[bytes]) -> None:
        """Reads the vector of a word of the vocabulary."""
        wrong = next((number for number in numbers if not _is_number(number)), None)
        if wrong is not None:
            self.problems.add(line, f"expected a number, found {wrong.decode(errors='replace')!r}")
            return
        with np.errstate(over="ignore"):
            self.keep(line, word, np.array(list(map(float, numbers))).astype(np.float32))

    def keep(self, line: int, word: bytes, vector: NDArray[np.float32]) -> None:
        """Stores the vector of a wanted word."""
        if word in self.lines_of:
            reason = f"{word.decode()!r} is already in line {self.lines_of[word]}"
            self.problems.add(line, reason)
            return
        self.lines_of[word] = line
        if not (np.abs(vector) <= VECTOR_NUMBER).all():
            message = f"expected finite numbers, at most {VECTOR_NUMBER:g}, found one that is not"
            self.problems.add(line, message)
            return
        if self.matrix is None:
            self.matrix = np.zeros((len(self.vocabulary), self.width), np.float32)
        for number, rank in self.by_spelling[word]:
            if rank < self.rank[number]:
                self.rank[number] = rank
                self.matrix[number] = vector

    def result(self, seed: int) -> WordVectors:
        if self.promised is not None and self.promised != self.words and not self.problems.count:
            reason = (
                f"{self.promised} vectors announced in the first line, {self.words} "
                "follow (cut off?)"
            )
            self.problems.add(1, reason)
        self.problems.raise_any()
        if self.matrix is None:
            raise DataError(
                f"{self.path}: none of its {self.words} words is in the vocabulary: "
                "are they of the same language, and is it a file of word vectors as text?"
            )
        specials = len(self.vocabulary.specials)
        known = self.rank < len(SPELLINGS)
        drawn = ~known
        drawn[: min(specials, 1)] = False  # the padding stays zero
        noise = np.random.Generator(np.random.PCG64(seed)).standard_normal(
            (int(drawn.sum()), self.width), np.float32
        )
        self.matrix[drawn] = noise * self.matrix[known].std()
        counts = np.array(self.vocabulary.counts)
        return WordVectors(
            self.matrix,
            exact=int((self.rank == 0).sum()),
            other_case=int((known & (self.rank > 0)).sum()),
            missing=tuple(
                self.vocabulary.tokens[k] for k in np.flatnonzero(~known) if k >= specials
            ),
            token_share=float(counts[known].sum() / max(counts.sum(), 1)),
        )


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number and content of each line that is not empty, gzip or not."""
    try:
        with open_file(path) as file:
            packed = file.read(2) == GZIP
            file.seek(0)
            lines, number = gzip.GzipFile(fileobj=file) if packed else file, 0
            while content := lines.readline(VECTOR_LINE + 1):
                number += 1
                if len(content) > VECTOR_LINE:
                    raise DataError(
                        f"{path}:{number}: expected a word and its numbers, got a line of more "
                        f"than {VECTOR_LINE:,} bytes: is this a file of word vectors?"
                    )
                if content.strip():
                    yield number, content.rstrip(b"\n")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: damaged gzip file ({error}): fetch it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _is_number(text: bytes) -> bool:
    """Whether a file's text is a number; Python's 1_0 is not."""
    try:
        float(text)
    except ValueError:
        return False
    return b"_" not in text


# --- word2vec's binary format: "count width" on a line, then for each word its bytes, a space, and
# its numbers as little-endian float32; a line break may stand between two words ----------------


def _binary_width(path: Path) -> int:
    """The width of the vectors."""
    with open_file(path) as file:
        return _head(path, file)[1]


def _binary_vectors(path: Path) -> Iterator[tuple[int, bytes, NDArray[np.float32]]]:
    """Number (from 1), word and vector of each entry; raises DataError if the file ends early."""
    with open_file(path) as file:
        count, width = _head(path, file)
        for number in range(1, count + 1):
            word = _word(path, file, number)
            numbers = file.read(4 * width)
            if len(numbers) < 4 * width:
                raise DataError(
                    f"{path}: {count:,} vectors are announced, and the file ends in number "
                    f"{number:,}: fetch it again"
                )
            yield number, word, np.frombuffer(numbers, "<f4").astype(np.float32)


def _head(path: Path, file: BinaryIO) -> tuple[int, int]:
    line = file.readline(100)
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        raise DataError(
            f"{path}:1: expected how many vectors there are and how wide, as in word2vec's binary "
            f"format, got {line[:40]!r}"
        )
    count, width = int(fields[0]), int(fields[1])
    if not 0 < width <= VECTOR_WIDTH:
        raise DataError(f"{path}:1: expected vectors of 1 to {VECTOR_WIDTH:,} numbers, got {width}")
    return count, width


def _word(path: Path, file: BinaryIO, number: int) -> bytes:
    read_bytes = bytearray()
    while (sign := file.read(1)) not in (b" ", b""):
        if sign != b"\n" or read_bytes:
            read_bytes += sign
        if len(read_bytes) > VECTOR_LINE:
            raise DataError(
                f"{path}: word {number:,}: expected a word and a space, got {VECTOR_LINE:,} bytes "
                "without one: is this a file of word vectors?"
            )
    return bytes(read_bytes)
