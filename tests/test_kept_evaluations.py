"""Evaluations that stay: evaluation.json, the card, runs listed, compared and replayed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from commands import Ensue, commands_in
from numpy.typing import NDArray
from pages import FOREIGN, check_page, words
from reviews import SMALL, refused, reviews

from ensue import Run, __version__, cli
from ensue.errors import RunError
from ensue.files.atomic_folder import digest, sealed, unsealed
from ensue.files.run_folder import RunFolder
from ensue.runs.compare import compare_runs
from ensue.runs.evaluations import current_evaluations, read_evaluations, read_rows
from ensue.runs.replay import points, replay
from ensue.runs.run import list_runs
from ensue.tasks.evaluation.bootstrap import STATISTICS, WIDTHS, Interval, RowSums
from ensue.tasks.evaluation.report import Evaluation

SET = [word for setting in (*SMALL, "train.rate=0.02") for word in ("--set", setting)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs on the same file, and one to regress; each tested once."""
    folder = tmp_path_factory.mktemp("kept")
    reviews(folder / "r.csv", 120)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, more in (("a", []), ("b", ["--set", "train.epochs=4"])):
            words = ["r.csv", "--text", "review", "--label", "stars", "--run", name, "--quiet"]
            command("train", *words, *SET, *more)
        command("train", "r.csv", "--task", "language", "--text", "review", "--run", "deep/lm",
                "--set", "model.family=ngram", "--set", "model.order=2", "--quiet")  # fmt: skip
        for name in ("a", "b", "deep/lm"):
            command("evaluate", name)
    return folder


def command(*words: str) -> None:
    with pytest.raises(SystemExit) as ending:
        cli.main(words)
    assert not ending.value.code


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "runs"))


