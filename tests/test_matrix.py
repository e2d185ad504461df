"""Laws over the matrix: every input with every target.

A row of `INPUTS` makes questions, a row of `TARGETS` their labels; a new input or target is covered
by being added to its table. `make test` trains a model of each input and of each target; `make
test-slow` the whole matrix."""

from __future__ import annotations

import csv
import json
import random
import signal
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import commands_in

import ensue
from ensue.data.pictures.images import write_image
from ensue.export.model import TracedModel, write_traced
from ensue.tasks.model import Model
from ensue.training import Stopped, Update

ROWS, HELD_OUT = 48, 24
WORDS = {True: ("fine", "lovely"), False: ("dull", "grim")}
NOUNS = ("cat", "dog", "bird")
SMALL = {"hidden_size": 6, "embedding_size": 5}


@dataclass(frozen=True)
class InputRow:
    """models: the public class by the kind of target; question: an input of which a fact is true
    or false; settings: of a small network; roles: what the columns of a row are, where a question
    is one; inputs: settings of each of several inputs."""

    models: Callable[[str], type[Model[Any, Any, Any, Any]]]
    question: Callable[[random.Random, bool], Any]
    settings: dict[str, Any]
    roles: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TargetRow:
    """label: of a fact; fields: of an answer; scores: what an evaluation states; written: what an
    answer has as JSON, where it is not these fields."""

    label: Callable[[random.Random, bool], Any]
    fields: tuple[str, ...]
    scores: tuple[str, ...]
    written: tuple[str, ...] = ()


def _sentence(draw: random.Random, fact: bool) -> str:
    return f"the {draw.choice(WORDS[fact])} {draw.choice(NOUNS)} sees a {draw.choice(NOUNS)}"


def _pair(draw: random.Random, fact: bool) -> tuple[str, str]:
    noun = draw.choice(NOUNS)
    other = noun if fact else draw.choice([word for word in NOUNS if word != noun])
    return f"the {noun} runs", f"a {other} runs"


def _columns(draw: random.Random, fact: bool) -> dict[str, Any]:
    return {"size": round(draw.gauss(2.0 if fact else -2.0, 1.0), 3), "kind": draw.choice("ab")}


def _picture(draw: random.Random, fact: bool) -> np.ndarray[Any, np.dtype[np.uint8]]:
    pixels = np.random.default_rng(draw.randrange(2**31)).integers(0, 60, (8, 8)).astype(np.uint8)
    at = draw.randrange(1, 7)
    pixels[(at, slice(1, 7)) if fact else (slice(1, 7), at)] = 255
    return pixels


def _tree(draw: random.Random, fact: bool) -> str:
    return f"(((the) ({draw.choice(NOUNS)})) ((is) ({draw.choice(WORDS[fact])})))"


def _of_text(kind: str) -> type[Model[Any, Any, Any, Any]]:
    return ensue.Regressor if kind == "number" else ensue.Classifier


COLUMN = {"title": _sentence, "story": _sentence, "photo": _picture, "parse": _tree}


def _joined(roles: dict[str, Any], inputs: dict[str, Any] | None = None) -> InputRow:
    """Columns of several inputs; roles: as `fit` takes them."""

    def row(draw: random.Random, fact: bool) -> dict[str, Any]:
        one = [name for key in ("text", "image", "tree") for name in listed(roles.get(key, []))]
        beside = _columns(draw, fact) if "columns" in roles else {}
        return {name: COLUMN[name](draw, fact) for name in one} | beside

    return InputRow(_of_text, row, SMALL, roles, inputs or {})


