"""Help pages, and mistakes in the words of a command."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import toy_task
import typer
from commands import Ensue, commands_in

from ensue import cli
from ensue.cli import app, load_commands
from ensue.cli.commands import GROUPS, MODULES
from ensue.cli.help import NARROWEST, WIDEST, Page, has_colour
from ensue.cli.reading import shown_while
from ensue.tasks import TASKS

load_commands()
HEAVY = {"torch", "numpy", "pydantic", "rich"}
WIDTHS = (80, 120)


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


def below(command: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """A command and all that are below it, by the words that call them."""
    commands = {path: command}
    for name, command_below in getattr(command, "commands", {}).items():
        commands |= below(command_below, (*path, name))
    return commands


COMMANDS = below(typer.main.get_command(app))
every_command = pytest.mark.parametrize("path", COMMANDS, ids=" ".join)


# --- pages -------------------------------------------------------------------------------------


def test_every_command_has_a_group() -> None:
    assert {path[0] for path in COMMANDS if path} == {*MODULES}


def test_commands_are_listed_in_groups(ensue: Ensue) -> None:
    code, out, _ = ensue("--help")
    assert code == 0
    blocks = {block.split("\n")[0]: block for block in out.split("\n\n")}
    assert [name for name in blocks if name in GROUPS] == list(GROUPS)
    for group, commands in GROUPS.items():
        listed = [line.split()[0] for line in blocks[group].split("\n")[1:]]
        assert list(dict.fromkeys(listed)) == list(commands)
    for path in COMMANDS:
        if path and not hasattr(COMMANDS[path], "commands"):
            assert f"\n  {' '.join(path)}  " in out


def test_a_sentence_says_what_each_command_gives(ensue: Ensue) -> None:
    """On one line of a terminal of 80 columns."""
    lines = ensue("--help")[1].split("\n\nOptions\n")[0].splitlines()
    entries = [line for line in lines if line.startswith("  ")]
    assert len(entries) == sum(not hasattr(command, "commands") for command in COMMANDS.values())
    assert all(len(line) <= 80 and line[2] != " " for line in entries)


@every_command
def test_pages_fit_the_terminal(
    path: tuple[str, ...], ensue: Ensue, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = set()
    for columns in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(columns))
        code, out, err = ensue(*path, "--help")
        assert (code, err) == (0, "")
        assert max(map(len, out.splitlines())) <= min(columns, WIDEST)
        assert not any(line != line.rstrip() for line in out.splitlines())
        assert "\n\n\n" not in out
        pages.add(" ".join(out.split()))
    assert len(pages) == 1


@every_command
def test_h_is_help(path: tuple[str, ...], ensue: Ensue) -> None:
    page = ensue(*path, "--help")
    assert ensue(*path, "-h") == page
    assert ensue("help", *path) == page
    if hasattr(COMMANDS[path], "commands"):
        assert ensue(*path) == page


@every_command
def test_every_word_is_explained(path: tuple[str, ...]) -> None:
    for param in COMMANDS[path].params:
        assert param.help, f"{param.name}: expected a help text"
        if not getattr(param, "is_flag", False):
            assert param.metavar, f"{param.name}: expected a metavar"


def test_the_help_of_training_shows_the_settings_that_matter(ensue: Ensue) -> None:
    page = " ".join(ensue("train", "--help")[1].split())
    assert "--epochs N Maximum number of epochs. [10 for " in page
    assert "--rate, --lr X Learning rate. [0.001; 0.002 for image, caption, table]" in page
    assert "[LSTM; GRU for caption, forecast, translate]" in page
    assert page.index("Settings that matter most") < page.index("Options for forecast")


PAGES_THEN_MODULES = """
import contextlib, io, sys
from ensue.cli import main
from ensue.cli.commands import MODULES
light = [["--help"], [], *([name, "--help"] for name in MODULES), ["train", "--epohcs", "3"]]
light += [["tran"], ["data", "chek"]]
for some in (light, [["evaluate"], ["settings", "table"], ["train"], ["train", "--epochs", "x"]]):
    for words in some:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            with contextlib.suppress(SystemExit):
                main(words)
    print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_pages_and_mistyped_words_load_nothing_heavy(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PAGES_THEN_MODULES],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    pages, answers = (set(line.split()) for line in run.stdout.splitlines())
    assert "typer" in pages
    assert pages & HEAVY == set()
    assert answers & HEAVY == {"pydantic"}  # Typer converts values by it


