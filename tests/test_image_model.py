"""Models of pictures: laws over several of them, runs from files, and messages about mistakes."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.testing import assert_close
from typer.testing import CliRunner

from ensue.cli import app, load_commands
from ensue.data.pictures.images import write_image
from ensue.data.rows import Problem
from ensue.data.settings import DataSettings
from ensue.errors import ConfigError, DataError, OptionError
from ensue.tasks.image import TASK, ImageModel, ImageSettings
from ensue.tasks.pictures.part import PicturePart, collect_pictures
from ensue.tasks.pictures.reader import pictures_in_memory
from ensue.tasks.reader import QuestionFiles
from ensue.tasks.sample import Sample
from ensue.tasks.supervised.inputs.picture import (
    PICTURES,
    Disturbance,
    brightness,
    pixel_features,
    pixel_regression,
)
from ensue.tasks.targets.classes import temperature
from ensue.training import Stopped, Update

KINDS = ("bar", "cross", "ring")
SMALL: dict[str, Any] = {"blocks": "4 max 6 max", "hidden": [8], "batch_rows": 16}

Pairs = list[tuple[NDArray[np.uint8], str]]


def drawn(kind: str, at: tuple[int, int], noise: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A white figure of 5×5 on a noisy ground of 10×10."""
    pixels, (down, across) = np.zeros((10, 10), np.uint8), at
    pixels[down : down + 5, across + 2] = 255
    if kind == "cross":
        pixels[down + 2, across : across + 5] = 255
    if kind == "ring":
        pixels[down : down + 5, across : across + 5] = 255
        pixels[down + 1 : down + 4, across + 1 : across + 4] = 0
    return np.maximum(pixels, noise)


def figures(count: int, seed: int, channels: int = 1) -> Pairs:
    draw, rows = np.random.default_rng(seed), []
    for k in range(count):
        at = (int(draw.integers(6)), int(draw.integers(6)))
        picture = drawn(KINDS[k % 3], at, draw.integers(0, 80, (10, 10), np.uint8))
        rows.append((np.stack([picture] * channels) if channels > 1 else picture, KINDS[k % 3]))
    return rows


CASES: dict[str, dict[str, Any]] = {
    "grey": {},
    "colour": {"model": {"flip": True}},
    "resized": {"model": {"size": [9, 11], "norm": "none"}},
    "plain": {"model": {"shift": 0.0, "rotate": 0.0, "zoom": 0.0, "hidden": []}},
    "two members": {"members": 2},
}
every_case = pytest.mark.parametrize("name", CASES)


def data(name: str, count: int, seed: int) -> Pairs:
    return figures(count, seed, 3 if name == "colour" else 1)


def new(name: str, **train: Any) -> ImageModel:
    case = CASES[name]
    settings = {"epochs": 2, "rate": 0.01, **train}
    return ImageModel(
        model={**SMALL, **case.get("model", {})}, train=settings, members=case.get("members", 1)
    )


def fresh(name: str, **train: Any) -> ImageModel:
    return new(name, **train).fit(data(name, 48, 1), data(name, 18, 2))


@pytest.fixture(scope="module")
def fitted() -> Callable[[str], ImageModel]:
    known: dict[str, ImageModel] = {}
    return lambda name: known.get(name) or known.setdefault(name, fresh(name))


def same_weights(one: ImageModel, other: ImageModel) -> bool:
    states = [
        [network.state_dict().values() for network in model.networks] for model in (one, other)
    ]
    pairs = zip(*([t for tensors in state for t in tensors] for state in states), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


# --- laws --------------------------------------------------------------------------------------


@every_case
def test_a_model_read_back_gives_the_same_answers(
    name: str, fitted: Callable[[str], ImageModel], tmp_path: Path
) -> None:
    model = fitted(name)
    model.save(tmp_path / "model")
    again = ImageModel.load(tmp_path / "model")
    rows = data(name, 20, 3)
    assert again.predict([picture for picture, _ in rows]) == model.predict(
        [picture for picture, _ in rows]
    )
    assert again.evaluate(rows) == model.evaluate(rows)
    assert again.summary() == model.summary()


@every_case
def test_an_answer_does_not_depend_on_the_pictures_beside_it(
    name: str, fitted: Callable[[str], ImageModel]
) -> None:
    model, inputs = fitted(name), [picture for picture, _ in data(name, 12, 3)]
    together = model.predict(inputs)
    for picture, answer in zip(inputs, together, strict=True):
        (alone,) = model.predict([picture])
        assert alone.label == answer.label
        assert alone.probabilities == pytest.approx(answer.probabilities, abs=1e-5)
        assert sum(alone.probabilities.values()) == pytest.approx(1)


@every_case
def test_the_same_seed_gives_the_same_weights(
    name: str, fitted: Callable[[str], ImageModel]
) -> None:
    assert same_weights(fitted(name), fresh(name))
    assert not same_weights(fitted(name), fresh(name, seed=7))


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
    name: str, fitted: Callable[[str], ImageModel], tmp_path: Path
) -> None:
    """The disturbances of pictures, too, follow from the seed and the update."""
    rows = data(name, 48, 1), data(name, 18, 2)
    with pytest.raises(Stopped):
        new(name).fit(*rows, folder=tmp_path / "run", watchers=[Stop(4)])
    again = new(name).fit(*rows, folder=tmp_path / "run")
    assert same_weights(again, fitted(name))
    assert again.learned.temperature == fitted(name).learned.temperature


