"""Labelling as a task: how it is recognised, how its rows are read, its searches, its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy_runs import toy_run

from ensue import Labeller
from ensue.data.rows import Problem
from ensue.data.settings import DataSettings
from ensue.errors import ConfigError, DataError
from ensue.tasks import TASKS
from ensue.tasks.label.network import LabellerNetwork
from ensue.tasks.rows.part import Part
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import read_model

LABEL = TASKS["label"]
ROWS = [
    (["the", "dog", "sees", "Ann"], ["DET", "NOUN", "VERB", "NAME"]),
    (["a", "cat", "runs"], ["DET", "NOUN", "VERB"]),
    (["Ann", "sees", "Bob"], ["NAME", "VERB", "NAME"]),
] * 6
SMALL = {"hidden_size": 4, "embedding_size": 4, "character_size": 2, "character_hidden": 2}


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def sample(file: str, **data: Any) -> Sample:
    return Sample(DataSettings.of({"train": [file], **data}, "data"))


# --- recognised --------------------------------------------------------------------------------


def test_tokens_with_a_tag_each_are_recognised(tmp_path: Path) -> None:
    rows = [{"tokens": words, "tags": tags} for words, tags in ROWS]
    file = written(tmp_path / "a.jsonl", rows)
    roles = {"text": "tokens", "label": "tags"}
    guess = LABEL.recognise(sample(file, **roles))
    assert guess == Guess("a label for each step", roles)
    assert TASKS["classify"].recognise(sample(file, **roles)) is None
    one = [{"text": "a fine dog", "label": "good"}, {"text": "a dull cat", "label": "bad"}] * 4
    assert LABEL.recognise(sample(written(tmp_path / "b.jsonl", one))) is None


def test_span_tags_are_watched_as_spans(tmp_path: Path) -> None:
    rows = [{"tokens": ["Ann", "runs"], "tags": ["B-PER", "O"]}] * 4
    file = written(tmp_path / "a.jsonl", rows)
    guess = LABEL.recognise(sample(file, text="tokens", label="tags"))
    assert guess is not None
    assert guess.tables == {"train": {"watch": "span_f1"}}


def test_texts_are_cut_at_their_spaces_where_the_task_is_named(tmp_path: Path) -> None:
    rows = [{"text": "Ann runs", "tags": "B-PER O"}] * 4
    guess = LABEL.infer(sample(written(tmp_path / "a.jsonl", rows), text="text", label="tags"))
    assert guess.tables == {"text": {"level": "spaces"}, "train": {"watch": "span_f1"}}


def test_a_long_table_whose_label_changes_is_recognised(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    lines = [f"{k // 3},{k % 5}.5,{'up' if k % 2 else 'down'}" for k in range(12)]
    file.write_text("\n".join(["id,x,way", *lines]) + "\n")
    guess = LABEL.recognise(sample(str(file), sequence="id", label="way"))
    assert guess == Guess("a label for each step", {"label": "way", "features": ["x"]})


# --- read --------------------------------------------------------------------------------------


def read(file: str, **data: Any) -> tuple[Part, list[str]]:
    """A whole file as its training part, and the messages about bad rows."""
    messages: list[str] = []

    def tell(problem: Problem) -> None:
        messages.append(str(problem))

    tables = {"train": [file], "validation": [file], "skip_bad": True, **data}
    files = LABEL.reader(Labeller()).files(DataSettings.of(tables, "data"), tell)
    return files.part("train"), messages


def test_rows_without_a_label_for_each_step_are_told(tmp_path: Path) -> None:
    pairs: list[tuple[Any, Any]] = [("the dog", "DET NOUN"), ("a cat", "DET"), ("", "")]
    lists: list[tuple[Any, Any]] = [(["the", "dog"], ["DET", "NOUN"]), (["a"], ["DET", "NOUN"])]
    files = [
        written(tmp_path / f"{k}.jsonl", [{"text": text, "tags": tags} for text, tags in rows])
        for k, rows in enumerate((pairs, lists))
    ]
    parts, messages_of_files = zip(
        *(read(file, text="text", label="tags") for file in files), strict=True
    )
    assert [line.partition(": ")[2] for messages in messages_of_files for line in messages] == [
        "tags: expected a label for each of the 2 steps, got 1",
        "tags: expected a label for each of the 1 steps, got 2",
    ]
    assert [len(part) for part in parts] == [2, 1]
    for part in parts:
        assert part.labels is not None
        assert part.inputs.lengths.tolist() == part.labels.lengths.tolist()
        assert list(part.numbers.tokens) == ["the", "dog"]
        assert list(part.numbers.labels) == ["DET", "NOUN"]


def test_one_label_for_all_steps_is_told(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", [{"text": "the dog", "tags": 7}])
    message = "a.jsonl:1: tags: expected a label for each of the 2 steps, got one, '7'"
    with pytest.raises(DataError, match=message):
        read(file, text="text", label="tags")


def test_labels_with_a_separator_are_cut_at_it(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", [{"text": "New York", "tags": "a place|a place"}])
    part, messages = read(file, text="text", label="tags", separator="|")
    assert not messages
    assert list(part.numbers.labels) == ["a place"]
    assert part.labels is not None
    assert part.labels.row(0).tolist() == [0, 0]


def test_a_long_table_has_a_label_on_each_line(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,x,way\n1,0.5,up\n1,1.5,down\n2,2.5,up\n")
    part, messages = read(str(file), sequence="id", label="way", features=["x"])
    assert not messages
    assert part.labels is not None
    assert part.labels.values.tolist() == [0, 1, 0]
    assert part.labels.starts.tolist() == part.inputs.starts.tolist() == [0, 2, 3]
    assert np.array_equal(part.inputs.values, np.array([[0.5], [1.5], [2.5]], np.float32))


# --- searches, by output ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "search"),
    [
        ({}, "exact"),
        ({"output": "crf"}, "exact"),
        ({"output": "previous"}, "exact"),
        ({"output": "previous", "search": "greedy"}, "greedy"),
        ({"output": "previous", "previous_cell": "GRU"}, "beam"),
        ({"output": "previous", "previous_cell": "GRU", "search": "greedy"}, "greedy"),
        ({"output": "previous", "previous_cell": "GRU", "search": "auto"}, "beam"),
        ({"previous_cell": "GRU", "search": "exact"}, "exact"),  # the cell has no effect there
    ],
)
def test_each_output_has_its_usual_search(model: dict[str, Any], search: str) -> None:
    """It is what the table of settings says, so that a run's config is complete."""
    settings = Labeller(model=model).settings
    assert settings.search == search
    assert Labeller(model=settings.table()).settings == settings


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            {"search": "beam"},
            "expected one of auto, exact with model.output = stepwise, got 'beam'",
        ),
        (
            {"output": "crf", "search": "greedy"},
            "expected one of auto, exact with model.output = crf, got 'greedy'",
        ),
        (
            {"output": "previous", "previous_cell": "GRU", "search": "exact"},
            "expected one of auto, beam, greedy with model.previous_cell = GRU (a cell "
            "remembers every label before, so that exact search would have to try all sequences), "
            "got 'exact'",
        ),
    ],
)
def test_a_search_that_the_output_does_not_have_is_refused(
    model: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        Labeller(model=model)
    assert str(error.value) == f"model.search: {message}"


def test_the_search_that_is_set_is_the_one_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[tuple[str, int]] = []
    label = LabellerNetwork.label

    def noted(network: Any, batch: Any, search: str, width: int) -> Any:
        searches.append((search, width))
        return label(network, batch, search, width)

    monkeypatch.setattr(LabellerNetwork, "label", noted)
    for search, runs in {"auto": "exact", "exact": "exact", "beam": "beam"}.items():
        searches.clear()
        settings = {"output": "previous", "search": search, "beam": 2, "hidden_size": 4}
        model = Labeller({}, settings, {"epochs": 1}).fit(ROWS, ROWS)
        model.predict([["the", "dog"]])
        assert set(searches) == {(runs, 2)}


def test_outputs_and_searches_that_there_are_not_are_named() -> None:
    with pytest.raises(
        ConfigError, match=r"^model\.output: expected one of stepwise, crf, previous"
    ):
        Labeller(model={"output": "crff", "search": "beam"})
    with pytest.raises(ConfigError, match=r"^model\.search: expected one of .*, got 'beem'"):
        Labeller(model={"output": "crf", "search": "beem"})


# --- as files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["label-stepwise", "label-crf", "label-previous", "label-spans"])
def test_a_loaded_model_answers_and_is_saved_as_it_was(name: str, tmp_path: Path) -> None:
    run = toy_run(name) / "run"
    model = Labeller.load(run)
    model.save(tmp_path / "model")
    again = Labeller.load(tmp_path / "model")
    questions = [["the", "grim", "fish", "sees", "Ann"], ["Old", "Tom"], []]
    assert again.predict(questions) == model.predict(questions)
    before, after = read_model(run / "model"), read_model(tmp_path / "model")
    assert after.vocabularies == before.vocabularies
    assert after.facts.keys() == before.facts.keys()
    assert after.facts["tokeniser"] == before.facts["tokeniser"]
    assert {n: v.tolist() for n, v in after.arrays.items()} == {
        n: v.tolist() for n, v in before.arrays.items()
    }
    for old, new in zip(before.networks, after.networks, strict=True):
        assert old.keys() == new.keys()
        assert all(torch.equal(old[n], new[n]) for n in old)
