"""The captioner: laws over every kind of it, from pictures in memory and from files."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ensue import Captioned, Captioner
from ensue.data.pictures.images import write_image
from ensue.data.ragged import Ragged
from ensue.data.vocabulary import START_NUMBER
from ensue.decoding import score
from ensue.errors import ConfigError, DataError, OptionError, ShapeError
from ensue.layers.convolution import ConvolutionBlocks
from ensue.tasks.answers import columns_of
from ensue.tasks.rows.part import Names
from ensue.tasks.seq2seq.evaluation import Compared, Scoring, evaluate_pairs
from ensue.tasks.seq2seq.pairs import PairColumns, pair_networks
from ensue.tasks.seq2seq.picture import PicturePairs, Regions, lines_of
from ensue.tasks.seq2seq.search import SearchEnsemble
from ensue.tasks.seq2seq.settings import CaptionSettings
from ensue.training import Stopped, Update

SIDE = 12
COLOURS = {"red": (230, 30, 30), "green": (30, 180, 60), "blue": (40, 60, 220)}
PLACES = {"top left": (1, 1), "top right": (1, 7), "bottom left": (7, 1), "bottom right": (7, 7)}
Pairs = list[tuple[np.ndarray, str]]


def blocks(count: int, seed: int, most: int = 2) -> Pairs:
    """One coloured square or more in the quarters of a picture."""
    draw = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        picture = draw.integers(235, 256, (3, SIDE, SIDE)).astype(np.uint8)
        places = draw.permutation(list(PLACES))[: int(draw.integers(1, most + 1))].tolist()
        phrases = []
        for place in sorted(places, key=list(PLACES).index):
            colour = str(draw.choice(list(COLOURS)))
            top, left = PLACES[place]
            picture[:, top : top + 4, left : left + 4] = np.reshape(COLOURS[colour], (3, 1, 1))
            phrases.append(f"{place} {colour}")
        rows.append((picture, " and ".join(phrases)))
    return rows


@dataclass(frozen=True)
class Case:
    """A kind of captioner."""

    model: dict[str, Any] = field(default_factory=dict)
    text: dict[str, Any] = field(default_factory=dict)
    members: int = 1

    def new(self, **train: Any) -> Captioner:
        small = {
            **{"blocks": "6/2 8/2", "hidden_size": 8, "embedding_size": 6, "batch_rows": 12},
            **{"longest": 8, "validation_rows": 4},
        }
        settings = {"epochs": 2, "rate": 0.01, **train}
        return Captioner(self.text, {**small, **self.model}, settings, members=self.members)

    def fitted(self, **train: Any) -> Captioner:
        return self.new(**train).fit(blocks(40, 1), blocks(12, 2))

    @property
    def attends(self) -> bool:
        return self.model.get("attention") != "none"


CASES = {
    "additive": Case(),
    "general, LSTM": Case({"attention": "general", "cell": "LSTM", "layers": 2}),
    "dot, from zero": Case({"attention": "dot", "project": True, "begin": "zero"}),
    "concat, fed": Case({"attention": "concat", "input_feeding": True, "norm": "none"}),
    "no attention": Case({"attention": "none", "tied": False}),
    "characters, grey": Case({"channels": "grey", "longest": 12}, {"level": "characters"}),
    "two members": Case(members=2),
}
PICTURES = [picture for picture, _ in blocks(7, 3)]
every_case = pytest.mark.parametrize("name", CASES)


@pytest.fixture(scope="module")
def fitted() -> Callable[[str], Captioner]:
    known: dict[str, Captioner] = {}

    def find(name: str) -> Captioner:
        if name not in known:
            known[name] = CASES[name].fitted()
        return known[name]

    return find


# --- laws over all of them -------------------------------------------------------------------


@every_case
def test_saved_and_loaded_it_answers_the_same(
    name: str, fitted: Callable[[str], Captioner], tmp_path: Path
) -> None:
    model = fitted(name)
    model.save(tmp_path / "model")
    other = Captioner.load(tmp_path / "model")
    assert other.predict(PICTURES) == model.predict(PICTURES)
    assert other.evaluate(blocks(9, 5)) == model.evaluate(blocks(9, 5))
    assert other.summary() == model.summary()
    assert "pictures of 12×12 pixels" in model.summary()
    assert " tokens in the vocabulary" in model.summary()


@every_case
def test_a_picture_by_itself_gets_the_answer_it_gets_among_others(
    name: str, fitted: Callable[[str], Captioner]
) -> None:
    model = fitted(name)
    for picture, among in zip(PICTURES, model.predict(PICTURES), strict=True):
        alone = model.predict([picture])[0]
        assert alone.tokens == among.tokens
        assert alone.score == pytest.approx(among.score, abs=1e-4)
    assert model.predict([]) == []


class Stop:
    """A watcher that sends a signal to its own process after a number of updates."""

    def __init__(self, updates: int) -> None:
        self.left = updates

    def __call__(self, row: object) -> None:
        self.left -= isinstance(row, Update)
        if not self.left:
            self.left = 10**9
            signal.raise_signal(signal.SIGTERM)


@every_case
def test_interrupted_and_continued_is_never_stopped(
    name: str, fitted: Callable[[str], Captioner], tmp_path: Path
) -> None:
    case, data = CASES[name], (blocks(40, 1), blocks(12, 2))
    with pytest.raises(Stopped):
        case.new().fit(*data, folder=tmp_path / "run", watchers=[Stop(3 * case.members)])
    again = case.new().fit(*data, folder=tmp_path / "run")
    for one, other in zip(again.networks, fitted(name).networks, strict=True):
        state = other.state_dict()
        assert all(torch.equal(value, state[key]) for key, value in one.state_dict().items())


@every_case
def test_stepping_equals_all_at_once(name: str, fitted: Callable[[str], Captioner]) -> None:
    model = fitted(name)
    part = model.reader.labelled(blocks(5, 4))
    batch = model.task.pair_columns(part, model).batch(range(5))
    ensemble = SearchEnsemble(pair_networks(model))
    at_once = ensemble.log_probabilities(batch)
    state = ensemble.begin(batch.source, batch.lengths)
    start = torch.full((5,), START_NUMBER)
    stepped = score(ensemble.step, start, state, batch.targets, batch.target_lengths)
    assert torch.allclose(stepped, at_once.double(), atol=1e-5)


@every_case
def test_the_n_best_fall_and_their_scores_are_those_of_their_words(
    name: str, fitted: Callable[[str], Captioner]
) -> None:
    model = fitted(name)
    lines = lines_of(model.reader.questions(PICTURES).pixels)
    for row, answer in enumerate(model.predict(PICTURES, n_best=2)):
        first, second = answer.alternatives
        assert (first.text, first.score) == (answer.text, answer.score)
        assert first.score >= second.score
        lines_said = [f"{one.score:.4f}\t{one.text}" for one in answer.alternatives]
        assert answer.as_line("").splitlines() == lines_said
        target = Ragged.of([model.learned.target.words.ids(answer.tokens)], np.int32)
        batch = PairColumns(lines.take([row]), target).batch([0])
        logs = SearchEnsemble(pair_networks(model)).log_probabilities(batch)
        cut = len(answer.tokens) == model.settings.longest + 1  # the end was not predicted
        assert answer.score == pytest.approx(float(logs[: len(logs) - cut].sum()), abs=1e-4)


@every_case
def test_each_word_looks_at_all_regions_with_weights_that_sum_to_one(
    name: str, fitted: Callable[[str], Captioner]
) -> None:
    model = fitted(name)
    if not CASES[name].attends:
        with pytest.raises(OptionError, match="this model has no attention"):
            model.predict(PICTURES, alignment=True)
        return
    for answer in model.predict(PICTURES, alignment=True):
        assert answer.attention is not None
        assert [len(row) for row in answer.attention] == [9] * len(answer.tokens)
    gaze = model.explain(PICTURES[0])
    assert gaze.text == model.predict(PICTURES[:1])[0].text
    assert gaze.grid == (3, 3)
    assert np.shape(gaze.attention) == (len(gaze.tokens), 9)
    assert np.sum(gaze.attention, 1) == pytest.approx(1)
    assert np.min(gaze.attention) >= 0
    product = math.prod(gaze.probabilities)
    assert product == pytest.approx(math.exp(model.predict(PICTURES[:1])[0].score), rel=1e-3)


# --- regions ---------------------------------------------------------------------------------


def test_regions_are_the_blocks_of_the_picture_row_by_row() -> None:
    pictures = np.random.default_rng(1).integers(0, 256, (4, 3, 8, 12)).astype(np.uint8)
    regions = Regions((3, 8, 12), "5/2 7/2", "none").eval()
    lines = lines_of(pictures)
    vectors = regions(torch.from_numpy(lines.padded(range(4)).astype(np.int64)))
    assert regions.grid == (2, 3)
    plain = ConvolutionBlocks(3, "5/2 7/2", norm="none")
    plain.load_state_dict(regions.blocks.state_dict())
    volume = plain(torch.from_numpy(pictures).float() / 127.5 - 1)
    for row in range(2):
        for column in range(3):
            vector = volume[:, :, row, column] + regions.top[row, 0] + regions.left[column]
            torch.testing.assert_close(vectors[:, 3 * row + column], regions.norm(vector))


def test_what_a_pixel_changes_lies_where_the_pixel_lies() -> None:
    pictures = np.full((5, 1, 16, 16), 128, np.uint8)
    corners = {1: (0, 0), 2: (0, 15), 3: (15, 0), 4: (15, 15)}
    for row, (y, x) in corners.items():
        pictures[row, 0, y, x] = 255
    regions = Regions((1, 16, 16), "4/2 4/2", "none").eval()
    lines = lines_of(pictures).padded(range(5))
    vectors = regions(torch.from_numpy(lines)).detach()  # (pictures, 4 × 4, width)
    for row, (y, x) in corners.items():
        changed = (vectors[row] - vectors[0]).abs().sum(-1).reshape(4, 4) > 1e-6
        assert changed[:2, :2].any() == (y == 0 and x == 0)
        assert changed[2:, 2:].any() == (y == 15 and x == 15)
        assert changed[:2, 2:].any() == (y == 0 and x == 15)


def test_equal_places_differ_by_their_positions_alone() -> None:
    regions = Regions((1, 8, 8), "4x1/2 4x1/2", "none").eval()
    lines = torch.zeros(8, 1, 8)
    vectors = regions(lines)[0].reshape(2, 2, 4).detach()
    assert not torch.allclose(vectors[0, 0], vectors[0, 1])
    assert not torch.allclose(vectors[0, 0], vectors[1, 0])
    with torch.no_grad():
        regions.top.zero_()
        regions.left.zero_()
    vectors = regions(lines)[0]
    assert torch.allclose(vectors, vectors[:1].expand_as(vectors))


def test_lines_of_another_shape_are_refused() -> None:
    with pytest.raises(ShapeError) as error:
        Regions((3, 8, 12), "5/2", "none")(torch.zeros(24, 2, 8))
    assert str(error.value) == (
        "lines: expected (24, rows, 12), channels · height and width, got (24, 2, 8)"
    )


def test_every_parameter_learns() -> None:
    settings = CaptionSettings(blocks="4/2 5/2", hidden_size=6, embedding_size=5)
    network = PicturePairs(9, (3, 12, 12), settings)
    lines = lines_of(np.stack(PICTURES))
    targets = Ragged.of([[5, 6, 7]] * len(PICTURES), np.int32)
    network(PairColumns(lines, targets).batch(range(len(PICTURES)))).backward()
    assert [name for name, p in network.named_parameters() if not p.grad.abs().sum()] == []


# --- what it learns --------------------------------------------------------------------------


def test_it_learns_to_say_what_is_where() -> None:
    model = Captioner(
        model={"blocks": "8/2 16/2", "hidden_size": 32, "embedding_size": 16, "batch_rows": 10},
        train={"epochs": 20, "rate": 0.01, "schedule": "linear", "watch": "exact"},
    ).fit(blocks(200, 1, most=1), blocks(40, 2, most=1))
    evaluation = model.evaluate(blocks(100, 7, most=1))
    assert evaluation.main == "exact"
    assert evaluation.scores["exact"].value > 0.9 > 0.3 > evaluation.baselines["frequent caption"]
    assert evaluation.others["colour right"] >= evaluation.scores["exact"].value


def test_pictures_come_as_arrays_or_as_files_of_any_size(
    fitted: Callable[[str], Captioner], tmp_path: Path
) -> None:
    model = fitted("additive")
    write_image(tmp_path / "p.png", PICTURES[0])
    large = np.kron(PICTURES[0], np.ones((1, 2, 2), np.uint8)).astype(np.uint8)
    from_file, small, from_large = model.predict([str(tmp_path / "p.png"), PICTURES[0], large])
    # rows of a batch differ in rounding
    assert from_file.score == pytest.approx(small.score, abs=1e-5)
    assert replace(from_file, score=small.score) == small
    assert isinstance(from_large, Captioned)


# --- scores ----------------------------------------------------------------------------------


def compared(pairs: list[tuple[str, str]]) -> Compared:
    """(found, expected) as an evaluation takes them."""
    words: dict[str, int] = {}

    def numbers(texts: list[str]) -> Ragged:
        rows = [[words.setdefault(w, len(words)) for w in text.split()] for text in texts]
        return Ragged.of(rows, np.int32)

    answers, references = [f for f, _ in pairs], [w for _, w in pairs]
    count = len(pairs)
    names = Names(("row",), np.zeros(count, np.int32), np.arange(1, count + 1))
    tokens = numbers(references)
    return Compared(
        names,
        [""] * count,
        references,
        answers,
        tokens,
        numbers(answers),
        tokens.lengths,
        [0.5] * count,
    )


def test_attributes_are_right_where_their_words_are() -> None:
    rows = compared(
        [
            ("a red circle", "a red circle"),
            ("a red circle", "a blue circle"),
            ("a red star left of a cross", "a red cross left of a star"),
            ("a small red star", "a red star"),
        ]
    )
    how = Scoring("13a", False, True, 1)
    attributes = {"colour": ["red", "blue"], "kind": ["circle", "star", "cross"], "size": ["small"]}
    evaluation = evaluate_pairs(rows, {"frequent caption": ["a red circle"] * 4}, how, attributes)
    assert evaluation.others["colour right"] == 0.75
    assert evaluation.others["kind right"] == 0.75
    assert "size right" not in evaluation.others  # no caption that was expected speaks of it
    assert evaluation.scores["exact"].value == 0.25
    assert evaluation.baselines == {"frequent caption": 0.25}
    assert "source" not in evaluation.as_text()
    assert "    expected  a blue circle\n    got       a red circle" in evaluation.as_text()
    assert [bucket.name for bucket in evaluation.buckets] == ["1–5", "6–10"]


def test_rows_by_column_name_name_files(tmp_path: Path) -> None:
    case, rows = CASES["additive"], blocks(6, 1)
    for k, (picture, _) in enumerate(rows):
        write_image(tmp_path / f"{k}.png", picture)
    named = [
        {"photo": str(tmp_path / f"{k}.png"), "words": text} for k, (_, text) in enumerate(rows)
    ]
    roles = {"image": "photo", "caption": "words"}
    model = case.new().fit(named, named, **roles)
    as_pairs = case.new().fit(rows, rows)
    questions = [{"photo": row["photo"]} for row in named]
    assert model.predict(questions) == as_pairs.predict([picture for picture, _ in rows])
    assert model.evaluate(named, **roles).scores == as_pairs.evaluate(rows).scores


def test_captions_beyond_the_longest_are_left_out() -> None:
    rows = blocks(30, 1)
    short = [row for row in rows if len(row[1].split()) <= 3]
    assert 0 < len(short) < len(rows)
    model = Case(text={"max_length": 3}).new().fit(rows, rows)
    assert "and" not in model.learned.target.words.tokens
    assert "and" in Case().new().fit(rows, rows).learned.target.words.tokens
    none = Case(text={"max_length": 1}).new()
    assert told_by(lambda: none.fit(rows, rows), DataError) == (
        "all 30 pairs are longer than text.max_length, 1 tokens: raise it, or leave it out"
    )


def test_a_notebook_shows_where_words_look(fitted: Callable[[str], Captioner]) -> None:
    model = fitted("additive")
    columns = columns_of(model.predict(PICTURES[:2], alignment=True))
    assert list(columns) == ["caption", "log p", "where each word looked"]
    assert "where each word looked" not in columns_of(model.predict(PICTURES[:2]))


# --- mistakes --------------------------------------------------------------------------------


def told_by(action: Callable[[], Any], kind: type[Exception]) -> str:
    with pytest.raises(kind) as error:
        action()
    return str(error.value)


def test_mistakes_in_settings() -> None:
    assert told_by(lambda: Captioner(model={"blocks": "8 x"}), ConfigError).startswith(
        "model.blocks: blocks '8 x': expected words such as 32 (filters of 3×3)"
    )
    assert told_by(lambda: Captioner(model={"size": [3]}), ConfigError) == (
        "model.size: expected height and width, [28, 28], or [], got [3]"
    )
    nothing = {"begin": "zero", "attention": "none"}
    assert told_by(lambda: Captioner(model=nothing), ConfigError) == (
        "model: begin: expected 'mean' without attention, got 'zero': the decoder would know "
        "nothing of the picture"
    )
    assert "unknown cell 'GRUU'" in told_by(lambda: Captioner(model={"cell": "GRUU"}), ConfigError)


def test_mistakes_in_rows(fitted: Callable[[str], Captioner]) -> None:
    case, rows = CASES["additive"], blocks(6, 1)
    assert told_by(lambda: case.new().fit([*rows, (rows[0][0], None)], rows), DataError) == (
        "the training part: expected pictures with captions, got 7 rows, the first without a "
        "caption is row:7"
    )
    assert told_by(lambda: case.new().fit(rows, [(rows[0][0], " ")]), DataError) == (
        "the validation part: 1 picture has an empty caption, the first of them row:1: nothing "
        "can be learned from it; leave it out"
    )
    assert told_by(lambda: case.new().fit([*rows, (3, "a")], rows), DataError) == (
        "row:7: expected a picture as an array of bytes, or the name of a file, got int"
    )
    other = np.zeros((3, 9, 9), np.uint8)
    assert told_by(lambda: case.new().fit([*rows, (other, "a")], rows), DataError) == (
        "row:7: expected a picture of 12×12 pixels, colour, as row:1, got 9×9 pixels, colour; set "
        "model.size = [28, 28] to convert all pictures"
    )
    assert told_by(lambda: case.new().predict(PICTURES), OptionError) == (
        "this caption model has not been fitted: call fit or load first"
    )
    assert told_by(lambda: fitted("no attention").explain(PICTURES[0]), OptionError) == (
        "this model has no attention to show where its words look; train one with "
        "--set model.attention=additive (dot, general, concat)"
    )
