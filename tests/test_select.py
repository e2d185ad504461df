"""Selection: candidates by name, the same measure for all, the test for the winner alone."""

from __future__ import annotations

import json
import math
import random
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pages import check_page, words
from reviews import refused
from run_verbs import evaluate_run, texts_to
from sealed import flipped

from ensue.cells import CELLS
from ensue.cli import main
from ensue.errors import ConfigError, EnsueError, OptionError, RunError, TrainingError
from ensue.files.atomic_folder import canonical, sealed, unsealed
from ensue.files.chain import add_line
from ensue.files.disk import OPENINGS
from ensue.files.format import FORMAT
from ensue.runs.config import RunConfig
from ensue.runs.infer import infer
from ensue.runs.messages import Message
from ensue.runs.run import seconds_trained
from ensue.study.selection import Selection, folder, selection
from ensue.study.selection import select_among as select
from ensue.study.selection.entries import Entry, Pace, WinnerVerdict
from ensue.study.selection.selection import candidates_of, known_models, split_names, usual_models
from ensue.study.selection.table import beside
from ensue.tasks import TASKS
from ensue.tasks.blocks.encoders import ENCODERS
from ensue.training import RunFolder, Update, Validated

LINES = [
    f"the {animal} {verb} the {thing}"
    for animal in ("cat", "dog", "bird", "fish")
    for verb in ("sees", "likes", "takes")
    for thing in ("house", "ball", "tree", "river", "boat")
]
SMALL = [
    "model.hidden_size=8", "model.embedding_size=8", "model.layers=1", "model.columns=4",
    "model.steps=7", "train.epochs=2", "train.rate=0.02",
]  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(LINES) + "\n")
    return infer({"train": [str(path)]}, "language", SMALL).config


# --- names ---------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_every_family_and_every_cell_has_a_name(task: str) -> None:
    described = TASKS[task]
    known, fields = known_models(described), described.settings.model_fields
    assert known
    assert set(usual_models(described)) <= set(known)
    if "cell" not in fields:
        assert known == {"model": {}}
        return
    assert {name.lower() for name in CELLS} <= set(known)
    for key in {"family", "encoder"} & set(fields):
        kinds = set(described.families if key == "family" else ENCODERS)
        assert {settings[key] for settings in known.values()} == kinds
        assert len(usual_models(described)) == len(kinds) - 1 + 3


def test_a_name_stands_for_settings_over_those_of_all(config: RunConfig) -> None:
    names = "ngram:order=2,ngram_smoothing=add-k, LSTM:hidden_size=12,train.rate=0.1, rnn"
    one, two, three = candidates_of(config, names)
    assert (one.config.model.family, one.config.model.order) == ("ngram", 2)
    assert one.config.model.ngram_smoothing == "add-k"
    assert (two.config.model.cell, two.config.model.hidden_size) == ("LSTM", 12)
    assert two.config.train.rate == 0.1
    assert (three.config.model.cell, three.config.model.hidden_size) == ("SimpleRNN", 8)
    assert all(candidate.config.data == config.data for candidate in (one, two, three))
    assert [candidate.folder for candidate in (one, two, three)] == [
        "ngram-order=2-ngram_smoothing=add-k",
        "LSTM-hidden_size=12-train.rate=0.1",
        "rnn",
    ]


def test_all_stop_early_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,label\n" + "good,1\nbad,0\n" * 20)

    def patience(*settings: str) -> set[int | None]:
        run_config = infer({"train": [str(path)]}, None, settings).config
        return {
            candidate.config.train.patience for candidate in candidates_of(run_config, "plain,gru")
        }

    assert patience() == {3}
    assert patience("train.patience=7") == {7}
    assert patience('train.patience="off"') == {None}