def test_scales_come_from_the_training_part_alone(fitted: Callable[[str], ImageModel]) -> None:
    white = [(np.full((10, 10), 255, np.uint8), "ring")] * 9
    model = new("grey").fit(data("grey", 48, 1), [*data("grey", 18, 2), *white])
    linear, other = model.learned.linear, fitted("grey").learned.linear
    assert_close(linear.regression.weight, other.regression.weight)
    learned, read = model.learned.input, fitted("grey").learned.input
    assert (learned.mean == read.mean).all()
    assert (learned.spread == read.spread).all()
    pixels = np.stack([picture for picture, _ in data("grey", 48, 1)])
    assert learned.mean.item() == pytest.approx(pixels.mean())
    assert learned.spread.item() == pytest.approx(pixels.std())


def test_brightness_of_each_channel() -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (4, 3, 5, 6), np.uint8)
    pictures[:, 1] = 9
    mean, spread = brightness(pictures)
    assert mean == pytest.approx(pictures.mean((0, 2, 3)))
    assert spread == pytest.approx([pictures[:, 0].std(), 1.0, pictures[:, 2].std()])


def test_it_learns_and_says_how_well() -> None:
    model = new("plain", epochs=25).fit(figures(150, 1), figures(30, 2))
    evaluation = model.evaluate(figures(60, 3))
    assert evaluation.scores["accuracy"].value > 0.9
    assert list(evaluation.baselines) == ["majority class", "linear model"]
    assert evaluation.baselines["majority class"] == pytest.approx(1 / 3)
    assert sum(map(sum, evaluation.confusion)) == 60
    assert any("reliability" in line for line in evaluation.notes)
    wrong = 60 - sum(evaluation.confusion[k][k] for k in range(3))
    assert len(evaluation.worst) == min(wrong, 10)
    lines = model.summary().splitlines()
    assert lines[0] == "ImageModel: 4 max 6 max"
    count = sum(p.numel() for p in model.networks[0].parameters())
    assert lines[1] == f"  {count:,} parameters"
    assert lines[2] == "  10×10 pixels, grey → one of bar, cross, ring"


def test_a_class_that_training_lacks_is_a_mistake(fitted: Callable[[str], ImageModel]) -> None:
    rows = [*data("grey", 9, 3), (data("grey", 1, 4)[0][0], "star")]
    evaluation = fitted("grey").evaluate(rows)
    assert evaluation.unknown == 1
    assert evaluation.rows == 10


# --- disturbances, temperature, baseline -------------------------------------------------------


def test_disturbances() -> None:
    torch.manual_seed(1)
    x = torch.randn(6, 2, 8, 12)
    assert not Disturbance()
    assert_close(Disturbance()(x), x)
    moved = Disturbance(shift=0.25).maps(1000, 8, 12)
    assert (moved[:, :, :2] == torch.eye(2)).all()
    assert 0.49 < float(moved[:, :, 2].abs().max()) <= 0.5
    flipped = Disturbance(flip=True)(x)
    same = [bool(torch.allclose(a, b, atol=1e-5)) for a, b in zip(flipped, x, strict=True)]
    other = [
        bool(torch.allclose(a, b.flip(-1), atol=1e-5)) for a, b in zip(flipped, x, strict=True)
    ]
    assert all(a != b for a, b in zip(same, other, strict=True))
    assert 0 < sum(same) < 6
    turned = Disturbance(rotate=180).maps(1000, 8, 12)
    pixels = torch.tensor([[1.0, 12 / 8], [8 / 12, 1.0]])  # from halves of the sides to pixels
    square = turned[:, :, :2] * pixels
    assert_close(square @ square.transpose(1, 2), torch.eye(2).expand(1000, 2, 2))
    zoomed = Disturbance(zoom=0.5).maps(1000, 8, 12)[:, 0, 0]
    assert 0.5 <= float(zoomed.min()) < 0.51
    assert 1.49 < float(zoomed.max()) <= 1.5


