"""Files and words that ask for more than any machine has: refused by name before work begins."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from commands import Ensue, commands_in

from ensue.cli.streams import input_lines
from ensue.data.options import ReadOptions
from ensue.data.pictures.images import SIGNATURE, decode_png, encode_png
from ensue.data.read import read
from ensue.data.rows import Problem, Row
from ensue.data.values import Unfit
from ensue.errors import DataError, OptionError, TrainingError
from ensue.files.opening import COLUMNS, LAYER_WIDTH, LAYERS, TREE_DEPTH, TREE_LENGTH, TYPED_LINE
from ensue.training import processes

MANY = 2_000_000
DEEP = "[" * 100_000 + "]" * 100_000
DIGITS = "9" * 5000
TOO_MANY = f"at most {COLUMNS:,} columns"
NO_ENCODINGS = ["zlib", "hex", "rot13", "base64", "bz2", "idna", "punycode", "undefined", "a\0b"]


@pytest.fixture
def run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


def rows_of(place: Path, **options: str) -> tuple[list[Row], list[Problem]]:
    problems: list[Problem] = []
    return list(read(place, ReadOptions(**options), problems.append)), problems  # type: ignore[arg-type]


def twice(name: str) -> str:
    return ",".join(f'"{name}": 1' for _ in range(COLUMNS))


# Name and text of a file, and the message about it.
BOMBS: dict[str, tuple[str, Callable[[], str], str]] = {
    "columns": (
        "a.csv",
        lambda: "a," * MANY + "b\n1\n",
        f"at most {COLUMNS:,} columns, found 2,000",
    ),
    "quoted columns": (
        "a.csv",
        lambda: '"a",' * 2 * COLUMNS + "b\n",
        f"at most {COLUMNS:,} columns",
    ),
    "cells": (
        "a.csv",
        lambda: "a,b\n" + "," * MANY + "\n",
        f"at most {COLUMNS:,} columns, found 2,00",
    ),
    "one name": ("a.csv", lambda: "a," * 50_000 + "a\n1\n", "have the same name 'a'"),
    "no names": ("a.csv", lambda: "," * 90_000 + "\n1\n", "column 1 has no name"),
    "keys": (
        "a.jsonl",
        lambda: json.dumps(dict.fromkeys(map(str, range(COLUMNS + 1)), 1)),
        f"at most {COLUMNS:,} keys, got {COLUMNS + 1:,}",
    ),
    "one key": ("a.jsonl", lambda: "{" + twice("k") + "}", "the key 'k' occurs twice"),
    "deep lines": ("a.jsonl", lambda: f'{{"a": {DEEP}}}', "nested too deeply"),
    "deep list": ("a.json", lambda: f'[{{"a": {DEEP}}}]', "nested too deeply"),
    "digits": ("a.jsonl", lambda: f'{{"a": {DIGITS}}}', "a number with too many digits"),
    "deep tree": (
        "a.trees",
        lambda: "(T not " * 100_000 + "(T T)" + ")" * 100_000,
        f"expected brackets nested at most {TREE_DEPTH} deep, got 100,001; split the tree, or",
    ),
    "long tree": (
        "a.trees",
        lambda: "(S\n" + f" {'a' * 999}\n" * 1100,
        f"expected a tree of at most {TREE_LENGTH:,} characters, got 1,100,002; split the tree, or",
    ),
    "digits in a list": ("a.json", lambda: f'[{{"a": {DIGITS}}}]', "a number with too many digits"),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_file_that_asks_for_too_much(kind: str, run: Ensue, tmp_path: Path) -> None:
    name, text, message = BOMBS[kind]
    (tmp_path / name).write_text(text(), "utf-8")
    rows, problems = rows_of(tmp_path / name)
    assert rows == []
    assert message in problems[0].reason
    for verb in ("check", "show"):
        code, out, err = run("data", verb, name)
        assert (code, len(out + err) < 5000) == (2, True)


@pytest.mark.parametrize("name", [*NO_ENCODINGS, "unicode_escape", "raw_unicode_escape", "none"])
def test_an_encoding_of_no_file(name: str) -> None:
    with pytest.raises(OptionError, match=r"encoding: .* is not known; expected utf-8, cp1252"):
        ReadOptions(encoding=name)


def test_settings_that_no_machine_has_room_for(run: Ensue, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\na b,x\nc d,y\n")
    refused = {
        "model.hidden_size=1000000": f"model.hidden_size: expected a number ≤ {LAYER_WIDTH}",
        "model.layers=1000000": f"model.layers: expected a number ≤ {LAYERS}",
        f"model.layers={DIGITS}": "model.layers: expected a whole number, got '999",
        f"model.layers={DEEP}": "model.layers: expected a whole number, got '[[[",
    }
    for setting, message in refused.items():
        code, _, err = run("train", "a.csv", "--label", "label", "--dry-run", "--set", setting)
        assert (code, len(err) < 3000) == (2, True)
        assert message in err


class Endless:
    """/dev/zero: as many bytes as are asked for."""

    def __init__(self) -> None:
        self.size = 0

    def readline(self, size: int) -> bytes:
        self.size += size
        return bytes(size)


def test_an_input_without_line_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    endless = Endless()
    monkeypatch.setattr(sys, "stdin", type("Stream", (), {"buffer": endless}))
    with pytest.raises(
        DataError, match=f"standard input:1: expected a line of at most {TYPED_LINE:,}"
    ):
        list(input_lines())
    assert endless.size == TYPED_LINE + 1


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"WORLD_SIZE": "abc"}, "expected a whole number in WORLD_SIZE, got 'abc'"),
        ({"WORLD_SIZE": "2"}, "expected a whole number in RANK, got nothing"),
        ({"WORLD_SIZE": "2", "RANK": "x"}, "expected a whole number in RANK, got 'x'"),
        (
            {"WORLD_SIZE": "2", "RANK": "2", "MASTER_PORT": "1", "MASTER_ADDR": "localhost"},
            "expected RANK below it, MASTER_ADDR and MASTER_PORT",
        ),
        (
            {"WORLD_SIZE": "2", "RANK": "0", "MASTER_PORT": "0", "MASTER_ADDR": "localhost"},
            "expected RANK below it, MASTER_ADDR and MASTER_PORT",
        ),
    ],
)
def test_variables_of_a_launcher_that_is_not_there(
    variables: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WORLD_SIZE", "RANK", "MASTER_PORT", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TrainingError) as caught:
        processes.begin()
    assert message in str(caught.value)
    assert "Start several processes with torchrun; for one, unset WORLD_SIZE" in str(caught.value)


class Waits(BaseException):
    """Raised instead of waiting for the writer of a pipe, or for the end of an endless device."""


@contextmanager
def no_waiting(seconds: int = 120) -> Iterator[None]:
    """Waits is raised inside of it after a time in which no command does anything else."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Waits

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "words",
    [
        ("data", "check", "pipe.csv"),
        ("data", "show", "pipe.csv"),
        ("data", "make", "copy", "pipe.jsonl", "--rows", "1"),
        ("data", "make", "shapes", "pipe", "--rows", "1"),
        ("cell", "show", "pipe.py"),
        ("cell", "show", "/dev/zero"),
        ("cell", "show", "GRU", "--picture", "pipe.svg"),
        ("graph", "x*y", "--picture", "pipe.svg"),
        ("backprop", "--html", "pipe"),
        ("lab", "--json", "pipe.json"),
        ("lab", "--json", "/dev/null"),
        ("bench", "--read", "pipe.json"),
        ("bench", "--read", "/dev/zero"),
        ("bench", "--cell", "pipe.py", "--list"),
        ("memory", "--cells", "pipe.py"),
        ("runs", "pipe"),
        ("compare", "pipe", "pipe.csv"),
        ("evaluate", "pipe"),
        ("predict", "/dev/zero"),
        ("init", "a.csv", "--label", "label", "--run", "pipe"),
        ("train", "pipe.csv", "--label", "label"),
        ("train", "a.csv", "--label", "label", "--run", "/dev/null"),
        ("train", "a.csv", "--label", "label", "--validation", "pipe.csv"),
        ("train", "a.csv", "--label", "label", "--set", "model.cell=pipe.py:Mine"),
        ("train", "a.csv", "--label", "label", "--set", "model.vectors=pipe"),
    ],
)
def test_a_pipe_or_a_device_in_the_place_of_a_file(
    words: tuple[str, ...], run: Ensue, tmp_path: Path
) -> None:
    for name in ("pipe", "pipe.csv", "pipe.py", "pipe.svg", "pipe.json", "pipe.jsonl"):
        os.mkfifo(tmp_path / name)
    rows = [f"a {'good' if k % 2 else 'bad'} film {k},{k % 2}" for k in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *rows, ""]))
    with no_waiting():
        code, _, err = run(*words)
    assert code == 2
    assert "Error: " in err


