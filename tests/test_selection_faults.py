"""A selection among faults: what may pass is no verdict, one process holds the folder, nothing
leads outside of it, and content that Ensue never writes is refused although its digest is right."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import ensue
from ensue.errors import (
    DataError,
    EnsueError,
    JobError,
    OptionError,
    OutOfMemory,
    RunError,
    TrainingError,
)
from ensue.files.atomic_folder import digest, sealed
from ensue.files.run_folder import Lock
from ensue.runs.config import RunConfig
from ensue.runs.infer import infer
from ensue.study.selection import pool, select_among, selection
from ensue.study.selection.entries import Selection
from ensue.study.selection.outputs import FILE as OUTPUTS
from ensue.study.selection.search import SearchRequest, search
from ensue.tasks.evaluation.openings import OPENINGS


def snapshot(folder: Path) -> dict[str, Any]:
    """Every file with its content, every link with where it leads; locks left out."""
    return {
        str(path): os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.name != "lock"
    }


QUICK = ["train.epochs=2", "model.target=number", "train.most_updates=4"]


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    lines = ["x,y", *(f"{k},{2 * k + k % 3}" for k in range(80))]
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(lines))
    return infer({"train": [str(path)], "label": "y"}, "table", QUICK).config.with_named_cells()


def searched(config: RunConfig, place: Path, trials: int = 2, together: bool = False) -> Selection:
    return search(config, place, SearchRequest(trials, together=together))


def named(config: RunConfig, place: Path) -> Selection:
    return select_among(config, "model:hidden=[3],model:hidden=[4]", place)


def results(chosen: Selection) -> Any:
    """Everything but the times."""
    rows = [replace(row, seconds=0.0, speed=None, around=0.0, after=0.0) for row in chosen.rows]
    return chosen.test, rows


def caused_by(error: EnsueError, cause: Exception) -> EnsueError:
    error.__cause__ = cause
    return error


NO_ROOM = OSError(errno.ENOSPC, "No space left on device")
PASSING: dict[str, Callable[[], Exception]] = {
    "disk": lambda: caused_by(RunError("checkpoint: no space left"), NO_ROOM),
    "lock": lambda: RunError("trial-001 is in use by process 7 on here"),
    "file": lambda: caused_by(DataError("pairs.csv: cannot be opened"), FileNotFoundError()),
    "memory": lambda: OutOfMemory("there is not enough memory"),
    "job": lambda: JobError("trial-001: its process was killed by SIGKILL, 6 times"),
    "system": lambda: NO_ROOM,
}


@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("way", ["search", "named"])
def test_a_fault_that_may_pass_is_no_verdict(
    way: str, fault: str, config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command ends, the test part stays closed, and the same command finds the same."""
    select, module = (searched, pool) if way == "search" else (named, selection)
    plain, second = module.train_run, "trial-001" if way == "search" else "model-hidden=-4-"
    expected = select(config, tmp_path / "undisturbed")

    def failing(run_config: RunConfig, folder: Any, *more: Any, **options: Any) -> Any:
        if folder.path.name == second:
            raise PASSING[fault]()
        return plain(run_config, folder, *more, **options)

    place = tmp_path / "s"
    with monkeypatch.context() as patch:
        patch.setattr(module, "train_run", failing)
        with pytest.raises((EnsueError, OSError)) as error:
            select(config, place)
    if isinstance(error.value, EnsueError):
        assert any("the same command tries it again" in note for note in error.value.__notes__)
    facts = json.loads((place / "selection.json").read_text())
    assert [(row["failure"], row["score"] is None) for row in facts["rows"]] == [("", False)]
    assert facts["test"] is None
    assert not (place / OPENINGS).exists()
    assert results(select(config, place)) == results(expected)


