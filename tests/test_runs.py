"""Runs: what is inferred from files, how they are split, what a folder holds and refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from reviews import SMALL, refused, reviews
from run_verbs import evaluate_run, predict_files, texts_to
from run_verbs import reading as reading_of

from ensue.data.fingerprint import digest_of
from ensue.data.settings import DataSettings
from ensue.data.split import part_of
from ensue.files.disk import OPENINGS
from ensue.runs.config import TABLES, RunConfig, changed
from ensue.runs.infer import infer
from ensue.runs.load import load_run
from ensue.runs.train import complete, settle, suggest_rate, train_run
from ensue.tasks import TASKS
from ensue.training import RunFolder

SMALL_LABELLER = [*SMALL, "model.character_size=0", "model.affixes=1"]


def files(folder: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    """One small file of every kind, with the keys of [data] that it needs."""
    data_by_name: dict[str, tuple[Path, dict[str, Any]]] = {}

    def put(name: str, content: str, **data: Any) -> None:
        (folder / name).write_text(content)
        data_by_name[name] = (folder / name, data)

    rows = [(f"word{k % 3} w{k}", "ab"[k % 2]) for k in range(40)]
    put("rows.csv", "text,label\n" + "".join(f"{t},{c}\n" for t, c in rows))
    put("rows.tsv", "label\ttext\n" + "".join(f"{c}\t{t}\n" for t, c in rows))
    put("bare.csv", "".join(f"{t},{c}\n" for t, c in rows), header=["words", "kind"])
    put(
        "quotes.csv",
        "text,label\n" + "".join(f'5" {t},{c}\n' for t, c in rows),
        no_quote=True,
    )
    put("many.csv", "text,label\n" + "".join(f"{t},{c}; x\n" for t, c in rows), separator=";")
    put("spaces.csv", "tokens,tags\n" + "".join(f"{t} end,{c} {c} X\n" for t, c in rows))
    tagged = [{"tokens": t.split(), "tags": [c, "X"]} for t, c in rows]
    put("tagged.jsonl", "".join(json.dumps(row) + "\n" for row in tagged))
    lists = [{"text": t, "label": [c, "x"]} for t, c in rows]
    put("lists.jsonl", "".join(json.dumps(row) + "\n" for row in lists))
    numbers = [{"features": [k % 2, 1.5, k], "label": k % 2} for k in range(40)]
    put("numbers.jsonl", "".join(json.dumps(row) + "\n" for row in numbers))
    put(
        "tokens.conllu",
        "".join(
            f"1\t{t.split()[0]}\t_\t{c}\t_\t_\t0\t_\t_\t_\n"
            f"2\t{t.split()[1]}\t_\tX\t_\t_\t0\t_\t_\t_\n\n"
            for t, c in rows
        ),
    )
    long = [(k, f"{k}.5,{step}", k % 2) for k in range(40) for step in range(3)]
    put(
        "long.csv",
        "id,x,y,kind\n" + "".join(f"{k},{v},{c}\n" for k, v, c in long),
        sequence="id",
        label="kind",
    )
    put(
        "steps.csv",
        "id,x,y,kind\n" + "".join(f"{k},{v},{'ab'[n % 2]}\n" for n, (k, v, _) in enumerate(long)),
        sequence="id",
        label="kind",
        features=["x"],
    )
    for k, (text, label) in enumerate(rows):
        (folder / "texts" / label).mkdir(parents=True, exist_ok=True)
        (folder / "texts" / label / f"{k}.txt").write_text(f"{text} {k}")
    data_by_name["texts"] = (folder / "texts", {})
    return data_by_name


INFERRED: dict[str, tuple[str, dict[str, Any]]] = {
    "rows.csv": ("classify", {"text": "text", "label": "label"}),
    "rows.tsv": ("classify", {"text": "text", "label": "label"}),
    "bare.csv": ("classify", {"text": "words", "label": "kind"}),
    "quotes.csv": ("classify", {"text": "text", "label": "label"}),
    "many.csv": ("classify", {"separator": ";"}),
    "spaces.csv": ("label", {"text": "tokens", "label": "tags"}),
    "tagged.jsonl": ("label", {"text": "tokens", "label": "tags"}),
    "lists.jsonl": ("classify", {"text": "text", "label": "label"}),
    "numbers.jsonl": ("classify", {"text": "features", "label": "label"}),
    "tokens.conllu": ("label", {"text": "form", "label": "upos"}),
    "long.csv": ("classify", {"features": ["x", "y"], "label": "kind"}),
    "steps.csv": ("label", {"features": ["x"], "label": "kind"}),
    "texts": ("classify", {"text": "text", "label": "label"}),
}


def inferred(folder: Path, name: str, *settings: str) -> tuple[RunConfig, list[str]]:
    path, data = files(folder)[name]
    task = "label" if name == "spaces.csv" else None  # only the user can tell
    small = SMALL_LABELLER if INFERRED[name][0] == "label" else SMALL
    guess = infer({"train": [str(path)], **data}, task, [*small, *settings])
    return guess.config, [message.text for message in guess.messages]


@pytest.mark.parametrize("name", INFERRED)
def test_every_kind_of_file_from_inference_to_answers(name: str, tmp_path: Path) -> None:
    config, lines = inferred(tmp_path, name)
    task, keys = INFERRED[name]
    assert config.task == task
    assert {key: getattr(config.data, key) for key in keys} == keys
    if name != "spaces.csv":
        assert any(line.startswith(f"task: {task} (") for line in lines)
    assert lines[-1] == "split: 80 % train, 10 % validation, 10 % test, by the hash of each row"
    several = getattr(config.model, "several", False)
    assert several == (name in ("many.csv", "lists.jsonl"))
    assert ("model.several: true" in lines) == several
    folder = RunFolder(tmp_path / "run")
    settle(folder, config)
    trained = train_run(config, folder)
    assert trained.rows["train"] > trained.rows["validation"] > 0
    opened = evaluate_run(folder, [])
    total = sum(trained.rows.values()) + opened.evaluation.rows
    assert total == 40, "every row is in one part"
    answers = list(predict_files(load_run(folder)[1], config, config.data.train))
    assert len(answers) == 40
    if name == "numbers.jsonl":
        assert isinstance(answers[0][0], np.ndarray)
        assert answers[0][0].shape == (3, 1)
    card = (tmp_path / "run" / "card.md").read_text()
    assert card.startswith("# run\n\n")
    assert f"({trained.rows['train']} rows to train" in card


def test_inference_prints_what_nobody_said(tmp_path: Path) -> None:
    path = reviews(tmp_path / "r.csv")
    _, messages = infer({"train": [str(path)]}, None, [])
    assert not any(message.warning for message in messages)
    assert [message.text for message in messages] == [
        "text: review (texts, 6 words on average)",
        "label: stars (2 different numbers)",
        "task: classify (one label for each row)",
        "not used: film (7 different values); learn from them, too, with --columns film",
        "split: 80 % train, 10 % validation, 10 % test, by the hash of each row",
    ]
    other, third = (str(reviews(tmp_path / name)) for name in ("o.csv", "t.csv"))
    test = {"train": [str(path)], "test": [other], "text": "review", "label": "stars"}
    assert [message.text for message in infer(test, "classify", []).messages] == [
        "split: 90 % train, 10 % validation, by the hash of each row; the test part is its own file"
    ]
    tables = {**test, "validation": [third], "group": "film"}
    assert [message.text for message in infer(tables, "classify", []).messages] == []
    tables.pop("test")
    assert [message.text for message in infer(tables, "classify", []).messages] == [
        "split: no test part; give one to `ensue evaluate --test`"
    ]


def test_what_cannot_be_inferred(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("one,two\n" + "".join(f"text {k},other {k}\n" for k in range(20)))
    assert refused(lambda: infer({"train": [str(path)]}, None, [])) == (
        f"{path}:2: no column looks like a label among one, two; name it with --label"
    )
    assert refused(lambda: infer({"train": [str(path)], "label": "tow"}, None, [])) == (
        f"{path}:2: unknown column 'tow': did you mean 'two'? Known: one, two"
    )
    long = {"train": [str(path)], "sequence": "one"}
    assert "name it with --label" in refused(lambda: infer(long, None, []))
    assert refused(lambda: infer({**long, "label": "two"}, None, [])) == (
        f"{path}:2: no column of numbers among none; name them with --features a,b,c"
    )


# --- splits ----------------------------------------------------------------------------------


def parts_of(data: dict[str, Any]) -> dict[str, set[str]]:
    settings = DataSettings.of({"text": "review", "label": "stars", **data}, "data")
    return {
        part: {str(row.value) for row in reading_of(settings).rows(part)}
        for part in ("train", "validation", "test")
    }


def test_more_rows_move_none_of_the_others(tmp_path: Path) -> None:
    few = parts_of({"train": [str(reviews(tmp_path / "few.csv", 300))]})
    many = parts_of({"train": [str(reviews(tmp_path / "many.csv", 900))]})
    for part, rows in few.items():
        assert rows < many[part]
    assert sum(map(len, many.values())) == 900
    assert len(many["train"]) == pytest.approx(720, abs=40)
    other = parts_of({"train": [str(tmp_path / "few.csv")], "split_seed": 1})
    assert other["test"] != few["test"]


def test_groups_stay_together(tmp_path: Path) -> None:
    path = reviews(tmp_path / "r.csv", 200)
    settings = DataSettings.of(
        {"train": [str(path)], "text": "review", "label": "film", "group": "film"}, "data"
    )
    reading = reading_of(settings)
    labels = [{str(row.label) for row in reading.rows(p)} for p in ("train", "validation", "test")]
    assert sum(map(len, labels)) == len(set.union(*labels)) == 7


def test_files_of_their_own_are_not_split(tmp_path: Path) -> None:
    train, test = reviews(tmp_path / "r.csv", 100), reviews(tmp_path / "t.csv", 10, first=500)
    values_of_parts = parts_of({"train": [str(train)], "test": [str(test)]})
    assert len(values_of_parts["test"]) == 10
    assert len(values_of_parts["train"]) + len(values_of_parts["validation"]) == 100
    assert len(values_of_parts["train"]) == pytest.approx(90, abs=8)
    values_of_parts = parts_of({"train": [str(train)], "validation": [str(test)]})
    assert (len(values_of_parts["train"]), len(values_of_parts["validation"])) == (100, 10)


def test_only_training_files_need_the_group(tmp_path: Path) -> None:
    train, test = reviews(tmp_path / "r.csv", 100), tmp_path / "t.csv"
    test.write_text("review,stars\nfine,1\n")
    values_of_parts = parts_of({"train": [str(train)], "test": [str(test)], "group": "film"})
    assert values_of_parts["test"] == {"fine"}


def run_of(folder: Path, data: dict[str, Any], *settings: str) -> tuple[RunConfig, RunFolder]:
    config = infer(data, "classify", [*SMALL, *settings]).config
    place = RunFolder(folder)
    settle(place, config)
    return config, place


def test_training_never_looks_at_the_test_part(tmp_path: Path) -> None:
    train, test = reviews(tmp_path / "r.csv"), tmp_path / "t.csv"
    data = {"train": [str(train)], "test": [str(test)]}
    with_file, folder = run_of(tmp_path / "a", data)
    train_run(with_file, folder)  # the file does not even exist
    assert "t.csv, which is missing" in refused(lambda: evaluate_run(folder, []))
    assert not (tmp_path / OPENINGS).exists()

    data = {"train": [str(train)], "text": "review", "label": "stars"}
    sealed = parts_of(data)["test"]
    lines = train.read_text().splitlines()
    turned = str.maketrans({"1": "5", "5": "1"})
    other_labels = [
        ",".join([text, label.translate(turned), film]) if text in sealed else line
        for line in lines
        for text, label, film in [line.split(",")]
    ]
    assert other_labels != lines
    scores, weights = [], []
    for name, rows in (("b", lines), ("c", other_labels)):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(rows) + "\n")
        config, folder = run_of(tmp_path / name, {**data, "train": [str(path)]})
        trained = train_run(config, folder)
        scores.append(evaluate_run(folder, []).evaluation.scores["accuracy"].value)
        weights.append(
            [p.detach() for network in trained.model.networks for p in network.parameters()]
        )
    assert all(torch.equal(one, two) for one, two in zip(*weights, strict=True))
    assert scores[0] == pytest.approx(1 - scores[1])


def test_faults_of_all_parts_are_named_at_once(tmp_path: Path) -> None:
    """A sealed row is reported as faulty, without details."""
    train = reviews(tmp_path / "r.csv")
    data = {"train": [str(train)], "text": "review", "label": "stars"}
    parts = parts_of(data)
    bare = {part: min(rows) for part, rows in parts.items()}
    rows = [
        f"{text},,{film}" if text in bare.values() else f"{text},{label},{film}"
        for text, label, film in (line.split(",") for line in train.read_text().splitlines())
    ]
    train.write_text("\n".join(rows) + "\n")
    assert refused(lambda: train_run(*run_of(tmp_path / "a", data))).startswith("3 problems in ")
    messages: list[str] = []
    config, folder = run_of(tmp_path / "b", {**data, "skip_bad": True})
    train_run(config, folder, say=texts_to(messages.append))
    assert messages[0] == "3 bad rows left out"


def test_openings_are_counted_by_content_across_sibling_runs(tmp_path: Path) -> None:
    train, test = reviews(tmp_path / "r.csv"), reviews(tmp_path / "t.csv", 20, first=100)
    data = {"train": [str(train)], "test": [str(test)]}
    (tmp_path / "runs").mkdir()
    folders = []
    for name in "ab":
        config, folder = run_of(tmp_path / "runs" / name, data)
        train_run(config, folder)
        folders.append(folder)
    copy = tmp_path / "copy.csv"
    copy.write_bytes(test.read_bytes())
    counts = []
    for folder, files in [(folders[0], []), (folders[1], [str(copy)]), (folders[0], [])]:
        opened = evaluate_run(folder, files)
        counts.append((opened.by_this_run, opened.by_all))
    assert counts == [(1, 1), (1, 2), (2, 3)]
    assert evaluate_run(folders[0], [], "validation").by_all == 0
    other = evaluate_run(folders[0], [str(reviews(tmp_path / "o.csv", 20, first=200))])
    assert (other.by_this_run, other.by_all) == (1, 1)
    lines = (tmp_path / "runs" / OPENINGS).read_text().splitlines()
    assert [json.loads(line)["run"] for line in lines] == ["a", "b", "a", "a"]
    assert json.loads(lines[0])["test"] == digest_of([str(test)])


def test_both_parts_cannot_be_opened_at_once(tmp_path: Path) -> None:
    config, folder = run_of(tmp_path / "a", {"train": [str(reviews(tmp_path / "r.csv"))]})
    train_run(config, folder)
    assert refused(lambda: evaluate_run(folder, ["t.csv"], "validation")) == (
        "--test and --validation: expected one of them, got both; leave one out"
    )


def test_a_run_without_a_test_part_says_so(tmp_path: Path) -> None:
    path = str(reviews(tmp_path / "r.csv"))
    other = str(reviews(tmp_path / "o.csv"))
    config, folder = run_of(tmp_path / "a", {"train": [path], "validation": [other]})
    train_run(config, folder)
    assert refused(lambda: evaluate_run(folder, [])) == (
        f"{tmp_path / 'a'}: this run has no test part; give a file with --test"
    )
    assert evaluate_run(folder, [path]).by_all == 1


def test_too_few_rows_to_split(tmp_path: Path) -> None:
    path = reviews(tmp_path / "r.csv", 3)
    config, folder = run_of(tmp_path / "a", {"train": [str(path)]})
    assert refused(lambda: train_run(config, folder)) == (
        f"{path}: no row falls into the validation part: too few different rows to be split by "
        "their hash (equal ones stay in one part). Give more rows, another "
        "--set data.split_seed=1, or a file with --validation"
    )


# --- content ---------------------------------------------------------------------------------


def test_faults_of_content_are_gathered_with_those_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("text,label\nfine,a\nno label,\ntoo,many,columns\ndull,b\n,a\nblank,  \n")
    data = {"train": [str(path)], "validation": [str(path)], "text": "text", "label": "label"}
    reading = reading_of(DataSettings.of(data, "data"))
    assert refused(lambda: list(reading.rows("train"))) == (
        f"3 problems in {path}\n"
        f"  {path}:3: label: expected a label, got nothing: fill it in\n"
        f"  {path}:4: expected 2 columns, found 3 (unquoted comma?)\n"
        f"  {path}:7: label: expected a label, got nothing: fill it in\n"
        "Fix the lines, or use --skip-bad to leave them out."
    )
    problems: list[str] = []
    reading = reading_of(DataSettings.of({**data, "skip_bad": True}, "data"))
    reading.on_bad_row = lambda problem: problems.append(str(problem))
    rows = list(reading.rows("train"))
    assert [(row.value, row.label, row.place.line) for row in rows] == [
        ("fine", "a", 2),
        ("dull", "b", 5),
        ("", "a", 6),
    ]
    assert reading.rejected == len(problems) == 3


def test_values_of_the_wrong_kind_are_gathered(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rows = [{"text": 5, "label": "a"}, {"text": 6, "label": "b"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {"train": [str(path)], "validation": [str(path)], "text": "text", "label": "label"}
    message = refused(lambda: list(reading_of(DataSettings.of(data, "data")).rows("train")))
    assert f"{path}:1: text: expected a text or a sequence, got 5" in message
    assert f"{path}:2: text: expected a text or a sequence, got 6" in message
    rows = [{"text": ["a", "b"], "label": ["x"]}, {"text": ["a"], "label": ["x"]}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    stepped = reading_of(DataSettings.of(data, "data"), by_step=True)
    message = refused(lambda: list(stepped.rows("train")))
    assert f"{path}:1: label: expected a label for each of the 2 steps, got 1" in message
    path.write_text(json.dumps({"text": ["a", "b"], "label": 1}) + "\n")
    stepped = reading_of(DataSettings.of(data, "data"), by_step=True)
    message = refused(lambda: list(stepped.rows("train")))
    assert f"{path}:1: label: expected a label for each of the 2 steps, got one, '1'" in message


def test_bad_rows_are_counted(tmp_path: Path) -> None:
    path = reviews(tmp_path / "r.csv")
    bare = next(text for text in map(str, range(99)) if part_of(text) == "train")
    path.write_text(path.read_text() + f"one,two,three,four\n{bare},,film\n")
    messages: list[str] = []
    config, folder = run_of(tmp_path / "a", {"train": [str(path)], "skip_bad": True})
    train_run(config, folder, say=texts_to(messages.append))
    assert messages[0] == "2 bad rows left out"
    assert refused(lambda: train_run(*run_of(tmp_path / "b", {"train": [str(path)]}))).startswith(
        f"2 problems in {path}\n"
    )


# --- config.toml -----------------------------------------------------------------------------


@pytest.mark.parametrize("base", [{}, {"base": {"path": ["/a/lm"], "layers": 1}}])
@pytest.mark.parametrize("task", ["classify", "label"])
def test_a_configuration_is_complete_and_reads_back(
    task: str, base: dict[str, Any], tmp_path: Path
) -> None:
    tables = {
        **base,
        "task": task,
        "members": 2,
        "data": {
            "train": [str(tmp_path / "ä b.csv")],
            "header": ["a", "b"],
            "split_seed": 3,
            "no_quote": True,
        },
        "text": {"max_words": 50, "cut": "start"},
        "model": {"cell": "GRU", "batch_rows": "off"},
        "train": {"patience": "off", "check_every": 7, "clip": 0.5},
    }
    config = RunConfig.of(tables)
    path = tmp_path / "config.toml"
    path.write_text(config.text_of(tmp_path))
    assert RunConfig.read(path) == config
    written = tomllib.loads(path.read_text())
    names = [name for name in TABLES if name != "base" or base]
    for name in names:
        settings = getattr(config, name)
        assert set(written[name]) == set(type(settings).model_fields), "no hidden default"
    assert {"task", "members", *names} == set(written)
    model = config.new_model()
    assert (model.text, model.settings, model.train) == (config.text, config.model, config.train)


def test_every_problem_of_a_configuration_is_told(tmp_path: Path) -> None:
    tables = {
        "task": "classify",
        "members": 0,
        "data": {"train": ["a.csv"], "spearator": ";"},
        "text": 3,
        "model": {"cell": "LSMT", "hidden_size": 0},
        "train": {"rate": -0.1},
        "trian": {},
    }
    assert refused(lambda: RunConfig.of(tables)) == (
        "7 problems\n"
        "  members: expected a whole number ≥ 1, got 0\n"
        "  data.spearator: unknown key, did you mean separator? Known: "
        f"{', '.join(DataSettings.model_fields)}\n"
        "  text: expected a table, [text], got 3\n"
        "  model.cell: " + told_of_cells() + "\n"
        "  model.hidden_size: expected a number ≥ 1, got 0\n"
        "  train.rate: expected a number > 0, got -0.1\n"
        "  unknown table 'trian': did you mean 'train'? Known: base, data, model, text, train"
    )
    assert refused(lambda: RunConfig.of({"task": "clasify"})) == (
        f"unknown task 'clasify': did you mean 'classify'? Known: {', '.join(sorted(TASKS))}"
    )
    path = tmp_path / "config.toml"
    path.write_text("task = classify\n")
    assert refused(lambda: RunConfig.read(path)).startswith(f"{path}: this is not TOML: ")
    path.write_text('task = "label"\n[data]\ntrain = 3\n')
    assert refused(lambda: RunConfig.read(path)).startswith(f"{path}: data.train: ")


def told_of_cells() -> str:
    from ensue.cells import CELLS
    from ensue.errors import unknown

    message = unknown("cell", "LSMT", CELLS)
    return f"{message}; or a file of your own, such as mine.py or mine.py:MyCell"


def test_settings_by_name() -> None:
    tables = {"task": "classify", "train": {"rate": 1.0}}
    assignments = [
        "train.rate=0.5",
        "model.cell=GRU",
        "members=2",
        "data.features=['a']",
        "text.cut= x",
    ]
    assert changed(tables, assignments) == {
        "task": "classify",
        "members": 2,
        "train": {"rate": 0.5},
        "model": {"cell": "GRU"},
        "data": {"features": ["a"]},
        "text": {"cut": "x"},
    }
    assert tables == {"task": "classify", "train": {"rate": 1.0}}
    for wrong in ("train.rate", "task.x=3"):
        assert refused(lambda wrong=wrong: changed(tables, [wrong])) == (
            f"--set {wrong}: expected table.key=value, such as train.rate=0.001"
        )


# --- the folder ------------------------------------------------------------------------------


def test_the_same_settings_continue_and_others_are_refused(tmp_path: Path) -> None:
    data = {"train": [str(reviews(tmp_path / "r.csv"))]}
    config, folder = run_of(tmp_path / "a", data)
    assert settle(folder, config) == config
    first = train_run(config, folder)
    before = folder.config.read_bytes()
    other = complete(infer(data, "classify", [*SMALL, "train.rate=0.5", "model.cell=GRU"]).config)
    assert refused(lambda: settle(folder, other)) == (
        f"{folder.config}: 2 settings differ from this command\n"
        "  model.cell: was 'LSTM', now 'GRU'\n"
        "  train.rate: was 0.001, now 0.5\n"
        f"Next: `ensue train --run {folder.path}` resumes it with its own settings; "
        f"for the new ones name another folder, --run {folder.path}-2, or resume with them: "
        "--allow model.cell --allow train.rate"
    )
    assert folder.config.read_bytes() == before
    again = train_run(config, folder)
    assert again.outcomes == first.outcomes
    assert again.best() == first.best()


def test_a_run_of_another_task_is_refused_in_one_line(tmp_path: Path) -> None:
    data = {"train": [str(reviews(tmp_path / "r.csv"))]}
    config, folder = run_of(tmp_path / "a", data)
    train_run(config, folder)
    other = infer(data, "language", SMALL).config
    assert refused(lambda: settle(folder, other)) == (
        f"{folder.path}: this folder holds a run of task classify, but this command "
        f"trains one of task language; name another folder: --run {folder.path}-2"
    )


def test_a_folder_cut_off_while_its_configuration_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = infer({"train": [str(reviews(tmp_path / "r.csv"))]}, None, SMALL).config
    folder = RunFolder(tmp_path / "a")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            settle(folder, config)
    assert not folder.config.exists()
    assert settle(folder, config) == config
    assert RunConfig.read(folder.config) == config


HOLD = """
import sys, time
from ensue.training import RunFolder
with RunFolder(sys.argv[1]).locked():
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_before_any_data_is_read(tmp_path: Path) -> None:
    config = infer({"train": [str(reviews(tmp_path / "r.csv"))]}, None, SMALL).config
    folder = RunFolder(tmp_path / "a")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder.path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        message = refused(lambda: settle(folder, config))
        assert message.startswith(f"{folder.path} is in use by process {holder.pid} on ")
        assert message.endswith("Wait for it, stop it, or name another run folder")
    finally:
        holder.kill()
        holder.communicate()
    assert settle(folder, config) == config


