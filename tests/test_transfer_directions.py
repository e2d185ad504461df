"""Language models that read from the right, and two directions together as one base."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import commands_in
from test_transfer import (
    HEAD_ONLY,
    HELD,
    QUICK,
    ROWS,
    SMALL,
    TEXT,
    StopAfter,
    base_weights,
    moved_in,
    same,
    weights_of,
    write_reviews,
)

from ensue import Classifier, Labeller, LanguageModel, Matcher, Regressor, load
from ensue.errors import OptionError
from ensue.tasks.language.settings import LanguageSettings
from ensue.tasks.transfer.layers import rates_of
from ensue.training import Stopped

TEXTS = [text for text, _ in ROWS]


def saved(place: Path, texts: list[str] = TEXTS, **model: Any) -> Path:
    model_saved = LanguageModel(
        text=TEXT, model={**SMALL, **model}, train={"epochs": 1, "device": "cpu"}
    )
    model_saved.fit(texts, texts).save(place)
    return place


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A forward and a backward language model of the same texts."""
    place = tmp_path_factory.mktemp("ways")
    return saved(place / "ahead"), saved(place / "back", direction="backward")


@pytest.fixture(scope="module")
def two_way(ways: tuple[Path, Path]) -> Classifier:
    return Classifier(base=ways, **HEAD_ONLY).fit(ROWS, HELD)


# --- reading from the right --------------------------------------------------------------------


def test_a_backward_model_scores_a_text_as_a_forward_one_the_text_turned_round(
    ways: tuple[Path, Path],
) -> None:
    back = load(ways[1])
    turned = load(ways[0])
    turned.networks[0].load_state_dict(back.networks[0].state_dict())
    texts = ["the fine film the dull cast", "the poor film"]
    other = [" ".join(reversed(text.split())) for text in reversed(texts)]
    assert back.perplexity(texts) == pytest.approx(turned.perplexity(other))
    (mine,) = back.score(texts[:1])
    (theirs,) = turned.score([" ".join(reversed(texts[0].split()))])
    assert mine.tokens == ("the", "fine", "film", "the", "dull", "cast", "</s>")
    assert mine.bits == pytest.approx((*reversed(theirs.bits[:-1]), theirs.bits[-1]))
    rows = back.evaluate(texts)
    assert rows.scores["perplexity"].value == pytest.approx(back.perplexity(texts), rel=1e-4)


def test_a_backward_model_learns_what_stands_before() -> None:
    pairs = (("a", "b"), ("c", "d"), ("e", "f"))
    texts = [f"{first} x {last}" for first, last in random.Random(1).choices(pairs, k=60)]
    sizes = {"hidden_size": 16, "embedding_size": 16, "layers": 1, "columns": 4, "steps": 8}
    how = {**sizes, "dropout_input": 0.0, "dropout_output": 0.0, "direction": "backward"}
    model = LanguageModel(text=TEXT, model=how, train={"epochs": 20, "rate": 0.03})
    model.fit(texts, texts)
    (scored,) = model.score(["c x d"])
    assert scored.bits[0] < 0.7  # c is known once d has been read
    assert scored.bits[2] > 2 * scored.bits[0]  # and d is one of three


def test_a_backward_model_does_not_write_and_is_not_exported(ways: tuple[Path, Path]) -> None:
    back = load(ways[1])
    with pytest.raises(OptionError, match=r"cannot continue a prompt: .*direction = forward"):
        back.task.generates.writer(back, "the fine")
    with pytest.raises(OptionError, match=r"reads from the right .*cannot be exported; train with"):
        back.task.exported(back)


def test_the_direction_is_one_of_cells() -> None:
    with pytest.raises(ValueError, match=r"expected forward with family transformer, got backward"):
        LanguageSettings(family="transformer", direction="backward")


# --- two bases ---------------------------------------------------------------------------------


def test_each_direction_begins_from_its_language_model(
    ways: tuple[Path, Path], two_way: Classifier
) -> None:
    reader = two_way.fresh(3).eval().reader
    ahead, back = (load(way).networks[0].eval() for way in ways)
    tokens = torch.tensor([[4], [6], [5], [7]])
    y, _ = reader.encoder(reader.embed.features[0]({"words": tokens}), torch.tensor([4]))
    with torch.no_grad():
        left, _ = ahead.states(tokens, {})
        right, _ = back.states(tokens.flip(0), {})
    assert torch.allclose(y, torch.cat([left, right.flip(0)], -1), atol=1e-6)
    assert two_way.settings.directions == "apart"
    assert two_way.settings.embedding_size == 2 * SMALL["embedding_size"]
    assert "two-way" in two_way.task.describe(two_way)


def test_the_order_of_the_two_does_not_matter(ways: tuple[Path, Path], two_way: Classifier) -> None:
    turned = Classifier(base=ways[::-1], **HEAD_ONLY).fit(ROWS, HELD)
    assert same(weights_of(turned), weights_of(two_way))


def test_rows_of_any_length_are_read_from_their_own_end(two_way: Classifier) -> None:
    texts = ["the fine film", "dull", "the awful cast the poor film"]
    together = [answer.probabilities for answer in two_way.predict(texts)]
    alone = [two_way.predict([text])[0].probabilities for text in texts]
    for one, other in zip(together, alone, strict=True):
        assert one == pytest.approx(other, abs=1e-6)


