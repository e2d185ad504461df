"""Transfer (F1–F6): what is taken over from a base, what stays frozen and for how long, at which
rates layers learn, and what does not fit."""

from __future__ import annotations

import json
import random
import shutil
import signal
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import commands_in
from safetensors.torch import load_file, save_file
from torch import Tensor

from ensue import Classifier, Labeller, LanguageModel, Regressor, load
from ensue.errors import ConfigError, EnsueError, OptionError, RunError
from ensue.tasks import TASKS
from ensue.tasks.transfer.layers import rates_of
from ensue.tasks.transfer.loading import read_base
from ensue.tasks.transfer.new_words import extended, trigrams, with_rows
from ensue.tasks.transfer.pretrained import read_copy
from ensue.tasks.transfer.settings import BaseSettings
from ensue.training import LayerGroup, LayerRates, Stopped, TrainSettings, Update, train
from ensue.training.optimiser import SCHEDULES, Optimiser, scheduled_rate
from ensue.training.progress import Progress

MOODS = {"good": ["fine", "great", "lovely"], "bad": ["dull", "awful", "poor"]}
TEXT = {"level": "words", "lower": True, "min_count": 1}
SMALL = {"hidden_size": 5, "embedding_size": 4, "layers": 2, "columns": 4, "steps": 8}
QUICK = {"epochs": 4, "rate": 0.05, "device": "cpu"}
HEAD_ONLY = {"model": {"linear": "alone", "batch_rows": 8}, "train": QUICK}


def reviews(count: int, seed: int = 1) -> list[tuple[str, str]]:
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        mood = ("good", "bad")[number % 2]
        words = [f"the {draw.choice(MOODS[mood])} {draw.choice(['film', 'cast'])}" for _ in "ab"]
        rows.append((" ".join(words), mood))
    return rows


