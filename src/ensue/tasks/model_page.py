"""The page of a model in a notebook: its settings, what it has learned, its training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ensue.data.pictures.images import encode_png
from ensue.drawing.document import Cell, Curve, Document, Image, Piece, Table, Words
from ensue.drawing.layout import cut, figures
from ensue.tasks.any_model import AnyModel

MOST_PIXELS = 96  # maximum side of a picture in pixels
MOST_MEMBERS, MOST_SETTINGS, LONGEST_VALUE = 5, 16, 60


def input_cell(value: object) -> Cell:
    """An input in a few words, or as a picture."""
    if isinstance(value, np.ndarray):
        return _picture(value) if value.dtype == np.uint8 else _shape(value)
    return _text(value)


def _text(inputs: object) -> str:
    if isinstance(inputs, str):
        return " ".join(inputs.split())
    if isinstance(inputs, Mapping):
        return ", ".join(f"{key} {value}" for key, value in inputs.items())
    if isinstance(inputs, tuple):
        return " | ".join(map(_text, inputs))
    if isinstance(inputs, list):
        return " ".join(map(_text, inputs))
    return str(inputs)


def _shape(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 2:
        return f"{array.shape[0]} steps of {array.shape[1]} numbers"
    return f"numbers of shape {' × '.join(map(str, array.shape))}"


def _picture(pixels: np.ndarray[Any, Any]) -> Cell:
    """A picture on the page. pixels: (height, width) or (channels, height, width), of 1 or 3
    channels."""
    whole = pixels[None] if pixels.ndim == 2 else pixels
    if whole.ndim != 3 or whole.shape[0] not in (1, 3) or not whole.size:
        return _shape(pixels)
    every = -(-max(whole.shape[1:]) // MOST_PIXELS)
    small = whole[:, ::every, ::every].transpose(1, 2, 0)
    return Image(encode_png(np.ascontiguousarray(small)))


def model_document(model: AnyModel) -> Document:
    rows: list[tuple[str, Cell]] = [("network", model.describe())]
    if model.fitted:
        learned = [line.strip() for line in model.summary().splitlines()[1:]]
        rows += [("" if k else "learned", line) for k, line in enumerate(learned)]
        rows += _training(model)
    if changed := _changed(model):
        rows.append(("settings", Words(changed)))
    about = model.task.sentence if model.fitted else f"{model.task.sentence} Not fitted yet."
    return Document(type(model).__name__, about, [Table(rows, left=2)])


def _training(model: AnyModel) -> list[tuple[str, Cell]]:
    """The watched score of each member, if this model was trained and not loaded."""
    watched, training = model.train.watch, list[tuple[str, Cell]]()
    for member, rows in list(model.curves.members.items())[:MOST_MEMBERS]:
        if rows and all(watched in row.scores for row in rows):
            name = f", network {member + 1}" * (model.members > 1)
            scores = [(row.update, row.scores[watched], row.best) for row in rows]
            training.append((f"validation {watched}{name}", score_curve(scores)))
    return training


def score_curve(rows: Sequence[tuple[int, float, bool]]) -> Curve:
    """The curve of a score. rows: update, score, and whether it was the best so far."""
    best = max(k for k, (_, _, is_best) in enumerate(rows) if is_best)
    update, score, _ = rows[best]
    text = f"best {figures(score)}, at update {update:,}"
    return Curve([score for _, score, _ in rows], best, text)


def _changed(model: AnyModel) -> list[Piece]:
    """The settings that differ from their defaults."""
    usual, now = type(model)().config(), model.config()
    changed = [f"{key}={_plain(value)}" for key, value in now.items() if value != usual.get(key)]
    more = len(changed) - MOST_SETTINGS
    rest = [f"and {more:,} more"] * (more > 0)
    return [*map(Piece, [*changed[:MOST_SETTINGS], *rest])]


def _plain(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return cut(str(value), LONGEST_VALUE)
