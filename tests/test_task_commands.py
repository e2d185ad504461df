"""The laws of tasks over files and commands: every task has a row of the table with files."""

from __future__ import annotations

import io
import json
import shutil
import signal
import tomllib
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from job_machines import Here
from task_data import PLAIN, STRANGE
from task_laws import FILED, Row, every_task, filed, law
from test_task_laws import SOURCE, assert_same, has_cell
from toy_runs import made_folder
from warm import Warm

import ensue
from ensue import cli
from ensue.errors import OptionError
from ensue.jobs import MACHINES
from ensue.metrics.table import METRICS
from ensue.runs.config import TABLES, RunConfig
from ensue.tasks import TASKS
from ensue.tasks.evaluation.report import TimesOpened
from ensue.tasks.options import EVALUATE, PREDICT, TRAIN, Option
from ensue.training import checkpoint

pytestmark = pytest.mark.usefixtures("ninth_task")
STOPPED = 128 + signal.SIGTERM


def command(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and error of a command in a folder."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        try:
            cli.main(arguments)
            code = 0
        except SystemExit as ending:
            code = int(ending.code or 0)
    return code, out.getvalue(), err.getvalue()


def done(folder: Path, *arguments: str) -> str:
    """What a command printed that ended well."""
    code, out, err = command(folder, *arguments)
    assert code == 0, err
    return out


def refused(folder: Path, *arguments: str) -> str:
    """The error message of a command that refuses its input."""
    code, _, err = command(folder, *arguments)
    assert code == 2, err
    assert "Traceback" not in err
    return err


Trained = Callable[[Row], Path]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A copy of a folder with the files of a row, and `run`, trained on them by one process."""

    def of(row: Row) -> Path:
        def fill(place: Path) -> None:
            done(place, "train", *row.write(place), "--run", "run")

        files = made_folder(f"commands-{row.task}", fill)
        return Path(shutil.copytree(files, tmp_path_factory.mktemp("copy") / "files"))

    return of


def scores(printed: str) -> Any:
    """What an evaluation says of a part, wherever that comes from."""
    return {key: v for key, v in json.loads(printed).items() if key in ("scores", "rows", "others")}


def assert_same_runs(folder: Path, one: str, other: str) -> None:
    assert_same(ensue.load(folder / one), ensue.load(folder / other))


# --- the test part stays sealed ----------------------------------------------------------------


@law(filed)
def test_a_test_file_is_never_opened_by_training(row: Row, trained: Trained) -> None:
    folder = trained(row)
    place = folder / f"test{row.data.suffix}"
    if place.is_dir():
        shutil.rmtree(place)
        row.data.write(place, row.parts()[2][:1])
        row.data.spoil(place)
    else:
        place.write_bytes(b"\xff\x00 no table")
    words = ["train.csv", "--validation", "validation.csv", "--test", "test.csv"]
    files = [word.removesuffix(".csv") + row.data.suffix * (word[0] != "-") for word in words]
    done(folder, "train", *files, *row.train_options(), "--run", "again")
    assert_same_runs(folder, "run", "again")
    refused(folder, "evaluate", "again")


def split_off(folder: Path, row: Row, rows: list[Any], run: str) -> RunConfig:
    """A run whose validation and test parts are split off its one file."""
    name = row.data.write(folder / f"all{row.data.suffix}", rows)
    done(folder, "train", name, *row.train_options(), "--run", run)
    return RunConfig.read(folder / run / "config.toml")


@law(filed)
def test_a_test_part_that_is_split_off_stays_sealed(row: Row, tmp_path: Path) -> None:
    rows, altered = [example for part in row.parts() for example in part], row.data.altered
    assert altered is not None
    config = split_off(tmp_path, row, rows, "run")
    model = ensue.load(tmp_path / "run")
    files = model.reader.files(config.data)
    lines = {name: [int(part.names[k].rpartition(":")[2]) - 2 for k in range(len(part))]
             for name in ("train", "test") for part in [files.part(name)]}  # fmt: skip
    assert min(map(len, lines.values())) > 2
    for part, same in (("test", True), ("train", False)):
        changed = [altered(row) if k in lines[part] else row for k, row in enumerate(rows)]
        assert changed != rows
        split_off(tmp_path, row, changed, part)
        if same:
            assert_same_runs(tmp_path, "run", part)
        else:
            with pytest.raises(AssertionError):
                assert_same_runs(tmp_path, "run", part)


@law(filed)
def test_openings_of_the_test_part_are_counted(row: Row, trained: Trained) -> None:
    folder = trained(row)
    for expected in (1, 2):
        done(folder, "evaluate", "run", "--validation", "--json")
        facts = json.loads(done(folder, "evaluate", "run", "--json"))
        assert (facts["opened"], facts["opened_by_this_run"]) == (expected, expected)
    lines = (folder / "test-openings.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 2
    assert ensue.Run(folder / "run").evaluate().opened == TimesOpened(3, 0)
    file = folder / f"test{row.data.suffix}"
    model = ensue.load(folder / "run")
    evaluation = model.evaluate(file)
    assert evaluation.opened == TimesOpened(4, 0)
    assert "These rows have been evaluated 4 times." in evaluation.as_text()
    assert model.evaluate(file.with_stem("validation")).opened == TimesOpened()
    assert ensue.Run(folder / "run").evaluate("validation").opened == TimesOpened()
    assert len((folder / "test-openings.jsonl").read_text("utf-8").splitlines()) == 4


# --- files -------------------------------------------------------------------------------------


def spoiled(folder: Path, row: Row, name: str) -> tuple[str, str]:
    """A copy of one of its files with a bad row, and how the row is named."""
    whole = folder / f"{name}{row.data.suffix}"
    beside = whole.with_name(f"bad-{whole.name}")
    (shutil.copytree if whole.is_dir() else shutil.copy)(whole, beside)
    return beside.name, row.data.spoil(beside)


@law(filed)
def test_bad_rows_are_named(row: Row, trained: Trained) -> None:
    folder = trained(row)
    words = ["--validation", f"validation{row.data.suffix}", *row.train_options(), "--run", "again"]
    file, name = spoiled(folder, row, "train")
    assert name in refused(folder, "train", file, *words)
    file, name = spoiled(folder, row, "test")
    assert name in refused(folder, "evaluate", "run", "--test", file)
    file, name = spoiled(folder, row, "asked")
    assert name in refused(folder, "predict", "run", file)
    assert not (folder / "test-openings.jsonl").exists()


@law(filed)
def test_every_command_leaves_out_the_same_bad_rows(row: Row, trained: Trained) -> None:
    folder = trained(row)
    words = ["--validation", f"validation{row.data.suffix}", *row.train_options(), "--run", "again"]
    file, _ = spoiled(folder, row, "train")
    code, _, err = command(folder, "train", file, *words, "--skip-bad")
    assert code == 0, err
    assert "1 bad row left out" in err
    assert_same_runs(folder, "run", "again")
    file, _ = spoiled(folder, row, "test")
    code, out, err = command(folder, "evaluate", "run", "--test", file, "--skip-bad", "--json")
    assert code == 0, err
    assert "1 bad row left out" in err
    assert scores(out) == scores(done(folder, "evaluate", "run", "--json"))
    file, name = spoiled(folder, row, "asked")
    code, out, err = command(folder, "predict", "run", file, "--skip-bad")
    assert code == 0, err
    assert "left out" in err
    assert name in err
    questions = f"asked{row.data.suffix}"
    assert out.replace("bad-", "") == done(folder, "predict", "run", questions)


def table_rows(folder: Path, file: str, *words: str) -> list[dict[str, Any]]:
    """The table of answers to a file, without the lines that rows stand in."""
    done(folder, "predict", "run", file, *words, "--keep", "all", "--out", "answers.jsonl")
    rows = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    return [{name: cell for name, cell in row.items() if name != "row"} for row in rows]


@law(filed)
def test_a_table_of_answers_has_a_row_for_each(row: Row, trained: Trained) -> None:
    folder, questions = trained(row), f"asked{row.data.suffix}"
    printed = done(folder, "predict", "run", questions).splitlines()
    rows = table_rows(folder, questions)
    assert len(rows) == len(printed) > 0
    assert len({tuple(cells) for cells in rows}) == 1, "one header"
    if TASKS[row.task].needs_input:  # a series cannot leave steps out
        file, _ = spoiled(folder, row, "asked")
        assert table_rows(folder, file, "--skip-bad") == rows


@law(filed)
def test_answers_of_other_processes_are_the_same(
    row: Row, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, questions = trained(row), f"asked{row.data.suffix}"
    monkeypatch.setitem(MACHINES, "local", lambda workers, threads: Here(workers, last_first=True))
    shared = ("--workers", "2")
    if TASKS[row.task].deals is None:
        message = refused(folder, "predict", "run", questions, *shared)
        assert (
            f"--workers: a run of task {row.task} answers in one process; leave it out" in message
        )
        return
    monkeypatch.setattr("ensue.tasks.rows.reader.AT_ONCE", 3)
    for words in ((), ("--json",)):
        alone = done(folder, "predict", "run", questions, *words)
        assert done(folder, "predict", "run", questions, *words, *shared) == alone
    for ending in ("jsonl", "csv", "parquet"):
        out = ("--keep", "all", "--out")
        done(folder, "predict", "run", questions, *out, f"alone.{ending}")
        done(folder, "predict", "run", questions, *out, f"shared.{ending}", *shared)
        written = [(folder / f"{name}.{ending}").read_bytes() for name in ("alone", "shared")]
        assert written[0] == written[1]


@law(filed)
def test_members_of_other_processes_are_the_same(
    row: Row, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = trained(row)
    monkeypatch.setitem(MACHINES, "local", lambda workers, threads: Here(workers, last_first=True))
    words = [word for word in row.write(folder) if word]
    done(folder, "train", *words, "--members", "2", "--run", "alone")
    done(folder, "train", *words, "--members", "2", "--run", "shared", "--workers", "2")
    assert_same_runs(folder, "alone", "shared")
    for name in ("history.jsonl", "members/2/history.jsonl"):
        assert (folder / "alone" / name).read_bytes() == (folder / "shared" / name).read_bytes()


@law(filed)
def test_every_command_honours_the_reading_options(row: Row, trained: Trained) -> None:
    folder = trained(row)
    names, suffix = row.data.names, row.data.suffix
    tested = scores(done(folder, "evaluate", "run", "--json"))
    answers = answers_of(done(folder, "predict", "run", f"asked{suffix}", "--json"))
    beside = folder / "strange"
    beside.mkdir()
    words = row.write(beside, STRANGE)
    # given in training, they hold for the run
    done(beside, "train", *words, "--run", "again")
    assert_same(ensue.load(folder / "run"), ensue.load(beside / "again"))
    assert scores(done(beside, "evaluate", "again", "--json")) == tested
    of_test = answers_of(done(folder, "predict", "run", f"test{suffix}", "--json"))
    assert answers_of(done(beside, "predict", "again", f"test{suffix}", "--json")) == of_test
    # given for other files, they hold for these
    strange = STRANGE.options(names)
    printed = done(folder, "evaluate", "run", "--test", f"strange/test{suffix}", "--json", *strange)
    assert scores(printed) == tested
    strange = STRANGE.options(row.data.asked_names())
    questions = f"strange/asked{suffix}"
    assert answers_of(done(folder, "predict", "run", questions, "--json", *strange)) == answers
    code, out, _ = command(folder, "predict", "run", questions, "--json")
    assert code == 2 or answers_of(out) != answers


def answers_of(printed: str) -> list[dict[str, Any]]:
    """Answers as JSON, without what is shown of the inputs: names of lines differ."""
    answers = [json.loads(line) for line in printed.splitlines()]
    return [{key: entry for key, entry in answer.items() if key != "input"} for answer in answers]


@law(filed)
def test_a_run_moves_with_its_files(row: Row, tmp_path: Path) -> None:
    """Nothing is left where it was trained."""
    folder, questions = tmp_path / "here", f"asked{row.data.suffix}"
    folder.mkdir()
    done(folder, "train", *row.write(folder), "--run", "run")
    answers = done(folder, "predict", "run", questions)
    tested = scores(done(folder, "evaluate", "run", "--json"))
    (tmp_path / "far").mkdir()
    place = folder.rename(tmp_path / "far" / "away")
    assert done(place, "predict", "run", questions) == answers
    assert scores(done(place, "evaluate", "run", "--json")) == tested
    before = {path: path.read_bytes() for path in (place / "run" / "model").iterdir()}
    done(place, "train", "--run", "run")
    assert {path: path.read_bytes() for path in (place / "run" / "model").iterdir()} == before


# --- configurations ----------------------------------------------------------------------------


@law(filed)
def test_a_configuration_is_complete_and_reads_back(row: Row, trained: Trained) -> None:
    path = trained(row) / "run" / "config.toml"
    tables, config = tomllib.loads(path.read_text("utf-8")), RunConfig.read(path)
    names = [name for name in TABLES if name != "base"]  # which only a run that has one writes
    assert tables.keys() == {"task", "members", *names}
    for name in names:
        assert tables[name].keys() == type(getattr(config, name)).model_fields.keys()
    assert config.text_of(path.parent) == path.read_text("utf-8")
    assert RunConfig.of(config.tables()) == config
    model = ensue.load(path.parent)
    assert (model.text, model.settings, model.train) == (config.text, config.model, config.train)


@law(filed)
def test_a_command_with_a_setting_that_there_is_not(row: Row, trained: Trained) -> None:
    folder, key = trained(row), max(TASKS[row.task].settings.model_fields, key=len)
    file = f"train{row.data.suffix}"
    err = refused(folder, "train", file, *row.train_options(), "--set", f"model.{key[1:]}=1")
    assert f"model.{key[1:]}: unknown key, did you mean {key}?" in err
    err = refused(folder, "train", file, *row.train_options(), "--set", "train.watch=nonsense")
    names = ", ".join(metric.name for metric in TASKS[row.task].metrics)
    assert f"train.watch: expected one of {names}, got 'nonsense'" in err
    assert not (folder / "again").exists()


# --- the tasks' own options ----------------------------------------------------------------------


def option_words(option: Option, row: Row) -> list[str]:
    """As a command says it."""
    return (
        [option.flag]
        if option.kind == "switch"
        else [option.flag, row.data.option_values[option.flag]]
    )


def value(option: Option, row: Row) -> Any:
    """As it must arrive."""
    argument = row.data.option_values[option.flag]
    kinds = {"number": int, "switch": lambda _: True, "names": lambda text: text.split(",")}
    kinds |= {"text": str, "files": lambda text: [text], "fraction": float}
    return kinds[option.kind](argument)


def options(row: Row, verb: str) -> list[Option]:
    return [option for option in TASKS.options(row.task) if verb in option.verbs]


@law(filed)
def test_options_of_a_task_are_honoured_by_each_command(
    row: Row, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, calls = trained(row), list[dict[str, Any]]()
    for option in options(row, TRAIN):
        columns = [word for word in row.data.words if word not in ("--horizon", "2")]
        words = [*columns, *option_words(option, row), "--task", row.task, "--dry-run"]
        printed = done(folder, "train", f"train{row.data.suffix}", *words)
        table, key = option.key.split(".")
        paths = tomllib.loads(printed)[table][key]
        if option.kind == "files":
            assert all(Path(path).is_absolute() for path in paths)
            paths = [Path(path).name for path in paths]
        assert paths == value(option, row)
    task = TASKS[row.task]
    for verb, method, words in (
        (EVALUATE, "evaluate", ["--validation"]),
        (PREDICT, "answers", [f"asked{row.data.suffix}"]),
    ):
        for option in options(row, verb):
            with monkeypatch.context() as patch:
                patch.setattr(type(task), method, spied(getattr(type(task), method), calls))
                # files of the steps ahead follow those that are read
                read = [f"validation{row.data.suffix}"] if option.kind == "files" else words
                command(folder, verb, "run", *read, *option_words(option, row))
            assert calls.pop() == {option.word: value(option, row)}


def spied(method: Callable[..., Any], calls: list[dict[str, Any]]) -> Callable[..., Any]:
    def spy(self: Any, part: Any, model: Any, words: Any) -> Any:
        calls.append(dict(words))
        return method(self, part, model, words)

    return spy


@every_task
def test_options_of_other_tasks_are_refused(row: Row, trained: Trained) -> None:
    folder = trained(row)
    commands = {
        TRAIN: [f"train{row.data.suffix}", "--task", row.task],
        EVALUATE: ["run"],
        PREDICT: ["run", f"asked{row.data.suffix}"],
    }
    for other in FILED:
        for verb, words in commands.items():
            for option in options(other, verb):
                if option in TASKS.options(row.task):
                    continue
                err = refused(folder, verb, *words, *option_words(option, other))
                assert f"{option.flag}: expected a run of task " in err
                assert other.task in err
                got = f"--task {row.task}" if verb == TRAIN else f"one of task {row.task}"
                assert f", got {got}\n" in err
    assert not (folder / "test-openings.jsonl").exists()


@pytest.mark.parametrize("verb", [TRAIN, EVALUATE, PREDICT])
def test_help_lists_the_options_of_each_task_under_its_name(verb: str, tmp_path: Path) -> None:
    lines = done(tmp_path, verb, "--help").splitlines()
    for row in FILED:
        for option in options(row, verb):
            at = next(k for k, line in enumerate(lines) if line.startswith(f"  {option.flag} "))
            heading = next(line for line in reversed(lines[:at]) if line and line[0] != " ")
            assert row.task in heading.removeprefix("Options for ").rstrip(":").split(", ")
    if verb == TRAIN:
        listed = " ".join(" ".join(lines).split())
        assert f"{', '.join(TASKS)}; inferred from the data" in listed


# --- a custom cell ------------------------------------------------------------------------------

CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import toy_task
from ensue import cli
from ensue.tasks import TASKS
TASKS.register(toy_task.TASK)
try:
    cli.main(["predict", "run", {questions!r}])
except SystemExit as ending:
    assert ending.code == 2, ending.code
assert not Path("canary").exists()
cli.main(["predict", "run", {questions!r}, "--trust-cell"])
"""


@contextmanager
def stopped_after(saves: int) -> Iterator[None]:
    """SIGTERM comes as soon as `saves` checkpoints have been written."""
    save, count = checkpoint.save, 0

    def save_and_stop(*args: Any, **named: Any) -> Path:
        nonlocal count
        saved, count = save(*args, **named), count + 1
        if count == saves:
            signal.raise_signal(signal.SIGTERM)
        return saved

    checkpoint.save = save_and_stop
    try:
        yield
    finally:
        checkpoint.save = save


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=[pytest.mark.slow] * row.slow, id=row.task)
     for row in FILED if has_cell(row)],
)  # fmt: skip
def test_the_file_of_a_cell_never_runs_unasked(row: Row, tmp_path: Path, warm: Warm) -> None:
    canary, mine, questions = tmp_path / "canary", tmp_path / "mine.py", f"asked{row.data.suffix}"
    mine.write_text(f"open({str(canary)!r}, 'a').close()\n{SOURCE}", "utf-8")
    words = [*row.write(tmp_path), "--set", "model.cell=mine.py:MyCell"]
    done(tmp_path, "train", *words, "--run", "run")
    assert canary.exists()
    with stopped_after(1):
        assert command(tmp_path, "train", *words, "--run", "stopped")[0] == STOPPED
    canary.unlink()
    digest = sha256(mine.read_bytes()).hexdigest()
    for arguments, file in (
        (["train", "--run", "stopped"], "mine.py"),
        (["train", "--run", "stopped", "--trust-cell"], "has no copy"),
        (["evaluate", "run"], "run/model/cell.py"),
        (["predict", "run", questions], "run/model/cell.py"),
    ):
        err = refused(tmp_path, *arguments)
        assert all(text in err for text in (file, digest, "--trust-cell", "Nothing was run"))
        assert not canary.exists()
    done(tmp_path, "train", "--run", "stopped", f"--trust-cell={digest}")
    assert canary.exists()
    one, other = (ensue.load(tmp_path / name, trust=True) for name in ("run", "stopped"))
    assert_same(one, other)
    done(tmp_path, "evaluate", "run", "--trust-cell")
    answers = done(tmp_path, "predict", "run", questions, "--trust-cell")
    canary.unlink()
    script = tmp_path / "elsewhere" / "asks.py"
    script.parent.mkdir()
    script.write_text(CHILD.format(tests=str(Path(__file__).parent), questions=questions), "utf-8")
    child = warm.run([str(script)], tmp_path, {})
    assert child.returncode == 0, child.stderr
    assert child.stdout == answers
    assert canary.exists()


