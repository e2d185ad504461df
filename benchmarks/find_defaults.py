"""Which settings are better than the default on many data sets, by `ensue select`.

    ENSUE_DATA=… python benchmarks/find_defaults.py table|classify|label [SET …]

On every data set of the task (selection_sets.py) `ensue select --models` trains the default and
the candidates, each to its end, and ranks them on validation rows. One thread; seed 1. The folder
selections/ keeps every selection: the same command continues after a stop, and with more candidates
it trains those alone.

Scores of data sets are compared in units of their own: a gain is the difference to the default,
divided by the median distance of all candidates from their median. Printed for each candidate: its
mean gain with the 95 % interval over data sets (Student's t), on how many it is better and worse,
and the smallest mean with one set left out. A candidate that failed counts as the worst.

A candidate is proposed as the default if its mean gain is the highest, its interval lies above 0
with each set left out too, and what is chosen without a set is better on that set, on average. It
is then asked about outer rows, which no selection has seen. It is accepted if it is better there
beyond chance (the paired differences of the rows, over data sets) and makes no more errors.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import t as student
from selection_sets import LABELS, TABLES, TEXTS, Cut

import ensue
from ensue.runs.infer import infer
from ensue.runs.messages import Message
from ensue.study.selection import Selection, select_among

SURE, FLOOR, FAVOURITES = 0.975, 1e-6, 2
FEWEST = 3  # data sets that are compared over; fewer are selected on, and no more


# --- what is compared ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Study:
    """sets: by name; default: its name among models; candidates: the other settings, as `--models`
    takes them; write: the rows of a part, as a file with this ending; ask: of a model and rows,
    the loss and the error of each."""

    sets: Mapping[str, Callable[[], Cut]]
    default: str
    candidates: Sequence[str]
    ending: str
    write: Callable[[Path, Sequence[Any]], None]
    ask: Callable[[Any, Sequence[Any]], tuple[np.ndarray, np.ndarray]]

    @property
    def models(self) -> str:
        return ",".join([self.default, *self.candidates])


def write_rows(path: Path, rows: Sequence[Any]) -> None:
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)


def write_sentences(path: Path, rows: Sequence[Any]) -> None:
    text = "\n\n".join("\n".join(map("\t".join, zip(*row, strict=True))) for row in rows)
    path.write_text(text + "\n")


def ask_table(model: Any, rows: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Of a class what it costs and whether it is wrong, of a number its squared error twice."""
    answers = model.predict([{k: v for k, v in row.items() if k != "target"} for row in rows])
    gold = [row["target"] for row in rows]
    if hasattr(answers[0], "probabilities"):
        return _of_classes(answers, gold)
    losses = np.array(
        [(answer.value - float(y)) ** 2 for answer, y in zip(answers, gold, strict=True)]
    )
    return losses, losses