def test_what_follows_from_the_settings_is_a_verdict(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = pool.train_run

    def failing(run_config: RunConfig, folder: Any, *more: Any, **options: Any) -> Any:
        if folder.path.name == "trial-001":
            raise TrainingError("update 3: the cost is nan")
        return plain(run_config, folder, *more, **options)

    monkeypatch.setattr(pool, "train_run", failing)
    chosen = searched(config, tmp_path / "s")
    assert [row.failure for row in chosen.rows] == ["", "update 3: the cost is nan"]


# --- one process --------------------------------------------------------------------------------


def test_one_process_selects_in_a_folder(config: RunConfig, tmp_path: Path) -> None:
    place, rows = tmp_path / "s", [(float(k), float(k)) for k in range(40)]
    with Lock(place / "lock"):
        before = snapshot(tmp_path)
        for select in (
            lambda: searched(config, place),
            lambda: named(config, place),
            lambda: ensue.select(rows, place, task="table", label="y", trials=1),
        ):
            with pytest.raises(RunError, match=r"s is in use by process \d+ on .*Wait for it"):
                select()
        assert snapshot(tmp_path) == before
    with pytest.raises(OptionError):  # a folder in which nothing was written is removed again
        search(config, tmp_path / "t", SearchRequest(1, storage="trials"))
    assert not (tmp_path / "t").exists()


# --- nothing outside ----------------------------------------------------------------------------


def resealed(place: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """A selection.json with this change, and the right digest."""
    path = place / "selection.json"
    facts = json.loads(path.read_text())
    del facts["sha256"]
    change(facts)
    path.write_bytes(sealed(facts, sort=False))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunConfig, dict[str, Path]]:
    """A selection of each kind, to be copied."""
    folder = tmp_path_factory.mktemp("finished")
    config: RunConfig = config_in(folder)
    places = {"search": folder / "search", "named": folder / "named"}
    searched(config, places["search"], together=True)
    named(config, places["named"])
    return config, places


def config_in(folder: Path) -> RunConfig:
    path = folder / "pairs.csv"
    path.write_text("\n".join(["x,y", *(f"{k},{2 * k + k % 3}" for k in range(80))]))
    return infer({"train": [str(path)], "label": "y"}, "table", QUICK).config.with_named_cells()


SELECTS = {"search": searched, "named": named}


@pytest.mark.parametrize("kind", SELECTS)
@pytest.mark.parametrize("name", ["{outside}", "../outside", "..", ".", "", "a/b", "a\0b"])
def test_a_row_that_leads_outside_is_refused(
    kind: str, name: str, finished: tuple[RunConfig, dict[str, Path]], tmp_path: Path
) -> None:
    config, places = finished
    place, outside = tmp_path / "s", tmp_path / "outside"
    shutil.copytree(places[kind], place)
    shutil.copytree(
        place / json.loads((place / "selection.json").read_text())["winner"], outside
    ) if kind == "search" else outside.mkdir()
    folder = name.format(outside=outside)
    resealed(place, lambda facts: facts["rows"][0].update(folder=folder, name="trial-000"))
    before = snapshot(tmp_path)
    with pytest.raises(RunError, match=r"selection\.json: this is not what Ensue wrote"):
        SELECTS[kind](config, place)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    "name", ["trial-000", "trial-001", "optuna.db", "optuna.db-journal", "selection.json", "lock"]
)
def test_a_link_in_a_selection_is_refused(
    name: str, finished: tuple[RunConfig, dict[str, Path]], tmp_path: Path
) -> None:
    config, places = finished
    place, outside = tmp_path / "s", tmp_path / "outside"
    shutil.copytree(places["search"], place)
    target = place / name
    if target.is_dir():
        shutil.move(target, outside)
    else:
        outside.write_bytes(target.read_bytes() if target.exists() else b"")
        target.unlink(missing_ok=True)
    target.symlink_to(outside)
    before = snapshot(tmp_path)
    with pytest.raises(RunError, match=rf"{name}: expected a .*, got a link to .*outside"):
        searched(config, place, 3)
    assert snapshot(tmp_path) == before


# --- content that Ensue never writes ------------------------------------------------------------

STRANGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda facts: facts["rows"][0].update(name="first"),
    "name twice": lambda facts: facts["rows"].append(facts["rows"][0]),
    "name of digits": lambda facts: facts["rows"][0].update(name="trial-²", folder="trial-²"),
    "no name": lambda facts: facts["rows"][0].pop("name"),
    "score": lambda facts: facts["rows"][0].update(score="best"),
    "huge score": lambda facts: facts["rows"][0].update(score=10**400),
    "rungs": lambda facts: facts["rows"][0].update(rungs={"1/9": "low"}),
    "settings": lambda facts: facts["rows"][0].update(settings=["model.hidden"]),
    "setting": lambda facts: facts["rows"][0].update(settings={"train.rate": "fast"}),
    "nested setting": lambda facts: facts["rows"][0].update(settings={"train.rate": {"a": 1}}),
    "unknown setting": lambda facts: facts["rows"][0].update(settings={"model.none": 3}),
    "unknown key": lambda facts: facts["rows"][0].update(more=1),
    "search": lambda facts: facts.update(search=None),
    "seconds": lambda facts: facts.update(search={**facts["search"], "seconds": "many"}),
    "test": lambda facts: facts.update(test={"name": 1}),
    "rows": lambda facts: facts.update(rows={"a": 1}),
    "row": lambda facts: facts.update(rows=[7]),
    "task": lambda facts: facts.update(task=["table"]),
    "parameters": lambda facts: facts["rows"][0].update(parameters=-1.5),
    "outputs": lambda facts: facts["rows"][0].update(outputs=5),
}


@pytest.mark.parametrize("change", STRANGE)
def test_strange_rows_with_a_right_digest_are_refused(
    change: str, finished: tuple[RunConfig, dict[str, Path]], tmp_path: Path
) -> None:
    config, places = finished
    shutil.copytree(places["search"], tmp_path / "s")
    resealed(tmp_path / "s", STRANGE[change])
    for together in (False, True):
        with pytest.raises(RunError, match=r"selection\.json: this is not what Ensue wrote"):
            searched(config, tmp_path / "s", 3, together=together)


def test_a_database_of_trials_that_optuna_cannot_read(
    finished: tuple[RunConfig, dict[str, Path]], tmp_path: Path
) -> None:
    """The file is named, not the option that was not given; moved away, it is written again."""
    config, places = finished
    place = tmp_path / "search"  # the study in it has this name
    shutil.copytree(places["search"], place)
    database = place / "optuna.db"
    with sqlite3.connect(database) as connection:
        strange = json.dumps({"name": "StrangeDistribution", "attributes": {}})
        connection.execute("UPDATE trial_params SET distribution_json = ?", (strange,))
    connection.close()
    with pytest.raises(RunError) as error:
        searched(config, place, 3)
    assert str(error.value).startswith(f"{database}: this database of trials cannot be used: ")
    assert str(error.value).endswith(
        "Move it away: selection.json has every trial, and a new one is written"
    )
    assert "--storage" not in str(error.value)
    database.write_bytes(b"no database")
    with pytest.raises(RunError, match=r"optuna\.db: this database of trials cannot be used: "):
        searched(config, place, 3)
    database.unlink()
    assert len(searched(config, place, 3).rows) >= 3


@pytest.mark.parametrize("kind", ["bit", "shape", "names"])
def test_answers_of_a_trial_that_were_exchanged(
    kind: str, finished: tuple[RunConfig, dict[str, Path]], tmp_path: Path
) -> None:
    """They decide which trials answer together: they are sealed, and fit the validation rows."""
    config, places = finished
    place = tmp_path / "s"
    shutil.copytree(places["search"], place)
    shutil.copy(places["search"].parent / "pairs.csv", tmp_path)
    path = place / "trial-000" / OUTPUTS
    arrays = {"bit": {}, "shape": {"0": np.zeros(())}, "names": {"first": np.zeros((8, 1))}}[kind]
    data = safetensors.numpy.save(arrays) if arrays else path.read_bytes()[:-1] + b"\0"
    path.write_bytes(data)
    if arrays:
        for row in ("trial-000", "trial-001"):
            (place / row / OUTPUTS).write_bytes(data)

        def change(facts: dict[str, Any]) -> None:
            for row in facts["rows"]:
                row["outputs"] = digest(data) if row["outputs"] else ""

        resealed(place, change)
    with pytest.raises(RunError, match=r"trial-00\d.*Select without --together, or name another"):
        searched(config, place, 2, together=True)
    assert searched(config, place, 2).winner is not None
