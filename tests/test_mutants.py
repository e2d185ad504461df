"""`make mutants`: what is changed, what is left alone, and the difference between a weak test and
a strong one."""

from __future__ import annotations

import ast
import random
from collections import Counter
from pathlib import Path

import pytest
from mutation import reach, run
from mutation.choose import Module, choose, is_text_or_drawing, modules, quotas
from mutation.mutations import Mutation, is_valid, mutations
from mutation.tree import Tree

ROOT = Path(__file__).resolve().parent.parent


def changed(code: str, kind: str | None = None) -> set[str]:
    """All mutants of a piece of code."""
    source = code.encode()
    mutants = mutations("m.py", source)
    assert all(is_valid(one, source) for one in mutants)
    return {one.applied(source).decode() for one in mutants if kind in (None, one.kind)}


@pytest.mark.parametrize(
    ("code", "mutants"),
    [
        ("a + b", {"a - b"}),
        ("a * b / c", {"a / b / c", "a * b * c"}),
        ("(a) // (b)", {"(a) * (b)"}),
        ("a % b ** c", {"a // b ** c", "a % b * c"}),
        ("σ + σ - σ", {"σ - σ - σ", "σ + σ + σ"}),  # more bytes than characters
        ("a < b >= c", {"a <= b >= c", "a < b > c"}),
        ("a == b", {"a != b"}),
        ("a is not b", {"a is b"}),
        ("a not  in b", {"a in b"}),
        ("a and b and c", {"a or b and c", "a and b or c"}),
        ("f(not (a or b))", {"f((a or b))", "f(not (a and b))"}),
        ("-a", {"a"}),
        ("a += b", {"a -= b"}),
        ("(a +  # why\n b)", {"(a -  # why\n b)"}),
    ],
)
def test_operators(code: str, mutants: set[str]) -> None:
    assert changed(code) == changed(code, "operator") == mutants


@pytest.mark.parametrize(
    ("code", "mutants"),
    [
        ("f(3)", {"f(4)"}),
        ("f(-1)", {"f(0)"}),
        ("f(0.1)", {"f(0.2)"}),
        ("f(0.0)", {"f(1.0)"}),
        ("f(1e-06)", {"f(0.001)"}),
        ("f(True)", {"f(False)"}),
        ("{'a': 0.8}", {"{'a': 1.6}"}),
    ],
)
def test_constants(code: str, mutants: set[str]) -> None:
    assert changed(code) == changed(code, "constant") == mutants


@pytest.mark.parametrize(
    ("code", "mutants"),
    [
        ("x[0]", {"x[1]"}),
        ("x[-1]", {"x[0]"}),
        ("x[1:]", {"x[2:]"}),
        ("x[:, y[0], 2]", {"x[:, y[1], 2]", "x[:, y[0], 3]"}),
    ],
)
def test_indices(code: str, mutants: set[str]) -> None:
    assert changed(code) == changed(code, "index") == mutants


def test_an_argument_of_a_call_inside_an_index_is_no_index() -> None:
    assert changed("x[f(0)]", "constant") == {"x[f(1)]"}


def test_a_name_becomes_another_that_the_function_has_bound_by_then_and_reads() -> None:
    code = "def f(self, a, unread):\n    b = a\n    c = b\n    return self.g(c)\n"
    changes = {(one.line, one.before, one.after) for one in mutations("m.py", code.encode())}
    assert changes == {(3, "b", "a"), (4, "c", "a"), (4, "c", "b")}


def test_two_returned_values_are_swapped() -> None:
    assert changed("def f():\n    return g(), h\n") == {"def f():\n    return h, g()\n"}


@pytest.mark.parametrize(
    "code",
    [
        '"""1 + 1"""',
        "f'{a + 1}'",
        "'a' + b",
        "raise ValueError(f'{a}', 1 + 1)",
        "assert a, 1 + 1",
        "x: Literal[1]",
        "def f(x: Literal[1]) -> Literal[2]: ...",
        "Either = A | B",
        "if TYPE_CHECKING:\n    x = 1",
        "MOST_NAMED = 5",
        "print(1 + 1)",
        "@cache(1)\ndef f(): ...",
        "zip(a, b, strict=True)",
        "cast(A[1], b)",
    ],
)
def test_text_types_and_what_is_only_shown_are_left_alone(code: str) -> None:
    assert changed(code) == set()


def test_where_a_mutation_shows() -> None:
    code = "LIMIT = 1\n\n\ndef f(a=2):\n    if (\n        a > 3\n    ):\n        return 4\n"
    changes = {one.before: (one.lines, one.name) for one in mutations("m.py", code.encode())}
    assert changes == {
        "1": (None, "LIMIT"),
        "2": ((5, 8), ""),  # wherever the function runs
        ">": ((5, 7), ""),
        "3": ((5, 7), ""),
        "4": ((8, 8), ""),
    }


def test_text_and_drawing_are_known() -> None:
    aside = [
        "src/ensue/drawing/arrows.py",
        "src/ensue/study/memory/table.py",
        "src/ensue/tasks/forecast/draws.py",
        "src/ensue/tasks/seq2seq/drawing.py",
        "src/ensue/demo/translation.py",
        "src/ensue/doctor.py",
        "src/ensue/study/foundations/backprop_report.py",
    ]
    real_code = [
        "src/ensue/tasks/pictures/part.py",
        "src/ensue/tasks/label/outputs.py",
        "src/ensue/data/split.py",
    ]
    assert [is_text_or_drawing(file) for file in aside + real_code] == [True] * 7 + [False] * 3


