"""The learning commands as a user walks them, every mistake made on purpose."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from children import usual_signals
from commands import Ensue, commands_in

from ensue import cli
from ensue.training import TrainSettings
from ensue.training.optimiser import OPTIMISERS

SMALL = ["model.hidden_size=4", "model.embedding_size=4", "train.epochs=1"]


def settings(*more: str) -> list[str]:
    return [word for setting in (*SMALL, *more) for word in ("--set", setting)]


@pytest.fixture
def ensue(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


def write_reviews(path: Path, count: int = 60) -> Path:
    words = ["the", "a", "film", "cast", "was", "with", "its", "story"]
    lines = ["review,stars,film"]
    for k in range(count):
        text = " ".join(words[(k * n) % len(words)] for n in range(1, 3 + k % 5))
        kind = "good" if k % 2 else "bad"
        lines.append(f'"{text}, {kind} {k}",{1 + 4 * (k % 2)},{k % 9}')
    path.write_text("\n".join(lines) + "\n")
    return path


TRAIN = ("train", "reviews.csv", "--text", "review", "--label", "stars", "--run", "r1")


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with reviews.csv and a finished run r1 of it."""
    folder = tmp_path_factory.mktemp("walk")
    write_reviews(folder / "reviews.csv")
    before = os.getcwd()
    os.chdir(folder)
    try:
        with pytest.raises(SystemExit) as ending:
            cli.main([*TRAIN, *settings()])
        assert not ending.value.code
    finally:
        os.chdir(before)
    return folder


def test_one_network_is_not_shared_out(ensue: Ensue, tmp_path: Path) -> None:
    """Nor is a configuration printed that would not be trained."""
    write_reviews(tmp_path / "reviews.csv")
    for more in ((), ("--dry-run",)):
        code, out, err = ensue(*TRAIN, *settings(), "--workers", "2", *more)
        assert (code, out) == (2, "")
        assert "--workers: expected several networks to share out, got one; add --members 5" in err
    assert ensue(*TRAIN, *settings(), "--workers", "2", "--members", "2", "--dry-run")[0] == 0


# --- the path --------------------------------------------------------------------------------


def test_from_a_file_to_answers(ensue: Ensue, tmp_path: Path) -> None:
    write_reviews(tmp_path / "reviews.csv")
    code, out, err = ensue(*TRAIN, *settings())
    assert code == 0
    assert out.startswith("r1: validation part, ")
    assert "\n  accuracy " in out
    assert "95 % interval" in out
    printed_lines = err.splitlines()
    assert printed_lines[0] == "task: classify (one label for each row)"
    assert (
        printed_lines[1] == "split: 80 % train, 10 % validation, 10 % test, by the hash of each row"
    )
    assert printed_lines[-1] == "Next: ensue evaluate r1    scores on unseen rows, and mistakes"
    assert {"config.toml", "history.jsonl", "model", "card.md"} <= set(os.listdir("r1"))

    code, out, _ = ensue("evaluate", "r1")
    assert code == 0
    assert "majority class" in out
    assert "linear n-grams" in out
    assert out.endswith("\nThis test part has been opened once.\n")
    code, out, _ = ensue("evaluate", "r1", "--json")
    facts = json.loads(out)
    assert (facts["opened"], facts["opened_by_this_run"]) == (2, 2)
    assert set(facts["scores"]) == {"accuracy", "macro_f1"}
    code, out, _ = ensue("evaluate", "r1", "--validation")
    assert "opened" not in out

    code, out, _ = ensue("predict", "r1", stdin=b"a good film\n\nschlecht\n")
    assert code == 0
    lines = [line.split("\t") for line in out.splitlines()]
    assert [line[2:] for line in lines] == [["a good film"], [], ["schlecht"]]
    assert {line[0] for line in lines} <= {"1", "5"}
    code, out, _ = ensue("predict", "r1", "--json", stdin=b"a good film\n")
    answer = json.loads(out)
    assert answer["input"] == "a good film"
    assert sum(answer["probabilities"].values()) == pytest.approx(1)
    code, out, _ = ensue("predict", "r1", "reviews.csv")
    assert len(out.splitlines()) == 60


