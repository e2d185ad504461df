"""Several inputs together: how they are named, read, weighted and refused."""

from __future__ import annotations

import csv
import json
import random
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from commands import Ensue, commands_in
from test_export_models import needs_node, no_node
from test_export_page import opened

import ensue as package
from ensue import Classifier, Regressor, TableModel
from ensue.data.pictures.images import write_image
from ensue.errors import ConfigError, DataError, EnsueError, OptionError
from ensue.export.model import TracedModel, write_model, write_traced
from ensue.export.programs import node_program
from ensue.runs.config import RunConfig
from ensue.tasks.explaining.attribution import Attribution, Attributions
from ensue.tasks.supervised.inputs.joined_learned import crossed, view_weights, weighted

WORDS = {True: ("lovely", "nice"), False: ("grim", "bad")}
ROLES: dict[str, Any] = {"text": ["title", "story"], "columns": ["price"], "image": "photo"}
TINY = {"model": {"hidden_size": 4, "embedding_size": 4}, "train": {"epochs": 2, "rate": 0.02}}
PHOTO = {"photo": {"blocks": "2 max", "hidden": [4]}}
SAID = ("--text", "title", "--text", "story", "--columns", "price", "--image", "photo")
SMALL = ("--hidden-size", "4", "--set", "inputs.photo.blocks=2 max", "--epochs", "2")


def picture(draw: random.Random, fact: bool) -> np.ndarray[Any, np.dtype[np.uint8]]:
    pixels = np.random.default_rng(draw.randrange(2**31)).integers(0, 60, (6, 6)).astype(np.uint8)
    at = draw.randrange(6)
    pixels[at if fact else slice(None), slice(None) if fact else at] = 255
    return pixels


