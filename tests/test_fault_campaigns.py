"""The campaigns of faults: a few cases of each, that a broken build is noticed, and that a campaign
continues where it stopped."""

from __future__ import annotations

import ast
import json
import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import canary
import hostile
import pytest
from faults import (
    canaries,
    files,
    flips,
    folders,
    fuzz,
    kills,
    learned,
    material,
    planted,
    processes,
    run,
    scenes,
    selftest,
    starts,
    threads,
)
from faults.campaign import (
    ABORT,
    FINE,
    HANG,
    OUTSIDE,
    RAN,
    SILENT,
    TRACEBACK,
    Campaign,
    Case,
    Outcome,
)
from faults.inside import Notice
from faults.journal import Journal, summary
from faults.readers import Counted, Reader, readers
from faults.table import CAMPAIGNS
from faults.workers import outcomes
from typer.main import get_command

from ensue.cells.permission import CellPermission
from ensue.cli.app import app
from ensue.cli.commands import load_commands
from ensue.data.formats import csv as csv_format
from ensue.data.formats import format_names
from ensue.files import atomic_folder, run_folder
from ensue.tasks import codec, saved
from ensue.tasks.model import Model
from ensue.training.run import History

pytestmark = pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
SMALL = {
    "canaries": 4, "files": 60, "flips": 10, "folders": 3, "learned": 40, "starts": 1, "streams": 1,
    "threads": 1, "kills": 1,
}  # fmt: skip
FEW = ("label mixed", "forecast mixed", "classify text and columns")  # models of `learned`
FURTHER = scenes.FURTHER
SUBJECT = next(subject for subject in material.SUBJECTS if str(subject) == "table-number-split")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("faults")
    (place / "cache").mkdir()
    processes.warm()
    return place


@pytest.fixture(autouse=True)
def _one_subject(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(material, "SUBJECTS", [SUBJECT])
    monkeypatch.setattr(scenes, "FURTHER", FURTHER[-1:])  # the others take longer to make
    monkeypatch.setattr(flips, "KINDS", {**flips.KINDS, "further": 1})
    monkeypatch.setattr(kills, "OTHER_SHARE", 0.0)
    monkeypatch.setattr(learned, "MODELS", [model for model in learned.MODELS if str(model) in FEW])
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(work / "cache" / "torch"))


@pytest.mark.parametrize("name", SMALL)
def test_a_few_cases_of_each_campaign(name: str, work: Path) -> None:
    numbers = range(SMALL[name])
    tried = [outcome for _, outcome in outcomes(CAMPAIGNS[name], work, 1, numbers, 1)]
    assert [outcome for outcome in tried if outcome.kind != FINE] == []
    assert len(tried) == len(numbers)


def test_every_campaign_is_tried() -> None:
    assert SMALL.keys() == CAMPAIGNS.keys()


# --- every command takes part ----------------------------------------------------------------


def commands_of(group: Any, above: str = "") -> list[str]:
    """The commands of the command line, those of a group by both words."""
    return [
        name
        for word, command in group.commands.items()
        for name in (
            commands_of(command, f"{word} ") if hasattr(command, "commands") else [above + word]
        )
    ]


def test_every_command_takes_part_in_a_campaign_or_says_why_not() -> None:
    load_commands()
    known = commands_of(get_command(app))
    tried = {row.verb for row in scenes.COMMANDS if row.verb != scenes.PYTHON}
    assert sorted({*tried, *scenes.IN_NO_CAMPAIGN}) == sorted(known)
    assert not tried & scenes.IN_NO_CAMPAIGN.keys()
    assert all(scenes.IN_NO_CAMPAIGN.values())


@pytest.mark.parametrize("campaign", scenes.EVERYWHERE)
def test_what_is_newer_takes_part_in_every_campaign(campaign: str) -> None:
    newer = {"select", "train --workers", "predict --workers", "export", "pretrain", "train --base"}
    newer |= {"study labels"}
    assert newer <= {row.name for row in scenes.COMMANDS if campaign in row.campaigns}


