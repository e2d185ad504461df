"""The default of two checkouts on the same files, side by side: did a change keep the results?

    ENSUE_DATA=… python benchmarks/before_after.py --before ../before [NAME …]

For each set, `ensue train FILE`, `evaluate` and `predict` run in both checkouts at the same time,
each pinned to a core of its own. Printed: the score of both, the difference with its paired 95 %
bootstrap interval over the rows (of one series, over the steps ahead), whether all answers are the
same, and the processor seconds of the training. The outer rows are cut from training files; no
official test part is opened.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import default_labels
import default_panels
import default_tables
import default_texts
import numpy as np
from default_runs import DATA, mean, opened, paired, scratch

HERE = Path(__file__).resolve().parent.parent
DIGITS, PANEL = 10_000, 125


class Answers(NamedTuple):
    """rows: what each row adds to the score, and its count; answers: the answers, as JSON."""

    rows: np.ndarray
    answers: list[Any]
    seconds: float


@dataclass(frozen=True)
class Set:
    """write: the files, and the words of `train`, `predict`; score: of the answers of a run, a row
    each; better: 1 where more is better, −1 where less is."""

    write: Callable[[Path], tuple[Sequence[object], Sequence[object]]]
    score: Callable[[list[Any], Path], np.ndarray]
    better: int = 1


# --- data ----------------------------------------------------------------------------------------


def _csv(path: Path, rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def _truth(folder: Path) -> list[Any]:
    return list(json.loads((folder / "truth.json").read_text()))


def _counted(each: Sequence[float]) -> np.ndarray:
    return np.stack([np.asarray(each, float), np.ones(len(each))], 1)


def _same(key: str) -> Callable[[list[Any], Path], np.ndarray]:
    def score(replies: list[Any], folder: Path) -> np.ndarray:
        pairs = zip(replies, _truth(folder), strict=True)
        return _counted([float(answer[key] == gold) for answer, gold in pairs])

    return score


def _squares(replies: list[Any], folder: Path) -> np.ndarray:
    pairs = zip(replies, _truth(folder), strict=True)
    return _counted([(answer["value"] - gold) ** 2 for answer, gold in pairs])


def _texts(name: str) -> Set:
    def write(folder: Path) -> tuple[Sequence[object], Sequence[object]]:
        learned, scored = default_texts.SETS[name]()
        _csv(folder / "learned.csv", [("text", "label"), *learned])
        _csv(folder / "scored.csv", [("text", "label"), *scored])
        (folder / "truth.json").write_text(json.dumps([label for _, label in scored]))
        return ("learned.csv", "--test", "scored.csv"), ("scored.csv",)

    return Set(write, _same("label"))


def _table(name: str) -> Set:
    number = default_tables.SETS[name][1]

    def write(folder: Path) -> tuple[Sequence[object], Sequence[object]]:
        learned, scored = default_tables.table(name)
        for part, rows in (("learned", learned), ("scored", scored)):
            _csv(folder / f"{part}.csv", [list(rows[0]), *([*row.values()] for row in rows)])
        (folder / "truth.json").write_text(json.dumps([row["target"] for row in scored]))
        return ("learned.csv", "--test", "scored.csv"), ("scored.csv",)

    return Set(write, _squares if number else _same("label"), -1 if number else 1)


def _tags(folder: Path) -> tuple[Sequence[object], Sequence[object]]:
    split = default_labels.SETS["tags-1k"][0]()
    for name, rows in zip(("learned", "scored"), split, strict=True):
        text = "\n\n".join("\n".join(map("\t".join, zip(*r, strict=True))) for r in rows)
        (folder / f"{name}.conll").write_text(text + "\n")
    (folder / "truth.json").write_text(json.dumps([labels for _, labels in split[1]]))
    return ("learned.conll", "--test", "scored.conll"), ("scored.conll",)


def _tag_score(replies: list[Any], folder: Path) -> np.ndarray:
    return default_labels.right(_truth(folder), [answer["labels"] for answer in replies])


def _dates(folder: Path) -> tuple[Sequence[object], Sequence[object]]:
    """Written dates and their ISO form."""
    for part, rows in (("train", 6000), ("test", 1000)):
        words = ["data", "make", "dates", f"{part}.tsv", "--rows", rows, "--part", part]
        command = [sys.executable, "-m", "ensue", *map(str, words)]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    lines = (folder / "test.tsv").read_text().splitlines()
    at = lines[0].split("\t").index("iso")
    (folder / "truth.json").write_text(json.dumps([line.split("\t")[at] for line in lines[1:]]))
    words = ("train.tsv", "--test", "test.tsv", "--source", "text", "--target", "iso")
    return (*words, "--task", "translate", "--epochs", 10, "--set", "text.level=characters"), (
        "test.tsv",
    )


def _passengers(folder: Path) -> tuple[Sequence[object], Sequence[object]]:
    lines = opened(DATA / "timeseries-small" / "airline-passengers.csv")
    rows = [line for line in lines if line]
    (folder / "series.csv").write_text("\n".join(rows[:121]) + "\n")
    (folder / "truth.json").write_text(json.dumps([[float(r.split(",")[1]) for r in rows[121:]]]))
    return ("series.csv",), ("series.csv",)


def _panel(folder: Path) -> tuple[Sequence[object], Sequence[object]]:
    values = default_panels.panel(PANEL)
    ahead = 14
    shops = [f"shop{k:03}" for k in range(PANEL)]
    default_panels.written(values, folder / "whole.csv")
    lines = (folder / "whole.csv").read_text().splitlines()
    steps = default_panels.STEPS
    panel_lines = [lines[0]]
    for k in range(PANEL):
        panel_lines += lines[1 + k * steps : 1 + (k + 1) * steps - ahead]
    (folder / "panel.csv").write_text("\n".join(panel_lines) + "\n")
    unit = values[:, :-ahead].std(1)
    truth = [(values[k, -ahead:] / unit[k]).tolist() for k in range(len(shops))]
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "unit.json").write_text(json.dumps(unit.tolist()))
    return ("panel.csv",), ("panel.csv",)


def _steps(replies: list[Any], folder: Path) -> np.ndarray:
    """Absolute errors of the first steps ahead, as many as both the answers and the truth have; of
    a panel in units of each series, added up by series."""
    truth, units = _truth(folder), folder / "unit.json"
    unit = json.loads(units.read_text()) if units.exists() else [1.0] * len(truth)
    ahead = len(replies) // len(truth)
    rows = []
    for k, gold in enumerate(truth):
        steps = replies[k * ahead : (k + 1) * ahead][: len(gold)]
        values = [next(iter(step["expected"].values()))["value"] / unit[k] for step in steps]
        rows.append([abs(value - y) for value, y in zip(values, gold, strict=False)])
    if len(rows) == 1:
        return _counted(rows[0])
    return np.stack([[sum(each) for each in rows], [len(each) for each in rows]], 1).astype(float)


def _digits(folder: Path) -> tuple[Sequence[object], Sequence[object]]:
    """Pictures as PGM files, in a folder for each digit."""
    folder_of_digits = DATA / "mnist"
    with gzip.open(folder_of_digits / "train-images-idx3-ubyte.gz") as file:
        pixels = file.read()[16:]
    with gzip.open(folder_of_digits / "train-labels-idx1-ubyte.gz") as file:
        labels = file.read()[8:]
    order = list(range(len(labels)))
    random.Random(7).shuffle(order)
    truth = []
    for part, rows in (("learned", order[:DIGITS]), ("scored", order[-2000:])):
        for row in rows:
            place = folder / part / str(labels[row])
            place.mkdir(parents=True, exist_ok=True)
            data = pixels[784 * row : 784 * (row + 1)]
            (place / f"{row:05}.pgm").write_bytes(b"P5 28 28 255\n" + data)
    for path in sorted((folder / "scored").rglob("*.pgm")):
        truth.append(path.parent.name)
    (folder / "truth.json").write_text(json.dumps(truth))
    return ("learned", "--test", "scored", "--epochs", 4), ("scored",)


SETS: dict[str, Set] = {
    "rt-polarity": _texts("polarity"),
    "imdb-5k": _texts("imdb-5k"),
    "tags-1k": Set(_tags, _tag_score),
    "passengers": Set(_passengers, _steps, -1),
    "panel-125": Set(_panel, _steps, -1),
    **{name: _table(name) for name in default_tables.SETS},
    "dates": Set(_dates, _same("text")),
    "mnist-10k": Set(_digits, _same("label")),
}


# --- runs ----------------------------------------------------------------------------------------


def run(root: Path, core: int, folder: Path, name: str, words: Sequence[object]) -> float:
    """Processor seconds of a command of a checkout; its output lands in folder/name."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
    pinned = ["taskset", "-c", str(core), sys.executable, "-P", "-m", "ensue", *map(str, words)]
    timed = ["/usr/bin/env", "bash", "-c", 'TIMEFORMAT="%U %S"; time "$@"', "run", *pinned]
    with (folder / name).open("w") as out:
        done = subprocess.run(
            timed, cwd=folder, env=environment, stdout=out, stderr=subprocess.PIPE, text=True
        )
    if done.returncode:
        raise SystemExit(f"{root}: {' '.join(map(str, words))}\n{done.stderr}")
    return sum(map(float, done.stderr.strip().splitlines()[-1].split()))


