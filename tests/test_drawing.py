"""Drawing: colours of both themes, axes, and files that are written whole or not at all."""

import errno
import os
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.data.pictures.images import decode_png
from ensue.drawing import themed, write
from ensue.drawing.chart import COLOURS, Axis, Key, legend, round_numbers
from ensue.drawing.formats import FORMATS, check
from ensue.drawing.svg import BLUE, GREY, INK, QUIET, STATES, VIOLET, Drawing, text_width
from ensue.drawing.theme import DARK_PAPER, PAPER, contrast, dark, luminance, mixed
from ensue.errors import MissingExtra, OptionError, RunError

SVG = "{http://www.w3.org/2000/svg}"

colours = st.integers(0, 0xFFFFFF).map(lambda value: f"#{value:06x}")


def plain_picture() -> str:
    drawing = Drawing()
    drawing.rectangle((40, 20), 60, 20, 4, BLUE)
    drawing.words((40, 20), "σ ∂ ′ · −", 12)
    return drawing.svg(80, 40, "a box")


# --- colours -------------------------------------------------------------------------------


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", PAPER) == pytest.approx(21)
    assert (
        contrast("#777777", PAPER) == contrast(PAPER, "#777777") == pytest.approx(4.478, abs=1e-3)
    )
    assert luminance("#808080") == pytest.approx(0.2159, abs=1e-4)


@given(colours)
def test_a_colour_stands_out_from_dark_paper_as_from_light(colour: str) -> None:
    on_light, on_dark = contrast(colour, PAPER), contrast(dark(colour), DARK_PAPER)
    assert on_dark >= min(on_light, 14.9) - 0.02
    assert luminance(dark(colour)) >= luminance(DARK_PAPER) - 1e-3


@given(colours, colours)
def test_what_is_darker_on_light_paper_is_lighter_on_dark(one: str, other: str) -> None:
    first, second = sorted((one, other), key=luminance)
    if luminance(second) - luminance(first) > 0.02:
        assert luminance(dark(first)) >= luminance(dark(second)) - 0.01


def test_the_papers_change_places() -> None:
    assert dark(PAPER) == DARK_PAPER
    assert luminance(DARK_PAPER) < 0.02


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_and_words_are_seen_on_both_papers(theme: str) -> None:
    def themed(colour: str) -> str:
        return dark(colour) if theme == "dark" else colour

    for colour in (*COLOURS, *(colour.line for colour in (GREY, BLUE, VIOLET, *STATES))):
        assert contrast(themed(colour), themed(PAPER)) >= 3, colour
    for colour in (INK, QUIET):
        assert contrast(themed(colour), themed(PAPER)) >= 4.5, colour
    assert len({themed(colour) for colour in COLOURS}) == len(COLOURS)


def test_colours_are_mixed() -> None:
    assert mixed("#000000", "#ff8000", 0.5) == "#804000"
    assert mixed("#102030", "#ffffff", -1) == "#102030"
    assert mixed("#102030", "#ffffff", 7) == "#ffffff"


# --- themes --------------------------------------------------------------------------------


def test_a_picture_for_one_theme_has_the_colours_of_that_theme_alone() -> None:
    svg = plain_picture()
    light, night = themed(svg, "light"), themed(svg, "dark")
    assert themed(svg, "auto") == svg
    assert "prefers-color-scheme" in svg
    assert "prefers-color-scheme" not in light + night
    assert f'fill="{INK}"' in light
    assert f'fill="{dark(INK)}"' in night
    assert not {INK, PAPER, BLUE.line, BLUE.area} & set(night.split('"'))


def test_words_that_look_like_colours_stay() -> None:
    drawing = Drawing()
    drawing.words((10, 10), f'fill="{INK}"')
    root = ElementTree.fromstring(themed(drawing.svg(80, 40, f'fill="{PAPER}"'), "dark"))
    assert root.attrib["aria-label"] == f'fill="{PAPER}"'
    assert [text.text for text in root.iter(f"{SVG}text")] == [f'fill="{INK}"']


def test_words_that_xml_cannot_hold() -> None:
    drawing = Drawing()
    drawing.words((10, 10), "a\x00b\x1bc\ud800d\ufffe")
    (text,) = ElementTree.fromstring(drawing.svg(80, 40, "\x07")).iter(f"{SVG}text")
    assert text.text == "a\\x00b\\x1bc\\ud800d\ufffd"


def test_an_unknown_theme() -> None:
    with pytest.raises(OptionError, match="unknown theme 'drak': did you mean 'dark'"):
        themed(plain_picture(), "drak")


# --- axes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[3.0], [1.0, 1000.0], [5.0, 5.0], [0.91, 0.912]])
@pytest.mark.parametrize("logarithmic", [False, True])
def test_every_value_lies_on_its_axis(values: list[float], logarithmic: bool) -> None:
    axis = Axis.over(values, 100, 50, logarithmic=logarithmic)
    assert all(50 < axis(value) < 100 for value in values)
    ticks = axis.ticks()
    assert len(ticks) >= 2
    assert all(axis.low <= tick <= axis.high for tick in ticks)
    assert axis(axis.low - 1e9 if not logarithmic else axis.low / 9) == 100
    assert axis(9e9) == pytest.approx(50)


