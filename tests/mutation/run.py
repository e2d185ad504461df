"""The command: make mutants ARGS="--count 200 --seed 1".

Ends with 1 if fewer mutants than wanted were caught."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from queue import Empty, SimpleQueue

from mutation import choose, reach
from mutation.mutations import Mutation
from mutation.tree import Ending, Tree

FIRST = 15  # tests: most mutants fall to one of the fastest
SECONDS = 120.0  # of tests, for each mutant, as measured in the pass
PATIENCE = 8  # times longer than measured, and a mutant hangs; other work may slow all down
STARTING = 180.0  # seconds: Python, torch, reading the tests
WANTED = 0.9
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
CAUGHT = ("caught", "timeout")


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="number of mutations")
    parser.add_argument("--seed", type=int, default=1, help="seed of the choice")
    parser.add_argument("--source", default="src", help="folder whose code is changed")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="most seconds of tests for each mutant"
    )
    parser.add_argument("--only", default="", help="only files whose path contains this")
    parser.add_argument("--project", type=Path, default=Path.cwd(), help="folder of the project")
    return parser.parse_args(words)


def batches(tests: list[reach.Test], most: float) -> list[list[reach.Test]]:
    """The fastest tests, then the others; together those that fit into `most` seconds, and one
    at least."""
    totals = accumulate(test.seconds for test in tests)
    fit = max(1, sum(total <= most for total in totals))
    return [batch for batch in (tests[:fit][:FIRST], tests[:fit][FIRST:]) if batch]


def try_mutation(
    tree: Tree, mutation: Mutation, tests: list[reach.Test], most: float, source: str
) -> Ending:
    """Runs the tests that can see a mutation until one does."""
    if not tests:
        return Ending("not reached")
    tried = batches(tests, most)
    original = tree.change(mutation)
    try:
        for batch in tried:
            patience = STARTING + PATIENCE * sum(test.seconds for test in batch)
            ending = tree.run_tests([test.name for test in batch], patience, source)
            if ending.outcome != "survived":
                return ending
        return Ending("survived", left_out=len(tests) - sum(map(len, tried)))
    finally:
        tree.restore(*original)


def identity(mutation: Mutation) -> str:
    return f"{mutation} at {mutation.start}"


class Results:
    """What is known of each mutation, in a file that a later run of the command continues."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lock = threading.Lock()
        self.known: dict[str, dict[str, str]] = {}
        if file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                result = json.loads(line)
                self.known[result["mutation"]] = result

    def add(self, mutation: Mutation, code: str, ending: Ending, seconds: float) -> None:
        result = {
            "mutation": identity(mutation),
            "kind": mutation.kind,
            "outcome": ending.outcome,
            "test": ending.test,
            "left out": str(ending.left_out),
            "code": code,
            "seconds": f"{seconds:.0f}",
        }
        with self.lock:
            self.known[identity(mutation)] = result
            with self.file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(result, ensure_ascii=False) + "\n")
            print(f"{ending.outcome:11} {seconds:4.0f} s  {mutation}", flush=True)


def code_at(project: Path, mutation: Mutation) -> str:
    lines = (project / mutation.file).read_text(encoding="utf-8").splitlines()
    return lines[mutation.line - 1].strip()


def changed_code(project: Path, mutation: Mutation) -> str:
    source = mutation.applied((project / mutation.file).read_bytes())
    return source.decode().splitlines()[mutation.line - 1].strip()


def equivalents(file: Path = EQUIVALENT) -> dict[tuple[str, str], str]:
    """Mutations that were looked at and change no result: the line before and after, and why.

    They are known by their line of code, not by its place, since code moves."""
    if not file.exists():
        return {}
    entries = tomllib.loads(file.read_text(encoding="utf-8")).get("equivalent", [])
    return {(entry["code"], entry["becomes"]): entry["why"] for entry in entries}


def change_of(mutation: Mutation) -> str:
    return f"{mutation.before} → {mutation.after or 'nothing'}"


def try_all(
    waiting: Iterable[Mutation], reached: reach.Reach, results: Results, options: argparse.Namespace
) -> None:
    """All mutations, as many at a time as there are workers, each worker in its own copy."""
    queue: SimpleQueue[Mutation] = SimpleQueue()
    for mutation in waiting:
        queue.put(mutation)
    names = reach.readers(options.project, options.source)
    reading = threading.Lock()  # coverage's data are read by one thread at a time
    trees: list[Tree] = []
    stopping = threading.Event()

    def work(folder: Path) -> None:
        tree = Tree(options.project, folder, options.cache / "cache")
        trees.append(tree)
        while not stopping.is_set():
            try:
                mutation = queue.get_nowait()
            except Empty:
                return
            began = time.monotonic()
            with reading:
                tests = reached.seen_by(mutation, names)
            ending = try_mutation(tree, mutation, tests, options.seconds, options.source)
            if not stopping.is_set():
                took = time.monotonic() - began
                results.add(mutation, code_at(options.project, mutation), ending, took)

    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        folders = [Path(folder) / str(k) for k in range(options.workers)]
        workers = [threading.Thread(target=work, args=(each,)) for each in folders]
        try:
            for each in workers:
                each.start()
            for each in workers:
                each.join()
        except KeyboardInterrupt:
            stopping.set()
            for tree in trees:
                tree.stop()
            for each in workers:
                each.join()
            raise SystemExit(130) from None


def report(chosen: list[Mutation], results: Results, project: Path) -> bool:
    """Prints the share that was caught, and each survivor; whether the share is high enough."""
    known = equivalents()
    survivors, kinds, caught = [], Counter[str](), Counter[str]()
    outcomes: Counter[str] = Counter()
    for mutation in chosen:
        result = results.known[identity(mutation)]
        outcome, left_out = result["outcome"], result["left out"]
        code = code_at(project, mutation)
        if outcome not in CAUGHT and (code, changed_code(project, mutation)) in known:
            outcome = "equivalent"
        elif outcome not in CAUGHT:
            survivors.append(f"{mutation}  [{outcome}, slower tests not run: {left_out}]")
            survivors.append(f"    {code}")
        outcomes[outcome] += 1
        kinds[mutation.kind] += outcome != "equivalent"
        caught[mutation.kind] += outcome in CAUGHT
    total = sum(kinds.values())
    share = sum(caught.values()) / total if total else 1.0
    print()
    for kind in sorted(kinds):
        print(f"{kind:9} {caught[kind]:4} of {kinds[kind]:4} caught")
    print(", ".join(f"{outcome} {outcomes[outcome]}" for outcome in sorted(outcomes)))
    print(f"share caught: {share:.1%} of {total} that are not equivalent")
    print("\n".join(survivors))
    return share >= WANTED


def main(words: list[str] | None = None) -> int:
    options = arguments(words)
    options.project = options.project.resolve()
    mark = reach.digest(options.project, [options.source, "tests"])
    options.cache = options.project / ".mutants" / f"reach-{mark}"
    candidates = choose.modules(options.project, options.source)
    candidates = [module for module in candidates if options.only in module.file]
    chosen = choose.choose(candidates, options.count, options.seed)
    print(f"{len(chosen)} mutations in {len({one.file for one in chosen})} files", flush=True)
    results = Results(options.project / ".mutants" / f"results-{options.seed}-{mark}.jsonl")
    measured = reach.measure(options.project, options.cache, options.source, options.workers, [])
    waiting = [one for one in chosen if identity(one) not in results.known]
    try_all(waiting, measured, results, options)
    return 0 if report(chosen, results, options.project) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    sys.exit(main())
