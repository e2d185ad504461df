"""Captions from the command line, as a user walks it, every mistake made on purpose; and, slow, the
bar that the built-in pictures set."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commands import Ensue, commands_in

from ensue import Captioner, Gaze, cli
from ensue.data.tasks import Scene, shapes
from ensue.tasks.seq2seq.drawing import gaze_picture, gaze_text

SMALL = [
    "model.blocks=4x5/3 6x5/3",
    "model.hidden_size=8",
    "model.embedding_size=6",
    "model.longest=12",
    "train.epochs=1",
]
TRAIN = ("train", "train/captions.tsv", "--validation", "held/captions.tsv")
PICTURE = shapes(1, "test", 1)[0].picture


def settings(*more: str) -> list[str]:
    return [word for setting in (*SMALL, *more) for word in ("--set", setting)]


@pytest.fixture
def ensue(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, walked: Path
) -> Ensue:
    return commands_in(walked, capsys, monkeypatch)


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pictures to train on and to test, and a finished run r."""
    folder = tmp_path_factory.mktemp("walk")
    before = os.getcwd()
    os.chdir(folder)
    try:
        for arguments in (
            ["data", "make", "shapes", "train", "--rows", "80"],
            ["data", "make", "shapes", "held", "--rows", "12", "--part", "validation"],
            ["data", "make", "shapes", "test", "--rows", "12", "--part", "test"],
            [*TRAIN, "--test", "test/captions.tsv", "--run", "r", *settings()],
        ):
            with pytest.raises(SystemExit) as ending:
                cli.main(arguments)
            assert not ending.value.code
    finally:
        os.chdir(before)
    return folder


def mistaken(ensue: Ensue, *arguments: str) -> str:
    code, out, err = ensue(*arguments)
    assert (code, out) == (2, "")
    return err


def test_the_task_is_found_out_and_told(ensue: Ensue) -> None:
    code, out, err = ensue("train", "train/captions.tsv", "--run", "x", "--dry-run")
    assert code == 0
    assert err.splitlines() == [
        "text: file (an identifier)",
        "label: caption (texts, 7.8 words on average)",
        "task: caption (pictures with captions)",
        "split: 80 % train, 10 % validation, 10 % test, by the hash of each source",
    ]
    assert 'task = "caption"' in out


def test_evaluating_opens_the_test_part(ensue: Ensue) -> None:
    code, out, _ = ensue("evaluate", "r", "--json")
    facts = json.loads(out)
    assert code == 0
    assert (facts["rows"], facts["opened_by_this_run"]) == (12, 1)
    assert {"colour right", "shape right", "size right", "relation right"} <= set(facts["others"])
    assert set(facts["baselines"]) == {"frequent caption"}
    assert ensue("evaluate", "r", "--validation")[0] == 0


def test_pictures_and_tables_are_described(ensue: Ensue) -> None:
    code, out, _ = ensue("predict", "r", "test/03.png", "test/04.png")
    assert code == 0
    described = out.splitlines()
    assert len(described) == 2
    assert ensue("predict", "r", "test/captions.tsv")[1].splitlines()[2:4] == described
    named = ensue("predict", "r", stdin=b"test/03.png\ntest/04.png\n")
    assert named[1].splitlines() == described
    answer = json.loads(ensue("predict", "r", "test/03.png", "--nbest", "2", "--json")[1])
    assert answer["input"] == "test/03.png"
    assert answer["text"] == described[0]
    assert len(answer["alternatives"]) == 2
    cells = ensue("predict", "r", "test/03.png", "--alignment")[1].split("\t")
    assert cells[0] == described[0]
    assert len(cells[1].split()) == len(described[0].split())


def test_the_pictures_of_a_folder_are_described(ensue: Ensue, walked: Path) -> None:
    pictures = sorted((walked / "test").glob("*.png"))
    folder = walked / "pictures alone"
    folder.mkdir()
    for picture in pictures:
        shutil.copy(picture, folder)
    code, out, _ = ensue("predict", "r", "pictures alone")
    assert code == 0
    assert out == ensue("predict", "r", *map(str, pictures))[1]


def test_where_words_look_is_drawn(ensue: Ensue, walked: Path) -> None:
    command = ("explain", "r", "--image", "test/03.png")
    code, out, err = ensue(*command, "--picture", "gaze.svg")
    assert (code, err) == (0, "wrote gaze.svg\n")
    assert out.startswith(ensue("predict", "r", "test/03.png")[1] + "\n")
    ElementTree.parse(walked / "gaze.svg")
    facts = json.loads(ensue(*command, "--json")[1])
    assert facts["grid"] == [6, 6]
    assert len(facts["attention"]) == len(facts["tokens"])