def ads(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """What is sold stands in every input: words, price, the line of a photo, the tree."""
    draw, rows = random.Random(seed), []
    for k in range(count):
        fact = draw.random() < 0.5
        row = {
            "title": f"{draw.choice(('ad', 'offer'))} {draw.choice('abc')}",
            "story": f"a {draw.choice(WORDS[fact])} thing {draw.choice('xyz')} number {k}",
            "price": round(draw.gauss(2.0 if fact else -2.0, 1.0), 2),
            "photo": picture(draw, fact),
            "parse": f"(((the) ({draw.choice('xy')})) ((is) ({draw.choice(WORDS[fact])})))",
            "sold": "yes" if fact else "no",
            "score": round(3.0 * fact + draw.uniform(-0.5, 0.5), 3),
        }
        rows.append(row)
    return rows


def written(folder: Path, count: int = 90) -> Path:
    """The same as a file, with the photos next to it."""
    rows = ads(count)
    for k, row in enumerate(rows):
        write_image(folder / f"p{k}.png", row["photo"])
        row["photo"] = f"p{k}.png"
    path = folder / "ads.csv"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


@pytest.fixture(scope="module")
def model() -> Classifier:
    return Classifier(**TINY, inputs=PHOTO).fit(ads(60), **ROLES, label="sold")


# --- linear views --------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "label"), [(Classifier, "sold"), (Regressor, "score")])
def test_one_view_alone_is_the_linear_model_of_this_input(kind: Any, label: str) -> None:
    rows, validation = ads(60), ads(30, seed=2)
    mixed = {**TINY, "model": {**TINY["model"], "linear": "mixed"}}
    one = kind(**mixed).fit(rows, validation, text="story", label=label)
    joined = kind(**mixed).fit(rows, validation, text=["story"], label=label)
    (view,) = joined.learned.linear.views.values()
    assert np.array_equal(view.model.weights, one.learned.linear.model.weights)
    part = joined.reader.questions(validation)
    alone = one.reader.questions([row["story"] for row in validation])
    assert torch.equal(joined.learned.linear.scores(part), one.learned.linear.scores(alone))
    assert torch.equal(joined.learned.out_of_sample, one.learned.out_of_sample)


def test_one_view_of_columns_is_that_of_a_table() -> None:
    rows = [{key: row[key] for key in ("price", "sold", "photo")} for row in ads(60)]
    joined = Classifier(**TINY, inputs=PHOTO).fit(
        rows, rows, columns=["price"], image="photo", label="sold"
    )
    plain = [{key: row[key] for key in ("price", "sold")} for row in rows]
    table = TableModel(train={"epochs": 1}).fit(plain, plain, target="sold")
    view = joined.learned.linear.views["columns"]
    assert torch.equal(view.regression.weight, table.learned.linear.regression.weight)


def test_a_view_that_tells_nothing_counts_for_little() -> None:
    generator = torch.Generator().manual_seed(1)
    y = torch.randint(0, 2, (200,), generator=generator)
    right = torch.stack([-y.double(), y.double()], 1) * 2 + torch.randn(
        200, 2, generator=generator, dtype=torch.float64
    )
    noise = torch.randn(200, 2, generator=generator, dtype=torch.float64)
    weights, bias = view_weights([right, noise], y, "softmax")
    assert weights[0] > 4 * weights[1] > 0
    best = torch.nn.functional.cross_entropy(weighted([right, noise], weights, bias), y)
    for k in range(2):  # no step away is better by more than the prior allows
        for factor in (0.5, 2.0):
            other = weights.copy()
            other[k] *= factor
            cost = torch.nn.functional.cross_entropy(weighted([right, noise], other, bias), y)
            assert best <= cost + 0.01
    assert crossed([right, noise], y, "softmax").shape == (200, 2)


# --- settings ------------------------------------------------------------------------------------


def test_the_order_of_the_inputs_is_recorded(tmp_path: Path) -> None:
    one = Classifier(**TINY).fit(ads(40), text=["title", "story"], label="sold")
    other = Classifier(**TINY).fit(ads(40), text=["story", "title"], label="sold")
    assert (list(one.inputs), list(other.inputs)) == (["title", "story"], ["story", "title"])
    other.save(tmp_path / "model")
    again = Classifier.load(tmp_path / "model")
    assert list(again.learned.input.inputs) == ["story", "title"]
    assert again.config() == other.config()


def test_each_input_has_a_table_without_hidden_defaults(tmp_path: Path) -> None:
    data = {"train": ["a.csv"], "label": "sold", "image": "photo", "tree": "parse"}
    data |= {"text": ["title", "my story"], "columns": ["price"]}
    tables = {"task": "classify", "data": data, "model": {"hidden_size": 7}}
    config = RunConfig.of({**tables, "inputs": {"title": {"hidden_size": 5}}})
    text = tomllib.loads(config.text_of())
    assert list(text["inputs"]) == ["title", "my_story", "columns", "photo", "parse"]
    kinds = [table["kind"] for table in text["inputs"].values()]
    assert kinds == ["text", "text", "columns", "picture", "tree"]
    for name, settings in config.inputs.items():
        assert set(text["inputs"][name]) == set(type(settings).model_fields)
    sizes = [text["inputs"][name]["hidden_size"] for name in ("title", "my_story", "parse")]
    assert sizes == [5, 7, 128]
    assert RunConfig.of(text) == config


def test_names_of_inputs_do_not_meet() -> None:
    data = {"train": ["a.csv"], "label": "sold", "text": ["columns", "a b", "a-b"]}
    config = RunConfig.of({"task": "classify", "data": {**data, "columns": ["price"]}})
    assert list(config.inputs) == ["columns", "a_b", "a_b_2", "columns_2"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": {"titel": {}}}, "inputs.titel: unknown input, did you mean title?"),
        (
            {"inputs": {"title": {"hiden_size": 3}}},
            "inputs.title.hiden_size: unknown key, did you mean hidden_size?",
        ),
        ({"inputs": {"title": {"kind": "tree"}}}, "inputs.title.kind: expected one of text"),
        ({"inputs": {"title": 3}}, r"inputs.title: expected a table, \[inputs.title\], got 3"),
        (
            {"inputs": {"title": {"cell": "mine.py:Mine"}}},
            "inputs.title.cell: expected the name of a built-in cell",
        ),
        ({"task": "label"}, "data.text: several inputs are read together by classify and regress"),
        ({"base": {"path": ["lm"]}}, "base: expected none with several inputs"),
    ],
)
def test_settings_that_several_inputs_cannot_have(change: dict[str, Any], message: str) -> None:
    data = {"train": ["a.csv"], "label": "sold", "text": ["title", "story"]}
    with pytest.raises(ConfigError, match=message):
        RunConfig.of({"task": "classify", "data": data, **change})


