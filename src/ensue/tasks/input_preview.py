"""What was asked, as a cell of a table shows it: texts, tokens, rows, pictures, vectors."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from ensue.data.pictures.png import encode_png
from ensue.drawing.html import Markup, shortened
from ensue.drawing.svg import escape

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
