"""The laws of the house: arrows point one way, importing does nothing, the base is small."""

import ast
import importlib
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import ensue
from ensue.tasks import FILES, ROOMS, TASKS

MODEL_CLASSES = {TASKS[name].model_class.__name__ for name in ROOMS}
MODEL_CLASSES |= {type(TASKS[name]).__name__ for name in ROOMS}

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "ensue"
BENCHMARKS = ROOT / "benchmarks"

# A part imports only from itself and from those above it.
PARTS = [
    "escape",
    "errors",
    "renamed",
    "signals",
    "files",
    "settings",
    "setting_words",
    "drawing",
    "equations",
    "cells",
    "engine",
    "layers",
    "decoding",
    "data",
    "metrics",
    "training",
    "jobs",
    "tasks",
    "runs",
    "study",
    "diagnose",
    "export",
    "report",
    "serve",
    "sklearn",
    "doctor",
    "demo",
    "cli",
    "__main__",
]
# These see less than the modules above them: decoding knows a `step` function and no model,
# report reads files only.
ONLY = {"decoding": {"errors"}, "report": {"errors"}}

FORBIDDEN_NAMES = {"util", "utils", "helper", "helpers", "common", "base", "manager", "managers"}

# What the extras bring, by the names they are imported under; the base install has none.
OPTIONAL = {
    "PIL",
    "datasets",
    "fastapi",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "optuna",
    "pandas",
    "polars",
    "psycopg",
    "pyarrow",
    "ray",
    "sacrebleu",
    "sklearn",
    "tensorboard",
    "tokenizers",
    "uvicorn",
    "vl_convert",
    "ziglang",
}
MOST_PACKAGES = 16
# Parts that are of no use without an extra, and what of it they load when they are imported.
NEED_AN_EXTRA = {
    "sklearn": ("sklearn.base", "sklearn.utils.multiclass", "sklearn.utils.validation"),
}


# --- arrows ---------------------------------------------------------------------------


@cache
def parsed(file: Path) -> ast.Module:
    """The tree of a file, which several laws walk over."""
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


@pytest.fixture(scope="module", autouse=True)
def _trees_are_forgotten() -> Iterator[None]:
    yield
    parsed.cache_clear()


