"""Which mutations are tried: a seeded choice, spread over the files by their lines of code."""

from __future__ import annotations

import ast
import random
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import accumulate
from pathlib import Path

from mutation.mutations import Mutation, is_valid, mutations

# Text for people and drawings: a word or a pixel that moves is no fault that a test must see.
TEXT_AND_DRAWING = (
    "*picture.py",
    "*/drawing/*",
    "*_drawing.py",
    "*/draws.py",
    "*/page.py",
    "*_page.py",
    "*_report.py",
    "*/text.py",
    "*_text.py",
    "*_table.py",
    "*/study/*/table.py",
    "*/demo/*",
    "*/doctor*",
    "*/cells/describe.py",
    "*/data/show.py",
    "*/seq2seq/drawing.py",
    "*/drawing/*",
    "*/equations/picture.py",
    "*/layers/unfold.py",
)
NOT_TEXT = ("*/scored_text.py",)


@dataclass(frozen=True)
class Module:
    """A file of the source: its mutations, and how many of its lines hold code."""

    file: str
    source: bytes
    mutations: list[Mutation]
    lines: int


def is_text_or_drawing(file: str) -> bool:
    path = f"/{file}"
    return any(fnmatch(path, pattern) for pattern in TEXT_AND_DRAWING) and not any(
        fnmatch(path, pattern) for pattern in NOT_TEXT
    )


def lines_of_code(source: bytes) -> int:
    """Lines on which a statement or expression begins, docstrings and all other text aside."""
    return len(
        {
            node.lineno
            for node in ast.walk(ast.parse(source))
            if isinstance(node, (ast.stmt, ast.expr))
            and not (isinstance(node, ast.Constant) and isinstance(node.value, str))
        }
    )


def modules(root: Path, folder: str) -> list[Module]:
    """The Python files below root/folder that are neither text nor drawing, by name."""
    chosen = []
    for path in sorted((root / folder).rglob("*.py")):
        file = path.relative_to(root).as_posix()
        if not is_text_or_drawing(file):
            source = path.read_bytes()
            chosen.append(Module(file, source, mutations(file, source), lines_of_code(source)))
    return chosen


def quotas(sizes: list[int], count: int, draw: random.Random) -> list[int]:
    """`count` shared out in proportion to the sizes: equal steps from a random start, so that
    each gets its share rounded up or down."""
    total = sum(sizes)
    bounds = [bound * count / total for bound in accumulate(sizes)]
    offset = draw.random()
    reached = [max(0, int(bound - offset) + 1) if bound > offset else 0 for bound in bounds]
    return [now - before for now, before in zip(reached, [0, *reached], strict=False)]


def choose(modules_found: list[Module], count: int, seed: int) -> list[Mutation]:
    """Mutations at different places: files by their lines of code, kinds as even as they come."""
    draw = random.Random(seed)
    rich = [module for module in modules_found if module.mutations]
    draw.shuffle(rich)
    chosen: list[Mutation] = []
    kinds: Counter[str] = Counter()
    while len(chosen) < count:
        before = len(chosen)
        shares = quotas([module.lines for module in rich], count - before, draw)
        for module, share in zip(rich, shares, strict=True):
            for _ in range(share):
                starts = {one.start for one in chosen if one.file == module.file}
                one = pick(module, starts, kinds, draw)
                if one is not None:
                    chosen.append(one)
                    kinds[one.kind] += 1
        if len(chosen) == before:  # there are no more places
            break
    return chosen


def pick(
    module: Module, starts: set[int], kinds: Counter[str], draw: random.Random
) -> Mutation | None:
    """One mutation, of the kind that has been chosen least so far; each place once."""
    free = [one for one in module.mutations if one.start not in starts]
    draw.shuffle(free)
    free.sort(key=lambda one: kinds[one.kind])
    return next((one for one in free if is_valid(one, module.source)), None)