def test_disturbed_in_training_only(fitted: Callable[[str], ImageModel]) -> None:
    network = TASK.build(fitted("grey"))
    x = {PICTURES: torch.randint(256, (5, 1, 10, 10), dtype=torch.uint8)}
    network.reader.dropout = network.reader.layers.dropout = 0.0
    assert not torch.equal(network.scores(x), network.scores(x))
    network.eval()
    assert torch.equal(network.scores(x), network.scores(x))


def test_a_temperature_undoes_what_scores_exaggerate() -> None:
    random = torch.Generator().manual_seed(1)
    z = 2 * torch.randn(20_000, 3, generator=random)
    y = torch.multinomial(z.softmax(1), 1, generator=random)[:, 0]
    assert temperature([z], y) == pytest.approx(1.0, abs=0.06)
    assert temperature([3 * z], y) == pytest.approx(3.0, rel=0.06)
    assert temperature([z / 2], y) == pytest.approx(0.5, rel=0.06)
    assert abs(np.log(temperature([z[:1]], z[:1].argmax(1)))) < 0.5, "one row tells little"


def test_answers_are_tempered() -> None:
    model, rows = fresh("grey"), data("grey", 12, 3)
    model._learned = replace(model.learned, temperature=2.0)
    pictures = torch.from_numpy(np.stack([picture[None] for picture, _ in rows]))
    network = model.networks[0]
    expected = (network.scores({PICTURES: pictures}) / 2).softmax(1)  # type: ignore[operator]
    probabilities = [
        [answer.probabilities[name] for name in KINDS]
        for answer in model.predict([r for r, _ in rows])
    ]
    assert_close(torch.tensor(probabilities), expected.detach(), atol=1e-5, rtol=0)


def test_the_baseline_is_softmax_regression_on_pixels() -> None:
    rows = figures(60, 1)
    pictures = np.stack([picture[None] for picture, _ in rows])
    targets = np.array([KINDS.index(label) for _, label in rows])
    regression = pixel_regression(pictures, targets, 3)
    x = pixel_features(pictures)
    assert_close(x, torch.from_numpy(pictures).flatten(1) / 255)
    assert float((regression.scores(x).argmax(1).numpy() == targets).mean()) > 0.9
    assert pixel_features(np.zeros((2, 3, 100, 56), np.uint8)).shape == (2, 3 * 28 * 28)


# --- runs --------------------------------------------------------------------------------------


load_commands()


