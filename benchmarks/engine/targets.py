"""The goals for speed, and whether a report meets them.

A goal is met by the worst case that it covers, or by a geometric mean where it names one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.engine.case import TORCH_CELLS
from benchmarks.engine.report import Report, Result, geometric_mean

LSTM_LIKE = ("LSTM", "LSTM1997", "PeepholeLSTM", "CoupledLSTM")
GRU_LIKE = ("GRU", "GRUResetBefore", "GRUGateThroughReset", "MinimalGated", "MGU")
SIMPLE = ("SimpleRNN", "RecurrentPerceptron", "LeakyRNN")
REDUCING = ("LayerNormLSTM",)
ELEMENTWISE = ("QRNN", "SRU", "MinGRU", "MinLSTM")
RESEMBLES = {
    **dict.fromkeys(LSTM_LIKE[1:] + REDUCING, "LSTM"),
    **dict.fromkeys(GRU_LIKE[1:], "GRU"),
    **dict.fromkeys(SIMPLE[1:], "SimpleRNN"),
    **dict.fromkeys(ELEMENTWISE, "LSTM"),
}
# (family, its cells, share of the limit in training at H ≥ 256, and at H = 128)
SHARES = (
    ("LSTM-like cells", LSTM_LIKE, 0.85, 0.70),
    ("GRU-like cells", GRU_LIKE, 0.80, 0.65),
    ("simple cells, reductions", SIMPLE + REDUCING, 0.70, 0.55),
    ("cells without a recurrent product", ELEMENTWISE, 0.90, 0.75),
)
MEANS = {"LSTM": 1.3, "GRU": 5.0, "SimpleRNN": 4.0}  # against torch.nn, training, four shapes
COSTS = {"LSTM": 1.15, "GRU": 1.15, "SimpleRNN": 1.30}  # a real step, against equal lengths


@dataclass(frozen=True)
class Verdict:
    """One goal: `measured` is to be at least, or where `at_most` no more than, `goal`."""

    target: str
    goal: float
    measured: float
    unit: str  # "×", "%", "µs", "s"
    where: str = ""
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.measured <= self.goal if self.at_most else self.measured >= self.goal


def verdicts(report: Report) -> list[Verdict]:
    """Those goals that the report has measurements for."""
    return [
        *_shares(report),
        *_against_torch(report),
        *_other_cells(report),
        *_lengths(report),
        *_narrow(report),
        *_steps(report),
        *_compiling(report),
    ]


def _worst(ratios: Iterable[tuple[float, Result]]) -> tuple[float, str] | None:
    """The smallest value, and the case that it belongs to."""
    value, result = min(ratios, key=lambda pair: pair[0], default=(math.nan, None))
    if result is None:
        return None
    return value, f"{result.case.cell} {result.case.sizes} {result.case.mode}"


def _shares(report: Report) -> Iterator[Verdict]:
    train = [r for r in report.of_kind("dense", "train") if r.case.batch >= 32]
    for family, cells, wide, narrow in SHARES:
        mine = [(report.share(r), r) for r in train if r.case.cell in cells]
        for words, goal, ratios in (
            ("H ≥ 256", wide, [pair for pair in mine if pair[1].case.hidden >= 256]),
            ("H = 128", narrow, [pair for pair in mine if pair[1].case.hidden == 128]),
        ):
            if worst := _worst(ratios):
                target = f"training, share of the limit, {words}: {family}"
                yield Verdict(target, goal, worst[0], "%", worst[1])


def _against_torch(report: Report) -> Iterator[Verdict]:
    for cell in TORCH_CELLS:
        mine = [r for r in report.of_kind("dense") if r.case.cell == cell]
        ratios = [(ratio, r) for r in mine if (ratio := r.ratio("torch.nn")) is not None]
        if worst := _worst(ratios):
            yield Verdict(f"{cell} against torch.nn, every shape", 0.95, worst[0], "×", worst[1])
        mean = report.mean_ratio(report.four_shapes(cell), "torch.nn")
        if mean is not None and report.is_complete(cell):
            target = f"{cell} against torch.nn, training, geometric mean"
            yield Verdict(target, MEANS[cell], mean, "×", "four shapes")


def _other_cells(report: Report) -> Iterator[Verdict]:
    means, rates = {}, {}
    for cell in dict.fromkeys(r.case.cell for r in report.of_kind("dense", "train")):
        four = report.four_shapes(cell)
        if cell in TORCH_CELLS or not report.is_complete(cell):
            continue
        if (mean := report.mean_ratio(four, "loop")) is not None:
            means[cell] = mean
        like = RESEMBLES.get(cell, "")
        if report.is_complete(like):
            other = {r.case.shape: r.rate for r in report.four_shapes(like)}
            rates[cell] = geometric_mean(r.rate / other[r.case.shape] for r in four)
    if means:
        worst = min(means, key=lambda cell: means[cell])
        target = "every other cell against a torch loop, training, geometric mean"
        yield Verdict(target, 5.0, means[worst], "×", worst)
    if rates:
        worst = min(rates, key=lambda cell: rates[cell])
        target = "every other cell, its rate against that of the cell it resembles"
        yield Verdict(target, 0.9, rates[worst], "×", f"{worst}, {RESEMBLES[worst]}")


def _lengths(report: Report) -> Iterator[Verdict]:
    for result in report.of_kind("lengths"):
        if result.case.cell == "SimpleRNN":
            continue
        for name, goal in (("packed", 18.0), ("padded", 4.0)):
            ratio = result.ratio(name)
            if ratio is not None:
                target = f"{result.case.cell}, unequal lengths, against torch.nn {name}"
                yield Verdict(target, goal, ratio, "×", result.case.sizes)
    for result in report.of_kind("spread"):
        cost = result.cost_of_a_step
        if result.case.spread == "wide" and result.case.cell in COSTS and cost is not None:
            target = f"{result.case.cell}, unequal lengths, cost of a real step"
            goal = COSTS[result.case.cell]
            yield Verdict(target, goal, cost, "×", result.case.sizes, at_most=True)


def _narrow(report: Report) -> Iterator[Verdict]:
    for name, goal, other in (
        ("float32", 2.5, "our float32"),
        ("autocast", 2.0, "torch.nn under autocast"),
    ):
        ratios = [
            (ratio, r) for r in report.of_kind("bf16") if (ratio := r.ratio(name)) is not None
        ]
        if worst := _worst(ratios):
            yield Verdict(f"bfloat16 against {other}", goal, worst[0], "×", worst[1])


def _steps(report: Report) -> Iterator[Verdict]:
    for result in report.of_kind("step"):
        if result.case.cell == "LSTM":
            target = "one streaming step, LSTM, B 1, H 128"
            yield Verdict(target, 8.0, 1e6 * result.native, "µs", at_most=True)


def _compiling(report: Report) -> Iterator[Verdict]:
    seconds = {r.case.cell: r.native for r in report.of_kind("compile")}
    if seconds:
        worst = max(seconds, key=lambda cell: seconds[cell])
        yield Verdict("compiling, every cell", 3.0, seconds[worst], "s", worst, at_most=True)
