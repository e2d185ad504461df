"""A model for a notebook: what it is, what it has learned, how its training went."""

from __future__ import annotations

from typing import Any

from ensue.drawing.html import Markup, and_more, block, figures, quiet, shortened, table
from ensue.drawing.inline import sparkline
from ensue.drawing.svg import escape
from ensue.tasks.model import Model
from ensue.training import Validated

MOST_MEMBERS, MOST_SETTINGS, LONGEST_VALUE = 5, 16, 60


def model_html(model: Model[Any, Any, Any]) -> str:
    rows: list[tuple[str, object]] = [("network", model.task.describe(model))]
    if model.fitted:
        learned = [line.strip() for line in model.summary().splitlines()[1:]]
        rows += [("" if k else "learned", line) for k, line in enumerate(learned)]
        rows += _training(model)
    if changed := _changed(model):
        rows.append(("settings", changed))
    head = quiet(model.task.sentence if model.fitted else f"{model.task.sentence} Not fitted yet.")
    named = [
        (Markup(f'<span style="white-space:nowrap">{quiet(n)}</span>'), own) for n, own in rows
    ]
    return block(type(model).__name__, head, table(named))


def _training(model: Model[Any, Any, Any]) -> list[tuple[str, object]]:
    """The watched score of each member, where this model was trained and not loaded."""
    watched, found = model.train.watch, list[tuple[str, object]]()
    for member, rows in list(model.curves.members.items())[:MOST_MEMBERS]:
        if rows and all(watched in row.scores for row in rows):
            title = f"validation {watched}" + f", network {member + 1}" * (model.members > 1)
            found.append((title, _curve(rows, watched)))
    return found


def _curve(rows: list[Validated], watched: str) -> Markup:
    best = max(k for k, row in enumerate(rows) if row.best)
    told = f"best {figures(rows[best].scores[watched])}, at update {rows[best].update:,}"
    line = sparkline([row.scores[watched] for row in rows], best)
    return Markup(f"{line} {quiet(told)}")


def _changed(model: Model[Any, Any, Any]) -> Markup:
    """The settings that are not as usual."""
    usual, now = type(model)().config(), model.config()
    found = [f"{key}={_plain(value)}" for key, value in now.items() if value != usual.get(key)]
    told = [
        f'<span style="white-space:nowrap">{escape(own)}</span>' for own in found[:MOST_SETTINGS]
    ]
    return Markup(", ".join(told) + and_more(len(found) - len(told)))


def _plain(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return shortened(str(value), LONGEST_VALUE)
