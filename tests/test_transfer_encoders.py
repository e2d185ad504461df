"""Language models of Transformers and convolutions as bases, and bases of translators."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from test_transfer import (
    HEAD_ONLY,
    HELD,
    QUICK,
    ROWS,
    SMALL,
    TEXT,
    StopAfter,
    base_weights,
    layer,
    moved_in,
    same,
    weights_of,
)

from ensue import Classifier, Labeller, LanguageModel, Translator, load
from ensue.errors import OptionError
from ensue.tasks.transfer.layers import rates_of
from ensue.training import Stopped

TEXTS = [text for text, _ in ROWS]
KINDS: dict[str, dict[str, Any]] = {
    "transformer": {"hidden_size": 8, "heads": 2, "context": 5},
    "convolution": {"hidden_size": 6, "filter_size": 2},
}
PAIRS = [(text, " ".join(reversed(text.split()))) for text in TEXTS]
PAIRED: dict[str, Any] = {"model": {"batch_rows": 8}, "train": {**QUICK, "epochs": 2}}


def saved(place: Path, **model: Any) -> Path:
    model_saved = LanguageModel(
        text=TEXT, model={**SMALL, **model}, train={"epochs": 1, "device": "cpu"}
    )
    model_saved.fit(TEXTS, TEXTS).save(place)
    return place


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("kinds")
    folders = {
        name: saved(place / name, family=name, **settings) for name, settings in KINDS.items()
    }
    return {**folders, "recurrent": saved(place / "recurrent")}


# --- encoders that see nothing of what comes next ------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_encoder_computes_what_the_language_model_did(
    bases: dict[str, Path], kind: str
) -> None:
    model = Classifier(base=bases[kind], **HEAD_ONLY).fit(ROWS, HELD)
    assert (model.settings.encoder, model.settings.causal) == (kind, True)
    assert "causal" in model.task.describe(model)
    reader, language_model = model.fresh(1).eval().reader, load(bases[kind]).networks[0].eval()
    tokens = torch.tensor([[4, 5], [6, 7], [5, 4], [7, 0], [4, 0], [6, 0], [5, 0]])
    x = reader.embed.features[0]({"words": tokens})
    y, final = reader.encoder(x, torch.tensor([7, 3]))
    language_model.between = torch.nn.Identity()  # what is read off the states
    with torch.no_grad():
        expected, _ = language_model.run(tokens, {})
    assert torch.allclose(y[:, 0], expected[:, 0], atol=1e-5)
    assert torch.allclose(y[:3, 1], expected[:3, 1], atol=1e-5)
    assert not y[3:, 1].any()  # padding
    assert torch.equal(final, torch.stack([y[6, 0], y[2, 1]]))
    x = x.clone()
    x[4:] += 1  # the future does not change the past
    assert torch.allclose(reader.encoder(x, torch.tensor([7, 3]))[0][:4], y[:4], atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_its_lowest_layers_are_frozen_and_the_others_learn(
    bases: dict[str, Path], kind: str
) -> None:
    base = {"path": [str(bases[kind])], "freeze": 2, "recipe": "whole"}
    model = Classifier(base=base, **HEAD_ONLY).fit(ROWS, HELD)
    groups = rates_of(model.networks[0], model).groups
    assert [group.name for group in groups] == ["words", "layer 1", "layer 2", "head"]
    begun, now = (dict(n.named_parameters()) for n in (model.fresh(1), model.networks[0]))
    moved = [group.name for group in groups if moved_in(group, begun, now)]
    assert moved == ["layer 2", "head"]
    head = next(group for group in groups if group.name == "head").parameters
    assert not any(name.startswith("reader.encoder.") for name in head)


def test_fewer_layers_of_a_transformer_are_taken(bases: dict[str, Path]) -> None:
    base = {"path": [str(bases["transformer"])], "layers": 1}
    model = Classifier(base=base, **HEAD_ONLY).fit(ROWS, HELD)
    fresh, state_of_base = model.fresh(1).state_dict(), base_weights(bases["transformer"])
    name = "blocks.layers.0.linear1.weight"
    assert torch.equal(fresh[f"reader.encoder.{name}"], state_of_base[name])
    assert not any("layers.1." in name for name in fresh)


def test_a_labeller_begins_from_convolutions_and_goes_on(
    bases: dict[str, Path], tmp_path: Path
) -> None:
    rows = [(t.split(), ["X" if len(w) > 4 else "Y" for w in t.split()]) for t in TEXTS]
    options = {"model": {"batch_rows": 8, "linear_share": 0.0}, "train": {**QUICK, "epochs": 2}}
    base = Path(shutil.copytree(bases["convolution"], tmp_path / "base"))
    whole = Labeller(base=base, **options).fit(rows, rows[:8])
    with pytest.raises(Stopped):
        Labeller(base=base, **options).fit(
            rows, rows[:8], folder=tmp_path / "run", watchers=[StopAfter(3)]
        )
    shutil.rmtree(base)
    again = Labeller(base=base, **options).fit(rows, rows[:8], folder=tmp_path / "run")
    assert same(weights_of(again), weights_of(whole))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"causal": False}, r"model\.causal: the base has True, got False"),
        ({"heads": 4}, r"model\.heads: the base has 2, got 4"),
        ({"encoder": "recurrent"}, r"model\.encoder: the base has 'transformer'"),
    ],
)
def test_what_does_not_fit_a_transformer_is_refused(
    bases: dict[str, Path], settings: dict[str, Any], message: str
) -> None:
    options = {**HEAD_ONLY, "model": {**HEAD_ONLY["model"], **settings}}
    with pytest.raises(OptionError, match=message):
        Classifier(base=bases["transformer"], **options).fit(ROWS, HELD)


def test_a_window_is_no_base(tmp_path: Path) -> None:
    place = saved(tmp_path / "window", family="window")
    with pytest.raises(OptionError, match=r"model\.family = window cannot be a base"):
        Classifier(base=place).fit(ROWS)


# --- the encoder of a translator -----------------------------------------------------------------


@pytest.fixture(scope="module")
def translator(bases: dict[str, Path]) -> Translator:
    return Translator(base=bases["recurrent"], **PAIRED).fit(PAIRS, PAIRS[:8])


def test_a_translator_reads_its_sources_as_the_base_did(
    bases: dict[str, Path], translator: Translator
) -> None:
    fresh, state_of_base = translator.fresh(1).state_dict(), base_weights(bases["recurrent"])
    for number in (0, 1):
        expected = layer(state_of_base, number)
        begin = f"network.encoder.forwards.{number}."
        actual = {n.removeprefix(begin): t for n, t in fresh.items() if n.startswith(begin)}
        assert same(actual, expected)
    known = load(bases["recurrent"]).learned
    assert torch.equal(
        fresh["network.table.weight"][: len(known.words)], state_of_base["table.weight"]
    )
    assert translator.learned.source.tokeniser == known.tokeniser
    assert translator.learned.target.tokeniser.lower is False
    assert (translator.settings.bidirectional, translator.settings.hidden_size) == (False, 5)
    assert len(translator.predict(["the Fine film"])) == 1


def test_the_source_encoder_of_a_translator_is_frozen(bases: dict[str, Path]) -> None:
    base = {"path": [str(bases["recurrent"])], "recipe": "frozen"}
    model = Translator(base=base, **PAIRED).fit(PAIRS, PAIRS[:8])
    groups = rates_of(model.networks[0], model).groups
    assert [group.name for group in groups] == ["words", "layer 1", "layer 2", "head"]
    begun, now = (dict(n.named_parameters()) for n in (model.fresh(1), model.networks[0]))
    assert [group.name for group in groups if moved_in(group, begun, now)] == ["head"]


def test_a_translator_goes_on_without_its_base(
    bases: dict[str, Path], translator: Translator, tmp_path: Path
) -> None:
    base = Path(shutil.copytree(bases["recurrent"], tmp_path / "base"))
    with pytest.raises(Stopped):
        Translator(base=base, **PAIRED).fit(
            PAIRS, PAIRS[:8], folder=tmp_path / "run", watchers=[StopAfter(4)]
        )
    shutil.rmtree(base)
    again = Translator(base=base, **PAIRED).fit(PAIRS, PAIRS[:8], folder=tmp_path / "run")
    assert same(weights_of(again), weights_of(translator))
    texts = TEXTS[:4]
    assert Translator.load(tmp_path / "run").predict(texts) == translator.predict(texts)


def test_a_classifier_is_the_base_of_a_translator(tmp_path: Path) -> None:
    options = {**HEAD_ONLY, "model": {"hidden_size": 4, "embedding_size": 4, "linear": "alone"}}
    Classifier(**options).fit(ROWS, HELD).save(tmp_path / "moods")
    model = Translator(base=tmp_path / "moods", **PAIRED).fit(PAIRS, PAIRS[:8])
    assert model.settings.bidirectional
    model.save(tmp_path / "translator")
    assert Translator.load(tmp_path / "translator").predict(TEXTS[:2]) == model.predict(TEXTS[:2])


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("transformer", {}, r"it has transformer layers; expected recurrent layers over words"),
        ("recurrent", {"family": "transformer"}, r"model\.family: expected recurrent, got tr"),
        ("recurrent", {"shared": True}, r"model\.shared: expected false"),
        ("recurrent", {"reverse_source": True}, r"model\.reverse_source: expected false"),
        ("recurrent", {"hidden_size": 7}, r"model\.hidden_size: the base has 5, got 7"),
    ],
)
def test_what_does_not_fit_a_translator_is_refused(
    bases: dict[str, Path], kind: str, settings: dict[str, Any], message: str
) -> None:
    options = {**PAIRED, "model": {**PAIRED["model"], **settings}}
    with pytest.raises(OptionError, match=message):
        Translator(base=bases[kind], **options).fit(PAIRS, PAIRS[:8])
