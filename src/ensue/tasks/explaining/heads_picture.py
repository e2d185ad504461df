"""Where heads look, as a picture: a heat map for each head of each layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ensue.data.layout import cut
from ensue.drawing.chart import MARGIN
from ensue.drawing.svg import INK, QUIET, Drawing, text_width
from ensue.drawing.theme import mixed
from ensue.errors import OptionError
from ensue.escape import printable
from ensue.tasks.explaining.attribution_picture import wrapped
from ensue.tasks.explaining.numbers import token_name

if TYPE_CHECKING:
    from ensue.tasks.explaining.heads import HeadMap, HeadMaps, Weights

LARGEST, SMALLEST = 24.0, 6.0  # cells
MEAN, HEAD = 280.0, 120.0  # about how wide the matrix of the mean is, and that of a head
MOST_CELLS = 150_000
GAP = 26.0
LONGEST_NAME = 20
PALE, DEEP = "#f1f5f9", "#1e40af"  # colours of the weights 0 and 1
SAMPLES = 6
MOST_BESIDE = 4  # heads in a row


def heads_picture(found: HeadMaps) -> str:
    """A row for each layer: the mean of its heads with the tokens at its sides, and each head by
    itself; weights are numbers under the pointer."""
    cells = sum(len(own.keys) * len(own.queries) * (1 + len(own.heads)) for own in found.maps)
    if cells > MOST_CELLS:
        raise OptionError(
            f"--picture: expected at most {MOST_CELLS:,} weights, got {cells:,}; choose one with "
            "--layer, or give a shorter text"
        )
    drawing = Drawing()
    drawing.words((MARGIN, 36), "Attention", 20, INK, "start", weight=600)
    top, wide = 62.0, 460.0
    told = f"of {found.network}; each row sums up to 1, the bolder the more"
    for line in [*wrapped(told), *([f"answer: {found.answer}"] if found.answer else [])]:
        drawing.words((MARGIN, top), cut(printable(line), 116), 13, QUIET, "start")
        wide = max(wide, 2 * MARGIN + text_width(line, 13))
        top += 20
    for own in found.maps:
        title = f"{own.name}, layer {own.layer}"
        drawing.words((MARGIN, top + 20), title, 16, INK, "start", weight=600)
        top, right = _layer(drawing, own, top + 40)
        wide = max(wide, right + MARGIN)
    _key(drawing, top + 14)
    return drawing.svg(wide, top + 40, "Where the heads of a Transformer look")


def _layer(drawing: Drawing, own: HeadMap, top: float) -> tuple[float, float]:
    """Where the next layer begins, and how wide this one is."""
    keys = [token_name(token, LONGEST_NAME) for token in own.keys]
    queries = [token_name(token, LONGEST_NAME) for token in own.queries]
    longest = max(text_width(name, 12) for name in keys)
    cell, small = _side(MEAN, len(keys)), _side(HEAD, len(keys))
    letters = longest <= cell
    left = MARGIN + max(text_width(name, 13) for name in queries) + 8
    begin = top + (26 if letters else 18 + 0.77 * longest)
    for k, name in enumerate(keys):
        at = (left + (k + 0.5) * cell, begin - 10)
        if letters:
            drawing.words(at, name, 13)
        else:
            drawing.words(at, name, 12, INK, "start", turn=-50)
    for k, name in enumerate(queries):
        drawing.words((left - 8, begin + (k + 0.5) * cell - 1), name, 13, INK, "end")
    _matrix(drawing, own, "mean of the heads", own.mean, (left, begin), cell)
    bottom = begin + len(queries) * cell
    drawing.words((left + len(keys) * cell / 2, bottom + 12), "mean", 12, QUIET)
    right = left + len(keys) * cell + (8 if letters else 0.64 * longest)
    first, across = right + GAP, max(len(keys) * small, 46.0) + GAP
    down = len(queries) * small + 40
    for k, weights in enumerate(own.heads):
        x = first + (k % MOST_BESIDE) * across
        y = begin + (k // MOST_BESIDE) * down
        drawing.words((x, y - 10), f"head {k + 1}", 12, QUIET, "start")
        _matrix(drawing, own, f"head {k + 1}", weights, (x, y), small)
        right = max(right, x + across - GAP)
        bottom = max(bottom, y + down - 40)
    return bottom + 34, right


def _side(wide: float, cells: int) -> float:
    """Of a square, so that so many of them are about that wide."""
    return min(max(wide / cells, SMALLEST), LARGEST)


def _matrix(
    drawing: Drawing,
    own: HeadMap,
    title: str,
    weights: Weights,
    at: tuple[float, float],
    cell: float,
) -> None:
    gap = 2.0 if cell > 12 else 1.0
    for row, values in enumerate(weights):
        for column, weight in enumerate(values):
            if not weight:  # what is masked stays empty
                continue
            query, key = printable(own.queries[row]), printable(own.keys[column])
            drawing.begin(f"{title}: {query} → {key} {weight:.4f}")
            x, y = at[0] + column * cell, at[1] + row * cell
            drawing.bar(x, y, cell - gap, cell - gap, mixed(PALE, DEEP, weight), cell / 9)
            drawing.end()


def _key(drawing: Drawing, y: float) -> None:
    drawing.words((MARGIN, y), "0", 11, QUIET, "start")
    for k in range(SAMPLES):
        drawing.bar(MARGIN + 14 + 16 * k, y - 6, 14, 12, mixed(PALE, DEEP, k / (SAMPLES - 1)))
    drawing.words((MARGIN + 18 + 16 * SAMPLES, y), "1", 11, QUIET, "start")
