"""Models of tables: every kind of target under the same laws; columns, gaps, calibration."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ensue.data.rows import Place
from ensue.data.settings import DataSettings
from ensue.errors import ConfigError, DataError, OptionError
from ensue.metrics.classes import calibration_error
from ensue.tasks.codec import Packed, unpacked
from ensue.tasks.columns.cells import DisplayRow, Grid, cells_of
from ensue.tasks.columns.learned import TableColumns
from ensue.tasks.declarations import Unfit
from ensue.tasks.evaluation.calibration import coverage_of, reliability
from ensue.tasks.reader import QuestionFiles
from ensue.tasks.rows.collect import Example, collect
from ensue.tasks.rows.part import Numbers
from ensue.tasks.sample import Sample
from ensue.tasks.supervised.inputs.columns import CELLS
from ensue.tasks.supervised.learned import Learned
from ensue.tasks.supervised.network import LabelledBatch
from ensue.tasks.table import TASK, TableModel, TableSettings
from ensue.tasks.targets.kinds import TARGETS, look_like_numbers
from ensue.tasks.targets.target import Classified, Estimated
from ensue.training import Notice, Stopped, Update

Row = Mapping[str, Any]
TOWNS = {"Delft": 50.0, "Leiden": 80.0, "Gouda": 0.0}
SMALL: dict[str, Any] = {"hidden": [16], "activations": ["tanh"], "batch_rows": 32}
QUICK: dict[str, Any] = {"epochs": 12, "rate": 0.02, "patience": "off"}


def houses(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Prices by area, town and, in waves, by age; noise that grows with the area."""
    draw = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        town = str(draw.choice(list(TOWNS)))
        area, age = float(draw.uniform(40, 200)), int(draw.integers(0, 60))
        noise = draw.normal() * area / 10
        price = 100 + 2 * area + TOWNS[town] + 30 * math.sin(age / 8) + noise
        rows.append({"area": area, "age": age, "town": town, "price": price})
    return rows


def with_target(kind: str, rows: list[dict[str, Any]]) -> list[Row]:
    """The same rows with a target of this kind instead of the price."""
    rows_with_target = []
    for row in rows:
        plain = {name: v for name, v in row.items() if name != "price"}
        target: Any = row["price"]
        if kind == "class":
            target = "dear" if row["price"] > 400 else "fair" if row["price"] > 300 else "cheap"
        elif kind == "two":
            target = row["price"] > 350
        elif kind == "several":
            is_present = {"big": row["area"] > 120, "old": row["age"] > 30}
            target = [name for name, present in is_present.items() if present]
        rows_with_target.append({**plain, "target": target})
    return rows_with_target


KINDS: dict[str, dict[str, Any]] = {
    "number": {},
    "mixture": {"distribution": "mixture", "categories": "one-hot"},
    "class": {"skips": [[0, 2]]},
    "two": {"activations": ["maxout(2)*8 + prelu"]},
    "several": {"dropout_layers": 0.2},
}


@lru_cache
def fitted(kind: str) -> TableModel:
    rows = with_target(kind, houses(240))
    return TableModel(model={**SMALL, **KINDS[kind]}, train=QUICK).fit(rows, target="target")


def values(answers: list[Any]) -> list[float]:
    numbers: list[float] = []
    for answer in answers:
        if isinstance(answer, Estimated):
            numbers += [answer.value, answer.low, answer.high]
        else:
            assert isinstance(answer, Classified)
            numbers += [answer.probabilities[name] for name in sorted(answer.probabilities)]
    return numbers


