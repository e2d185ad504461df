"""The size of the house in figures: what a reader has to know, and what a tiny run goes through.

    python benchmarks/house.py                  # this checkout
    python benchmarks/house.py --root ../before # another one next to it, with the same program

Counted from the sources of `src/ensue`: files, lines of code without blank lines, comments and
docstrings, methods and attributes of `Task`, uses of `Any`, and the longest chain of modules that
import each other as they are loaded. Counted while `train`, `predict` and `export` work on a
classifier of 60 short texts: functions of ensue that are called at least once, modules of ensue
that are imported, opens of the data file, and locks taken on the folder of the run.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import random
import runpy
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

HERE = Path(__file__).resolve().parent.parent
ROWS, DATA_FILE, RUN = 60, "rows.csv", "run"
VERBS = {
    "train": ["train", DATA_FILE, "--run", RUN, "--epochs", "2"],
    "predict": ["predict", RUN, DATA_FILE],
    "export": ["export", RUN, "model.c"],
}
SPACING = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


# --- the sources ---------------------------------------------------------------------------------


def sources(package: Path) -> dict[str, ast.Module]:
    """Each module of a package as a tree, by its dotted name."""
    trees = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        trees[name] = ast.parse(path.read_text())
    return trees


def code_lines(path: Path) -> int:
    """Lines of a file that hold code: no blank lines, comments or docstrings."""
    text = path.read_text()
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            docstrings |= {*range(first.lineno, (first.end_lineno or first.lineno) + 1)}
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SPACING:
            code |= {*range(token.start[0], token.end[0] + 1)}
    return len(code - docstrings)


def size_of_task(trees: dict[str, ast.Module]) -> tuple[int, int]:
    """Methods and attributes of the class that every task inherits from."""
    classes = [node for node in trees["ensue.tasks.task"].body if isinstance(node, ast.ClassDef)]
    (task,) = [node for node in classes if node.name == "Task"]
    methods = [node for node in task.body if isinstance(node, ast.FunctionDef)]
    attributes = [node for node in task.body if isinstance(node, ast.AnnAssign | ast.Assign)]
    return len(methods), len(attributes)


def uses_of_any(trees: dict[str, ast.Module]) -> int:
    names = (node for tree in trees.values() for node in ast.walk(tree))
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in names)


def loaded_imports(tree: ast.Module, modules: set[str]) -> set[str]:
    """The modules of the package that a module imports as it is loaded."""
    imports: set[str] = set()
    waiting: list[ast.AST] = [*tree.body]
    for node in waiting:
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            imports |= {name if name in modules else node.module for name in names}
        elif isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not typing_only and not isinstance(node, FUNCTIONS):
            waiting += ast.iter_child_nodes(node)
    return imports & modules


def longest_chain(trees: dict[str, ast.Module]) -> list[str]:
    """The longest list of modules each of which imports the next one."""
    imports = {name: loaded_imports(tree, {*trees}) for name, tree in trees.items()}
    chains: dict[str, list[str]] = {}

    def chain_from(name: str) -> list[str]:
        if name not in chains:
            chains[name] = []  # of a circle
            below = [chain_from(other) for other in sorted(imports[name] - {name})]
            chains[name] = [name, *max(below, key=len, default=[])]
        return chains[name]

    return max((chain_from(name) for name in sorted(trees)), key=len)


# --- a tiny run ----------------------------------------------------------------------------------


@dataclass
class Work:
    """What one command of a tiny run went through."""

    functions: int
    modules: int
    opens: int
    locks: int


def write_rows(path: Path) -> None:
    """Short texts of two classes, always the same."""
    draw = random.Random(1)
    words = {"good": "fine lovely great superb charming warm", "bad": "dull awful poor weak cold"}
    lines = ["text,label"]
    for number in range(ROWS):
        label = ("good", "bad")[number % 2]
        text = draw.choices(words[label].split(), k=3) + draw.choices(
            ["a", "film", "that", "was"], k=4
        )
        draw.shuffle(text)
        lines.append(f"{' '.join(text)} {number},{label}")
    path.write_text("\n".join(lines) + "\n")


class Counters:
    """Counts while a command works in this process. package: the folder of ensue's sources."""

    def __init__(self, package: Path, data: Path, run: Path) -> None:
        self._package, self._data, self._lock = f"{package}{os.sep}", data, run / "lock"
        self._called: set[CodeType] = set()
        self._opens = self._locks = 0

    def start(self) -> None:
        sys.addaudithook(self._audit)
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def counted(self) -> Work:
        sys.setprofile(None)
        modules = [name for name in sys.modules if name.split(".")[0] == "ensue"]
        return Work(len(self._called), len(modules), self._opens, self._locks)

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(self._package) and _is_function(code):
            self._called.add(code)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            self._opens += Path(os.fsdecode(arguments[0])).absolute() == self._data
        elif event == "fcntl.flock":
            self._locks += _is_open_as(arguments[0], self._lock)


def _is_function(code: CodeType) -> bool:
    """Whether it has a name: no comprehension, and not the body of a module or a class."""
    return bool(code.co_flags & CO_OPTIMIZED) and not code.co_name.startswith("<")


def _is_open_as(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def counted_here(root: Path, words: list[str], result: Path) -> None:
    """Runs a command in this process, and writes what it went through into a file."""
    package = root / "src" / "ensue"
    counters = Counters(package, Path(DATA_FILE).absolute(), Path(RUN).absolute())
    sys.argv = ["ensue", *words]
    counters.start()
    try:
        runpy.run_module("ensue", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    finally:
        result.write_text(json.dumps(asdict(counters.counted())))


def tiny_run(root: Path) -> Iterator[tuple[str, Work]]:
    """Each command in a process of its own, one after another in one folder."""
    with tempfile.TemporaryDirectory(prefix="house-") as folder:
        write_rows(Path(folder, DATA_FILE))
        result = Path(folder, "counted.json")
        for verb, words in VERBS.items():
            child = [sys.executable, __file__, "--root", str(root), "--child", str(result), *words]
            surroundings = {**os.environ, "PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
            done = subprocess.run(
                child, cwd=folder, env=surroundings, capture_output=True, text=True
            )
            if done.returncode:
                raise SystemExit(f"ensue {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
            yield verb, Work(**json.loads(result.read_text()))


# --- the table -----------------------------------------------------------------------------------


def figures(root: Path) -> Iterator[tuple[str, str]]:
    """Rows of the table: what, how many."""
    package = root / "src" / "ensue"
    trees = sources(package)
    methods, attributes = size_of_task(trees)
    yield "files", f"{len(trees):,}"
    yield "lines of code", f"{sum(map(code_lines, package.rglob('*.py'))):,}"
    yield "methods of Task", str(methods)
    yield "attributes of Task", str(attributes)
    yield "uses of Any", f"{uses_of_any(trees):,}"
    yield "longest import chain", str(len(longest_chain(trees)))
    for verb, work in tiny_run(root):
        yield f"{verb}: functions called", str(work.functions)
        yield f"{verb}: modules imported", str(work.modules)
        yield f"{verb}: opens of the data file", str(work.opens)
        yield f"{verb}: locks of the run folder", str(work.locks)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=HERE, help="checkout to count")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments, words = parser.parse_known_args()
    root = arguments.root.resolve()
    if arguments.child is not None:
        counted_here(root, words, arguments.child)
        return
    for what, count in figures(root):
        print(f"{what:<34}{count:>8}", flush=True)


if __name__ == "__main__":
    main()
