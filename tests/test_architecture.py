"""The laws of the house: arrows point one way, importing does nothing, the base is small."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "ensue"

# A part imports only from itself and from those above it.
PARTS = [
    "errors",
    "equations",
    "cells",
    "engine",
    "layers",
    "decoding",
    "data",
    "training",
    "models",
    "runs",
    "study",
    "diagnose",
    "export",
    "report",
    "serve",
    "doctor",
    "demo",
    "bench",
    "cli",
]
# These see less than what stands above them: decoding knows a `step` function and no model,
# report reads files only.
ONLY = {"decoding": {"errors"}, "report": {"errors"}}

FORBIDDEN_NAMES = {"util", "utils", "helper", "helpers", "common", "base", "manager", "managers"}

# What the extras bring, by the names they are imported under; the base install has none.
OPTIONAL = {
    "PIL",
    "fastapi",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "optuna",
    "pyarrow",
    "sacrebleu",
    "tensorboard",
    "tokenizers",
    "uvicorn",
    "ziglang",
}
MOST_PACKAGES = 16


# --- arrows ---------------------------------------------------------------------------


def part_of(name: str) -> str:
    """The part that a module belongs to: `ensue.cells.lstm` → `cells`, `ensue` → ``."""
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
                kept = len(here) - node.level + is_package
                origin = ".".join([*here[:kept], *([origin] if origin else [])])
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
        tree = ast.parse(file.read_text(encoding="utf-8"), filename=str(file))
        for line, name in imports(tree, module, is_package):
            if name != "ensue.__version__" and part_of(name) not in allowed(part):
                wrong.append(f"{path}:{line}: {part} may not import {name}")
    return wrong


def test_arrows_point_one_way() -> None:
    assert wrong_arrows(PACKAGE) == []


@pytest.mark.parametrize(
    ("path", "code", "wrong"),
    [
        ("cells/lstm.py", "from ensue.equations import Node", False),
        ("cells/lstm.py", "from ensue.cells.cell import Cell", False),
        ("cells/lstm.py", "from .cell import Cell", False),
        ("cells/lstm.py", "from ..errors import ShapeError", False),
        ("cells/__init__.py", "from .cell import Cell", False),
        ("cells/__init__.py", "from ..engine import run", True),
        ("cells/lstm.py", "from ensue.engine import run", True),
        ("cells/lstm.py", "import ensue.engine.native as native", True),
        ("cells/lstm.py", "from ensue import engine", True),
        ("cells/lstm.py", "from .. import engine", True),
        ("cells/lstm.py", "from ..engine import run", True),
        ("cells/lstm.py", "def f():\n    if x:\n        import ensue.layers", True),
        ("cells/lstm.py", "importlib.import_module('ensue.models')", True),
        ("cells/lstm.py", "from ensue import LSTM", True),
        ("cells/lstm.py", "import ensue", True),
        ("cells/lstm.py", "import ensued, torch\nfrom ensued.cli import x", False),
        ("errors.py", "import ensue.equations", True),
        ("decoding/beam.py", "from ensue.layers import Recurrent", True),
        ("report/page.py", "from ensue.models import Classifier", True),
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


# --- importing ------------------------------------------------------------------------

# Runs by itself: imports the modules named on its command line, one by one, and prints what
# each changed or tried to load. Third-party packages come first; their doings are not ours.
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
    importlib.import_module(module)
    after = snapshot()
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
    """Every module of the package by name, the package itself first."""
    names = set()
    for file in PACKAGE.rglob("*.py"):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        names.add(".".join(["ensue", *[part for part in parts if part != "__init__"]]))
    return sorted(names)


def effects_of_importing(names: list[str], folder: Path) -> list[str]:
    """What WATCH has to say; `folder` is where the process runs and finds more modules."""
    run = subprocess.run(
        [sys.executable, "-c", WATCH, ",".join(OPTIONAL), *names],
        cwd=folder,
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
    found = "\n".join(effects_of_importing(list(guilty), tmp_path))
    for name, (_, what) in guilty.items():
        assert any(line.startswith(f"{name}: ") and what in line for line in found.splitlines()), (
            f"{name} went unseen in:\n{found}"
        )


# --- the base install -----------------------------------------------------------------


def reachable(requirements: Iterable[str]) -> set[str]:
    """The installed distributions that these requirements bring, themselves included."""
    found: set[tuple[str, str]] = set()  # distribution and extra, "" for none
    waiting = [Requirement(line) for line in requirements]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras}:
            if (name, extra) not in found:
                found.add((name, extra))
                needed = [Requirement(line) for line in metadata.requires(name) or []]
                waiting += [
                    one
                    for one in needed
                    if one.marker is None or one.marker.evaluate({"extra": extra})
                ]
    return {name for name, _ in found}


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