# --- laws of every kind ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_and_says_what_it_must_beat(kind: str) -> None:
    evaluation = fitted(kind).evaluate(with_target(kind, houses(150, 1)))
    plain, linear, *_ = evaluation.baselines.values()
    score = evaluation.scores[evaluation.main].value
    sign = 1 if evaluation.higher_is_better else -1
    assert sign * score > sign * plain
    assert sign * linear > sign * plain
    text = evaluation.as_text()
    assert "linear model" in text
    assert ("intervals      nominal" in text) == (kind in ("number", "mixture"))
    assert ("reliability" in text) == (kind not in ("number", "mixture"))
    assert evaluation.as_json()["rows"] == 150


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_its_rows(kind: str) -> None:
    model, rows = fitted(kind), with_target(kind, houses(7, 2))
    singles = [model.predict([row])[0] for row in rows]
    assert values(model.predict(rows)) == pytest.approx(values(singles), rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_it_answers_the_same(kind: str, tmp_path: Path) -> None:
    model, rows = fitted(kind), with_target(kind, houses(20, 2))
    model.save(tmp_path / "model")
    again = TableModel.load(tmp_path / "model")
    assert again.predict(rows) == model.predict(rows)
    assert again.evaluate(rows).as_json() == model.evaluate(rows).as_json()
    assert again.summary() == model.summary()


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_columns_and_further_ones_do_not_matter(kind: str) -> None:
    model, rows = fitted(kind), with_target(kind, houses(5, 2))
    turned = [{**dict(reversed(row.items())), "further": "?"} for row in rows]
    assert model.predict(turned) == model.predict(rows)
    columns = {name: [row[name] for row in rows] for name in ("area", "age", "town")}
    assert model.predict(columns) == model.predict(rows)


def moved_to_float64(batch: LabelledBatch) -> LabelledBatch:
    inputs = {n: v.double() if v.is_floating_point() else v for n, v in batch.inputs.items()}
    targets = batch.targets
    return replace(
        batch,
        inputs=inputs,
        targets=targets.double() if targets.is_floating_point() else targets,
    )


@pytest.mark.parametrize("kind", ["number", "several"])
def test_the_cost_gradchecks(kind: str) -> None:
    model = fitted(kind)
    network = model.fresh(1).double().eval()
    part = model.reader.labelled(with_target(kind, houses(6, 3)))
    batch = moved_to_float64(TASK.labelled_rows(part, model).batch(range(len(part))))
    parameters = tuple(network.reader.layers.parameters())
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.autograd.gradcheck(lambda *_: network(batch, {})[0], parameters)
    finally:
        torch.set_default_dtype(default)


def test_interrupted_and_resumed_it_is_the_uninterrupted_one(tmp_path: Path) -> None:
    import signal

    rows = with_target("number", houses(80))

    def stop(row: object) -> None:
        if isinstance(row, Update) and row.update == 4:
            signal.raise_signal(signal.SIGTERM)

    made = {"model": SMALL, "train": {**QUICK, "epochs": 4}}
    whole = TableModel(**made).fit(rows, target="target", folder=tmp_path / "whole")
    with pytest.raises(Stopped):
        TableModel(**made).fit(rows, target="target", folder=tmp_path / "broken", watchers=[stop])
    resumed = TableModel(**made).fit(rows, target="target", folder=tmp_path / "broken")
    assert resumed.predict(rows) == whole.predict(rows)
    histories = [(tmp_path / name / "history.jsonl").read_bytes() for name in ("whole", "broken")]
    assert histories[0] == histories[1]


def test_members_answer_with_their_mean() -> None:
    rows = with_target("number", houses(60))
    made = {"model": SMALL, "train": {**QUICK, "epochs": 2}}
    both = TableModel(**made, members=2).fit(rows, target="target")
    answers = []
    for network in both.networks:
        alone = TableModel(**made)
        alone._learned, alone.networks = both.learned, [network]
        answers.append(alone.predict(rows[:3]))
    for answer, one, other in zip(both.predict(rows[:3]), *answers, strict=True):
        assert answer.value == pytest.approx((one.value + other.value) / 2)
        assert answer.low == pytest.approx((one.low + other.low) / 2)


# --- numbers ---------------------------------------------------------------------------------


def test_scores_of_numbers_are_their_definitions() -> None:
    model, rows = fitted("number"), with_target("number", houses(90, 4))
    gold = np.array([row["target"] for row in rows])
    answers = model.predict(rows)
    wrong = np.array([answer.value for answer in answers]) - gold
    evaluation = model.evaluate(rows)
    assert evaluation.scores["rmse"].value == pytest.approx(np.sqrt((wrong**2).mean()))
    assert evaluation.scores["mae"].value == pytest.approx(np.abs(wrong).mean())
    assert evaluation.others["r2"] == pytest.approx(1 - (wrong**2).mean() / gold.var())
    inside = [answer.low <= y <= answer.high for answer, y in zip(answers, gold, strict=True)]
    assert f"{100 * np.mean(inside):9.1f} %" in "\n".join(evaluation.notes)
    assert (
        evaluation.scores["rmse"].low
        < evaluation.scores["rmse"].value
        < evaluation.scores["rmse"].high
    )


def test_the_log_loss_is_in_the_units_of_the_target() -> None:
    """−log of the density of the prices themselves, whatever they were scaled by."""
    model, rows = fitted("number"), with_target("number", houses(50, 5))
    total = 0.0
    for answer, row in zip(model.predict(rows), rows, strict=True):
        spread = (answer.high - answer.low) / (2 * 1.6448536)
        total += ((row["target"] - answer.value) / spread) ** 2 / 2 + math.log(spread)
    expected = total / len(rows) + 0.5 * math.log(2 * math.pi)
    assert model.evaluate(rows).others["log loss"] == pytest.approx(expected, abs=1e-3)


def test_wide_noise_gets_wide_intervals() -> None:
    model = TableModel(model=SMALL, train={**QUICK, "epochs": 40}).fit(houses(400), target="price")
    plain = {"age": 10, "town": "Delft"}
    small, large = model.predict([{"area": 50.0, **plain}, {"area": 190.0, **plain}])
    assert large.high - large.low > 1.5 * (small.high - small.low)


# --- columns ---------------------------------------------------------------------------------


def encoded(rows: list[Row], settings: TableSettings, others: list[Row]) -> dict[str, Any]:
    numbers = Numbers()
    train, part = (
        collect(
            (Example(cells_of(row, "row"), None, Place("row", k)) for k, row in enumerate(part, 1)),
            CELLS,
            numbers,
        )
        for part in (rows, others)
    )
    columns = TableColumns.learn(Grid.of(train), settings)
    return columns.encode(Grid.of(part), settings)


def test_scales_and_categories_are_those_of_the_training_part() -> None:
    rows: list[Row] = [{"a": 1.0, "b": "x"}, {"a": 3.0, "b": "x"}, {"a": 5.0, "b": "y"}]
    arrays = encoded(
        rows, TableSettings(min_count=1), [{"a": 3.0, "b": "y"}, {"a": 99.0, "b": "z"}]
    )
    spread = np.std([1, 3, 5])
    np.testing.assert_allclose(arrays["numbers"][:, 0], [0, 96 / spread], rtol=1e-6)
    assert arrays["categories"].tolist() == [[2], [0]]  # x is 1, y is 2, z is not known
    rare = encoded(rows, TableSettings(min_count=2), rows)
    assert rare["categories"].ravel().tolist() == [1, 1, 0]


def test_gaps_are_refused_or_marked() -> None:
    rows: list[Row] = [{"a": 1.0, "b": "x"}, {"a": None, "b": "x"}, {"a": 3.0, "b": ""}]
    with pytest.raises(DataError) as error:
        encoded(rows, TableSettings(), rows)
    text = str(error.value)
    assert text.startswith("2 columns of the table cannot be read")
    assert "row:2: column 'a': expected a value, got ''; fill it in, leave the row out" in text
    assert "row:3: column 'b': expected a value" in text
    with pytest.raises(DataError, match=r"row:2: column 'a'.*\(empty in 3 of 5 rows\)"):
        encoded([rows[0], *[rows[1]] * 3, rows[0]], TableSettings(), rows)
    arrays = encoded(rows, TableSettings(missing="indicator", min_count=1), rows)
    np.testing.assert_allclose(arrays["numbers"], [[-1, 0], [0, 1], [1, 0]], atol=1e-6)
    assert arrays["categories"].ravel().tolist() == [1, 1, 2]


def test_numbers_may_be_names_and_columns_left_out() -> None:
    rows: list[Row] = [{"a": 1, "b": 2}, {"a": 2, "b": 2}, {"a": 1, "b": 3}]
    arrays = encoded(rows, TableSettings(categorical=["a"], leave_out=["b"], min_count=1), rows)
    assert arrays["numbers"].shape == (3, 0)
    assert arrays["categories"].ravel().tolist() == [1, 2, 1]


def test_no_row_of_another_part_changes_an_encoding() -> None:
    rows = with_target("number", houses(60))
    made = {"model": SMALL, "train": {**QUICK, "epochs": 1}}
    other = [{**row, "area": 1e6, "town": "Rome"} for row in rows[50:]]
    first = TableModel(**made).fit(rows[:50], rows[50:], target="target")
    second = TableModel(**made).fit(rows[:50], other, target="target")
    assert first.learned.input.columns == second.learned.input.columns
    assert first.learned.target == second.learned.target
    weights = [model.learned.linear.regression.weight for model in (first, second)]
    assert torch.equal(*weights)


def test_remarks_are_made() -> None:
    rows = [{**r, "twice": 2 * r["target"], "name": f"n{k}"} for k, r in
            enumerate(with_target("number", houses(40)))]  # fmt: skip
    heard: list[str] = []
    TableModel(model=SMALL, train={**QUICK, "epochs": 1}).fit(
        rows,
        target="target",
        watchers=[lambda r: heard.append(r.text) if isinstance(r, Notice) else None],
    )
    text = "\n".join(heard)
    assert "column 'name' has a different value in almost every row" in text
    assert "column 'twice' predicts the target almost exactly" in text


@pytest.mark.parametrize("cell", ["dear", "1,5"])
def test_a_column_of_numbers_with_a_cell_that_is_none_is_told(cell: str) -> None:
    rows = with_target("number", houses(60))
    rows = [{**row, "price": cell if k == 7 else f"{k / 7:.2f}"} for k, row in enumerate(rows)]
    heard: list[str] = []
    TableModel(model=SMALL, train={**QUICK, "epochs": 1}).fit(
        rows,
        rows,
        target="target",
        watchers=[lambda r: heard.append(r.text) if isinstance(r, Notice) else None],
    )
    message = next(
        line for line in heard if line.startswith("column 'price' is read as categories")
    )
    assert f"most of its cells are numbers, but not all (row:8: {cell!r})" in message


def test_what_targets_look_like() -> None:
    assert look_like_numbers(["1.5", "2"])
    assert look_like_numbers([str(k) for k in range(30)])
    assert not look_like_numbers(["1", "2", "3"])
    assert not look_like_numbers(["1.5", "dear"])
    rows = [{**row, "target": k % 3} for k, row in enumerate(with_target("number", houses(40)))]
    train = {**QUICK, "epochs": 1}
    guessed = TableModel(model=SMALL, train=train).fit(rows, target="target")
    assert guessed.learned.target.kind == "class"
    model = TableModel(model={**SMALL, "target": "number"}, train=train).fit(rows, target="target")
    assert model.learned.target.kind == "number"


# --- calibration -----------------------------------------------------------------------------


def test_reliability_is_its_definition_and_sums_to_the_calibration_error() -> None:
    draw = np.random.default_rng(1)
    p = draw.dirichlet([1, 1, 1], 500)
    gold = draw.integers(3, size=500)
    right, sure = p.argmax(1) == gold, p.max(1)
    bins = reliability(right, sure, 15)
    assert sum(group.rows for group in bins) == 500
    error = sum(group.rows * abs(group.accuracy - group.confidence) for group in bins) / 500
    assert error == pytest.approx(calibration_error(gold, p))
    assert reliability(np.array([True]), np.array([0.5]), 10)[0].high == 0.5


def test_held_counts_what_lies_inside() -> None:
    coverage = coverage_of(np.array([0.0, 1.0, 5.0]), np.zeros(3), np.array([1.0, 1.0, 2.0]), 0.9)
    assert coverage == (0.9, pytest.approx(2 / 3), pytest.approx(4 / 3))


# --- messages --------------------------------------------------------------------------------


ROWS = with_target("number", houses(30))


@pytest.mark.parametrize(
    ("rows", "model", "message"),
    [
        ([{"a": 1}], {}, "row:1: expected a column 'target', the target, got a"),
        (
            [*ROWS, {**ROWS[0], "target": None}],
            {},
            "row:31: expected a value of 'target', got None",
        ),
        ([*ROWS, {**ROWS[0], "target": "n"}], {"target": "number"}, "row:31: the target: expected"),
        ([*ROWS, 3], {}, "row:31: expected a row by column name, such as {'age': 39}, got 3"),
        (
            [*ROWS, {**ROWS[0], "area": [1]}],
            {},
            "row:31: column 'area': expected a text, a number or a date",
        ),
        (ROWS, {"numeric": ["town"]}, "column 'town': expected a finite number, got"),
        (ROWS, {"numeric": ["areas"]}, "unknown column 'areas': did you mean 'area'?"),
        (ROWS, {"leave_out": ["area", "age", "town"]}, "expected columns to learn from"),
        ([{**row, "target": 1.5} for row in ROWS], {}, "expected a target with different numbers"),
        (
            {"a": [1, 2], "target": [1]},
            {},
            "expected columns of the same length, got a 2, target 1",
        ),
    ],
)
def test_wrong_tables_are_told(rows: Any, model: dict[str, Any], message: str) -> None:
    held_out = ROWS[:5] if isinstance(rows, list) else None
    with pytest.raises(DataError) as error:
        TableModel(model={**SMALL, **model}, train=QUICK).fit(rows, held_out, target="target")
    assert message in str(error.value)


def test_wrong_questions_are_told() -> None:
    model = fitted("number")
    with pytest.raises(DataError) as error:
        model.predict([{"area": 3.0, "age": 3}])
    assert "row:1: there is no column 'town', which the model was trained with" in str(error.value)
    with pytest.raises(DataError) as error:
        model.predict([ROWS[0], {"area": "big", "age": 3, "town": "Delft"}])
    assert "row:2: column 'area': expected a finite number, got 'big'" in str(error.value)
    absent = model.predict([ROWS[0], {"area": 3, "age": 3}])[1]
    empty = model.predict([ROWS[0], {"area": 3, "age": 3, "town": ""}])[1]
    assert absent.value == pytest.approx(empty.value, abs=1e-6)
    with pytest.raises(OptionError, match="this table model has not been fitted"):
        TableModel().predict([{}])
    assert model.predict([]) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"activations": ["rellu"]}, "unknown activation 'rellu'"),
        ({"activations": ["relu"] * 3}, "one for each of 2 hidden layers, got 3"),
        ({"skips": [[0, 5]]}, "skips: expected pairs (from, to)"),
        ({"init": "book"}, "unknown initialisation 'book'"),
        ({"hidden": [0]}, "model.hidden.0: expected a number ≥ 1, got 0"),
        ({"numeric": ["a"], "categorical": ["a"]}, "categorical: a: also in numeric; name each"),
        ({"target": "numbr"}, "model.target: expected one of auto, number, class, several, got"),
    ],
)
def test_wrong_settings_are_told(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        TableModel(model=settings)
    assert message in str(error.value)


def test_settings_draw_nothing_and_read_their_own_table() -> None:
    before = torch.get_rng_state()
    settings = TableSettings(skips=[(0, 2)], hidden=[4], activations=["prelu"], embedding_size=None)
    assert torch.equal(before, torch.get_rng_state())
    assert TableSettings.of(settings.table(), "model") == settings


def test_the_target_must_be_named() -> None:
    with pytest.raises(OptionError, match="target: expected the column to predict, target="):
        TableModel().fit(ROWS)
    with pytest.raises(OptionError, match="unknown role of a column 'targt': did you mean 'targ"):
        TableModel().fit(ROWS, targt="target")
    rows = [{"cost" if name == "target" else name: v for name, v in r.items()} for r in ROWS]
    model = fitted("number")
    assert model.evaluate(rows, target="cost").as_json() == model.evaluate(ROWS).as_json()


def test_a_score_of_another_kind_of_target_cannot_be_watched() -> None:
    with pytest.raises(ConfigError, match=r"train\.watch: expected one of this model's scores"):
        TableModel(model=SMALL, train={**QUICK, "watch": "accuracy"}).fit(ROWS, target="target")
    with pytest.raises(OptionError, match=r"train\.watch: expected one of cost, mae, rmse, r2"):
        TableModel(train={"watch": "bleu"})
    assert TASK.metrics[0].name == "cost"
    assert len({metric.name for metric in TASK.metrics}) == len(TASK.metrics)


def test_an_unknown_kind_of_target_is_told() -> None:
    facts = Packed({"target": {"kind": "numbers"}})
    message = r"^target\.kind: expected one of 'number', 'class', 'several', got 'numbers'$"
    with pytest.raises(Unfit, match=message):
        unpacked(Learned, facts, input=None, targets=TARGETS, linear_of=lambda target: None)
    assert list(TARGETS) == [target.kind for target in TARGETS.values()]


def test_lines_are_rows_as_json() -> None:
    model = fitted("number")
    part = model.reader.question_lines(['{"area": 93, "age": 3, "town": "Delft"}'])
    assert TASK.answers(part, model) == model.predict([{"area": 93, "age": 3, "town": "Delft"}])
    with pytest.raises(DataError) as error:
        model.reader.question_lines(["93,3,Delft"])
    assert str(error.value) == (
        'standard input: expected a row as JSON, such as {"age": 39}, got '
        "'93,3,Delft'; or give a file with a header"
    )


def test_unknown_classes_of_a_test_part_are_mistakes() -> None:
    rows = with_target("class", houses(30, 7))
    evaluation = fitted("class").evaluate([*rows, {**rows[0], "target": "priceless"}])
    assert evaluation.unknown == 1
    assert evaluation.scores["accuracy"].value < 1
    assert "1 row has labels that the training part does not have" in evaluation.as_text()


def test_answers_are_lines() -> None:
    cells = DisplayRow.of(cells_of({"area": 93.0, "town": "The  Hague"}, "row:1"))
    line = Estimated(348.123456, 320.0, 370.5, 0.9).as_line(cells)
    assert line == "348.123\t320\t370.5\tarea=93.0 town=The Hague"
    line = Classified("dear", ("dear",), {"dear": 0.75, "fair": 0.25}).as_line(cells)
    assert line == "dear\t0.7500\tarea=93.0 town=The Hague"
    assert Estimated(1.0, 0.5, 2.0, 0.9).as_line("a  text") == "1\t0.5\t2\ta text"
    assert Estimated(1.0, 0.5, 2.0, 0.9).as_line(None) == "1\t0.5\t2"


# --- from a file, by the commands ------------------------------------------------------------


def write_houses(path: Path, count: int = 200) -> Path:
    lines = ["area,age,town,price"]
    lines += [f"{r['area']:.2f},{r['age']},{r['town']},{r['price']:.2f}" for r in houses(count)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_tables_are_recognised(tmp_path: Path) -> None:
    file = write_houses(tmp_path / "houses.csv")

    def sample(**data: Any) -> Sample:
        return Sample(DataSettings(train=[str(file)], **data))

    guess = TASK.recognise(sample(label="price"))
    assert guess is not None
    assert guess.why == "price from 3 columns"
    assert guess.tables == {"model": {"target": "number"}}
    assert TASK.infer(sample(label="price", group="town")).why == "price from 2 columns"
    assert TASK.recognise(sample(label="town")) is not None, "all others are numbers"
    recognised = TASK.recognise(sample())
    assert recognised is not None
    assert recognised.others, "no target was named"
    assert [reading.data["label"] for reading in TASK.infer(sample()).readings] == [
        reading.data["label"] for reading in recognised.readings
    ]
    assert TASK.recognise(sample(label="price", text="town")) is None, "it is a text"
    assert TASK.infer(sample(label="town", separator=";")).tables["model"]["target"] == "several"
    assert TASK.infer(sample(label="town")).tables["model"]["target"] == "auto"
    (tmp_path / "alone.csv").write_text("town\nA\nB\nA\n")
    with pytest.raises(DataError, match="name it with --label"):
        TASK.infer(Sample(DataSettings(train=[str(tmp_path / "alone.csv")])))


def test_a_file_has_the_same_cells_as_rows_in_memory(tmp_path: Path) -> None:
    file = write_houses(tmp_path / "houses.csv", 60)
    data = DataSettings(train=[str(file)], label="price", group="town")
    model = TableModel()
    files = model.reader.files(data)
    train = files.part("train")
    parts = [train, *(files.part(name, like=train) for name in ("validation", "test"))]
    assert sum(map(len, parts)) == 60
    names = train.numbers.token_names
    assert {names[k].partition("\t")[0] for k in train.inputs.values} == {"area", "age"}
    (questions,) = fitted("number").reader.question_files(QuestionFiles([str(file)], data))
    assert questions.shown_inputs is not None
    row = houses(1)[0]
    assert questions.shown_inputs[0] == {"area": f"{row['area']:.2f}", "age": str(row["age"])}


def ensue(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    from ensue.cli import main

    with pytest.raises(SystemExit) as end:
        main(words)
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def test_a_table_of_numbers_is_trained_tested_and_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_houses(tmp_path / "houses.csv")
    quick = ["--set", "train.epochs=3", "--set", "model.hidden=[8]"]
    command = ["train", "houses.csv", "--label", "price", "--run", "r1", *quick]
    code, out, err = ensue(capsys, *command)
    assert code == 0, err
    assert "task: table (price from 3 columns)" in err
    assert "model.target: number" in err
    assert "further scores: cost" in out
    assert ensue(capsys, *command)[0] == 0  # the same command finds the run at its end
    code, out, _ = ensue(capsys, "evaluate", "r1")
    assert code == 0
    assert "rmse" in out
    assert "linear model" in out
    (tmp_path / "new.csv").write_text("town,age,area\nDelft,3,93\nRome,3,93\n")
    code, out, _ = ensue(capsys, "predict", "r1", "new.csv", "--json")
    assert code == 0
    answer = json.loads(out.splitlines()[0])
    assert answer["low"] < answer["value"] < answer["high"]
    code, out, _ = ensue(capsys, "predict", "r1", "new.csv")
    assert out.splitlines()[1].endswith("town=Rome age=3 area=93")


def test_a_row_is_shown_by_its_columns_without_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_houses(tmp_path / "houses.csv")
    quick = ["--set", "train.epochs=1", "--set", "model.hidden=[8]"]
    assert ensue(capsys, "train", "houses.csv", "--label", "price", "--run", "r1", *quick)[0] == 0
    (tmp_path / "new.csv").write_text("town,price,age,area\nDelft,9,3,93\n")
    row = {"town": "Delft", "age": "3", "area": "93"}
    _, out, _ = ensue(capsys, "predict", "r1", "new.csv", "--json")
    assert json.loads(out)["input"] == row
    _, out, _ = ensue(capsys, "predict", "r1", "new.csv")
    assert out.endswith("\ttown=Delft age=3 area=93\n")
    line = json.dumps({"town": "Delft", "age": 3, "area": 93})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line.encode())))
    _, out, _ = ensue(capsys, "predict", "r1", "--json")
    assert json.loads(out)["input"] == json.loads(line)