MISTAKES = [
    ("ngram,lsmt", OptionError, "unknown model 'lsmt': did you mean 'lstm'? Known: both, "
     "convolution, "),
    ("lstm", OptionError, "--models: expected two models or more to select from, got lstm; "
     "`ensue train` trains one"),
    ("lstm,gru,LSTM", OptionError,
     "--models: lstm and LSTM are the same model; name each once"),
    ("rnn,simplernn", OptionError,
     "--models: rnn and simplernn are the same model; name each once"),
    ("lstm,lstm:layers=1", OptionError,
     "--models: lstm and lstm:layers=1 are the same model; name each once"),
    ("gru,lstm:hiden_size=4", ConfigError,
     "--models lstm:hiden_size=4: model.hiden_size: unknown key, did you mean hidden_size?"),
    ("gru,lstm:layers=0", ConfigError,
     "--models lstm:layers=0: model.layers: expected a number ≥ 1, got 0"),
    ("gru,lstm:big", OptionError,
     "--models lstm:big: expected name:key=value,key=value, such as "
     "lstm:hidden_size=400,train.rate=0.002, got 'big'"),
    ("gru,lstm:text.level=characters", OptionError,
     "--models lstm:text.level=characters: text.level must be the same for all, or their scores "
     "could not be compared; give it with --set text.level=characters"),
    ("gru,lstm:train.watch=cost", OptionError,
     "--models lstm:train.watch=cost: train.watch must be the same for all, or their scores "
     "could not be compared; give it with --set train.watch=cost"),
]  # fmt: skip


