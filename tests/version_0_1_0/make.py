"""Makes the run folders beside this file with Ensue 0.1.0: later versions must go on with them.

    PYTHONPATH=/path/to/ensue-0.1.0/src OMP_NUM_THREADS=1 python make.py [CASE …]

0.1.0 writes absolute paths of data files into its runs. Everything is therefore made below ROOT, a
folder that names no machine and no user, and then copied here. A case is a folder with

    case.json             the arguments of `train` and `predict`
    data.csv, input.csv … its data, and what the finished run was asked
    run/                  a finished run
    predicted.jsonl       what `ensue predict run … --json` answered
    evaluated.json        what `ensue evaluate run --json` found
    test-openings.jsonl   what that wrote down
    stopped/              a run of the same command that SIGTERM has stopped
    continued.json        the validation scores and weights that it ended with

Of the last two only cases that name `stop_after` have any."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import toy_data
import weights

import ensue
from ensue import cli
from ensue.training import checkpoint

ROOT = Path("/ensue-runs")
HERE = Path(__file__).resolve().parent
STOPPED = 128 + signal.SIGTERM  # exit code of a run that the signal has ended


@dataclass(frozen=True)
class Case:
    """data: writes the files; train, predict: arguments of the commands; settings: what `--set`
    has; stop_after: the checkpoint after which `stopped/` is stopped, 0 for none."""

    data: Callable[[Path], None]
    train: str
    predict: str
    settings: str
    stop_after: int = 0

    @property
    def train_arguments(self) -> list[str]:
        """Of a setting that is given twice the last counts."""
        settings = {own.partition("=")[0]: own for own in shlex.split(self.settings)}
        return shlex.split(self.train) + [w for own in settings.values() for w in ("--set", own)]


TRAIN = "train.epochs=3 train.rate=0.05 train.checkpoint_updates=2"
LONG = (
    "train.epochs=24 train.patience=off train.check_every=48 train.checkpoint_updates=40 "
    "model.batch_rows=4"
)
ROWS = f"{TRAIN} model.batch_rows=16"
SMALL = f"{ROWS} model.hidden_size=4 model.embedding_size=4"
PAIRS = (
    f"{TRAIN} {LONG} model.hidden_size=6 model.embedding_size=6 "
    "model.smoothing=0.0 model.dropout_input=0.0"
)
LABELLER = (
    f"{SMALL} model.character_size=2 model.character_hidden=2 model.affixes=0 text.min_count=4"
)
LANGUAGE = f"{TRAIN} model.columns=4 model.steps=12 model.hidden_size=6 model.embedding_size=6"
FORECAST = f"{TRAIN} model.hidden_size=6 model.look_back=7 model.batch_windows=16"
SERIES = "data.csv --target value --horizon 3"

CASES = {
    "classify-words": Case(
        toy_data.moods, "data.csv --text text --label label", "input.csv", SMALL, stop_after=4
    ),
    "classify-characters": Case(
        toy_data.moods_in_files,
        "data.tsv --validation validation.tsv --test test.tsv --text words --label mood",
        "input.txt",
        f"{SMALL} text.level=characters model.cell=GRU model.hidden_size=6 "
        "model.pooling=mean+attention train.averaging=0.9 train.optimiser=sgd "
        "train.schedule=cosine",
    ),
    "classify-several": Case(
        toy_data.topics,
        "data.csv --text text --label label --separator |",
        "input.csv",
        f"{SMALL} {LONG} model.bidirectional=false model.dropout_input=0.0 "
        "model.dropout_output=0.0",
    ),
    "classify-vectors": Case(
        toy_data.vectors, "data.jsonl", "input.jsonl", f"{SMALL} model.cell=SimpleRNN"
    ),
    "classify-long-table": Case(
        toy_data.long_table,
        "data.csv --sequence id --features height,noise --label label",
        "input.csv",
        f"{SMALL} model.cell=GRU",
    ),
    "classify-ngrams": Case(
        toy_data.moods,
        "data.csv --text text --label label",
        "input.csv",
        f"{SMALL} members=2 model.ngrams=2 model.ngram_share=fitted",
        stop_after=12,
    ),
    "classify-word-vectors": Case(
        toy_data.moods_in_groups,
        "data.csv --text text --label label --group book",
        "input.csv",
        f"{SMALL} model.vectors=vectors.txt model.freeze_vectors=true model.cell=GRU",
    ),
    "classify-transformer": Case(
        toy_data.moods,
        "data.csv --text text --label label",
        "input.csv",
        f"{SMALL} model.encoder=transformer model.heads=2 model.inner_size=8",
    ),
    "classify-convolution": Case(
        toy_data.moods,
        "data.csv --text text --label label",
        "input.csv",
        f"{SMALL} model.encoder=convolution model.layers=2 model.dilated=true",
    ),
    "label-stepwise": Case(
        toy_data.tagged_jsonl,
        "data.jsonl --text tokens --label tags",
        "input.jsonl",
        LABELLER,
        stop_after=4,
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
        f"{LABELLER} model.affixes=1 model.cell=GRU model.output=crf model.legal_only=true",
    ),
    "language-recurrent": Case(
        toy_data.prose,
        "data.txt --task language",
        "input.txt",
        f"{LANGUAGE} model.layers=1 model.cell=LSTM",
        stop_after=4,
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
        f"{PAIRS} model.bidirectional=false", stop_after=14
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
        f"{TRAIN} {LONG} train.rate=0.03 model.family=transformer model.width=6 model.heads=2 "
        "model.inner=6 model.dropout=0.0",
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
        stop_after=4,
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
        stop_after=4,
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
        f"{ROWS} model.hidden=[8]", stop_after=4,
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
        stop_after=4,
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
        "train.epochs=48 train.rate=0.03 model.dropout_regions=0.0 model.dropout_output=0.0",
        stop_after=20,
    ),
}  # fmt: skip


def command(*arguments: str, expected: int = 0) -> str:
    """Runs a command of Ensue in the folder at hand; what it printed."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            cli.main(arguments)
        code = 0
    except SystemExit as ending:
        code = int(ending.code or 0)
    if code != expected:
        raise SystemExit(f"ensue {shlex.join(arguments)}: exit code {code}, expected {expected}")
    return printed.getvalue()


