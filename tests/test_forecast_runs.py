"""Forecasts from the command line: train, evaluate, predict, and the mistakes of users."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

from ensue import cli
from ensue.data.tasks.series import air_passengers, known_series
from ensue.runs import load
from ensue.tasks.forecast import task

LINEAR = ["--set", "model.family=linear", "--set", "model.look_back=13"]
SPLIT = ["--set", "model.split=[96, 24, 24]"]


class Notice(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


Ensue = Callable[..., Notice]


@pytest.fixture
def ensue(capsys: pytest.CaptureFixture[str]) -> Ensue:
    """Runs a command."""

    def run(*arguments: str | Path) -> Notice:
        with pytest.raises(SystemExit) as ending:
            cli.main([str(argument) for argument in arguments])
        return Notice(int(ending.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture
def passengers(tmp_path: Path) -> Path:
    columns = air_passengers()
    lines = [f"{m},{n:g}" for m, n in zip(columns["month"], columns["passengers"], strict=True)]
    path = tmp_path / "series.csv"
    path.write_text("\n".join(["month,passengers", *lines]) + "\n", "utf-8")
    return path


def test_from_a_file_to_a_forecast(ensue: Ensue, passengers: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = ["--target", "passengers", "--horizon", "6", "--run", run]
    trained = ensue("train", passengers, *options, *LINEAR, *SPLIT)
    assert trained.exit_code == 0, trained.stderr
    assert "model.time: month" in trained.stderr
    assert (
        "split: 96 steps train, 24 steps validation, 24 steps test, in order of time"
        in trained.stderr
    )
    assert "96 rows to train on, 24 to validate on" in trained.stderr
    evaluation = json.loads(ensue("evaluate", run, "--json").stdout)
    # every origin whose steps ahead are all of the test part
    assert evaluation["rows"] == 24 - 6 + 1
    assert evaluation["opened"] == 1
    assert evaluation["scores"]["mae"]["value"] < evaluation["baselines"]["seasonal naive"]
    assert len(evaluation["ahead"]) == 6
    validated = json.loads(ensue("evaluate", run, "--validation", "--json").stdout)
    assert validated["rows"] == 24 - 6 + 1
    lines = ensue("predict", run).stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == [f"1961-0{k}" for k in range(1, 7)]
    answers = [json.loads(line) for line in ensue("predict", run, "--json").stdout.splitlines()]
    interval = answers[0]["expected"]["passengers"]
    assert interval["low"] < interval["value"] < interval["high"]
    assert (
        lines[0]
        == f"1961-01\t{interval['value']:.6g}\t{interval['low']:.6g}\t{interval['high']:.6g}"
    )


def test_a_shorter_file_is_forecast_from_its_own_end(
    ensue: Ensue, passengers: Path, tmp_path: Path
) -> None:
    run, short = tmp_path / "run", tmp_path / "short.csv"
    assert ensue("train", passengers, "--horizon", "3", "--run", run, *LINEAR).exit_code == 0
    short.write_text("\n".join(passengers.read_text("utf-8").splitlines()[:61]) + "\n", "utf-8")
    assert ensue("predict", run, short).stdout.startswith("1954-01\t")


def test_pictures_show_the_part_that_was_asked_for(
    ensue: Ensue, passengers: Path, tmp_path: Path
) -> None:
    run, picture = tmp_path / "run", tmp_path / "forecast.svg"
    assert (
        ensue("train", passengers, "--horizon", "6", "--run", run, *LINEAR, *SPLIT).exit_code == 0
    )
    assert ensue("evaluate", run, "--validation", "--picture", picture).exit_code == 0
    drawn = picture.read_text("utf-8")
    ElementTree.fromstring(drawn)
    assert "actual" in drawn
    assert "1959" not in drawn  # the test part stays sealed
    assert ensue("predict", run, "--picture", picture).exit_code == 0
    assert "1961-" in picture.read_text("utf-8")


def test_what_is_known_ahead_comes_from_a_file(ensue: Ensue, tmp_path: Path) -> None:
    columns = known_series("driven", 120)
    path, future, run = tmp_path / "past.csv", tmp_path / "future.csv", tmp_path / "run"
    rows = [f"{v},{d}" for v, d in zip(columns["value"], columns["drive"], strict=True)]
    path.write_text("\n".join(["value,drive", *rows]) + "\n", "utf-8")
    future.write_text("drive\n1\n0\n", "utf-8")
    options = ["--target", "value", "--known", "drive", "--horizon", "2", "--run", run]
    small = ["--set", "model.hidden_size=4", "--set", "train.most_updates=2"]
    assert ensue("train", path, *options, *small).exit_code == 0
    forecast = ensue("predict", run, "--future", future)
    assert [line.split("\t")[0] for line in forecast.stdout.splitlines()] == ["+1", "+2"]
    without = ensue("predict", run)
    assert without.exit_code == 2
    assert "expected drive of the next 2 steps" in without.stderr
    assert "--future FILE" in without.stderr


def test_options_of_reading_count_for_every_command(
    ensue: Ensue, passengers: Path, tmp_path: Path
) -> None:
    """A file with semicolons, in Latin-1 and without names, is continued and drawn as another."""
    run, odd = tmp_path / "run", tmp_path / "odd.csv"
    drawn = [tmp_path / name for name in ("one.svg", "two.svg")]
    lines = passengers.read_text("utf-8").splitlines()[1:]
    odd.write_text("\n".join(f"Köln;{line.replace(',', ';')}" for line in lines), "latin-1")
    reading = ["--delimiter", ";", "--encoding", "latin-1", "--header", "town,month,passengers"]
    train = ensue("train", passengers, "--horizon", "6", "--run", run, *LINEAR, *SPLIT)
    assert train.exit_code == 0, train.stderr
    plain = ensue("predict", run, passengers, "--picture", drawn[0])
    other = ensue("predict", run, odd, *reading, "--picture", drawn[1])
    assert (other.exit_code, other.stdout) == (0, plain.stdout), other.stderr
    assert drawn[0].read_text("utf-8") == drawn[1].read_text("utf-8")
    plain = ensue("evaluate", run, "--test", passengers, "--json", "--picture", drawn[0])
    other = ensue("evaluate", run, "--test", odd, *reading, "--json", "--picture", drawn[1])
    scores = [json.loads(process.stdout)["scores"] for process in (plain, other)]
    assert scores[0] == scores[1]
    assert drawn[0].read_text("utf-8") == drawn[1].read_text("utf-8")
    assert "actual" in drawn[0].read_text("utf-8")


def test_what_is_known_ahead_is_read_as_the_series_is(ensue: Ensue, tmp_path: Path) -> None:
    columns = known_series("driven", 120)
    path, future, run = tmp_path / "past.csv", tmp_path / "future.csv", tmp_path / "run"
    rows = [f"{v};{d}" for v, d in zip(columns["value"], columns["drive"], strict=True)]
    path.write_text("\n".join(["value;drive", *rows]) + "\n", "utf-8")
    future.write_text("town;drive\nKöln;1\nKöln;0\n", "latin-1")
    options = ["--target", "value", "--known", "drive", "--horizon", "2", "--run", run]
    small = ["--set", "model.hidden_size=4", "--set", "train.most_updates=2"]
    assert ensue("train", path, "--delimiter", ";", *options, *small).exit_code == 0
    process = ensue("predict", run, "--future", future, "--encoding", "latin-1")
    assert [line.split("\t")[0] for line in process.stdout.splitlines()] == ["+1", "+2"]


def test_a_drawn_evaluation_reads_and_loads_once(
    ensue: Ensue, passengers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    train = ensue("train", passengers, "--horizon", "6", "--run", run, *LINEAR, *SPLIT)
    assert train.exit_code == 0, train.stderr
    heard: list[str] = []

    def counted(module: Any, name: str) -> None:
        plain = getattr(module, name)

        def call(*arguments: Any, **more: Any) -> Any:
            heard.append(name)
            return plain(*arguments, **more)

        monkeypatch.setattr(module, name, call)

    counted(task, "part_of_files")
    counted(load, "read_model")
    assert ensue("evaluate", run, "--picture", tmp_path / "x.svg").exit_code == 0
    assert sorted(heard) == ["part_of_files", "read_model"]


def test_only_metrics_of_forecasts_can_be_watched(
    ensue: Ensue, passengers: Path, tmp_path: Path
) -> None:
    watch = ["--set", "train.watch=bleu"]
    process = ensue("train", passengers, "--horizon", "6", "--run", tmp_path / "run", *watch)
    assert process.exit_code == 2
    assert "train.watch: expected one of cost, mae, error, got 'bleu'" in process.stderr


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\nx,y\nz,w\n", [], ":2: expected a column of numbers to forecast, got none"),
        ("a,b\n1,2\n3,x\n", ["--target", "b"], ":3: column 'b': expected a finite number, got 'x'"),
        ("a,b\n1,2\n3,4\n", ["--target", "c"], "unknown column 'c'"),
        ("a\n1\n2\n3\n", [], "no step falls into the validation part: the series has 3 steps"),
    ],
)
def test_mistakes_are_told(
    ensue: Ensue, text: str, options: list[str], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "series.csv"
    path.write_text(text, "utf-8")
    process = ensue("train", path, "--task", "forecast", "--run", tmp_path / "run", *options)
    assert process.exit_code == 2
    assert message in process.stderr


def test_a_run_that_does_not_forecast_has_no_future(ensue: Ensue, tmp_path: Path) -> None:
    rows = [f"{'good' if k % 2 else 'bad'} film {k},{k % 2}" for k in range(60)]
    path, run = tmp_path / "reviews.csv", tmp_path / "run"
    path.write_text("\n".join(["text,label", *rows]) + "\n", "utf-8")
    quick = ["--set", "train.most_updates=1", "--set", "model.encoder=plain"]
    assert ensue("train", path, "--label", "label", "--run", run, *quick).exit_code == 0
    process = ensue("predict", run, path, "--picture", tmp_path / "x.svg")
    assert process.exit_code == 2
    assert "--picture: a run of task classify has no picture" in process.stderr
    process = ensue("predict", run, path, "--future", path)
    assert process.exit_code == 2
    assert "--future: expected a run of task forecast, got one of task classify" in process.stderr