@pytest.mark.parametrize(("models", "kind", "message"), MISTAKES)
def test_mistakes_are_told_before_anything_is_trained(
    config: RunConfig, tmp_path: Path, models: str, kind: type[EnsueError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        select(config, models, tmp_path / "s")
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "s").exists()


def test_pieces_of_names() -> None:
    assert split_names(" a , b:x=1,y=2,c:z=a:b,") == ["a", "b:x=1,y=2", "c:z=a:b"]


# --- the whole -----------------------------------------------------------------------------


def test_from_a_text_to_a_tested_winner(config: RunConfig, tmp_path: Path) -> None:
    place, heard = tmp_path / "s", list[str]()
    chosen = select(config, "ngram:order=1,ngram,window,gru", place, texts_to(heard.append))
    scores = [row.score or 0.0 for row in chosen.rows]
    assert scores == sorted(scores)
    by_name = {row.name: row for row in chosen.rows}
    assert chosen.winner is chosen.rows[0]
    for row in chosen.rows:  # the score is the one that evaluate finds on the same part
        opened = evaluate_run(RunFolder(place / row.folder), [], "validation")
        assert opened.evaluation.scores["perplexity"].value == pytest.approx(row.score, rel=1e-4)
        assert row.seconds > 0
        assert row.size > 0
    gru = by_name["gru"]
    assert gru.parameters is not None
    assert (gru.size, gru.epochs) == (4 * gru.parameters, 2)
    assert gru.speed is not None
    assert by_name["ngram"].parameters is None
    assert by_name["ngram"].size > by_name["ngram:order=1"].size
    openings = [json.loads(line) for line in (place / OPENINGS).read_text().splitlines()]
    assert [opening["run"] for opening in openings] == [chosen.winner.folder]
    assert chosen.test is not None
    assert openings[0]["perplexity"] == chosen.test.value
    assert chosen.test.baselines["unigrams"] > chosen.test.value
    facts = unsealed((place / "selection.json").read_bytes(), "selection.json")
    assert facts == json.loads(json.dumps(chosen.as_json()))
    assert (place / "selection.svg").read_text() == chosen.picture()
    assert heard[0] == "1 of 4: ngram:order=1"


def test_what_is_finished_is_not_repeated(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted in the second training and continued: as if never stopped, the test opened
    once; one more candidate is trained alone."""
    whole = select(config, "ngram,gru,lstm", tmp_path / "whole")
    trained: list[str] = []
    plain = selection.train_run

    def stopping(run_config: RunConfig, folder: RunFolder, *more: Any) -> Any:
        trained.append(folder.path.name)
        if trained == ["ngram", "gru"]:
            raise KeyboardInterrupt
        return plain(run_config, folder, *more)

    monkeypatch.setattr(selection, "train_run", stopping)
    place = tmp_path / "s"
    with pytest.raises(KeyboardInterrupt):
        select(config, "ngram,gru,lstm", place)
    assert json.loads((place / "selection.json").read_text())["test"] is None
    chosen = select(config, "ngram,gru,lstm", place)
    assert trained == ["ngram", "gru", "gru", "lstm"]
    assert results(chosen) == results(whole)
    again = select(config, "ngram,gru,lstm", place)
    assert again == chosen
    with pytest.raises(TrainingError, match="enough"):
        select(config, "ngram,gru,lstm", place, _after("1 of 3"))
    assert select(config, "ngram,gru,lstm", place) == chosen
    more = select(config, "ngram,gru,lstm,rnn", place)
    assert trained[4:] == ["rnn"]
    assert len(more.rows) == 4
    winners = {chosen.winner, more.winner}
    assert len((place / OPENINGS).read_text().splitlines()) == len(winners)


def _after(beginning: str) -> Callable[[Message], None]:
    """Breaks off after the first line that begins so."""
    heard: list[str] = []

    def say(message: Message) -> None:
        if heard:
            raise TrainingError("enough")
        heard.extend([message.text] * message.text.startswith(beginning))

    return say


def results(chosen: Selection) -> Any:
    """All but the times."""
    return chosen.test, [replace(row, seconds=0.0, speed=None) for row in chosen.rows]


def test_a_failure_is_shown_and_the_rest_goes_on(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = selection.train_run

    def breaking(run_config: RunConfig, folder: RunFolder, *more: Any) -> Any:
        if folder.path.name in broken:
            raise TrainingError("update 3: the cost is nan")
        return plain(run_config, folder, *more)

    monkeypatch.setattr(selection, "train_run", breaking)
    broken = {"ngram"}
    chosen = select(config, "ngram,gru", tmp_path / "s")
    assert [(row.name, row.failure) for row in chosen.rows] == [
        ("gru", ""),
        ("ngram", "update 3: the cost is nan"),
    ]
    assert "ngram failed: update 3: the cost is nan" in str(chosen)
    assert "failed: ngram" in chosen.picture()
    broken = set()  # what failed is tried again
    assert all(not row.failure for row in select(config, "ngram,gru", tmp_path / "s").rows)
    broken = {"ngram", "gru"}
    with pytest.raises(RunError) as caught:
        select(config, "ngram,gru", tmp_path / "t")
    assert str(caught.value) == (
        "no model could be trained\n  ngram: update 3: the cost is nan\n"
        "  gru: update 3: the cost is nan"
    )


def test_a_selection_is_of_the_same_data_and_settings(config: RunConfig, tmp_path: Path) -> None:
    place = tmp_path / "s"
    select(config, "ngram:order=2,ngram", place)
    other = RunConfig.of({**config.tables(), "text": {**config.text.table(), "min_count": 2}})
    with pytest.raises(RunError, match=r"text\.min_count: was 1, now 2"):
        select(other, "ngram:order=2,ngram", place)
    with open(config.data.train[0], "a") as file:
        file.write("the horse sees the boat\n")
    with pytest.raises(RunError) as caught:
        select(config, "ngram:order=2,ngram", place)
    assert "the content of files of this selection was " in str(caught.value)
    assert str(caught.value).endswith(
        "it must be the same for all models: undo the change, or name another --run"
    )
    (place / "selection.json").write_text("{}")
    with pytest.raises(RunError) as caught:
        select(config, "ngram:order=2,ngram", place)
    assert str(caught.value) == (
        f"{place / 'selection.json'}: this is not what Ensue wrote; restore it, or move it away to "
        "rank the models again, or name another --run"
    )
    with pytest.raises(OptionError) as option:
        select(config, "ngram,gru", place / "ngram")
    assert str(option.value) == (
        f"{place / 'ngram'}: this is the folder of one run; name another one with --run"
    )


def test_what_was_selected_is_sealed(config: RunConfig, tmp_path: Path) -> None:
    """Scores in it decide which model is tested: one flipped bit is refused, wherever it is."""
    place, names = tmp_path / "s", "ngram:order=2,ngram"
    chosen = select(config, names, place)
    file, draw = place / "selection.json", random.Random(1)
    whole = file.read_bytes()
    for at in (whole.index(b'"score"') + 10, *(draw.randrange(len(whole)) for _ in range(60))):
        flipped(file, at, draw.randrange(8))
        assert "selection.json: this is not what Ensue wrote" in refused(
            lambda: select(config, names, place)
        )
        file.write_bytes(whole)
    assert select(config, names, place) == chosen
    file.unlink()  # as the message says
    assert results(select(config, names, place))[1][0].score == chosen.rows[0].score


def test_a_selection_of_another_format_is_refused_and_left_alone(
    config: RunConfig, tmp_path: Path
) -> None:
    place, names = tmp_path / "s", "ngram:order=2,ngram"
    chosen = select(config, names, place)
    file = place / "selection.json"
    facts = {**chosen.as_json(), "format": 1}
    first = (json.dumps(facts, indent=1) + "\n").encode()  # which had no seal
    second = sealed({**facts, "format": 2}, sort=False)
    later = sealed({**facts, "format": FORMAT + 1}, sort=False)
    for data, message in ((first, "in format 1;"), (second, "in format 2;"), (later, "git pull")):
        file.write_bytes(data)
        before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
        assert message in refused(lambda: select(config, names, place))
        assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    file.write_bytes(canonical({**facts, "format": FORMAT}, sort=False))  # without its seal
    assert "this is not what Ensue wrote" in refused(lambda: select(config, names, place))


def test_a_score_that_is_no_number_is_a_failure_and_can_be_kept(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = selection.train_run

    def endless(run_config: RunConfig, folder: RunFolder, *more: Any) -> Any:
        trained = plain(run_config, folder, *more)
        if folder.path.name != "ngram":
            return trained
        return replace(
            trained, outcomes=[replace(trained.outcomes[0], scores={"perplexity": math.inf})]
        )

    monkeypatch.setattr(selection, "train_run", endless)
    chosen = select(config, "ngram,ngram:order=2", tmp_path / "s")
    assert chosen.rows[-1].failure == "perplexity on validation is not a finite number"
    assert chosen.test is not None
    endless_test = replace(chosen.test, baselines={"unigrams": math.inf})
    folder.write(tmp_path / "s", replace(chosen, test=endless_test))
    assert select(config, "ngram,ngram:order=2", tmp_path / "s").test == endless_test


def test_without_a_test_part_nothing_is_opened(config: RunConfig, tmp_path: Path) -> None:
    validation = tmp_path / "held.txt"
    validation.write_text("\n".join(LINES[::5]) + "\n")
    config_of_file = replace(
        config, data=config.data.model_copy(update={"validation": [str(validation)]})
    )
    heard: list[str] = []
    chosen = select(config_of_file, "ngram,ngram:order=2", tmp_path / "s", texts_to(heard.append))
    assert chosen.test is None
    assert "there is no test part: give one with --test" in heard
    assert not (tmp_path / "s" / OPENINGS).exists()


# --- table and picture ---------------------------------------------------------------------


def made(*rows: Entry, measure: str = "perplexity", test: WinnerVerdict | None = None) -> Selection:
    return replace(Selection("language", measure, "0").ranked(rows), test=test)


A = Entry("a", "a", "thing", 1000, 4000, 120.0, 3, 12.0, 900.0)
B = Entry("b", "b", "counted", None, 2_600_000, 140.5, 0, 0.5)
FAILED = Entry("c", "c", failure="no memory")


@pytest.mark.parametrize(("measure", "first"), [("perplexity", "a"), ("accuracy", "b")])
def test_the_best_comes_first(measure: str, first: str) -> None:
    table = made(FAILED, B, A, measure=measure)
    assert table.rows[0].name == first
    assert table.rows[-1] is FAILED
    assert made(FAILED).winner is None
    tied = made(B, replace(A, score=B.score), measure=measure)
    assert tied.rows[0] is B


def test_the_table() -> None:
    test = WinnerVerdict(
        "a", "perplexity", 50, 118.2, 110.0, 126.1, {"unigrams": 640.0, "3-grams": 99}, 2, False
    )
    assert str(made(A, B, FAILED, test=test)).splitlines() == [
        "   model  validation perplexity  parameters    size  epochs  time in all  tokens/s",
        "1  a                     120.00       1,000    4 kB       3       12.0 s       900",
        "2  b                     140.50           –  2.6 MB       –        0.5 s         –",
        "",
        "c failed: no memory",
        "",
        "a on the test part (50 rows, opened 2 times): perplexity 118.20, "
        "95 % interval 110.00 … 126.10",
        "  for comparison, perplexity: unigrams 640.00, 3-grams 99.00",
        "  The winner does not beat the 3-grams.",
    ]


def test_a_selection_is_a_block_of_a_notebook() -> None:
    page_words = words(check_page(made(A, B, FAILED)._repr_html_()))
    assert page_words.startswith("Models for")
    assert "c failed: no memory" in page_words
    assert "<svg" not in made(FAILED)._repr_html_()


@pytest.mark.parametrize("rows", [[A, B], [A, B, FAILED], [A], [A, replace(A, name="<&>")]])
def test_the_picture_shows_each_twice(rows: list[Entry]) -> None:
    table = made(*rows)
    tree = ElementTree.fromstring(table.picture())
    words = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    for row in rows:
        assert words.count(row.name) == (0 if row.failure else 2)
    assert table.picture() == made(*rows).picture()


def test_names_cover_neither_marks_nor_one_another() -> None:
    places = {f"name {k}": (400.0 + 3 * (k % 3), 100.0 + 2 * k) for k in range(7)}
    labels = beside(places, 440.0)
    heights = sorted(y for _, y in labels.values())
    assert all(b - a >= 12.5 for a, b in pairwise(heights))
    assert all(y >= places[name][1] for name, (_, y) in labels.items())


def test_the_pace_leaves_evaluations_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    pace = Pace()
    assert pace.speed is None
    for seconds, row in (
        (2, Update(1, 1, 0.0, 0.1, 1.0, 5.0, 100.0)),
        (50, Validated(1, 1, {}, True)),
        (2, Update(2, 1, 0.0, 0.1, 1.0, 5.0, 100.0)),
    ):
        now[0] += seconds
        pace(row)
    assert pace.speed == 50


def test_the_time_of_all_lives_counts(tmp_path: Path) -> None:
    assert seconds_trained(tmp_path) == 0
    path = tmp_path / "timing.jsonl"
    for seconds in (1, 5, 0.5, 2, 3):
        add_line(path, {"seconds": seconds})
    path.write_bytes(path.read_bytes() + b'{"seco')
    assert seconds_trained(tmp_path) == 8


# --- the command ---------------------------------------------------------------------------

Ensue = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ensue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Ensue:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        streams = capsys.readouterr()
        return int(ended.value.code or 0), streams.out, streams.err

    return run


def test_the_command(ensue: Ensue, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("\n".join(LINES) + "\n")
    settings = [word for setting in SMALL for word in ("--set", setting)]
    command = ["select", "lines.txt", "--task", "language", "--run", "s", *settings]
    code, out, err = ensue(*command, "--models", "ngram,gru")
    assert code == 0, err
    assert err.startswith("selecting a model among ngram,gru\n")
    assert out.splitlines()[0].split() == [
        "model", "validation", "perplexity", "parameters", "size", "epochs", "time", "in",
        "all", "tokens/s",
    ]  # fmt: skip
    assert "on the test part" in out
    code, out, err = ensue(*command, "--models", "ngram,gru", "--json")
    assert json.loads(out)["winner"] in ("ngram", "gru")
    assert ensue(*command, "--models", "ngram,gru", "--quiet")[::2] == (0, "")
    assert (tmp_path / "s" / "selection.svg").exists()
    assert "wrote s/selection.json, s/selection.svg" in err


def test_classifiers_are_selected_too(ensue: Ensue, tmp_path: Path) -> None:
    rows = [f"{w} film {k},{w}" for k in range(40) for w in ("good", "bad")]
    (tmp_path / "rows.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    small = ["--set", "model.hidden_size=4", "--set", "model.embedding_size=4"]
    code, out, err = ensue(
        "select", "rows.csv", "--models", "plain,gru", "--set", "train.epochs=1",
        "--set", "train.watch=accuracy", "--quiet", "--run", "s", *small,
    )  # fmt: skip
    assert code == 0, err
    assert "validation accuracy" in out
    assert "task: classify" not in err  # quiet
    assert "update" not in err


def test_files_must_be_named(ensue: Ensue) -> None:
    code, _, err = ensue("select", "--models", "ngram,gru")
    assert code == 2
    assert err.splitlines()[-1] == (
        "OptionError: select: name the files to learn from: `ensue select FILE --run run`"
    )


def test_a_number_of_trials_that_cannot_be_is_refused_before_files_are_read(ensue: Ensue) -> None:
    Path("unreadable.csv").write_bytes(b"text,label\n\xff\xff,a\n")
    code, _, err = ensue("select", "unreadable.csv", "--trials", "0")
    assert code == 2
    assert err.splitlines()[-1] == "OptionError: --trials: expected a whole number ≥ 1, got 0"
