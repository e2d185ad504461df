"""Makes the archives next to this file: a small run of every task in format 3.

    PYTHONPATH=src:tests python -m format_3.make [TASK …]

Run it again as long as 0.3.0 is not released, never after: later versions must read what is here.
An archive has

    case.json            arguments of `train` and `predict`; the answers and scores to expect
    data.csv, input.csv … its data, and the questions
    run/                 a finished run, which was evaluated; of its checkpoints the final one

A run names its data files in full here and there. All are therefore made below ROOT, which names
no machine and no user."""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import chdir
from functools import partial
from pathlib import Path
from unittest.mock import patch
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import toy_data
from toy_runs import LABELLER, ROWS, SERIES, Case, command, write_data

from ensue.files.format import FORMAT
from ensue.tasks import TASKS

ROOT = Path("/tmp/ensue-format-3")
HERE = Path(__file__).resolve().parent
LARGEST = 300_000  # bytes of all files together
UNKNOWN = {"engine": "eager", "cpu": "any"}  # what a run records of the machine
LEFT_OUT = ("lock", "timing.jsonl", "test-openings.jsonl")
# Plain descent keeps only the weights in a checkpoint.
TRAIN = "train.epochs=3 train.rate=0.1 train.optimiser=sgd"
SMALL = f"{ROWS} {TRAIN} model.hidden_size=3 model.embedding_size=3"
PAIRS = f"{TRAIN} model.batch_rows=8 model.hidden_size=4 model.embedding_size=4"

CASES = {
    "caption": Case(
        partial(toy_data.captioned_shapes, train=10, others=4),
        "train.tsv --validation validation.tsv --test test.tsv",
        "input.tsv",
        f'{PAIRS} "model.blocks=3x3/2 4x3/2" model.longest=8',
    ),
    "classify": Case(toy_data.moods, "data.csv --text text --label label", "input.csv", SMALL),
    "forecast": Case(
        toy_data.series,
        SERIES,
        "short.csv",
        f"{TRAIN} model.hidden_size=3 model.look_back=7 model.batch_windows=16 "
        'model.family=direct "model.quantiles=[0.1, 0.5, 0.9]"',
    ),
    "image": Case(
        toy_data.picture_idx,
        "train-images-idx3-ubyte --test test-images-idx3-ubyte",
        "test-images-idx3-ubyte",
        f'{ROWS} {TRAIN} "model.blocks=3x3/2 max" model.hidden=[4]',
    ),
    "label": Case(
        toy_data.spans,
        "data.conll",
        "input.txt",
        f"{LABELLER} {TRAIN} model.hidden_size=3 model.embedding_size=3 model.output=crf "
        "model.linear_share=fitted",
    ),
    "language": Case(
        toy_data.prose,
        "data.txt --task language",
        "input.txt",
        f"{TRAIN} model.columns=4 model.steps=12 model.hidden_size=4 model.embedding_size=4 "
        "model.layers=1",
    ),
    "match": Case(
        toy_data.pairs_of_texts,
        "data.csv --text first --second second --label label",
        "input.csv",
        f"{SMALL} model.compared_size=8",
    ),
    "regress": Case(
        toy_data.lengths, "data.csv --task regress --text text --label score", "input.csv", SMALL
    ),
    "table": Case(
        toy_data.flowers,
        "data.csv --task table --label kind",
        "input.csv",
        f"{ROWS} {TRAIN} model.hidden=[4]",
    ),
    "translate": Case(toy_data.pairs, "data.tsv", "input.tsv --nbest 2 --alignment", PAIRS),
    "tree": Case(toy_data.trees, "data.csv --task tree --text tree", "input.csv", SMALL),
}


def make(task: str) -> int:
    """The case below ROOT, then its archive here; gives the bytes of that."""
    place, case = ROOT / task, CASES[task]
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    known = patch("ensue.training.facts.machine_facts", lambda: UNKNOWN)
    with chdir(place), known:
        write_data(case)
        facts = json.loads(Path("case.json").read_bytes())
        command("train", *facts["train"], "--run", "run", "--quiet")
        answers = command("predict", "run", *facts["predict"], "--json").splitlines()
        scores = json.loads(command("evaluate", "run", "--json"))["scores"]
        facts |= {"answers": [json.loads(line) for line in answers], "scores": scores}
        Path("case.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    for step in place.glob("run/checkpoints/step-*"):
        if not step.name.endswith("-final"):
            shutil.rmtree(step)
    archive = HERE / f"{task}.zip"
    with ZipFile(archive, "w", ZIP_DEFLATED, compresslevel=9) as file:
        for path in sorted(path for path in place.rglob("*") if path.is_file()):
            if path.name not in LEFT_OUT:
                name = ZipInfo(str(path.relative_to(place)))  # of no date: the same bytes again
                file.writestr(name, path.read_bytes(), ZIP_DEFLATED)
    return archive.stat().st_size


def main(tasks: list[str]) -> None:
    if FORMAT != 3 or {*CASES} != {*TASKS}:
        raise SystemExit(f"expected format 3 and the tasks {', '.join(CASES)}")
    sizes = {task: make(task) for task in tasks or CASES}
    for task, size in sizes.items():
        print(f"{task:<10} {size:>8,} bytes", file=sys.stderr)
    if sum(sizes.values()) > LARGEST:
        raise SystemExit(f"{sum(sizes.values()):,} bytes, expected at most {LARGEST:,}")


if __name__ == "__main__":
    main(sys.argv[1:])