def part_of(name: str) -> str:
    """The part that a module belongs to: `ensue.cells.gated` → `cells`, `ensue` → ``."""
    return name.split(".")[1] if "." in name else ""


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and full name of everything in Ensue that a module imports, at any depth."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:  # one dot is the package that holds the module
                here = module.split(".")
                length = len(here) - node.level + is_package
                origin = ".".join([*here[:length], *([origin] if origin else [])])
            names = [f"{origin}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and node.args:  # import_module("ensue.cells")
            called = node.func.attr if isinstance(node.func, ast.Attribute) else None
            called = node.func.id if isinstance(node.func, ast.Name) else called
            first = node.args[0]
            if called in {"import_module", "__import__"} and isinstance(first, ast.Constant):
                names = [str(first.value)]
        for name in names:
            if name.split(".")[0] == "ensue":
                yield node.lineno, name


def allowed(part: str) -> set[str]:
    above = set(PARTS[: PARTS.index(part)])
    return ONLY.get(part, above) | {part}


def wrong_arrows(package: Path) -> list[str]:
    """Every import that points downwards, as `file:line: what`."""
    wrong = []
    for file in sorted(package.rglob("*.py")):
        path = file.relative_to(package)
        is_package = path.name == "__init__.py"
        names = path.parts[:-1] if is_package else path.with_suffix("").parts
        module = ".".join(["ensue", *names])
        part = part_of(module)
        if not part:  # ensue/__init__.py itself offers names of all parts
            continue
        if part not in PARTS:
            wrong.append(f"{path}: {part} is no part of the house; PARTS lists them")
            continue
        tree = parsed(file)
        for line, name in imports(tree, module, is_package):
            if name != "ensue.__version__" and part_of(name) not in allowed(part):
                wrong.append(f"{path}:{line}: {part} may not import {name}")
    return wrong


def test_arrows_point_one_way() -> None:
    assert wrong_arrows(PACKAGE) == []


@pytest.mark.parametrize(
    ("path", "code", "wrong"),
    [
        ("cells/gated.py", "from ensue.equations import Node", False),
        ("cells/gated.py", "from ensue.cells.cell import Cell", False),
        ("cells/gated.py", "from .cell import Cell", False),
        ("cells/gated.py", "from ..errors import ShapeError", False),
        ("cells/__init__.py", "from .cell import Cell", False),
        ("cells/__init__.py", "from ..engine import run", True),
        ("cells/gated.py", "from ensue.engine import run", True),
        ("cells/gated.py", "import ensue.engine.native as native", True),
        ("cells/gated.py", "from ensue import engine", True),
        ("cells/gated.py", "from .. import engine", True),
        ("cells/gated.py", "from ..engine import run", True),
        ("cells/gated.py", "def f():\n    if x:\n        import ensue.layers", True),
        ("cells/gated.py", "importlib.import_module('ensue.tasks')", True),
        ("cells/gated.py", "from ensue import LSTM", True),
        ("cells/gated.py", "import ensue", True),
        ("cells/gated.py", "import ensued, torch\nfrom ensued.cli import x", False),
        ("errors.py", "import ensue.equations", True),
        ("decoding/beam.py", "from ensue.layers import Recurrent", True),
        ("report/page.py", "from ensue.tasks.model import Model", True),
        ("doctor.py", "from ensue import __version__", False),
        ("doctor.py", "from ensue.cli import app", True),
        ("cli.py", "from ensue.doctor import examine", False),
        ("odds/ends.py", "", True),
    ],
)
def test_a_wrong_arrow_is_seen(tmp_path: Path, path: str, code: str, wrong: bool) -> None:
    file = tmp_path / path
    file.parent.mkdir(exist_ok=True)
    file.write_text(code)
    assert bool(wrong_arrows(tmp_path)) == wrong


# --- rooms ----------------------------------------------------------------------------

# Who may name a task: the table of them and that of their words on the command line, the public
# face, the demo that shows one.
MAY_NAME_TASKS = (
    "tasks/__init__.py",
    "tasks/seq2seq/options.py",
    "tasks/supervised/options.py",
    "__init__.py",
    "demo/",
)
ROOM_NAMES = frozenset(ROOMS)
# Words that are names of tasks and of other things too: a column, a table of settings, …
ROLES = frozenset({"tree", "label", "table", "image", "caption", "language"})


def exempt(path: Path) -> bool:
    return any(str(path) == prefix or str(path).startswith(prefix) for prefix in MAY_NAME_TASKS)


def room_of(name: str) -> str:
    """`ensue.tasks.label.outputs` → `label`; "" for what is in no room."""
    parts = name.split(".")
    return (
        parts[2]
        if parts[:2] == ["ensue", "tasks"] and parts[2:3] and parts[2] in ROOM_NAMES
        else ""
    )


def foreign_rooms(package: Path) -> list[str]:
    """Every import of a room from outside of it, as `file:line: what`."""
    wrong = []
    for file in sorted(package.rglob("*.py")):
        path = file.relative_to(package)
        if exempt(path):
            continue
        parts = path.with_suffix("").parts
        inside = parts[1] if parts[:1] == ("tasks",) and len(parts) > 1 else ""
        module = ".".join(["ensue", *(part for part in parts if part != "__init__")])
        tree = parsed(file)
        for line, name in imports(tree, module, path.name == "__init__.py"):
            if room_of(name) not in ("", inside):
                wrong.append(f"{path}:{line}: imports {name}")
    return wrong


def test_nobody_looks_into_a_room() -> None:
    assert foreign_rooms(PACKAGE) == []


def named_tasks(tree: ast.AST, names: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Line and name of every comparison, match, look-up and isinstance by a task's name or
    class."""
    for node in ast.walk(tree):
        nodes: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            nodes = [node.left, *node.comparators]
            nodes += [
                element
                for many in nodes
                if isinstance(many, ast.Tuple | ast.List | ast.Set)
                for element in many.elts
            ]
        elif isinstance(node, ast.MatchValue):
            nodes = [node.value]
        elif isinstance(node, ast.Subscript):
            nodes = [node.slice]
        elif isinstance(node, ast.Dict):
            nodes = [key for key in node.keys if key is not None]
        for operand in nodes:
            if isinstance(operand, ast.Constant) and operand.value in names:
                yield node.lineno, str(operand.value)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "isinstance"
        ):
            for operand in ast.walk(node.args[1]):
                if isinstance(operand, ast.Name) and operand.id in MODEL_CLASSES:
                    yield node.lineno, operand.id


def asking_which_task(package: Path) -> list[str]:
    """Everywhere outside of the rooms that asks which task it has. Words that name a role too are
    looked at in runs/ and cli/ only by comparison with something that is called task or kind."""
    wrong = []
    for file in sorted(package.rglob("*.py")):
        path = file.relative_to(package)
        inside_room = (
            path.parts[0] == "tasks" and len(path.parts) > 2 and path.parts[1] in ROOM_NAMES
        )
        if exempt(path) or inside_room:
            continue
        tree = parsed(file)
        names = ROOM_NAMES - ROLES
        if path.parent == Path("tasks"):  # a task that is one file may say its own name
            names -= {path.stem}
        wrong += [f"{path}:{line}: {name}" for line, name in named_tasks(tree, names)]
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and any(
                isinstance(side, ast.Attribute) and side.attr in ("task", "kind")
                for side in [node.left, *node.comparators]
            ):
                wrong += [
                    f"{path}:{node.lineno}: {side.value}"
                    for side in [node.left, *node.comparators]
                    if isinstance(side, ast.Constant) and side.value in ROLES
                ]
    return wrong


def test_nobody_asks_which_task_it_has() -> None:
    assert asking_which_task(PACKAGE) == []


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("runs/train.py", "from ensue.tasks.label.task import Labeller"),
        ("tasks/image.py", "from ensue.tasks.caption import Captioner"),
        ("tasks/seq2seq/text.py", "from ensue.tasks.translate import TASK"),
        ("tasks/rows/task.py", "from ensue.tasks.classify import task"),
        ("tasks/regress.py", "from ensue.tasks.classify import Classifier"),
        ("tasks/regress.py", "from ensue.tasks import classify"),
        ("tasks/table.py", "from ensue.tasks.label.outputs import Chain"),
        ("tasks/label/task.py", "from ensue.tasks.table import TableModel"),
        ("tasks/supervised/task.py", "from ensue.tasks.table import TableModel"),
        ("tasks/supervised/inputs/tree.py", "from ensue.tasks.tree import TASK"),
        ("tasks/trees/explain.py", "from ensue.tasks.tree import TASK"),
        ("tasks/columns/recognise.py", "from ensue.tasks.table import TASK"),
        ("tasks/pictures/reader.py", "from ensue.tasks.image import ImageSettings"),
        ("cli/learning.py", "def f():\n    from ensue.tasks.forecast.task import Forecaster"),
    ],
)
def test_a_look_into_a_room_is_seen(tmp_path: Path, path: str, code: str) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(code)
    assert foreign_rooms(tmp_path)


@pytest.mark.parametrize(
    "code",
    [
        "if config.task == 'forecast': pass",
        "x = config.task in ('translate', 'caption')",
        "match task:\n    case 'classify': pass",
        "x = {'regress': 1}[task]",
        "x = HOW['match']",
        "x = isinstance(model, Forecaster)",
        "x = isinstance(model, (A, tasks.Labeller, Captioner))",
        "x = config.task == 'label'",
    ],
)
@pytest.mark.parametrize(
    "path", ["runs/train.py", "tasks/supervised/task.py", "tasks/rows/task.py", "tasks/image.py"]
)
def test_asking_which_task_is_seen(tmp_path: Path, path: str, code: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(code)
    assert asking_which_task(tmp_path)


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("tasks/match.py", False),
        ("tasks/forecast/task.py", False),
        ("tasks/supervised/inputs/pair.py", True),
        ("tasks/classify.py", True),
        ("tasks/matches.py", True),
    ],
)
def test_a_task_of_one_file_may_say_its_own_name(tmp_path: Path, path: str, wrong: bool) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text("x = OPTIONS['match']")
    assert bool(asking_which_task(tmp_path)) == wrong


def test_a_task_is_a_file_or_a_folder() -> None:
    for name in ROOMS:
        assert (PACKAGE / "tasks" / f"{name}.py").is_file() == (name in FILES), name
        assert (PACKAGE / "tasks" / name / "task.py").is_file() == (name not in FILES), name


# --- sizes ----------------------------------------------------------------------------

# Where a room may want walls, or a concept a name: join what is read together, and never squeeze
# lines to stay below.
MOST_FILES, MOST_FUNCTION_LINES, MOST_FILE_LINES, MOST_PARAMETERS, LONGEST_CHAIN = (
    40,
    60,
    600,
    8,
    25,
)


def too_large(package: Path) -> list[str]:
    """Every folder, file, function and signature beyond the limits."""
    wrong = []
    for folder in [
        package,
        *(folder_inside for folder_inside in package.rglob("*") if folder_inside.is_dir()),
    ]:
        files = [file for file in folder.iterdir() if file.is_file()]
        if len(files) > MOST_FILES:
            wrong.append(f"{folder.name}/: {len(files)} files")
    for file in sorted(package.rglob("*.py")):
        path, text = file.relative_to(package), file.read_text(encoding="utf-8")
        if (lines := text.count("\n")) > MOST_FILE_LINES:
            wrong.append(f"{path}: {lines} lines")
        wrong += [f"{path}:{function}" for function in large_functions(parsed(file))]
    return wrong


def large_functions(tree: ast.AST) -> Iterator[str]:
    public = {
        id(function)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        for function in node.body
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = (node.end_lineno or 0) - node.lineno + 1
        if lines > MOST_FUNCTION_LINES:
            yield f"{node.lineno}: {node.name} has {lines} lines"
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        count = len(arguments) - bool(arguments and arguments[0].arg in ("self", "cls"))
        constructor = node.name == "__init__" and id(node) in public
        if count > MOST_PARAMETERS and not constructor:
            yield f"{node.lineno}: {node.name} has {count} parameters"


@pytest.mark.parametrize("folder", [PACKAGE, BENCHMARKS / "engine"], ids=lambda folder: folder.name)
def test_nothing_is_too_large(folder: Path) -> None:
    assert too_large(folder) == []


def test_what_is_too_large_is_seen(tmp_path: Path) -> None:
    long = "def f():\n" + "    x = 1\n" * MOST_FUNCTION_LINES
    (tmp_path / "a.py").write_text(long)
    (tmp_path / "b.py").write_text("x = 1\n" * (MOST_FILE_LINES + 1))
    (tmp_path / "c.py").write_text("def f(a, b, c, d, e, f, g, h, i): pass\n")
    (tmp_path / "d.py").write_text(
        "class _A:\n    def __init__(self, a, b, c, d, e, f, g, h, i): pass"
    )
    (tmp_path / "e.py").write_text(
        "class A:\n    def __init__(self, a, b, c, d, e, f, g, h, i): pass"
    )
    assert [line.split(":")[0] for line in too_large(tmp_path)] == ["a.py", "b.py", "c.py", "d.py"]
    for number in range(MOST_FILES):
        (tmp_path / f"f{number}.txt").touch()
    assert "files" in too_large(tmp_path)[0]


def chains(package: Path) -> dict[str, list[str]]:
    """For each module the longest chain of modules, each importing the next when it is loaded."""
    trees = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package).with_suffix("").parts
        name = ".".join(["ensue", *(part for part in parts if part != "__init__")])
        trees[name] = (parsed(file), file.name == "__init__.py")
    chains_of: dict[str, list[str]] = {}

    def longest(module: str, above: tuple[str, ...]) -> list[str]:
        assert module not in above, f"{module} imports itself by {' → '.join(above)}"
        if module not in chains_of:
            tree, is_package = trees[module]
            below = {known(name) for _, name in imports(at_loading(tree), module, is_package)}
            below -= {"", "ensue", module}
            tails = [longest(module_below, (*above, module)) for module_below in sorted(below)]
            chains_of[module] = [module, *max(tails, key=len, default=[])]
        return chains_of[module]

    def known(name: str) -> str:
        while name not in trees and "." in name:
            name = name.rpartition(".")[0]
        return name

    for module in trees:
        longest(module, ())
    return chains_of


def at_loading(tree: ast.Module) -> ast.Module:
    """Without what is imported later, or for types only."""
    body = [
        statement
        for statement in tree.body
        if isinstance(statement, ast.Import | ast.ImportFrom | ast.Try)
        or (isinstance(statement, ast.If) and "TYPE_CHECKING" not in ast.dump(statement.test))
    ]
    return ast.Module(body, [])


def test_the_longest_chain_of_imports() -> None:
    longest = max(chains(PACKAGE).values(), key=len)
    print(f"{len(longest)} modules: {' → '.join(longest)}")
    assert len(longest) < LONGEST_CHAIN, " → ".join(longest)


# Cells whose layers are drop-ins for torch.nn's, in `ensue.layers`, and have torch.nn's names.
DROP_INS = {"GRU", "LSTM"}


def test_every_public_name_is_defined_once() -> None:
    where: dict[str, list[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in parsed(file).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                where.setdefault(node.name, []).append(str(file.relative_to(PACKAGE)))
    names = [name for name in ensue.__all__ if name != "__version__"]
    assert {name for name in names if len(where.get(name, ())) > 1} == DROP_INS
    for name in names:
        assert getattr(ensue, name).__module__.startswith("ensue."), name


# --- names ----------------------------------------------------------------------------


def empty_names(paths: Iterable[Path]) -> list[str]:
    """Those paths with a part whose name says nothing about what is inside."""
    return [
        str(path)
        for path in paths
        for part in path.parts
        if FORBIDDEN_NAMES & set(part.lower().split(".")[0].split("_"))
    ]


def test_no_name_is_empty() -> None:
    folders = ("src", "tests", "benchmarks", "docs", "examples")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*")]
    assert empty_names(file.relative_to(ROOT) for file in files) == []


def test_an_empty_name_is_seen() -> None:
    wrong = [Path("src/utils.py"), Path("a/Base/b.py"), Path("text_helpers.py")]
    assert empty_names([*wrong, Path("database.py")]) == [str(path) for path in wrong]


# --- what lies next to the package --------------------------------------------------------


def _names_taken(file: Path) -> list[tuple[str, str]]:
    """Module and name of each thing that a file takes from the package."""
    nodes = ast.walk(ast.parse(file.read_text()))
    imports_absolute = [
        n for n in nodes if isinstance(n, ast.ImportFrom) and not n.level and n.module
    ]
    ours = [n for n in imports_absolute if n.module.split(".")[0] in ("ensue", "benchmarks")]
    return [(n.module, alias.name) for n in ours for alias in n.names]


MEASUREMENTS = sorted(BENCHMARKS.rglob("*.py"))


@pytest.mark.parametrize("file", MEASUREMENTS, ids=lambda file: str(file.relative_to(BENCHMARKS)))
def test_measurements_import_what_is_there(file: Path) -> None:
    for module, name in _names_taken(file):
        imported = importlib.import_module(module)
        assert hasattr(imported, name), f"{file.name}: {module} has no {name}"


# --- importing ------------------------------------------------------------------------

# Runs by itself: imports the modules named on its command line, one by one, and prints what
# each changed or tried to load. Third-party packages come first; their doings are not ours, nor
# are those of modules with a ! before their names.
WATCH = """
import importlib, locale, logging, os, random, signal, sys, threading, warnings
import numpy, rich.syntax, rich.table, torch, typer

optional = set(sys.argv[1].split(","))
tried = []

class Recorder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in optional:
            tried.append(name)

def logger_state(logger):
    return logger.level, tuple(map(id, logger.handlers)), logger.propagate, logger.disabled

def loggers():
    ours = [name for name in logging.root.manager.loggerDict if name.startswith("ensue")]
    return {name: logger_state(logging.getLogger(name)) for name in ours}

def snapshot():
    return {
        "torch threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "torch default dtype": torch.get_default_dtype(),
        "torch default device": torch.get_default_device(),
        "torch gradient mode": torch.is_grad_enabled(),
        "torch deterministic mode": torch.are_deterministic_algorithms_enabled(),
        "torch random state": torch.get_rng_state().tolist(),
        "numpy random state": str(numpy.random.get_state(legacy=False)),
        "numpy error state": numpy.geterr(),
        "random state": random.getstate(),
        "root logger": logger_state(logging.root),
        "warnings filters": list(warnings.filters),
        "working directory": os.getcwd(),
        "environment": dict(os.environ),
        "locale": locale.setlocale(locale.LC_ALL),
        "signal handlers": [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)],
        "exception hook": sys.excepthook,
        "module search path": list(sys.path),
        "threads": threading.active_count(),
    }

sys.meta_path.insert(0, Recorder())
before = snapshot()
for module in sys.argv[2:]:
    importlib.import_module(module.removeprefix("!"))
    after = snapshot()
    if module.startswith("!"):
        before = after
        tried.clear()
        continue
    for what in before:
        if before[what] != after[what]:
            print(f"{module}: importing it changes the {what}")
    for name, state in loggers().items():
        if state != (0, (), True, False):
            print(f"{module}: importing it configures the logger {name}")
    for name in tried:
        print(f"{module}: importing it tries to load {name}, which is optional")
    before = after
    tried.clear()
"""


def modules() -> list[str]:
    """Every module of the package by name, the package itself first, those of `ensue bench` too;
    parts that need an extra last, after the modules of it that they load."""
    names = set()
    for file in (*PACKAGE.rglob("*.py"), *(BENCHMARKS / "engine").rglob("*.py")):
        above = PACKAGE.parent if file.is_relative_to(PACKAGE) else ROOT
        parts = file.relative_to(above).with_suffix("").parts
        names.add(".".join(part for part in parts if part != "__init__"))
    plain = sorted(name for name in names if part_of(name) not in NEED_AN_EXTRA)
    for part, loaded in NEED_AN_EXTRA.items():
        plain += [f"!{name}" for name in loaded]
        plain += sorted(name for name in names if part_of(name) == part)
    return plain


def effects_of_importing(names: list[str], folder: Path) -> list[str]:
    """What WATCH has to say; `folder` is where the process runs and finds more modules."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-c", WATCH, ",".join(OPTIONAL), *names],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_importing_does_nothing(tmp_path: Path) -> None:
    assert effects_of_importing(modules(), tmp_path) == []


