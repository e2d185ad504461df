"""Nested expressions as trees in brackets, with the value of each part as its label.

    arithmetic   (4 (1 1) - (2 (4 4) + (3 3)))         + and − modulo 5
    logic        (T (F F) implies (T not (F F)))       and, or, implies, not

The value of a − b and of a implies b depends on the order of a and b: a network that sums what
stands below a node cannot tell them apart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from hashlib import sha256

from ensue.data.tasks.task import PARTS
from ensue.errors import DataError

MODULUS = 5
MOST_ATTEMPTS = 1000
Made = tuple[str, str]  # in brackets, and its value

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: (a + b) % MODULUS,
    "-": lambda a, b: (a - b) % MODULUS,
}
_LOGIC: dict[str, Callable[[bool, bool], bool]] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "implies": lambda a, b: not a or b,
}


def arithmetic(draw: random.Random, depth: int) -> Made:
    """An expression of that depth: 0 is a digit."""
    if not depth:
        digit = str(draw.randrange(MODULUS))
        return f"({digit} {digit})", digit
    (left, a), (right, b) = _sides(draw, depth, arithmetic)
    sign = draw.choice([*_ARITHMETIC])
    value = str(_ARITHMETIC[sign](int(a), int(b)))
    return f"({value} {left} {sign} {right})", value


def logic(draw: random.Random, depth: int) -> Made:
    """An expression of that depth: 0 is T or F."""
    if not depth:
        name = draw.choice("TF")
        return f"({name} {name})", name
    if draw.random() < 0.2:
        inside, a = logic(draw, depth - 1)
        value = "F" if a == "T" else "T"
        return f"({value} not {inside})", value
    (left, a), (right, b) = _sides(draw, depth, logic)
    word = draw.choice([*_LOGIC])
    value = "T" if _LOGIC[word](a == "T", b == "T") else "F"
    return f"({value} {left} {word} {right})", value


def _sides(
    draw: random.Random, depth: int, make: Callable[[random.Random, int], Made]
) -> tuple[Made, Made]:
    """Two expressions: one as deep as it may be, the other of any smaller depth."""
    deep, other = make(draw, depth - 1), make(draw, draw.randrange(depth))
    return (deep, other) if draw.random() < 0.5 else (other, deep)


EXPRESSIONS: dict[str, tuple[str, Callable[[random.Random, int], Made]]] = {
    "arithmetic": ("nested sums and differences modulo 5, the value of each at its node",
                   arithmetic),
    "logic": ("nested and, or, implies, not, the value of each at its node", logic),
}  # fmt: skip


def expressions(name: str, seed: int, part: str, rows: int, depth: int) -> Iterator[str]:
    """Lines of trees, of depths 1 … depth alike. Each is a pure function of the seed, the part and
    its number; no tree of one part is in another."""
    make = EXPRESSIONS[name][1]
    for row in range(rows):
        draw = random.Random(f"{name} {seed} {part} {row}")
        for _ in range(MOST_ATTEMPTS):
            text, _ = make(draw, draw.randint(1, depth))
            if sha256(text.encode()).digest()[0] % 4 in PARTS[part]:
                yield f"{text}\n"
                break
        else:
            raise DataError(f"{name}: there are too few different trees: use a greater --depth")
