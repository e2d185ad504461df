"""A character language model as base of a labeller: its states are read next to the words."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import commands_in
from test_transfer import QUICK, ROWS, StopAfter, moved_in, same, weights_of

from ensue import Labeller, LanguageModel, load
from ensue.data.ragged import Ragged
from ensue.errors import OptionError
from ensue.tasks.blocks.letter_states import LetterStates
from ensue.tasks.label.predicted import columns_of
from ensue.tasks.rows.batch import collate
from ensue.tasks.rows.surfaces import in_sentences
from ensue.tasks.transfer.layers import rates_of
from ensue.training import Stopped, Update

TEXTS = [text.title() for text, _ in ROWS]
TAGGED = [(t.split(), ["X" if w.endswith("m") else "Y" for w in t.split()]) for t in TEXTS]
LETTERS = {"level": "characters", "lower": False, "min_count": 1}
SMALL = {"hidden_size": 6, "embedding_size": 4, "layers": 1, "columns": 4, "steps": 20}
OWN: dict[str, Any] = {
    "model": {"hidden_size": 4, "embedding_size": 4, "character_size": 0, "batch_rows": 8},
    "train": {**QUICK, "epochs": 2},
}
OWN["model"]["linear_share"] = 0.0


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A forward and a backward language model of letters."""
    place = tmp_path_factory.mktemp("letters")
    for way in ("forward", "backward"):
        model = LanguageModel(
            text=LETTERS,
            model={**SMALL, "direction": way},
            train={"epochs": 1, "device": "cpu"},
        )
        model.fit(TEXTS, TEXTS).save(place / way)
    return place / "forward", place / "backward"


@pytest.fixture(scope="module")
def tagger(letters: tuple[Path, Path]) -> Labeller:
    return Labeller(base=letters, **OWN).fit(TAGGED, TAGGED[:8])


def feature_of(network: Any) -> LetterStates:
    (feature,) = [
        feature for feature in network.embed.features if isinstance(feature, LetterStates)
    ]
    return feature


def test_sentences_are_spelled_with_spaces_between_words() -> None:
    spelling = Ragged(np.array([9, 5, 1, 2, 3, 4, 4]), np.array([0, 2, 5, 7]))  # 123 and 44
    sentences, after = in_sentences(spelling, np.array([[1, 2], [2, 0]]))
    assert sentences.T.tolist() == [[9, 1, 2, 3, 5, 4, 4, 9], [9, 4, 4, 9, 0, 0, 0, 0]]
    assert after.tolist() == [[4, 3], [7, 3]]
    nothing, none = in_sentences(spelling, np.zeros((0, 2), np.int64))
    assert nothing.tolist() == [[9, 9]]
    assert none.shape == (0, 2)


def test_a_word_has_the_states_of_the_language_models_around_it(
    letters: tuple[Path, Path], tagger: Labeller
) -> None:
    part = tagger.reader.questions([["The", "Dull", "Film"]])
    batch = collate(columns_of(part, tagger), [0])
    states = feature_of(tagger.networks[0])(batch.inputs)[:, 0]
    ahead, back = (load(way) for way in letters)
    ids = ahead.learned.words.ids(list("The Dull Film"))
    border = ahead.first
    text = torch.tensor([border, *ids, border])[:, None]
    with torch.no_grad():
        left, _ = ahead.networks[0].states(text, {})
        right, _ = back.networks[0].states(text.flip(0), {})
    right = right.flip(0)
    expected = [torch.cat([left[a, 0], right[b, 0]]) for a, b in ((4, 0), (9, 4), (14, 9))]
    assert torch.allclose(states, torch.stack(expected), atol=1e-6)


def test_the_other_features_of_words_are_still_read(tagger: Labeller) -> None:
    assert tagger.settings.affixes == 4
    assert tagger.settings.shapes
    assert tagger.settings.embedding_size == 4
    assert tagger.text.level == "words"
    assert tagger.base.recipe == "frozen"


def test_the_language_model_does_not_move_unless_it_is_told_to(
    letters: tuple[Path, Path], tagger: Labeller
) -> None:
    groups = rates_of(tagger.networks[0], tagger).groups
    assert [group.name for group in groups] == ["words", "layer 1", "head"]
    begun = dict(tagger.fresh(1).named_parameters())
    now = dict(tagger.networks[0].named_parameters())
    assert [group.name for group in groups if moved_in(group, begun, now)] == ["head"]
    base = {"path": [str(letters[0])], "recipe": "whole", "rate_decay": 2.0}
    events = list[Any]()
    moving = Labeller(base=base, **OWN).fit(TAGGED, TAGGED[:8], watchers=[events.append])
    first = next(row for row in events if isinstance(row, Update))
    assert first.layers["layer 1"] == pytest.approx(first.layers["head"] / 2)
    assert first.layers["words"] == pytest.approx(first.layers["head"] / 4)
    moved = feature_of(moving.networks[0]).table.weight
    assert not torch.equal(moved, load(letters[0]).networks[0].table.weight)