def answers(root: Path, core: int, one: Set) -> Answers:
    with scratch() as folder:
        train, words = one.write(folder)
        seconds = run(root, core, folder, "log", ["train", *train, "--run", "run", "--quiet"])
        run(root, core, folder, "said.jsonl", ["predict", "run", *words, "--json"])
        rows = [json.loads(line) for line in (folder / "said.jsonl").read_text().splitlines()]
        return Answers(one.score(rows, folder), rows, seconds)


def measured(name: str, before: Path) -> None:
    one = SETS[name]
    with ThreadPoolExecutor(2) as pool:
        old, new = pool.map(answers, (before, HERE), (0, 1), (one, one))
    off, low, high = paired(new.rows, old.rows, mean)
    same = "the same answers" if old.answers == new.answers else "other answers"
    scores = f"{mean(old.rows.sum(0)):.5g} → {mean(new.rows.sum(0)):.5g}"
    better = "more is better" if one.better > 0 else "less is better"
    took = f"{old.seconds:.1f} → {new.seconds:.1f} s ({old.seconds / new.seconds:.2f} ×)"
    print(f"{name}: {scores} ({better}), {off:+.5g} [{low:+.5g}, {high:+.5g}], {same}; {took}")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Two checkouts on the same files.")
    parser.add_argument("--before", type=Path, required=True, help="the other checkout")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SETS))
    arguments = parser.parse_args()
    for name in arguments.names or SETS:
        measured(name, arguments.before.resolve())


if __name__ == "__main__":
    main()
