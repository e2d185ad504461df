"""A report as a picture: bars for single cases, maps of tiles where a cell has many shapes.

A bar begins at 1×, the native engine's own time, and is as long as the logarithm of how many
times as long the opponent takes: to the right the native engine is faster. Next to it stands
the share of the limit of matrix products, with a mark where the goal is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.engine.case import FOUR_SHAPES, Case
from benchmarks.engine.report import Report, Result
from benchmarks.engine.targets import SHARES
from ensue.drawing.chart import MARGIN, WIDE, Axis, Key, heading, legend
from ensue.drawing.svg import INK, QUIET, RULE, Drawing, text_width
from ensue.drawing.theme import mixed

NAME, SHAPE = 182.0, 118.0  # columns of words
BARS = (MARGIN + NAME + SHAPE, 700.0)  # from, to
LIMIT = (772.0, 972.0)
PAUSE = 12.0  # between cells
BAR, GAP, BETWEEN, LEAST = 9.0, 2.0, 9.0, 15.0  # height, between bars, between rows, of a row
MANY = 12  # shapes of one cell: more than these are a map
TRACK, GOAL, BEHIND = "#eef2f6", "#b45309", "#dc2626"
OPPONENTS = {
    "torch.nn": ("torch.nn", "#2563eb"),
    "padded": ("torch.nn, padded", "#2563eb"),
    "autocast": ("torch.nn, autocast", "#2563eb"),
    "packed": ("torch.nn, packed", "#7c3aed"),
    "loop": ("torch loop", "#0d9488"),
    "float32": ("native, float32", "#64748b"),
    "jax": ("JAX scan", "#d97706"),
    "onnx": ("ONNX Runtime", "#be185d"),
}
LIMIT_COLOUR = "#475569"
EQUAL, FASTER, SLOWER = "#f5f7f9", "#68c3a3", "#e9847d"  # tiles
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
SECTIONS = (
    ("dense", "train", "Training"),
    ("dense", "infer", "Inference"),
    ("lengths", "train", "Unequal lengths, training"),
    ("step", "infer", "One streaming step"),
    ("bf16", "train", "bfloat16, training"),
    ("bf16", "infer", "bfloat16, inference"),
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
    amount = math.log2(ratio) / (2 if ratio > 1 else 1)
    return mixed(EQUAL, FASTER if amount > 0 else SLOWER, abs(amount))


@dataclass
class _Section:
    """Rows of bars under one title."""

    title: str
    results: list[Result]
    opponents: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.opponents = [n for n in OPPONENTS if any(n in r.timings for r in self.results)]

    def bars(self, result: Result) -> list[tuple[str, float]]:
        ratios = [(name, result.ratio(name)) for name in self.opponents]
        return [(name, ratio) for name, ratio in ratios if ratio is not None]

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
        self.report, self.drawing = report, Drawing()
        self.maps: list[list[Result]] = []
        self.sections = list(self._sections())

    def _sections(self) -> Iterator[_Section]:
        for kind, mode, title in SECTIONS:
            results = self.report.of_kind(kind, mode)
            mine: list[Result] = []
            for cell in dict.fromkeys(r.case.cell for r in results):
                results_of_cell = [r for r in results if r.case.cell == cell]
                if kind == "dense" and len(results_of_cell) > MANY:
                    often = Counter(r.case.steps for r in results_of_cell)
                    self.maps.append([r for r in results_of_cell if often[r.case.steps] > 1])
                    results_of_cell = [r for r in results_of_cell if r.case.shape in FOUR_SHAPES]
                mine += results_of_cell
            if mine:
                yield _Section(title, mine)

    # ---------------------------------------------------------------- the whole
    def svg(self) -> str:
        y = self._heading()
        for section in self.sections:
            y = self._section(section, y)
        for results in self.maps:
            y = self._map(results, y)
        return self.drawing.svg(WIDE, y + 8, "The speed of the native engine")

    def _heading(self) -> float:
        here, lines = self.report.environment, []
        processor = str(here["processor"]).split(":")[0]
        words = f"{processor}, {here['threads']} threads, torch {here['torch']}"
        lines.append(f"{words}, medians of {self.report.runs} interleaved runs")
        limits = [
            f"{max(rates.values()) / 1e9:.0f} GF/s in {dtype}"
            for dtype, rates in self.report.gemm.items()
        ]
        if limits:
            lines.append(f"limit: torch.mm reaches {' and '.join(limits)}")
        return heading(self.drawing, "The native engine next to its peers", *lines)

    # ---------------------------------------------------------------- bars
    def _section(self, section: _Section, top: float) -> float:
        drawing = self.drawing
        drawing.words((MARGIN, top + 20), section.title, 16, INK, "start", weight=600)
        keys = [Key(*OPPONENTS[name], shape="area") for name in section.opponents]
        legend(drawing, keys, BARS[0], top + 20, WIDE)
        body = top + 78
        heights = [section.height(r) for r in section.results]
        pauses = section.pauses()
        bottom = body + sum(heights) + BETWEEN * len(heights) + PAUSE * sum(pauses)
        scale = self._scale(section, body, bottom)
        y = body
        for k, result in enumerate(section.results):
            if pauses[k]:
                middle = y + PAUSE / 2
                drawing.line([(MARGIN, middle), (LIMIT[1] + 52, middle)], RULE)
                y += PAUSE
            self._row(section, result, y + BETWEEN / 2, heights[k], scale, section.is_first(k))
            y += heights[k] + BETWEEN
        return bottom + 34

    def _scale(self, section: _Section, top: float, bottom: float) -> Axis:
        """Draws both axes; that of the ratios."""
        drawing = self.drawing
        ratios = [ratio for r in section.results for _, ratio in section.bars(r)] or [1.0]
        low = max((t for t in TICKS if t <= min(*ratios, 1.0)), default=TICKS[0])
        high = min((t for t in TICKS if t >= max(*ratios, 2.0)), default=TICKS[-1])
        x = Axis(low, high, BARS[0], BARS[1] - 34, logarithmic=True)
        words = "time relative to native: how many times as long they take"
        drawing.words((BARS[0], top - 30), words, 12, QUIET, "start")
        for tick in x.ticks(TICKS):
            ink, thick = (INK, 1.2) if tick == 1.0 else (RULE, 1)
            drawing.line([(x(tick), top - 6), (x(tick), bottom)], ink, thick)
            drawing.words((x(tick), top - 14), f"{tick:g}×", 11, INK if tick == 1.0 else QUIET)
        if any(not math.isnan(self.report.share(r)) for r in section.results):
            drawing.words((LIMIT[0], top - 30), "native, share of the limit", 12, QUIET, "start")
            if any(goal_of(r.case) for r in section.results):
                at = LIMIT[1] - text_width("goal", 12)
                drawing.line([(at - 7, top - 36), (at - 7, top - 24)], GOAL, 2)
                drawing.words((at, top - 30), "goal", 12, QUIET, "start")
            for share in (0.0, 0.5, 1.0):
                at = LIMIT[0] + share * (LIMIT[1] - LIMIT[0])
                drawing.line([(at, top - 6), (at, bottom)], RULE)
                drawing.words((at, top - 14), f"{100 * share:.0f} %", 11, QUIET)
        return x

    def _row(
        self,
        section: _Section,
        result: Result,
        y: float,
        height: float,
        scale: Axis,
        first: bool,
    ) -> None:
        drawing, case = self.drawing, result.case
        middle = y + height / 2
        drawing.begin(self._tooltip(result))
        if first:
            drawing.words((MARGIN, middle), case.cell, 13, INK, "start", weight=600)
        sizes = case.sizes if case.kind != "step" else f"B{case.batch} H{case.hidden}"
        drawing.words((MARGIN + NAME, middle), sizes, 12, QUIET, "start")
        bars = section.bars(result)
        line = middle - (len(bars) * BAR + (len(bars) - 1) * GAP) / 2
        for name, ratio in bars:
            self._bar(scale, ratio, line, OPPONENTS[name][1])
            line += BAR + GAP
        if not math.isnan(self.report.share(result)):
            self._share(result, middle)
        elif case.kind == "step":
            words = f"{1e6 * result.native:.1f} µs"
            drawing.words((LIMIT[0], middle), words, 12, INK, "start", weight=600)
        drawing.end()

    def _bar(self, scale: Axis, ratio: float, y: float, colour: str) -> None:
        one, x = scale(1.0), scale(ratio)
        self.drawing.bar(min(one, x), y, max(abs(x - one), 1.0), BAR, colour)
        ink = BEHIND if ratio < 0.95 else INK
        at = (max(one, x) + 5, y + BAR / 2)
        self.drawing.words(at, ratio_text(ratio), 10.5, ink, "start")

    def _share(self, result: Result, middle: float) -> None:
        left, right = LIMIT
        share, goal = self.report.share(result), goal_of(result.case)
        length = (right - left) * min(share, 1.1)
        self.drawing.bar(left, middle - 5.5, right - left, 11, TRACK)
        self.drawing.bar(left, middle - 5.5, max(length, 1.0), 11, LIMIT_COLOUR)
        if goal is not None:
            x = left + goal * (right - left)
            self.drawing.line([(x, middle - 9), (x, middle + 9)], GOAL, 2)
        words = f"{100 * share:.0f} %"
        self.drawing.words((max(right, left + length) + 8, middle), words, 11.5, INK, "start")

    def _tooltip(self, result: Result) -> str:
        times = [
            f"{name} {1e3 * one.median:.3g} ms (±{50 * one.spread:.0f} %)"
            for name, one in result.timings.items()
        ]
        return f"{result.case.name}: {', '.join(times)}"

    # ---------------------------------------------------------------- maps
    def _map(self, results: Sequence[Result], top: float) -> float:
        """Tiles: rows are hidden sizes, columns are steps and batches."""
        drawing, cases = self.drawing, [r.case for r in results]
        words = {"train": "training", "infer": "inference"}[cases[0].mode]
        title = f"{cases[0].cell}, {words}"
        drawing.words((MARGIN, top + 20), title, 16, INK, "start", weight=600)
        note = "how many times as long torch.nn takes, and native's share of the limit; "
        note += "T steps, B rows, H units"
        at = MARGIN + text_width(title, 18) + 16
        drawing.words((at, top + 21), note, 12, QUIET, "start")
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
            positions = [x for (t, _), x in xs.items() if t == steps]
            middle = (positions[0] + positions[-1] + wide) / 2
            drawing.words((middle, top + 52), f"T {steps}", 12, INK, weight=600)
        for (_, batch), x in xs.items():
            drawing.words((x + wide / 2, top + 71), f"B {batch}", 11, QUIET)
        for hidden, y in ys.items():
            drawing.words((left - 10, y + high / 2), f"H {hidden}", 12, QUIET, "end")
        for result in results:
            case = result.case
            self._tile(result, xs[case.steps, case.batch], ys[case.hidden], wide, high)
        return top + 84 + len(rows) * high + 26

    def _tile(self, result: Result, x: float, y: float, wide: float, high: float) -> None:
        drawing, ratio, share = self.drawing, result.ratio("torch.nn"), self.report.share(result)
        drawing.begin(self._tooltip(result))
        drawing.bar(x + 1, y + 1, wide - 2, high - 2, tile_colour(ratio) if ratio else TRACK)
        middle = x + wide / 2
        if ratio:
            weight = 700 if ratio < 0.95 else 500
            drawing.words((middle, y + 11.5), ratio_text(ratio), 11.5, INK, weight=weight)
        if not math.isnan(share):
            drawing.words((middle, y + 23), f"{100 * share:.0f} %", 9, "#334155")
        drawing.end()
