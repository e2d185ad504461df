"""Every command of docs/courses.md runs, but for those that take minutes."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from commands import Ensue, commands_in
from picture_samples import lab

from ensue.cli.commands import MODULES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "courses.md"
ITEMS = re.split(r"^- ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
RUNS = Path(__file__).parent / "version_0_1_0"
LONG = "takes minutes"


def commands(item: str) -> list[str]:
    return [own for own in re.findall(r"`([^`]+)`", item) if own.startswith("ensue ")]


SHORT = [own for item in ITEMS if LONG not in item for own in commands(item)]


def test_every_item_has_a_command() -> None:
    assert [item for item in ITEMS if not commands(item)] == []
    assert {shlex.split(own)[1] for item in ITEMS for own in commands(item)} <= {*MODULES}
    assert len(SHORT) > 30


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    """A folder with a corpus and a translator; the lab, which takes seconds, has run already."""
    shutil.copytree(RUNS / "translate-transformer" / "run", tmp_path / "translator")
    (tmp_path / "corpus.txt").write_text("the students opened their books\n" * 20)
    monkeypatch.setattr("ensue.study.foundations.lab.run_lab", lambda *given: lab())
    return commands_in(tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize("command", dict.fromkeys(SHORT))
def test_commands_run(command: str, ensue: Ensue) -> None:
    code, out, err = ensue(*shlex.split(command)[1:])
    assert code == 0, err
    assert out