ROWS, HELD = reviews(32), reviews(8, 2)


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model of the reviews, saved."""
    place = tmp_path_factory.mktemp("base") / "lm"
    texts = [text for text, _ in ROWS]
    model = LanguageModel(text=TEXT, model=SMALL, train={"epochs": 1, "device": "cpu"})
    model.fit(texts, texts).save(place)
    return place


def begun(lm: Path, **options: Any) -> Classifier:
    """A classifier whose base was read and whose inputs were learned, not trained."""
    base = {"path": str(lm), **options.pop("base", {})}
    model = Classifier(base=base, **{**HEAD_ONLY, **options})
    model.fit(ROWS, HELD)
    return model


def base_weights(lm: Path) -> Mapping[str, Tensor]:
    return load(lm).networks[0].state_dict()


def weights_of(model: Any) -> Mapping[str, Tensor]:
    weights: Mapping[str, Tensor] = model.networks[0].state_dict()
    return weights


def layer(weights: Mapping[str, Tensor], number: int) -> dict[str, Tensor]:
    begin = f"recurrent.forwards.{number}."
    tensors = {n.split(begin)[1]: t for n, t in weights.items() if begin in n}
    assert tensors
    return tensors


def same(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


# --- F1, F5: which layers are taken over -------------------------------------------------------


def test_a_network_begins_with_the_words_and_layers_of_its_base(lm: Path) -> None:
    model = begun(lm)
    fresh, state_of_base = model.fresh(7).state_dict(), base_weights(lm)
    assert all(same(layer(fresh, k), layer(state_of_base, k)) for k in (0, 1))
    known = len(load(lm).learned.words)
    table = fresh["reader.embed.features.0.table.weight"]
    assert torch.equal(table[1:known], state_of_base["table.weight"][1:])
    assert not table[0].any()  # padding
    assert (model.settings.layers, model.settings.hidden_size) == (2, 5)
    assert model.settings.bidirectional is False
    assert model.settings.pooling == "last+mean+max"


def test_top_layers_are_dropped_and_fresh_ones_added(lm: Path) -> None:
    state_of_base = base_weights(lm)
    fewer = begun(lm, base={"layers": 1})
    assert fewer.settings.layers == 1
    assert same(layer(fewer.fresh(7).state_dict(), 0), layer(state_of_base, 0))
    replaced = begun(lm, base={"layers": 1, "added": 1})
    assert replaced.settings.layers == 2
    weights = replaced.fresh(7).state_dict()
    assert same(layer(weights, 0), layer(state_of_base, 0))
    assert not same(layer(weights, 1), layer(state_of_base, 1))
    rates = rates_of(replaced.fresh(7), replaced)
    assert rates.group_of("reader.encoder.recurrent.forwards.1.U") == "head"
    names = [group.name for group in rates.groups]
    assert names == ["words", "layer 1", "head"]


def test_more_layers_than_the_base_has_are_refused(lm: Path) -> None:
    with pytest.raises(OptionError, match=r"base\.layers: expected at most 2.*got 3; .*added"):
        begun(lm, base={"layers": 3})


# --- F2: what does not fit ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        ("text", {"level": "characters"}, r"text\.level: the base has 'words', got 'characters'"),
        ("text", {"lower": False}, r"text\.lower: the base has True, got False"),
        ("model", {"hidden_size": 7}, r"model\.hidden_size: the base has 5, got 7"),
        ("model", {"embedding_size": 7}, r"model\.embedding_size: the base has 4, got 7"),
        ("model", {"cell": "GRU"}, r"model\.cell: the base has 'LSTM', got 'GRU'"),
        ("model", {"encoder": "plain"}, r"model\.encoder: the base has 'recurrent'"),
        ("model", {"layers": 3}, r"model\.layers: the base has 2, got 3; base\.layers takes"),
        ("model", {"bidirectional": True}, r"model\.bidirectional: the base has False"),
    ],
)
def test_a_setting_that_does_not_fit_the_base_is_refused(
    lm: Path, table: str, settings: dict[str, Any], message: str
) -> None:
    tables = {**HEAD_ONLY, table: {**HEAD_ONLY.get(table, {}), **settings}}
    with pytest.raises(OptionError, match=message):
        begun(lm, **tables)


def test_every_misfit_is_in_one_message(lm: Path) -> None:
    with pytest.raises(OptionError) as error:
        begun(lm, text={"lower": False}, model={"hidden_size": 7})
    assert "2 settings do not fit this base" in str(error.value)


def test_the_words_of_the_base_are_known_and_new_ones_get_rows(lm: Path) -> None:
    more = [*ROWS, *[("the gorgeous greatest film", "good")] * 4]
    model = Classifier(base=lm, **HEAD_ONLY).fit(more, HELD)
    words, words_of_base = model.learned.input.inputs.words, load(lm).learned.words
    assert words is not None
    assert words.tokens[: len(words_of_base)] == words_of_base.tokens
    assert {"gorgeous", "greatest"} <= {*words.tokens[len(words_of_base) :]}
    assert model.learned.tokenisers.input == load(lm).learned.tokeniser


def test_new_words_begin_like_words_of_the_same_letters(lm: Path) -> None:
    words_of_base = load(lm).learned.words
    table = base_weights(lm)["table.weight"]
    words_to_add = type(words_of_base).build({"greatest": 2, "zzzz": 2, "film": 3})
    every = extended(words_of_base, words_to_add)
    assert every.tokens == (*words_of_base.tokens, "greatest", "zzzz")
    assert every.counts[every.numbers["film"]] == 3
    assert trigrams("cat") == ["<ca", "cat", "at>"]
    mean = table[len(words_of_base.specials) :].mean(0)
    rows = with_rows(table, words_of_base, every, "letters")
    assert torch.equal(rows[: len(words_of_base)], table)
    assert torch.allclose(rows[-1], mean)  # no letters of its own are known
    assert torch.allclose(with_rows(table, words_of_base, every, "mean")[-2], mean)
    sharing = words_of_base.numbers["great"]
    alike = torch.cosine_similarity(rows[-2], table[sharing], dim=0)
    assert alike > torch.cosine_similarity(mean, table[sharing], dim=0)


def test_word_vectors_beside_a_base_are_refused(lm: Path) -> None:
    with pytest.raises(OptionError, match=r"model\.vectors: .* has word vectors already"):
        begun(lm, model={**HEAD_ONLY["model"], "vectors": "glove.txt"})


def test_a_base_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        OptionError, match=r"base: expected a run, a model or a file, got .*nowhere"
    ):
        Classifier(base=tmp_path / "nowhere").fit(ROWS)


def test_a_file_of_data_is_no_base(tmp_path: Path) -> None:
    """It was read as word vectors, with a problem for each of its lines."""
    (tmp_path / "few.csv").write_text("text,label\na fine film,good\n")
    with pytest.raises(
        OptionError,
        match=r"base: expected a run.* got .*few\.csv, a file of data \(csv\); a base is",
    ):
        Classifier(base=tmp_path / "few.csv").fit(ROWS)


def test_a_folder_that_is_no_model_is_no_base(tmp_path: Path) -> None:
    """For both, the error used to advise training again."""
    with pytest.raises(RunError, match="expected the folder of a run or of a saved model"):
        Classifier(base=tmp_path).fit(ROWS)
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(RunError, match=r"not finished.*; `ensue train --run \S+` resumes it"):
        Classifier(base=tmp_path).fit(ROWS)


# --- F3, F4: what learns, when, and at which rate ----------------------------------------------


def updates_of(model: Classifier) -> list[tuple[Update, set[str], set[str]]]:
    """Each update of a new training, with the groups that have moved, and those that have not."""
    network = model.fresh(1)
    rates = rates_of(network, model)
    source = model.task.source(model.reader.labelled(ROWS), model, 1)
    at = Progress.begin(network, model.train, rates)
    before = {n: p.detach().clone() for n, p in network.named_parameters()}
    moves = []
    for row in train(network, source, None, model.train, at):
        if isinstance(row, Update):
            now = {n: p.detach().clone() for n, p in network.named_parameters()}
            moved = {g.name for g in rates.groups if moved_in(g, before, now)}
            moves.append((row, moved, {g.name for g in rates.groups} - moved))
            before = now
    assert all(p.requires_grad for p in network.parameters())
    return moves


def moved_in(group: LayerGroup, before: Mapping[str, Tensor], now: Mapping[str, Tensor]) -> bool:
    return any(not torch.equal(before[name], now[name]) for name in group.parameters)


def test_frozen_layers_never_move(lm: Path) -> None:
    for row, moved, still in updates_of(begun(lm, base={"recipe": "frozen"})):
        assert moved == {"head"}
        assert still == {"words", "layer 1", "layer 2"}
        assert {name for name, rate in row.layers.items() if rate} == {"head"}
    trained, state_of_base = (
        begun(lm, base={"recipe": "frozen"}).networks[0].state_dict(),
        base_weights(lm),
    )
    assert all(same(layer(trained, k), layer(state_of_base, k)) for k in (0, 1))


def test_layers_are_unfrozen_one_after_another_from_the_top(lm: Path) -> None:
    updates = updates_of(begun(lm))
    expected = [
        {"head"},
        {"head", "layer 2"},
        {"head", "layer 2", "layer 1"},
        {"head", "layer 2", "layer 1", "words"},
    ]
    for row, moved, _ in updates:
        assert moved == expected[row.epoch - 1], row
    assert {row.epoch for row, _, _ in updates} == {1, 2, 3, 4}


def test_unfreezing_can_be_slower_and_faster_and_leave_out_the_lowest(lm: Path) -> None:
    slow = updates_of(begun(lm, base={"unfreeze_every": 2.0}))
    assert [moved for row, moved, _ in slow if row.epoch == 2] == [{"head"}] * 4
    fast = updates_of(begun(lm, base={"unfreeze_every": 0.5, "freeze": 1}))
    assert fast[1][1] == {"head"}  # half an epoch: two of four updates
    assert fast[2][1] == {"head", "layer 2"}
    assert all("words" in still for _, _, still in fast)


def test_more_than_there_is_cannot_be_frozen(lm: Path) -> None:
    with pytest.raises(OptionError) as caught:
        begun(lm, base={"freeze": 9})
    assert str(caught.value) == (
        "base.freeze: expected at most 3, as many as there are to freeze "
        "(words, layer 1, layer 2), got 9"
    )


def test_how_a_base_learns_is_not_said_without_a_base() -> None:
    with pytest.raises(ConfigError) as caught:
        Classifier(base={"recipe": "frozen", "freeze": 1})
    assert str(caught.value) == (
        "base: recipe, freeze: expected a base as well, got none; name one, --base RUN"
    )
    assert BaseSettings.of(BaseSettings().table(), "base") == BaseSettings()


def test_rates_fall_from_layer_to_layer(lm: Path) -> None:
    row, _, still = updates_of(begun(lm, base={"recipe": "whole", "rate_decay": 3.0}))[0]
    assert not still
    assert row.layers["head"] == row.rate
    assert row.layers["layer 2"] == pytest.approx(row.rate / 3)
    assert row.layers["layer 1"] == pytest.approx(row.rate / 9)
    assert row.layers["words"] == pytest.approx(row.rate / 27)


def test_an_update_moves_each_layer_at_its_own_rate() -> None:
    upper, lower = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    settings = TrainSettings.of({"optimiser": "sgd", "momentum": 0.0, "rate": 1.0})
    layers = LayerRates((LayerGroup("lower", frozenset({"lower"}), 1 / 2.6),))
    optimiser = Optimiser([("upper", upper), ("lower", lower)], settings, layers)
    upper.grad = lower.grad = torch.full((3,), 2.0)
    optimiser.step(0.1, layers.shares(0, 1))
    assert torch.allclose(upper, torch.full((3,), 0.8))
    assert torch.allclose(lower, torch.full((3,), 1 - 0.2 / 2.6))


def test_a_layer_that_is_frozen_has_no_state_in_the_optimiser(lm: Path, tmp_path: Path) -> None:
    place = tmp_path / "run"
    with pytest.raises(Stopped):
        fit_until(lm, place, 2)
    (checkpoint,) = sorted((place / "checkpoints").glob("step-*"))[-1:]
    names = {name.rpartition("/")[0] for name in load_file(checkpoint / "optimiser.safetensors")}
    assert names
    assert not any("recurrent" in name or "table" in name for name in names)


def test_the_slanted_triangle_rises_for_a_tenth_and_falls() -> None:
    settings = TrainSettings.of({"schedule": "slanted", "rate": 32.0})
    rates = [scheduled_rate(settings, update, 100) for update in range(101)]
    assert rates[0] == pytest.approx(1.0)
    assert rates[10] == pytest.approx(32.0)
    assert rates[100] == pytest.approx(1.0)
    assert rates[:11] == sorted(rates[:11])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[55] == pytest.approx(16.5)
    assert "one-cycle" in SCHEDULES
    cycle = TrainSettings.of({"schedule": "one-cycle", "rate": 1.0})
    highest = max(range(101), key=lambda update: scheduled_rate(cycle, update, 100))
    assert highest == 30
    assert scheduled_rate(cycle, 100, 100) < 1e-6 < scheduled_rate(cycle, 0, 100)


# --- runs: the same after every stop, without the base -----------------------------------------


class StopAfter:
    def __init__(self, updates: int) -> None:
        self.left = updates

    def __call__(self, row: Any) -> None:
        self.left -= isinstance(row, Update)
        if not self.left:
            self.left = 10**9
            signal.raise_signal(signal.SIGTERM)


def fit_until(lm: Path, place: Path, updates: int | None, **options: Any) -> Classifier:
    watchers = [] if updates is None else [StopAfter(updates)]
    model = Classifier(base=lm, **{**HEAD_ONLY, **options})
    return model.fit(ROWS, HELD, folder=place, watchers=watchers)


@pytest.fixture(scope="module")
def whole(lm: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Classifier, Path]:
    place = tmp_path_factory.mktemp("whole") / "run"
    return fit_until(lm, place, None), place


@pytest.mark.parametrize("after", [1, 4, 6, 9, 13])  # of four updates an epoch: in every stage
def test_a_run_that_was_stopped_goes_on_without_its_base(
    lm: Path, whole: tuple[Classifier, Path], tmp_path: Path, after: int
) -> None:
    base, place = Path(shutil.copytree(lm, tmp_path / "lm")), tmp_path / "run"
    with pytest.raises(Stopped):
        fit_until(base, place, after)
    shutil.rmtree(base)
    again = fit_until(base, place, None)
    expected, folder = whole
    assert same(again.networks[0].state_dict(), expected.networks[0].state_dict())
    assert (place / "history.jsonl").read_bytes() == (folder / "history.jsonl").read_bytes()


def test_history_says_what_each_layer_learned_at(whole: tuple[Classifier, Path]) -> None:
    rows = [json.loads(line) for line in (whole[1] / "history.jsonl").read_text().splitlines()]
    first, last = (row["layers"] for row in (rows[0], [r for r in rows if "layers" in r][-1]))
    assert first["words"] == first["layer 1"] == first["layer 2"] == 0 < first["head"]
    assert last["head"] / last["layer 2"] == pytest.approx(2.6)
    plain = Classifier(**HEAD_ONLY)
    events = list[Any]()
    plain.fit(ROWS, HELD, watchers=[events.append])
    assert all(not row.layers for row in events if isinstance(row, Update))


def test_a_base_that_has_changed_is_refused(lm: Path, tmp_path: Path) -> None:
    base, place = Path(shutil.copytree(lm, tmp_path / "lm")), tmp_path / "run"
    with pytest.raises(Stopped):
        fit_until(base, place, 2)
    other = load(base)
    with torch.no_grad():
        next(iter(other.networks[0].parameters())).add_(1)
    other.save(base)
    with pytest.raises(RunError, match=r"the base has changed since .*run began: was .*now"):
        fit_until(base, place, None)


def test_a_run_is_whole_without_its_base(whole: tuple[Classifier, Path], tmp_path: Path) -> None:
    model, folder = whole
    moved = Path(shutil.copytree(folder, tmp_path / "elsewhere"))
    shutil.rmtree(moved / "base")
    again = Classifier.load(moved)
    texts = [text for text, _ in HELD]
    assert again.predict(texts) == model.predict(texts)
    assert again.base == model.base
    assert again.base.digest


def test_settings_of_a_base_are_among_those_of_a_run(whole: tuple[Classifier, Path]) -> None:
    config = whole[0].config()
    assert config["base.digest"] == read_base(whole[0], None).digest
    assert "base.path" not in Classifier().config()


# --- the command ------------------------------------------------------------------------------


def write_reviews(place: Path) -> Path:
    lines = [f"{text},{label}" for text, label in [*ROWS, *HELD]]
    place.write_text("\n".join(["review,mood", *lines]) + "\n")
    return place


def test_the_command_begins_from_a_run_and_goes_on_without_it(
    lm: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    shutil.copytree(lm, tmp_path / "lm")
    write_reviews(tmp_path / "reviews.csv")
    words = ("train", "reviews.csv", "--base", "lm", "--run", "run", "--epochs", "3")
    settings = ("--set", "model.linear=alone", "--set", "base.unfreeze_every=0.5")
    assert ensue(*words, *settings)[0] == 0
    config = tomllib.loads((tmp_path / "run/config.toml").read_text())
    assert config["base"]["path"] == ["../lm"]
    assert config["base"]["digest"] == read_copy(tmp_path / "run/base").digest
    assert config["model"]["hidden_size"] == 5
    assert config["text"]["level"] == "words"
    shutil.rmtree(tmp_path / "lm")
    assert ensue("train", "--run", "run")[0] == 0
    assert ensue("evaluate", "run", "--validation")[0] == 0
    code, _, errors = ensue("train", "--run", "run", "--base", "lm")
    assert code == 2
    assert "without files the run continues" in errors


def test_a_run_without_a_base_says_nothing_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    write_reviews(tmp_path / "reviews.csv")
    assert "[base]" not in ensue("train", "reviews.csv", "--dry-run")[1]


def test_pretraining_is_a_recipe_of_language_models(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    write_reviews(tmp_path / "reviews.csv")
    words = ("pretrain", "reviews.csv", "--text", "review", "--epochs", "7", "--dry-run")
    code, printed, _ = ensue(*words)
    assert code == 0
    config = tomllib.loads(printed)
    assert config["task"] == "language"
    assert config["train"]["epochs"] == 7
    model = LanguageModel(recipe="pretrain")
    assert config["train"]["averaging"] == model.train.averaging == 0.998
    assert config["text"]["level"] == model.text.level == "words"
    assert config["model"]["dropout_recurrent"] == model.settings.dropout_recurrent > 0


# --- F6: from any model to any other -----------------------------------------------------------


def test_a_classifier_is_the_base_of_another_one_and_of_a_regressor(
    whole: tuple[Classifier, Path], tmp_path: Path
) -> None:
    model, _ = whole
    model.save(tmp_path / "first")
    rows = [(text, {"good": "yes", "bad": "no"}[label]) for text, label in ROWS]
    other = Classifier(base=tmp_path / "first", **HEAD_ONLY).fit(rows, rows[:8])
    begun_with = other.fresh(3).state_dict()
    assert same(layer(begun_with, 0), layer(model.networks[0].state_dict(), 0))
    assert sorted(other.learned.target.labels.tokens) == ["no", "yes"]
    numbers = [(text, len(text)) for text, _ in ROWS]
    regressor = Regressor(base=tmp_path / "first", **HEAD_ONLY).fit(numbers, numbers[:8])
    assert same(layer(regressor.fresh(3).state_dict(), 1), layer(model.networks[0].state_dict(), 1))


def test_a_base_of_words_takes_no_vectors(lm: Path) -> None:
    rows = [(np.ones((3, 2), np.float32) * k, ("a", "b")[k % 2]) for k in range(8)]
    with pytest.raises(EnsueError, match=r"this base reads words, .* steps of 2 numbers"):
        Classifier(base=lm, **HEAD_ONLY).fit(rows, rows)


def test_vectors_of_another_width_are_refused(tmp_path: Path) -> None:
    def walks(width: int) -> list[Any]:
        draw = np.random.default_rng(1)
        return [(draw.normal(size=(4, width)).astype(np.float32), "ab"[k % 2]) for k in range(16)]

    first = Classifier(model={"hidden_size": 4}, train=QUICK).fit(walks(2), walks(2))
    first.save(tmp_path / "walks")
    same_width = Classifier(base=tmp_path / "walks", **HEAD_ONLY).fit(walks(2), walks(2))
    assert same(layer(same_width.fresh(1).state_dict(), 0), layer(weights_of(first), 0))
    scales = [model.learned.input.inputs.scale for model in (same_width, first)]
    assert scales[0] is not None
    assert scales[1] is not None
    assert np.array_equal(scales[0].mean, scales[1].mean)
    with pytest.raises(OptionError, match=r"reads steps of 2 numbers, .* has 3: .* same"):
        Classifier(base=tmp_path / "walks", **HEAD_ONLY).fit(walks(3), walks(3))


# --- F6: word vectors, and weights of torch.nn -------------------------------------------------


def write_vectors(place: Path, words: Mapping[str, Any], binary: bool = False) -> Path:
    width = len(next(iter(words.values())))
    with place.open("wb") as file:
        file.write(f"{len(words)} {width}\n".encode())
        for word, vector in words.items():
            if binary:
                file.write(word.encode() + b" " + np.array(vector, "<f4").tobytes() + b"\n")
            else:
                file.write(" ".join([word, *map(str, vector)]).encode() + b"\n")
    return place


@pytest.mark.parametrize("name", ["vectors.vec", "vectors.bin"])
def test_word_vectors_are_a_base(tmp_path: Path, name: str) -> None:
    known = {"fine": [1.0, 2.0, 3.0], "dull": [-1.5, 0.25, 4.0]}
    file = write_vectors(tmp_path / name, known, binary=name.endswith("bin"))
    place = tmp_path / "run"
    with pytest.raises(Stopped):
        fit_until(file, place, 3)
    file.unlink()
    model = fit_until(file, place, None)  # continues without the file
    words = model.learned.input.inputs.words
    assert words is not None
    table = model.fresh(1).state_dict()["reader.embed.features.0.table.weight"]
    for word, vector in known.items():
        assert table[words.numbers[word]].tolist() == vector
    assert [group.name for group in rates_of(model.networks[0], model).groups] == ["words", "head"]
    assert model.settings.embedding_size == 3


def test_a_binary_file_of_vectors_that_is_cut_off_is_named(tmp_path: Path) -> None:
    file = write_vectors(tmp_path / "a.bin", {"fine": [1.0, 2.0], "dull": [1.0, 3.0]}, True)
    file.write_bytes(file.read_bytes()[:-6])
    with pytest.raises(EnsueError, match=r"2 vectors are announced, and the file ends in number 2"):
        Classifier(base=file, **HEAD_ONLY).fit(ROWS, HELD)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("both", [False, True])
def test_weights_of_torch_are_a_base_that_computes_the_same(
    tmp_path: Path, kind: str, both: bool
) -> None:
    theirs = getattr(torch.nn, kind)(3, 5, num_layers=2, bidirectional=both)
    words = ["<pad>", "<unk>", "fine", "dull", "the"]
    table = torch.nn.Embedding(len(words), 3)
    weights = {
        f"encoder.rnn.{name}": tensor.detach() for name, tensor in theirs.state_dict().items()
    }
    weights["embedding.weight"] = table.weight.detach()
    save_file(weights, tmp_path / "theirs.safetensors")
    (tmp_path / "theirs.words.txt").write_text("\n".join(words))
    model = Classifier(base=tmp_path / "theirs.safetensors", **HEAD_ONLY).fit(ROWS, HELD)
    reader = model.fresh(1).eval().reader
    ids = torch.tensor([[2], [4], [3]])
    ours, _ = reader.encoder(reader.embed.features[0]({"words": ids}), torch.tensor([3]))
    assert torch.allclose(ours, theirs(table(ids))[0], atol=1e-6)


def test_weights_of_torch_without_their_words_say_what_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "theirs.safetensors"
    save_file({"embedding.weight": torch.ones(4, 3)}, file)
    with pytest.raises(OptionError, match=r"expected the words of its embedding.*theirs\.words"):
        Classifier(base=file, **HEAD_ONLY).fit(ROWS, HELD)
    (tmp_path / "theirs.words.txt").write_text("<pad>\n<unk>\na")
    with pytest.raises(OptionError, match=r"expected 4 words, one for each row .* got 3"):
        Classifier(base=file, **HEAD_ONLY).fit(ROWS, HELD)
    save_file({"linear.weight": torch.ones(4, 3)}, file)
    with pytest.raises(OptionError, match=r"expected weights of torch\.nn, .* got linear"):
        Classifier(base=file, **HEAD_ONLY).fit(ROWS, HELD)


# --- every task --------------------------------------------------------------------------------


def test_a_labeller_begins_from_a_language_model(lm: Path) -> None:
    rows = [(text.split(), ["X" if len(w) > 4 else "Y" for w in text.split()]) for text, _ in ROWS]
    options = {"model": {"batch_rows": 8, "linear_share": 0.0}, "train": QUICK}
    model = Labeller(base=lm, **options).fit(rows, rows[:8])
    fresh = model.fresh(1).state_dict()
    assert all(same(layer(fresh, k), layer(base_weights(lm), k)) for k in (0, 1))
    with pytest.raises(OptionError, match=r"model\.affixes: the base has 0, got 2"):
        Labeller(base=lm, **{**options, "model": {"affixes": 2}}).fit(rows, rows[:8])


TAKES = ("classify", "label", "language", "match", "regress", "translate")


@pytest.mark.parametrize("name", TASKS)
def test_every_task_takes_a_base_or_says_why_not(lm: Path, name: str) -> None:
    model = TASKS[name].model_class(base=lm)
    model.read_base()
    encoder = model.pretrained
    assert encoder is not None
    if name in TAKES:
        assert model.task.transfers.architecture(encoder, model)["hidden_size"] == 5
        return
    with pytest.raises(OptionError, match=f"{name} model cannot begin from .*lm"):
        model.task.transfers.architecture(encoder, model)


def test_a_model_that_has_no_encoder_is_no_base(tmp_path: Path) -> None:
    texts = [text for text, _ in ROWS]
    counted = LanguageModel(text=TEXT, model={"family": "ngram", "order": 2}).fit(texts, texts)
    counted.save(tmp_path / "counted")
    with pytest.raises(OptionError, match=r"model\.family = ngram cannot be a base"):
        Classifier(base=tmp_path / "counted").fit(ROWS)


OWN_CELL = """
from ensue.cells import Cell
from ensue.equations import Matrix, tanh

class Mine(Cell):
    W, U = Matrix("x"), Matrix("h")

    def step(self, x, h):
        return tanh(self.W @ x + self.U @ h)
"""


def test_a_base_with_a_cell_of_its_own_says_what_a_command_can_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    write_reviews(tmp_path / "reviews.csv")
    (tmp_path / "mine.py").write_text(OWN_CELL)
    small = ("--epochs", "1", "--set", "model.hidden_size=4", "--set", "model.embedding_size=4")
    words = ("train", "reviews.csv", "--task", "language", "--text", "review", "--run", "mine")
    assert ensue(*words, *small, "--set", "model.cell=mine.py:Mine")[0] == 0
    code, _, errors = ensue("train", "reviews.csv", "--base", "mine", "--run", "run")
    assert code == 2
    assert errors.rstrip().endswith(
        "name the cell for this training too, --set model.cell=FILE:NAME"
    )
    assert "load(" not in errors
