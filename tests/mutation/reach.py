"""Which tests reach a mutation: one pass over all tests, kept for as long as nothing changes."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import coverage

from mutation import contexts
from mutation.mutations import Mutation
from mutation.tree import Tree

TOOL = Path(__file__).resolve().parent
LONGEST_PASS = 6 * 3600  # seconds

Readers = dict[str, set[tuple[str, int]]]  # by name: files and lines


def digest(root: Path, folders: list[str]) -> str:
    """Of all files below these folders, this tool aside."""
    hasher = hashlib.blake2b(digest_size=6)
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.parent != TOOL:
                hasher.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
                hasher.update(path.read_bytes())
    return hasher.hexdigest()


@dataclass(frozen=True)
class Test:
    name: str
    seconds: float


class Reach:
    """Tests by the lines that they run."""

    def __init__(self, data: Path, root: str, seconds: dict[str, float]) -> None:
        self.root = Path(root)
        self.seconds = seconds
        self.data = coverage.CoverageData(str(data))
        self.data.read()
        self.lines: dict[str, dict[int, list[str]]] = {}
        self.files: dict[str, set[str]] = defaultdict(set)
        for name in seconds:
            self.files[name.partition("::")[0]].add(name)

    def at(self, file: str, first: int = 0, last: int = sys.maxsize) -> set[str]:
        """The tests that run one of these lines, and the files of tests that do so on import."""
        if file not in self.lines:
            self.lines[file] = self.data.contexts_by_lineno(str(self.root / file))
        return {
            test
            for line, tests in self.lines[file].items()
            if first <= line <= last
            for test in tests
            if test in self.seconds or test in self.files
        }

    def seen_by(self, mutation: Mutation, readers: Readers) -> list[Test]:
        """The tests that can see a mutation, the fastest first; then the others of their files,
        which may use what one of them or the import has made.

        What happens at import leaves no test's name: such a mutation is seen by the tests that
        run a line of its file, or one where its name is read."""
        if mutation.lines is not None:
            tests = self.at(mutation.file, *mutation.lines)
        else:
            tests = self.at(mutation.file)
            for file, line in readers.get(mutation.name, ()):
                tests |= self.at(file, line, line)
        beside = {test for name in tests for test in self.files[name.partition("::")[0]]} - tests
        return [*self._fastest(tests - self.files.keys()), *self._fastest(beside)]

    def _fastest(self, names: set[str]) -> list[Test]:
        tests = (Test(name, self.seconds[name]) for name in names)
        return sorted(tests, key=lambda test: (test.seconds, test.name))


def readers(root: Path, folder: str) -> Readers:
    """Where each name is read, as a name of its own or as an attribute."""
    reading: Readers = defaultdict(set)
    for path in sorted((root / folder).rglob("*.py")):
        file = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                name = node.id if isinstance(node, ast.Name) else node.attr
                reading[name].add((file, node.lineno))
    return reading


def measure(project: Path, place: Path, source: str, workers: int, tests: list[str]) -> Reach:
    """Runs all tests of a project once; what is kept from an earlier pass is used again."""
    summary, data = place / "tests.json", place / "coverage"
    if not summary.exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        tree = Tree(project, place / "pass")
        settings, outcomes = tree.folder / "settings", tree.folder / "outcomes"
        settings.write_text(
            contexts.SETTINGS_TEXT.format(data=data, source=tree.root / source), encoding="utf-8"
        )
        environment = tree.environment(source)
        environment["PYTHONPATH"] += f"{os.pathsep}{TOOL.parent}"
        environment |= {contexts.SETTINGS: str(settings), contexts.OUTCOMES: str(outcomes)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "mutation.contexts"]
        command += ["-p", "no:cacheprovider", "-m", "not slow", "--tb=no", *tests]
        command += ["-n", str(workers), "--dist", "worksteal"] if workers > 1 else []
        code, output = tree.run(command, LONGEST_PASS, **environment)
        if not outcomes.exists():
            raise SystemExit(f"the tests did not run (exit code {code}):\n{output}")
        combine(data, settings)
        (tree.folder / "cache").rename(place / "cache")
        seconds, bad = passed(outcomes)
        summary_facts = {"root": str(tree.root), "seconds": seconds, "bad": bad}
        shutil.rmtree(tree.folder)
        summary.write_text(json.dumps(summary_facts), encoding="utf-8")
    known = json.loads(summary.read_text(encoding="utf-8"))
    if known["bad"]:
        print(f"{len(known['bad'])} tests fail without a mutation and are left out:")
        print("\n".join(f"  {test}" for test in known["bad"]))
    return Reach(data, known["root"], known["seconds"])


def combine(data: Path, settings: Path) -> None:
    """One file of what all processes have measured."""
    whole = coverage.Coverage(config_file=str(settings), data_file=str(data))
    whole.combine([str(data.parent)])
    whole.save()


def passed(outcomes: Path) -> tuple[dict[str, float], list[str]]:
    """The seconds of each test that passed, and the tests that failed."""
    seconds: dict[str, float] = defaultdict(float)
    others: dict[str, str] = {}
    for line in outcomes.read_text(encoding="utf-8").splitlines():
        report = json.loads(line)
        seconds[report["test"]] += report["seconds"]
        if report["outcome"] != "passed":
            others[report["test"]] = report["outcome"]
    bad = sorted(test for test, outcome in others.items() if outcome == "failed")
    return {test: time for test, time in seconds.items() if test not in others}, bad
