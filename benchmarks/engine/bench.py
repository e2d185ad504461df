"""`ensue bench`: case after case, with progress on stderr; Ctrl-C keeps what has been measured."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.engine.case import FOUR_SHAPES, Case, chosen_cases, full_cases, quick_cases
from benchmarks.engine.contenders import compile_once, make_contest
from benchmarks.engine.peers import PYTHON, SCRIPT, PeerFailed, Peers
from benchmarks.engine.report import Report, Result, environment, work_of
from benchmarks.engine.timing import GEMM_SIZES, WARM_UP, gemm_rates, local, measure, timing
from ensue.cells import CELLS, Cell
from ensue.cells.load import load_cell
from ensue.engine.machine import why_no_bfloat16
from ensue.engine.native import why_not_native
from ensue.errors import EnsueError, OptionError, unknown

OPPONENTS = ("torch.nn", "loop", "jax", "onnx")
QUIET = 10.0  # seconds between two lines of progress where stderr is no terminal


@dataclass(frozen=True)
class Options:
    """How to measure. `against`: the opponents asked for by name; none: all of them on the
    four shapes, and torch.nn alone on the rest of the grid."""

    runs: int = 15
    against: frozenset[str] = frozenset()
    gemm_sizes: tuple[int, ...] = GEMM_SIZES
    peers: Path | None = None  # a Python that has them; none: that of `make bench-peers`
    threads: int | None = None

    def __post_init__(self) -> None:
        for name in self.against:
            if name not in OPPONENTS:
                raise unknown("opponent", name, OPPONENTS)

    def opponents(self, case: Case) -> frozenset[str]:
        if self.against:
            return self.against
        return frozenset(OPPONENTS if case.shape in FOUR_SHAPES else OPPONENTS[:1])


# -------------------------------------------------------------------- what to measure
def load_cells(names: Sequence[str]) -> dict[str, Cell]:
    """Every built-in cell by name, and cells of files by the names of their classes."""
    cells = {name: make() for name, make in CELLS.items()}
    for name_or_path in names:
        cell = load_cell(name_or_path)
        name = type(cell).__name__
        if name in cells and name_or_path != name:
            raise OptionError(
                f"{name_or_path}: another cell is called {name} too; give it another name"
            )
        cells[name] = cell
    return cells


def choose_cases(cells: Mapping[str, Cell], full: bool, patterns: Sequence[str]) -> list[Case]:
    names = list(cells)
    return chosen_cases(full_cases(names) if full else quick_cases(names), patterns)


# -------------------------------------------------------------------- progress
def weight(case: Case, cell: Cell, options: Options) -> float:
    """About how many seconds a case takes, to guess the time left."""
    if case.kind == "compile":
        return 2.0
    flops, _ = work_of(case, cell)
    once = 3 * flops / 1e11 + 0.001
    once += 6 * flops / 1e11 if case.kind == "lengths" else 0.0
    if case.kind == "dense" and "loop" in options.opponents(case):
        once += case.steps * (3e-4 if case.mode == "train" else 1e-4)
    return once * (options.runs + WARM_UP + 1)


class BenchProgress:
    """One line on stderr: which case, how many of them, how long it will take."""

    def __init__(self, weights: Mapping[Case, float], runs: int) -> None:
        self.weights, self.runs = weights, runs
        self.numbers = {case: k for k, case in enumerate(weights, 1)}
        self.total, self.done = sum(weights.values()), 0.0
        self.begun, self.last_line = time.monotonic(), 0.0

    def after(self, case: Case) -> None:
        """A case is over."""
        self.done += self.weights[case]

    def say(self, case: Case, rounds: int) -> None:
        """That many rounds of the case are done."""
        now, terminal = time.monotonic(), sys.stderr.isatty()
        if not terminal and now - self.last_line < QUIET:
            return
        self.last_line = now
        done = self.done + self.weights[case] * rounds / self.runs
        left = (now - self.begun) * (self.total - done) / done if done else 0.0
        text = f"{self.numbers[case]} of {len(self.numbers)}  {case.name}"
        text += f"  about {duration(left)} left" if done else ""
        begin, end = ("\r\x1b[K", "") if terminal else ("", "\n")
        print(begin + text, end=end, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """About how long: 40 s, 12 min, 1 h 30 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


# -------------------------------------------------------------------- measuring
@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """torch with that number of threads, inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Bench:
    """Measures cases one by one into a report."""

    def __init__(self, cells: Mapping[str, Cell], options: Options, peers: Peers | None) -> None:
        self.cells, self.options, self.peers = cells, options, peers
        versions = peers.versions if peers is not None else {}
        self.report = Report({**environment(), **versions}, options.runs)

    def run(self, cases: Sequence[Case]) -> None:
        weights = {case: weight(case, self.cells[case.cell], self.options) for case in cases}
        self._limit(cases)
        progress = BenchProgress(weights, self.options.runs)
        try:
            for case in cases:
                progress.say(case, 0)
                try:
                    self.report.results.append(self.measure(case, progress))
                except EnsueError as problem:  # one case must not cost the others
                    self.report.problems.append(str(problem))
                progress.after(case)
            self._limit(cases)
        finally:
            progress.clear()
        self.report.finished = True

    def measure(self, case: Case, progress: BenchProgress) -> Result:
        cell = self.cells[case.cell]
        if case.kind == "compile":
            return Result(case, {"native": timing([compile_once(cell, case.hidden)])})
        if case.kind == "bf16" and (why := why_no_bfloat16()):
            raise OptionError(f"{case.name}: {why}")
        against = self.options.opponents(case)
        contest = make_contest(case, cell, against)
        runners = {name: local(work) for name, work in contest.works.items()}
        absent = dict(contest.absent)
        if self.peers is not None and case.kind == "dense":
            try:
                runners |= self.peers.runners(case, cell, against)
            except PeerFailed as problem:
                absent["peers"] = str(problem)
        rounds = itertools.count(1)
        # one row is too little for two threads, and torch's would wait for each other
        with threads(1 if case.kind == "step" else None):
            timings = measure(runners, self.options.runs, lambda: progress.say(case, next(rounds)))
        return Result(case, timings, *work_of(case, cell), absent)

    def _limit(self, cases: Sequence[Case]) -> None:
        """The rate of matrix products, before the first case and after the last."""
        kinds = {case.kind for case in cases}
        if kinds - {"step", "compile"}:
            self.report.add_rates("float32", gemm_rates(torch.float32, self.options.gemm_sizes))
        if "bf16" in kinds and not why_no_bfloat16():
            self.report.add_rates("bfloat16", gemm_rates(torch.bfloat16, self.options.gemm_sizes))


@contextmanager
def peers_at(python: Path) -> Iterator[Peers | None]:
    """The peers' process; None where they are not installed."""
    if not (python.exists() and SCRIPT.exists()):
        yield None
        return
    peers = Peers(python, torch.get_num_threads())
    try:
        yield peers
    finally:
        peers.close()


def run_bench(cases: Sequence[Case], cells: Mapping[str, Cell], options: Options) -> Report:
    """Measures the cases. Stopped with Ctrl-C it returns what it has, not `finished`."""
    if reason := why_not_native(torch.device("cpu"), torch.float32):
        raise OptionError(reason)
    with threads(options.threads), peers_at(options.peers or PYTHON) as peers:
        bench = Bench(cells, options, peers)
        with suppress(KeyboardInterrupt):
            bench.run(cases)
        return bench.report
