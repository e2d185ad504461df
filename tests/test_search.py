"""Selection by search: spaces that hold only what can be, trials in rounds that follow from the
seed, poor ones stopped, and the same table after kills."""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from pwd import getpwall
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from task_laws import FILED, Row

from ensue.cli import main
from ensue.errors import OptionError, RunError
from ensue.runs.config import RunConfig
from ensue.runs.load import load_run
from ensue.runs.messages import Message, MessageCallback
from ensue.runs.train import adapted, train_run
from ensue.study.selection import pool
from ensue.study.selection import search as searching
from ensue.study.selection.budget import Clock, alike, spend
from ensue.study.selection.entries import Entry, Selection
from ensue.study.selection.halving import Dropped, Halving, TrialJob, bars_of, rungs_of
from ensue.study.selection.pool import Here
from ensue.study.selection.proposals import Proposer
from ensue.study.selection.search import SearchRequest, opened, search, storage_url
from ensue.study.selection.space import OpenSpace
from ensue.tasks.evaluation.openings import OPENINGS
from ensue.tasks.search.ranges import Finite
from ensue.training import Began, RunFolder, Update, Validated

pytestmark = pytest.mark.usefixtures("ninth_task")


def configured(
    row: Row, folder: Path, monkeypatch: pytest.MonkeyPatch, *more: str, small: bool = True
) -> RunConfig:
    """What `ensue select` makes of the files of a row; small: with its settings."""
    configs: list[RunConfig] = []

    def keep(config: RunConfig, *_: Any) -> Any:
        configs.append(config)
        raise OptionError("enough")

    folder.mkdir(exist_ok=True)
    words = row.write(folder)
    words = words if small else [*words[:5], *row.data.words]
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(searching, "search", keep)
        with pytest.raises(SystemExit):
            main(["select", *words, *more, "--quiet", "--run", "s"])
    return configs[0]


def space_of(config: RunConfig) -> OpenSpace:
    whole, model, train = adapted(config)
    return OpenSpace.of(whole, whole.description.search_space(train, model))


def of(task: str) -> Row:
    return next(row for row in FILED if row.task == task)


# --- spaces ----------------------------------------------------------------------------------

every_task = pytest.mark.parametrize("row", FILED, ids=lambda row: row.task)


