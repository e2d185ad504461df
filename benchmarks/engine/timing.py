"""Interleaved runs, medians and quartiles, and the rate of the machine's matrix products."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

Runner = Callable[[int], float]  # repeats the work; the seconds that it took

LEAST = 0.002  # seconds of one measurement: what is quicker is done several times
WARM_UP = 2
GEMM_SIZES = (1024, 2048, 4096)
TOO_LONG = 5.0  # seconds for one matrix product


@dataclass(frozen=True)
class RunTiming:
    """Seconds of one execution: the median, and the quartiles around it."""

    median: float
    low: float
    high: float
    fastest: float
    runs: int
    repeats: int  # executions in each run

    @property
    def spread(self) -> float:
        """The interquartile range as a share of the median."""
        return (self.high - self.low) / self.median


def timing(seconds: list[float], repeats: int = 1) -> RunTiming:
    """The summary of single measurements."""
    several = seconds if len(seconds) > 1 else 2 * seconds
    low, median, high = statistics.quantiles(several, n=4, method="inclusive")
    return RunTiming(median, low, high, min(seconds), len(seconds), repeats)


def local(work: Callable[[], object]) -> Runner:
    """A runner of work in this process."""

    def run(times: int) -> float:
        begin = time.perf_counter()
        for _ in range(times):
            work()
        return time.perf_counter() - begin

    return run


def measure(
    runners: Mapping[str, Runner], runs: int, after_round: Callable[[], None] = lambda: None
) -> dict[str, RunTiming]:
    """All contenders in turns, so that what slows the machine down slows all of them; who
    begins a round changes from round to round."""
    repeats = {name: _repeats(run) for name, run in runners.items()}
    samples: dict[str, list[float]] = {name: [] for name in runners}
    names = list(runners)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for number in range(runs):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                samples[name].append(runners[name](repeats[name]) / repeats[name])
            after_round()
    finally:
        if collecting:
            gc.enable()
    return {name: timing(samples[name], repeats[name]) for name in names}


def _repeats(run: Runner) -> int:
    """How many executions make a measurement; warms up."""
    for _ in range(WARM_UP):
        run(1)
    once = run(1)
    return max(1, math.ceil(LEAST / once)) if once < LEAST else 1


def gemm_rates(
    dtype: torch.dtype, sizes: tuple[int, ...] = GEMM_SIZES, runs: int = 3
) -> dict[int, float]:
    """Flops a second of torch.mm, for square matrices of each size: the best of a few runs.

    Sizes that would take too long are left out: without instructions for bfloat16 a product
    may be a hundred times as slow as one of float32."""
    rates: dict[int, float] = {}
    for size in sizes:
        if rates and 2 * size**3 / max(rates.values()) > TOO_LONG:
            break
        a, b = (torch.randn(size, size).to(dtype) for _ in range(2))
        result = torch.empty(size, size, dtype=dtype)
        torch.mm(a, b, out=result)
        seconds = min(local(_product(a, b, result))(1) for _ in range(runs))
        rates[size] = 2 * size**3 / seconds
    return rates


def _product(a: Tensor, b: Tensor, result: Tensor) -> Callable[[], object]:
    return lambda: torch.mm(a, b, out=result)
