"""The command line: quick to answer, results on stdout, errors short and on stderr."""

import json
import os
import subprocess
import sys

import pytest

from ensue import __version__, cli, doctor
from ensue.errors import (
    EnsueError,
    EquationError,
    MissingExtra,
    OptionError,
    ShapeError,
    unknown,
)


def ensue(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ensue", *arguments],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def exit_code(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as ending:
        cli.main(arguments)
    return ending.value.code


def test_help_documents_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--help") == 0
    text = capsys.readouterr().out
    assert "Exit codes" in text
    for code in ("0", "1", "2", "130"):
        assert f" {code} " in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--version") == 0
    assert capsys.readouterr().out == f"ensue {__version__}\n"


def test_doctor_prints_text_and_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("doctor") == 0
    text = capsys.readouterr().out
    assert exit_code("doctor", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert doctor.as_text(doctor.MachineFact(**row) for row in rows) + "\n" == text


def fail_with(problem: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `ensue doctor` meet this problem."""

    def examine() -> list[doctor.MachineFact]:
        raise problem

    monkeypatch.setattr(doctor, "examine", examine)


def test_an_error_is_its_message_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(unknown("cell", "lsmt", ["lstm", "gru"]), monkeypatch)
    assert exit_code("doctor") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "OptionError: unknown cell 'lsmt': did you mean 'lstm'? Known: gru, lstm\n"


@pytest.mark.parametrize("arguments", [("--debug", "doctor"), ("doctor", "--debug")])
def test_debug_adds_the_traceback(
    arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fail_with(ShapeError("expected 3 axes, got 2"), monkeypatch)
    assert exit_code(*arguments) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("ShapeError: expected 3 axes, got 2\n")


def test_debug_after_two_dashes_is_an_argument() -> None:
    assert cli.take_debug(["a", "--debug", "--", "--debug"]) == (True, ["a", "--", "--debug"])
    assert cli.take_debug(["a", "--", "--debug"]) == (False, ["a", "--", "--debug"])
    assert cli.take_debug([]) == (False, [])


def test_a_mistake_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(ZeroDivisionError("ours"), monkeypatch)
    with pytest.raises(ZeroDivisionError):
        cli.main(["doctor"])


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(KeyboardInterrupt(), monkeypatch)
    assert exit_code("doctor") == 130


def test_an_unknown_command_ends_with_2() -> None:
    run = ensue("docter")
    assert run.returncode == 2
    assert run.stdout == ""
    assert "docter" in run.stderr
    assert "Traceback" not in run.stderr


def test_letters_that_the_terminal_lacks_are_no_error() -> None:
    run = ensue("doctor", PYTHONIOENCODING="ascii", ENSUE_DATA="/nirgends/σ")
    assert run.returncode == 0, run.stderr
    assert r"/nirgends/\u03c3" in run.stdout


def test_no_colour_codes_reach_a_pipe() -> None:
    assert "\x1b" not in ensue("--help").stdout
    assert "\x1b" not in ensue("--help", NO_COLOR="1", FORCE_COLOR="1").stdout


@pytest.mark.parametrize(
    ("kind", "also"),
    [
        (EquationError, Exception),
        (ShapeError, ValueError),
        (OptionError, ValueError),
        (MissingExtra, ImportError),
    ],
)
def test_every_error_is_ours_and_its_builtin_kind(
    kind: type[EnsueError], also: type[Exception]
) -> None:
    assert issubclass(kind, EnsueError)
    assert issubclass(kind, also)


def test_a_guess_is_only_made_where_it_is_near() -> None:
    assert str(unknown("engine", "Nativ", ["eager", "native"])).startswith(
        "unknown engine 'Nativ': did you mean 'native'?"
    )
    assert str(unknown("engine", "zzz", ["eager"])) == "unknown engine 'zzz'. Known: eager"
    assert str(unknown("engine", "zzz", [])) == "unknown engine 'zzz'. Known: none"