def ensue(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_from_a_folder_to_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for k, (picture, label) in enumerate(figures(90, 1)):
        (tmp_path / "shapes" / label).mkdir(parents=True, exist_ok=True)
        write_image(tmp_path / "shapes" / label / f"{k}.png", picture)
    few = ["--set", "model.blocks='4 max'", "--set", "train.epochs=2", "--quiet"]
    output = ensue("train", "shapes", "--run", "run", *few)
    assert re.match(r"run: validation part, \d+ rows\n  accuracy +0\.", output)
    assert "linear model" in ensue("evaluate", "run")
    lines = ensue("predict", "run", "shapes/bar/0.png", "shapes/ring").splitlines()
    assert lines[0].endswith("\tshapes/bar/0.png")
    assert len(lines) == 31, "one picture, and a folder of thirty"
    assert len(ensue("predict", "run", "shapes").splitlines()) == 90
    again = ensue("train", "--run", "run", "--quiet")
    assert again == output, "a run that has ended stays as it is"


def test_from_idx_files_to_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their names tell no format, which a look for lines of text had asked for."""
    monkeypatch.chdir(tmp_path)
    pictures, labels = zip(*figures(60, 1), strict=True)
    numbers = np.array([KINDS.index(label) for label in labels], np.uint8)
    write_idx(tmp_path / "train-images-idx3-ubyte", np.stack(pictures))
    write_idx(tmp_path / "train-labels-idx1-ubyte", numbers)
    few = ["--set", "model.blocks='4 max'", "--set", "train.epochs=2", "--quiet"]
    output = ensue("train", "train-images-idx3-ubyte", "--run", "run", *few)
    assert re.match(r"run: validation part, \d+ rows\n  accuracy +0\.", output)
    assert len(ensue("predict", "run", "train-images-idx3-ubyte").splitlines()) == 60
    data = DataSettings(train=["train-images-idx3-ubyte"])
    assert TASK.split.line(data, ImageSettings()) == data.split_line("each picture")
    assert not TASK.split.moves_with_files(data)


def write_idx(file: Path, values: NDArray[np.uint8]) -> None:
    begin = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">i4").tobytes()
    file.write_bytes(begin + values.tobytes())


def test_pictures_have_no_columns(tmp_path: Path) -> None:
    (tmp_path / "shapes" / "bar").mkdir(parents=True)
    write_image(tmp_path / "shapes" / "bar" / "1.png", figures(1, 1)[0][0])
    words = ["train", str(tmp_path / "shapes"), "--label", "kind", "--run", str(tmp_path / "r")]
    with pytest.raises(OptionError) as wrong:
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert str(wrong.value) == (
        "--label: pictures have no columns: a picture's class is its folder, or is in the labels "
        "file next to an idx file. Leave the option out; a table that names pictures, with any "
        "label, is read with --image COLUMN --label COLUMN without --task image"
    )


def test_a_table_that_names_pictures_is_read_with_its_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["photo,kind"]
    for k, (picture, kind) in enumerate(figures(40, 1)):
        write_image(tmp_path / f"{k}.png", picture)
        lines.append(f"{k}.png,{kind}")
    (tmp_path / "photos.csv").write_text("\n".join(lines) + "\n")
    words = ["--image", "photo", "--label", "kind", "--epochs", "1", "--run", "r", "--quiet"]
    assert "\n  accuracy " in ensue("train", "photos.csv", *words)


# --- messages ----------------------------------------------------------------------------------


def test_messages(fitted: Callable[[str], ImageModel], tmp_path: Path) -> None:
    small = (np.zeros((9, 10), np.uint8), "bar")
    with pytest.raises(DataError) as size:
        new("grey").fit([*figures(9, 1), small])
    assert str(size.value) == (
        "row:10: expected a picture of 10×10 pixels, grey, as row:1, got 9×10 pixels, grey; set "
        "model.size = [28, 28] to convert all pictures"
    )
    with pytest.raises(DataError) as channels:
        new("grey").fit([*figures(9, 1), *figures(1, 1, 3)])
    assert str(channels.value).endswith(
        "set model.channels = grey (or colour) to convert all pictures"
    )
    with pytest.raises(DataError) as floats:
        fitted("grey").predict([np.zeros((10, 10))])
    assert str(floats.value) == (
        "row:1: expected bytes (uint8) of shape (height, width), or (channels, height, width) with "
        "1 or 3 channels, got float64 of shape (10, 10)"
    )
    with pytest.raises(DataError, match="row:1: expected a picture as an array of bytes, or the"):
        fitted("grey").predict([7])
    with pytest.raises(OptionError, match=r"got one; write \[picture\]"):
        fitted("grey").predict("a.png")
    with pytest.raises(DataError) as unlabelled:
        new("grey").fit([(picture, None) for picture, _ in figures(9, 1)], figures(3, 1))
    assert str(unlabelled.value) == (
        "the training part: expected pictures with labels, got 9 pictures with some or all of "
        "them missing, the first of them row:1"
    )
    with pytest.raises(DataError) as file:
        new("grey").fit(tmp_path / "a.png")
    assert str(file.value).startswith(
        f"{tmp_path / 'a.png'}: expected a folder with a folder of pictures for each class, or an"
    )
    with pytest.raises(DataError) as other:
        new("grey").fit(figures(9, 1), [(figures(1, 1)[0][0], "star")])
    assert str(other.value) == (
        "1 row of the validation part left out, with labels that the training part does not have: "
        "row:1; no row is left: is this the right column?"
    )
    with pytest.raises(DataError, match="evaluate: expected rows, got none"):
        fitted("grey").evaluate([])
    with pytest.raises(OptionError, match="has not been fitted"):
        new("grey").predict([])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"blocks": "pool"}, "model.blocks: blocks 'pool': expected words such as 32 (filters of"),
        ({"size": [28]}, "model.size: expected height and width, [28, 28], or [], got [28]"),
        ({"size": [4, 4]}, "model: blocks '16 max 32 32 max 64 max': a pool of 2 does not fit"),
        ({"rotate": 200.0}, "model.rotate: expected a number ≤ 180, got 200.0"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        ImageModel(model=settings)
    assert str(wrong.value).startswith(message)


def test_pictures_are_kept_as_bytes() -> None:
    model = new("grey")
    part = collect_pictures(pictures_in_memory(figures(5, 1)), model.settings)
    assert isinstance(part, PicturePart)
    assert part.pixels.dtype == np.uint8
    assert part.pixels.shape == (5, 1, 10, 10)
    assert part.shape == (1, 10, 10)
    two = part.take(np.array([4, 1]))
    assert [two.names[0], two.names[1], len(two)] == ["row:5", "row:2", 2]
    assert (two.pixels == part.pixels[[4, 1]]).all()
    assert part.labels is not None
    assert two.labels is not None
    assert two.labels.values.tolist() == part.labels.values[[4, 1]].tolist()


def test_a_part_is_split_by_its_pixels_and_brought_to_the_shape_of_training(tmp_path: Path) -> None:
    for k, (picture, label) in enumerate(figures(60, 1)):
        (tmp_path / "shapes" / label).mkdir(parents=True, exist_ok=True)
        write_image(tmp_path / "shapes" / label / f"{k}.png", picture)
    model, data = new("grey"), DataSettings(train=[str(tmp_path / "shapes")])
    files = model.reader.files(data)
    train = files.part("train")
    others = [files.part(name, like=train) for name in ("validation", "test")]
    assert sum(map(len, (train, *others))) == 60
    pictures = [{picture.tobytes() for picture in part.pixels} for part in (train, *others)]
    assert len(set.union(*pictures)) == sum(map(len, pictures)), "no picture is in two parts"
    assert all(part.numbers is train.numbers for part in others)
    assert "by the hash of each picture" in TASK.split.line(data, model.settings)
    write_image(tmp_path / "large.png", np.zeros((20, 30), np.uint8))
    (questions,) = fresh("grey").reader.question_files(
        QuestionFiles([str(tmp_path / "large.png")], data)
    )
    assert questions.part.shape == (1, 10, 10)
    assert questions.shown_inputs == [str(tmp_path / "large.png")]


def test_rows_by_column_name_name_files(tmp_path: Path) -> None:
    rows = figures(12, 1)
    for k, (picture, _) in enumerate(rows):
        write_image(tmp_path / f"{k}.png", picture)
    named = [
        {"photo": str(tmp_path / f"{k}.png"), "kind": kind} for k, (_, kind) in enumerate(rows)
    ]

    def model() -> ImageModel:
        return ImageModel(model=SMALL, train={"epochs": 1})

    as_pairs = model().fit(rows, rows)
    by_name = model().fit(named, named, image="photo", label="kind")
    questions = [{"photo": row["photo"]} for row in named]
    assert by_name.predict(questions) == as_pairs.predict([picture for picture, _ in rows])


def test_bad_pictures_are_counted(tmp_path: Path) -> None:
    for k, (picture, label) in enumerate(figures(6, 1)):
        (tmp_path / "shapes" / label).mkdir(parents=True, exist_ok=True)
        write_image(tmp_path / "shapes" / label / f"{k}.png", picture)
    (tmp_path / "shapes" / "bar" / "bad.png").write_bytes(b"?")
    whole = [str(tmp_path / "shapes")]
    heard: list[Problem] = []
    data = DataSettings(train=whole, validation=whole, skip_bad=True)
    files = new("grey").reader.files(data, heard.append)
    assert len(files.part("train")) == 6
    assert files.rejected == 1
    assert [Path(problem.place.file).name for problem in heard] == ["bad.png"]
    with pytest.raises(DataError, match="1 problem in "):
        new("grey").reader.files(data.model_copy(update={"skip_bad": False})).part("train")


def test_recognised_by_their_paths_alone(tmp_path: Path) -> None:
    (tmp_path / "shapes" / "bar").mkdir(parents=True)
    write_image(tmp_path / "shapes" / "bar" / "1.png", figures(1, 1)[0][0])
    sample = Sample(DataSettings(train=[str(tmp_path / "shapes")]))
    guess = TASK.recognise(sample)
    assert guess is not None
    assert guess.why == "pictures with a class each"
    assert "rows" not in vars(sample), "no row was read"
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    assert TASK.recognise(Sample(DataSettings(train=[str(tmp_path / "a.csv")]))) is None
