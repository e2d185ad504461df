"""A whole forecast in C: the solved members as tables of numbers, and the code that reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ensue.tasks.exported import Exported

RUNTIME = Path(__file__).parent / "runtime_c"
WRITTEN = ("forecast.h", "forecast.c", "members.h")
EXAMPLE = "forecast_example.c"
KINDS = {"repeated": "r", "ridge": "w", "smoothing": "s", "autoregression": "a", "arima": "m"}
ANCHORS = {"season": "s", "mean": "m"}
TRANSFORMS = {"none": "n", "log": "l", "log1p": "p"}


def is_forecast(exported: Exported) -> bool:
    """Whether C can forecast from the numbers of a series alone: no panel, and nothing but the
    columns and the calendar is read."""
    step = exported.before[0]
    return step["step"] == "series" and not any(step[key] for key in ("ids", "static", "known"))


def forecast_files(exported: Exported) -> dict[str, str]:
    """By name: the code, its tables, and an example."""
    files = {name: (RUNTIME / name).read_text(encoding="utf-8") for name in WRITTEN}
    files["example.c"] = (RUNTIME / EXAMPLE).read_text(encoding="utf-8")
    files["forecast_facts.h"] = "\n".join(_facts(exported))
    return files


def line_of(exported: Exported) -> str:
    """What the example reads in a line: "<phase of month> <sales>"."""
    step = exported.before[0]
    names = [*(f"phase of {name}" for name in step["calendar"]), *step["columns"]]
    return " ".join(f"<{_plain(name)}>" for name in names)


def reads_clock(exported: Exported) -> bool:
    """Whether a solved member reads at which time the series ends."""
    step = exported.before[0]
    facts = [{**own, **own.get("form", {})} for own in step["members"]]
    return bool(step["time"]) and any(len(own.get("periods", [])) for own in facts)


def forecast_remark(exported: Exported, folder: Path) -> str:
    """How to try it: the command, and what stands in a line that it reads."""
    step = exported.before[0]
    clock = " CLOCK" if reads_clock(exported) else ""
    told = [
        f"try it: cd {folder} && cc -std=c99 example.c forecast.c model.c -lm -o example && "
        f"./example{clock} < numbers",
        f"where each line of numbers is: {line_of(exported)}",
    ]
    if step["calendar"]:
        told.append(
            f"with {step['horizon']} more lines, nan behind their phases, for the steps ahead"
        )
    if clock:
        told.append("and CLOCK is the time of the last step (forecast.h)")
    return ", ".join(told)


def _plain(name: str) -> str:
    """The name of a column, whatever it is, as a comment and a string of C can hold it."""
    kept = (own if own.isascii() and (own.isalnum() or own in " _-.:") else "_" for own in name)
    return "".join(kept)


def _facts(exported: Exported) -> list[str]:
    step, after = exported.before[0], exported.after[0]
    columns, targets, members = len(step["columns"]), step["targets"], step["members"]
    sizes = {
        "COLUMNS": columns,
        "TARGETS": targets,
        "CALENDAR": len(step["calendar"]),
        "WIDTH": columns + (targets if members else 0) + 2 * len(step["calendar"]),
        "LOOK_BACK": step["look_back"],
        "HORIZON": step["horizon"],
        "LEAST": step["least"],
        "LAG": step["lag"],
        "SEASON": step["season"],
        "ROOM": step["room"],
        "MEMBERS": len(members),
        "FLOORED": int(step["floor"] is not None),
        "WIDENED": int(after["widening"] is not None),
        "CLOCK": int(reads_clock(exported)),
        "LINE": f'"{line_of(exported)}"',
        "TRANSFORM": f"'{TRANSFORMS[step['transform']]}'",
    }
    return [
        "/* Written by `ensue export`: what a forecast knows beside its network. */",
        "#ifndef ENSUE_FORECAST_FACTS",
        "#define ENSUE_FORECAST_FACTS",
        "",
        '#include "members.h"',
        "",
        f"/* columns: {', '.join(map(_plain, step['columns']))} */",
        *(f"#define FORECAST_{name} {value}" for name, value in sizes.items()),
        "",
        *_array("forecast_mean", step["mean"][0]),
        *_array("forecast_spread", step["spread"][0]),
        *_array("forecast_floor", step["floor"] or [0.0]),
        *_array("forecast_widening", after["widening"] or [0.0]),
        *_members(members),
        "",
        "#endif",
        "",
    ]


def _array(name: str, values: Any) -> list[str]:
    """A table of numbers; forecast.h is read by several files."""
    flat = np.ravel(np.asarray(values, np.float64)).tolist() or [0.0]
    lines = [", ".join(map(repr, flat[k : k + 6])) for k in range(0, len(flat), 6)]
    return [f"static const double {name}[] = {{", *(f"    {own}," for own in lines), "};"]


def _members(members: Sequence[Mapping[str, Any]]) -> list[str]:
    lines, rows = list[str](), list[str]()
    for number, own in enumerate(members):
        facts = {**own, **own.get("form", {})}
        tables = {
            "periods": facts.get("periods", []),
            "weight": own.get("weight", []),
            "bias": own.get("bias", []),
            "floor": own.get("floor", []),
            "parameters": own["parameters"][0] if "parameters" in own else [],
        }
        for name, values in tables.items():
            lines += _array(f"forecast_{name}_{number}", values)
        places = ", ".join(f"forecast_{name}_{number}" for name in tables)
        numbers = [
            max(1, int(facts.get("season", 1))),
            int(facts.get("lags", facts.get("look_back", 0))),
            int(facts.get("difference", 0)),
            np.shape(own["weight"])[-1] if "weight" in own else 0,
            len(own["weight"]) if "weight" in own else 1,
            len(facts.get("periods", [])),
            int(facts.get("transform", "none") != "none"),
            int(facts.get("multiplies", False)),
            int(facts.get("scaled", False)),
        ]
        anchor = ANCHORS.get(facts.get("anchor", ""), "l")
        kind, listed = KINDS[own["kind"]], ", ".join(map(str, numbers))
        rows.append(f"    {{'{kind}', {own['share']!r}, {listed}, '{anchor}', {places}}},")
    if not rows:
        rows = ["    {0},"]
    return [*lines, "static const ensue_member forecast_members[] = {", *rows, "};"]
