"""The rule by which a selection on many data sets changes a default: better on average, without
any one set, and beyond chance. Settings that are often good are named to cover the sets."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ensue.runs.infer import infer
from ensue.runs.train import adapted
from ensue.study.selection.entries import Entry, Selection

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def finding() -> Any:
    """The measurement, which lies next to the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        module = importlib.import_module("find_defaults")
        yield module
    for name in ("find_defaults", "selection_sets", *(f.stem for f in FOLDER.glob("default_*"))):
        sys.modules.pop(name, None)


def test_a_candidate_that_is_better_on_every_set_is_proposed(finding: Any) -> None:
    draw = np.random.default_rng(1)
    noise = draw.normal(size=(12, 4))
    assert finding.proposed(noise + np.array([0, 0, 3, 0])) == 2
    assert finding.proposed(noise) is None  # the best of four by chance


def test_one_set_does_not_make_a_default(finding: Any) -> None:
    """However much is gained there: without it, nothing is."""
    table = np.random.default_rng(2).normal(scale=0.3, size=(8, 3))
    table[0, 1] = 100.0
    assert int(table.mean(0).argmax()) == 1
    assert finding.proposed(table) is None


def test_what_is_chosen_without_a_set_is_asked_about_it(finding: Any) -> None:
    table = np.array([[5.0, 1.0], [0.0, 1.0], [0.0, 1.0]])  # without the first, the second is best
    assert finding.chosen_without(table).tolist() == [1.0, 0.0, 0.0]


def test_favourites_cover_the_sets(finding: Any) -> None:
    """The second is what helps where the first does not, though another one is better on average;
    what is seldom good is none."""
    first, like_it, beside, seldom = [3, 3, 3, 0], [3, 3, 2, 0], [0, 0, 1, 2], [0, 0, 0, 9]
    table = np.array([first, like_it, beside, seldom], float).T
    assert finding.covering(table) == [0, 2]


@pytest.mark.parametrize(("measure", "sign"), [("accuracy", 1), ("cost", -1)])
def test_gains_are_in_units_of_the_set_and_failures_are_the_worst(
    finding: Any, measure: str, sign: int
) -> None:
    study = finding.Study({}, "lstm", ("a", "b", "c"), "csv", None, None)

    def gains(scale: float) -> list[float]:
        scores = {"lstm": 2.0, "a": 3.0, "b": 0.0}
        rows = [Entry(name, name, score=sign * scale * score) for name, score in scores.items()]
        return finding.gains(
            Selection("t", measure, "", (*rows, Entry("c", "c", failure="no"))), study
        )

    assert gains(1.0) == [1.0, -2.0, -2.0]
    assert gains(0.01) == pytest.approx(gains(1.0))


def test_every_candidate_is_in_the_space_of_its_task(finding: Any) -> None:
    """A default can be found by selection only where selection looks."""
    from ensue.study.selection.selection import split_names
    from ensue.tasks import TASKS
    from ensue.tasks.search.usual import usual_space

    for task, study in finding.STUDIES.items():
        space = {**usual_space(TASKS[task]), **TASKS[task].ranges}
        names = split_names(study.models)
        assert names == [study.default, *study.candidates]
        for name in names:
            settings = [
                setting.partition("=")[0]
                for setting in name.partition(":")[2].split(",")
                if "=" in setting
            ]
            assert {key if "." in key else f"model.{key}" for key in settings} <= {*space}


# --- what the page says --------------------------------------------------------------------------

SMALL_FILES = {
    "table": ("rows.csv", "x,target\n" + "".join(f"{k % 7}.5,{'ab'[k % 2]}\n" for k in range(60))),
    "classify": (
        "rows.csv",
        "text,label\n" + "".join(f"a fine film {k},{'ab'[k % 2]}\n" for k in range(60)),
    ),
}


def stated(task: str) -> dict[str, Any]:
    """The defaults of a task that docs/evidence/defaults.md names, as `key=value` in its row."""
    page = (FOLDER.parent / "docs" / "evidence" / "defaults.md").read_text()
    (row,) = (line for line in page.splitlines() if line.startswith(f"| `{task}` | "))
    pairs = (setting.partition("=") for setting in re.findall(r"`(\w+\.\w+=[^`]+)`", row))
    return {key: _value(text) for key, _, text in pairs}


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


@pytest.mark.parametrize("task", SMALL_FILES)
def test_the_defaults_that_the_page_states_are_those_of_the_code(task: str, tmp_path: Path) -> None:
    name, text = SMALL_FILES[task]
    (tmp_path / name).write_text(text)
    config, _ = infer({"train": [str(tmp_path / name)]}, task, [])
    flat, page = adapted(config)[0].flat(), stated(task)
    assert len(page) >= 5
    assert page == {key: flat[key] for key in page}