def test_an_effect_of_importing_is_seen(tmp_path: Path) -> None:
    guilty = {
        "seeds": ("import torch; torch.manual_seed(1)", "torch random state"),
        "draws": ("import numpy; numpy.random.rand()", "numpy random state"),
        "dtype": ("import torch; torch.set_default_dtype(torch.float64)", "torch default dtype"),
        "limits": (
            "import torch; torch.set_num_threads(torch.get_num_threads() + 1)",
            "torch threads",
        ),
        "logs": ("import logging; logging.basicConfig()", "root logger"),
        "speaks": ("import logging; logging.getLogger('ensue.x').setLevel(10)", "logger ensue.x"),
        "hushes": ("import warnings; warnings.simplefilter('ignore')", "warnings filters"),
        "sets": ("import os; os.environ['X_ENSUE'] = '1'", "environment"),
        "loads": ("try:\n    import tokenizers.x\nexcept ImportError:\n    pass", "tokenizers"),
        "moves": ("import os; os.chdir('/')", "working directory"),
    }
    for name, (code, _) in guilty.items():
        (tmp_path / f"{name}.py").write_text(code)
    effects = "\n".join(effects_of_importing(list(guilty), tmp_path))
    for name, (_, what) in guilty.items():
        assert any(
            line.startswith(f"{name}: ") and what in line for line in effects.splitlines()
        ), f"{name} went unseen in:\n{effects}"


