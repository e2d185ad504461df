"""The table of laws of tasks: every task in several configurations, and what it is exempt from.

`test_task_laws.py` runs every law over every row; those that need files or commands over the rows
that say `filed`, of which every task has one. A row that a law cannot apply to names it under
`exempt`, with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
import task_data as data
from task_data import Data, Rows
from toy_runs import made_folder

from ensue import Model
from ensue.tasks import TASKS
from ensue.training import Watcher

AnyModel = Model[Any, Any, Any]
TRAINED, HELD, TESTED, ASKED = 48, 16, 16, 10  # rows of each part
FAST = {"epochs": 2, "rate": 0.02, "checkpoint_updates": 2}

# --- laws that some rows are exempt from -----------------------------------------------------

STOPPED = "stopped and continued is never stopped"
SEEDED = "the seed decides the weights"
BEST = "the best weights of a training are those of its model"
ALONE = "rows together are rows alone"
ORDER = "the order of rows changes no score"
SPLIT = "a test part that is split off stays sealed"
SKIPPED = "every command leaves out the same bad rows"
READ = "every command honours the reading options"
MAIN = "an evaluation has a baseline and a score that can be watched"

SOLVED = {
    STOPPED: "solved in one go: there is no update to stop after",
    SEEDED: "solved: nothing is drawn",
    BEST: "solved in one go: there are no checkpoints",
}
AS_ONE_TEXT = {ORDER: "its networks read the rows of a part as one text"}
ONE_SERIES = {
    ALONE: "a question is one series, not many rows",
    ORDER: "the steps of a series have their order",
}


@dataclass(frozen=True, eq=False)
class Row:
    """A configuration of a task, and data that it can learn. filed: laws of files and commands run
    over it; classes: answers are labels of the training part; slow: laws that start processes are
    left to `make faults`; drawn: keys of answers that come from draws of the members in turn;
    counts: rows to train on, to validate on, to test on, and to ask."""

    task: str
    name: str
    data: Data
    model: Mapping[str, Any] = field(default_factory=dict)
    text: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    members: int = 1
    filed: bool = False
    classes: bool = False
    slow: bool = False
    drawn: tuple[str, ...] = ()
    counts: tuple[int, int, int, int] = (TRAINED, HELD, TESTED, ASKED)
    exempt: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.task} {self.name}"

    # ------------------------------------------------------------- in memory
    def new(self, model: Mapping[str, Any] | None = None, **train: Any) -> AnyModel:
        return TASKS[self.task].model_class(
            self.text,
            {**self.model, **(model or {})},
            {**FAST, **self.train, **train},
            members=self.members,
        )

    def fitted(
        self,
        folder: Path | None = None,
        watchers: Sequence[Watcher] = (),
        model: AnyModel | None = None,
        validation_rows: Rows | None = None,
    ) -> AnyModel:
        train, validation, *_ = self.parts()
        return (model or self.new()).fit(
            train,
            validation if validation_rows is None else validation_rows,
            folder=folder,
            watchers=watchers,
            **self.data.columns,
        )

    def parts(self) -> tuple[Rows, Rows, Rows, Rows]:
        """To train on, to validate on, to test on, and to ask."""
        rows, ends = made(self.data), [*accumulate(self.counts)]
        return (
            rows[: ends[0]],
            rows[ends[0] : ends[1]],
            rows[ends[1] : ends[2]],
            rows[ends[2] : ends[3]],
        )

    def run_folder(self) -> Path:
        """The folder of a finished run, shared by all tests: no test changes it."""
        name = f"law-{self}".replace(" ", "-")
        return made_folder(name, self._fill) / "run"

    def _fill(self, folder: Path) -> None:
        self.fitted(folder / "run")

    def questions(self) -> Rows:
        return self.data.questions(self.parts()[-1])

    # ------------------------------------------------------------- as files and commands
    def write(self, folder: Path, dialect: data.Dialect = data.PLAIN) -> list[str]:
        """Write train, validation, test and the questions; return the arguments of `train`."""
        names = ("train", "validation", "test")
        train, validation, test = (
            self.data.write(folder / f"{name}{self.data.suffix}", rows, dialect)
            for name, rows in zip(names, self.parts(), strict=False)
        )
        place = folder / f"asked{self.data.suffix}"
        self.data.write(place, self.parts()[-1], dialect, answered=False)
        parts = [train, "--validation", validation, "--test", test]
        read = [] if dialect == data.PLAIN else dialect.options(self.data.names)
        return [*parts, *read, *self.train_options()]

    def train_options(self) -> list[str]:
        """The columns and the settings, as a command says them."""
        tables = {"model": self.model, "text": self.text, "train": {**FAST, **self.train}}
        settings = {f"{t}.{k}": v for t, keys in tables.items() for k, v in keys.items()}
        for option in TASKS.options(self.task):
            if option.flag in self.data.words:
                settings.pop(option.key, None)
        if self.members > 1:
            settings["members"] = self.members
        assignments = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
        return [
            *self.data.words,
            *(word for setting in assignments for word in ("--set", setting)),
        ]


@cache
def made(kind: Data) -> Rows:
    return kind.make(TRAINED + HELD + TESTED + ASKED)


# --- rows ------------------------------------------------------------------------------------

SMALL = {"hidden_size": 4, "embedding_size": 4, "batch_rows": 16}
LABELLER = {**SMALL, "character_size": 2, "character_hidden": 2, "affixes": 1}
PAIR = {**SMALL, "batch_rows": 16, "beam": 2}
STREAM = {"hidden_size": 4, "embedding_size": 4, "columns": 4, "steps": 12, "layers": 1}
WINDOW = {"hidden_size": 4, "look_back": 5, "batch_windows": 16, "paths": 20, "targets": ["sales"]}
AHEAD = {**WINDOW, "horizon": 2}
CAPTION = {
    **PAIR,
    "blocks": "3x3/2 4x3/2",
    "longest": 8,
    "dropout_input": 0.0,
}
TREE = {"hidden_size": 4, "embedding_size": 4, "batch_rows": 16}
TRANSFORMER = {"encoder": "transformer", "heads": 2, "inner_size": 4}
CONVOLUTION = {"encoder": "convolution", "layers": 2}
# everything that recurrent layers can do, in rows that are there anyway
REACH = {
    "cell": "Zoneout(SimpleRNN(activation='relu'), 0.2)",
    "layers": 2,
    "initial_state": "learned",
    "output_layers": True,
    "dropout_recurrent": 0.1,
}
WAYS = {**REACH, "bidirectional": True, "backward_start": "shared_end"}

TABLE = [
    # the custom task
    Row("tally", "recurrent", data.LETTERS, text={"level": "characters"}, filed=True),
    Row("tally", "two", data.LETTERS, {"hidden_size": 4}, {"level": "characters"}, members=2),
    Row("tally", "linear", data.LETTERS, {"family": "linear"}, {"level": "characters"},
        exempt=SOLVED),
    # classes of sequences
    Row("classify", "recurrent", data.MOODS, SMALL, filed=True, classes=True),
    Row("classify", "transformer", data.MOODS, SMALL | TRANSFORMER, classes=True),
    Row("classify", "convolution", data.MOODS, SMALL | CONVOLUTION, classes=True),
    Row("classify", "plain", data.MOODS, SMALL | {"encoder": "plain", "pooling": "mean"},
        classes=True),
    Row("classify", "n-grams of two", data.MOODS,
        SMALL | {"ngrams": 2, "ngram_share": "fitted"}, members=2, classes=True),
    Row("classify", "text and columns", data.REVIEWS, SMALL | {"linear": "mixed"}, classes=True),
    Row("classify", "several", data.TOPICS, SMALL | {"several": True, "bidirectional": False}),
    Row("classify", "vectors", data.WALKS,
        SMALL | WAYS | {"pooling": "last+attention", "final_states": "all"},
        classes=True),
    # numbers of sequences
    Row("regress", "recurrent", data.LENGTHS, SMALL, filed=True, slow=True),
    Row("regress", "mixture of two", data.LENGTHS, SMALL | WAYS | {"distribution": "mixture"},
        members=2),
    Row("regress", "vectors", data.WALK_ENDS, SMALL | CONVOLUTION),
    # pairs
    Row("match", "class", data.MATCHED, SMALL, filed=True, classes=True, slow=True),
    Row("match", "by attention", data.MATCHED, SMALL | WAYS | {"compare": "attention"}, members=2,
        classes=True),
    Row("match", "score", data.SCORED, SMALL | {"target": "number"}),
    # labels of steps
    Row("label", "stepwise", data.TAGS, LABELLER, {"level": "spaces"}, filed=True, classes=True),
    Row("label", "crf", data.SPANS, LABELLER | {"output": "crf", "legal_only": True},
        train={"watch": "span_f1"}, classes=True),
    Row("label", "previous", data.TAGS,
        LABELLER | WAYS | {"output": "previous", "previous_cell": "LeakyRNN(0.25)"},
        classes=True),
    Row("label", "transformer of two", data.TAGS, LABELLER | TRANSFORMER, members=2, classes=True),
    Row("label", "vectors", data.WALK_STEPS, LABELLER | CONVOLUTION, classes=True),
    # tables
    Row("table", "number", data.HOUSES, {"hidden": [4], "batch_rows": 16, "target": "number"},
        filed=True),
    Row("table", "class of two", data.FLATS,
        {"hidden": [4], "batch_rows": 16, "features": ["polynomial(area, age)", "constant"]},
        members=2, classes=True),
    # pictures
    Row("image", "class", data.BARS, {"blocks": "3 max", "hidden": [4], "batch_rows": 16},
        filed=True, classes=True,
        exempt={SPLIT: "the label of a picture is its folder, which decides where it lies",
                READ: "a picture has no delimiter, header or encoding"}),
    Row("image", "two", data.BARS, {"blocks": "2x5/2", "hidden": [], "batch_rows": 16,
                                    "norm": "none"}, members=2, classes=True),
    Row("caption", "attention", data.SCENES, CAPTION, filed=True, slow=True),
    Row("caption", "two", data.SCENES,
        CAPTION | REACH | {"begin": "zero", "first_word": "zero", "attention": "dot"}, members=2),
    # trees
    Row("tree", "ordered", data.TREES, TREE, filed=True),
    Row("tree", "whole, of two", data.SAID_TREES,
        TREE | {"combine": "mean", "cell": "Zoneout(GRU, 0.1)"}, members=2, classes=True),
    # texts to texts
    Row("translate", "attention", data.PAIRS, PAIR, filed=True),
    Row("translate", "plain of two", data.PAIRS,
        PAIR | {"attention": "none", "cell": "LSTM", "tied": False}, members=2),
    Row("translate", "random start", data.PAIRS,
        PAIR | WAYS | {"bridge": "random", "first_word": "zero", "zoneout": 0.1}),
    Row("translate", "transformer", data.PAIRS,
        PAIR | {"family": "transformer", "heads": 2, "inner_size": 4}),
    Row("translate", "vectors", data.WALK_WORDS, PAIR),
    Row("translate", "transformer of vectors", data.WALK_WORDS,
        PAIR | {"family": "transformer", "heads": 2, "inner_size": 4}),
    # language
    Row("language", "recurrent", data.PROSE, STREAM, filed=True,
        exempt=AS_ONE_TEXT | {SPLIT: "a text has no label, and is its own hash"}),
    Row("language", "both sides of two", data.PROSE, STREAM | REACH | {"family": "both"},
        members=2, exempt=AS_ONE_TEXT),
    Row("language", "window of two", data.PROSE, STREAM | {"family": "window"}, members=2,
        exempt=AS_ONE_TEXT),
    Row("language", "transformer", data.PROSE,
        STREAM | {"family": "transformer", "heads": 2, "inner_size": 4, "context": 8},
        exempt=AS_ONE_TEXT),
    Row("language", "convolution", data.PROSE, STREAM | {"family": "convolution"},
        {"level": "characters"}, exempt=AS_ONE_TEXT),
    Row("language", "clusters of words", data.PROSE,
        STREAM | {"softmax": "adaptive", "softmax_cuts": [5, 9]}, exempt=AS_ONE_TEXT),
    Row("language", "n-grams", data.PROSE, {"family": "ngram", "order": 3}, exempt=SOLVED),
    # series
    Row("forecast", "direct", data.SERIES, AHEAD | {"family": "direct"}, filed=True,
        exempt=ONE_SERIES | {SKIPPED: "a series cannot leave steps out"}),
    Row("forecast", "recurrent of two", data.SERIES,
        AHEAD | REACH | {"family": "recurrent", "covariates": ["visitors"], "output": "mixture"},
        members=2, drawn=("low", "high"), exempt=ONE_SERIES),
    Row("forecast", "segments", data.SERIES,
        AHEAD | REACH | {"family": "segment", "segment": 5, "targets": ["sales", "visitors"]},
        exempt=ONE_SERIES
        | {MAIN: "several targets are scored by their scaled numbers, one by its own"}),
    Row("forecast", "refitted", data.SERIES,
        AHEAD | {"refit": True, "time": "month", "calendar": ["month"]},
        exempt=ONE_SERIES | {BEST: "its weights are learned again from both parts at the end"}),
    Row("forecast", "linear", data.SERIES, AHEAD | {"family": "linear"},
        exempt=ONE_SERIES | SOLVED),
]  # fmt: skip
FILED = [row for row in TABLE if row.filed]


# --- laws ------------------------------------------------------------------------------------

Law = Callable[..., None]
LAWS: set[str] = set()


def law(where: Callable[[Row], bool] = lambda row: True) -> Callable[[Law], Law]:
    """Makes a test of each row that is not exempt (of those that it is about)."""

    def over_the_table(function: Law) -> Law:
        name = function.__name__.removeprefix("test_").replace("_", " ")
        LAWS.add(name)
        cases = [row for row in TABLE if where(row) and name not in row.exempt]
        return pytest.mark.parametrize("row", cases, ids=str)(function)

    return over_the_table


def filed(row: Row) -> bool:
    return row.filed


every_task = pytest.mark.parametrize("row", FILED, ids=lambda row: row.task)
