"""Series in files: what they tell of themselves, how they are read, and their parts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ensue.data.settings import DataSettings
from ensue.errors import DataError
from ensue.tasks.forecast.draws import ForecastDraws
from ensue.tasks.forecast.part import joined
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.forecast.tables.reading import part_of_files
from ensue.tasks.forecast.task import TASK, Forecaster
from ensue.tasks.reader import QuestionFiles
from ensue.tasks.sample import Sample


def settings_of(**options: Any) -> ForecastSettings:
    return ForecastSettings.of({"targets": ["y"], "look_back": 4, "horizon": 2, **options}, "model")


# --- what the data tell --------------------------------------------------------------------


def sample_of(tmp_path: Path, text: str, model: dict[str, Any], **data: Any) -> Sample:
    path = tmp_path / "series.csv"
    path.write_text(text, "utf-8")
    return Sample(DataSettings.of({"train": [str(path)], **data}, "data"), {"model": model})


MONTHS = "month,sales,price\n1960-01,1,2\n1960-02,3,4\n"


def test_the_label_names_the_targets_and_the_time_is_found(tmp_path: Path) -> None:
    guess = TASK.infer(sample_of(tmp_path, MONTHS, {}, label="sales, price"))
    settings = guess.tables["model"]
    assert (settings["time"], settings["targets"]) == ("month", ["sales", "price"])
    assert guess.data == {"label": ""}
    options = {"time": "month", "targets": ["price"], "horizon": 1, "split": [0.7, 0.1, 0.2]}
    named = TASK.infer(sample_of(tmp_path, MONTHS, options))
    assert (named.data, named.tables) == ({}, {})
    alone = TASK.infer(sample_of(tmp_path, "a,b\nx,1.5\ny,2\n", {}))
    assert alone.tables["model"]["targets"] == ["b"]
    assert "time" not in alone.tables["model"]


def test_a_series_is_recognised_by_the_words_of_forecasting(tmp_path: Path) -> None:
    assert TASK.recognise(sample_of(tmp_path, MONTHS, {}, label="sales")) is None  # two rows
    recognised = TASK.recognise(sample_of(tmp_path, MONTHS, {"horizon": 3}, label="sales"))
    assert recognised is not None
    assert recognised.why == "--horizon given; a series of 2 steps, one per month"
    assert recognised.tables["model"]["targets"] == ["sales"]


def test_what_is_no_number_is_missing_where_bad_rows_are_skipped(tmp_path: Path) -> None:
    """The advice of the message can be followed."""
    settings = settings_of(time="month")
    path = tmp_path / "series.csv"
    path.write_text("month,y\n1960-01,1\n1960-02,x\n1960-03,3,3\n1960-04,4\n", "utf-8")
    with pytest.raises(DataError, match="use --skip-bad"):
        part_of_files([path], settings)
    part = part_of_files([path], settings, skip_bad=True)
    np.testing.assert_array_equal(part.values[:, 0], [1, np.nan, np.nan, 4])
    assert part.series.times == ("1960-01", "1960-02", "1960-03", "1960-04")


# --- read ------------------------------------------------------------------------------------


def test_a_file_is_read_and_its_faults_have_lines(tmp_path: Path) -> None:
    settings = settings_of(time="month", known=["k"], family="direct")
    path = tmp_path / "series.csv"
    path.write_text("month,y,k,words\n1960-01,1,2,a\n1960-02,3,4,b\n", "utf-8")
    part = part_of_files([path], settings)
    series = part.series
    np.testing.assert_array_equal(series.values, [[1, 2], [3, 4]])
    assert series.times == ("1960-01", "1960-02")
    assert part.names[1] == f"{path}:3"
    future = tmp_path / "future.csv"
    future.write_text("month,k\n1960-03,6\n", "utf-8")
    longer = joined(part, part_of_files([future], settings, ahead=True))
    whole = longer.series
    assert whole.times[-1] == "1960-03"
    assert np.isnan(whole.values[2, 0])
    assert longer.names[2] == f"{future}:2"
    path.write_text("month,y,k\n1960-01,1,2\n1960-02,,4\n", "utf-8")
    np.testing.assert_array_equal(part_of_files([path], settings).values, [[1, 2], [np.nan, 4]])
    path.write_text("month,y,k\n1960-01,1,2\n1960-02,soon,4\n", "utf-8")
    with pytest.raises(DataError) as error:
        part_of_files([path], settings)
    assert str(error.value) == (
        f"1 problem in {path}\n"
        f"  {path}:3: column 'y': expected a finite number, got 'soon'\n"
        "Fix the lines, or use --skip-bad to leave them out."
    )


def semicolons(path: Path, rows: range) -> str:
    """Latin-1, semicolons, and no line with names: month, y, k, place."""
    months = [f"{1960 + k // 12}-{k % 12 + 1:02};{k % 7};{k % 3};Köln" for k in rows]
    path.write_text("\n".join(months) + "\n", "latin-1")
    return str(path)


def test_every_file_is_read_as_the_data_table_says(tmp_path: Path) -> None:
    """Those to train on, to test on, to continue, and those with what is known ahead."""
    model = Forecaster(
        model={
            "targets": ["y"],
            "known": ["k"],
            "time": "month",
            "look_back": 4,
            "horizon": 2,
            "hidden_size": 4,
        },
        train={"epochs": 1, "most_updates": 1},
    )
    data = DataSettings.of(
        {
            "train": [semicolons(tmp_path / "train.csv", range(60))],
            "test": [semicolons(tmp_path / "test.csv", range(60, 80))],
            "delimiter": ";",
            "encoding": "latin-1",
            "header": ["month", "y", "k", "place"],
        },
        "data",
    )
    files = model.reader.files(data)
    train = files.part("train")
    validation = files.part("validation", like=train)
    assert (len(train), validation.begin, len(validation)) == (42, 42, 6)
    model.fit_parts(train, validation)
    test = files.part("test")
    assert (len(test), test.begin) == (20, 0)
    assert model.evaluate_part(test, {}).rows == 20 - model.history - 2 + 1
    future = tmp_path / "future.csv"
    future.write_text("1966-09;;2;Köln\n1966-10;;0;Köln\n", "latin-1")
    (questions,) = model.reader.question_files(QuestionFiles([], data), {"future": [str(future)]})
    # its files one after another
    assert questions.part.series.times[59:61] == ("1964-12", "1965-01")
    assert [step.time for step in TASK.answers(questions.part, model)] == ["1966-09", "1966-10"]
    near = tmp_path / "near.csv"
    near.write_text("1965-01;;2;Köln\n1965-02;;0;Köln\n", "latin-1")
    (short,) = model.reader.question_files(QuestionFiles(data.train, data), {"future": [str(near)]})
    assert [step.time for step in TASK.answers(short.part, model)] == ["1965-01", "1965-02"]
    assert "1965-" in ForecastDraws().answers(model, short.part, {})
    assert "1966-0" in ForecastDraws().evaluated(model, test)


def test_parts_with_files_of_their_own_are_all_of_their_steps(tmp_path: Path) -> None:
    model = Forecaster(model={"targets": ["y"], "look_back": 4, "horizon": 2, "family": "linear"})
    paths = {}
    for name, rows in (("train", range(20)), ("validation", range(20, 30)), ("test", range(5))):
        paths[name] = tmp_path / f"{name}.csv"
        paths[name].write_text("y\n" + "".join(f"{k * k % 11}\n" for k in rows), "utf-8")
    data = DataSettings.of({name: [str(path)] for name, path in paths.items()}, "data")
    files = model.reader.files(data)
    train = files.part("train")
    validation = files.part("validation", like=train)
    assert (len(train), len(validation), validation.begin) == (20, 10, 20)
    assert validation.names[0] == f"{paths['validation']}:2"
    alone = files.part("validation")
    assert (len(alone), alone.begin, len(files.part("test", like=train))) == (10, 0, 5)


def test_a_part_that_no_step_falls_into_is_told(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    path.write_text("y\n" + "1\n2\n" * 4, "utf-8")
    model = Forecaster(
        model={"targets": ["y"], "look_back": 2, "horizon": 1, "split": [0.98, 0.01, 0.01]}
    )
    files = model.reader.files(DataSettings.of({"train": [str(path)]}, "data"))
    assert len(files.part("train")) == 8
    for name in ("validation", "test"):
        with pytest.raises(DataError) as error:
            files.part(name)
        assert str(error.value) == (
            f"{path}: no step falls into the {name} part: the series has 8 steps, and "
            "model.split is [0.98, 0.01, 0.01]"
        )