def listed(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else names


COLUMNS = ["size", "kind"]
PHOTO = {"photo": {"blocks": "3 max", "hidden": [6]}}
JOINS = {
    "two texts": _joined({"text": ["title", "story"]}),
    "text, columns, picture": _joined(
        {"text": "title", "columns": COLUMNS, "image": "photo"}, PHOTO
    ),
    "columns, tree": _joined({"columns": COLUMNS, "tree": "parse"}, {"parse": {"hidden_size": 6}}),
    "text, picture": _joined({"text": "title", "image": "photo"}, PHOTO),
}
INPUTS = {
    "text": InputRow(_of_text, _sentence, SMALL),
    "pair": InputRow(lambda _: ensue.Matcher, _pair, {**SMALL, "compared_size": 6}),
    "columns": InputRow(lambda _: ensue.TableModel, _columns, {"hidden": [6]}),
    "picture": InputRow(lambda _: ensue.ImageModel, _picture, {"blocks": "3 max", "hidden": [6]}),
    "tree": InputRow(lambda _: ensue.TreeClassifier, _tree, {"hidden_size": 6}),
    **JOINS,
}
TARGETS = {
    "class": TargetRow(
        lambda _, fact: "yes" if fact else "no",
        ("label", "probability"),
        ("accuracy", "Brier", "AUC", "log loss", "calibration error"),
        ("label", "probabilities"),
    ),
    "several": TargetRow(
        lambda _, fact: ["yes", "sure"] if fact else ["no"], ("labels",), ("accuracy",)
    ),
    "number": TargetRow(
        lambda draw, fact: 3.0 * fact + draw.uniform(-0.5, 0.5), ("value", "low", "high"), ("mae",)
    ),
}
COVERING = {
    ("text", "class"),
    ("pair", "several"),
    ("columns", "number"),
    ("picture", "several"),
    ("tree", "number"),
    ("two texts", "class"),
    ("text, columns, picture", "several"),
    ("columns, tree", "number"),
    ("text, picture", "class"),
}
CELLS = [cell for cell in product(INPUTS, TARGETS) if cell in COVERING or cell[0] not in JOINS]
MATRIX = [pytest.param(*cell, marks=() if cell in COVERING else pytest.mark.slow) for cell in CELLS]


def _rows(reads: str, predicts: str, count: int, seed: int) -> Any:
    """Labelled rows as `fit` and `evaluate` take them."""
    draw, pairs = random.Random(seed), []
    for k in range(count):
        question = INPUTS[reads].question(draw, bool(k % 2))
        pairs.append((question, TARGETS[predicts].label(draw, bool(k % 2))))
    if reads == "columns" or reads in JOINS:
        return [{**question, "answer": label} for question, label in pairs]
    return pairs


def _questions(reads: str) -> list[Any]:
    draw = random.Random(9)
    return [INPUTS[reads].question(draw, bool(k % 2)) for k in range(6)]


def _fitted(reads: str, predicts: str, **how: Any) -> Model[Any, Any, Any, Any]:
    """how: folder and watchers of `fit`."""
    row = INPUTS[reads]
    settings, more = dict(row.settings), {"inputs": row.inputs} if row.inputs else {}
    if reads == "text" or reads in JOINS:
        settings |= {"several": True} if predicts == "several" else {}
    else:
        settings["target"] = predicts
    model = row.models(predicts)(
        model=settings,
        train={"epochs": 2, "rate": 0.02, "device": "cpu", "seed": 3, "checkpoint_updates": 1},
        **more,
    )
    columns = {"target": "answer"} if reads == "columns" else {}
    columns = {**row.roles, "label": "answer"} if row.roles else columns
    return model.fit(
        _rows(reads, predicts, ROWS, 1), _rows(reads, predicts, HELD_OUT, 2), **how, **columns
    )


once = cache(_fitted)


def _weights(model: Model[Any, Any, Any, Any]) -> list[torch.Tensor]:
    return [value for network in model.networks for value in network.state_dict().values()]


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """An answer as names and plain values, so that numbers are compared by tolerance."""
    fields = asdict(value) if is_dataclass(value) else value
    if isinstance(fields, tuple | list):
        fields = dict(enumerate(fields))
    if not isinstance(fields, dict):
        return {name: fields}
    return {
        path: flat for key in fields for path, flat in _flat(fields[key], f"{name}.{key}").items()
    }


def _parted(answer: Any) -> tuple[dict[str, float], dict[str, Any]]:
    """Numbers, which are compared by tolerance, and everything else."""
    flat = _flat(answer)
    numbers = {name: value for name, value in flat.items() if isinstance(value, float)}
    return numbers, {name: value for name, value in flat.items() if name not in numbers}


@pytest.mark.parametrize(("reads", "predicts"), MATRIX)
def test_training_repeats_itself(reads: str, predicts: str) -> None:
    for first, second in zip(
        _weights(once(reads, predicts)), _weights(_fitted(reads, predicts)), strict=True
    ):
        assert torch.equal(first, second)


@pytest.mark.parametrize(("reads", "predicts"), MATRIX)
def test_answers_have_the_fields_of_the_target(reads: str, predicts: str) -> None:
    for answer in once(reads, predicts).predict(_questions(reads)):
        assert all(hasattr(answer, name) for name in TARGETS[predicts].fields)


@pytest.mark.parametrize(("reads", "predicts"), MATRIX)
def test_a_batch_answers_as_single_rows_do(reads: str, predicts: str) -> None:
    model, questions = once(reads, predicts), _questions(reads)
    for question, answer in zip(questions, model.predict(questions), strict=True):
        numbers, texts = _parted(answer)
        alone, alone_texts = _parted(model.predict([question])[0])
        assert alone_texts == texts
        assert alone == pytest.approx(numbers, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("reads", "predicts"), MATRIX)
def test_a_saved_model_answers_the_same(reads: str, predicts: str, tmp_path: Path) -> None:
    model, questions = once(reads, predicts), _questions(reads)
    model.save(tmp_path / "model")
    assert type(model).load(tmp_path / "model").predict(questions) == model.predict(questions)


@pytest.mark.parametrize(("reads", "predicts"), MATRIX)
def test_an_evaluation_states_the_scores_of_the_target(reads: str, predicts: str) -> None:
    evaluation = once(reads, predicts).evaluate(_rows(reads, predicts, HELD_OUT, 5))
    assert {*TARGETS[predicts].scores} <= {*evaluation.scores, *evaluation.others}


@pytest.mark.parametrize(("reads", "predicts"), MATRIX)
def test_an_answer_is_explained(reads: str, predicts: str) -> None:
    explanation = once(reads, predicts).explain(_questions(reads)[0])
    assert explanation.as_text(80, False).strip()
    assert explanation.as_svg().startswith("<svg")


class Stop:
    """A watcher that stops its own process, as a signal would, after a number of updates."""

    def __init__(self, updates: int) -> None:
        self.left = updates

    def __call__(self, row: object) -> None:
        self.left -= isinstance(row, Update)
        if not self.left:
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(("reads", "predicts"), MATRIX)
def test_a_stopped_training_resumes_to_the_same_bits(
    reads: str, predicts: str, tmp_path: Path
) -> None:
    with pytest.raises(Stopped):
        _fitted(reads, predicts, folder=tmp_path / "run", watchers=[Stop(2)])
    resumed = _fitted(reads, predicts, folder=tmp_path / "run", watchers=[])
    for one, other in zip(_weights(once(reads, predicts)), _weights(resumed), strict=True):
        assert torch.equal(one, other)
    questions = _questions(reads)
    assert resumed.predict(questions) == once(reads, predicts).predict(questions)


@pytest.mark.parametrize(("reads", "predicts"), MATRIX)
def test_exports_answer_as_the_model(reads: str, predicts: str, tmp_path: Path) -> None:
    """Each is compared with the model as it is written, over a grid of sizes."""
    pytest.importorskip("onnxruntime")
    traced = TracedModel(once(reads, predicts).exported())
    for name in ("model.onnx", "page.html"):
        written = write_traced(traced, tmp_path / name)
        assert (tmp_path / name).stat().st_size
        assert written.difference < 1e-4


@pytest.mark.parametrize(("reads", "predicts"), MATRIX)
def test_settings_are_selected_and_the_winner_answers(
    reads: str,
    predicts: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = commands_in(tmp_path, capsys, monkeypatch)
    words = _as_files(reads, predicts, tmp_path)
    quick = ("--trials", "2", "--epochs", "1", "--set", "train.device=cpu")
    code, _, err = command("select", *words, *quick, "--run", "found")
    assert code == 0, err
    rows = json.loads((tmp_path / "found" / "selection.json").read_text())["rows"]
    assert len(rows) == 2
    winner = ensue.load(tmp_path / "found" / rows[0]["folder"])
    question = _questions(reads)[0]  # a table that names pictures has columns
    (answer,) = winner.predict([_cells(reads, question) if reads == "picture" else question])
    assert all(hasattr(answer, name) for name in TARGETS[predicts].fields)


def _as_files(reads: str, predicts: str, folder: Path) -> list[str]:
    """A table of the rows, and the words of a command that reads them; pictures are files."""
    row = INPUTS[reads]
    for part, count, seed in (("rows", ROWS, 1), ("held", HELD_OUT, 2)):
        _write_rows(folder, part, _table(reads, predicts, count, seed, folder))
    words = ["rows.csv", "--validation", "held.csv", "--label", "answer"]
    words += WORDS_OF.get(reads, ()) or _words_of(row.roles)
    words += ["--separator", "|"] * (predicts == "several")
    task = {"pair": "match", "columns": "table", "tree": "tree"}.get(reads)
    if task is None:
        return [*words, "--task", "regress" if predicts == "number" else "classify"]
    return [*words, "--task", task, "--set", f"model.target={predicts}"]


def _write_rows(folder: Path, part: str, table: list[dict[str, Any]]) -> None:
    with (folder / f"{part}.csv").open("w", newline="") as file:
        out = csv.DictWriter(file, list(table[0]))
        out.writeheader()
        out.writerows(table)


def _table(reads: str, predicts: str, count: int, seed: int, folder: Path) -> list[dict[str, Any]]:
    """Rows as cells; pictures are files of their folder."""
    table, draw = [], random.Random(seed)
    for k in range(count):
        question = INPUTS[reads].question(draw, bool(k % 2))
        label = TARGETS[predicts].label(draw, bool(k % 2))
        cells = _cells(reads, question)
        for name in ("photo", "image"):
            if name in cells:
                height, width = cells[name].shape
                head = f"P5 {width} {height} 255\n".encode()
                (folder / f"{seed}-{k}.pgm").write_bytes(head + cells[name].tobytes())
                cells[name] = f"{seed}-{k}.pgm"
        cells["answer"] = "|".join(label) if isinstance(label, list) else str(label)
        table.append(cells)
    return table


WORDS_OF = {
    "text": ("--text", "text"),
    "pair": ("--text", "first", "--second", "second"),
    "columns": (),
    "picture": ("--image", "image"),
    "tree": ("--text", "tree"),
}


def _words_of(roles: Mapping[str, Any]) -> list[str]:
    """The roles of joined inputs as a command has them."""
    words: list[str] = []
    for name in listed(roles.get("text", [])):
        words += ["--text", name]
    for key in ("image", "tree"):
        if key in roles:
            words += [f"--{key}", roles[key]]
    return [*words, "--columns", ",".join(roles["columns"])] if "columns" in roles else words


def _cells(reads: str, question: Any) -> dict[str, Any]:
    """A question as the cells of a row."""
    if reads == "pair":
        return dict(zip(("first", "second"), question, strict=True))
    if isinstance(question, dict):
        return dict(question)
    return {{"text": "text", "picture": "image", "tree": "tree"}[reads]: question}


@pytest.mark.parametrize(("reads", "predicts"), MATRIX)
def test_rows_of_a_file_are_answered_as_in_memory(
    reads: str,
    predicts: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """train, evaluate and predict by commands, over the same rows as a table."""
    command = commands_in(tmp_path, capsys, monkeypatch)
    words = _as_files(reads, predicts, tmp_path)
    code, _, err = command("train", *words, "--epochs", "1", "--run", "run")
    assert code == 0, err
    assert "epoch 1, update" in err
    code, out, err = command("evaluate", "run", "--validation", "--json")
    assert code == 0, err
    assert {*TARGETS[predicts].scores} & {*json.loads(out)["scores"]}
    code, out, err = command("predict", "run", words[0], "--json")
    assert (code, len(out.splitlines())) == (0, ROWS), err
    row = TARGETS[predicts]
    assert {*(row.written or row.fields)} <= {*json.loads(out.splitlines()[0])}


def test_pictures_of_a_folder_are_learned_as_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of the folders are the numbers."""
    command, draw = commands_in(tmp_path, capsys, monkeypatch), np.random.default_rng(4)
    for number, k in product(range(1, 7), range(5)):
        (tmp_path / f"widths/{number}").mkdir(parents=True, exist_ok=True)
        pixels = draw.integers(0, 60, (8, 8)).astype(np.uint8)
        pixels[2:6, :number] = 255
        write_image(tmp_path / f"widths/{number}/{k}.png", pixels)
    words = ("widths", "--set", "model.target=number", "--epochs", "1", "--set", "train.device=cpu")
    code, _, err = command("train", *words, "--run", "run")
    assert code == 0, err
    assert "validation cost" in err