def test_a_table_with_classes_is_asked_for_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_houses(tmp_path / "houses.csv")
    quick = ["--set", "train.epochs=2", "--set", "model.hidden=[8]", "--set", "model.min_count=1"]
    command = ["train", "houses.csv", "--task", "table", "--label", "town", "--run", "r2", *quick]
    code, _, err = ensue(capsys, *command)
    assert code == 0, err
    code, out, _ = ensue(capsys, "evaluate", "r2", "--validation")
    assert code == 0
    assert "majority class" in out
    code, out, _ = ensue(capsys, "predict", "r2", "houses.csv")
    assert out.splitlines()[0].split("\t")[0] in TOWNS


def test_a_class_that_training_has_not_is_left_out_of_validation() -> None:
    rows = with_target("class", houses(60))
    held_out = [*rows[50:], {**rows[0], "target": "priceless"}]
    heard: list[str] = []
    made = TableModel(model=SMALL, train={**QUICK, "epochs": 1})
    watchers = [lambda row: heard.append(row.text) if isinstance(row, Notice) else None]
    made.fit(rows[:50], held_out, target="target", watchers=watchers)
    message = (
        "1 row of the validation part left out, with labels that the training part does not have: "
        "row:11"
    )
    assert message in heard
    with pytest.raises(DataError, match="; no row is left: is this the right column"):
        made.fit(rows[:50], held_out[-1:], target="target")


def test_one_row_alone_with_a_gap_is_answered_as_among_others() -> None:
    rows = [{"a": k / 30 if k % 5 else None, "c": "xy"[k % 2], "y": k} for k in range(40)]
    model = TableModel(model={"missing": "indicator"}, train={"epochs": 1}).fit(rows, target="y")
    questions = [{"a": None, "c": "x"}, {"a": 0.5, "c": "y"}]
    alone = [model.predict([row])[0].value for row in questions]
    assert alone == pytest.approx([answer.value for answer in model.predict(questions)], abs=1e-5)


def test_a_row_in_place_of_rows_is_told() -> None:
    model = TableModel(train={"epochs": 1}).fit(ROWS, target="target")
    with pytest.raises(DataError, match=r"expected a list of values, .*; one row alone is \[row\]"):
        model.predict({"a": 0.5, "b": "x"})


def test_a_run_s_folder_is_its_model(tmp_path: Path) -> None:
    model = TableModel(train={"epochs": 1}).fit(ROWS, target="target")
    model.save(tmp_path / "run" / "model")
    assert TableModel.load(tmp_path / "run").summary() == model.summary()
