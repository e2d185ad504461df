"""The command: make faults-selftest ARGS="--only lock".

Plants the bugs of `planted.py` one at a time in a copy of the project, and runs the tests or the
campaign that have to catch it; before, the same must pass without it. Ends with 1 if one is
missed."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mutation.tree import Tree

from faults.campaign import KINDS
from faults.journal import PROJECT
from faults.planted import BUGS, Planted

SOURCE = Path("src/ensue")
PASSED, FAILED = 0, 1  # exit codes of pytest and of the campaigns
BROKEN = re.compile(rf"^  \w+ \d+: ({'|'.join(KINDS)}): (.*)$", re.MULTILINE)
FAILURE = re.compile(r"^FAILED (\S+)", re.MULTILINE)
PATIENCE = 2.0  # times the seconds of a bug for the same without it


class Verdict(NamedTuple):
    """by: the test that failed, or the outcome of the campaign; "" if the bug was missed."""

    by: str
    why: str = ""


def changed(source: str, bug: Planted) -> str:
    """The file with the bug in it."""
    if source.count(bug.old) != 1:
        raise ValueError(f"{bug.name}: expected its text once in {bug.file}")
    return source.replace(bug.old, bug.new)


def command(bug: Planted, work: Path) -> list[str]:
    if bug.campaign:
        words = ["--only", bug.campaign, "--cases", str(bug.cases), "--first"]
        words += ["--subjects", bug.subjects, "--work", str(work)]
        return [sys.executable, "-m", "faults.run", *words]
    options = ["-q", "-x", "-rf", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return [sys.executable, "-m", "pytest", *options, *bug.tests]


def run(tree: Tree, bug: Planted, seconds: float) -> tuple[int, str]:
    environment = tree.environment("src")
    environment["PYTHONPATH"] += f"{os.pathsep}{tree.root / 'tests'}"
    work = tree.folder / "temporary" / "work"
    return tree.run(command(bug, work), seconds, **environment)


def verdict(bug: Planted, code: int, output: str) -> Verdict:
    """Whether what has to catch a bug has caught it. Another failure does not count."""
    last = (output.strip().splitlines() or ["no output"])[-1][:200]
    if code == -signal.SIGKILL:
        return Verdict("", f"over {bug.seconds:.0f} s: {last}")
    if code == PASSED:
        return Verdict("", f"passed: {last}")
    if bug.campaign:
        broken = BROKEN.search(output)
        if broken is not None and broken[1] in bug.kinds:
            return Verdict(f"{bug.campaign}: {broken[1]}: {broken[2][:80]}")
    elif code == FAILED and (failed := FAILURE.search(output)) is not None:
        return Verdict(failed[1].removeprefix("tests/"))
    return Verdict("", f"exit code {code}: {last}")


def passes_without(tree: Tree, bug: Planted) -> Verdict:
    """An empty verdict if nothing fails in the project as it is."""
    clean = replace(bug, cases=min(bug.cases, 20))
    code, output = run(tree, clean, PATIENCE * bug.seconds)
    tree.clean()
    last = (output.strip().splitlines() or ["no output"])[-1][:200]
    return Verdict("" if code == PASSED else f"exit code {code} without the bug: {last}")


def caught(tree: Tree, bug: Planted) -> Verdict:
    """Plants a bug, and takes it away again."""
    path = tree.root / SOURCE / bug.file
    original = path.read_text("utf-8")
    path.write_text(changed(original, bug), "utf-8")
    try:
        return verdict(bug, *run(tree, bug, bug.seconds))
    finally:
        path.write_text(original, "utf-8")
        tree.clean()


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make faults-selftest", description=__doc__)
    parser.add_argument("--only", default="", help="bugs whose name contains this")
    parser.add_argument("--unproven", action="store_true", help="do not run without the bug first")
    how = parser.parse_args(words)
    bugs = [bug for bug in BUGS if how.only in bug.name]
    missed, clean = 0, dict[tuple[object, ...], Verdict]()
    with tempfile.TemporaryDirectory(prefix="planted-", ignore_cleanup_errors=True) as folder:
        tree = Tree(PROJECT, Path(folder))
        for bug in bugs:
            begun, key = time.monotonic(), (bug.tests, bug.campaign, bug.subjects)
            if not how.unproven and key not in clean:
                clean[key] = passes_without(tree, bug)
            fails = clean.get(key, Verdict(""))
            result = Verdict("", fails.by) if fails.by else caught(tree, bug)
            missed += not result.by
            what = result.by or f"MISSED ({result.why})"
            print(f"{bug.name:42} {time.monotonic() - begun:4.0f} s  {what}", flush=True)
    print(f"{len(bugs) - missed} of {len(bugs)} caught")
    return int(missed > 0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    sys.exit(main())