# --- the base install -----------------------------------------------------------------


def reachable(requirements: Iterable[str]) -> set[str]:
    """The installed distributions that these requirements bring, themselves included."""
    extras: set[tuple[str, str]] = set()  # distribution and extra, "" for none
    waiting = [Requirement(line) for line in requirements]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras}:
            if (name, extra) not in extras:
                extras.add((name, extra))
                needed = [Requirement(line) for line in metadata.requires(name) or []]
                waiting += [
                    one
                    for one in needed
                    if one.marker is None or one.marker.evaluate({"extra": extra})
                ]
    return {name for name, _ in extras}


def test_the_base_install_is_small() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ours = sorted(reachable(project["dependencies"]) - reachable(["torch"]))
    assert len(ours) <= MOST_PACKAGES, f"{len(ours)} packages beyond torch's own: {ours}"


def test_extras_are_followed_only_where_asked_for() -> None:
    plain = reachable(["pytest"])
    assert {"pytest", "pluggy", "iniconfig"} <= plain
    assert "hypothesis" not in plain  # it stands in pytest's extra `dev`
    assert reachable(["ensue[dev]"]) >= {"hypothesis", "torch"}
    assert "hypothesis" not in reachable(["ensue"])


# --- the repository -------------------------------------------------------------------------------

AT_THE_ROOT = {
    ".ci", ".editorconfig", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile",
    "README.md", "SECURITY.md", "benchmarks", "constraints.txt", "docs", "examples",
    "pyproject.toml", "src", "tests",
}  # fmt: skip


def test_nothing_strange_stands_at_the_root() -> None:
    """Documents that are run by hand leave runs and pictures where they are run."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone: nothing tells what belongs to the repository")
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=True
    )
    names = {name.split("/")[0] for name in listed.stdout.split("\0") if name}
    assert names - AT_THE_ROOT == set()
