"""What was measured, and what follows from it: rates, ratios, geometric means."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from benchmarks.engine.case import FOUR_SHAPES, Case, lengths_of
from benchmarks.engine.timing import RunTiming
from ensue import __version__
from ensue.cells import Cell


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


@dataclass(frozen=True)
class Result:
    """One case: seconds of each contender, and how much work one execution is."""

    case: Case
    timings: dict[str, RunTiming]
    flops: int = 0  # of the matrix products, by real steps; 0 where it means nothing
    real_steps: int = 0  # of all rows
    absent: dict[str, str] = field(default_factory=dict)  # which could not run, and why

    @property
    def native(self) -> float:
        return self.timings["native"].median

    def ratio(self, name: str) -> float | None:
        """How many times as long as the native engine another contender takes."""
        timing = self.timings.get(name)
        return None if timing is None else timing.median / self.native

    @property
    def rate(self) -> float:
        """Flops a second of the native engine."""
        return self.flops / self.native

    @property
    def spread(self) -> float:
        """The largest interquartile range among the contenders, as a share of its median."""
        return max(one.spread for one in self.timings.values())

    @property
    def cost_of_a_step(self) -> float | None:
        """A real step of unequal lengths, in steps of equal ones."""
        dense = self.timings.get("dense")
        if dense is None or not self.real_steps:
            return None
        rows = self.case.batch
        equal = max(1, round(self.real_steps / rows)) * rows
        return (self.native / self.real_steps) / (dense.median / equal)


def work_of(case: Case, cell: Cell) -> tuple[int, int]:
    """(flops of matrix products, real steps of all rows) of one execution of a case.

    The backward pass has two products for each of the forward one: by the operand, and by
    the matrix."""
    steps = case.steps * case.batch
    if case.spread:
        steps = sum(lengths_of(case.spread, case.steps, case.batch))
    if case.kind in ("step", "compile"):
        return 0, steps
    each = cell.equations(case.hidden, case.hidden).counts().product_flops
    return each * steps * (3 if case.mode == "train" else 1), steps


@dataclass
class Report:
    """All results of a run, and where it ran. `gemm`: flops a second of torch.mm by dtype, then
    by size. `finished` is false where the run was stopped before its end."""

    environment: dict[str, Any]
    runs: int
    gemm: dict[str, dict[str, float]] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    finished: bool = False
    problems: list[str] = field(default_factory=list)  # cases that could not be measured

    def add_rates(self, dtype: str, rates: dict[int, float]) -> None:
        """The best rate of each size is kept."""
        fastest = self.gemm.setdefault(dtype, {})
        for size, rate in rates.items():
            fastest[str(size)] = max(rate, fastest.get(str(size), 0.0))

    def limit(self, dtype: str = "float32") -> float:
        """The best rate of a matrix product, flops a second; that of bfloat16 is no less than
        that of float32, in which it can be computed too."""
        known = [dtype, "float32"] if dtype == "bfloat16" else [dtype]
        rates = [rate for name in known for rate in self.gemm.get(name, {}).values()]
        return max(rates, default=math.nan)

    def share(self, result: Result) -> float:
        """Share of the limit; NaN where the work has no flops or the limit was not measured."""
        dtype = "bfloat16" if result.case.kind == "bf16" else "float32"
        return result.rate / self.limit(dtype) if result.flops else math.nan

    def of_kind(self, kind: str, mode: str = "") -> list[Result]:
        results = [r for r in self.results if r.case.kind == kind]
        return [r for r in results if not mode or r.case.mode == mode]

    def four_shapes(self, cell: str, mode: str = "train") -> list[Result]:
        results = [r for r in self.of_kind("dense", mode) if r.case.cell == cell]
        return [r for r in results if r.case.shape in FOUR_SHAPES]

    def is_complete(self, cell: str, mode: str = "train") -> bool:
        return len(self.four_shapes(cell, mode)) == len(FOUR_SHAPES)

    def mean_ratio(self, results: Iterable[Result], name: str) -> float | None:
        """The geometric mean of the ratios to a contender; None where it took no part."""
        ratios = [ratio for r in results if (ratio := r.ratio(name)) is not None]
        return geometric_mean(ratios) if ratios else None


def environment() -> dict[str, Any]:
    """The machine that this process measures on."""
    import torch

    from ensue.doctor import compiler, cores, processor
    from ensue.engine.native.cache import flags

    return {
        "ensue": __version__,
        "processor": processor().value,
        "cores": cores(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 2),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
        "compiler": compiler().value,
        "flags": " ".join(flags()),
    }
