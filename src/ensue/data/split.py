"""Rows into parts: train, validation and test, or folds.

A split gives each part the indices of its rows, in rising order. All splits are pure functions: the
same rows, shares and seed give the same split on every machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ensue.data.rows import Place
from ensue.errors import DataError, OptionError

SHARES: Mapping[str, float] = {"train": 0.8, "validation": 0.1, "test": 0.1}
MOST_NAMED = 5
CYCLE = 10  # blocks in a cycle
LONGEST_BLOCK = 256  # rows

Split = dict[str, NDArray[np.int64]]


def fraction(content: str, seed: int = 0) -> float:
    """A pseudo-random number in [0, 1), a function of content and seed."""
    message = f"{seed}\n{content}".encode("utf-8", "surrogatepass")
    return (int.from_bytes(blake2b(message, digest_size=8).digest(), "big") >> 11) / 2**53


def part_of(content: str, shares: Mapping[str, float] = SHARES, seed: int = 0) -> str:
    """The part of a row with this content, independent of other rows."""
    return _part_at(fraction(content, seed), shares)


def hashed_content(content: str, place: Place) -> str:
    """The text whose hash decides the part of a row. Blank rows have the same content and would all
    fall into one part: their place in the file decides.

    >>> hashed_content("  ", Place("data/r.csv", 7))
    '  \\nr.csv:7'
    """
    if content.strip():
        return content
    return f"{content}\n{Path(place.file).name}:{place.line}"


def _part_at(at: float, shares: Mapping[str, float]) -> str:
    """The part whose piece of [0, 1) holds this number."""
    bound = 0.0
    for part, share in shares.items():
        bound += share
        if at < bound:
            return part
    return list(shares)[-1]  # shares that sum to 1 up to rounding


def by_hash(rows: Iterable[str], shares: Mapping[str, float] = SHARES, seed: int = 0) -> Split:
    """Splits by the content of each row. Rows with the same content are in the same part, and
    additional rows move no others. Sizes of parts are only near their shares.

    >>> parts = by_hash(f"row {k}" for k in range(100))
    >>> {name: len(rows) for name, rows in parts.items()}
    {'train': 83, 'validation': 9, 'test': 8}
    """
    _check_shares(shares)
    return _numbered([part_of(row, shares, seed) for row in rows], shares, "rows")


def by_group(groups: Iterable[str], shares: Mapping[str, float] = SHARES, seed: int = 0) -> Split:
    """Splits by the group of each row. All rows of a group are in the same part, and additional
    groups move no others. The shares count groups, not rows.

    >>> films = [f"film {k % 60}" for k in range(300)]
    >>> parts = by_group(films)
    >>> {films[k] for k in parts["train"]} & {films[k] for k in parts["test"]}
    set()
    """
    _check_shares(shares)
    known: dict[str, str] = {}
    parts = [known.get(g) or known.setdefault(g, part_of(g, shares, seed)) for g in groups]
    return _numbered(parts, shares, "groups", len(known))


def part_of_line(
    line: int, shares: Mapping[str, float] = SHARES, seed: int = 0, name: str = ""
) -> str:
    """The part of a line (the first is 0) of a running text, such that context stays together.

    Blocks of consecutive lines stay together; of ten blocks each part gets its share. The first ten
    blocks have 1 line each, the next ten 2, then 4, … 256. So short texts are split like long ones,
    and new lines at the end move no others. name: the name of the text, which is part of the
    hash."""
    cycle = min((line // CYCLE + 1).bit_length(), LONGEST_BLOCK.bit_length()) - 1
    more, block = divmod((line - CYCLE * (2**cycle - 1)) // 2**cycle, CYCLE)
    return _part_at((_ranks(f"{name}\n{cycle + more}", seed)[block] + 0.5) / CYCLE, shares)


@lru_cache(maxsize=16)  # lines come one after another
def _ranks(cycle: str, seed: int) -> tuple[int, ...]:
    """A random rank for each block of a cycle."""
    drawn = [fraction(f"{cycle}\n{k}", seed) for k in range(CYCLE)]
    return tuple(sorted(drawn).index(number) for number in drawn)


def by_block(lines: int, shares: Mapping[str, float] = SHARES, seed: int = 0) -> Split:
    """Splits lines by their position, in blocks: see `part_of_line`."""
    _check_shares(shares)
    return _numbered([part_of_line(k, shares, seed) for k in range(lines)], shares, "lines")


def by_share(rows: int, shares: Mapping[str, float] = SHARES, seed: int = 0) -> Split:
    """A random split; the size of each part is within one row of its share."""
    _check_shares(shares)
    return _dealt([None] * rows, shares, seed)


def stratified(
    labels: Sequence[Hashable], shares: Mapping[str, float] = SHARES, seed: int = 0
) -> Split:
    """A random split; each part is within one row of its share of every class.

    Of 25 rows of a class, 80/10/10 gives 20 and then 3 and 2: the odd row goes to the part that
    lacks the most rows over the classes so far.

    >>> parts = stratified(["yes", "no"] * 50)
    >>> {name: len(rows) for name, rows in parts.items()}
    {'train': 80, 'validation': 10, 'test': 10}
    """
    _check_shares(shares)
    _check_classes(labels, len(shares))
    return _dealt(labels, shares, seed)


def equal_shares(count: int) -> dict[str, float]:
    """`count` parts of the same size, for `folds`.

    >>> equal_shares(4)
    {'fold 1': 0.25, 'fold 2': 0.25, 'fold 3': 0.25, 'fold 4': 0.25}
    """
    if count < 2:
        raise OptionError(f"folds: expected a number ≥ 2, got {count}")
    return {f"fold {k + 1}": 1 / count for k in range(count)}


def folds(split: Split) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The folds of a split. In each fold, one part is for testing, and the rows of all other parts
    are for training.

    >>> five = folds(stratified(["yes", "no"] * 50, equal_shares(5)))
    >>> [(len(train), len(held_out)) for train, held_out in five][:2]
    [(80, 20), (80, 20)]
    """
    parts = list(split.values())
    return [
        (np.sort(np.concatenate(parts[:k] + parts[k + 1 :])), fold) for k, fold in enumerate(parts)
    ]