def ask_texts(model: Any, rows: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    return _of_classes(model.predict([row["text"] for row in rows]), [row["label"] for row in rows])


def ask_labels(model: Any, rows: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The share of the tokens of a sentence that are wrong, twice."""
    answers = model.predict([tokens for tokens, _ in rows])
    losses = np.array([
        float(np.mean([one != other for one, other in zip(answer.labels, gold, strict=True)]))
        for answer, (_, gold) in zip(answers, rows, strict=True)
    ])  # fmt: skip
    return losses, losses


def _of_classes(answers: Sequence[Any], gold: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    pairs = list(zip(answers, gold, strict=True))
    costs = [-np.log(max(answer.probabilities.get(label, 0.0), FLOOR)) for answer, label in pairs]
    return np.array(costs), np.array([float(answer.label != label) for answer, label in pairs])


STUDIES: dict[str, Study] = {
    "table": Study(
        TABLES,
        "model",
        (
            "model:hidden=[32]",
            "model:hidden=[128, 128]",
            "model:hidden=[256]",
            "model:hidden=[64, 64, 64]",
            'model:activations=["tanh"]',
            'model:activations=["prelu"]',
            "model:dropout_layers=0.2",
            "model:train.weight_decay=0.005",
            "model:batch_rows=32",
            "model:train.rate=0.001",
            "model:train.rate=0.004",
            "model:train.schedule=linear",
            "model:train.averaging=0.99",
            "model:hidden=[128, 128],dropout_layers=0.2",
            "model:train.weight_decay=0.01",
            "model:dropout_layers=0.2,train.weight_decay=0.005",
            "model:hidden=[128, 128],dropout_layers=0.2,train.weight_decay=0.005",
        ),
        "csv",
        write_rows,
        ask_table,
    ),
    "classify": Study(
        TEXTS,
        "lstm",
        (
            "plain",
            "convolution",
            "gru",
            "lstm:hidden_size=128,embedding_size=128",
            "lstm:pooling=attention",
            "lstm:train.rate=0.002",
            "lstm:train.schedule=linear",
            "lstm:train.averaging=0.99",
            "lstm:train.rate=0.002,train.schedule=linear,train.averaging=0.999",
        ),
        "csv",
        write_rows,
        ask_texts,
    ),
    "label": Study(
        LABELS,
        "lstm",
        (
            "gru",
            "lstm:hidden_size=88",
            "lstm:affixes=3",
            "lstm:dropout_input=0.3,dropout_output=0.3,once_dropout=0.3",
            "lstm:train.rate=0.005",
            "lstm:batch_rows=16",
        ),
        "conll",
        write_sentences,
        ask_labels,
    ),
}


# --- selection -----------------------------------------------------------------------------------


def place_of(task: str, name: str) -> Path:
    return Path("selections", task, name.replace(" ", "-")).resolve()


def selected(study: Study, task: str, name: str) -> Selection:
    """The selection on a data set, gone on with where an earlier call was stopped."""
    sets, folder = study.sets[name](), place_of(task, name)
    folder.mkdir(parents=True, exist_ok=True)
    files = {part: folder / f"{part}.{study.ending}" for part in ("train", "validation")}
    for part, path in files.items():
        if not path.exists():
            study.write(path, getattr(sets, part))
    config, _ = infer({part: [str(path)] for part, path in files.items()}, task, [])

    def say(message: Message) -> None:
        if " on validation" in message.text:
            print(f"{name}: {message.text}", file=sys.stderr, flush=True)

    return select_among(config, study.models, folder / "selection", say)


def runs_of(selection: Selection, place: Path) -> dict[str, Path]:
    """The run folder of each candidate of a selection."""
    return {row.name: place / "selection" / row.folder for row in selection.rows}


def gains(selection: Selection, study: Study) -> list[float]:
    """Of each candidate, in units of this data set; what failed is the worst of all."""
    sign = 1 if selection.higher_is_better else -1
    scores = {row.name: sign * row.score for row in selection.rows if row.score is not None}
    worst = min(scores.values())
    every = np.array([scores.get(name, worst) for name in (study.default, *study.candidates)])
    unit = float(np.median(np.abs(every - np.median(every)))) or 1.0
    return [float(gain) for gain in (every[1:] - every[0]) / unit]


# --- over data sets ------------------------------------------------------------------------------


def interval(values: np.ndarray) -> tuple[float, float]:
    """95 %, of the mean of a few."""
    wide = student.ppf(SURE, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return float(values.mean() - wide), float(values.mean() + wide)


def left_out(values: np.ndarray) -> list[np.ndarray]:
    return [np.delete(values, k, 0) for k in range(len(values))]


def chosen_without(table: np.ndarray) -> np.ndarray:
    """Of each set, the gain there of what is the best on the others. table: (sets, candidates)"""
    best = [int(others.mean(0).argmax()) for others in left_out(table)]
    return table[np.arange(len(table)), best]


def covering(table: np.ndarray) -> list[int]:
    """Of candidates that are better on half of the sets, those that most raise the best gain of a
    set over the default and each other, one after another."""
    often = [k for k in range(table.shape[1]) if (table[:, k] > 0).mean() >= 0.5]
    best, chosen = np.zeros(len(table)), list[int]()
    while len(chosen) < FAVOURITES and (left := [k for k in often if k not in chosen]):
        k = max(left, key=lambda k: float(np.maximum(best, table[:, k]).mean()))
        best = np.maximum(best, table[:, k])
        chosen.append(k)
    return chosen


def proposed(table: np.ndarray) -> int | None:
    """The candidate that may become the default, by the rule at the top of this file."""
    k = int(table.mean(0).argmax())
    sure = all(
        interval(gains_of_rows)[0] > 0 for gains_of_rows in (table[:, k], *left_out(table[:, k]))
    )
    return k if sure and chosen_without(table).mean() > 0 else None


def confirmed(study: Study, name: str, folders: Mapping[str, Mapping[str, Path]]) -> bool:
    """The candidate against the default on outer rows; prints each set. folders: of the runs, by
    set and candidate."""
    losses, errors = list[float](), list[float]()
    for set_name, runs in folders.items():
        outer = study.sets[set_name]().outer
        both = [study.ask(ensue.load(runs[n]), outer) for n in (study.default, name)]
        off = both[0][0] - both[1][0]
        losses.append(float(off.mean() / (off.std(ddof=1) / len(off) ** 0.5 or 1.0)))
        was, now = (pair[1].mean() for pair in both)
        errors.append(float((was - now) / (was or 1.0)))
        print(
            f"  {set_name}, {len(outer)} rows: gain {losses[-1]:+.2f}, error {was:.4f} → {now:.4f}"
        )
    low, high = interval(np.array(losses))
    print(f"  mean gain {np.mean(losses):+.2f} ({low:+.2f} … {high:+.2f}) standard errors;"
          f" errors {-100 * np.mean(errors):+.1f} %")  # fmt: skip
    return low > 0 and float(np.mean(errors)) >= 0


def report(study: Study, names: Sequence[str], table: np.ndarray) -> None:
    """One row for each candidate, the best first, and the gains on each set. table: (sets,
    candidates)"""
    print("| candidate | mean gain | better, worse | one set left out |", *names, sep=" | ")
    for k in np.argsort(-table.mean(0)):
        changes = table[:, k]
        low, high = interval(changes)
        better, worse = int((changes > 0).sum()), int((changes < 0).sum())
        least = min(float(others.mean()) for others in left_out(changes))
        each = " | ".join(f"{gain:+.1f}" for gain in changes)
        mean = f"{changes.mean():+.2f} ({low:+.2f} … {high:+.2f})"
        print(f"| {study.candidates[k]} | {mean} | {better}, {worse} | {least:+.2f} | {each} |")
    low, high = interval(without := chosen_without(table))
    print(f"chosen without a set, on that set: {without.mean():+.2f} ({low:+.2f} … {high:+.2f})")
    print("favourites:", *(study.candidates[k] for k in covering(table)), sep="\n  ")


def main() -> None:
    task = sys.argv[1]
    study = STUDIES[task]
    torch.set_num_threads(1)
    selections = {name: selected(study, task, name) for name in sys.argv[2:] or study.sets}
    if len(selections) < FEWEST:
        return
    table = np.array([gains(selection, study) for selection in selections.values()])
    report(study, list(selections), table)
    k = proposed(table)
    if k is None:
        print("no candidate is significantly better than the default, which stays")
        return
    print(f"{study.candidates[k]}, on outer rows:")
    folders = {
        name: runs_of(selection, place_of(task, name)) for name, selection in selections.items()
    }
    sure = confirmed(study, study.candidates[k], folders)
    print(
        "  significantly better there too"
        if sure
        else "  not significantly better there: the default stays"
    )


if __name__ == "__main__":
    main()
