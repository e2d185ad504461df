"""A report as a JSON file, and back."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.engine.case import Case
from benchmarks.engine.report import Report, Result
from benchmarks.engine.targets import verdicts
from benchmarks.engine.timing import RunTiming
from ensue.errors import OptionError
from ensue.files.disk import write_whole

FORMAT = 1
FACTS = ("environment", "runs", "finished", "problems", "gemm")


def as_json(report: Report) -> dict[str, Any]:
    """Seconds and flops a second, unrounded; what follows from the timings (shares, goals) is
    there for reading only."""
    rows = []
    for result in report.results:
        share = report.share(result)
        facts = asdict(result)
        facts["share"] = None if math.isnan(share) else share
        rows.append({"name": result.case.name, **facts})
    goals = [{**asdict(one), "met": one.met} for one in verdicts(report)]
    head = {"format": FORMAT, **{name: getattr(report, name) for name in FACTS}}
    return {**head, "results": rows, "goals": goals}


def from_json(data: dict[str, Any]) -> Report:
    results = [
        Result(
            Case(**row["case"]),
            {name: RunTiming(**one) for name, one in row["timings"].items()},
            row["flops"],
            row["real_steps"],
            row["absent"],
        )
        for row in data["results"]
    ]
    return Report(results=results, **{name: data[name] for name in FACTS})


def save(report: Report, path: Path) -> None:
    write_whole(path, (json.dumps(as_json(report), indent=1) + "\n").encode())


def read(path: Path) -> Report:
    """The report that `ensue bench --json` has written."""
    if path.exists() and not path.is_file():
        raise OptionError(f"{path} cannot be read: it is no file")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise OptionError(f"{path} cannot be read: {problem.strerror}") from problem
    except (ValueError, RecursionError) as problem:
        raise OptionError(f"{path}: expected JSON of `ensue bench`, got {problem}") from problem
    got = data.get("format") if isinstance(data, dict) else type(data).__name__
    if got != FORMAT:
        raise OptionError(f"{path}: expected JSON of `ensue bench`, format {FORMAT}, got {got}")
    return from_json(data)
