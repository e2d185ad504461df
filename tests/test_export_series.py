"""What stands around an exported forecast, in Python and JavaScript: times, and solved members."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exports import ROWS, made
from test_export_models import SANITIZERS, needs_c, needs_node
from test_forecast_members import HORIZON, MEMBERS, ROOM, SEASON, ground_of, learned, walk

from ensue.data.time.axis import Spacing, spacing_of, time_column
from ensue.errors import DataError
from ensue.export.c_folder import RUNTIME as RUNTIME_C
from ensue.export.c_folder import _members, forecast_remark
from ensue.export.model import example_piece, write_traced
from ensue.export.module import IN_JAVASCRIPT, RUNTIME
from ensue.export.programs import compile_c, node_program
from ensue.tasks.codec import packed
from ensue.tasks.exported import reads_of

pytest.importorskip("onnxruntime")
TIMES = {
    "months": ["1949-01", "1949-02", "1949-05"],
    "quarters": ["1958Q4", "1959Q1", "1959Q3"],
    "ends of months": ["2024-01-31", "2024-02-29", "2024-03-31", "2024-05-31"],
    "days": ["2024-02-27", "2024-02-28", "2024-03-01"],
    "working days": [f"2024-03-{day:02}" for day in (4, 5, 6, 7, 8, 11, 12, 14)],
    "hours": ["2016-07-01 22:00:00", "2016-07-01 23:00:00", "2016-07-02 00:00:00"],
    "zones": ["2016-07-01T22:00+02:00", "2016-07-01T23:00+02:00"],
    "names": ["30 Nov 1958", "31 Dec 1958", "31 Jan 1959"],
    "day first": ["30.11.1958", "01.12.1958", "02.12.1958"],
    "month first": ["11/28/1958", "11/29/1958", "11/30/1958"],
    "half past": ["1/2/2021 1:30 pm", "1/2/2021 2:30 pm", "13/2/2021 3:30 pm"],
    "years": ["1949", "1950", "1953"],
    "numbers": ["0.5", "0.75", "1.0", "1.5"],
    "uneven": ["2024-01-01", "2024-01-02", "2025-06-07"],
    "20240131": ["20240131", "20240201", "20240202"],
    "unix": ["1700000000", "1700003600", "1700007200"],
}
CALLED = {"20240131": "date", "unix": "timestamp"}  # columns whose name says what numbers mean


@cache
def example() -> dict[str, Any]:
    """The names of the runnable example."""
    space: dict[str, Any] = {"__name__": "example"}
    exec("".join(map(example_piece, ("core", "times", "series", "mixed"))), space)
    return space


def in_javascript(script: str, job: Any, folder: Path) -> Any:
    """What a script makes of its input, together with the parts for series."""
    names = ("checks", "times", "series", "mixed")
    parts = [(RUNTIME / f"{name}.js").read_text() for name in names]
    begin = 'import { readFileSync } from "node:fs"; const STEPS = {}, AFTER = {};'
    end = 'process.stdout.write(JSON.stringify(made(JSON.parse(readFileSync(0, "utf8")))));'
    (folder / "a.mjs").write_text("\n".join([begin, *parts, f"const made = {script};", end]))
    done = subprocess.run(
        [node_program(), str(folder / "a.mjs")],
        input=json.dumps(job),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def expected_times(name: str) -> list[float]:
    """Seconds since 1970, or numbers: of the times, and of the next three steps."""
    texts = TIMES[name]
    column = time_column(texts, CALLED.get(name, "t"), lambda row: f"row {row}")
    moments = [moment for moment in column.moments if moment is not None]
    spacing: Spacing | None = spacing_of([moments])
    ahead = [moments[-1] if spacing is None else spacing.after(moments[-1], k) for k in (1, 2, 3)]
    return [m if isinstance(m, float) else m.timestamp() for m in (*moments, *ahead)]


def reads(name: str) -> dict[str, Any]:
    return reads_of(CALLED.get(name, "t"), "auto")


@pytest.mark.parametrize("name", TIMES)
def test_times_are_read_as_python_reads_them(name: str) -> None:
    functions = example()
    moments = functions["read_times"](TIMES[name], reads(name))
    spacing = functions["spacing_of"](moments)
    times = [*moments, *(functions["time_after"](spacing, moments[-1], k) for k in (1, 2, 3))]
    first = functions["datetime"](1970, 1, 1)
    got = [m if isinstance(m, float) else (m - first).total_seconds() for m in times]
    assert got == pytest.approx(expected_times(name), abs=1e-6)


@needs_node
def test_times_are_read_in_javascript(tmp_path: Path) -> None:
    job = [
        (TIMES[name], IN_JAVASCRIPT["series"]({"reads": reads(name)})["reads"]) for name in TIMES
    ]
    script = """(given) => given.map(([texts, reads]) => {
        const { dates, moments } = readTimes(texts, reads), spacing = spacingOf(moments, dates);
        const ahead = [1, 2, 3].map((k) => timeAfter(spacing, moments[moments.length - 1], k));
        return [...moments, ...ahead].map((moment) => (dates ? moment / 1000 : moment));
    })"""
    for name, got in zip(TIMES, in_javascript(script, job, tmp_path), strict=True):
        assert got == pytest.approx(expected_times(name), abs=1e-6), name


def test_a_time_that_may_be_two_is_refused() -> None:
    both = ["01/02/2021", "05/02/2021", "09/11/2021"]
    with pytest.raises(DataError, match="may be"):
        time_column(both, "t", lambda row: f"row {row}")
    with pytest.raises(ValueError, match="day or month first"):
        example()["read_times"](both, reads_of("t", "auto"))
    with pytest.raises(ValueError, match="expected times written as 2026-01-31"):
        example()["read_times"](["soon"], reads_of("t", "auto"))


def with_gaps(steps: int) -> Any:
    values = walk(steps, 5)
    values[[k for k in (1, 7, 8, 23) if k < steps - 1]] = np.nan
    return values


SERIES = [with_gaps(n) for n in (2, 5, 9, 30, 60)]
STEP = {"targets": 1, "season": SEASON, "room": ROOM, "known": 0, "columns": ["y"]}


def facts(name: str) -> dict[str, Any]:
    member = learned(MEMBERS[name], ground_of(walk(60, 1)))
    member_packed = packed(member)
    return {
        **member_packed.facts,
        **{key: array.tolist() for key, array in member_packed.arrays.items()},
    }


def expected_forecasts(name: str) -> list[Any]:
    """What the member says after each series, with the steps ahead there as missing ones."""
    member = learned(MEMBERS[name], ground_of(walk(60, 1)))
    longer = [np.concatenate([values, np.full(HORIZON, np.nan)]) for values in SERIES]
    return [
        member.forecasts(ground_of(values), np.array([len(values) - HORIZON]), HORIZON)[:, 0, 0]
        for values in longer
    ]


@pytest.mark.parametrize("name", MEMBERS)
def test_members_of_the_example_say_the_same(name: str) -> None:
    functions, kind = example(), MEMBERS[name].kind
    for series, expected in zip(SERIES, expected_forecasts(name), strict=True):
        raw, now = np.concatenate([series, np.full(HORIZON, np.nan)])[:, None], len(series)
        ground = functions["Ground"](raw, now, float(now - 1), 0, STEP)
        got = functions["MEMBERS"][kind](ground, facts(name), HORIZON)[:, 0]
        np.testing.assert_allclose(got, expected, rtol=1e-10)


@needs_node
def test_members_in_javascript_say_the_same(tmp_path: Path) -> None:
    series = [[None if np.isnan(v) else v for v in values] for values in SERIES]
    job = [[(MEMBERS[name].kind, facts(name)) for name in MEMBERS], series, STEP, HORIZON]
    script = """([members, every, step, horizon]) => members.map(([kind, facts]) =>
      every.map((y) => {
        const now = y.length, more = new Array(horizon).fill(null);
        const table = [...y, ...more].map((v) => [v ?? NaN]);
        return MEMBERS[kind](groundOf(table, now, now - 1, 0, step), facts, horizon, 0);
    }))"""
    for name, forecasts in zip(MEMBERS, in_javascript(script, job, tmp_path), strict=True):
        for got, expected in zip(forecasts, expected_forecasts(name), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-10, err_msg=name)


C_MAIN = """
#include <stdio.h>
#include "members.h"
%(tables)s
%(series)s
int main(void)
{
    static double y[100], wide[100 + ROOM], work[4000], forecasts[HORIZON];
    for (unsigned long m = 0; m < sizeof forecast_members / sizeof *forecast_members; m++) {
        const double *raw = series;
        for (unsigned long s = 0; s < sizeof counts / sizeof *counts; raw += counts[s++]) {
            long n = counts[s];
            for (long t = 0; t < n; t++)
                y[t] = !isnan(raw[t]) ? raw[t] : t >= SEASON ? y[t - SEASON] : t ? y[t - 1] : 0;
            for (long t = 0; t < ROOM + n; t++) wide[t] = y[t < ROOM ? 0 : t - ROOM];
            ensue_ground ground = {raw, y, wide, NULL, n, ROOM, 0, HORIZON, 0, (double)n - 1, work};
            ensue_said(&ground, forecast_members + m, forecasts);
            for (long h = 0; h < HORIZON; h++) printf("%%.17g\\n", forecasts[h]);
        }
    }
    return 0;
}
"""


@needs_c
def test_members_in_c_say_the_same(tmp_path: Path) -> None:
    """Under the sanitizers."""
    every = [{"kind": MEMBERS[name].kind, "share": 1.0, **facts(name)} for name in MEMBERS]
    sizes = {"ROOM": ROOM, "SEASON": SEASON, "HORIZON": HORIZON}
    listed = ", ".join("NAN" if np.isnan(v) else repr(float(v)) for v in np.concatenate(SERIES))
    numbers = [
        *(f"#define {name} {value}" for name, value in sizes.items()),
        f"static const double series[] = {{{listed}}};",
        f"static const long counts[] = {{{', '.join(str(len(series)) for series in SERIES)}}};",
    ]
    tables = {"tables": "\n".join(_members(every)), "series": "\n".join(numbers)}
    (tmp_path / "main.c").write_text(C_MAIN % tables)
    (tmp_path / "members.h").write_text((RUNTIME_C / "members.h").read_text())
    compile_c([str(tmp_path / "main.c")], str(tmp_path / "main"), (*SANITIZERS, "-O0"))
    done = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    forecasts = np.array(done.stdout.split(), float).reshape(len(MEMBERS), len(SERIES), HORIZON)
    for name, of_member in zip(MEMBERS, forecasts, strict=True):
        for got, expected in zip(of_member, expected_forecasts(name), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, err_msg=name)


@pytest.mark.slow
@needs_c
@pytest.mark.parametrize(
    "name", ["forecast, mixed", "forecast, mixed walk", "forecast, dates", "forecast, step by step"]
)
def test_c_forecasts_whole_series(name: str, tmp_path: Path) -> None:
    """From numbers to numbers, as `predict` does; too few steps are reported."""
    export, row = made(name), ROWS[name]
    folder = tmp_path / "model.c"
    write_traced(export.traced, folder)
    sources = [str(folder / source) for source in ("example.c", "forecast.c", "model.c")]
    compile_c(sources, str(folder / "example"), (*SANITIZERS, "-O1"))
    for question, answer in zip(row.questions, export.expected, strict=True):
        words = [str(folder / "example")]
        if "month" in question:
            year, month = map(int, question["month"][-1].split("-"))
            words.append(str(12 * year + month - 1))
            months = (*range(month - len(question["month"]), month), *range(month, month + 5))
            sales = [*question["sales"], *["nan"] * 5]
            typed_lines = "\n".join(
                f"{k % 12 / 12} {v}" for k, v in zip(months, sales, strict=True)
            )
        else:
            typed_lines = "\n".join(map(repr, question["sales"]))
        done = subprocess.run(words, input=typed_lines, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        forecasts = np.array(done.stdout.split(), float).reshape(-1, 3).T
        for key, got in zip(("value", "low", "high"), forecasts, strict=True):
            np.testing.assert_allclose(got, answer[key]["sales"], rtol=1e-4, err_msg=key)
    for lines, code, message in _refused("month" in row.questions[0]):
        done = subprocess.run(words, input=lines, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (code, ""), lines
        assert message in done.stderr
    done = subprocess.run([*words[:1], "soon"], input="nan", capture_output=True, text=True)
    assert (done.returncode, "got soon" in done.stderr) == (2, True)


def _refused(phased: bool) -> list[tuple[str, int, str]]:
    """What the example reads, its exit code, and what it says; with phases before the numbers or
    without."""
    begin, names = ("0.5 ", "<phase of month> <sales>") if phased else ("", "<sales>")
    many, expected = (2, "2 numbers") if phased else (1, "1 number")
    past = "\n".join([f"{begin}{5 + k % 3}" for k in range(40)]) + "\n"
    ahead = f"{begin}nan\n" * (5 if phased else 0)
    cases = [
        (f"{begin}nan\n", 1, "there are too few steps"),
        (f"{past}{begin}1e40\n{ahead}", 1, "a number is larger than 1e30"),
        (f"{past}{begin}inf\n{ahead}", 1, "a number is larger than 1e30"),
        (f"{past}\n{begin}1 2\n", 2, f"line 42: expected {expected} ({names}), got {many + 1}"),
        (f"{begin}1\n{begin}x\n", 2, f"line 2: expected {expected} ({names}), got a word"),
    ]
    if phased:  # the numbers alone, a year in the place of a phase, and no steps ahead
        cases += [("5\n6\n", 2, f"line 1: expected 2 numbers ({names}), got 1")]
        cases += [(f"{past}1949 5\n{ahead}", 1, "a phase is not from 0 to 1")]
        cases += [(past, 2, "the last 5 lines: expected nan behind the phases")]
    return cases


def test_the_command_for_c_says_what_a_line_is() -> None:
    one, folder = made("forecast").traced.exported, Path("f.c")
    assert forecast_remark(one, folder).endswith(
        "./example < numbers, where each line of numbers is: <sales>"
    )
    (step,) = one.before
    member = {"form": {"periods": [12.0]}}
    step = {**step, "calendar": ["month"], "time": ["day"], "members": [member]}
    step["columns"] = ['sa"les */%']
    remark = forecast_remark(replace(one, before=(step,)), folder)
    assert "./example CLOCK < numbers, where each line" in remark
    assert remark.endswith(
        "is: <phase of month> <sa_les ___>, with 5 more lines, nan after their phases, for the "
        "steps ahead, and CLOCK is the time of the last step (forecast.h)"
    )


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ([1.0], "expected at least 2 steps, got 1"),
        ({"x": [1.0, 2.0]}, "expected the columns y, got no y"),
        ({"y": [1.0, 2.0]}, "expected the column shop: which series is it"),
        ({"y": [1.0, 2.0], "shop": "a"}, "expected the column day: this model reads the time"),
    ],
)
def test_questions_that_cannot_be_answered_are_told(question: Any, message: str) -> None:
    step = {**STEP, "from": "question", "to": "past", "time": [], "needs_time": False, "ids": []}
    step |= {"look_back": 3, "horizon": 2, "lag": 0, "floor": None, "transform": "none"}
    step |= {"least": 2, "mean": [[0.0]], "spread": [[1.0]], "members": [], "calendar": []}
    step |= {"ids": ["shop"] if "shop" in message or "day" in message else [], "static": []}
    step |= {"time": ["day"], "needs_time": "day" in message, "series": [["a"]]}
    with pytest.raises(ValueError, match=message):
        example()["series"]({"question": question}, step)
