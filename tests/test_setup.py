"""The set-up of `.venv` by make: what each target installs, and what an interruption leaves.

A stand-in for Python makes the environment and notes what pip would install: no package is.
"""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BASE, TOOLS = "-e .", "-e .[dev]"
# What stands for Python, and later for .venv/bin/python. The log has a line for each call of pip.
PYTHON = """#!/bin/sh
case "$*" in
"-m venv "*)
    echo "venv" >> {log}
    mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp {ensue} "$3/bin/ensue" ;;
"-m pip install "*)
    echo "${{*##*constraints.txt }}" >> {log}
    echo "Looking in indexes: nowhere"
    echo "Collecting torch<3,>=2.6"
    echo "  Downloading torch-2.13.0-cp311-cp311-linux_x86_64.whl.metadata (31 kB)"
    echo "  Downloading simple/torch-2.13.0-cp311-cp311-linux_x86_64.whl (190.5 MB)"
    echo "  Using cached numpy-2.4.0-cp311-cp311-linux_x86_64.whl (16 MB)"
    echo "Processing /folder/sympy-1.14.0-py3-none-any.whl (from torch<3,>=2.6->ensue)"
    echo "Installing collected packages: numpy, sympy, torch, ensue"
    [ "$PYTHONUNBUFFERED" ] || exit 1  # a pipe would get its lines when all is done
    while [ -e {hold} ]; do sleep 0.02; done
    if [ -e {fail} ]; then echo "ERROR: no space left" >&2; exit 1; fi ;;
esac
"""
ENSUE = """#!/bin/sh
echo "ran $*"
"""


def environment() -> dict[str, str]:
    """Without what `make test` hands to a make below it: that one names the folders it enters."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}


class Clone:
    """A clone with a stand-in for Python."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.venv = folder / "clone", folder / "clone" / ".venv"
        self.log, self.fail, self.hold = folder / "log", folder / "fail", folder / "hold"
        self.folder.mkdir()
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, self.folder)
        self.python = self._program(folder / "python3", PYTHON)

    def _program(self, path: Path, text: str) -> Path:
        ensue = path.with_name("ensue-program")
        ensue.write_text(ENSUE)
        ensue.chmod(0o700)
        path.write_text(text.format(log=self.log, fail=self.fail, hold=self.hold, ensue=ensue))
        path.chmod(0o700)
        return path

    def make(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["make", *words, f"PYTHON={self.python}"]
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, env=environment()
        )

    def installed(self) -> list[str]:
        """What was done since this was last asked for."""
        calls = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [call.replace("--progress-bar off ", "") for call in calls]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_the_demo_installs_what_it_needs_and_no_more(clone: Clone) -> None:
    demo = clone.make("demo", "ARGS=cell")
    assert (demo.returncode, demo.stdout) == (0, "ran demo cell\n")
    assert clone.installed() == ["venv", BASE]
    assert clone.make("demo").returncode == 0
    assert clone.installed() == []


def test_tests_complete_the_environment_of_the_demo(clone: Clone) -> None:
    clone.make("demo")
    clone.installed()
    marker = clone.venv / "kept"
    marker.touch()
    assert clone.make("test").returncode == 0
    assert clone.installed() == [TOOLS]
    assert marker.exists()
    for word in ("test", "demo", "check"):
        clone.make(word)
    assert clone.installed() == []


def test_tests_alone_install_everything(clone: Clone) -> None:
    assert clone.make("test").returncode == 0
    assert clone.installed() == ["venv", BASE, TOOLS]


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_requirement_is_installed(clone: Clone, name: str) -> None:
    clone.make("test")
    clone.installed()
    later = time.time() + 10
    os.utime(clone.folder / name, (later, later))
    clone.make("demo")
    assert clone.installed() == [BASE]
    clone.make("test")
    assert clone.installed()[-1:] == [TOOLS]


def _before_pip(clone: Clone) -> None:
    """The first moment of a set-up that was killed."""
    clone.venv.mkdir()
    (clone.venv / "unfinished").touch()


def _during_base(clone: Clone) -> None:
    clone.fail.touch()
    assert clone.make("demo").returncode


def _during_tools(clone: Clone) -> None:
    clone.make("demo")
    clone.fail.touch()
    assert clone.make("test").returncode


@pytest.mark.parametrize("interrupt", [_before_pip, _during_base, _during_tools])
@pytest.mark.parametrize("word", ["demo", "test"])
def test_an_interrupted_set_up_is_made_again(
    clone: Clone, interrupt: Callable[[Clone], None], word: str
) -> None:
    interrupt(clone)
    clone.fail.unlink(missing_ok=True)
    clone.installed()
    (clone.venv / "half a package").touch()
    assert clone.make(word).returncode == 0
    assert clone.installed() == (["venv", BASE] if word == "demo" else ["venv", BASE, TOOLS])
    assert not (clone.venv / "half a package").exists()
    assert not (clone.venv / "unfinished").exists()


def test_an_environment_that_somebody_made_is_used(clone: Clone) -> None:
    subprocess.run([clone.python, "-m", "venv", clone.venv], check=True)
    clone.installed()
    assert clone.make("demo").returncode == 0
    assert clone.installed() == [BASE]


def test_a_copied_tree_is_set_up_again(clone: Clone) -> None:
    clone.make("test")
    clone.installed()
    clone.folder = clone.folder.rename(clone.folder.with_name("moved"))
    assert clone.make("demo").returncode == 0
    assert clone.installed() == [BASE]


def test_a_failure_of_pip_is_a_failure(clone: Clone) -> None:
    clone.fail.touch()
    failed = clone.make("demo")
    assert failed.returncode
    assert "no space left" in failed.stderr
    assert "ran demo" not in failed.stdout


def test_the_set_up_says_how_far_it_is_without_a_terminal(clone: Clone) -> None:
    """One line for each package; nothing of where they come from."""
    errors = clone.make("test").stderr
    packages = "  1. torch-2.13.0 (190.5 MB)\n  2. numpy-2.4.0 (16 MB)\n  3. sympy-1.14.0\n"
    packages += "  writing 4 packages to .venv\n"
    assert errors == (
        f"Making .venv with {clone.python}\n"
        "Installing Ensue; torch is the large part (about 200 MB, once)\n"
        f"{packages}"
        "Installing the tools for tests, documentation and measurements (minutes, once)\n"
        f"{packages}"
    )


def test_a_package_is_shown_while_others_are_still_awaited(clone: Clone) -> None:
    clone.hold.touch()
    command = ["make", "demo", f"PYTHON={clone.python}"]
    with subprocess.Popen(
        command,
        cwd=clone.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as setting_up:
        assert setting_up.stderr is not None
        lines = [setting_up.stderr.readline() for _ in range(6)]
        assert setting_up.poll() is None
        clone.hold.unlink()
    assert lines[-1] == "  writing 4 packages to .venv\n"


def test_a_terminal_sees_the_progress_of_pip_itself(clone: Clone) -> None:
    ours, theirs = pty.openpty()
    command = ["make", "demo", f"PYTHON={clone.python}"]
    subprocess.run(
        command,
        cwd=clone.folder,
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=True,
        env=environment(),
    )
    os.close(theirs)
    text = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "Collecting torch" in text
    assert "--progress-bar" not in clone.log.read_text()