def test_what_a_killed_command_makes_is_known() -> None:
    assert [row for row in scenes.COMMANDS if "kills" in row.campaigns and not row.writes] == []
    known = {scene.name for scene in FURTHER} | {scenes.SUBJECTS}
    assert {row.scene for row in scenes.COMMANDS} == known


@pytest.mark.parametrize(
    ("file", "line", "says"),
    [
        ("run/config.toml", "run: the run was restarted", False),
        ("run/config.toml", "config.toml: rate was 0.1, now 0.2", True),
        ("run/config.toml", "my-config.toml.old is strange", False),
        ("run/members/2/checkpoints/step-000012/state.json", "2 rows were read", False),
        ("run/members/2/checkpoints/step-000012/state.json", "step-000012 is damaged", True),
        ("run/model/model.json", "run/model/: not what was written", True),
    ],
)
def test_a_flip_must_be_named(file: str, line: str, says: bool) -> None:
    usual = Notice(0, "", "run: continuing")
    assert flips.named(Path(file), Notice(0, "", f"{usual.err}\n{line}"), usual) is says


# --- rows of mutated files ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data", "count"),
    [
        ("csv", b'a,b\n1,2\n"x\ny",3\n', 2),
        ("csv", b"a,b\n1,2\n\n3,4\n\n", 3),
        ("csv", b'a,b\n1,"2\n3,4\n', None),
        ("tsv", b"a\tb\n1\t2\n3\n", 2),
        ("jsonl", b"{}\n\n{}\n\n", 3),
        ("text", b"a\n\nb", 3),
        ("json", b"[{}, {}]", 2),
        ("conll", b"a X\nb Y\n\n\nc X\n", 2),
    ],
)
def test_rows_are_counted_without_the_readers(name: str, data: bytes, count: int | None) -> None:
    (reader,) = [reader for reader in readers() if reader.name == name]
    assert reader.count(data) == count


def test_a_row_that_is_lost_is_noticed() -> None:
    assert files.lost_rows(Counted(3, 1, True), 4).kind == FINE
    assert files.lost_rows(Counted(3, 0, True), 4).kind == SILENT
    assert files.lost_rows(Counted(3, 0, False), 4).kind == FINE  # the rest was not read


# --- planted bugs ------------------------------------------------------------------------------


@pytest.mark.parametrize("bug", planted.BUGS, ids=lambda bug: bug.name)
def test_every_planted_bug_can_still_be_planted(bug: planted.Planted) -> None:
    source = (selftest.PROJECT / selftest.SOURCE / bug.file).read_text("utf-8")
    ast.parse(selftest.changed(source, bug))
    assert bool(bug.tests) != bool(bug.campaign)
    for test in bug.tests:
        file, _, name = test.partition("::")
        text = (selftest.PROJECT / file).read_text("utf-8")
        assert f"def {name}(" in text if name else "def test_" in text


def test_bugs_are_planted_for_every_campaign_and_rule() -> None:
    assert len(planted.BUGS) >= 20
    assert {bug.campaign for bug in planted.BUGS if bug.campaign} == CAMPAIGNS.keys()
    rules = {int(bug.rule.split()[0]) for bug in planted.BUGS if bug.rule[0].isdigit()}
    assert rules == {*range(1, 17)} - {7}  # there is no server


def test_a_bug_that_is_missed_is_told() -> None:
    bug = next(bug for bug in planted.BUGS if bug.campaign == "flips")
    broken = "  flips 3: silent: run/model: 'a' became 'b'\n"
    assert selftest.verdict(bug, 1, broken).by.startswith("flips: silent: ")
    for code, output in [(0, ""), (1, "  flips 3: hang: over 180 s\n"), (1, "no module"), (-9, "")]:
        assert selftest.verdict(bug, code, output).by == ""
    test = replace(bug, campaign="", tests=("tests/test_x.py::test_y",))
    assert (
        selftest.verdict(test, 1, "FAILED tests/test_x.py::test_y - x\n").by == "test_x.py::test_y"
    )
    assert selftest.verdict(test, 1, "ERROR tests/test_x.py\n").by == ""
    assert selftest.verdict(test, 2, "FAILED tests/test_x.py::test_y\n").by == ""


