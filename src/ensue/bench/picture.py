"""A report as a picture: bars for single cases, maps of tiles where a cell has many shapes.

A bar begins at 1×, the native engine's own time, and is as long as the logarithm of how many
times as long the opponent takes: to the right the native engine is faster. Beside it stands
the share of the limit of matrix products, with a mark where the goal is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ensue.bench.case import FOUR_SHAPES, Case
from ensue.bench.report import Report, Result
from ensue.bench.targets import SHARES
from ensue.drawing.svg import FAINT, INK, QUIET, Drawing, number, text_width

WIDE, MARGIN = 1060.0, 36.0
NAME, SHAPE = 182.0, 118.0  # columns of words
BARS = (MARGIN + NAME + SHAPE, 700.0)  # from, to
LIMIT = (772.0, 972.0)
PAUSE = 12.0  # between cells
BAR, GAP, BETWEEN, LEAST = 9.0, 2.0, 9.0, 15.0  # height, between bars, between rows, of a row
MANY = 12  # shapes of one cell: more than these are a map
TRACK, RULE, GOAL, BEHIND = "#eef2f6", "#e2e8f0", "#b45309", "#dc2626"
OPPONENTS = {
    "torch.nn": ("torch.nn", "#2563eb"),
    "padded": ("torch.nn, padded", "#2563eb"),
    "autocast": ("torch.nn, autocast", "#2563eb"),
    "packed": ("torch.nn, packed", "#7c3aed"),
    "loop": ("torch loop", "#0d9488"),
    "float32": ("native, float32", "#94a3b8"),
    "jax": ("JAX scan", "#d97706"),
    "onnx": ("ONNX Runtime", "#be185d"),
}
LIMIT_COLOUR = "#475569"
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
SECTIONS = (
    ("dense", "train", "Training"),
    ("dense", "infer", "Inference"),
    ("lengths", "train", "Unequal lengths, training"),
    ("step", "infer", "One streaming step"),
    ("bf16", "train", "bfloat16, training"),
    ("bf16", "infer", "bfloat16, inference"),
)


class Chart(Drawing):
    """A drawing with bars and rules."""

    def bar(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        radius = min(2.5, width / 2, height / 2)
        self._body.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" '
            f'height="{number(height)}" rx="{number(radius)}" fill="{colour}"/>'
        )

    def rule(self, x: float, y: float, to_x: float, to_y: float, colour: str, thick: float) -> None:
        self._body.append(
            f'<path d="M{number(x)} {number(y)}L{number(to_x)} {number(to_y)}" '
            f'stroke="{colour}" stroke-width="{number(thick)}"/>'
        )


def draw(report: Report) -> str:
    """The picture as SVG."""
    return _Picture(report).svg()


def goal_of(case: Case) -> float | None:
    """The share of the limit that a case is to reach."""
    if case.kind != "dense" or case.mode != "train" or case.batch < 32:
        return None
    for _, cells, wide, narrow in SHARES:
        if case.cell in cells:
            return wide if case.hidden >= 256 else narrow if case.hidden == 128 else None
    return None


def ratio_text(ratio: float) -> str:
    return f"{ratio:.0f}×" if ratio >= 9.95 else f"{ratio:.1f}×" if ratio >= 1 else f"{ratio:.2f}×"


def tile_colour(ratio: float) -> str:
    """From red (half as fast) through near white (equal) to green (four times as fast)."""
    amount = max(-1.0, min(1.0, math.log2(ratio) / (2 if ratio > 1 else 1)))
    end = (22, 163, 118) if amount > 0 else (220, 60, 50)
    parts = [round(247 + (part - 247) * abs(amount) * 0.85) for part in end]
    return "#" + "".join(f"{part:02x}" for part in parts)


@dataclass
class _Section:
    """Rows of bars under one title."""

    title: str
    results: list[Result]
    opponents: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.opponents = [n for n in OPPONENTS if any(n in r.timings for r in self.results)]

    def bars(self, result: Result) -> list[tuple[str, float]]:
        found = [(name, result.ratio(name)) for name in self.opponents]
        return [(name, ratio) for name, ratio in found if ratio is not None]

    def is_first(self, k: int) -> bool:
        """Whether a row is the first of its cell."""
        return k == 0 or self.results[k].case.cell != self.results[k - 1].case.cell

    def pauses(self) -> list[bool]:
        """Before which rows there is a pause: between cells that have several rows."""
        several = len({r.case.cell for r in self.results}) < len(self.results)
        return [several and k > 0 and self.is_first(k) for k in range(len(self.results))]

    def height(self, result: Result) -> float:
        count = len(self.bars(result))
        return max(LEAST, count * BAR + (count - 1) * GAP)


class _Picture:
    def __init__(self, report: Report) -> None:
        self.report, self.chart = report, Chart()
        self.maps: list[list[Result]] = []
        self.sections = list(self._sections())

    def _sections(self) -> Iterator[_Section]:
        for kind, mode, title in SECTIONS:
            found = self.report.of_kind(kind, mode)
            mine: list[Result] = []
            for cell in dict.fromkeys(r.case.cell for r in found):
                own = [r for r in found if r.case.cell == cell]
                if kind == "dense" and len(own) > MANY:
                    often = Counter(r.case.steps for r in own)
                    self.maps.append([r for r in own if often[r.case.steps] > 1])
                    own = [r for r in own if r.case.shape in FOUR_SHAPES]
                mine += own
            if mine:
                yield _Section(title, mine)

    # ---------------------------------------------------------------- the whole
    def svg(self) -> str:
        y = self._heading()
        for section in self.sections:
            y = self._section(section, y)
        for results in self.maps:
            y = self._map(results, y)
        return self.chart.svg(WIDE, y + 8, "The speed of the native engine")

    def _heading(self) -> float:
        here, chart = self.report.environment, self.chart
        chart.words(
            (MARGIN, 38), "The native engine beside its peers", 22, INK, "start", weight=600
        )
        processor = str(here["processor"]).split(":")[0]
        words = f"{processor}, {here['threads']} threads, torch {here['torch']}"
        words += f", medians of {self.report.runs} interleaved runs"
        chart.words((MARGIN, 64), words, 13, QUIET, "start")
        limits = [
            f"{max(rates.values()) / 1e9:.0f} GF/s in {dtype}"
            for dtype, rates in self.report.gemm.items()
        ]
        if limits:
            words = f"limit: torch.mm reaches {' and '.join(limits)}"
            chart.words((MARGIN, 84), words, 13, QUIET, "start")
        return 104.0

    # ---------------------------------------------------------------- bars
    def _section(self, section: _Section, top: float) -> float:
        chart = self.chart
        chart.words((MARGIN, top + 20), section.title, 16, INK, "start", weight=600)
        self._legend(section, top + 20)
        body = top + 78
        heights = [section.height(r) for r in section.results]
        pauses = section.pauses()
        bottom = body + sum(heights) + BETWEEN * len(heights) + PAUSE * sum(pauses)
        scale = self._scale(section, body, bottom)
        y = body
        for k, result in enumerate(section.results):
            if pauses[k]:
                middle = y + PAUSE / 2
                chart.rule(MARGIN, middle, LIMIT[1] + 52, middle, RULE, 1)
                y += PAUSE
            self._row(section, result, y + BETWEEN / 2, heights[k], scale, section.is_first(k))
            y += heights[k] + BETWEEN
        return bottom + 34

    def _legend(self, section: _Section, y: float) -> None:
        x = BARS[0]
        for name in section.opponents:
            label, colour = OPPONENTS[name]
            self.chart.bar(x, y - 5, 18, 10, colour)
            self.chart.words((x + 25, y), label, 12.5, INK, "start")
            x += 25 + text_width(label, 12.5) + 22

    def _scale(self, section: _Section, top: float, bottom: float) -> tuple[float, float]:
        """Draws both axes; (x of 1×, pixels for a factor of e)."""
        chart = self.chart
        ratios = [ratio for r in section.results for _, ratio in section.bars(r)] or [1.0]
        low = max((t for t in TICKS if t <= min(*ratios, 1.0)), default=TICKS[0])
        high = min((t for t in TICKS if t >= max(*ratios, 2.0)), default=TICKS[-1])
        unit = (BARS[1] - BARS[0] - 34) / math.log(high / low)
        one = BARS[0] - unit * math.log(low)
        heading = "how many times as long they take as native"
        chart.words((BARS[0], top - 30), heading, 12, QUIET, "start")
        for tick in (t for t in TICKS if low <= t <= high):
            x = one + unit * math.log(tick)
            strong = tick == 1.0
            chart.rule(x, top - 6, x, bottom, INK if strong else RULE, 1.2 if strong else 1)
            chart.words((x, top - 14), f"{tick:g}×", 11, INK if strong else FAINT)
        if any(not math.isnan(self.report.share(r)) for r in section.results):
            chart.words((LIMIT[0], top - 30), "native, share of the limit", 12, QUIET, "start")
            if any(goal_of(r.case) for r in section.results):
                x = LIMIT[1] - text_width("goal", 12)
                chart.rule(x - 7, top - 36, x - 7, top - 24, GOAL, 2)
                chart.words((x, top - 30), "goal", 12, QUIET, "start")
            for share in (0.0, 0.5, 1.0):
                x = LIMIT[0] + share * (LIMIT[1] - LIMIT[0])
                chart.rule(x, top - 6, x, bottom, RULE, 1)
                chart.words((x, top - 14), f"{100 * share:.0f} %", 11, FAINT)
        return one, unit

    def _row(
        self,
        section: _Section,
        result: Result,
        y: float,
        height: float,
        scale: tuple[float, float],
        first: bool,
    ) -> None:
        chart, case = self.chart, result.case
        middle = y + height / 2
        chart.begin(self._tooltip(result))
        if first:
            chart.words((MARGIN, middle), case.cell, 13, INK, "start", weight=600)
        sizes = case.sizes if case.kind != "step" else f"B{case.batch} H{case.hidden}"
        chart.words((MARGIN + NAME, middle), sizes, 12, QUIET, "start")
        bars = section.bars(result)
        line = middle - (len(bars) * BAR + (len(bars) - 1) * GAP) / 2
        for name, ratio in bars:
            self._bar(scale, ratio, line, OPPONENTS[name][1])
            line += BAR + GAP
        if not math.isnan(self.report.share(result)):
            self._share(result, middle)
        elif case.kind == "step":
            words = f"{1e6 * result.native:.1f} µs"
            chart.words((LIMIT[0], middle), words, 12, INK, "start", weight=600)
        chart.end()

    def _bar(self, scale: tuple[float, float], ratio: float, y: float, colour: str) -> None:
        one, unit = scale
        shown = min(max(ratio, TICKS[0]), TICKS[-1])
        x = one + unit * math.log(shown)
        self.chart.bar(min(one, x), y, max(abs(x - one), 1.0), BAR, colour)
        behind = ratio < 0.95
        words, where = ratio_text(ratio), max(one, x) + 5
        middle = y + BAR / 2
        self.chart.words((where, middle), words, 10.5, BEHIND if behind else INK, "start")

    def _share(self, result: Result, middle: float) -> None:
        left, right = LIMIT
        share, goal = self.report.share(result), goal_of(result.case)
        length = (right - left) * min(share, 1.1)
        self.chart.bar(left, middle - 5.5, right - left, 11, TRACK)
        self.chart.bar(left, middle - 5.5, max(length, 1.0), 11, LIMIT_COLOUR)
        if goal is not None:
            x = left + goal * (right - left)
            self.chart.rule(x, middle - 9, x, middle + 9, GOAL, 2)
        words = f"{100 * share:.0f} %"
        self.chart.words((max(right, left + length) + 8, middle), words, 11.5, INK, "start")

    def _tooltip(self, result: Result) -> str:
        times = [
            f"{name} {1e3 * one.median:.3g} ms (±{50 * one.spread:.0f} %)"
            for name, one in result.timings.items()
        ]
        return f"{result.case.name}: {', '.join(times)}"

    # ---------------------------------------------------------------- maps
    def _map(self, results: Sequence[Result], top: float) -> float:
        """Tiles: rows are hidden sizes, columns are steps and batches."""
        chart, cases = self.chart, [r.case for r in results]
        words = {"train": "training", "infer": "inference"}[cases[0].mode]
        title = f"{cases[0].cell}, {words}"
        chart.words((MARGIN, top + 20), title, 16, INK, "start", weight=600)
        note = "how many times as long torch.nn takes; below it native's share of the limit"
        at = MARGIN + text_width(title, 18) + 16
        chart.words((at, top + 21), note, 12, QUIET, "start")
        columns = sorted({(c.steps, c.batch) for c in cases})
        rows = sorted({c.hidden for c in cases})
        groups = sorted({steps for steps, _ in columns})
        wide = min(58.0, (WIDE - 2 * MARGIN - 60 - 12 * len(groups)) / len(columns))
        left, high = MARGIN + 56, 31.0
        xs = {
            column: left + k * wide + 12 * groups.index(column[0])
            for k, column in enumerate(columns)
        }
        ys = {hidden: top + 84 + k * high for k, hidden in enumerate(rows)}
        for steps in groups:
            own = [x for (t, _), x in xs.items() if t == steps]
            middle = (own[0] + own[-1] + wide) / 2
            chart.words((middle, top + 52), f"T {steps}", 12, INK, weight=600)
        for (_, batch), x in xs.items():
            chart.words((x + wide / 2, top + 71), f"B {batch}", 11, QUIET)
        for hidden, y in ys.items():
            chart.words((left - 10, y + high / 2), f"H {hidden}", 12, QUIET, "end")
        for result in results:
            case = result.case
            self._tile(result, xs[case.steps, case.batch], ys[case.hidden], wide, high)
        return top + 84 + len(rows) * high + 26

    def _tile(self, result: Result, x: float, y: float, wide: float, high: float) -> None:
        chart, ratio, share = self.chart, result.ratio("torch.nn"), self.report.share(result)
        chart.begin(self._tooltip(result))
        chart.bar(x + 1, y + 1, wide - 2, high - 2, tile_colour(ratio) if ratio else TRACK)
        middle = x + wide / 2
        if ratio:
            weight = 700 if ratio < 0.95 else 500
            chart.words((middle, y + 11.5), ratio_text(ratio), 11.5, INK, weight=weight)
        if not math.isnan(share):
            chart.words((middle, y + 23), f"{100 * share:.0f} %", 9, "#334155")
        chart.end()
