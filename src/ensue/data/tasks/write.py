"""Built-in tasks as files, so that every command can be tried on them at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ensue.data.pictures.images import write_image
from ensue.data.tasks.dates import dates
from ensue.data.tasks.expressions import EXPRESSIONS, expressions
from ensue.data.tasks.memory import TASKS
from ensue.data.tasks.shapes import shapes
from ensue.data.tasks.task import PARTS
from ensue.errors import OptionError, unknown
from ensue.files.disk import replacing

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
) -> str:
    """Writes rows of a part, which no other part has; says in one line what they are.

    dates: .conll has the parts of each date labelled, .tsv its language and its ISO form;
    shapes: a folder of pictures, with captions.tsv beside them;
    arithmetic, logic: .trees with expressions up to that depth;
    the others: .jsonl with `features` (steps, n) and `label`, a class, a number, or one label for
    each step."""
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
    except OSError as problem:
        raise OptionError(f"{path} cannot be written: {problem.strerror}") from problem
    return about


def _write_shapes(folder: Path, seed: int, part: str, rows: int) -> str:
    """The pictures first, so that every line of the captions has one."""
    if folder.suffix:
        raise OptionError(f"{folder}: expected the name of a folder, which has no ending")
    width = len(str(rows))
    lines = ["file\tcaption\n"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise OptionError(
                f"{folder}: expected a new folder or an empty one, in which nothing can be taken "
                "for one of these pictures"
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
    """(first, count) of the rows that are made together."""
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