@pytest.fixture
def ensue(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    capsys.readouterr()
    return commands_in(folder, capsys, monkeypatch)


# --- evaluation.json -------------------------------------------------------------------------


def test_an_evaluation_is_kept_as_it_was_printed(ensue: Ensue, folder: Path) -> None:
    _, out, _ = ensue("evaluate", "a", "--json")
    printed = json.loads(out)
    (record,) = current_evaluations(RunFolder(folder / "a"))
    assert record.evaluation.as_json() == {key: printed[key] for key in record.evaluation.as_json()}
    assert (record.part, record.task, record.files[0].path) == ("test", "classify", "../r.csv")
    assert record.ensue == __version__
    assert Run(folder / "a").evaluation() == record.evaluation
    assert Run(folder / "a").evaluation("validation") is None


def test_parts_stand_side_by_side_and_the_last_of_each_stays(ensue: Ensue, folder: Path) -> None:
    reviews(folder / "other.csv", 30, first=500)
    for options in (["--validation"], ["--test", "other.csv"], ["--test", "other.csv"], []):
        assert ensue("evaluate", "a", *options)[0] == 0
    records = read_evaluations(RunFolder(folder / "a"))
    assert [(record.part, Path(record.files[0].path).name) for record in records] == [
        ("validation", "r.csv"),
        ("test", "other.csv"),
        ("test", "r.csv"),
    ]
    files = {path.name for path in (folder / "a" / "evaluation-rows").iterdir()}
    assert files == {record.rows["file"] for record in records}


def test_rows_are_kept_with_what_they_add(folder: Path) -> None:
    place = RunFolder(folder / "a")
    (record,) = current_evaluations(place)
    rows = read_rows(place, record)
    assert rows.sums.keys() == rows.scores.keys()
    for name, sums in rows.sums.items():
        assert sums.score() == rows.scores[name].value
        assert len(sums.values) == rows.rows == len(rows.names)
    assert len(set(rows.names)) == rows.rows
    assert all(name.startswith("r.csv:") for name in rows.names)


def test_the_card_has_each_evaluation_once(ensue: Ensue, folder: Path) -> None:
    card = folder / "a" / "card.md"
    ensue("train", "--run", "a", "--quiet")  # finished already: writes the card again
    before = card.read_text()
    assert before.count("## Evaluation") == before.count("test part of r.csv") == 1
    (record,) = current_evaluations(RunFolder(folder / "a"))
    assert f"| accuracy | {record.evaluation.scores['accuracy'].value:.4f} |" in before
    ensue("evaluate", "a", "--validation")
    ensue("evaluate", "a")
    after = card.read_text()
    assert after.count("## Evaluation") == after.count("test part") == 1
    assert after.count("validation part") == 1
    assert after.startswith(before.partition("\n## Evaluation")[0])
    ensue("train", "--run", "a", "--quiet")
    assert card.read_text() == after


def test_evaluations_of_another_model_do_not_count(ensue: Ensue, folder: Path) -> None:
    words = ["r.csv", "--text", "review", "--label", "stars", "--run", "a", *SET]
    more = ["--set", "train.epochs=2", "--allow", "train.epochs"]
    assert ensue("train", *words, *more, "--quiet")[0] == 0
    assert current_evaluations(RunFolder(folder / "a")) == []
    assert Run(folder / "a").evaluation() is None
    assert "## Evaluation" not in (folder / "a" / "card.md").read_text()
    ensue("evaluate", "a", "--validation")
    assert [record.part for record in read_evaluations(RunFolder(folder / "a"))] == ["validation"]


def test_every_flipped_bit_is_noticed(folder: Path) -> None:
    place = RunFolder(folder / "a")
    whole, random = place.evaluation.read_bytes(), np.random.default_rng(1)
    for at in random.integers(0, len(whole), 60):
        place.evaluation.write_bytes(flipped(whole, int(at)))
        message = refused(lambda: current_evaluations(place))
        assert message.startswith(f"{place.evaluation}: this is not what Ensue wrote: ")
        assert message.endswith("; remove it, and evaluate again")
    place.evaluation.write_bytes(whole)
    (record,) = current_evaluations(place)
    (rows,) = place.evaluation_rows.iterdir()
    whole = rows.read_bytes()
    for at in random.integers(0, len(whole), 60):
        rows.write_bytes(flipped(whole, int(at)))
        assert refused(lambda: read_rows(place, record)) == (
            f"{rows}: this is not what Ensue wrote: its sha256 differs. Evaluate {place.path} again"
        )


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record["files"][0].update(path=None), "path is None, expected str"),
        (lambda record: record.update(part=3), "part is 3, expected str"),
        (lambda record: record.update(basis=[]), "basis is [], expected dict"),
    ],
)
def test_an_evaluation_of_other_kinds_of_values_is_refused(
    folder: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    place = RunFolder(folder / "a")
    sealed_file = unsealed(place.evaluation.read_bytes(), "evaluation.json")
    change(sealed_file["evaluations"][0])
    place.evaluation.write_bytes(sealed(sealed_file, sort=False))
    refusal = refused(lambda: read_evaluations(place))
    assert f"this is not what Ensue wrote: {message}; remove it" in refusal


def test_scores_are_printed_even_if_they_cannot_be_kept(ensue: Ensue, folder: Path) -> None:
    shutil.rmtree(folder / "a" / "evaluation-rows")
    (folder / "a" / "evaluation-rows").write_text("in the way")
    code, out, err = ensue("evaluate", "a")
    assert code == 2
    assert "  accuracy  " in out
    assert err.startswith("RunError: a/evaluation-rows: expected a folder, got a plain file; ")


# --- runs ------------------------------------------------------------------------------------


def test_runs_are_listed_with_what_they_reached(ensue: Ensue, folder: Path) -> None:
    code, out, err = ensue("runs")
    assert (code, err) == (0, "")
    head, *lines = out.splitlines()
    assert head.split() == [
        "run", "task", "data", "validation", "test", "state", "when", "trained", "size",
    ]  # fmt: skip
    assert [line.split()[:3] for line in lines] == [
        ["a", "classify", "r.csv"],
        ["b", "classify", "r.csv"],
        ["deep/lm", "language", "r.csv"],
    ]
    facts = json.loads(ensue("runs", "--json")[1])
    by_name = {run_facts["name"]: run_facts for run_facts in facts["runs"]}
    for name in ("a", "deep/lm"):
        run = Run(folder / name)
        test = run.evaluation()
        assert test is not None
        assert by_name[name]["state"] == run.state == "finished"
        assert by_name[name]["tested"]["value"] == test.scores[test.main].value
        assert by_name[name]["best"] == run.best
        assert by_name[name]["size"] == sum(
            path.stat().st_size for path in run.path.rglob("*") if path.is_file()
        )
    ended = json.loads((folder / "a" / "training.json").read_text())
    assert by_name["a"]["best"] == ended["answer"]["accuracy"]
    assert by_name["a"]["seconds"] > 0 == by_name["deep/lm"]["seconds"]
    assert json.loads(ensue("runs", "deep/lm", "--json")[1])["runs"][0]["name"] == "lm"


def test_a_run_in_python(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    run = Run("a")
    assert [run.path.name for run in Run.below()] == ["a", "b", "lm"]
    assert run.config.task == run.task == "classify"
    assert run.model(device="cpu").predict(["a good film"])[0].label in ("1", "5")
    assert repr(run) == "Run('a')"
    assert re.search(r"^state +finished$", str(run), re.MULTILINE)
    assert refused(lambda: Run("deep")) == (
        "deep: there is no run here; train one: `ensue train FILE --run deep`"
    )
    assert refused(lambda: Run.below("gone")) == "gone: there is no such folder"


def test_runs_and_comparisons_in_a_notebook(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    run = Run("b")
    page = check_page(run._repr_html_())
    evaluation = run.evaluation()
    assert evaluation is not None
    for text in (
        "Run b",
        "classify",
        "r.csv",
        "finished",
        f"{evaluation.scores['accuracy'].value:.4f}",
    ):
        assert text in words(page)
    assert len(page.findall(".//circle")) == 1  # the best of the curve
    assert "perplexity" in words(check_page(Run("deep/lm")._repr_html_()))
    compared = run.compare("a")
    page = check_page(compared._repr_html_())
    assert compared.verdicts()[0] in words(page)
    assert len(page.findall(".//circle")) == len(compared.differences) == 2
    assert str(compared) == compared.as_text()
    assert run.compare(Run("a"), part="validation").part == "validation"
    os.rename("b", FOREIGN.replace("/", "").replace("\x00", ""))
    assert "<script>" in words(check_page(Run.below()[0]._repr_html_()))


def test_a_saved_evaluation_that_is_no_more_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    made(["row:1"], [1]).save(path)
    path.write_bytes(flipped(path.read_bytes(), 5))
    assert refused(lambda: Evaluation.read(path)) == (
        f"{path}: this is not an evaluation written by Ensue: e.json differs from what Ensue wrote"
    )
    path.unlink()
    assert refused(lambda: Evaluation.read(path)) == (
        f"{path}: cannot be read (No such file or directory)"
    )


STRANGE = 'task = "classify"\n[data]\ntrain = 5\n[train]\nwatch = "accuracy"\n'
BROKEN = [
    ("config.toml", "not toml at all", "this is not TOML"),
    ("config.toml", "task = 1\n", "settings changed since the run began"),
    ("config.toml", STRANGE, "settings changed since the run began"),
    ("timing.jsonl", "[]\n", "timing.jsonl:1: not as written"),
    ("evaluation.json", "{}", "this is not what Ensue wrote"),
    ("training.json", "{}", "training.json differs from what Ensue wrote; train it again"),
    (
        "failure.json",
        "{}",
        "cannot be read: failure.json differs from what Ensue wrote; remove it",
    ),
]


@pytest.mark.parametrize(("file", "content", "message"), BROKEN)
def test_a_broken_run_is_named_and_hides_no_other(
    ensue: Ensue, folder: Path, file: str, content: str, message: str
) -> None:
    (folder / "a" / file).write_text(content)
    code, out, err = ensue("runs")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["run", "b", "deep/lm"]
    assert err.startswith("a")
    assert message in err
    assert err.count("\n") == 1


def test_what_is_no_run_is_not_listed(ensue: Ensue, folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "config.toml").write_text("[tool]\n")
    assert len(list_runs(folder).runs) == 3
    assert ensue("runs", "elsewhere")[1] == "elsewhere: no run in this folder or below it\n"
    assert ensue("runs", "gone")[2] == "RunError: gone: there is no such folder\n"


def test_runs_are_found_in_a_strange_tree(ensue: Ensue, folder: Path) -> None:
    """Folders deeper than Python's calls, loops of links, FIFOs, names that are no text."""
    (folder / "loop").symlink_to(".")
    (folder / "lost" / "lock").mkdir(parents=True)
    (folder / "lost" / "config.toml").symlink_to("config.toml")
    os.mkfifo(folder / "fifo")
    os.makedirs(os.fsencode(folder) + b"/\xff\x1b[31m")
    try:
        with chdir(folder):
            for _ in range(1200):
                os.mkdir("d")
                os.chdir("d")
        listed = list_runs(folder)
        assert len(listed.runs) == 3
        assert listed.broken == []
        assert ensue("runs", ".")[0] == 0
    finally:  # Python removes no tree of such depth
        subprocess.run(["rm", "-rf", str(folder / "d")], check=True)


# --- compare ---------------------------------------------------------------------------------


def test_two_runs_are_compared_on_the_rows_of_their_test(ensue: Ensue, folder: Path) -> None:
    openings = (folder / "test-openings.jsonl").read_bytes()
    code, out, err = ensue("compare", "a", "b")
    assert (code, err) == (0, "")
    assert out.startswith("test part of r.csv: ")
    values = [Run(name).evaluation().scores["accuracy"].value for name in ("a", "b")]  # type: ignore[union-attr]
    scores = [line.split() for line in out.splitlines() if line.startswith("  accuracy")]
    assert scores == [["accuracy", *(f"{value:.4f}" for value in values)]]
    for text in ("majority class", "linear n-grams", "macro_f1", "difference from a"):
        assert text in out
    comparison = json.loads(ensue("compare", "a", "b", "--json")[1])
    (main,) = [
        difference for difference in comparison["differences"] if difference["score"] == "accuracy"
    ]
    assert main["interval"]["value"] == pytest.approx(values[1] - values[0])
    assert main["interval"]["low"] <= main["interval"]["value"] <= main["interval"]["high"]
    assert comparison["verdicts"] == [out.splitlines()[-1].rstrip(".")]
    assert (folder / "test-openings.jsonl").read_bytes() == openings


def test_validation_parts_are_evaluated_for_a_comparison(ensue: Ensue, folder: Path) -> None:
    openings = (folder / "test-openings.jsonl").read_bytes()
    code, out, err = ensue("compare", "a", "b", "--validation")
    assert (code, out.splitlines()[0].split(":")[0]) == (0, "validation part of r.csv")
    assert err == "".join(f"evaluating the validation part of {name}\n" for name in ("a", "b"))
    assert ensue("compare", "b", "a", "--validation")[2] == ""  # kept
    assert (folder / "test-openings.jsonl").read_bytes() == openings


def test_what_cannot_be_compared(ensue: Ensue, folder: Path) -> None:
    assert ensue("compare", "a", "deep/lm")[2] == (
        "RunError: compare: expected runs of one task, got a classify, lm language\n"
    )
    assert ensue("compare", "a")[2] == "OptionError: compare: expected two runs or more, got 1\n"
    assert ensue("compare", "a", "a")[2] == (
        "OptionError: compare: expected different runs, got a, a\n"
    )
    shutil.copytree("b", "c")
    os.unlink("c/evaluation.json")
    assert ensue("compare", "a", "c")[2] == (
        "RunError: compare: expected the test part evaluated for each run, got no evaluation "
        "of c. Evaluate it first:\n  ensue evaluate c\n"
    )
    reviews(folder / "other.csv", 30, first=500)
    ensue("evaluate", "c", "--test", "other.csv")
    code, _, err = ensue("compare", "a", "c")
    assert code == 2
    first, files, *rest = err.splitlines()
    assert first == "RunError: compare: expected the same rows, got different ones for a and c"
    assert files.startswith("  files: a r.csv (sha256 ")
    assert "; c other.csv (sha256 " in files
    assert rest == [
        "Next: evaluate both on one file that neither has learned from, with the same options:",
        "  ensue evaluate a --test FILE",
        "  ensue evaluate c --test FILE",
    ]
    ensue("evaluate", "a", "--test", "other.csv")
    assert ensue("compare", "a", "c")[1].startswith("test part of other.csv: 30 rows")
    os.unlink("c/evaluation.json")
    ensue("evaluate", "c", "--test", "r.csv")
    assert "\n  rows: all of the file for one of them, a part" in ensue("compare", "b", "c")[2]


def test_settings_that_decide_the_rows_must_agree(ensue: Ensue, folder: Path) -> None:
    words = ["r.csv", "--text", "review", "--label", "stars", *SET, "--quiet", "--run", "d"]
    ensue("train", *words, "--set", "data.split_seed=1")
    ensue("evaluate", "d")
    err = ensue("compare", "a", "d")[2]
    assert "\n  data.split_seed: a 0; d 1\n" in err
    # the same rows and labels, read from another column
    reviews(folder / "other.csv", 30, first=500)
    shutil.copy("other.csv", "held.csv")
    words = ["r.csv", "--validation", "held.csv", "--text", "film", "--label", "stars", *SET]
    assert ensue("train", *words, "--quiet", "--run", "e")[0] == 0
    for name in ("a", "e"):
        ensue("evaluate", name, "--test", "other.csv")
    assert ensue("compare", "a", "e")[0] == 0


def made(names: list[str], right: list[int], higher_is_better: bool = True) -> Evaluation:
    sums = RowSums("ratio", np.stack([right, np.ones(len(right))], 1))
    score = {"score": Interval(sums.score(), 0.0, 1.0)}
    return Evaluation(
        len(right), len(right), score, {}, {}, (), (), (), higher_is_better,
        sums={"score": sums}, names=tuple(names),
    )  # fmt: skip


def compared(monkeypatch: pytest.MonkeyPatch, folder: Path, *evaluations: Evaluation) -> Any:
    """Runs a, b, c as if these were what they were evaluated to."""
    waiting = list(evaluations)
    monkeypatch.setattr(
        "ensue.runs.compare.read_rows", lambda place, evaluation_place: waiting.pop(0)
    )
    if len(evaluations) > 2:
        shutil.copytree(folder / "b", folder / "c")
    return compare_runs([folder / name for name in "abc"[: len(evaluations)]])


def test_a_verdict_says_which_is_better_and_by_how_much(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"r.csv:{k}" for k in range(200)]
    weak, strong = [0, 1] * 100, [1] * 190 + [0] * 10
    for higher, word in ((True, "better"), (False, "worse")):
        comparison = compared(
            monkeypatch, folder, made(names, weak, higher), made(names, strong, higher)
        )
        (verdict,) = comparison.verdicts()
        (difference,) = comparison.differences
        assert difference.beyond_chance
        low, high = difference.interval.low, difference.interval.high
        assert verdict == (
            f"b is {word} than a: score higher by 0.4500, 95 % interval {low:.4f} … {high:.4f}"
        )
        assert 0.3 < low < 0.45 < high < 0.6
    comparison = compared(monkeypatch, folder, made(names, strong), made(names, strong))
    assert comparison.verdicts() == ["b and a: the answers are the same, judged by score"]
    comparison = compared(
        monkeypatch, folder, made(names, strong), made(names, weak), made(names, strong)
    )
    assert [difference.run for difference in comparison.differences] == ["b", "c"]
    assert comparison.verdicts()[0].startswith("b is worse than a: score lower by 0.4500, ")
    assert comparison.as_text().endswith("one in 20 excludes 0 by chance.")


def test_rows_that_only_one_of_them_has_are_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = made(["r.csv:1", "r.csv:2"], [1, 1]), made(["r.csv:1"], [1])
    assert refused(lambda: compared(monkeypatch, folder, one, other)) == (
        "compare: expected the same rows, got 2 of a and 1 of b: r.csv:2 is in one of them only. "
        "Next: evaluate both again, with the same options"
    )


# --- TensorBoard -----------------------------------------------------------------------------


def test_a_history_is_replayed_point_by_point(ensue: Ensue, folder: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    code, out, err = ensue("runs", "b", "--tensorboard", "logs")
    history = Run("b").history()
    scores = [row for row in history if row["row"] == "evaluation"]
    count = sum(3 if row["row"] == "update" else len(row["scores"]) for row in history)
    assert (code, out) == (0, f"b: {count} points\n")
    assert err == "Next: tensorboard --logdir logs\n"
    for _ in range(2):  # a second time it is replaced
        accumulator = events.EventAccumulator("logs/b")
        accumulator.Reload()
        drawn = accumulator.Tensors("validation/accuracy")
        assert [(event.step, event.tensor_proto.float_val[0]) for event in drawn] == [
            (row["update"], pytest.approx(row["scores"]["accuracy"])) for row in scores
        ]
        clocks = {point.clock for point in points(Run("b")) if point.tag == "validation/accuracy"}
        assert {event.wall_time for event in drawn} == clocks
        assert {"train/cost", "train/rate", "train/norm"} <= {*accumulator.Tags()["tensors"]}
        ensue("runs", "b", "--tensorboard", "logs")
    assert replay(folder, "all").keys() == {"a", "b", "deep/lm"}


def test_logs_of_something_else_are_left_alone(ensue: Ensue, folder: Path) -> None:
    (folder / "logs" / "a").mkdir(parents=True)
    foreign = folder / "logs" / "a" / "events.out.tfevents.1"
    foreign.write_bytes(b"precious")
    assert ensue("runs", "a", "--tensorboard", "logs")[2] == (
        "RunError: logs/a: it has other logs (events.out.tfevents.1); name another folder\n"
    )
    assert foreign.read_bytes() == b"precious"


def test_without_tensorboard_the_command_that_installs_it_is_named(
    ensue: Ensue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
    assert ensue("runs", "a", "--tensorboard", "logs")[2] == (
        "MissingExtra: TensorBoard logs need the package tensorboard, which is not installed: "
        "pip install 'ensue[tensorboard]'\n"
    )
    assert not Path("logs").exists()


# --- MLflow ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # those of MLflow
def test_the_lines_for_mlflow_keep_and_use_a_run(
    ensue: Ensue, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mlflow", reason="needs the package mlflow-skinny")
    document = (Path(__file__).parent.parent / "docs" / "howto" / "trackers.md").read_text("utf-8")
    code, use = re.findall(r"```python long\n(.*?)```", document, re.DOTALL)
    Path("ensue_model.py").write_text(code)
    exec(use.replace("dates/long/model", "a/model"), {})
    assert capsys.readouterr().out.strip() in ("1", "5")


# --- what Ensue never writes, under digests that are right ---------------------------------------


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def text(value: str | bytes) -> NDArray[np.uint8]:
    return np.frombuffer(value.encode() if isinstance(value, str) else value, np.uint8)


STRANGE_ROWS: dict[str, Callable[[dict[str, NDArray[Any]]], Any]] = {
    "places out of range": lambda a: a.update({"accuracy.places": np.array([0, 10**6])}),
    "places below 0": lambda a: a.update({"accuracy.places": np.array([-1, -2])}),
    "places of fractions": lambda a: a.update({"accuracy.places": np.array([0.5, 1.5])}),
    "more places than values": lambda a: a.update({"accuracy.places": np.arange(3)}),
    "no shape": lambda a: a.update({"accuracy.shape": np.array([], np.int64)}),
    "no rows": lambda a: a.update({"accuracy.shape": np.array([0, 2])}),
    "an axis below 0": lambda a: a.update({"accuracy.shape": np.array([-3, 2])}),
    "a huge shape": lambda a: a.update({"accuracy.shape": np.array([2 * 10**9, 2])}),
    "a shape of others": lambda a: a.update({"accuracy.shape": np.array([12, 2, 2])}),
    "no places": lambda a: a.pop("accuracy.places"),
    "names are a number": lambda a: a.update(names=text("5")),
    "names are numbers": lambda a: a.update(names=text("[1, 2]")),
    "deep names": lambda a: a.update(names=text(nested(100_000))),
    "no names": lambda a: a.pop("names"),
    "no statistic": lambda a: a.update({"accuracy.statistic": text("median")}),
    "a statistic of bytes": lambda a: a.update({"accuracy.statistic": text(b"\xff")}),
}


def with_rows(place: RunFolder, data: bytes, name: str = "") -> None:
    """The evaluation of a run with other rows, and the right digests."""
    content = unsealed(place.evaluation.read_bytes(), "evaluation.json")
    (entry,) = content["evaluations"]
    entry["rows"] = {"file": name or entry["rows"]["file"], "sha256": digest(data)}
    (place.evaluation_rows / entry["rows"]["file"]).write_bytes(data)
    place.evaluation.write_bytes(sealed(content, sort=False))


@pytest.mark.parametrize("change", STRANGE_ROWS)
def test_strange_rows_of_an_evaluation_are_one_error(change: str, folder: Path) -> None:
    place = RunFolder(folder / "b")
    (path,) = place.evaluation_rows.iterdir()
    arrays = safetensors.numpy.load(path.read_bytes())
    STRANGE_ROWS[change](arrays)
    with_rows(place, safetensors.numpy.save(arrays))
    with pytest.raises(RunError, match=r"this is not what Ensue wrote: .*Evaluate .*b again"):
        compare_runs([folder / "a", folder / "b"])


@pytest.mark.parametrize("name", ["../../rows", "/rows", "..", "a/b"])
def test_rows_are_read_from_the_folder_of_the_run_alone(name: str, folder: Path) -> None:
    place = RunFolder(folder / "b")
    (path,) = place.evaluation_rows.iterdir()
    content = unsealed(place.evaluation.read_bytes(), "evaluation.json")
    content["evaluations"][0]["rows"]["file"] = name
    shutil.copy(path, folder / "rows")
    place.evaluation.write_bytes(sealed(content, sort=False))
    with pytest.raises(RunError, match=r"rows\.file: expected the name of a file"):
        compare_runs([folder / "a", folder / "b"])


STRANGE_FACTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "scores are a list": lambda facts: facts.update(scores=[1]),
    "no scores": lambda facts: facts.update(scores={}),
    "a score is a text": lambda facts: facts["scores"].update(accuracy="good"),
    "an end is a text": lambda facts: facts["scores"]["accuracy"].update(low="0.5"),
    "rows are a text": lambda facts: facts.update(rows="many"),
    "rows below 0": lambda facts: facts.update(rows=-5),
    "baselines": lambda facts: facts.update(baselines={"majority": [1]}),
    "classes": lambda facts: facts.update(classes=[{"name": 5}]),
    "confusion": lambda facts: facts.update(confusion=[["a"]]),
    "notes": lambda facts: facts.update(notes=5),
    "facts are a list": lambda facts: facts.clear(),
}


@pytest.mark.parametrize("change", STRANGE_FACTS)
def test_strange_facts_of_an_evaluation_are_one_error(change: str, folder: Path) -> None:
    place = RunFolder(folder / "b")
    content = unsealed(place.evaluation.read_bytes(), "evaluation.json")
    STRANGE_FACTS[change](content["evaluations"][0]["evaluation"])
    place.evaluation.write_bytes(sealed(content, sort=False))
    with pytest.raises(RunError, match=r"evaluation\.json: this is not what Ensue wrote"):
        compare_runs([folder / "a", folder / "b"])


def test_the_shape_of_every_statistic_is_known() -> None:
    assert WIDTHS.keys() == STATISTICS.keys()