def test_what_is_no_run(tmp_path: Path) -> None:
    assert refused(lambda: load_run(RunFolder(tmp_path))) == (
        f"{tmp_path}: there is no run here; train one: `ensue train FILE --run {tmp_path}`"
    )
    _, folder = run_of(tmp_path / "a", {"train": [str(reviews(tmp_path / "r.csv"))]})
    assert refused(lambda: load_run(folder)) == (
        f"{folder.path}: nothing was trained yet; `ensue train --run {folder.path}` trains it"
    )
    (tmp_path / "file").write_text("")
    config = RunConfig.read(folder.config)
    assert refused(lambda: settle(RunFolder(tmp_path / "file"), config)).startswith(
        f"{tmp_path / 'file'}: cannot be made a run folder: "
    )


def test_answers_for_files_of_other_formats(tmp_path: Path) -> None:
    config, folder = run_of(tmp_path / "a", {"train": [str(reviews(tmp_path / "r.csv"))]})
    train_run(config, folder)
    _, model = load_run(folder)
    (tmp_path / "new.txt").write_text("a good film\n\nbad\n")
    (tmp_path / "new.csv").write_text("id,review\n7,a good film\n8,\n9,bad\n")
    plain, table = (
        list(predict_files(model, config, [str(tmp_path / name)]))
        for name in ("new.txt", "new.csv")
    )
    assert [text for text, _ in plain] == ["a good film", "", "bad"]
    assert [answer for _, answer in plain] == [answer for _, answer in table]
    (tmp_path / "other.csv").write_text("reviw\nx\n")
    assert "did you mean 'reviw'" in refused(
        lambda: list(predict_files(model, config, [str(tmp_path / "other.csv")]))
    )