def test_a_row_has_the_same_answer_alone_and_among_others(tagger: Labeller) -> None:
    rows = [["The"], ["Dull", "Film", "The", "Great"], ["A", "Film"]]
    together = tagger.predict(rows)
    for row, answer in zip(rows, together, strict=True):
        (alone,) = tagger.predict([row])
        assert alone.labels == answer.labels
        assert alone.probabilities == pytest.approx(answer.probabilities, abs=1e-6)


def test_an_answer_is_explained(tagger: Labeller) -> None:
    for method in ("occlusion", "integrated"):
        explanation = tagger.explain(["The", "Dull", "Film"], method=method)
        assert len(explanation.answers) == 3


def test_a_saved_labeller_keeps_its_language_model(tagger: Labeller, tmp_path: Path) -> None:
    tagger.save(tmp_path / "tagger")
    words = [row for row, _ in TAGGED]
    assert Labeller.load(tmp_path / "tagger").predict(words) == tagger.predict(words)


@pytest.mark.parametrize("after", [2, 5])
def test_a_run_goes_on_without_the_language_model(
    letters: tuple[Path, Path], tagger: Labeller, tmp_path: Path, after: int
) -> None:
    bases = [Path(shutil.copytree(way, tmp_path / way.name)) for way in letters]
    with pytest.raises(Stopped):
        Labeller(base=bases, **OWN).fit(
            TAGGED, TAGGED[:8], folder=tmp_path / "run", watchers=[StopAfter(after)]
        )
    for base in bases:
        shutil.rmtree(base)
    again = Labeller(base=bases, **OWN).fit(TAGGED, TAGGED[:8], folder=tmp_path / "run")
    assert same(weights_of(again), weights_of(tagger))


def test_the_command_reads_words_beside_a_base_of_letters(
    letters: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    rows = ["\n".join(f"{w}\t{t}" for w, t in zip(*row, strict=True)) for row in TAGGED]
    (tmp_path / "tags.conll").write_text("\n\n".join(rows) + "\n")
    words = ("train", "tags.conll", "--base", str(letters[0]), "--run", "run", "--epochs", "2")
    small = ("--set", "model.hidden_size=4", "--set", "model.character_size=0")
    assert ensue(*words, *small)[0] == 0
    assert 'recipe = "frozen"' in (tmp_path / "run/config.toml").read_text()
    assert ensue("train", "--run", "run")[0] == 0
    assert ensue("evaluate", "run", "--validation")[0] == 0
    code, _, errors = ensue("export", "run", "tagger.onnx")
    assert code != 0
    assert "a character language model next to the words of a labeller cannot be exported" in errors


def test_layers_of_letters_are_neither_dropped_nor_added(letters: tuple[Path, Path]) -> None:
    for settings in ({"layers": 1}, {"added": 1}):
        with pytest.raises(OptionError, match=r"next to the words; .*leave these settings"):
            Labeller(base={"path": [str(path) for path in letters], **settings}, **OWN).fit(TAGGED)


def test_letters_are_labelled_by_the_layers_themselves(letters: tuple[Path, Path]) -> None:
    rows = [(list(t), ["XY"[k % 2] for k in range(len(t))]) for t in TEXTS[:8]]
    options = {**OWN, "model": {"batch_rows": 8, "linear_share": 0.0}}
    model = Labeller(base=letters[0], text={"level": "characters"}, **options).fit(rows, rows[:4])
    assert model.settings.hidden_size == SMALL["hidden_size"]
    assert model.learned.context is None


def test_what_does_not_fit_is_refused(letters: tuple[Path, Path]) -> None:
    with pytest.raises(OptionError, match=r"base\.layers, base\.added: .*all of its layers"):
        Labeller(base={"path": [str(letters[0])], "layers": 1}, **OWN).fit(TAGGED)
    walks = [(np.ones((3, 2), np.float32) * k, ["a", "b", "a"]) for k in range(4)]
    with pytest.raises(OptionError, match=r"this base reads letters, .* steps of 2 numbers"):
        Labeller(base=letters[0], **OWN).fit(walks, walks)