@every_task
def test_a_space_proposes_only_what_can_be(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is drawn from the ranges of a task, the configuration is a valid one, and holds
    what was drawn; the usual values are in their ranges."""
    space = space_of(configured(row, tmp_path, monkeypatch, small=False))
    default = space.usual()
    assert space.configured(default).flat() == space.config.flat()
    for key, value in default.items():
        range_of_key = space.values[key]
        assert (
            value in range_of_key.values
            if isinstance(range_of_key, Finite)
            else range_of_key.low <= value <= range_of_key.high
        )

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def valid(data: st.DataObject) -> None:
        drawn: dict[str, Any] = {}
        for key, searched in space.ranges.items():
            allowed = space.values[key]
            if space.active(drawn, searched):
                numbers = (
                    st.sampled_from(allowed.values)
                    if isinstance(allowed, Finite)
                    else st.floats(allowed.low, allowed.high).map(allowed.rounded)
                )
                drawn[key] = data.draw(numbers, label=key)
        flat = space.configured(drawn).flat()
        assert all(flat[key] == value for key, value in drawn.items())

    valid()


@every_task
def test_every_task_is_searched(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default, and another one; the winner is tested, once, and answers."""
    config = configured(row, tmp_path, monkeypatch)
    result = search(config, tmp_path / "s", SearchRequest(2))
    assert [row.failure for row in result.rows] == ["", ""]
    assert {row.name for row in result.rows} == {"trial-000", "trial-001"}
    assert result.changed(next(row for row in result.rows if row.name == "trial-000")) == {}
    assert result.winner is not None
    assert result.test is not None
    assert len((tmp_path / "s" / OPENINGS).read_text().splitlines()) == 1
    for entry in result.rows:  # ranked by what answers
        facts = json.loads((tmp_path / "s" / entry.folder / "training.json").read_text())
        (alone,) = (network["scores"][result.measure] for network in facts["networks"])
        assert entry.network == alone
        assert entry.score == facts.get("answer", {}).get(result.measure, alone)
    config_of_trial, model = load_run(RunFolder(tmp_path / "s" / result.winner.folder))
    assert model.fitted
    flat = config_of_trial.flat()
    assert all(flat[key] == value for key, value in result.winner.settings.items())


def test_what_somebody_gave_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = of("classify")
    free = space_of(configured(row, tmp_path, monkeypatch, small=False))
    options = ("--set", "model.encoder=plain", "--set", "train.rate=0.5")
    fixed = space_of(configured(row, tmp_path, monkeypatch, *options, small=False))
    assert {*free.ranges} - {*fixed.ranges} == {"model.encoder", "train.rate"}
    assert "model.cell" not in fixed.usual()  # of a recurrent encoder only
    assert [proposal["model.encoder"] for proposal in free.first()] == [
        "recurrent", "recurrent", "plain", "transformer", "convolution",
    ]  # fmt: skip
    default, favourite = fixed.first()
    assert "train.rate" not in {**default, **favourite}
    every = [word for key in free.ranges for word in ("--set", _assignment(free.config, key))]
    with pytest.raises(OptionError) as caught:
        space_of(configured(row, tmp_path, monkeypatch, *every, small=False))
    assert str(caught.value) == (
        "select: every setting of the search space of classify is given: nothing is left to "
        "search; leave some of --set out, or train this model with `ensue train`"
    )


@every_task
def test_favourites_are_tried_after_the_default(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a task knows to be good is in its own space, and comes second."""
    space = space_of(configured(row, tmp_path, monkeypatch, small=False))
    known, first = space.config.description.favourites, list(space.first())
    assert first[0] == space.usual()
    assert len(first) == len({json.dumps(proposal, sort_keys=True) for proposal in first})
    for favourite, proposal in zip(known, first[1:], strict=False):
        offered = {key: value for key, value in favourite.items() if key in proposal}
        assert offered == {key: proposal[key] for key in offered}
        assert space.differs(proposal) == {k: v for k, v in offered.items() if v != first[0][k]}
        assert offered.keys() >= favourite.keys() & space.usual().keys()


def test_averages_of_weights_are_searched_where_there_are_none_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is off was never searched: trials had no averaged weights, which the settings that
    were found by hand have."""
    space = space_of(configured(of("match"), tmp_path, monkeypatch, small=False))
    assert space.usual()["train.averaging"] == "off"
    assert space.values["train.averaging"] == Finite(("off", 0.99, 0.999))
    assert space.configured({"train.averaging": 0.99}).train.averaging == 0.99
    assert space.configured({"train.averaging": "off"}).train.averaging is None


def _assignment(config: RunConfig, key: str) -> str:
    return f"{key}={config.flat()[key]}"


# --- proposals -------------------------------------------------------------------------------


def scored(proposer: Proposer, begin: int, proposed: Sequence[dict[str, Any]]) -> list[Entry]:
    """Trials whose score is the better, the nearer their rate is to 0.001."""
    return [
        Entry(
            f"t{k}", f"t{k}", settings=proposal, score=abs(math.log(proposal["train.rate"] / 0.001))
        )
        for k, proposal in enumerate(proposed, begin)
    ]


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    options = ("--set", "train.epochs=3", "--set", "model.batch_rows=16")
    return configured(of("table"), tmp_path, monkeypatch, *options, small=False)


def test_proposals_follow_from_the_seed_and_the_scores(tables: RunConfig) -> None:
    space = space_of(tables)
    one, same, other = (Proposer(space, "cost", seed) for seed in (1, 1, 2))
    known: list[Entry] = []
    for begin in range(0, 24, 4):
        proposed = one.round(known, begin, 4)
        assert proposed == same.round(known, begin, 4)
        assert proposed[:2] == one.round(known, begin, 2)  # of fewer, the first ones
        assert proposed[1:] != other.round(known, begin, 4)[1:]
        known += scored(one, begin, proposed)
    assert known[0].settings == space.usual()
    distances = [trial.score or 0.0 for trial in known]
    assert sum(distances[16:]) < sum(distances[1:9])  # it learns where good ones are


def test_one_more_is_proposed_while_others_run(tables: RunConfig) -> None:
    proposer = Proposer(space_of(tables), "cost", 1)
    first = proposer.next([], [])
    assert first == proposer.first[0]
    second = proposer.next([], [first])
    assert second != first
    assert second == proposer.next([], [first])
    failed = Entry("t", "t", settings=first, failure="no memory")
    stopped = Entry("u", "u", settings=second, stopped="early", rungs={"1/9": 2.0})
    assert proposer.next([failed, stopped], []) not in (first, second)


def test_settings_are_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A family that is solved has nothing to search; it made up a third of all trials."""
    space = space_of(configured(of("forecast"), tmp_path, monkeypatch, small=False))
    proposer, known = Proposer(space, "mae", 1), list[Entry]()
    for begin in range(0, 24, 4):
        for k, proposal in enumerate(proposer.round(known, begin, 4), begin):
            best = 0.0 if proposal["model.family"] == "linear" else 1.0
            known.append(Entry(f"t{k}", f"t{k}", settings=proposal, score=best))
    assert sum(trial.settings["model.family"] == "linear" for trial in known) == 1
    more = proposer.next(known, [])
    assert more not in [trial.settings for trial in known]
    assert more != proposer.next(known, [more])


# --- halving ---------------------------------------------------------------------------------


def reached(*scores: float) -> list[Entry]:
    return [Entry(f"t{k}", f"t{k}", rungs={"1/9": score}) for k, score in enumerate(scores)]


def test_the_best_third_goes_on() -> None:
    assert bars_of(reached(0.1, 0.2), "accuracy") == {}  # too few to judge by
    assert bars_of(reached(0.1, 0.5, 0.3), "accuracy") == {"1/9": 0.5}
    assert bars_of(reached(0.1, 0.5, 0.3, 0.4), "accuracy") == {"1/9": 0.4}
    assert bars_of(reached(0.1, 0.5, 0.3, 0.4), "cost") == {"1/9": 0.3}


def test_a_rung_is_the_first_evaluation_after_a_share_of_the_updates(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    row = '{{"row": "evaluation", "update": {}, "scores": {{"cost": {}}}}}\n'
    scores = [(4, 3.0), (8, 5.0), (12, 1.0), (20, 0.5)]
    history.write_text("".join(row.format(*score) for score in scores) + '{"row": "evaluation", ')
    assert rungs_of(history, 18, "cost") == {"1/9": 3.0, "1/3": 3.0}
    assert rungs_of(history, 36, "cost") == {"1/9": 3.0, "1/3": 1.0}
    assert rungs_of(history, 90, "cost") == {"1/9": 1.0}
    assert rungs_of(tmp_path / "none", 9, "cost") == {}


def test_a_trial_that_lags_is_stopped_and_can_go_on(tables: RunConfig, tmp_path: Path) -> None:
    """As long as it was trained, it is the training that was never stopped."""
    folder, whole = RunFolder(tmp_path / "t"), RunFolder(tmp_path / "whole")
    config = adapted(tables)[0]
    with pytest.raises(Dropped) as caught:
        train_run(config, folder, [Halving(folder.history, {"1/9": -1e9}, "cost")])
    assert "after 3 of 9 updates" in str(caught.value)
    assert "at 1/9 of all updates, needed -1e+09" in str(caught.value)
    assert not folder.model.exists()
    train_run(config, folder, [Halving(folder.history, {"1/9": 1e9}, "cost")])
    train_run(config, whole)
    assert folder.history.read_bytes() == whole.history.read_bytes()


# --- the whole -------------------------------------------------------------------------------


def results(selection: Selection) -> Any:
    """All but the times."""
    rows = [replace(row, seconds=0.0, around=0.0, after=0.0, speed=None) for row in selection.rows]
    return selection.measure, selection.search, selection.test, rows


class Interrupting(Here):
    """The process dies in the middle of the so-manieth trial, or after it."""

    def __init__(self, at: int, inside: bool) -> None:
        super().__init__(self._watchers)
        self.left, self.inside = at, inside

    def _watchers(self, job: TrialJob) -> list[Any]:
        def watch(row: Any) -> None:
            if self.inside and self.left == -1 and isinstance(row, Update) and row.update == 5:
                raise KeyboardInterrupt

        return [watch]

    def wait(self) -> list[tuple[int, Entry]]:
        self.left -= 1
        if self.left < 0 and not self.inside:
            raise KeyboardInterrupt
        return super().wait()


def pool_that(dies: Here) -> Callable[[int], Any]:
    @contextmanager
    def pool(workers: int, on: str) -> Iterator[Here]:
        yield dies

    return pool


def test_the_same_table_after_interruptions(
    tables: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted between trials and inside of them, continued, and asked for again: the same
    trials, scores and winner; the test part is opened once. Without favourites one of the
    six is stopped."""
    monkeypatch.setattr(type(tables.description), "favourites", ())
    whole = search(tables, tmp_path / "whole", SearchRequest(6))
    assert any(row.stopped for row in whole.rows)  # so that bars count
    place = tmp_path / "s"
    for dying in (Interrupting(0, True), Interrupting(2, False), Interrupting(1, True)):
        with pytest.raises(KeyboardInterrupt):
            search(tables, place, SearchRequest(6), pool=pool_that(dying))
    result = search(tables, place, SearchRequest(6))
    assert results(result) == results(whole)
    heard: list[str] = []
    again = search(tables, place, SearchRequest(6), heard_by(heard))
    assert results(again) == results(whole)
    assert not [line for line in heard if line.startswith("trial ")]
    assert len((place / OPENINGS).read_text().splitlines()) == 1
    fewer = search(tables, tmp_path / "fewer", SearchRequest(3))
    names = {row.name for row in fewer.rows}
    assert results(fewer)[3] == [row for row in results(whole)[3] if row.name in names]
    more = search(tables, tmp_path / "fewer", SearchRequest(6))
    assert results(more)[3] == results(whole)[3]


def heard_by(heard: list[str]) -> MessageCallback:
    def say(message: Message) -> None:
        heard.append(message.text)

    return say


def test_trials_that_were_proposed_otherwise_are_refused(
    tables: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "s"
    search(tables, place, SearchRequest(1))
    with monkeypatch.context() as patch:
        patch.setattr(Proposer, "round", lambda *_: [{"train.rate": 0.5}])
        with pytest.raises(RunError) as caught:
            search(tables, place, SearchRequest(1))
        assert str(caught.value) == (
            f"{place / 'selection.json'}: trial 0 has other settings than the search "
            "proposes now, perhaps by another version of Ensue or Optuna; name another "
            "--run, or continue with that version"
        )
    assert search(tables, place, SearchRequest(1)).winner is not None


def test_trials_follow_from_the_same_seed_and_space(tables: RunConfig, tmp_path: Path) -> None:
    place = tmp_path / "s"
    search(tables, place, SearchRequest(1))
    other = replace(tables, train=tables.train.model_copy(update={"seed": 2}))
    with pytest.raises(RunError) as caught:
        search(other, place, SearchRequest(1))
    assert str(caught.value) == (
        f"{place / 'selection.json'}: this selection was begun with seed 1, now 2; all trials "
        "must share the same settings: undo the change, or name another --run"
    )
    longer = tables.train.model_copy(update={"epochs": tables.train.epochs + 1})
    with pytest.raises(RunError) as caught:
        search(replace(tables, train=longer), place, SearchRequest(1))
    was = tables.train.epochs
    assert f"this selection was begun with train.epochs {was}, now {was + 1};" in str(caught.value)
    with pytest.raises(OptionError, match="this is the folder of one run"):
        search(tables, place / "trial-000", SearchRequest(1))


def test_settings_that_do_not_go_together_are_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the user gave may not go with a proposal; the rest continues."""
    options = ("--set", "model.heads=3", "--trials", "4", "--set", "train.epochs=1")
    config = configured(of("classify"), tmp_path, monkeypatch, *options)
    result = search(config, tmp_path / "s", SearchRequest(4))
    assert [bool(row.failure) for row in result.rows] == [False, False, False, True]
    assert "heads" in result.rows[-1].failure


def test_where_no_trial_can_be_trained_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A training that does not begin takes its folder away, and with it the empty one above."""
    (tmp_path / "one.tsv").write_text("text\tlabel\n" + "".join(f"a {k}\tx\n" for k in range(60)))
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        with pytest.raises(SystemExit):
            main(["select", "one.tsv", "--text", "text", "--label", "label", "--trials", "1"])
        errors = capsys.readouterr().err
        assert "no model could be trained\n  trial-000: the training part has one label" in errors


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"trials": 0}, "--trials: expected a whole number ≥ 1, got 0"),
        ({"minutes": 0.0}, "--minutes: expected a number > 0, got 0.0"),
        ({"workers": 0}, "--workers: expected a whole number ≥ 1, got 0"),
    ],
)
def test_numbers_that_cannot_be(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        SearchRequest(**request_)
    assert str(caught.value) == message


def test_without_optuna_the_command_is_named(
    tables: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(OptionError) as caught:
        search(tables, tmp_path / "s", SearchRequest(1))
    assert str(caught.value) == (
        "select: trials are proposed by Optuna, which is not installed: "
        "pip install 'ensue[tune]'; --models compares models without it"
    )


# --- storage ---------------------------------------------------------------------------------


def stored(url: str) -> list[tuple[str, str]]:
    import optuna

    with opened(url) as storage:
        (study,) = optuna.get_all_study_summaries(storage)
        trials = optuna.load_study(study_name=study.study_name, storage=storage).trials
    return [(trial.user_attrs["trial"], trial.state.name) for trial in trials]


def test_trials_are_in_the_storage_once(tables: RunConfig, tmp_path: Path) -> None:
    for trials in (1, 2, 2):
        search(tables, tmp_path / "s", SearchRequest(trials))
    rows = stored(f"sqlite:///{tmp_path / 's' / 'optuna.db'}")
    assert rows == [("trial-000", "COMPLETE"), ("trial-001", "COMPLETE")]
    with pytest.raises(OptionError) as caught:
        search(tables, tmp_path / "t", SearchRequest(1, storage="trials"))
    assert str(caught.value) == (
        "--storage: expected the URL of a database, postgresql://user@host/name, got 'trials'"
    )


def test_storage_in_postgresql(tables: RunConfig, tmp_path: Path) -> None:
    """A real server, on a free port; it refuses to run as root, and runs as its own user then."""
    with postgresql(tmp_path) as url:
        search(tables, tmp_path / "s", SearchRequest(1, storage=url))
        assert stored(storage_url(tmp_path, url)) == [("trial-000", "COMPLETE")]
    with pytest.raises(OptionError, match="--storage: the database cannot be used: "):
        search(tables, tmp_path / "s", SearchRequest(1, storage=url))


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """The URL of a fresh database."""
    pytest.importorskip("psycopg")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        pytest.skip("there is no PostgreSQL on this machine")
    root = os.geteuid() == 0
    if root and not (
        shutil.which("runuser") and "postgres" in {user.pw_name for user in getpwall()}
    ):
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    by = ["runuser", "-u", "postgres", "--"] if root else []
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        home, bin_ = f"{place}/data", programs[-1].parent
        quiet = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        log: dict[str, Any] = {"check": True, "cwd": "/", **quiet}
        subprocess.run([*by, bin_ / "initdb", "-D", home, "-U", "me", "-A", "trust"], **log)
        options = f"-p {port} -h 127.0.0.1 -k {place} -c fsync=off"
        server = [*by, bin_ / "pg_ctl", "-D", home, "-w"]
        subprocess.run([*server, "-o", options, "-l", f"{place}/log", "start"], **log)
        try:
            yield f"postgresql://me@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run([*server, "-m", "immediate", "stop"], **log)


# --- time ------------------------------------------------------------------------------------


def test_time_is_kept_back_for_the_end() -> None:
    """For the test, and before it for closing one that may be the best."""
    clock = Clock(1000.0, 600.0, ends=20.0)
    assert clock.last(None) == 1600 - 26
    assert clock.stops(None, []) == 1600 - 26 - 60  # nothing is known yet
    one = Entry("a", "a", around=50.0, after=10.0)
    assert (clock.last(one), clock.stops(one, [one])) == (1600 - 39, 1600 - 39 - 65)
    long = Entry("a", "a", around=900.0, after=300.0)
    assert (clock.last(long), clock.stops(long, [long])) == (1600 - 180, 1600 - 180 - 180)
    failed = Entry("a", "a", around=900.0, failure="no")
    assert clock.stops(None, [failed]) == clock.stops(None, [])
    assert Clock(1000.0, 60.0).last(None) == 1060 - 2
    assert Clock(1000.0, 600.0).last(None) == 1600 - 12


def test_one_slow_kind_does_not_end_a_search() -> None:
    """As of forecasts step by step, whose answers took five minutes: the test of another winner,
    and trials of other kinds, take what they took."""
    quick = Entry("a", "a", score=0.5, around=50.0, after=20.0, settings={"model.family": "mixed"})
    slow = Entry("b", "b", score=0.7, around=290.0, after=280.0, settings={"model.family": "steps"})
    entries = [quick, slow]
    clock = Clock(time.time() - 500.0, 1200.0)
    assert clock.last(quick) == clock.over - 26
    assert clock.room(quick, entries)
    assert not Clock(time.time() - 1100.0, 1200.0).room(quick, entries)
    assert alike(entries, {"model.family": "mixed"}) == [quick]
    assert alike(entries, {"model.family": "steps"}) == [slow]
    assert alike(entries, {"model.family": "other"}) == entries
    of_quick, of_slow = (clock.stops(quick, [entry]) for entry in entries)
    assert of_quick - of_slow == pytest.approx(360 - 65)


def test_a_time_that_is_too_little_is_refused() -> None:
    Clock(time.time() - 20, 60.0).refuse_too_little()
    with pytest.raises(OptionError) as caught:
        Clock(time.time() - 40, 60.0).refuse_too_little()
    assert str(caught.value) == (
        "--minutes: expected at least 1.4 for these files on this machine, got 1: it took 40 "
        "seconds until trials could begin"
    )


@pytest.mark.parametrize(
    ("scores", "stops"), [((0.6, 0.5), 1075.0), ((0.4, 0.3), 1090.0), ((0.4, 0.8), 1085.0)]
)
def test_a_trial_leaves_time_for_what_it_takes_itself(
    scores: tuple[float, float], stops: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten seconds of preparation are needed again if the trial may be the best, five between two
    updates in any case."""
    now, stopped = [1000.0], list[float]()
    monkeypatch.setattr(pool.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(pool.time, "time", lambda: now[0])
    monkeypatch.setattr(pool.signal, "raise_signal", lambda number: stopped.append(now[0]))
    job = TrialJob("t", "t", {}, "accuracy", until=1085.0, last=1090.0, best=0.5)
    span = pool.TrainingSpan(job)
    now[0] += 10
    span(Began(0, 50, "accuracy"))
    for number in range(1, 30):
        now[0] += 5
        span(Update(number, 1, 1.0, 1.0, 1.0, 1.0, 1.0))
        if number == 1 or now[0] == 1080.0:
            span(Validated(number, 1, {"accuracy": scores[number > 1]}, True))
        if span.over:
            break
    assert stopped == [stops]


def test_a_trial_whose_time_was_over_is_closed_by_the_next_call(
    tables: RunConfig, tmp_path: Path
) -> None:
    """The process died after the trial had stopped, before it was closed."""
    space = space_of(tables)
    began: list[tuple[int, TrialJob]] = []

    class Closing:
        workers = 1

        def begin(self, number: int, job: TrialJob) -> None:
            began.append((number, job))

        def wait(self) -> list[tuple[int, Entry]]:
            return [(number, replace(job.entry(), score=0.5)) for number, job in began]

    trials = searching.Search(tables, tmp_path / "s", lambda message: None)
    (tmp_path / "s").mkdir()
    name = "trial-000"
    cut = Entry(name, name, settings=space.usual(), score=0.7, updates=4, stopped="time")
    ended = Entry("trial-001", "trial-001", settings=space.usual(), score=0.9)
    trials.entries = {0: cut, 1: ended}
    spend(trials, Closing(), Clock(0.0, 1.0))
    assert [(number, job.name, job.updates) for number, job in began] == [(0, name, 4)]
    assert (trials.entries[0].score, trials.entries[0].stopped) == (0.5, "")


def test_half_of_what_is_left_is_for_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A preparation that took most of the time left none: no model could be trained."""
    monkeypatch.setattr(pool.time, "time", lambda: 1800.0)
    moments = iter([1000.0, 1800.0])
    monkeypatch.setattr(pool.time, "monotonic", lambda: next(moments))
    span = pool.TrainingSpan(TrialJob("t", "t", {}, "accuracy", until=2100.0, last=2200.0))
    span(Began(0, 50, "accuracy"))
    assert span._until == 2000.0


@pytest.mark.slow
def test_a_time_is_kept(tables: RunConfig, tmp_path: Path) -> None:
    """Trials are made until it is over; one that runs then is closed at its best weights."""
    endless = tables.changed({"train": {"epochs": 100_000, "patience": None}})
    endless_config = replace(
        endless, explicit={**tables.explicit, "train": frozenset({"epochs", "patience"})}
    )
    result = search(endless_config, tmp_path / "s", SearchRequest(minutes=0.5))
    (row,) = result.rows
    assert not row.stopped
    assert row.score is not None
    assert result.test is not None
    assert RunConfig.read(tmp_path / "s" / row.folder / "config.toml").train.most_updates
    assert result.search["seconds"] > 20
