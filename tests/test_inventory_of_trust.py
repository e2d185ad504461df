"""The inventory of trust in SECURITY.md, compared with the source: every place where bytes from
outside can decide which code runs, which path is opened or how much memory is requested."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "ensue"
SECURITY = (ROOT / "SECURITY.md").read_text("utf-8")
IMPORTS = {
    *("import_module", "__import__", "run_path", "run_module", "spec_from_file_location"),
    *("CDLL", "PyDLL", "LoadLibrary", "dlopen", "load_library", "entry_points"),
}
BUILT_IN = {"exec", "eval", "compile"}
STARTS = {"run", "Popen", "call", "check_call", "check_output", "getoutput"}
SYSTEM = {"system", "popen", "execv", "execve", "execvp", "posix_spawn", "spawnv", "startfile"}
OPENS = {
    *("read_bytes", "read_text", "safe_open", "load_file", "fromfile", "memmap", "loadtxt"),
    *("RDBStorage", "ZipFile", "FileIO"),
}
# np.zeros(…), torch.empty(…): of these parts of the package, which read what others wrote.
ALLOCATIONS = {"zeros", "empty", "full", "ones", "fromfile", "memmap"}
READING = (
    *(
        "data/",
        "files/",
        "runs/",
        "jobs/",
        "cli/",
        "study/selection/",
        "tasks/codec.py",
        "tasks/saved.py",
    ),
    *("tasks/transfer/loading.py", "tasks/pictures/", "tasks/language/ngram/"),
    *("tasks/evaluation/", "training/checkpoint.py"),
)


def name_of(call: ast.Call) -> tuple[str, str]:
    """What is called: the part before the last dot, and the part after it."""
    before, _, last = ast.unparse(call.func).rpartition(".")
    return before, last


def runs_code(call: ast.Call) -> bool:
    before, last = name_of(call)
    return (
        last in IMPORTS
        or (not before and last in BUILT_IN)
        or (before == "subprocess" and last in STARTS)
        or (before == "os" and last in SYSTEM)
    )


def opens_path(call: ast.Call) -> bool:
    before, last = name_of(call)
    plain = before in ("", "os", "io", "gzip", "tarfile", "sqlite3") and last in ("open", "connect")
    method = last == "open" and bool(before) and before != "webbrowser"
    return last in OPENS or plain or method


def allocates(call: ast.Call) -> bool:
    before, last = name_of(call)
    return last == "bytearray" or (before in ("np", "torch") and last in ALLOCATIONS)


def in_reading_parts(name: str) -> bool:
    return name.startswith(READING)


KINDS: dict[str, tuple[Callable[[ast.Call], bool], Callable[[str], bool]]] = {
    "code": (runs_code, lambda name: True),
    "path": (opens_path, lambda name: True),
    "memory": (allocates, in_reading_parts),
}


def calls_in(source: str) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]


def places(kind: str) -> set[str]:
    """The modules with such a call."""
    decides, fits = KINDS[kind]
    names = {path: path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    return {
        name
        for path, name in names.items()
        if fits(name) and any(map(decides, calls_in(path.read_text("utf-8"))))
    }


def section(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, row by row."""
    text = SECURITY.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_inventory_is_that_of_the_source(kind: str) -> None:
    listed = [
        module
        for decides, modules, *_ in section("Inventory of trust")
        if decides == kind
        for module in re.findall(r"`([\w/]+\.py)`", modules)
    ]
    assert sorted(listed) == sorted(places(kind))


def test_every_row_names_its_source_and_its_guard() -> None:
    rows = section("Inventory of trust")
    assert {row[0] for row in rows} == KINDS.keys()
    assert [row for row in rows if len(row) != 4 or not all(row)] == []


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("code", "importlib.import_module(name)"),
        ("code", "eval(text)"),
        ("code", "subprocess.run(words)"),
        ("code", "os.system(line)"),
        ("code", "ctypes.CDLL(path)"),
        ("path", "open(name)"),
        ("path", "Path(name).read_bytes()"),
        ("path", "place.open('rb')"),
        ("path", "sqlite3.connect(path)"),
        ("path", "os.open(name, flags)"),
        ("memory", "np.zeros(shape)"),
        ("memory", "bytearray(size)"),
        ("memory", "torch.empty(sizes)"),
    ],
)
def test_each_kind_of_call_is_seen(kind: str, code: str) -> None:
    assert [call for call in calls_in(code) if KINDS[kind][0](call)]
    assert not [call for call in calls_in("re.compile(text), model.run(x)") if KINDS[kind][0](call)]


def variables() -> set[str]:
    """The environment variables that the package reads, by their names in the source."""
    names = set[str]()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        constants = {
            target.id: node.value.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            key: ast.expr | None = None
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                *("os.environ.get", "os.getenv", "_whole_number"),
            ):
                key = node.args[0] if node.args else None
            elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
                key = node.slice
            if isinstance(key, ast.Constant):
                names.add(str(key.value))
            elif isinstance(key, ast.Name) and isinstance(constants.get(key.id), str):
                names.add(str(constants[key.id]))
    return names


def test_every_environment_variable_is_named() -> None:
    listed = {
        name for row in section("Environment variables") for name in re.findall(r"`(\w+)`", row[0])
    }
    assert {"CC", "CXX", "ENSUE_MARCH", "ENSUE_OPTIMISE", "XDG_CACHE_HOME"} <= variables()
    assert variables() <= listed
