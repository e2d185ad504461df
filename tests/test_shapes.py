"""Drawn shapes: what a caption says can be seen in the picture, by a reader that shares no code
with the painter, and parts share no combination."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ensue.data.pictures.images import read_image
from ensue.data.tasks import Scene, shapes
from ensue.data.tasks.shapes import (
    ATTRIBUTES,
    COLOURS,
    HELD,
    INNER,
    KINDS,
    SIDE,
    SIZES,
    Placed,
    Shape,
    boxes,
    coverage,
)
from ensue.data.tasks.write import write_task
from ensue.errors import OptionError

PARTS = ("train", "validation", "test")
SAMPLES = {part: shapes(3, part, 150) for part in PARTS}
ALL = [scene for part in SAMPLES.values() for scene in part]


# --- an independent reader -------------------------------------------------------------------


def spots(scene: Scene) -> list[tuple[str, np.ndarray]]:
    """Connected areas that differ from the ground: the name of the nearest colour, and the mask."""
    pixels = scene.picture.astype(float).transpose(1, 2, 0)
    # the ground is what most pixels look like
    far = np.abs(pixels - np.median(pixels.reshape(-1, 3), 0)).max(-1)
    away = far > 45
    coloured_spots = []
    left = {(int(i), int(j)) for i, j in np.argwhere(away)}
    while left:
        area, waiting = [], [left.pop()]
        while waiting:
            i, j = waiting.pop()
            area.append((i, j))
            beside = {(i + a, j + b) for a, b in product((-1, 0, 1), repeat=2)} & left
            left -= beside
            waiting += beside
        mask = np.zeros(away.shape, bool)
        mask[tuple(np.transpose(area))] = True
        away_most = pixels[mask][np.argsort(-far[mask])[: max(1, len(area) // 2)]]  # no edge
        colour = np.median(away_most, 0)
        distances = [np.abs(colour - other).sum() for other in COLOURS.values()]
        coloured_spots.append((list(COLOURS)[int(np.argmin(distances))], mask))
    return coloured_spots


def middle(mask: np.ndarray) -> tuple[float, float]:
    rows, columns = np.nonzero(mask)
    return float(columns.mean()), float(rows.mean())


def test_the_colours_and_places_of_a_caption_are_those_of_the_picture() -> None:
    for scene in (scene for part in SAMPLES.values() for scene in part[:40]):
        scene_spots = spots(scene)
        colours = sorted(shape.colour for shape in scene.shapes)
        assert sorted(name for name, _ in scene_spots) == colours, scene.caption
        if len(scene.shapes) == 1:
            continue
        # of two spots of one colour the boxes tell which is which
        first, second = sorted(scene_spots, key=lambda spot: not _inside(spot[1], scene.shapes[0]))
        (x, y), (other_x, other_y) = middle(first[1]), middle(second[1])
        side = ("left of" if x < other_x else "right of", "above" if y < other_y else "below")
        assert scene.relation == side[abs(y - other_y) > abs(x - other_x)], scene.caption


def _inside(mask: np.ndarray, shape: Shape) -> bool:
    x, y = middle(mask)
    left, top, right, bottom = shape.box
    return left <= x <= right and top <= y <= bottom


def test_each_kind_fills_its_box_as_it_should() -> None:
    """The share of its box that a shape covers; a star is ten triangles of 36° between a point and
    an inner corner."""
    count = 40
    tenth = INNER * np.sin(np.pi / 5) / 2
    star = 10 * tenth / (2 * np.sin(0.4 * np.pi) * (1 + np.cos(np.pi / 5)))
    draw = np.random.default_rng(1)
    expected = {"circle": np.pi / 4, "square": 1.0, "triangle": 0.5, "cross": 5 / 9, "star": star}
    for number, name in enumerate(KINDS):
        x, y = draw.uniform(22, 26, (2, count))
        one = np.full(count, 16.0)
        covered = coverage(Placed(np.full(count, number), one, x, y, 0 * one))
        left, top, right, bottom = boxes(covered).T
        shares = covered.sum((1, 2)) / ((right - left) * (bottom - top))
        assert shares.mean() == pytest.approx(expected[name], abs=0.04), name


def test_turning_moves_no_area() -> None:
    turned = np.linspace(0, 1, 5)
    for number in range(len(KINDS)):
        same = np.full(5, 24.0)
        shapes_drawn = Placed(np.full(5, number), same / 2, same, same, turned)
        areas = coverage(shapes_drawn).sum((1, 2))
        assert areas == pytest.approx(areas[0], rel=0.03)


# --- conventions -------------------------------------------------------------------------------


def test_the_smaller_shape_is_named_first_and_of_equals_the_left_or_upper_one() -> None:
    order = list(SIZES)
    for scene in ALL:
        if scene.relation:
            first, second = (order.index(shape.size) for shape in scene.shapes)
            assert first <= second
            assert first < second or scene.relation in ("left of", "above")
    assert {scene.relation for scene in ALL} == {"", "left of", "right of", "above", "below"}


def test_captions_say_what_they_should() -> None:
    box = (0, 0, 1, 1)
    circle, square = Shape("circle", "red", "small", box), Shape("square", "blue", "middle", box)
    picture = np.zeros((3, 1, 1), np.uint8)
    assert Scene(picture, (circle,), "").caption == "a small red circle"
    both = Scene(picture, (circle, square), "left of")
    assert both.caption == "a small red circle left of a blue square"
    words = {word for scene in ALL for word in scene.caption.split()}
    assert words == {"a", "of", *(word for group in ATTRIBUTES.values() for word in group)}


def test_shapes_lie_apart_and_within_the_picture() -> None:
    for scene in ALL:
        for shape in scene.shapes:
            left, top, right, bottom = shape.box
            assert 0 <= left < right <= SIDE
            assert 0 <= top < bottom <= SIDE
        if len(scene.shapes) == 2:
            (l1, t1, r1, b1), (l2, t2, r2, b2) = (shape.box for shape in scene.shapes)
            assert r1 <= l2 or r2 <= l1 or b1 <= t2 or b2 <= t1
            assert len({box[:2] for box in scene.shapes}) == 2  # they can be told apart


# --- parts and numbers -------------------------------------------------------------------------


def test_held_combinations_are_in_one_part_only() -> None:
    for part, scenes in SAMPLES.items():
        pairs = [{(shape.colour, shape.kind) for shape in scene.shapes} for scene in scenes]
        elsewhere = {pair for other in PARTS if other != part for pair in HELD[other]}
        assert not set().union(*pairs) & elsewhere
        if HELD[part]:
            assert all(pair & set(HELD[part]) for pair in pairs)
            assert set().union(*pairs) >= set(HELD[part])


def test_every_colour_and_kind_of_a_held_combination_is_trained_with_others() -> None:
    trained = {
        (shape.colour, shape.kind) for scene in shapes(1, "train", 400) for shape in scene.shapes
    }
    assert len(trained) == len(COLOURS) * len(KINDS) - sum(map(len, HELD.values()))
    for colour in COLOURS:
        assert sum(pair == colour for pair, _ in trained) == len(KINDS) - 1


@pytest.mark.parametrize("part", PARTS)
def test_a_scene_follows_from_seed_part_and_number(part: str) -> None:
    whole = SAMPLES[part]
    for first, count in ((0, 3), (7, 1), (147, 3)):
        for scene, other in zip(shapes(3, part, count, first=first), whole[first:], strict=False):
            assert (scene.picture == other.picture).all()
            assert (scene.shapes, scene.relation) == (other.shapes, other.relation)
    other = shapes(4, part, 20)
    assert [scene.caption for scene in other] != [scene.caption for scene in whole[:20]]


def test_pieces_drawn_together_are_those_drawn_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[Scene.__module__], "AT_ONCE", 7)
    pictures = np.stack([scene.picture for scene in shapes(3, "train", 30)])
    assert (pictures == np.stack([scene.picture for scene in SAMPLES["train"][:30]])).all()


# --- files and mistakes ------------------------------------------------------------------------


def test_files_hold_what_was_drawn(tmp_path: Path) -> None:
    about = write_task("shapes", tmp_path / "s", rows=12, part="test", seed=3)
    assert about == f"drawn shapes, their captions in {tmp_path / 's' / 'captions.tsv'}"
    lines = (tmp_path / "s" / "captions.tsv").read_text("utf-8").splitlines()
    assert lines[0] == "file\tcaption"
    assert len(lines) == 13
    assert lines[1].startswith("01.png\t")
    for line, scene in zip(lines[1:], SAMPLES["test"], strict=False):
        file, caption = line.split("\t")
        assert caption == scene.caption
        assert (read_image(tmp_path / "s" / file) == scene.picture).all()


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(OptionError) as error:
        shapes(1, "tests", 1)
    assert str(error.value) == (
        "unknown part 'tests': did you mean 'test'? Known: test, train, validation"
    )
    with pytest.raises(OptionError) as error:
        shapes(1, "test", 0)
    assert str(error.value) == "expected first ≥ 0 and count ≥ 1, got 0 and 0"
    with pytest.raises(OptionError) as error:
        write_task("shapes", tmp_path / "s.tsv", rows=1)
    assert str(error.value).endswith("s.tsv: expected the name of a folder, which has no ending")
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError) as error:
        write_task("shapes", tmp_path / "file", rows=1)
    assert str(error.value) == f"{tmp_path / 'file'} cannot be written: File exists"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.png").write_text("")
    with pytest.raises(OptionError) as error:
        write_task("shapes", tmp_path / "full", rows=1)
    assert str(error.value) == (
        f"{tmp_path / 'full'}: expected a new or empty folder, so that no other file "
        "is taken for one of these pictures"
    )