# --- a broken build is noticed ---------------------------------------------------------------


def noticed(campaign: Campaign, work: Path, most: int) -> str:
    """The first kind of outcome that is not fine."""
    with closing(outcomes(campaign, work, 1, range(most), 1)) as results:
        return next((outcome.kind for _, outcome in results if outcome.kind != FINE), FINE)


def test_digests_that_are_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flips, "KINDS", {"model": 1})
    monkeypatch.setattr(atomic_folder, "digest", lambda data: "0" * 64)
    assert noticed(flips.FLIPS, tmp_path, 60) == SILENT


def test_references_that_load_without_permission(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cells_of(folder: Path) -> list[canary.Place]:
        return [place for place in canary.strings_in(folder) if place.way[-1] == "cell"]

    bases = next(scene for scene in FURTHER if str(scene) == "bases")
    monkeypatch.setattr(canaries, "scenes", lambda: [replace(bases, planted=["reviews/base"])])
    monkeypatch.setattr(canaries, "strings_in", cells_of)
    monkeypatch.setattr(CellPermission, "source", lambda unpickled, file: Path(file).read_bytes())
    assert noticed(canaries.CANARIES, work, 8) == RAN


def test_shapes_that_are_not_compared(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_of_shape", lambda value, *more: value)
    assert noticed(learned.LEARNED, work, 300) == TRACEBACK


def _raises() -> Any:
    raise KeyError("column")


def _hangs() -> Any:
    while True:
        pass


def _waits() -> Any:
    time.sleep(60)


def _aborts() -> Any:
    os.abort()


@pytest.mark.parametrize(
    ("reads", "kind"), [(_raises, TRACEBACK), (_hangs, HANG), (_waits, HANG), (_aborts, ABORT)]
)
def test_a_reader_that_fails(
    work: Path, monkeypatch: pytest.MonkeyPatch, reads: Callable[[], Any], kind: str
) -> None:
    chosen = [reader for reader in readers() if reader.name == "csv"]
    monkeypatch.setattr(files, "readers", lambda: chosen)
    monkeypatch.setattr(files, "SECONDS", 0.3)
    real = csv_format.read

    def read(path: Path, *arguments: Any) -> Any:
        return real(path, *arguments) if path.read_bytes() in chosen[0].clean else reads()

    monkeypatch.setattr(csv_format, "read", read)
    assert noticed(Campaign("files", 50, 2.0, files.begin), work, 5) == kind


def test_faults_of_loading_that_nothing_guards(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "FAULTS", ())
    monkeypatch.setattr(hostile, "VALUES", (None, [], {}))
    monkeypatch.setattr(folders, "KINDS", ("model",))
    monkeypatch.setattr(folders, "CHANGES", {folders.changed_content: 1})
    assert noticed(folders.FOLDERS, work, 30) == TRACEBACK


def test_links_that_are_followed(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path, most: int = 0) -> bytes:
        return path.read_bytes()

    monkeypatch.setattr(atomic_folder, "read_plain", read)
    monkeypatch.setattr(folders, "CHANGES", {folders.put_strange: 1})
    monkeypatch.setattr(folders, "STRANGE", folders.STRANGE[:1])
    assert noticed(folders.FOLDERS, work, 20) == OUTSIDE


def test_a_history_that_does_not_go_on(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    material.Material(work, SUBJECT)  # made while all is well
    real = History.begin
    monkeypatch.setattr(History, "begin", lambda self, mark: real(self, None))
    monkeypatch.setattr(kills, "WAYS", {kills._at_an_event: 1})
    assert noticed(kills.KILLS, work, 6) == SILENT


def test_a_lock_that_does_not_hold(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    material.Material(work, SUBJECT)
    here = Path.cwd()

    def planted(*_: object) -> None:
        if Path.cwd() != here:  # commands run in folders of their own
            _meet_the_other_process()

    monkeypatch.setattr(run_folder.fcntl, "flock", planted)
    assert noticed(starts.STARTS, work, 10) != FINE


def _meet_the_other_process() -> None:
    """Instead of a lock: each process of a folder waits, once, until two are here. Both are then
    past the lock before either has written anything. One that runs alone continues."""
    mark = Path(f"past-{os.getpid()}")
    if mark.exists():
        return
    mark.touch()
    until = time.monotonic() + 3
    while len(list(Path().glob("past-*"))) < 2 and time.monotonic() < until:
        time.sleep(0.002)


def test_answers_that_depend_on_the_thread(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    material.Material(work, SUBJECT)
    monkeypatch.setattr(Model, "predict", lambda *_: threading.get_ident())
    assert noticed(threads.SIXTEEN, work, 1) == SILENT


# --- going on --------------------------------------------------------------------------------


def test_a_journal_goes_on_and_drops_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "flips.jsonl"
    one = Journal(path, "code", 1)
    one.add(0, Outcome(FINE, "a"))
    one.add(2, Outcome(SILENT, "b", 3))
    with open(path, "a") as file:
        file.write('{"case": 3, "ki')
    other = Journal(path, "code", 1)
    assert (other.outcomes, other.anew) == (one.outcomes, False)
    assert other.missing(range(4)) == [1, 3]
    anew = Journal(path, "other code", 1)
    assert (anew.outcomes, anew.anew) == ({}, True)


def test_the_summary_says_which_promises_were_broken(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "kills.jsonl", "code", 1)
    journal.add(0, Outcome(FINE, "", 5))
    assert summary({"kills": journal})[1]
    journal.add(1, Outcome(HANG, "", 2))
    table, all_kept = summary({"kills": journal})
    head, row = (line.split() for line in table.splitlines())
    assert head[:3] == ["campaign", "cases", "faults"]
    assert row == ["kills", "2", "7", "0", "0", "0", "1", "0", "0", "0"]
    assert not all_kept


def test_only_what_is_missing_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def case(draw: random.Random) -> Outcome:
        with open(tmp_path / "tried", "a") as file:
            file.write("x")
        return Outcome(FINE, str(draw.random()))

    def begin(work: Path, place: Path) -> Case:
        return case

    monkeypatch.setattr(run, "CAMPAIGNS", {"plain": Campaign("plain", 100, 20.0, begin)})
    monkeypatch.setattr(run, "prepare", lambda work: work.mkdir(exist_ok=True))
    monkeypatch.setattr(run.signal, "signal", lambda *_: None)
    words = ["--work", str(tmp_path / "work"), "--workers", "1"]
    for share, tried in ((0.04, 4), (0.1, 10), (0.1, 10)):
        assert run.main([*words, "--share", str(share)]) == 0
        assert len((tmp_path / "tried").read_text()) == tried
    lines = (tmp_path / "work" / "plain.jsonl").read_text().splitlines()[1:]
    lines_by_case = {line["case"]: line["what"] for line in map(json.loads, lines)}
    capsys.readouterr()
    assert run.main([*words, "--case", "7", "--only", "plain"]) == 0
    assert capsys.readouterr().out == f"fine: {lines_by_case[7]}\n"


# --- readers ---------------------------------------------------------------------------------


def test_every_format_is_read() -> None:
    assert {*format_names()} - {"folder"} <= {reader.name for reader in readers()}


FINDS = sorted(fuzz.FINDS.rglob("*.bin"))


@pytest.mark.parametrize("find", FINDS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_what_was_once_found_is_refused_properly(find: Path, tmp_path: Path) -> None:
    by_folder = {fuzz.folder_of(reader): reader for reader in fuzz.everything().values()}
    outcome = files.read_one(tmp_path, by_folder[find.parent.name], find.read_bytes())
    assert outcome == Outcome(FINE, "")


def test_fuzzing_finds_what_is_broken(tmp_path: Path) -> None:
    def read(path: Path) -> None:
        if b"\0" in path.read_bytes():
            raise KeyError("column")

    broken = Reader("broken", "a.txt", (b"some clean bytes",), read)
    find = fuzz.look(broken, tmp_path, 1, 500)
    assert find is not None
    data, outcome = find
    assert outcome.kind == TRACEBACK
    assert fuzz.keep(broken, data, tmp_path).read_bytes() == data
    assert fuzz.look(replace(broken, read=str), tmp_path, 1, 20) is None