def _generator(seed: int) -> np.random.PCG64:
    """Raw draws. Their stream is the same in all versions, unlike the stream of numpy's
    Generator."""
    if seed < 0:
        raise OptionError(f"seed: expected a number ≥ 0, got {seed}")
    return np.random.PCG64(np.random.SeedSequence(seed))


def _check_shares(shares: Mapping[str, float]) -> None:
    total = sum(shares.values())
    if len(shares) < 2 or min(shares.values()) <= 0 or abs(total - 1) > 1e-6:
        listed = ", ".join(f"{part} {share:g}" for part, share in shares.items()) or "none"
        raise OptionError(
            f"shares: expected two or more numbers > 0 that sum to 1, got {listed} (sum {total:g})"
        )


def _check_classes(labels: Iterable[Hashable], parts: int) -> None:
    small = {label: n for label, n in Counter(labels).items() if n < parts}
    if small:
        listed = [f"{label!r} ({n})" for label, n in list(small.items())[:MOST_NAMED]]
        more = f" and {len(small) - MOST_NAMED} more" if len(small) > MOST_NAMED else ""
        raise DataError(
            f"{len(small)} of the classes have fewer rows than there are parts ({parts}): "
            f"{', '.join(listed)}{more}. Add rows, join classes, or split by share or by hash"
        )


def _dealt(labels: Sequence[Hashable], shares: Mapping[str, float], seed: int) -> Split:
    """The rows of each class, shuffled and dealt to the parts by their shares."""
    members: dict[Hashable, list[int]] = {}
    for row, label in enumerate(labels):
        members.setdefault(label, []).append(row)
    order = np.argsort(_generator(seed).random_raw(len(labels)), kind="stable")
    rank = np.empty(len(labels), np.int64)
    rank[order] = np.arange(len(labels))
    portions = np.array(list(shares.values())) / sum(shares.values())
    behind = np.zeros(len(shares))
    part_of_row = np.empty(len(labels), np.int64)
    for rows in members.values():
        shuffled = np.asarray(rows)[np.argsort(rank[rows])]
        exact = np.round(len(rows) * portions, 9)
        sizes = np.floor(exact).astype(np.int64)
        behind += exact - sizes
        # a part whose share is an integer takes no odd row
        eager = np.where(exact > sizes, behind, -np.inf)
        odd = np.argsort(-eager, kind="stable")[: len(rows) - sizes.sum()]
        sizes[odd] += 1
        behind[odd] -= 1
        part_of_row[shuffled] = np.repeat(np.arange(len(shares)), sizes)
    names = list(shares)
    return _numbered([names[part] for part in part_of_row], shares, "rows")


def _numbered(
    parts: Sequence[str], shares: Mapping[str, float], what: str, count: int | None = None
) -> Split:
    """The row indices of each part; no part may be empty."""
    names = {name: k for k, name in enumerate(shares)}
    numbers = np.fromiter(map(names.__getitem__, parts), np.int64, len(parts))
    split = {name: np.flatnonzero(numbers == k) for name, k in names.items()}
    empty = [name for name, rows in split.items() if not len(rows)]
    if empty:
        raise DataError(
            f"no row falls into {', '.join(empty)}: {len(parts) if count is None else count} "
            f"{what} are too few for these shares. Give more data, larger shares, or another "
            "seed, or name a file for each part"
        )
    return split