def test_the_same_command_goes_on_and_another_is_refused(ensue: Ensue, tmp_path: Path) -> None:
    write_reviews(tmp_path / "reviews.csv")
    first = ensue(*TRAIN, *settings())
    again = ensue(*TRAIN, *settings())
    assert again[:2] == first[:2]
    assert "continuing from step-" in again[2]
    assert ensue("train", "--run", "r1")[:2] == first[:2]
    code, _, err = ensue(*TRAIN, *settings("train.rate=0.5"))
    assert code == 2
    assert "RunError: r1/config.toml: 1 setting differs from this command\n" in err
    assert "  train.rate: was 0.001, now 0.5\n" in err
    code, _, err = ensue(*TRAIN, *settings(), "--task", "label")
    assert code == 2
    message = "this folder holds a run of task classify, but this command trains one of task label"
    assert f"RunError: r1: {message}; name another folder: --run r1-2\n" in err


def test_more_epochs_go_on_with_the_run(ensue: Ensue, tmp_path: Path) -> None:
    """As the advice at the end of a training says."""
    write_reviews(tmp_path / "reviews.csv")
    ensue(*TRAIN, *settings("train.epochs=2"))
    more = (*TRAIN, *settings("train.epochs=4"))
    code, _, err = ensue(*more)
    assert code == 2
    assert err.endswith("or resume with them: --allow train.epochs\n")
    code, _, err = ensue(*more, "--allow", "train.epochs")
    assert code == 0, err
    assert "continuing from step-" in err
    assert "epochs = 4" in (tmp_path / "r1" / "config.toml").read_text()
    assert ensue(*more)[0] == 0


def test_init_and_dry_run_train_nothing(ensue: Ensue, tmp_path: Path) -> None:
    write_reviews(tmp_path / "reviews.csv")
    code, printed, _ = ensue(*TRAIN, *settings(), "--dry-run")
    assert code == 0
    assert not (tmp_path / "r1").exists()
    code, out, _ = ensue("init", *TRAIN[1:], *settings())
    assert (code, out) == (0, "r1/config.toml\n")
    absolute = f'"{tmp_path / "reviews.csv"}"'
    assert absolute in printed, "a configuration that is printed has no folder"
    written = (tmp_path / "r1" / "config.toml").read_text()
    assert written == printed.replace(absolute, '"../reviews.csv"')
    code, _, err = ensue("predict", "r1")
    assert code == 2
    assert err == "RunError: r1: nothing was trained yet; `ensue train --run r1` trains it\n"
    assert ensue("train", "--run", "r1", "--quiet")[2] == ""
    assert (tmp_path / "r1" / "model").is_dir()


