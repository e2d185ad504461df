"""A report as text: tables for a terminal, plain where stdout is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.engine.case import FOUR_SHAPES, SPREADS, lengths_of
from benchmarks.engine.report import Report, Result, geometric_mean
from benchmarks.engine.targets import Verdict, verdicts

OTHERS = {"torch.nn": "torch.nn", "loop": "torch loop", "jax": "JAX scan", "onnx": "ONNX Runtime"}
ENOUGH = 0.95  # of another's speed: what counts as the same
Row = list[str | Text]


def write_report(report: Report, file: TextIO | None = None) -> None:
    """Everything that was measured, then the means and the goals."""
    console = Console(file=file, highlight=False, emoji=False, markup=False)
    console.width = max(console.width, 160)  # a table is as wide as it has to be
    _head(console, report)
    for mode, words in (("train", "Training"), ("infer", "Inference")):
        _dense(console, report, report.of_kind("dense", mode), words)
    _means(console, report)
    _lengths(console, report.of_kind("lengths"))
    _spreads(console, report.of_kind("spread"))
    _steps(console, report.of_kind("step"))
    _narrow(console, report)
    _compiling(console, report.of_kind("compile"))
    _goals(console, verdicts(report))
    _remarks(console, report)


# -------------------------------------------------------------------- numbers
def three_digits(value: float) -> str:
    """0.123, 1.23, 12.3, 123."""
    if math.isnan(value):
        return "–"
    return f"{value:.{max(0, 2 - max(0, math.floor(math.log10(value))) if value >= 1 else 3)}f}"


def milliseconds(seconds: float) -> str:
    return three_digits(1e3 * seconds)


def percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.0f} %"


def times(ratio: float | None, least: float = 1.0) -> Text:
    """How many times as long; green where the native engine is faster, red where it is slower."""
    if ratio is None:
        return Text("–", style="dim")
    style = "green" if ratio >= least else "yellow" if ratio >= ENOUGH * least else "red"
    return Text(f"{ratio:.2f}×", style=style)


# -------------------------------------------------------------------- parts
def _table(columns: Sequence[str], words: int = 1) -> Table:
    """The first `words` columns to the left, numbers to the right."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k < words else "right", no_wrap=True)
    return table


def _title(console: Console, title: str, note: str = "") -> None:
    console.print(Text.assemble((title, "bold"), (f"  {note}" if note else "", "dim")))


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _head(console: Console, report: Report) -> None:
    here = report.environment
    threads = f"{_many(here['cores'], 'core')}, {_many(here['threads'], 'thread')}"
    console.print(Text.assemble(("Ensue bench", "bold"), f"  {here['processor']}"))
    console.print(f"{threads}, load {here['load']} at the start; torch {here['torch']}")
    console.print(f"{here['compiler']}; {here['flags']}", soft_wrap=True)
    for name in ("jax", "onnx"):
        if name in here:
            console.print(f"{OTHERS[name]} {here[name]}")
    for dtype, rates in report.gemm.items():
        each = ", ".join(f"N {size}: {rate / 1e9:.0f}" for size, rate in rates.items())
        best = f"{max(rates.values()) / 1e9:.0f} GF/s"
        console.print(f"GEMM limit, {dtype}: {best}, the best of torch.mm ({each})")
    if here["load"] > here["cores"] / 2:
        words = "Other programs were running: medians hide little of that. Measure again when idle."
        console.print(Text(words, style="yellow"))
    console.print()


def _contenders(results: Sequence[Result], known: Sequence[str]) -> list[str]:
    return [name for name in known if any(name in r.timings for r in results)]


def _dense(console: Console, report: Report, results: list[Result], title: str) -> None:
    if not results:
        return
    note = f"milliseconds, median of {report.runs}; × is how many times as long as native"
    _title(console, f"{title}, equal lengths", note)
    others = _contenders(results, list(OTHERS))
    pairs = [column for name in others for column in (OTHERS[name], "×")]
    table = _table(["cell", "shape", "native", *pairs, "spread", "of limit"], 2)
    before = ""
    for result in results:
        cell = result.case.cell
        if before and cell != before:
            table.add_section()
        row: Row = [cell if cell != before else "", result.case.sizes]
        row.append(milliseconds(result.native))
        row += _compared(result, others)
        row += [percent(result.spread), percent(report.share(result))]
        table.add_row(*row)
        before = cell
    console.print(table)


def _compared(
    result: Result, others: Sequence[str], show: Callable[[float], str] = milliseconds
) -> Row:
    """Time and ratio of each other contender."""
    row: Row = []
    for name in others:
        timing = result.timings.get(name)
        row += [
            show(timing.median) if timing else Text("–", style="dim"),
            times(result.ratio(name)),
        ]
    return row