def test_mistakes(ensue: Ensue, walked: Path) -> None:
    assert mistaken(ensue, "explain", "r") == (
        "OptionError: explain: expected one of --image (image, caption), --tree (tree), --text "
        "(match, translate, label, regress, classify, language), --values (table), --file, got "
        "none\n"
    )
    assert mistaken(ensue, "explain", "r", "--image", "a.png", "--text", "a") == (
        "OptionError: explain: expected one of --image (image, caption), --tree (tree), --text "
        "(match, translate, label, regress, classify, language), --values (table), --file, got "
        "--image, --text\n"
    )
    assert mistaken(ensue, "explain", "r", "--text", "a") == (
        "RunError: r: --text: expected a run of task match or translate or label or regress or "
        "classify "
        "or language, got one of task caption\n"
    )
    table = walked / "train" / "some.tsv"
    lines = (walked / "train" / "captions.tsv").read_text("utf-8").splitlines()
    table.write_text("\n".join([*lines, "nowhere.png\ta red circle", "\ta star"]) + "\n")
    command = ("train", str(table), "--validation", "held/captions.tsv", "--task", "caption")
    message = mistaken(ensue, *command, "--run", "y", *settings())
    assert "DataError: 2 problems in" in message
    missing = walked / "train" / "nowhere.png"
    assert f"some.tsv:82: file: {missing}: no such file: check the name." in message
    assert "some.tsv:83: file: expected a text on both sides, got an empty one" in message
    code, _, err = ensue(*command, "--run", "y", "--skip-bad", *settings())
    assert code == 0
    assert "2 bad rows left out" in err
    code, _, err = ensue("evaluate", "y", "--test", str(table), "--skip-bad")
    assert code == 0
    assert "2 bad rows left out" in err


# --- drawn -----------------------------------------------------------------------------------


def gaze() -> Gaze:
    weights = ((0.7, 0.1, 0.1, 0.1), (0.1, 0.1, 0.4, 0.4), (0.25, 0.25, 0.25, 0.25))
    return Gaze("red <b>", ("red", "<b>", "</s>"), (0.9, 0.8, 1.0), (2, 2), weights)


def test_the_terminal_shows_where_words_look() -> None:
    assert gaze_text(gaze()).splitlines() == [
        "red  90%  <b>  80%  </… 100%",
        "██░░      ░░░░      ████",
        "░░░░      ████      ████",
    ]
    narrow = gaze_text(gaze(), 9).split("\n\n")
    assert len(narrow) == 3
    assert all(len(line) <= 9 for block in narrow for line in block.splitlines())
    assert "\x1b[48;5;" in gaze_text(gaze(), colour=True)


def test_the_picture_is_whole_and_frames_where_a_word_looks_most() -> None:
    svg = gaze_picture(gaze(), PICTURE)
    root = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}image")) == 4  # the picture, and one for each word
    assert svg == gaze_picture(gaze(), PICTURE)
    texts = [element.text for element in root.iter(f"{space}text")]
    assert "<b>" in texts
    assert "90%" in texts
    frames = [
        rectangle for rectangle in root.findall(f"{space}rect") if rectangle.get("fill") == "none"
    ]
    images = root.findall(f"{space}image")[1:]
    offsets = [
        (float(f.get("x")) - float(i.get("x")), float(f.get("y")) - float(i.get("y")))
        for f, i in zip(frames, images, strict=True)
    ]
    assert offsets == [(0, 0), (0, 60), (0, 0)]
    assert "<title>red: 0.700</title>" in svg


# --- the bar -----------------------------------------------------------------------------------


def looked_at(scene: Scene, gaze_map: Gaze, side: int) -> list[bool]:
    """For each colour and kind that was named: whether the word looked most at a region within a
    region's reach of the shape that it names."""
    tall, wide = gaze_map.grid
    high, broad = side / tall, side / wide
    hits, which = [], 0
    for word, weights in zip(gaze_map.tokens, gaze_map.attention, strict=False):
        which += word in ("left", "right", "above", "below")
        shape = scene.shapes[min(which, len(scene.shapes) - 1)]
        if word in (shape.colour, shape.kind):
            row, column = divmod(max(range(len(weights)), key=weights.__getitem__), wide)
            x, y = (column + 0.5) * broad, (row + 0.5) * high
            left, top, right, bottom = shape.box
            inside = left - broad <= x <= right + broad and top - high <= y <= bottom + high
            hits.append(inside)
    return hits


@pytest.mark.slow
def test_unseen_combinations_are_described_and_looked_at() -> None:
    model = Captioner(train={"watch": "exact", "warmup": 300}).fit(
        [(scene.picture, scene.caption) for scene in shapes(1, "train", 20_000)],
        [(scene.picture, scene.caption) for scene in shapes(1, "validation", 1000)],
    )
    test = shapes(1, "test", 1000)
    evaluation = model.evaluate([(scene.picture, scene.caption) for scene in test])
    assert evaluation.scores["exact"].value > 0.95
    hits = [
        hit for scene in test[:300] for hit in looked_at(scene, model.explain(scene.picture), 48)
    ]
    assert sum(hits) / len(hits) > 0.9
