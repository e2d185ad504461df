"""Mistakes of the first hour, and the messages about them."""

from __future__ import annotations

import ast
import json
import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Ensue, commands_in
from sklearn.base import clone

import ensue as package
from ensue import Classifier
from ensue.data.options import ReadOptions
from ensue.data.read import gather
from ensue.errors import DataError
from ensue.runs import train
from ensue.runs.compare import Comparison, Difference
from ensue.sklearn import SequenceClassifier
from ensue.tasks.evaluation.bootstrap import Interval
from ensue.tasks.evaluation.report import Evaluation
from ensue.training import Outcome

PACKAGE = Path(package.__file__).parent
SMALL = ("--set", "model.hidden_size=4", "--set", "model.embedding_size=4", "--epochs", "1")


@pytest.fixture
def ensue(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


def test_texts_alone_do_not_lose_their_first_words(ensue: Ensue, tmp_path: Path) -> None:
    lines = [f"{('good', 'bad')[k % 2]} the film number {k}" for k in range(60)]
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "new.txt").write_text("the film was fine\na dull story\n")
    assert ensue("train", "train.txt", "--format", "labelled", "--run", "r", *SMALL)[0] == 0
    code, out, err = ensue("predict", "r", "new.txt")
    assert (code, out) == (2, "")
    assert (
        "expected a label of this model at the start of each line, as in training, got 'the', 'a'"
        in err
    )
    assert "--format text" in err
    code, out, _ = ensue("predict", "r", "new.txt", "--format", "text")
    assert (code, "the film was fine" in out) == (0, True)
    code, out, _ = ensue("predict", "r", "train.txt")
    assert (code, len(out.splitlines())) == (0, 60)


@pytest.mark.parametrize("rates", ["inf", "1e400", "nan", "0", "0.1,-1", ""])
def test_steps_of_a_descent_are_numbers_above_zero(ensue: Ensue, rates: str) -> None:
    code, _, err = ensue("lab", "--rates", rates)
    assert (code, "--rates: expected comma-separated numbers > 0" in err) == (2, True)


@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_inside_of_objects_is_named(
    ensue: Ensue, tmp_path: Path, indent: int | None
) -> None:
    content = {"version": 1, "data": {"items": [{"text": "a fine film", "label": "good"}]}}
    (tmp_path / "api.json").write_text(json.dumps(content, indent=indent))
    code, _, err = ensue("train", "api.json")
    assert code == 2
    assert "write its list 'data.items' alone" in err


def test_a_file_is_no_case_of_a_benchmark(ensue: Ensue) -> None:
    code, _, err = ensue("bench", "own.py:Leaky")
    assert code == 2
    assert "--cell own.py:Leaky" in err


def test_only_near_names_of_files_are_offered(ensue: Ensue, tmp_path: Path) -> None:
    for name in ("uni code file.csv", "f.csv", "reviews.csv", "reviews.tsv"):
        (tmp_path / name).write_text("")
    assert "did you mean" not in ensue("train", "nofile.csv")[2]
    assert "did you mean reviews.csv?" in ensue("train", "reviws.csv")[2]
    assert "did you mean reviews.tsv?" in ensue("train", "review.tsv")[2]


def test_a_folder_without_texts_is_told_what_it_must_hold(ensue: Ensue, tmp_path: Path) -> None:
    (tmp_path / "logs" / "june").mkdir(parents=True)
    (tmp_path / "logs" / "june" / "1.log").write_text("")
    code, _, err = ensue("train", "logs")
    assert code == 2
    assert "a folder for each label, with .txt files inside or with pictures inside" in err


def test_cells_are_known_whatever_the_case(ensue: Ensue) -> None:
    assert ensue("cell", "show", "lstm") == ensue("cell", "show", "LSTM")
    assert Classifier(model={"cell": "gru"}).settings.cell == "GRU"
    assert "unknown cell 'lsmt'" in ensue("cell", "show", "lsmt")[2]


# --- commands that are offered to be pasted ------------------------------------------------------

OFFERED = re.compile(r"ensue [a-z]+( [^`\n]*)? $")