def _means(console: Console, report: Report) -> None:
    results = report.of_kind("dense")
    if not results:
        return
    _title(console, "Geometric means", "of the ratios above")
    others = _contenders(results, list(OTHERS))
    table = _table(["cell", "mode", "shapes", *(OTHERS[n] for n in others), "of limit"], 3)
    for cell in dict.fromkeys(r.case.cell for r in results):
        for mode in ("train", "infer"):
            mine = [r for r in results if (r.case.cell, r.case.mode) == (cell, mode)]
            four = [r for r in mine if r.case.shape in FOUR_SHAPES]
            for chosen in (four, mine) if len(mine) > len(four) else (mine,):
                if chosen:
                    ratios = [times(report.mean_ratio(chosen, name)) for name in others]
                    share = geometric_mean(report.share(r) for r in chosen)
                    table.add_row(cell, mode, str(len(chosen)), *ratios, percent(share))
    console.print(table)


def _lengths(console: Console, results: list[Result]) -> None:
    if not results:
        return
    case = results[0].case
    rows = lengths_of(case.spread, case.steps, case.batch)
    note = f"{min(rows)} to {max(rows)}, mean {sum(rows) / len(rows):.0f}; milliseconds"
    _title(console, f"Unequal lengths, {case.mode}", note)
    columns = ["cell", "shape", "native", "torch.nn padded", "×", "torch.nn packed", "×", "spread"]
    table = _table(columns, 2)
    for r in results:
        times_taken = [milliseconds(r.native), *_compared(r, ["padded", "packed"])]
        table.add_row(r.case.cell, r.case.sizes, *times_taken, percent(r.spread))
    console.print(table)


def _spreads(console: Console, results: list[Result]) -> None:
    if not results:
        return
    _title(
        console,
        f"The cost of a real step, {results[0].case.mode}",
        f"in steps of equal lengths with as many real steps; {results[0].case.sizes}",
    )
    cells = list(dict.fromkeys(r.case.cell for r in results))
    table = _table(["lengths", "", *cells], 2)
    for spread in dict.fromkeys(r.case.spread for r in results):
        costs_of_cells = {r.case.cell: r.cost_of_a_step for r in results if r.case.spread == spread}
        costs = [costs_of_cells.get(cell) for cell in cells]
        cells_shown = ["–" if cost is None else f"{cost:.2f}" for cost in costs]
        table.add_row(spread, SPREADS[spread], *cells_shown)
    console.print(table)


def _steps(console: Console, results: list[Result]) -> None:
    if not results:
        return
    _title(console, "One streaming step", "microseconds, one thread; new tensors: without out=")
    others = _contenders(results, ["new tensors", "torch.nn"])
    pairs = [column for name in others for column in (name, "×")]
    table = _table(["cell", "shape", "native", *pairs, "spread"], 2)

    def show(seconds: float) -> str:
        return three_digits(1e6 * seconds)

    for r in results:
        sizes = f"B{r.case.batch} H{r.case.hidden}"
        compared = _compared(r, others, show)
        table.add_row(r.case.cell, sizes, show(r.native), *compared, percent(r.spread))
    console.print(table)


def _narrow(console: Console, report: Report) -> None:
    results = report.of_kind("bf16")
    if not results:
        return
    _title(console, "bfloat16", "milliseconds; of limit: that of bfloat16")
    columns = ["cell", "mode", "shape", "native", "native float32", "×", "torch.nn autocast", "×"]
    table = _table([*columns, "spread", "of limit"], 3)
    for r in results:
        compared = _compared(r, ["float32", "autocast"])
        ends = (percent(r.spread), percent(report.share(r)))
        head = (r.case.cell, r.case.mode, r.case.sizes, milliseconds(r.native))
        table.add_row(*head, *compared, *ends)
    console.print(table)


def _compiling(console: Console, results: list[Result]) -> None:
    if not results:
        return
    _title(console, "Compiling", "from the equations to a kernel, with an empty cache")
    table = _table(["cell", "seconds"])
    for r in results:
        table.add_row(r.case.cell, f"{r.native:.1f}")
    console.print(table)


def quantity(value: float, unit: str) -> str:
    """A value of a goal with its unit."""
    if unit == "%":
        return percent(value)
    return f"{value:.2f}×" if unit == "×" else f"{value:.1f} {unit}"


def _goals(console: Console, goals: list[Verdict]) -> None:
    if not goals:
        return
    _title(console, "Goals", "the worst case counts")
    table = _table(["goal", "wanted", "measured", "met", "where"])
    table.columns[-1].justify = "left"
    for one in goals:
        sign = "≤" if one.at_most else "≥"
        met = Text("yes", style="green") if one.met else Text("no", style="red")
        goal = f"{sign} {quantity(one.goal, one.unit)}"
        table.add_row(one.target, goal, quantity(one.measured, one.unit), met, one.where)
    console.print(table)
    console.print(f"{sum(one.met for one in goals)} of {len(goals)} goals met")


def _remarks(console: Console, report: Report) -> None:
    """Who could not take part, and whether the run came to its end."""
    absent = {name: why for r in report.results for name, why in r.absent.items()}
    for name, why in absent.items():
        console.print(f"{name} could not take part: {why.split('. ')[0]}", soft_wrap=True)
    for problem in report.problems:
        console.print(Text(f"not measured: {problem}", style="red"))
    if not report.finished:
        console.print(Text("Stopped before the end: these are the cases done so far.", "yellow"))
