"""A language model that continues from another one, on other texts: all weights, new words."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import commands_in
from test_transfer import SMALL, TEXT, StopAfter, same, weights_of, write_reviews

from ensue import Classifier, LanguageModel, load
from ensue.errors import OptionError
from ensue.tasks.transfer.layers import rates_of
from ensue.tasks.transfer.pretrained import read_copy
from ensue.training import Stopped

OLD = [f"the {a} {b}" for a in ("fine", "dull", "poor") for b in ("film", "cast")] * 6
NEW = [f"the {a} {b} was filmed" for a in ("fine", "finest") for b in ("film", "story")] * 6
TRAIN = {"epochs": 1, "device": "cpu"}
FAMILIES: dict[str, dict[str, Any]] = {
    "tied": {},
    "untied": {"tied": False},
    "bridged": {"hidden_size": 6},
    "adaptive": {"softmax": "adaptive", "softmax_cuts": [5, 8]},
    "adaptive, untied": {"softmax": "adaptive", "softmax_cuts": [5, 8], "tied": False},
    "backward": {"direction": "backward"},
    "both": {"family": "both", "layers": 1},
    "gru": {"cell": "GRU", "layers": 1},
    "transformer": {"family": "transformer", "hidden_size": 8, "embedding_size": 8, "heads": 2},
    "transformer, otherwise": {
        "family": "transformer",
        "hidden_size": 8,
        "heads": 1,
        "inner_size": 6,
        "norm": "after",
        "context": 5,
    },
    "convolution": {"family": "convolution", "hidden_size": 8, "embedding_size": 8},
    "convolution, otherwise": {"family": "convolution", "filter_size": 2, "dilated": False},
    "layers between, learned start": {"output_layers": True, "initial_state": "learned"},
}


def language(folder: Path, **model: Any) -> Path:
    LanguageModel(TEXT, {**SMALL, **model}, TRAIN).fit(OLD, OLD).save(folder)
    return folder


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return language(tmp_path_factory.mktemp("general") / "lm")


def going_on(lm: Path, texts: list[str] = NEW, **options: Any) -> LanguageModel:
    how = {"model": {"columns": 4, "steps": 8}, "train": TRAIN, **options}
    return LanguageModel(base={"path": [str(lm)], **how.pop("base", {})}, **how).fit(texts, texts)


@pytest.mark.parametrize("name", FAMILIES)
def test_it_begins_as_the_base_was(name: str, tmp_path: Path) -> None:
    """Before the first update it gives every old word that follows the share of probability that
    the base gave it among the old words; new words have vectors and a place in the output."""
    place = language(tmp_path / "lm", **FAMILIES[name])
    base, model = load(place), going_on(place)
    known, words = base.learned.words.tokens, model.learned.words.tokens
    assert words[: len(known)] == known
    assert {*words[len(known) :]} == {"was", "filmed", "finest", "story"}
    fresh, network_of_base = model.fresh(3).eval(), base.networks[0].eval()
    tokens = torch.tensor([[words.index(w)] for w in ("the", "fine", "film")])
    with torch.no_grad():
        y, expected = (
            network.run(tokens, network.begin(1))[0] for network in (fresh, network_of_base)
        )
        torch.testing.assert_close(y, expected)
        mine = fresh.output.log_probabilities(y)[..., : len(known)].softmax(-1)
        theirs = network_of_base.output.log_probabilities(expected).softmax(-1)
    if FAMILIES[name].get("softmax") != "adaptive":  # there new words share the last cluster alone
        torch.testing.assert_close(mine, theirs)
    before, rows = network_of_base.state_dict(), fresh.state_dict()
    assert before.keys() == rows.keys()
    for key, tensor in rows.items():
        torch.testing.assert_close(tensor[: len(before[key])], before[key], msg=key)
    settings = model.settings
    assert all(getattr(settings, key) == value for key, value in FAMILIES[name].items())


def test_nothing_new_means_the_same_network(lm: Path) -> None:
    model = going_on(lm, OLD)
    assert model.learned.words.tokens == load(lm).learned.words.tokens
    assert same(model.fresh(5).state_dict(), load(lm).networks[0].state_dict())


def test_all_layers_learn_from_the_start_at_one_rate(lm: Path) -> None:
    model = going_on(lm)
    assert (model.base.recipe, model.train.schedule) == ("whole", "slanted")
    shares = rates_of(model.fresh(1), model).shares(0, 10)
    assert shares == {"words": 1.0, "layer 1": 1.0, "layer 2": 1.0, "head": 1.0}


def test_rates_fall_from_the_top_where_asked(lm: Path) -> None:
    model = going_on(lm, base={"rate_decay": 2.6})
    rates = rates_of(model.fresh(1), model)
    shares = rates.shares(0, 10)
    assert list(shares) == ["words", "layer 1", "layer 2", "head"]
    assert [round(1 / share, 3) for share in shares.values()] == [17.576, 6.76, 2.6, 1.0]
    assert rates.group_of("table.weight") == "words"
    assert rates.group_of("output.bias") == "head"
    before = going_on(lm, base={"recipe": "frozen"})
    moved = {
        name: not torch.equal(tensor, weights_of(before)[name])
        for name, tensor in before.fresh(1).state_dict().items()
    }
    assert not moved["recurrent.forwards.0.W"]
    assert not moved["table.weight"]
    assert moved["output.bias"]


def test_it_learns_its_own_texts_sooner_than_a_fresh_one(tmp_path: Path) -> None:
    how: dict[str, Any] = {"dropout_input": 0.0, "dropout_layers": 0.0, "dropout_output": 0.0}
    sizes = {**SMALL, "hidden_size": 16, "embedding_size": 16, "layers": 1, **how}
    model = LanguageModel(TEXT, sizes, {"epochs": 30, "rate": 0.01, "device": "cpu"})
    model.fit(OLD, OLD).save(tmp_path / "lm")
    few: dict[str, Any] = {"epochs": 3, "rate": 0.01, "device": "cpu"}
    texts = [text.replace("poor", "finest") for text in OLD]
    other = [f"a {a} {b} of it" for a in ("red", "green", "blue") for b in ("day", "sea")] * 6
    for own_texts in (texts, [*texts, *other]):  # most words of the others are new
        adapted = going_on(
            tmp_path / "lm", own_texts, train=few, model={**how, "columns": 4, "steps": 8}
        )
        fresh = LanguageModel(TEXT, sizes, few).fit(own_texts, own_texts)
        assert adapted.perplexity(own_texts) < fresh.perplexity(own_texts)


def test_it_is_a_base_itself_and_goes_on_without_its_own(lm: Path, tmp_path: Path) -> None:
    """Stopped and resumed to the same bits when the base is gone; then the base of a classifier."""
    gone = shutil.copytree(lm, tmp_path / "gone")
    how: dict[str, Any] = {"model": {"columns": 4, "steps": 8}, "train": {**TRAIN, "epochs": 3}}
    whole = LanguageModel(base=gone, **how).fit(NEW, NEW, folder=tmp_path / "whole")
    with pytest.raises(Stopped):
        LanguageModel(base=gone, **how).fit(
            NEW, NEW, folder=tmp_path / "run", watchers=[StopAfter(4)]
        )
    copy = read_copy(tmp_path / "run" / "base")
    assert copy.language["hidden_size"] == 5
    assert copy.whole.keys() == load(lm).networks[0].state_dict().keys()
    shutil.rmtree(gone)
    resumed = LanguageModel(base=gone, **how).fit(NEW, NEW, folder=tmp_path / "run")
    assert same(weights_of(resumed), weights_of(whole))
    rows = [(text, "new" if "story" in text else "old") for text in NEW]
    model = Classifier(base=tmp_path / "run", train=TRAIN).fit(rows, rows[:8])
    assert model.pretrained is not None
    assert not model.pretrained.whole  # a classifier keeps no output of a language model


def test_what_does_not_fit_is_refused(lm: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="continues with all layers of its base"):
        going_on(lm, base={"layers": 1})
    with pytest.raises(OptionError, match=r"model\.hidden_size: the base has 5, got 7"):
        going_on(lm, model={"hidden_size": 7})
    with pytest.raises(OptionError, match=r"model\.direction: the base has 'forward', got 'back"):
        going_on(lm, model={"direction": "backward"})
    rows = [("a fine film", "good"), ("a dull film", "bad")] * 6
    Classifier(TEXT, {"hidden_size": 4}, TRAIN).fit(rows, rows).save(tmp_path / "classifier")
    with pytest.raises(OptionError, match="expected one language model with layers"):
        going_on(tmp_path / "classifier")
    back = language(tmp_path / "back", direction="backward")
    with pytest.raises(OptionError, match="expected one language model with layers"):
        LanguageModel(base=[str(lm), str(back)], train=TRAIN).fit(NEW, NEW)


def test_pretrain_leaves_to_a_base_what_follows_from_it(
    lm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recipe says words and an adaptive softmax; the base has a full one."""
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    write_reviews(tmp_path / "reviews.csv")
    words = ("pretrain", "reviews.csv", "--text", "review", "--base", str(lm), "--run", "adapted")
    code, _, errors = ensue(*words, "--epochs", "1", "--set", "model.columns=4")
    assert code == 0, errors
    config = tomllib.loads((tmp_path / "adapted" / "config.toml").read_text())
    assert config["model"]["softmax"] == "full"
    assert (config["model"]["steps"], config["train"]["averaging"]) == (70, 0.998)
    assert config["base"]["recipe"] == "whole"
