"""Small runs of every task and kind of model. Each is made when a test first needs it, and then
shared: by all tests, by all processes, and by later sessions until the code changes.

    toy_run("classify-words")      the folder of a case
    stopped_run("classify-words")  the same with a run that SIGTERM has stopped
    made_folder("any name", fill)  a custom folder, kept like these

Such a folder has

    data.csv, input.csv … data to train on, and questions
    case.json             the arguments of `train` and `predict`
    run/                  a finished run, which was evaluated; or stopped/
    test-openings.jsonl   what `evaluate` wrote down

Tests never change it: a test that writes works on a copy."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy
import torch
import toy_data
from faults.journal import code_digest
from made_once import made_once

from ensue import cli
from ensue.engine.native.cache import flags, processor
from ensue.training import checkpoint

PLACE = Path(__file__).parents[1] / ".toy-runs"
SOURCES = ("toy_runs.py", "toy_data.py", "toy_task.py", "task_data.py", "task_laws.py")
KEPT = 3  # states of the code whose runs stay on the disk
CHECKPOINTS = 4  # after which a run is stopped
STOPPED = 128 + signal.SIGTERM  # exit code of a run that the signal has ended


@dataclass(frozen=True)
class Case:
    """data: writes the files; train, predict: arguments of the commands; settings: what `--set`
    has."""

    data: Callable[[Path], None]
    train: str
    predict: str
    settings: str

    @property
    def train_arguments(self) -> list[str]:
        """Of a setting that is given twice the last counts."""
        settings = {setting.partition("=")[0]: setting for setting in shlex.split(self.settings)}
        return shlex.split(self.train) + [
            w for setting in settings.values() for w in ("--set", setting)
        ]


TRAIN = "train.epochs=3 train.rate=0.05 train.checkpoint_updates=2"
LONG = "train.epochs=6 model.batch_rows=8"
ROWS = f"{TRAIN} model.batch_rows=16"
SMALL = f"{ROWS} model.hidden_size=4 model.embedding_size=4"
CLASSIFIER = f"{SMALL} model.linear=alone"
PAIRS = (
    f"{TRAIN} {LONG} model.hidden_size=6 model.embedding_size=6 "
    "model.smoothing=0.0 model.dropout_input=0.0"
)
LABELLER = (
    f"{SMALL} model.character_size=2 model.character_hidden=2 model.affixes=0 text.min_count=4 "
    "model.linear_share=0"
)
LANGUAGE = f"{TRAIN} model.columns=4 model.steps=12 model.hidden_size=6 model.embedding_size=6"
FORECAST = f"{TRAIN} model.hidden_size=6 model.look_back=7 model.batch_windows=16"
SERIES = "data.csv --target value --horizon 3"

CASES = {
    "classify-words": Case(
        toy_data.moods, "data.csv --text text --label label", "input.csv", CLASSIFIER
    ),
    "classify-characters": Case(
        toy_data.moods_in_files,
        "data.tsv --validation validation.tsv --test test.tsv --text words --label mood",
        "input.txt",
        f"{CLASSIFIER} text.level=characters model.cell=GRU model.hidden_size=6 "
        "model.pooling=mean+attention train.averaging=0.9 train.optimiser=sgd "
        "train.schedule=cosine",
    ),
    "classify-several": Case(
        toy_data.topics,
        "data.csv --text text --label label --separator |",
        "input.csv",
        f"{CLASSIFIER} {LONG} model.bidirectional=false model.dropout_input=0.0 "
        "model.dropout_output=0.0",
    ),
    "classify-vectors": Case(
        toy_data.vectors, "data.jsonl", "input.jsonl", f"{CLASSIFIER} model.cell=SimpleRNN"
    ),
    "classify-long-table": Case(
        toy_data.long_table,
        "data.csv --sequence id --features height,noise --label label",
        "input.csv",
        f"{CLASSIFIER} model.cell=GRU",
    ),
    "classify-ngrams": Case(
        toy_data.moods,
        "data.csv --text text --label label",
        "input.csv",
        f"{CLASSIFIER} members=2 model.ngrams=2 model.ngram_share=fitted",
    ),
    "classify-word-vectors": Case(
        toy_data.moods_in_groups,
        "data.csv --text text --label label --group book",
        "input.csv",
        f"{CLASSIFIER} model.vectors=vectors.txt model.freeze_vectors=true model.cell=GRU",
    ),
    "classify-transformer": Case(
        toy_data.moods,
        "data.csv --text text --label label",
        "input.csv",
        f"{CLASSIFIER} model.encoder=transformer model.heads=2 model.inner_size=8",
    ),
    "classify-convolution": Case(
        toy_data.moods,
        "data.csv --text text --label label",
        "input.csv",
        f"{CLASSIFIER} model.encoder=convolution model.layers=2 model.dilated=true",
    ),
    "classify-mixed": Case(
        toy_data.moods, "data.csv --text text --label label", "input.csv", SMALL
    ),
    "regress": Case(
        toy_data.lengths, "data.csv --task regress --text text --label score", "input.csv", SMALL
    ),
    "match": Case(
        toy_data.pairs_of_texts,
        "data.csv --text first --second second --label label",
        "input.csv",
        f"{SMALL} model.compared_size=8",
    ),
    "tree": Case(toy_data.trees, "data.csv --task tree --text tree", "input.csv", SMALL),
    "label-stepwise": Case(
        toy_data.tagged_jsonl,
        "data.jsonl --text tokens --label tags",
        "input.jsonl",
        LABELLER,
    ),
    "label-crf": Case(
        toy_data.tagged_conll, "data.conll", "input.txt", f"{LABELLER} model.output=crf"
    ),
    "label-previous": Case(
        toy_data.tagged_conll,
        "data.conll",
        "input.txt",
        f"{LABELLER} model.output=previous model.previous_cell=GRU model.search=beam",
    ),
    "label-spans": Case(
        toy_data.spans,
        "data.conll",
        "input.txt",
        f"{LABELLER} model.affixes=1 model.cell=GRU model.output=crf model.legal_only=true "
        "model.linear_share=fitted",
    ),
    "language-recurrent": Case(
        toy_data.prose,
        "data.txt --task language",
        "input.txt",
        f"{LANGUAGE} model.layers=1 model.cell=LSTM",
    ),
    "language-window": Case(
        toy_data.prose,
        "data.txt --task language",
        "input.txt",
        f"{LANGUAGE} model.family=window model.window=3",
    ),
    "language-ngram": Case(
        toy_data.prose,
        "data.txt --task language",
        "input.txt",
        f"{LANGUAGE} model.family=ngram model.order=3",
    ),
    "language-transformer": Case(
        toy_data.prose,
        "data.txt --task language",
        "input.txt",
        f"{LANGUAGE} model.family=transformer model.layers=1 model.heads=2 model.inner_size=8 "
        "model.context=16",
    ),
    "language-convolution": Case(
        toy_data.prose,
        "data.txt --task language",
        "input.txt",
        f"{LANGUAGE} model.family=convolution text.level=characters text.lower=false",
    ),
    "translate-attention": Case(
        toy_data.pairs, "data.tsv", "input.tsv --nbest 2 --alignment",
        f"{PAIRS} model.bidirectional=false"
    ),
    "translate-plain": Case(
        toy_data.pairs,
        "data.tsv --task translate --source source --target target",
        "input.tsv",
        f"{PAIRS} model.attention=none model.bidirectional=false model.cell=LSTM "
        "model.reverse_source=true model.tied=false train.rate=0.02 train.watch=chrf",
    ),
    "translate-transformer": Case(
        toy_data.pairs,
        "data.tsv",
        "input.tsv",
        f"{TRAIN} {LONG} train.rate=0.03 model.family=transformer model.hidden_size=6 "
        "model.heads=2 model.inner_size=6 model.dropout_layers=0.0",
    ),
    "translate-subwords": Case(
        toy_data.pairs,
        "data.tsv",
        "input.tsv",
        f"{PAIRS} text.level=subwords text.subword_count=60 model.shared=true "
        "model.bidirectional=false model.attention=dot model.input_feeding=true",
    ),
    "translate-parallel": Case(
        toy_data.parallel_files,
        "train.en,train.fr --validation validation.en,validation.fr --test test.en,test.fr",
        "input.en",
        f"{PAIRS} model.attention=general",
    ),
    "forecast-direct": Case(
        toy_data.driven_series,
        "data.csv --target sales --covariates visitors --known offer --time day --horizon 3",
        "--future future.csv",
        f"{FORECAST} 'model.calendar=[\"month\"]'",
    ),
    "forecast-linear": Case(
        toy_data.series,
        SERIES,
        "short.csv",
        "model.family=linear model.look_back=8 model.difference=1",
    ),
    "forecast-segment": Case(
        toy_data.series,
        SERIES,
        "",
        f"{FORECAST} model.family=segment model.segment=7 model.look_back=14 model.output=absolute",
    ),
    "forecast-recurrent": Case(
        toy_data.series,
        SERIES,
        "",
        f"{FORECAST} model.family=recurrent model.output=mixture model.components=2 "
        "model.cell=LSTM model.transform=log",
    ),
    "forecast-refit": Case(
        toy_data.series,
        SERIES,
        "short.csv",
        f"{FORECAST} model.refit=true model.split=[50,16,18]",
    ),
    "forecast-members": Case(
        toy_data.series, SERIES, "", f"{FORECAST} members=2 model.calibrated=false"
    ),
    "table-number": Case(
        toy_data.houses,
        "data.csv --label price",
        "input.csv",
        f"{ROWS} model.hidden=[8] model.missing=indicator model.distribution=mixture "
        "model.components=2",
    ),
    "table-class": Case(
        toy_data.flowers, "data.csv --task table --label kind", "input.csv",
        f"{ROWS} model.hidden=[8]",
    ),
    "table-several": Case(
        toy_data.flowers_of_several_kinds,
        "data.csv --task table --label kind --separator |",
        "input.csv",
        f"{ROWS} model.hidden=[8] model.categories=one-hot",
    ),
    "image-folder": Case(
        toy_data.picture_folder,
        "pictures",
        "input/64.png input/65.png input/66.png input/67.png",
        f'{ROWS} "model.blocks=3 max 4 max" model.hidden=[4]',
    ),
    "image-idx": Case(
        toy_data.picture_idx,
        "train-images-idx3-ubyte --test test-images-idx3-ubyte",
        "test-images-idx3-ubyte",
        f'{ROWS} "model.blocks=3x5/2 max" model.hidden=[] model.norm=none model.flip=true',
    ),
    "caption": Case(
        toy_data.captioned_shapes,
        "train.tsv --validation validation.tsv --test test.tsv",
        "input.tsv --nbest 2",
        f'{PAIRS} "model.blocks=3x3/2 4x3/2" model.longest=12 '
        "train.rate=0.03 model.dropout_regions=0.0 model.dropout_output=0.0",
    ),
}  # fmt: skip


def command(*arguments: str, expected: int = 0) -> str:
    """Runs a command of Ensue in the folder at hand; what it printed."""
    printed, errors, code = io.StringIO(), io.StringIO(), 0
    try:
        with redirect_stdout(printed), redirect_stderr(errors):
            cli.main(arguments)
    except SystemExit as ending:
        code = int(ending.code or 0)
    message = f"ensue {shlex.join(arguments)}: exit code {code}, expected {expected}"
    assert code == expected, f"{message}\n{errors.getvalue()}"
    return printed.getvalue()


def write_data(case: Case) -> None:
    """The files of a case, in the folder at hand."""
    case.data(Path())
    words = {"train": case.train_arguments, "predict": shlex.split(case.predict)}
    Path("case.json").write_text(json.dumps(words, indent=1, ensure_ascii=False) + "\n", "utf-8")


@contextmanager
def stopped_after(count: int) -> Iterator[None]:
    """SIGTERM comes as soon as `count` checkpoints have been written."""
    save, saved = checkpoint.save, list[Path]()

    def save_and_stop(*arguments: Any, **named: Any) -> Path:
        saved.append(save(*arguments, **named))
        if len(saved) == count:
            os.kill(os.getpid(), signal.SIGTERM)
        return saved[-1]

    checkpoint.save = save_and_stop
    try:
        yield
    finally:
        checkpoint.save = save


def _finish(case: Case) -> None:
    command("train", *case.train_arguments, "--run", "run", "--quiet")
    command("evaluate", "run")


def _stop(case: Case) -> None:
    with stopped_after(CHECKPOINTS):
        command("train", *case.train_arguments, "--run", "stopped", "--quiet", expected=STOPPED)


def made_folder(name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills: once for all processes, and again when the code changes."""
    place = _place() / name
    with made_once(place) as half:
        if half is not None:
            make(half)
    return place


def toy_run(name: str) -> Path:
    """The folder of a case with its finished run."""
    return _made(name, name, _finish)


def stopped_run(name: str) -> Path:
    """The folder of a case with its stopped run."""
    return _made(name, f"{name}-stopped", _stop)


def _made(name: str, folder: str, make: Callable[[Case], None]) -> Path:
    def fill(place: Path) -> None:
        with chdir(place):
            write_data(CASES[name])
            make(CASES[name])

    return made_folder(folder, fill)


@cache
def _place() -> Path:
    """Where the runs of this code on this machine are; those of older code go."""
    key = sha256(code_digest("src").encode())
    for name in SOURCES:
        key.update(Path(__file__).with_name(name).read_bytes())
    machine = [torch.__version__, numpy.__version__, processor(), *flags()]
    key.update("\n".join(machine).encode())
    place = PLACE / key.hexdigest()[:12]
    place.mkdir(parents=True, exist_ok=True)
    os.utime(place)
    newest = sorted(PLACE.iterdir(), key=lambda path: path.stat().st_mtime)
    for old in newest[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return place