def offered_words(file: Path) -> Iterator[tuple[int, ast.expr]]:
    """The values that stand in commands of a file's texts."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        before = ""
        for value in node.values if isinstance(node, ast.JoinedStr) else ():
            if isinstance(value, ast.Constant):
                before += str(value.value)
            elif isinstance(value, ast.FormattedValue):
                if OFFERED.search(before):
                    yield node.lineno, value.value
                before += "…"


def test_paths_in_commands_are_quoted() -> None:
    words = [(file, *words) for file in PACKAGE.rglob("*.py") for words in offered_words(file)]
    assert len(words) > 10
    plain = ("path", "folder", "file")
    for file, line, word in words:
        name = word.attr if isinstance(word, ast.Attribute) else getattr(word, "id", "")
        assert name not in plain, f"{file}:{line}: {ast.unparse(word)}: expected in_shell(…)"


def test_the_next_command_can_be_pasted(ensue: Ensue, tmp_path: Path) -> None:
    table = "".join(f"{k},{k}.5\n" for k in range(99))
    (tmp_path / "houses.csv").write_text(f"area,price\n{table}")
    train = ("train", "houses.csv", "--target", "price", "--epochs", "1", "--run", "my run")
    code, _, err = ensue(*train)
    assert code == 0
    assert "Next: ensue evaluate 'my run'    scores on unseen rows" in err
    assert "`ensue train --run 'my run'`" in ensue(*train, "--epochs", "2", "--seed", "3")[2]


# --- what the data are, rather than what follows from it ----------------------------------------


def test_one_class_is_told_before_parts_without_rows(ensue: Ensue, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("text,label\n" + "a fine film,good\n" * 50)
    code, _, err = ensue("train", "one.csv", "--text", "text", "--label", "label")
    assert code == 2
    assert "one label only, 'good'" in err
    (tmp_path / "two.csv").write_text("text,label\n" + "a film,good\na film,bad\n" * 25)
    code, _, err = ensue("train", "two.csv", "--text", "text", "--label", "label")
    assert "too few different rows to be split by their hash (equal ones stay in one part)" in err


def test_a_field_that_no_row_has_is_told_once(tmp_path: Path) -> None:
    rows = [json.dumps({"body": "a fine film", "stars": k % 2}) for k in range(40)]
    (tmp_path / "reviews.jsonl").write_text("\n".join(rows))
    with pytest.raises(DataError) as error:
        list(gather([tmp_path / "reviews.jsonl"], ReadOptions(columns=("review",))))
    assert str(error.value).endswith(
        "reviews.jsonl:1: unknown field 'review'. Known: body, stars; so it is in all 40 rows"
    )


def test_a_parameter_that_there_is_not_is_told_by_the_class_that_was_named() -> None:
    with pytest.raises(TypeError) as error:
        SequenceClassifier(hidden=1)  # type: ignore[call-arg]
    message = str(error.value)
    assert "SequenceClassifier: unknown parameter 'hidden': did you mean 'hidden_size'?" in message
    assert "settings=" in message
    again = pickle.loads(pickle.dumps(SequenceClassifier(hidden_size=3)))
    assert clone(again).hidden_size == 3


def test_equal_answers_are_called_equal() -> None:
    equal = Difference("b", "accuracy", Interval(0.0, 0.0, 0.0), 20)
    comparison = Comparison("test", "classify", ("f.csv",), ("a", "b"), (), (equal,))
    assert comparison.verdict(equal) == "b and a: the answers are the same, judged by accuracy"


@pytest.mark.parametrize(
    ("reason", "stale", "improving"),
    [("epochs", 0, 1), ("epochs", 4, 0), ("patience", 0, 0), ("updates", 0, 0)],
)
def test_more_epochs_are_advised_where_epochs_were_the_end(
    reason: str,
    stale: int,
    improving: int,
    ensue: Ensue,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Equal accuracy with a lower cost keeps the weights, but patience ends: "still improving" and
    "no new best" were printed for one run, and the first for an accuracy that stayed at 1."""
    last = Outcome(80, 5, reason, {"accuracy": 1.0}, 80, stale)
    monkeypatch.setattr(Classifier, "fit_parts", lambda *arguments: [last])
    monkeypatch.setattr(train, "_write", lambda *arguments: None)
    rows = "".join(f"a {w} film {k},{w}\n" for k in range(20) for w in ("fine", "dull"))
    (tmp_path / "films.csv").write_text(f"review,stars\n{rows}")
    code, _, err = ensue("train", "films.csv")
    assert code == 0, err
    assert err.count("the validation score was still improving") == improving


def test_a_baseline_that_is_as_good_is_no_reproach() -> None:
    score = {"accuracy": Interval(0.9, 0.8, 1.0)}
    alone = {"linear n-grams": 0.9, "majority class": 0.5}
    evaluation = Evaluation(20, 20, score, {}, alone, classes=[], confusion=[], worst=[])
    assert evaluation.beaten_line() == "Not clearly better than the linear n-grams on this part."
    assert replace(evaluation, baselines={"majority class": 0.5}).beaten_line() == ""


def test_data_that_cannot_be_made_leave_a_file_as_it_was(ensue: Ensue, tmp_path: Path) -> None:
    """`data make counting k.jsonl` had failed, and left 0 bytes of a file that was there."""
    file = tmp_path / "k.jsonl"
    code, _, err = ensue("data", "make", "counting", "k.jsonl", "--rows", "3", "--steps", "4")
    assert code == 0, err
    assert len(file.read_text().splitlines()) == 3
    file.write_text("mine\n")
    for words in (
        ("countin", "k.jsonl"),
        ("dates", "k.jsonl"),
        ("counting", "k.jsonl", "--rows", "0"),
    ):
        code, _, err = ensue("data", "make", *words)
        assert code == 2, err
        assert file.read_text() == "mine\n"
