"""Every command of docs/explanation/courses.md runs; what takes minutes with fewer updates, or up
to where its training would begin."""

import os
import re
import shlex
import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest
from commands import Ensue, commands_in
from picture_samples import lab
from toy_runs import toy_run

from ensue import cli
from ensue.cli.commands import MODULES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "courses.md"
ITEMS = re.split(r"^- ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
LONG = "takes minutes"
# what makes them short, by the command; `demo` is run by test_demo.py
SHORTER = {
    "train": ["--dry-run"],
    "pretrain": ["--dry-run"],
    "select": ["--epochs", "1", "--set", "model.hidden_size=2", "--set", "model.embedding_size=2"],
    "memory": ["--steps", "4", "--updates", "1", "--hidden", "2", "--cells", "GRU"],
}
ELSEWHERE = ("demo",)


def commands(item: str) -> list[str]:
    return [command for command in re.findall(r"`([^`]+)`", item) if command.startswith("ensue ")]


SHORT = [command for item in ITEMS if LONG not in item for command in commands(item)]
TAKE_MINUTES = [command for item in ITEMS if LONG in item for command in commands(item)]
FIGURES = {
    # chapter: figures that its items must name between them
    "Learning as optimisation": {*map(str, range(1, 4)), "5a", "5b", "6", "7"},
    "Neural networks, a textbook chapter": {
        *(f"6.{k}" for k in range(1, 10)), "A.1", "B.1", "B.2", "C.1", "D.1", "D.2",
    },
    "Recurrent networks, attention, Transformers": {*map(str, range(1, 20))},
}  # fmt: skip


def test_every_item_has_a_command() -> None:
    assert [item for item in ITEMS if not commands(item)] == []
    assert {shlex.split(command)[1] for item in ITEMS for command in commands(item)} <= {*MODULES}
    assert {shlex.split(command)[1] for command in TAKE_MINUTES} <= {*SHORTER, *ELSEWHERE}
    assert len(SHORT) > 60


@pytest.mark.parametrize("chapter", FIGURES)
def test_every_figure_has_a_row(chapter: str) -> None:
    text = PAGE.read_text("utf-8").split(f"\n## {chapter}\n")[1].split("\n## ")[0]
    named = re.findall(r"^- (?:§[\d.]+, )?Fig\. (.*?), (?![\dA-D])", text, flags=re.MULTILINE)
    numbers = {
        number for sentence in named for number in re.findall(r"[A-D]?\.?\d[\d.]*[ab]?", sentence)
    }
    assert {number.strip(".") for number in numbers} >= FIGURES[chapter]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page names, and the runs `words` and `translator`."""
    place = tmp_path_factory.mktemp("course")
    shutil.copytree(toy_run("translate-transformer") / "run", place / "translator")
    lines = [f"the {who} opened their {what}" for who in ("students", "girls") for what in
             ("books", "exams", "books yesterday")]  # fmt: skip
    (place / "corpus.txt").write_text("\n".join(lines * 10) + "\n")
    rows = [f"a {word} film number {k},{mood},{k % 5}"
            for k in range(30) for word, mood in (("fine", "good"), ("dull", "bad"))]  # fmt: skip
    (place / "reviews.csv").write_text("\n".join(["text,label,stars", *rows, ""]))
    days = [date(2020, 1, 1) + timedelta(days=11 * k) for k in range(60)]
    sales = [f"{day},{k % 7},{10 - abs(day.month - 7)}.5" for k, day in enumerate(days)]
    (place / "sales.csv").write_text("\n".join(["day,warmth,sales", *sales, ""]))
    (place / "tagged.conll").write_text("the D\ndog N\nruns V\n\na D\ncat N\nsleeps V\n\n" * 12)
    (place / "pairs.tsv").write_text("".join(f"one {k}\tun {k}\n" for k in range(40)))
    tree = "(S (NP (P our) (N company)) (VP (V trains) (N workers)))\n"
    (place / "company.trees").write_text(tree * 20)
    vectors = "".join(f'{{"input": [{k}, 1.5], "target": "word {k % 3}"}}\n' for k in range(40))
    (place / "captions.jsonl").write_text(vectors)
    settings = {"family": "both", "layers": 1, "hidden_size": 4, "embedding_size": 4, "columns": 2}
    overrides = [f"--set=model.{key}={value}" for key, value in settings.items()]
    before = Path.cwd()
    os.chdir(place)
    try:
        words = ["corpus.txt", "--task", "language", "--run", "words", "--epochs", "1", *overrides]
        with pytest.raises(SystemExit) as ending:
            cli.main(["train", *words, "--set=text.min_count=1", "--quiet"])
        assert ending.value.code == 0
    finally:
        os.chdir(before)
    return place


@pytest.fixture
def ensue(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    """The lab, which takes seconds, has run already."""
    shutil.copytree(made, tmp_path / "course")
    monkeypatch.setattr("ensue.study.foundations.lab.run_lab", lambda *arguments: lab())
    return commands_in(tmp_path / "course", capsys, monkeypatch)


@pytest.mark.parametrize("command", dict.fromkeys([*SHORT, *TAKE_MINUTES]))
def test_commands_run(command: str, ensue: Ensue) -> None:
    words = shlex.split(command)[1:]
    if words[0] in ELSEWHERE:
        return
    code, out, err = ensue(*words, *(SHORTER[words[0]] if command in TAKE_MINUTES else []))
    assert code == 0, err
    assert out


@pytest.mark.parametrize(
    ("begins", "value"),
    [("Fig. 6.2", 12), ("the letters L and T", 5), ("Fig. 6.4", -3), ("softmax of three", 4.15)],
)
def test_worked_examples_have_their_numbers(begins: str, value: float, ensue: Ensue) -> None:
    (item,) = [item for item in ITEMS if item.startswith(begins)]
    _, out, _ = ensue(*shlex.split(commands(item)[0])[1:])
    result = out.strip().splitlines()[-1].split()[-2]
    assert float(result.replace("−", "-")) == pytest.approx(value, abs=0.01)