def test_places_are_spread_by_lines_of_code_and_kinds_are_even() -> None:
    for seed in range(20):
        shares = quotas([10, 33, 57], 10, random.Random(seed))
        assert sum(shares) == 10
        assert all(
            abs(share - exact) < 1 for share, exact in zip(shares, [1, 3.3, 5.7], strict=True)
        )
    module_list = modules(ROOT, "src/ensue/data")
    chosen = choose(module_list, 60, seed=3)
    assert chosen == choose(module_list, 60, seed=3) != choose(module_list, 60, seed=4)
    assert len({(one.file, one.start) for one in chosen}) == 60
    assert all(abs(count - 15) < 3 for count in Counter(one.kind for one in chosen).values())
    sources = {module.file: module.source for module in module_list}
    for one in chosen:
        ast.parse(one.applied(sources[one.file]))


def test_a_small_source_gives_what_it_has() -> None:
    source = b"a = b + c\n"
    module = Module("m.py", source, mutations("m.py", source), 1)
    assert [str(one) for one in choose([module], 5, seed=0)] == ["m.py:1: + → -"]


# --- the command ----------------------------------------------------------------------

TINY = """
import subprocess
import sys
import time

LIMIT = 3


def add(a, b):
    return a + b


def double(a):
    return a * 2


def less(a):
    return a - 1


def six():
    return 6


def count(most):
    done = 0
    while done < most:
        done += 1
        time.sleep(0.001)  # the mutant that counts down waits, and takes no processor
    return done


def beyond(a):
    return a > LIMIT


def by_child(a):
    code = f"import tiny; print(tiny.child({a}))"
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)


def child(a):
    return a + 7
"""
TINY_TESTS = """
import tiny

MADE_ON_IMPORT = tiny.six()


def test_six():
    assert MADE_ON_IMPORT == 6


def test_add():
    assert tiny.add(2, 3) == 5


def test_double_is_weak():
    assert tiny.double(1) > 0


def test_count():
    assert tiny.count(3) == 3


def test_beyond():
    assert tiny.beyond(4) and not tiny.beyond(3)


def test_child():
    assert tiny.by_child(1) == 8


def test_that_fails_anyway():
    assert not tiny.double(1)
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of one module, in which every kind of ending occurs."""
    project = tmp_path_factory.mktemp("project")
    for name, text in {"src/tiny.py": TINY, "tests/test_tiny.py": TINY_TESTS}.items():
        (project / name).parent.mkdir()
        (project / name).write_text(text)
    (project / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['slow']\n")
    return project


@pytest.mark.slow
def test_the_command_tells_weak_tests_from_strong_ones(
    tiny: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "STARTING", 8.0)  # seconds: one mutant hangs
    changes = {"* → /", "- → +", "+= → -=", "> → >=", "3 → 4", "6 → 7", "7 → 8"}
    monkeypatch.setattr(
        run.choose,
        "choose",
        lambda source_modules, count, seed: [
            one
            for module in source_modules
            for one in module.mutations
            if run.change_of(one) in changes
        ],
    )
    options = ["--project", str(tiny), "--workers", "2"]
    assert run.main(options) == 1
    lines = capsys.readouterr().out.splitlines()
    tried = [line.split(" s  ") for line in lines if " s  src/" in line]
    outcomes = {change.split(": ")[1]: start[:11].strip() for start, change in tried}
    assert "1 tests fail without a mutation and are left out:" in lines
    assert outcomes["* → /"] == "survived"
    assert outcomes["- → +"] == "not reached"
    assert outcomes["+= → -="] == "timeout"
    assert {outcomes[change] for change in ("> → >=", "3 → 4", "6 → 7", "7 → 8")} == {"caught"}
    assert (tiny / "src/tiny.py").read_text() == TINY  # the working tree is left alone
    assert "    return a * 2" in lines  # the survivor's code

    assert run.main(options) == 1  # continues where it was: nothing is left to try
    again = capsys.readouterr().out.splitlines()
    assert [line for line in again if " s  src/" in line] == []
    assert again[-1] == lines[-1]


def test_a_mutant_is_undone_and_never_mistaken_for_the_one_before(
    tiny: Path, tmp_path: Path
) -> None:
    tree = Tree(tiny, tmp_path / "copy")
    source = TINY.encode()
    one = next(one for one in mutations("src/tiny.py", source) if one.before == "+")
    tests = [reach.Test("tests/test_tiny.py::test_add", 0.1)]
    for _ in range(2):  # two changes of one length within a second
        assert run.try_mutation(tree, one, tests, 10, "src").outcome == "caught"
        assert tree.run_tests([tests[0].name], 30, "src").outcome == "survived"


def test_tests_beyond_the_seconds_are_left_out() -> None:
    tests = [reach.Test(str(k), float(k)) for k in range(20)]
    first, rest = run.batches(tests, 140)
    assert [len(first), len(rest)] == [run.FIRST, 2]  # 105 + 15 + 16 = 136
    assert run.batches(tests, 6) == [tests[:4]]
    assert run.batches(tests[9:], 6) == [tests[9:10]]


def test_equivalent_mutations_have_a_reason() -> None:
    assert all(why for why in run.equivalents().values())


def test_a_mutation_says_what_becomes_what() -> None:
    assert str(Mutation("m.py", 3, 0, 4, "operator", "not", "", None)) == "m.py:3: not → nothing"