def test_both_directions_of_a_layer_are_frozen_together(ways: tuple[Path, Path]) -> None:
    base = {"path": [str(way) for way in ways], "recipe": "frozen"}
    model = Classifier(base=base, **HEAD_ONLY).fit(ROWS, HELD)
    groups = rates_of(model.networks[0], model).groups
    assert [group.name for group in groups] == ["words", "layer 1", "layer 2", "head"]
    fresh = dict(model.fresh(1).named_parameters())
    now = dict(model.networks[0].named_parameters())
    assert [group.name for group in groups if moved_in(group, fresh, now)] == ["head"]
    layer = next(group for group in groups if group.name == "layer 1").parameters
    assert {name.split(".")[2] for name in layer} == {"recurrent", "from_right"}


def test_a_model_of_both_sides_gives_both_directions(tmp_path: Path) -> None:
    base = saved(tmp_path / "both", family="both", layers=1)
    model = Classifier(base=base, **HEAD_ONLY).fit(ROWS, HELD)
    fresh, state_of_base = model.fresh(1).state_dict(), base_weights(base)
    for here, source in (("recurrent", "recurrent"), ("from_right", "right")):
        name = "forwards.0.U"
        assert torch.equal(
            fresh[f"reader.encoder.{here}.{name}"], state_of_base[f"{source}.{name}"]
        )
    table = fresh["reader.embed.features.0.table.weight"]
    assert torch.equal(table[1:, :4], table[1:, 4:])


def test_other_tasks_begin_from_two_directions(ways: tuple[Path, Path]) -> None:
    tagged = [(t.split(), ["X" if len(w) > 4 else "Y" for w in t.split()]) for t in TEXTS]
    options = {"model": {"batch_rows": 8, "linear_share": 0.0}, "train": QUICK}
    expected = base_weights(ways[1])["recurrent.forwards.1.U"]
    labeller = Labeller(base=ways, **options).fit(tagged, tagged[:8])
    regressor = Regressor(base=ways, **HEAD_ONLY).fit([(t, len(t)) for t in TEXTS])
    matcher = Matcher(base=ways, train=QUICK).fit(
        [((t, t), "yesno"[:3]) for t in TEXTS[:4]] * 4
        + [((t, "dull"), "no") for t in TEXTS[:4]] * 4
    )
    for model, encoder in (
        (labeller, "encoder"),
        (regressor, "reader.encoder"),
        (matcher, "reader.encoder"),
    ):
        weights = model.fresh(1).state_dict()
        assert torch.equal(weights[f"{encoder}.from_right.forwards.1.U"], expected)


@pytest.mark.parametrize("after", [2, 7, 13])
def test_a_run_from_two_bases_goes_on_without_them(
    ways: tuple[Path, Path], two_way: Classifier, tmp_path: Path, after: int
) -> None:
    bases = [Path(shutil.copytree(way, tmp_path / way.name)) for way in ways]
    with pytest.raises(Stopped):
        Classifier(base=bases, **HEAD_ONLY).fit(
            ROWS, HELD, folder=tmp_path / "run", watchers=[StopAfter(after)]
        )
    for base in bases:
        shutil.rmtree(base)
    again = Classifier(base=bases, **HEAD_ONLY).fit(ROWS, HELD, folder=tmp_path / "run")
    assert same(weights_of(again), weights_of(two_way))
    texts = [text for text, _ in HELD]
    assert Classifier.load(tmp_path / "run").predict(texts) == two_way.predict(texts)


# --- what does not fit -------------------------------------------------------------------------


def test_a_backward_model_alone_is_no_base(ways: tuple[Path, Path]) -> None:
    with pytest.raises(OptionError, match=r"not a base by itself; .*--base A --base B"):
        Classifier(base=ways[1]).fit(ROWS)


def test_two_bases_are_a_forward_and_a_backward_one(
    ways: tuple[Path, Path], tmp_path: Path
) -> None:
    for bases, message in (
        ((ways[0], ways[0]), r"expected one base, got 2: .*ahead \(forward\)"),
        ((*ways, ways[0]), r"expected one base, got 3"),
        ((ways[0], _vectors(tmp_path)), r"no layers of words in one direction"),
    ):
        with pytest.raises(OptionError, match=message):
            Classifier(base=bases).fit(ROWS)


def _vectors(folder: Path) -> Path:
    (folder / "words.vec").write_text("1 2\nfine 0.5 0.25\n")
    return folder / "words.vec"


def test_two_bases_that_differ_are_refused_with_every_reason(
    ways: tuple[Path, Path], tmp_path: Path
) -> None:
    more = [*TEXTS, "a new word"]
    other = saved(tmp_path / "other", more, direction="backward", hidden_size=7, cell="GRU")
    with pytest.raises(OptionError) as error:
        Classifier(base=[ways[0], other]).fit(ROWS)
    message = str(error.value)
    assert "do not fit each other" in message
    assert "model.hidden_size: 5 and 7" in message
    assert "model.cell: 'LSTM' and 'GRU'" in message
    assert "different words; train both on the same files" in message


def test_directions_apart_need_an_even_number_of_inputs() -> None:
    walks = [(np.ones((3, 3), np.float32) * k, "ab"[k % 2]) for k in range(8)]
    with pytest.raises(OptionError, match=r"expected an even number of them, got 3"):
        Classifier(model={"directions": "apart"}, train=QUICK).fit(walks, walks)


def test_the_command_names_two_bases(
    ways: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    write_reviews(tmp_path / "reviews.csv")
    words = ("train", "reviews.csv", "--base", str(ways[0]), "--base", str(ways[1]))
    code, printed, _ = ensue(*words, "--dry-run", "--set", "model.linear=alone")
    assert code == 0
    assert 'directions = "apart"' in printed
    assert "embedding_size = 8" in printed
