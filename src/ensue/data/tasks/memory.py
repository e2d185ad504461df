"""Tasks that need a memory: how far back does a cell reach?

Each is a function of its length: TASKS["adding"](400) is the adding problem over 400 steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ensue.data.tasks.task import Answers, BuiltInTask, Drawn, Draws, below, uniform
from ensue.errors import OptionError

Symbols = NDArray[np.int64]

# temporal order: 0 stands for no symbol
BEGIN, TRIGGER, X, Y, DISTRACTORS = 1, 2, 3, 4, (5, 6, 7, 8)


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise OptionError(f"{name}: expected a number ≥ {least}, got {value}")


def _all_of(symbols: Symbols) -> Drawn:
    """Rows that fill all steps."""
    rows, time = symbols.shape
    return Drawn(symbols, np.full(rows, time))


def _last_step(drawn: Drawn) -> NDArray[np.bool_]:
    return np.equal(np.arange(drawn.symbols.shape[1]), drawn.lengths[:, None] - 1)


def _one_hot(count: int) -> Callable[[Symbols], NDArray[np.float32]]:
    """Symbols 1 … count as unit vectors, 0 as zeros."""
    vectors = np.eye(count + 1, dtype=np.float32)[:, 1:].copy()
    return lambda symbols: vectors[symbols]


def counting(steps: int) -> BuiltInTask:
    """The number of ones, as a share of `steps`. Rows have steps/2 to steps bits; the density of
    ones varies from row to row, so the length says little about their number."""
    _at_least("steps", steps, 4)
    shortest = steps // 2

    def make(drawn: Draws) -> Drawn:
        lengths = shortest + below(drawn[:, 0], steps - shortest + 1)
        density = uniform(drawn[:, 1])[:, None]
        ones = (uniform(drawn[:, 2:]) < density) & (np.arange(steps) < lengths[:, None])
        return Drawn(ones.astype(np.int64), lengths)

    def answer(drawn: Drawn) -> Answers:
        return Answers((drawn.symbols.sum(1) / steps).astype(np.float32), _last_step(drawn))

    # because the density is uniform, every number of ones from 0 to the length is equally likely
    length = np.arange(shortest, steps + 1)
    variance = (length * (2 * length + 1) / 6).mean() - (length / 2).mean() ** 2
    return BuiltInTask(
        name="counting",
        about="count the ones of a sequence of bits",
        kind="regression",
        features=1,
        outputs=1,
        chance=float(variance) / steps**2,
        enough=(0.5 / steps) ** 2,  # half a one
        columns=steps + 2,
        make=make,
        answer=answer,
        encode=lambda symbols: symbols[..., None].astype(np.float32),
    )


def adding(steps: int) -> BuiltInTask:
    """The adding problem (Hochreiter and Schmidhuber, 1997): numbers of [0, 1), one marked in
    each half; the target is the sum of the two. The constant guess 1 costs 1/6."""
    _at_least("steps", steps, 2)
    half = steps // 2

    def make(drawn: Draws) -> Drawn:
        rows = np.arange(len(drawn))
        symbols = (drawn[:, 2:] >> np.uint64(40)).astype(np.int64) * 2  # 24 bits and the mark
        symbols[rows, below(drawn[:, 0], half)] += 1
        symbols[rows, half + below(drawn[:, 1], steps - half)] += 1
        return _all_of(symbols)

    def encode(symbols: Symbols) -> NDArray[np.float32]:
        return np.stack([(symbols >> 1) * 2.0**-24, symbols & 1], -1).astype(np.float32)

    def answer(drawn: Drawn) -> Answers:
        marked = ((drawn.symbols >> 1) * (drawn.symbols & 1)).sum(1) * 2.0**-24
        return Answers(marked.astype(np.float32), _last_step(drawn))

    return BuiltInTask(
        name="adding",
        about="add the two marked numbers of a long row of numbers",
        kind="regression",
        features=2,
        outputs=1,
        chance=1 / 6,
        enough=0.001,
        columns=steps + 2,
        make=make,
        answer=answer,
        encode=encode,
    )


def temporal_order(steps: int) -> BuiltInTask:
    """Temporal order (Hochreiter and Schmidhuber, 1997, task 6a, their lengths scaled): two
    symbols X or Y among distractors, the first at 10–20 % and the second at 50–60 % of the
    steps; which of XX, XY, YX, YY was it? Rows have `steps` to 1.1 × `steps` symbols."""
    _at_least("steps", steps, 10)
    longest = steps + steps // 10
    places = ((steps // 10, steps // 5), (steps // 2, 6 * steps // 10))

    def make(drawn: Draws) -> Drawn:
        rows = np.arange(len(drawn))
        lengths = steps + below(drawn[:, 0], longest - steps + 1)
        symbols = DISTRACTORS[0] + below(drawn[:, 5:], len(DISTRACTORS))
        for k, (first, last) in enumerate(places):
            at = first + below(drawn[:, 1 + 2 * k], last - first + 1)
            symbols[rows, at] = X + below(drawn[:, 2 + 2 * k], 2)
        symbols[:, 0] = BEGIN
        symbols[rows, lengths - 1] = TRIGGER
        symbols[np.arange(longest) >= lengths[:, None]] = 0
        return Drawn(symbols, lengths)

    def answer(drawn: Drawn) -> Answers:
        rows = np.arange(len(drawn.symbols))
        relevant = (drawn.symbols == X) | (drawn.symbols == Y)
        second = drawn.symbols.shape[1] - 1 - relevant[:, ::-1].argmax(1)
        order = [drawn.symbols[rows, at] == Y for at in (relevant.argmax(1), second)]
        return Answers(2 * order[0] + order[1].astype(np.int64), _last_step(drawn))

    return BuiltInTask(
        name="temporal order",
        about="tell in which order two symbols stood among many others",
        kind="classification",
        features=8,
        outputs=4,
        chance=0.25,
        enough=0.99,
        columns=longest + 5,
        make=make,
        answer=answer,
        encode=_one_hot(8),
    )


def copy(steps: int, *, symbols: int = 10, alphabet: int = 8) -> BuiltInTask:
    """Copy: `symbols` symbols, then `steps` blanks, the last of which is the signal to start; then
    the output is the same symbols, while blanks are read."""
    _at_least("steps", steps, 1)
    _at_least("symbols", symbols, 1)
    _at_least("alphabet", alphabet, 2)
    time, blank, go = steps + 2 * symbols, alphabet + 1, alphabet + 2

    def make(drawn: Draws) -> Drawn:
        rows = np.full((len(drawn), time), blank)
        rows[:, :symbols] = 1 + below(drawn, alphabet)
        rows[:, symbols + steps - 1] = go
        return _all_of(rows)

    def answer(drawn: Drawn) -> Answers:
        targets = np.zeros_like(drawn.symbols)
        targets[:, -symbols:] = drawn.symbols[:, :symbols] - 1
        scored = np.zeros(targets.shape, np.bool_)
        scored[:, -symbols:] = True
        return Answers(targets, scored)

    return BuiltInTask(
        name="copy",
        about=f"repeat {symbols} symbols after a wait",
        kind="labelling",
        features=alphabet + 2,
        outputs=alphabet,
        chance=1 / alphabet,
        enough=0.99,
        columns=symbols,
        make=make,
        answer=answer,
        encode=_one_hot(alphabet + 2),
    )


def parity(steps: int) -> BuiltInTask:
    """Parity: whether the number of ones so far is odd, after each bit."""
    _at_least("steps", steps, 4)

    def answer(drawn: Drawn) -> Answers:
        return Answers(drawn.symbols.cumsum(1) & 1, np.ones(drawn.symbols.shape, np.bool_))

    return BuiltInTask(
        name="parity",
        about="say after each bit whether the ones so far are odd in number",
        kind="labelling",
        features=1,
        outputs=2,
        chance=0.5 + 0.5 / steps,  # the first answer is the first bit
        enough=0.99,
        columns=steps,
        make=lambda drawn: _all_of(below(drawn, 2)),
        answer=answer,
        encode=lambda symbols: symbols[..., None].astype(np.float32),
    )


def dyck(steps: int, *, kinds: int = 2, depth: int = 4) -> BuiltInTask:
    """Dyck language: brackets of several kinds, nested at most `depth` deep. The target after each
    closing bracket is the kind that must be closed next (0: none is open)."""
    _at_least("kinds", kinds, 1)
    _at_least("depth", depth, 1)
    _at_least("steps", steps, depth + 1)

    def make(drawn: Draws) -> Drawn:
        steps_first = below(np.ascontiguousarray(drawn.T), 2 * kinds) + 1  # > kinds: closes
        open_kinds = np.zeros((depth + 1, len(drawn)), np.int64)
        level, rows = np.zeros(len(drawn), np.int64), np.arange(len(drawn))
        for symbol in steps_first:
            opens = ((symbol <= kinds) | (level == 0)) & (level < depth)
            kind = (symbol - 1) % kinds + 1
            symbol[:] = np.where(opens, kind, open_kinds[level, rows] + kinds)
            level += np.where(opens, 1, -1)
            open_kinds[level[opens], rows[opens]] = kind[opens]
        return _all_of(steps_first.T.copy())

    def answer(drawn: Drawn) -> Answers:
        steps_first = np.ascontiguousarray(drawn.symbols.T)
        targets = np.zeros_like(steps_first)
        open_kinds = np.zeros((depth + 1, len(drawn.lengths)), np.int64)  # none at level 0
        level, rows = np.zeros_like(drawn.lengths), np.arange(len(drawn.lengths))
        for target, symbol in zip(targets, steps_first, strict=True):
            opens = symbol <= kinds
            level += np.where(opens, 1, -1)
            open_kinds[level[opens], rows[opens]] = symbol[opens]
            target[:] = open_kinds[level, rows]
        return Answers(targets.T, drawn.symbols > kinds)

    return BuiltInTask(
        name="dyck",
        about=f"brackets of {kinds} kinds: tell which must be closed next",
        kind="labelling",
        features=2 * kinds,
        outputs=kinds + 1,
        chance=_dyck_chance(steps, kinds, depth),
        enough=0.99,
        columns=steps,
        make=make,
        answer=answer,
        encode=_one_hot(2 * kinds),
    )


def _dyck_chance(steps: int, kinds: int, depth: int) -> float:
    """The accuracy, after closing brackets, of the better constant guess: that no bracket is
    open, or that the same kind always is."""
    level = np.eye(depth + 1)[0]  # probability of each level
    closing = emptying = 0.0
    for _ in range(steps):
        opens = level * np.where(np.arange(depth + 1) == 0, 1, 0.5)
        opens[depth] = 0
        closes = level - opens
        closing, emptying = closing + closes.sum(), emptying + closes[1]
        level = np.append(closes[1:], 0) + np.append(0, opens[:-1])
    empty = emptying / closing
    return float(max(empty, (1 - empty) / kinds))


TASKS: dict[str, Callable[[int], BuiltInTask]] = {
    "counting": counting,
    "adding": adding,
    "temporal order": temporal_order,
    "copy": copy,
    "parity": parity,
    "dyck": dyck,
}