def test_a_learning_rate_is_suggested(tmp_path: Path) -> None:
    config = infer({"train": [str(reviews(tmp_path / "r.csv", 20))]}, None, SMALL).config
    messages: list[str] = []
    lines = suggest_rate(config, texts_to(messages.append)).splitlines()
    assert lines[0] == "      rate  cost"
    assert lines[-1].startswith("suggested: train.rate=")
    assert 1e-7 < float(lines[-1].partition("=")[2]) < 100
    assert not (tmp_path / "run").exists()


# --- memory ----------------------------------------------------------------------------------

PEAK = """
import sys, resource
from ensue.data.settings import DataSettings
from ensue.data.tokenise import Tokeniser
from ensue.tasks.rows.collect import collect
from ensue.tasks.rows.collect import Content
from ensue.tasks.rows.part import Tokenisers
from ensue.tasks.rows.reader import Reading
data = DataSettings.of({"train": [sys.argv[1]], "validation": [sys.argv[1]],
                        "text": "text", "label": "label"}, "data")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
read = Reading(data, Content()).rows("train")
rows = collect(read, Tokenisers(Tokeniser("words", lower=True)))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(rows), len(rows.inputs.values), peak - before)
"""


def test_memory_is_that_of_the_encoded_data(tmp_path: Path) -> None:
    path, text = tmp_path / "big.csv", " ".join(f"somewhat{k}" for k in range(200))
    with path.open("w") as file:
        file.write("text,label\n")
        for k in range(8_000):
            file.write(f"{k} {text},{k % 2}\n")
    assert path.stat().st_size > 16 << 20
    run = subprocess.run(
        [sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True
    )
    rows, tokens, kilobytes = map(int, run.stdout.split())
    assert rows == 8_000
    assert kilobytes << 10 < 4 * tokens + (8 << 20), "int32 for each token and little else"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on a process's memory")
def test_too_little_memory_is_said_in_one_line(tmp_path: Path) -> None:
    """Before the first update or later, it is the person's to put right."""
    rows = "\n".join(f"{'good' if k % 2 else 'bad'} film number {k},{k % 2}" for k in range(60))
    (tmp_path / "films.csv").write_text(f"text,label\n{rows}\n")
    command = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2_600 << 20, -1)); "
        "from ensue.cli import main; "
        "main(['train', 'films.csv', '--run', 'r', '--set', "
        "'model.hidden_size=32768'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", command],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 2, done.stderr
    assert "memory" in done.stderr.splitlines()[-1]
    assert "Next: " in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
