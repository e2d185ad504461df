"""Advice in messages is followed: it gets further, and never in a circle."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from advice import EVALUATED, RUNS, TABLE, Advice, days, rows
from advice_elsewhere import ELSEWHERE

import ensue as package
from ensue import cli

PACKAGE = Path(package.__file__).parent
CELL = """
from ensue.cells import Cell
from ensue.equations import Matrix, tanh

class Mine(Cell):
    W, U = Matrix("x"), Matrix("h")

    def step(self, x, h):
        return tanh(self.W @ x + self.U @ h)
"""
ExplicitKeys = tuple[int, str]


def outcome_of(words: str) -> ExplicitKeys:
    """Exit code of a command, and all that it printed."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.raises(SystemExit) as ending,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        cli.main(shlex.split(words))
    return int(ending.value.code or 0), err.getvalue() + out.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Files that commands name."""
    place = tmp_path_factory.mktemp("advice")
    table = f"review,stars\n{rows(40)}"
    tickets = "".join(f"{k},fix the {w} now {k},{k % 3},{k % 5}.5\n"
                      for k, w in enumerate(["printer", "screen"] * 15))  # fmt: skip
    churn = "".join(f"{20 + k % 30},{k % 4},{'ab'[k % 2]},{'ny'[k % 3 == 0]}\n" for k in range(80))
    files = {
        "films.csv": table, "reviews.csv": table, "moved.csv": table, "changed.csv": table,
        "more.csv": f"review,stars\n{rows(52)}", "test.csv": "review,stars\nan odd film,good\n",
        "churn.csv": f"age,calls,plan,churn\n{churn}",
        "tickets.csv": f"id,subject,priority,hours\n{tickets}",
        "numbers.csv": "a,b,y\n" + "".join(f"{k}.5,{k % 7},{k % 2}\n" for k in range(40)),
        "sales.csv": f"day,sales\n{days(60)}",
        "promo.csv": "day,sales,promo\n" + days(60, more=",1").replace("23.5,1", "29.5,2"),
        "forest.trees": "(1 (0 not) (0 bad))\n(0 (0 very) (0 bad))\n(1 (0 very) (1 good))\n" * 20,
        "mine.py": CELL,
        "labelled.txt": "".join(f"{('good', 'bad')[k % 2]} the film {k}\n" for k in range(60)),
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for name, text in files.items():
            (place / name).write_text(text)
        yield place


def train(name: str) -> None:
    """A run that commands name, if it is not there yet."""
    if not Path(name).exists():
        for base in {*shlex.split(RUNS[name])} & RUNS.keys():
            train(base)
        code, output = outcome_of(f"train {RUNS[name]} --run {name}")
        assert code == 0, output
        if name in EVALUATED:
            assert outcome_of(f"evaluate {name}")[0] == 0


CASES = [pytest.param(row, marks=[pytest.mark.slow] * row.slow, id=str(row)) for row in TABLE]


@pytest.mark.parametrize("row", CASES)
def test_advice_gets_further(row: Advice, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for name in {*shlex.split(f"{row.typed} {row.then}")} & RUNS.keys():
        train(name)
    for name, content in row.files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    code, output = outcome_of(row.typed)
    assert code == row.code, output
    fragments = row.message.split("{}")
    assert all(fragment in output for fragment in fragments), output
    match = re.search(row.take, output)
    assert match, output
    words = row.then.format(*match.groups(), typed=row.typed).replace(" FILE", " films.csv")
    code, after = outcome_of(words)
    assert code == 0, f"$ ensue {words}\n{after}"
    assert row.code == 0 or not all(fragment in after for fragment in fragments), after


# --- what no row is about ------------------------------------------------------------------------

SETTING = r"\b(?:model|text|train|base|data)\.[a-z_]+\b"
ADVICE = re.compile(rf"(?<![\w-])--[a-z][a-z-]+|\bensue [a-z]+\b[ `]|{SETTING}(?!\.)")
# What a message is about.
ABOUT = re.compile(rf"^(\{{\}}: )?(--[a-z-]+( (and|or) --[a-z-]+)?( \{{\}})?|{SETTING}):")
STYLES = ("var(--", "const ", "#include")  # of pages and programs
HELP = ("Option", "option", "argument", "command", "group", "Finding", "Expected", "Field")


def spoken(node: ast.AST) -> str:
    """A text of the source, with {} for its values."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            spoken(part) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    return ""


def advised(file: Path) -> Iterator[str]:
    """The texts of a file, docstrings and help aside, that name an option or a command."""
    source = file.read_text("utf-8")
    if not ADVICE.search(source):
        return
    tree = ast.parse(source)
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        text, holds = spoken(node), above.get(node)
        if len(text.split()) < 3 or isinstance(holds, ast.JoinedStr | ast.Expr):
            continue
        calls = [ancestor for ancestor in ancestors(node, above) if isinstance(ancestor, ast.Call)]
        names = [getattr(call.func, "attr", getattr(call.func, "id", "")) for call in calls]
        help = bool({*names} & {*HELP}) or any(style in text for style in STYLES)
        if not help and ADVICE.search(ABOUT.sub("", text)):
            yield text


def ancestors(node: ast.AST, above: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while node in above:
        node = above[node]
        yield node


def test_every_message_with_advice_has_a_row_or_a_reason() -> None:
    texts = {text: file for file in PACKAGE.rglob("*.py") for text in advised(file)}
    assert len(texts) > 100
    known = [*(row.message for row in TABLE), *ELSEWHERE]
    left = [f"{file.relative_to(PACKAGE)}: {text}" for text, file in texts.items()
            if not any(style in text for style in known)]  # fmt: skip
    assert left == []
    stale = [style for style in ELSEWHERE if not any(style in text for text in texts)]
    assert stale == []
    assert all(len(reason.split()) > 3 for reason in ELSEWHERE.values())
