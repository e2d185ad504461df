"""Writes built-in tasks as files, for trying every command on them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from filecmp import cmp
from hashlib import sha256
from pathlib import Path

from ensue.data.pictures.images import write_image
from ensue.data.tasks.dates import dates
from ensue.data.tasks.memory import TASKS
from ensue.data.tasks.shapes import shapes
from ensue.data.tasks.task import PARTS
from ensue.errors import DataError, OptionError, unknown
from ensue.files.disk import replacing

# -------------------------------------------------------------------------------------------------
# Nested expressions as trees in brackets, with the value of each part as its label.
#
#     arithmetic   (4 (1 1) - (2 (4 4) + (3 3)))         + and − modulo 5
#     logic        (T (F F) implies (T not (F F)))       and, or, implies, not
#
# The value of a − b and of a implies b depends on the order of a and b: a network that sums the
# children of a node cannot distinguish them.

MODULUS = 5
MOST_ATTEMPTS = 1000
Made = tuple[str, str]  # text in brackets, and value

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
    """Two expressions: one of the full depth, the other of any smaller depth."""
    deep, other = make(draw, depth - 1), make(draw, draw.randrange(depth))
    return (deep, other) if draw.random() < 0.5 else (other, deep)


EXPRESSIONS: dict[str, tuple[str, Callable[[random.Random, int], Made]]] = {
    "arithmetic": ("nested sums and differences modulo 5, the value of each at its node",
                   arithmetic),
    "logic": ("nested and, or, implies, not, the value of each at its node", logic),
}  # fmt: skip


def expressions(name: str, seed: int, part: str, rows: int, depth: int) -> Iterator[str]:
    """Lines of trees, of depths 1 … depth in equal shares. Each is a pure function of the seed, the
    part and its number; no tree of one part is in another."""
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


DATES, SHAPES = "dates", "shapes"
CAPTIONS = "captions.tsv"
AT_ONCE = 1000  # rows in memory
FORMATS = {DATES: (".conll", ".tsv"), **dict.fromkeys(EXPRESSIONS, (".trees",))}
NAMES = (DATES, SHAPES, *EXPRESSIONS, *TASKS)


def write_task(
    name: str,
    path: Path,
    *,
    rows: int,
    steps: int = 20,
    depth: int = 6,
    part: str = "train",
    seed: int = 1,
    replace: bool = False,
) -> str:
    """Writes rows of a part, distinct from those of other parts; returns a line that describes "
    "them.

    dates: .conll has the parts of each date labelled, .tsv its language and its ISO form; shapes: a
    folder of pictures, with captions.tsv next to them; arithmetic, logic: .trees with expressions
    up to that depth; the others: .jsonl with `features` (steps, n) and `label`, a class, a number,
    or one label for each step.

    replace: an existing file with other content is replaced; otherwise it is refused."""
    if name not in NAMES:
        raise unknown("task", name, NAMES)
    if part not in PARTS:
        raise unknown("part", part, PARTS)
    if name == SHAPES:
        return _write_shapes(path, seed, part, rows)
    known = FORMATS.get(name, (".jsonl",))
    if path.suffix not in known:
        raise OptionError(f"{path}: expected a file name that ends in {' or '.join(known)}")
    if name == DATES:
        about = "dates as people write them in five languages"
        lines = _labelled(seed, part, rows) if path.suffix == ".conll" else _pairs(seed, part, rows)
    elif name in EXPRESSIONS:
        about, lines = EXPRESSIONS[name][0], expressions(name, seed, part, rows, depth)
    else:
        about = TASKS[name](steps).about
        lines = _sequences(name, seed, part, rows, steps)
    try:
        with replacing(path) as file:
            file.writelines(line.encode() for line in lines)
            file.flush()
            if not replace and path.exists() and not cmp(file.name, path, shallow=False):
                raise OptionError(
                    f"{path} already exists with other content, and was left unchanged. Name "
                    "another file, or add --replace"
                )
    except OSError as problem:
        raise OptionError(f"{path} cannot be written: {problem.strerror}") from problem
    return about


def _write_shapes(folder: Path, seed: int, part: str, rows: int) -> str:
    """Writes the pictures first, so that every line of the captions has its picture."""
    if folder.suffix:
        raise OptionError(f"{folder}: expected the name of a folder, which has no ending")
    width = len(str(rows))
    lines = ["file\tcaption\n"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise OptionError(
                f"{folder}: expected a new or empty folder, so that no other file is taken for one "
                "of these pictures"
            )
        for first, count in _blocks(rows):
            for number, scene in enumerate(shapes(seed, part, count, first=first), first + 1):
                file = f"{number:0{width}}.png"
                write_image(folder / file, scene.picture)
                lines.append(f"{file}\t{scene.caption}\n")
        (folder / CAPTIONS).write_text("".join(lines), encoding="utf-8")
    except OSError as problem:
        raise OptionError(f"{folder} cannot be written: {problem.strerror}") from problem
    return f"drawn shapes, their captions in {folder / CAPTIONS}"


def _blocks(rows: int) -> Iterator[tuple[int, int]]:
    """(first, count) of the rows that are generated together."""
    for first in range(0, rows, AT_ONCE):
        yield first, min(AT_ONCE, rows - first)


def _labelled(seed: int, part: str, rows: int) -> Iterator[str]:
    for first, count in _blocks(rows):
        for date in dates(seed, part, count, first=first):
            pairs = zip(date.tokens, date.tags, strict=True)
            yield "".join(f"{token}\t{tag}\n" for token, tag in pairs) + "\n"


def _pairs(seed: int, part: str, rows: int) -> Iterator[str]:
    yield "text\tlanguage\tiso\n"
    for first, count in _blocks(rows):
        for date in dates(seed, part, count, first=first):
            yield f"{date.text}\t{date.language}\t{date.iso}\n"


def _sequences(name: str, seed: int, part: str, rows: int, steps: int) -> Iterator[str]:
    task = TASKS[name](steps)
    for first, count in _blocks(rows):
        batch = task.batch(seed, first, count, part)
        for row, length in enumerate(batch.lengths.tolist()):
            targets = batch.targets
            if task.kind == "labelling":
                label: object = [str(t) for t in targets[:length, row]]
            else:
                label = float(targets[row]) if task.kind == "regression" else str(targets[row])
            features = batch.x[:length, row].tolist()
            yield json.dumps({"features": features, "label": label}) + "\n"