def test_labels_with_spaces_and_columns_in_quotes(ensue: Ensue, tmp_path: Path) -> None:
    rows = [f'"some ""text"" {k}, here","{("very good", "not so")[k % 2]}"' for k in range(40)]
    (tmp_path / "a.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    code, _, err = ensue("train", "a.csv", "--run", "r", *settings())
    assert code == 0, err
    code, out, _ = ensue("predict", "r", stdin=b"text\n")
    assert out.split("\t")[0] in ("very good", "not so")


def test_a_labeller_from_lines_of_tokens(ensue: Ensue, tmp_path: Path) -> None:
    rows = [{"tokens": ["Ada", f"w{k}"], "tags": ["N", "X"]} for k in range(40)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    small = settings("model.character_size=0", "model.affixes=1")
    code, _, err = ensue("train", "a.jsonl", "--run", "r", *small)
    assert code == 0, err
    assert "task: label (a label for each step)" in err
    code, out, _ = ensue("predict", "r", stdin=b"Ada runs.\n")
    assert [part.rpartition("/")[0] for part in out.split()] == ["Ada", "runs", "."]
    code, out, _ = ensue("predict", "r", "a.jsonl", "--json")
    assert json.loads(out.splitlines()[0])["tokens"] == ["Ada", "w0"]


def test_header_and_quotes_by_option(ensue: Ensue, tmp_path: Path) -> None:
    rows = [f'5" of rain {k},{k % 2}' for k in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    options = ("--header", "words, wet", "--no-quote")
    code, _, err = ensue("train", "a.csv", *options, "--run", "r", *settings())
    assert code == 0, err
    assert "text: words (texts, 4 words on average)\nlabel: wet (2 different numbers)\n" in err
    code, out, err = ensue("data", "check", "a.csv", *options)
    assert code == 0, out + err
    assert "no faulty rows" in out
    code, out, _ = ensue("data", "show", "a.csv", *options, "--rows", "1")
    assert code == 0
    assert "words" in out


# --- mistakes --------------------------------------------------------------------------------


def mistaken(ensue: Ensue, *arguments: str, stdin: bytes = b"") -> str:
    """What a command that ends with 2 says last; its result is empty."""
    code, out, err = ensue(*arguments, stdin=stdin)
    assert (code, out) == (2, ""), err
    return err


def test_mistakes_in_naming(ensue: Ensue, tmp_path: Path) -> None:
    path = write_reviews(tmp_path / "reviews.csv")
    assert mistaken(ensue, "train", "reviws.csv") == (
        "DataError: reviws.csv: no such file: did you mean reviews.csv?\n"
    )
    assert mistaken(ensue, "train", "reviews.csv", "--text", "reviw") == (
        f"DataError: {path}:2: unknown column 'reviw': did you mean 'review'? "
        "Known: film, review, stars\n"
    )
    assert mistaken(ensue, "train", "reviews.csv", "--group", "movie") == (
        f"DataError: {path}:2: unknown column 'movie'. Known: film, review, stars\n"
    )
    assert mistaken(ensue, "train", "reviews.csv", "--task", "clasify").startswith(
        "ConfigError: unknown task 'clasify': did you mean 'classify'? Known: caption, classify, "
    )
    assert mistaken(ensue, "train", "reviews.csv", "--format", "cvs").startswith(
        "OptionError: unknown format 'cvs': did you mean 'csv'?"
    )
    assert mistaken(ensue, "train", "--run", "nowhere") == (
        "OptionError: nowhere: there is no run here; name the files to train on: "
        "ensue train reviews.csv --text review --label stars --run r1\n"
    )
    assert mistaken(ensue, "evaluate", "nowhere") == (
        "RunError: nowhere: there is no run here; train one: `ensue train FILE --run nowhere`\n"
    )


def test_mistakes_in_settings(ensue: Ensue, tmp_path: Path) -> None:
    write_reviews(tmp_path / "reviews.csv")
    wrong = ["train.rat=1", "model.hidden_size=-3", "train.optimiser=adm", "train.epochs=many"]
    words = [word for setting in wrong for word in ("--set", setting)]
    assert mistaken(ensue, *TRAIN, *words) == (
        "ConfigError: 4 problems\n"
        "  model.hidden_size: expected a number ≥ 1, got -3\n"
        "  train.epochs: expected a whole number, got 'many'\n"
        f"  train.optimiser: expected one of {', '.join(OPTIMISERS)}, got 'adm', "
        "did you mean 'adam'?\n"
        "  train.rat: unknown key, did you mean rate? Known: "
        f"{', '.join(TrainSettings.model_fields)}\n"
    )
    assert mistaken(ensue, *TRAIN, "--set", "rate") == (
        "ConfigError: --set rate: expected table.key=value, such as train.rate=0.001\n"
    )
    (tmp_path / "r1").write_text("")
    assert (
        mistaken(ensue, *TRAIN)
        .splitlines()[-1]
        .startswith("RunError: r1: cannot be made a run folder: ")
    )


def test_mistakes_in_files(ensue: Ensue, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("")
    assert mistaken(ensue, "train", "a.csv") == (
        f"DataError: 1 problem in {path}\n  {path}:1: the file is empty\nNo valid row is left.\n"
    )
    path.write_text("text,label\n")
    assert mistaken(ensue, "train", "a.csv") == (
        f"DataError: 1 problem in {path}\n  {path}:1: the file has no rows\nNo valid row is left.\n"
    )
    path.write_text("text,label\n" + "".join(f"text {k},same\n" for k in range(40)))
    assert mistaken(ensue, "train", "a.csv", "--run", "r2", *settings()).endswith(
        "DataError: the training part has one label only, 'same': expected at least two. "
        "Is this the right column?\n"
    )
    path.write_text("one,two\n" + "".join(f"text {k},other {k}\n" for k in range(40)))
    assert mistaken(ensue, "train", "a.csv") == (
        f"DataError: {path}:2: no column looks like a label among one, two; name it with --label\n"
    )
    rows = "".join(f"caf\xe9 {k},{k % 2}\n" for k in range(40))
    path.write_bytes(b"text,label\n" + rows.encode("latin-1"))
    message = mistaken(ensue, "train", "a.csv", "--run", "r3")
    assert f"{path}:2: 0xE9 at byte 14 is not utf-8; cp1252 reads 'é': use --encoding" in message
    code, _, err = ensue("train", "a.csv", "--run", "r4", "--encoding", "cp1252", *settings())
    assert code == 0, err


def test_a_line_of_ten_megabytes_is_cut_and_named(ensue: Ensue, tmp_path: Path) -> None:
    write_reviews(tmp_path / "held.csv", 20)
    path = write_reviews(tmp_path / "reviews.csv")
    path.write_text(path.read_text() + "long " * 2_000_000 + ",5,film\n")
    code, _, err = ensue(*TRAIN, "--validation", "held.csv", *settings("text.max_length=50"))
    assert code == 0, err
    assert (
        "1 row longer than text.max_length = 50 steps: cut at the end "
        f"(the longest, {path}:62, has 2,000,000)\n"
    ) in err


def test_mistakes_with_a_finished_run(
    ensue: Ensue, walked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(walked)
    code, out, message = ensue("predict", "r1", stdin=b"gut\n" + b"caf\xe9\n")
    assert code == 2
    assert out.endswith("\tgut\n")  # the answers of the lines before are not lost
    assert message == (
        "DataError: standard input:2: 0xE9 is not utf-8: convert it (iconv -t utf-8), or give a "
        "file to a run that was trained with --encoding\n"
    )
    assert mistaken(ensue, "evaluate", "r1", "--test", "gone.csv") == (
        "DataError: gone.csv: no such file: check the name.\n"
    )
    (walked / "other.csv").write_text("review,stars\nfine,3\nfine,1\n")
    code, out, _ = ensue("evaluate", "r1", "--test", "other.csv")
    assert code == 0
    assert "labels that the training part does not have: counted as mistakes" in out
    (walked / "bare.csv").write_text("review\nfine\n")
    assert "unknown column 'stars'" in mistaken(ensue, "evaluate", "r1", "--test", "bare.csv")
    spoilt = Path("other.csv").read_text() + "one cell more,3,than,columns\n"
    Path("spoilt.csv").write_text(spoilt)
    refusal = mistaken(ensue, "evaluate", "r1", "--test", "spoilt.csv")
    assert refusal.endswith("Fix the lines, or use --skip-bad to leave them out.\n")
    code, out, err = ensue("evaluate", "r1", "--test", "spoilt.csv", "--skip-bad")
    assert code == 0
    assert err == "1 bad row left out\n"
    whole = walked / "r1" / "model" / "model.json"
    sound = whole.read_bytes()
    whole.write_bytes(sound[:100])
    assert "this is not a whole model" in mistaken(ensue, "predict", "r1")
    whole.write_bytes(sound)


# --- processes -------------------------------------------------------------------------------


def started(folder: Path, *arguments: str, **more: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ensue", *arguments],
        cwd=folder,
        text=True,
        stderr=subprocess.PIPE,
        preexec_fn=usual_signals,
        **{"stdout": subprocess.PIPE, **more},  # type: ignore[call-overload]
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_loses_nothing(number: signal.Signals, tmp_path: Path) -> None:
    write_reviews(tmp_path / "reviews.csv")
    words = [*TRAIN, *settings("train.epochs=100000", "train.patience=off"), "--quiet"]
    run = started(tmp_path, *words)
    history = tmp_path / "r1" / "history.jsonl"
    until = time.monotonic() + 100
    while not (history.exists() and history.read_bytes().count(b"\n") > 3):
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    run.send_signal(number)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 128 + number
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith(f"stopped by {number.name} after update ")
    assert last.endswith("; the same command continues it")
    assert "Traceback" not in err
    update = int(last.split()[5].rstrip(";"))
    assert any(f"{update:06d}" in path.name for path in (tmp_path / "r1" / "checkpoints").iterdir())


def test_output_that_nobody_reads_is_no_error(walked: Path) -> None:
    (walked / "many.txt").write_text("a good film\n" * 5000)
    with started(walked, "predict", "r1", "many.txt") as run:
        assert run.stdout is not None
        assert run.stdout.readline().endswith("\ta good film\n")
        run.stdout.close()
        assert run.stderr is not None
        lines = run.stderr.read().splitlines()
        slow = ("native engine:", "reading many.txt:")  # printed where the machine is busy
        assert [line for line in lines if not line.strip("\r").startswith(slow)] == []
    assert run.returncode == 0


def test_help_names_every_command(ensue: Ensue) -> None:
    code, out, _ = ensue("--help")
    assert code == 0
    for command in ("init", "train", "evaluate", "predict", "data check"):
        assert f"  {command}  " in out
    code, out, _ = ensue("train", "--help")
    for option in ("--text", "--label", "--header", "--no-quote", "--set", "--skip-bad"):
        assert option in out


# --- what a first user meets -----------------------------------------------------------------


def test_a_start_that_failed_blocks_nothing(ensue: Ensue, tmp_path: Path) -> None:
    path = write_reviews(tmp_path / "reviews.csv")
    path.write_bytes(path.read_bytes() + b"caf\xe9,1,2\n")
    command = (*TRAIN, *settings("train.epochs=3", "train.watch=cost", "train.rate=0.02"))
    assert "use --encoding cp1252" in ensue(*command)[2]
    assert not (tmp_path / "r1").exists()
    assert "the byte order mark of utf-16" in mistaken(ensue, *command, "--encoding", "utf-16")
    code, _, err = ensue(*command, "--encoding", "cp1252")
    assert code == 0, err
    more = "the validation score was still improving: more epochs may help"
    assert err.index("epoch 3, ") < err.rindex("the best so far")
    assert f"{more} (--epochs 6 --allow train.epochs)\n" in err
    assert "1 setting differs" in ensue(*command)[2]


def test_a_file_is_in_one_part_only(ensue: Ensue, walked: Path, tmp_path: Path) -> None:
    path = write_reviews(tmp_path / "reviews.csv")
    for option in ("--test", "--validation"):
        assert mistaken(ensue, "train", "reviews.csv", option, "./reviews.csv") == (
            f"OptionError: {path}: given twice (train and {option}): rows that a model learned "
            "from cannot test it. Give each file once\n"
        )
    file = str(walked / "reviews.csv")
    code, _, err = ensue("evaluate", str(walked / "r1"), "--test", file)
    message = f"{file}: this run was trained with this file: the scores will be too good\n"
    assert (code, err) == (0, message)
    assert ensue("evaluate", str(walked / "r1"), "--test", "reviews.csv")[2] == ""


def test_numbers_to_predict_are_no_classes(ensue: Ensue, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,price\n" + "".join(f"text {k},{k}.5\n" for k in range(60)))
    command = ("train", "a.csv", "--label", "price", "--dry-run")
    code, out, err = ensue(*command)
    assert code == 0
    assert tomllib.loads(out)["task"] == "regress"
    assert "task: regress (price is a number to predict)\n" in err
    assert ensue(*command, "--task", "classify")[0] == 0


def test_answers_for_files_that_are_written_otherwise(ensue: Ensue, walked: Path) -> None:
    run = str(walked / "r1")
    Path("a.csv").write_bytes('fine;caf\xe9\n5" bad;film\n'.encode("cp1252"))
    options = ("--delimiter", ";", "--encoding", "cp1252", "--header", "n,review", "--no-quote")
    code, out, err = ensue("predict", run, "a.csv", *options)
    assert [line.split("\t")[2] for line in out.splitlines()] == ["café", "film"], err
    Path("b.csv").write_text("review\ngood\nso, so\nbad\n")
    code, out, err = ensue("predict", run, "b.csv")
    assert (code, [line.split("\t")[2] for line in out.splitlines()]) == (2, ["good", "bad"])
    fault = "  b.csv:3: expected 1 columns, found 2 (unquoted comma?)\n"
    assert err.startswith(f"DataError: 1 problem in b.csv\n{fault}")
    assert ensue("predict", run, "b.csv", "--skip-bad") == (0, out, f"left out\n{fault}")


def test_findings_of_new_users(ensue: Ensue, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    lines = [f"{k * 7 % 90},{'ABC'[k % 3]},{k * 13 % 50}" for k in range(90)]
    table.write_text("\n".join(["area,town,price", *lines]) + "\n")
    message = mistaken(ensue, "train", "table.csv", "--run", "t")
    assert message.startswith(
        f"DataError: {table}:2: the columns do not tell what to learn:\n  area: 90 different "
        "numbers\n  town: 3 different values\n"
    )
    assert "\n  ensue train table.csv --run t --task table --label price\n" in message
    series = tmp_path / "series.csv"
    series.write_text("y\n" + "1\n" * 60)
    message = mistaken(
        ensue, "train", "series.csv", "--task", "forecast", "--target", "y", "--skip-bad"
    )
    assert "there is nothing to learn from a constant" in message
    pairs = tmp_path / "pairs.tsv"
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    pairs.write_text("en\tde\n" + "".join(f"{a} {b}\t{b} {a}\n" for a in words for b in words))
    assert mistaken(
        ensue, "train", "pairs.tsv", "--task", "translate", "--source", "en", "--target", "en"
    ).startswith(
        f"DataError: {pairs}:2: --source and --target: expected two columns, got 'en' twice"
    )
    _, out, _ = ensue("train", "pairs.tsv", "--source", "en", "--target", "de", "--dry-run")
    assert 'task = "translate"' in out