# --- the custom task, as a whole -----------------------------------------------------------------


def test_a_task_from_outside_is_recognised_trained_continued_selected(tmp_path: Path) -> None:
    (row,) = [row for row in FILED if row.task == "tally"]
    rows = [example for part in row.parts() for example in part]
    row.data.write(tmp_path / "all.csv", rows, PLAIN)
    code, _, err = command(tmp_path, "train", "all.csv", "--dry-run")
    assert code == 0
    assert "task: tally (letters and their vowels)" in err
    with stopped_after(2):
        assert (
            command(tmp_path, "train", "all.csv", *row.train_options(), "--run", "a")[0] == STOPPED
        )
    done(tmp_path, "train", "--run", "a")
    done(tmp_path, "train", "all.csv", *row.train_options(), "--run", "b")
    assert_same_runs(tmp_path, "a", "b")
    # its option changes the answers, wherever it is given
    most = [done(tmp_path, "predict", "a", "all.csv", "--json"), ""]
    most[1] = done(tmp_path, "predict", "a", "all.csv", "--json", "--at-most", "1")
    counts = [{json.loads(line)["count"] for line in text.splitlines()} for text in most]
    assert max(counts[0]) > max(counts[1]) == 1
    none = done(tmp_path, "predict", "a", "all.csv", "--json", "--at-most", "0")
    assert {json.loads(line)["count"] for line in none.splitlines()} == {0}
    usual, least = (
        scores(done(tmp_path, "evaluate", "a", "--validation", "--json", *more))
        for more in ([], ["--at-most", "1"])
    )
    assert usual != least
    done(tmp_path, "train", "all.csv", *row.train_options(), "--run", "c", "--at-most", "1")
    assert done(tmp_path, "predict", "c", "all.csv", "--json") == most[1]
    # the calibration is of the validation part, and is kept
    assert ensue.load(tmp_path / "a").learned.scale != 1.0
    printed = done(
        tmp_path,
        "select",
        "all.csv",
        *row.train_options(),
        "--models",
        "linear,gru",
        "--run",
        "s",
        "--json",
    )
    selection = json.loads(printed)
    assert {row["name"] for row in selection["rows"]} == {"linear", "gru"}
    assert selection["rows"][0]["name"] == "linear"


def test_a_task_goes_as_it_came() -> None:
    task = TASKS["tally"]
    with pytest.raises(OptionError, match="tally: this name is taken"):
        TASKS.register(task)
    other = type("Other", (type(task),), {"name": "other"})()
    other.options = (replace(task.options[0], help="Something else."),)
    with pytest.raises(OptionError, match="other: --at-most has another meaning in tally"):
        TASKS.register(other)
    other.options, other.metrics = (), (replace(task.metrics[0], higher_is_better=True),)
    with pytest.raises(OptionError, match="other: its metric mae has the opposite direction"):
        TASKS.register(other)
    assert "within_one" in METRICS
    TASKS.unregister("tally")
    try:
        assert "tally" not in TASKS
        assert "within_one" not in METRICS
        assert "mae" in METRICS
    finally:
        TASKS.register(task)