@contextmanager
def stopped_after(count: int) -> Iterator[None]:
    """SIGTERM comes as soon as so many checkpoints have been written."""
    save, saved = checkpoint.save, list[Path]()

    def save_and_stop(*given: Any, **named: Any) -> Path:
        saved.append(save(*given, **named))
        if len(saved) == count:
            os.kill(os.getpid(), signal.SIGTERM)
        return saved[-1]

    checkpoint.save = save_and_stop
    try:
        yield
    finally:
        checkpoint.save = save


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", "utf-8")


def make_run(case: Case) -> None:
    """The finished run in the folder at hand, its answers and scores."""
    train, predict = case.train_arguments, shlex.split(case.predict)
    write_json(Path("case.json"), {"train": train, "predict": predict})
    command("train", *train, "--run", "run", "--quiet")
    answers = command("predict", "run", *predict, "--json")
    Path("predicted.jsonl").write_text(answers, "utf-8")
    write_json(Path("evaluated.json"), json.loads(command("evaluate", "run", "--json")))


def make_stopped(case: Case) -> None:
    """The stopped run, and what becomes of a copy of it, which must be what the run became that
    nothing stopped."""
    train = case.train_arguments
    with stopped_after(case.stop_after):
        command("train", *train, "--run", "stopped", "--quiet", expected=STOPPED)
    shutil.copytree("stopped", "continued")
    command("train", *train, "--run", "continued", "--quiet")
    scores = json.loads(command("evaluate", "continued", "--validation", "--json"))["scores"]
    found = weights.summary(Path("continued/model"))
    if found != weights.summary(Path("run/model")):
        raise SystemExit("a stopped run did not end with the weights of one that was not stopped")
    write_json(Path("continued.json"), {"scores": scores, "weights": found})
    shutil.rmtree("continued")


def make(name: str) -> None:
    """The case below ROOT, then its copy here."""
    place = ROOT / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    case = CASES[name]
    case.data(place)
    with chdir(place):
        make_run(case)
        if case.stop_after:
            make_stopped(case)
    shutil.rmtree(HERE / name, ignore_errors=True)
    shutil.copytree(place, HERE / name)
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    print(f"{name}: {size / 1000:.0f} kB", file=sys.stderr)


def main(names: list[str]) -> None:
    if ensue.__version__ != "0.1.0":
        raise SystemExit(f"{ensue.__file__}: expected version 0.1.0, got {ensue.__version__}")
    for name in names or CASES:
        make(name)


if __name__ == "__main__":
    main(sys.argv[1:])
