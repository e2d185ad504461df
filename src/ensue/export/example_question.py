"""A question that an exported model answers, as an example: with the columns it was trained with,
and values of their kinds."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

from ensue.tasks.exported import Exported, Step

FIRST_DAY = date(2026, 1, 1)
SHOWN_STEPS = 12  # of a series; of more the middle is left out
LEFT_OUT = "…"


def _row(step: Step) -> dict[str, Any]:
    dates = {own["name"]: str(FIRST_DAY) for own in step["features"] if own["reads"]}
    numbers = [own for own in (*step["features"], *step["numbers"]) if own["name"] not in dates]
    found: dict[str, Any] = {step["text"]["name"]: "a text"} if "text" in step else {}
    found |= {own["name"]: float(f"{own['mean']:.3g}") for own in numbers}
    found |= {own["name"]: next(iter(own["categories"]), "") for own in step["categories"]}
    return found | dates


def _times(names: list[str], count: int) -> dict[str, list[Any]]:
    """One column of dates, or a column for each part of them."""
    days = [FIRST_DAY + timedelta(days=k) for k in range(count)]
    if len(names) == 1:
        return {names[0]: list(map(str, days))}
    return {name: [getattr(own, name.strip().lower(), 0) for own in days] for name in names}


def _series(step: Step) -> list[float] | dict[str, Any]:
    """As many steps as are needed; what is known ahead is longer."""
    count, names = max(step["least"], 3), step["columns"]
    numbers = [float(k + 1) for k in range(count)]
    if not step["time"] and not step["ids"] and len(names) == 1:
        return numbers
    ahead = step["horizon"] if step["known"] else 0
    found: dict[str, Any] = dict(zip(step["ids"], next(iter(step["series"]), ()), strict=False))
    found |= _times(step["time"], count + ahead) if step["time"] else {}
    found |= dict.fromkeys(names, numbers)
    found |= {name: [0.0] * (count + ahead) for name in names[len(names) - step["known"] :]}
    return found | {name: (code["names"] or [code["mean"]])[0] for name, code in step["static"]}


def _vectors(width: int) -> list[list[float]]:
    return [[float(k) for k in range(width)]] * 2


QUESTIONS: dict[str, Callable[[Step], Any]] = {  # by the first step that is done to a question
    "pair": lambda step: ["a text", "another text"],
    "row": _row,
    "picture": lambda step: {"shape": step["shape"], "data": LEFT_OUT},
    "series": _series,
    "brackets": lambda step: "(S (NP the cat) (VP sat))",
    "vectors": lambda step: _vectors(step["width"]),
    "scale": lambda step: _vectors(len(step["mean"])),
}


def example_question(exported: Exported) -> Any:
    step = exported.before[0]
    made = QUESTIONS.get(step["step"])
    return "a text" if made is None else made(step)


def _abridged(question: Any) -> Any:
    """Without the middle of what is long."""
    if isinstance(question, dict):
        return {name: _abridged(own) for name, own in question.items()}
    if isinstance(question, list) and len(question) > SHOWN_STEPS:
        return [*question[:2], LEFT_OUT, question[-1]]
    return question


def as_json(question: Any) -> str:
    written = json.dumps(_abridged(question), ensure_ascii=False)
    return written.replace(json.dumps(LEFT_OUT, ensure_ascii=False), LEFT_OUT)


def on_command_line(exported: Exported) -> str:
    """As predict.py takes it: a text as it is, a picture as the name of a file, else JSON."""
    if exported.before[0]["step"] == "picture":
        return "picture.npy"
    question = example_question(exported)
    return shlex.quote(question if isinstance(question, str) else as_json(question))


def is_fed(exported: Exported) -> bool:
    """Whether it takes piece by piece."""
    return any(step["step"] == "stream" for step in exported.before)


def feeding(exported: Exported) -> str:
    """Two pieces of the example as they are fed, in Python and in JavaScript."""
    question = example_question(exported)
    parts = question.split() if isinstance(question, str) else [[own] for own in question]
    return "; ".join(f"fed.feed({as_json(own)})" for own in parts[:2])