def test_an_axis_of_logarithms_is_even_in_factors() -> None:
    axis = Axis(1, 1000, 0, 30, logarithmic=True)
    assert [axis(value) for value in (1, 10, 100, 1000)] == pytest.approx([0, 10, 20, 30])
    assert axis.ticks() == [1, 10, 100, 1000]
    assert axis.ticks([7, 70, 7000]) == [7, 70]


@given(st.floats(-1e3, 1e3), st.floats(1e-6, 1e6))
def test_numbers_at_an_axis_are_round_few_and_even(start: float, room: float) -> None:
    low = start * room
    numbers = round_numbers(low, low + room)
    assert 2 <= len(numbers) <= 8
    assert all(low - 1e-9 * room <= value <= low + room * (1 + 1e-9) for value in numbers)
    (step,) = {f"{b - a:.6e}" for a, b in pairwise(numbers)}
    assert step[:8] in ("1.000000", "2.000000", "5.000000")


def test_a_legend_breaks_its_lines() -> None:
    drawing = Drawing()
    keys = [Key(f"series {k}", COLOURS[k], mark=k) for k in range(5)]
    last = legend(drawing, keys, 10, 20, 250)
    texts = ElementTree.fromstring(drawing.svg(250, 100, "")).iter(f"{SVG}text")
    places = [
        (float(element.attrib["x"]), float(element.attrib["y"]), element.text or "")
        for element in texts
    ]
    assert len(places) == 5
    assert all(x + text_width(text, 12.5) <= 250 for x, _, text in places)
    assert len({y for _, y, _ in places}) == 3
    assert last == 60


# --- files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.svg", "a.png", "a.pdf", "A.PNG"])
def test_the_ending_says_what_is_written(name: str, tmp_path: Path) -> None:
    write(plain_picture(), tmp_path / name)
    data = (tmp_path / name).read_bytes()
    beginning = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF"}[name[1:].lower()]
    assert data.startswith(beginning)
    write(plain_picture(), str(tmp_path / name))  # again, over the first
    assert (tmp_path / name).read_bytes() == data
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(
    ("theme", "paper"), [("auto", PAPER), ("light", PAPER), ("dark", DARK_PAPER)]
)
def test_a_png_has_twice_the_size_and_the_paper_of_its_theme(
    theme: str, paper: str, tmp_path: Path
) -> None:
    write(plain_picture(), tmp_path / "a.png", theme)
    pixels = decode_png((tmp_path / "a.png").read_bytes())
    assert pixels.shape[:2] == (80, 160)
    assert "#" + bytes(pixels[0, 0, :3]).hex() == paper
    inside = {bytes(pixel[:3]).hex() for pixel in pixels[30:50, 50:110].reshape(-1, 4)}
    assert len(inside) > 8  # the words, with soft edges


def test_a_pdf_has_the_size_of_the_picture_and_letters_in_it(tmp_path: Path) -> None:
    write(plain_picture(), tmp_path / "a.pdf")
    data = (tmp_path / "a.pdf").read_bytes()
    assert b"/MediaBox [0 0 80 40]" in data
    assert b"/BaseFont" in data


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.gif", "a.gif: expected a file name that ends in .svg, .png, .pdf, got '.gif'"),
        ("svg", "svg: expected a file name that ends in .svg, .png, .pdf, got none of them"),
        ("none/a.svg", "none/a.svg cannot be written: none is not a folder"),
        ("taken.svg", "taken.svg cannot be written: it is a folder"),
    ],
)
def test_names_that_cannot_be_written(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.svg").mkdir()
    for attempt in (lambda: check(Path(name)), lambda: write(plain_picture(), name)):
        with pytest.raises(OptionError) as caught:
            attempt()
        assert str(caught.value) == message
    assert os.listdir(tmp_path) == ["taken.svg"]


@pytest.mark.parametrize("name", ["a.png", "a.pdf"])
def test_without_the_extra_one_command_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    for attempt in (
        lambda: check(tmp_path / name),
        lambda: write(plain_picture(), tmp_path / name),
    ):
        with pytest.raises(MissingExtra, match=r"pip install 'ensue\[pictures\]'"):
            attempt()
    assert os.listdir(tmp_path) == []
    write(plain_picture(), tmp_path / "a.svg")


@pytest.mark.parametrize("name", FORMATS)
def test_a_disk_that_fails_leaves_the_file_as_it_was(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a{name}"
    path.write_text("before")

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left on device"):
        write(plain_picture(), path)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("svg", ["no picture", Drawing().svg(90_000, 90_000, "vast")])
def test_a_picture_that_cannot_be_converted_leaves_the_file_as_it_was(
    svg: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.png"
    path.write_text("before")
    with pytest.raises(OptionError, match=r"picture cannot be written as PNG: .*ends in \.svg$"):
        write(svg, path)
    assert path.read_text() == "before"
