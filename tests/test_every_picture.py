"""The laws of pictures, over one of every kind; and every command that draws."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import typer
from commands import Ensue, commands_in
from picture_samples import (
    PICTURES,
    bench_report,
    forecaster,
    lab,
    label_curve,
    memory_report,
    picture,
    selection,
)
from toy_runs import toy_run

from benchmarks.engine.saved import save
from ensue.cli import app, load_commands
from ensue.drawing import themed
from ensue.drawing.svg import text_width
from ensue.drawing.theme import DARK_PAPER, PAPER, contrast
from ensue.tasks.forecast.draws import BAND

SVG = "{http://www.w3.org/2000/svg}"

Box = tuple[float, float, float, float]  # left, top, right, bottom


# --- laws ----------------------------------------------------------------------------------


def shapes_of(svg: str) -> Iterator[tuple[str, Box, str, str]]:
    """Kind, box, colour and words of each rectangle and text, in the order of drawing."""
    for element in ElementTree.fromstring(svg).iter():
        kind, attributes = element.tag.removeprefix(SVG), element.attrib
        if kind == "rect" and attributes.get("fill", "none").startswith("#"):
            x, y, w, h = (float(attributes.get(key, 0)) for key in ("x", "y", "width", "height"))
            yield kind, (x, y, x + w, y + h), attributes["fill"], ""
        elif kind == "text" and "transform" not in attributes:
            words, size = "".join(element.itertext()), float(attributes["font-size"])
            x, y, wide = float(attributes["x"]), float(attributes["y"]), text_width(words, size)
            left = {"start": x, "middle": x - wide / 2, "end": x - wide}[attributes["text-anchor"]]
            yield kind, (left, y - size, left + wide, y), attributes["fill"], words


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PICTURES)
def test_words_can_be_read_on_what_lies_below_them(name: str, theme: str) -> None:
    """A contrast of 4.5, with the last rectangle that was drawn where the words have their
    middle."""
    below: list[tuple[Box, str]] = []
    for kind, box, colour, words in shapes_of(themed(picture(name), theme)):
        if kind == "rect":
            below.append((box, colour))
            continue
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        paper = next(
            fill
            for (left, top, right, bottom), fill in reversed(below)
            if left <= x <= right and top <= y <= bottom
        )
        assert contrast(colour, paper) >= 4.5, (words, colour, paper)


@pytest.mark.parametrize("name", PICTURES)
def test_all_words_are_on_the_paper(name: str) -> None:
    (_, paper, colour, _), *rest = shapes_of(picture(name))
    assert colour == PAPER
    for _, (left, top, right, bottom), _, words in rest:
        assert left >= 0, words
        assert top >= 0, words
        assert right <= paper[2], words
        assert bottom <= paper[3], words


@pytest.mark.parametrize("name", PICTURES)
def test_the_style_for_dark_readers_makes_the_dark_picture(name: str) -> None:
    """Applied by hand, rule by rule, as a browser does."""
    svg = picture(name)
    (style,) = re.findall("<style>(.*?)</style>", svg, re.DOTALL)
    rules = re.findall(r'\.ensue \[(fill|stroke)="(#\w{6})"\]\{(fill|stroke):(#\w{6})\}', style)
    assert style.count("{") == len(rules) + 1
    made = themed(svg, "light")
    colours = {(what, was): new for what, was, same, new in rules if what == same}
    made = re.sub(r'(fill|stroke)="(#\w{6})"', lambda m: f'{m[1]}="{colours[m[1], m[2]]}"', made)
    assert made == themed(svg, "dark")
    assert f'fill="{DARK_PAPER}"' in made
    assert ElementTree.fromstring(svg).attrib["class"] == "ensue"


TITLES = {
    "lab": ["x", "f(x)", "slope a of the hypothesis a·x", "mean squared error", "y",
            "units of the hidden layer", "mean squared test error",
            "estimate of ∂E[C]/∂z, mean ± deviation"],
    "memory": ["updates", "validation mean squared error", "validation accuracy, %"],
    "reach": ["longest sequence solved, in steps"],
    "selection": ["size of what was learned", "time in all",
                  "validation perplexity (lower is better)"],
    "bench": ["time relative to native: how many times as long they take",
              "native, share of the limit"],
    "forecast": ["month", "passengers"],
    "held-out": ["month", "passengers", "freight", "mail"],
}  # fmt: skip
KEYS = {
    "lab": ["f(x) = sin 10x + x", "rate 0.01", "expected, over all x", "linear", "sinusoid",
            "empirical, of ten noisy samples", "least", "training rows", "first layer random",
            "all layers tuned", "z = 0.5", "z = −1", "z = 0.3", "exact"],
    "memory": ["SimpleRNN", "GRU", "LSTM"],
    "bench": ["torch.nn", "torch loop", "JAX scan", "ONNX Runtime", "goal"],
    "forecast": ["past", "forecast", "90 % interval", "seasonal naive"],
    "held-out": ["past", "actual", "forecast", "90 % interval", "seasonal naive"],
    "letters": ["attention 0", "1"],
    "positions": ["−1", "1", "distance k", "position p, downwards"],
    "attribution": ["against", "for the answer", "The linear model by itself"],
    "heads": ["head 1", "mean", "decoder masked self-attention, layer 1"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "words"), [*TITLES.items(), *KEYS.items()])
def test_axes_have_titles_and_colours_a_legend(name: str, words: list[str]) -> None:
    texts = [text for kind, _, _, text in shapes_of(picture(name)) if kind == "text"]
    assert [word for word in words if word not in texts] == []


# --- forecasts of several targets ------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 5, 14])
def test_every_target_has_a_panel_over_the_same_times(count: int) -> None:
    names = [f"target {k}" for k in range(count)]
    model, columns = forecaster(*names)
    svg = model.picture(columns, held_out=True)
    words = [text for kind, _, _, text in shapes_of(svg) if kind == "text"]
    assert [word for word in words if word.startswith("target ")] == names
    assert f"{count} targets, 12 steps ahead" in words
    panels = {2: 1, 5: 2, 14: 3}[count]  # side by side: times only under the lowest
    assert words.count("month") == words.count("1957-01") == panels
    bands = re.findall(f'<path d="M[^"]*Z" fill="{BAND}"/>', svg)
    assert len(bands) == count
    alone = model.picture(columns, target="target 1", held_out=True)
    assert "target 0" not in alone
    assert "target 1, 12 steps ahead" in alone


def test_a_forecast_is_drawn_into_a_file(tmp_path: Path) -> None:
    model, columns = forecaster("target 0")
    drawn = model.picture(columns, tmp_path / "ahead.svg")
    assert (tmp_path / "ahead.svg").read_text("utf-8") == drawn
    model.picture(columns, tmp_path / "dark.svg", theme="dark")
    assert (tmp_path / "dark.svg").read_text("utf-8") != drawn
    model.picture(columns, str(tmp_path / "ahead.png"))
    assert (tmp_path / "ahead.png").read_bytes().startswith(b"\x89PNG")


# --- commands --------------------------------------------------------------------------------


def drawing_commands() -> set[str]:
    """Every command that has --picture, by its words."""

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[str]:
        for name, command_below in getattr(command, "commands", {}).items():
            yield from walk(command_below, (*words, name))
        if any("--picture" in parameter.opts for parameter in command.params):
            yield " ".join(words)

    load_commands()
    return set(walk(typer.main.get_command(app), ()))


ASKED: dict[str, list[str]] = {
    "cell show": ["SimpleRNN"],
    "graph": ["x*y"],
    "flow": ["--cell", "LSTM", "--hidden-size", "3", "--steps", "4", "--updates", "0"],
    "backprop": ["--widths", "1,1,1"],
    "positions": ["--steps", "4", "--width", "6"],
    "lab": [],
    "memory": ["adding", "--steps", "100"],
    "study labels": ["forecast-linear/run"],
    "bench": ["--read", "bench.json"],
    "select": ["corpus.txt", "--task", "language", "--models", "ngram", "--run", "selected"],
    "evaluate": ["forecast-linear/run"],
    "predict": ["forecast-linear/run"],
    "explain": ["translate-attention/run", "--text", "the grim fish"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    for run in ("forecast-linear", "translate-attention"):
        shutil.copytree(toy_run(run), folder / run)
    save(bench_report(), folder / "bench.json")
    (folder / "corpus.txt").write_text("a b c\n" * 30)
    return folder


@pytest.fixture
def ensue(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    """Commands; what takes longer than drawing is done already."""
    monkeypatch.setattr("ensue.study.foundations.lab.run_lab", lambda *arguments: lab())
    report = memory_report(100)
    monkeypatch.setattr("ensue.study.memory.study.study_memory", lambda *arguments: report)
    monkeypatch.setattr(
        "ensue.study.selection.selection.select_among", lambda *arguments: selection()
    )
    monkeypatch.setattr("ensue.study.labels.curve.label_curve", lambda *arguments: label_curve())
    return commands_in(place, capsys, monkeypatch)


def test_every_command_that_draws_is_tried() -> None:
    assert drawing_commands() == set(ASKED)


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
@pytest.mark.parametrize("command", ASKED)
def test_every_command_writes_every_format(
    command: str, ending: str, ensue: Ensue, place: Path
) -> None:
    name = f"{command.replace(' ', '-')}.{ending}"
    code, _, err = ensue(*command.split(), *ASKED[command], "--picture", name, "--dark")
    assert code == 0, err
    assert f"wrote {name}\n" in err
    data = (place / name).read_bytes()
    assert data.startswith({"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}[ending])
    if ending == "svg":
        assert f'fill="{DARK_PAPER}"'.encode() in data
        assert b"prefers-color-scheme" not in data


@pytest.mark.parametrize("command", ASKED)
def test_no_command_begins_what_it_cannot_write(command: str, ensue: Ensue, place: Path) -> None:
    code, out, err = ensue(*command.split(), *ASKED[command], "--picture", "a.gif")
    assert (code, out) == (2, "")
    assert err == (
        "OptionError: a.gif: expected a file name that ends in .svg, .png, .pdf, got '.gif'\n"
    )