def test_options_are_built_anew_only_for_another_task(
    ensue: Ensue, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Any] = []
    build = cli.get_command
    monkeypatch.setattr(cli, "get_command", lambda task: built.append(task) or build(task))

    def offered() -> bool:
        code, out, _ = ensue("train", "--help")
        assert code == 0
        return "--at-most" in out

    for _ in range(3):
        assert not offered()
    assert len(built) <= 1
    built.clear()
    TASKS.register(toy_task.TASK)
    try:
        assert offered()
        assert offered()
    finally:
        TASKS.unregister(toy_task.TASK.name)
    assert len(built) == 1
    assert not offered()


# --- the terminal ------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_headings_are_bold_on_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    pages = {}
    for stream in (Terminal(), io.StringIO()):
        page = Page(stream)
        page.heading("Start", "here")
        page.entries([("demo", "See it.")])
        pages[stream.isatty()] = str(page)
    assert pages[True] == "\x1b[1mStart\x1b[0m here\n  demo  See it."
    assert pages[False] == "Start here\n  demo  See it."
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert not has_colour(Terminal())


def test_long_names_and_texts_are_broken_where_they_should(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    page = Page(io.StringIO())
    assert page.width == NARROWEST
    page.paragraphs("one two three four five six seven eight nine\n\n  as  it  is")
    page.entries([("a", "a whole number of some length ≥ 1"), ("n" * 30, "long"), ("b", "")])
    assert str(page).splitlines() == [
        "one two three four five six seven eight",
        "nine",
        "",
        "  as  it  is",
        "  a  a whole number of some length ≥ 1",
        "  " + "n" * 30,
        "     long",
        "  b",
    ]
    page.entries([("a", "a whole number of some length, and ≥ 1")])
    assert str(page).splitlines()[-2:] == ["  a  a whole number of some length, and", "     ≥ 1"]


def test_a_sign_of_life_goes_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, expected in ((Terminal(), "loading …\r         \r"), (io.StringIO(), "")):
        monkeypatch.setattr("sys.stderr", stream)
        with shown_while("loading"):
            pass
        assert stream.getvalue() == expected


# --- mistakes ----------------------------------------------------------------------------------

HINT = "`ensue {} --help` lists what it takes\n"
MISTAKES = [
    ("hepl", "ensue: unknown command 'hepl': did you mean `ensue --help`?\n"),
    ("xyz", "ensue: unknown command 'xyz': `ensue --help` lists them all\n"),
    ("tran", "ensue: unknown command 'tran': did you mean `ensue train`? `ensue --help` lists them "
     "all\n"),
    ("data chek", "ensue data: unknown command 'chek': did you mean `ensue data check`? "
     "`ensue data --help` lists them all\n"),
    ("train --epohcs 3", "ensue train: unknown option --epohcs, did you mean --epochs?\n"
     + HINT.format("train")),
    ("train --x 3", "ensue train: unknown option --x\n" + HINT.format("train")),
    ("train --weight-decay 3", "ensue train: unknown option --weight-decay, did you mean "
     "--set train.weight_decay=…?\n" + HINT.format("train")),
    ("evaluate r --embedding-size 3", "ensue evaluate: unknown option --embedding-size\n"
     + HINT.format("evaluate")),
    ("train --epochs", "ensue train: --epochs: expected a value after it, got nothing\n"
     + HINT.format("train")),
    ("train a.csv --epochs many", "ensue train: --epochs: expected a whole number, got 'many'\n"
     + HINT.format("train")),
    ("train a.csv --rate=fast", "ensue train: --rate: expected a number, got 'fast'\n"
     + HINT.format("train")),
    ("data make dates a.tsv --rows 0", "ensue data make: --rows: expected a number ≥ 1, got '0'\n"
     + HINT.format("data make")),
    ("generate r --top-p 2", "ensue generate: --top-p: expected a number ≤ 1, got '2'\n"
     + HINT.format("generate")),
    ("evaluate", "ensue evaluate: expected RUN, got nothing\n" + HINT.format("evaluate")),
    ("doctor now", "ensue doctor: Got unexpected extra argument(s) (now)\n"
     + HINT.format("doctor")),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), MISTAKES, ids=[words for words, _ in MISTAKES])
def test_mistakes_are_told_with_the_right_word(ensue: Ensue, words: str, message: str) -> None:
    assert ensue(*words.split()) == (2, "", f"OptionError: {message}")