def test_one_input_has_no_tables() -> None:
    data = {"train": ["a.csv"], "label": "sold", "text": "title"}
    with pytest.raises(ConfigError, match=r"\[inputs.title\]: only for a model of several inputs"):
        RunConfig.of({"task": "classify", "data": data, "inputs": {"title": {}}})
    both = {**data, "image": "photo", "second": "story"}
    with pytest.raises(ConfigError, match=r"data.second: expected none with several inputs"):
        RunConfig.of({"task": "classify", "data": both})


# --- rows ----------------------------------------------------------------------------------------


def test_frames_rows_and_files_are_answered_alike(model: Classifier, tmp_path: Path) -> None:
    path = written(tmp_path, 12)
    frame = pd.read_csv(path)
    frame["photo"] = [str(tmp_path / name) for name in frame["photo"]]
    answers = [answer.probabilities for answer in model.predict(str(path))]
    rows = [answer.probabilities for answer in model.predict(ads(12))]
    framed = model.predict(frame)
    assert answers == [pytest.approx(row, abs=1e-6) for row in rows]
    assert framed["label"].tolist() == [
        max(probabilities, key=probabilities.__getitem__) for probabilities in answers
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("p4.png", "gone.png"), r"ads.csv:6: photo: .*gone.png"),
        (("p4.png", "../p4.png"), "ads.csv:6: photo: expected the name of a picture inside"),
        (("p4.png", "/etc/passwd"), "ads.csv:6: photo: expected the name of a picture inside"),
        (("p4.png", "link.png"), "ads.csv:6: photo: expected the name of a picture inside"),
        (("p4.png", ""), "ads.csv:6: .*photo.*"),
        (("p4.png", "ads.csv"), "ads.csv:6: photo: .*ads.csv"),
        (("price", "prize"), "unknown column 'price': did you mean 'prize'?"),
    ],
)
def test_rows_that_cannot_be_read_are_named(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    (tmp_path / "in").mkdir()
    path = written(tmp_path / "in", 20)
    shutil.copy(tmp_path / "in" / "p4.png", tmp_path / "p4.png")
    (tmp_path / "in" / "link.png").symlink_to(tmp_path / "p4.png")
    path.write_text(path.read_text().replace(change[0], change[1], 1))
    with pytest.raises(EnsueError, match=message):
        Classifier(**TINY, inputs=PHOTO).fit(str(path), **ROLES, label="sold")


def test_rows_in_memory_need_every_input(model: Classifier) -> None:
    row = {key: value for key, value in ads(1)[0].items() if key != "story"}
    with pytest.raises(DataError, match="row:1: story: expected a column of this name, got none"):
        model.predict([row])
    with pytest.raises(DataError, match="row:1: expected a row by column name"):
        model.predict(["an ad"])
    with pytest.raises(OptionError, match="label: expected the column to predict"):
        Classifier(**TINY).fit(ads(9), text=["title", "story"])


def test_units_of_every_input_are_explained(model: Classifier) -> None:
    row = ads(1, seed=5)[0]
    attributions = model.explain(row, label="yes")
    begins = {name.partition(": ")[0] for name in attributions.tokens}
    assert begins == {"title", "story", "columns", "photo"}

    def odds(other: dict[str, Any]) -> float:
        p = model.predict([other])[0].probabilities
        return float(np.log(p["yes"] / p["no"]))

    (answer,) = attributions.answers
    words = row["story"].split()
    k = attributions.tokens.index(f"story: {words[1]}")
    without = {**row, "story": " ".join([words[0], *words[2:]])}
    assert answer.scores[k] == pytest.approx(odds(row) - odds(without), abs=1e-5)
    with pytest.raises(OptionError, match="several inputs are always explained by occlusion"):
        model.explain(row, method="gradient")
    with pytest.raises(OptionError, match="attention: expected a model of one input, got several"):
        model.attention(row)
    with pytest.raises(DataError, match=r"most_telling: .* got one of several inputs"):
        model.most_telling("yes")


def test_a_model_of_several_inputs_is_no_base(model: Classifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    with pytest.raises(OptionError, match="a model of several inputs cannot be a base"):
        Classifier(**TINY, base=tmp_path / "model").fit(ads(20), text="title", label="sold")
    with pytest.raises(OptionError, match="unlabelled=: expected a model of one text"):
        Classifier(**TINY).fit(ads(20), **ROLES, label="sold", unlabelled=["a text"])


# --- as commands ---------------------------------------------------------------------------------


def test_commands_train_resume_and_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensue: Ensue = commands_in(tmp_path, capsys, monkeypatch)
    written(tmp_path)
    command = ("train", "ads.csv", *SAID, "--label", "sold", *SMALL)
    code, _, err = ensue(*command, "--run", "whole")
    assert code == 0, err
    assert "sold from title + story + price + photo" in err
    first_epoch = (*command[:-1], "1", "--run", "parts")
    assert ensue(*first_epoch)[0] == 0
    code, _, err = ensue(*command, "--run", "parts", "--allow", "train.epochs")
    assert code == 0, err
    whole, parts = (package.load(tmp_path / name) for name in ("whole", "parts"))
    for one, other in zip(whole.networks, parts.networks, strict=True):
        pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
    assert ensue("evaluate", "whole")[0] == 0
    code, out, _ = ensue("predict", "whole", "ads.csv", "--json")
    assert (code, len(out.splitlines())) == (0, 90)
    first = json.loads(out.splitlines()[0])
    assert first["input"]["photo"].endswith("p0.png")
    with (tmp_path / "ads.csv").open() as file:
        line = json.dumps(next(csv.DictReader(file)))
    code, out, _ = ensue("predict", "whole", "--json", stdin=line.encode())
    assert code == 0
    assert json.loads(out)["input"].keys() >= {"title", "photo"}
    assert json.loads(out)["probabilities"] == pytest.approx(first["probabilities"])
    code, out, err = ensue("predict", "whole", "ads.csv", "--workers", "2")
    assert (code, out) == (2, "")
    assert "a run with several inputs answers in one process" in err
    for question in (("--file", "ads.csv", "--row", "3"), ("--text", line), ("--values", line)):
        code, out, _ = ensue("explain", "whole", *question)
        assert (code, "photo: " in out or "story: " in out) == (0, True)
    texts = ("--text", "title", "--text", "story")
    code, _, err = ensue("train", "ads.csv", *texts, "--label", "sold", "--task", "label")
    assert code == 2
    assert "data.text: several inputs are read together by classify and regress" in err


def test_one_named_input_is_explained_by_its_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensue: Ensue = commands_in(tmp_path, capsys, monkeypatch)
    written(tmp_path, 60)
    shutil.copy("ads.csv", "held.csv")
    quick = ("--validation", "held.csv", "--label", "score", "--epochs", "1", "--set")
    photo = ("--image", "photo", *quick, "inputs.photo.blocks=2 max", "--run", "photos")
    assert ensue("train", "ads.csv", *photo)[0] == 0
    parse = ("--tree", "parse", *quick, "inputs.parse.hidden_size=4", "--run", "trees")
    code, _, err = ensue("train", "ads.csv", *parse)
    assert code == 0, err
    tree = ads(1)[0]["parse"]
    for run, *question in (
        ("photos", "--image", "p3.png"),
        ("photos", "--values", '{"photo": "p3.png"}'),
        ("trees", "--tree", tree),
        ("trees", "--values", json.dumps({"parse": tree})),
    ):
        code, out, err = ensue("explain", run, *question)
        assert code == 0, err
        assert "what it adds to the value" in out
    code, _, err = ensue("explain", "photos", "--text", "a chair")
    assert (code, err) == (
        2,
        "OptionError: --text: expected a row by column name, got 'a chair': explain this run with "
        """--file FILE --row N, or --values '{"photo": "…"}'\n""",
    )
    code, _, err = ensue("explain", "photos", "--values", "{photo}")
    assert (code, "--values: expected a row as JSON" in err) == (2, True)


def test_names_of_units_are_whole_behind_the_name_of_their_input() -> None:
    answer = Attribution("yes", None, 0.5, 0.0, (0.5, 1.0, 0.25))
    tokens = ("description: comfortable", "description: extraordinarily_long", "title: chair")
    how = ("occlusion", "left out", "log-odds", "the whole answer")
    attributions = Attributions(tokens, (2, 1), *how, (answer,), inputs=("description", "title"))
    for text in (attributions.as_text(80), attributions.as_text(80, True)):
        for name in ("description: comfortable ", "description: extraordinarily…", "title: chair "):
            assert name in text
    assert "description: extraordinarily_long" in attributions.as_svg()


def test_the_target_decides_the_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensue: Ensue = commands_in(tmp_path, capsys, monkeypatch)
    written(tmp_path, 60)
    options = ("--columns", "price", "--tree", "parse", "--label", "score", "--epochs", "1")
    code, _, err = ensue("train", "ads.csv", *options, "--set", "inputs.parse.hidden_size=4")
    assert (code, "task: regress (score from price + parse)" in err) == (0, True)
    assert package.load(tmp_path / "run").inputs["parse"].hidden_size == 4


# --- exported ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scored() -> Regressor:
    roles = {"text": "story", "columns": ["price"], "tree": "parse", "image": "photo"}
    inputs = {**PHOTO, "parse": {"hidden_size": 4}}
    return Regressor(**TINY, inputs=inputs).fit(ads(50), **roles, label="score")


@pytest.fixture(scope="module")
def traced(scored: Regressor) -> TracedModel:
    return TracedModel(scored.task.exported(scored))


@pytest.mark.skipif(no_node(), reason="no Node.js")
@needs_node
def test_exports_answer_as_the_model(
    scored: Regressor, traced: TracedModel, tmp_path: Path
) -> None:
    rows = ads(4, seed=7)
    expected = [answer.value for answer in scored.predict(rows)]
    keys = ("story", "price", "parse")
    questions = [
        {key: row[key] for key in keys}
        | {"photo": {"shape": [1, *row["photo"].shape], "data": row["photo"].ravel().tolist()}}
        for row in rows
    ]
    write_traced(traced, tmp_path / "model.js", unchecked=True)
    program = (
        f'import {{ answer }} from "{tmp_path / "model.js"}";'
        f"console.log(JSON.stringify({json.dumps(questions)}.map((q) => answer(q).value)));"
    )
    words = [node_program(), "--input-type=module", "-e", program]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == pytest.approx(expected, abs=1e-4)
    write_traced(traced, tmp_path / "model.onnx", unchecked=True)
    plain = [{**row, "photo": row["photo"].tolist()} for row in rows]
    arguments = [json.dumps({key: row[key] for key in (*keys, "photo")}) for row in plain]
    words = [sys.executable, "predict.py", "model.onnx", *arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    values = [json.loads(line)["value"] for line in done.stdout.splitlines()]
    assert values == pytest.approx(expected, abs=1e-4)
    with pytest.raises(OptionError, match="streaming of this task"):
        write_model(scored, tmp_path / "fed.js", streaming=True)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium")
def test_the_page_asks_for_every_input(
    scored: Regressor, traced: TracedModel, tmp_path: Path
) -> None:
    row = ads(1, seed=7)[0]
    write_traced(traced, tmp_path / "model.html", unchecked=True)
    question = {key: row[key] for key in ("story", "price", "parse")}
    question["photo"] = row["photo"][None].tolist()
    answer, _ = opened(tmp_path / "model.html", json.dumps(question))
    assert answer["value"] == pytest.approx(scored.predict([row])[0].value, abs=1e-4)