# --- readers -------------------------------------------------------------------------------------


def test_rows_that_an_open_quote_swallows_are_counted(tmp_path: Path) -> None:
    place = tmp_path / "a.csv"
    lines = ["a,b", "1,2", '"3,4', "5", "6", "7,8", "9,10"]
    place.write_text("\n".join([*lines, ""]))
    rows, problems = rows_of(place)
    assert [row.fields["a"] for row in rows] == ["1", "7", "9"]
    assert len(rows) + sum(problem.rejects for problem in problems) == len(lines) - 1


def test_a_byte_order_mark_inside_of_a_file_is_named(tmp_path: Path) -> None:
    place = tmp_path / "a.csv"
    place.write_bytes("\ufeffa,b\n1,2\n\ufeffa,b\n3,x\ufeffy\n".encode())
    rows, problems = rows_of(place)
    assert [row.fields["b"] for row in rows] == ["2"]
    advice = "were files joined? Remove it"
    assert [*map(str, problems)] == [
        f"{place}:3: a byte order mark at byte 11: {advice}",
        f"{place}:4: a byte order mark at byte 21: {advice}",
    ]


def test_a_text_of_parquet_that_is_no_utf_8(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = arrow.array([b"good", b"b\xffd", b"fine"]).view(arrow.string())
    parquet.write_table(arrow.table({"text": texts}), tmp_path / "a.parquet")
    rows, (problem,) = rows_of(tmp_path / "a.parquet")
    assert [row.fields["text"] for row in rows] == ["good", "fine"]
    assert problem.place.line == 2
    assert problem.reason == "a text with the bytes FF at its byte 1, which are not utf-8"


def test_a_png_of_its_end_alone() -> None:
    whole = encode_png(np.zeros((1, 1, 1), np.uint8))
    with pytest.raises(Unfit, match="byte 8: expected the header chunk IHDR"):
        decode_png(SIGNATURE + whole[-12:])
