"""A model for a notebook: what it is, what it has learned, how its training went."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from ensue.data.pictures.images import encode_png
from ensue.drawing.html import Markup, and_more, block, figures, quiet, shortened, table
from ensue.drawing.inline import sparkline
from ensue.drawing.svg import escape
from ensue.tasks.any_model import AnyModel
from ensue.training import Validated

MOST_PIXELS = 96  # of a side of a picture


def preview_html(given: object) -> Markup:
    if isinstance(given, np.ndarray):
        return picture_html(given) if given.dtype == np.uint8 else Markup(escape(_shape(given)))
    return Markup(escape(shortened(_text(given))))


def _text(given: object) -> str:
    if isinstance(given, str):
        return " ".join(given.split())
    if isinstance(given, Mapping):
        return ", ".join(f"{key} {value}" for key, value in given.items())
    if isinstance(given, tuple):
        return " | ".join(map(_text, given))
    if isinstance(given, list):
        return " ".join(map(_text, given))
    return str(given)


def _shape(given: np.ndarray[Any, Any]) -> str:
    if given.ndim == 2:
        return f"{given.shape[0]} steps of {given.shape[1]} numbers"
    return f"numbers of shape {' × '.join(map(str, given.shape))}"


def picture_html(pixels: np.ndarray[Any, Any]) -> Markup:
    """pixels: (height, width) or (channels, height, width), of 1 or 3 channels."""
    whole = pixels[None] if pixels.ndim == 2 else pixels
    if whole.ndim != 3 or whole.shape[0] not in (1, 3) or not whole.size:
        return Markup(escape(_shape(pixels)))
    every = -(-max(whole.shape[1:]) // MOST_PIXELS)
    small = whole[:, ::every, ::every].transpose(1, 2, 0)
    data = base64.b64encode(encode_png(np.ascontiguousarray(small))).decode("ascii")
    style = "height:3.2em;image-rendering:pixelated;vertical-align:middle;border-radius:3px"
    return Markup(f'<img src="data:image/png;base64,{data}" style="{style}" alt="picture"/>')


MOST_MEMBERS, MOST_SETTINGS, LONGEST_VALUE = 5, 16, 60


def model_html(model: AnyModel) -> str:
    rows: list[tuple[str, object]] = [("network", model.describe())]
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


def _training(model: AnyModel) -> list[tuple[str, object]]:
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


def _changed(model: AnyModel) -> Markup:
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
