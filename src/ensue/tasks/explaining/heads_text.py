"""Where heads look, in the terminal: a matrix for each head, beside one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ensue.data.layout import downwards, width_of
from ensue.drawing.shades import shaded
from ensue.escape import printable
from ensue.tasks.explaining.numbers import token_name

if TYPE_CHECKING:
    from ensue.tasks.explaining.heads import HeadMap, HeadMaps

LONGEST_NAME = 14  # cells of a token
GAP = 3  # cells between two matrices
NARROWEST = 8  # cells for the name of a head


def heads_text(found: HeadMaps, width: int, colour: bool) -> str:
    """For each layer the mean of its heads, then head by head: a row for each token that looks, a
    column for each that is looked at; the darker, the more."""
    blocks = [f"answer: {printable(found.answer)}"] if found.answer else []
    blocks.append(f"of {found.network}; each row sums up to 1")
    for own in found.maps:
        blocks.append(f"{own.name}, layer {own.layer}")
        blocks += _rows_of_matrices(own, width, colour)
    return "\n\n".join(blocks)


def _rows_of_matrices(own: HeadMap, width: int, colour: bool) -> list[str]:
    names = [token_name(token, LONGEST_NAME) for token in own.queries]
    left = max(map(width_of, names)) + 2
    wide = max(2 * len(own.keys), NARROWEST)
    beside = max(1, (width - left + GAP) // (wide + GAP))
    matrices = [("mean", own.mean), *((f"head {k}", w) for k, w in enumerate(own.heads, 1))]
    heading = downwards([token_name(token, LONGEST_NAME) for token in own.keys])
    blocks = []
    for first in range(0, len(matrices), beside):
        some = matrices[first : first + beside]
        lines = [[" " * left, *(title for title, _ in some)]]
        lines += [[" " * left, *(line for _ in some)] for line in heading]
        for k, name in enumerate(names):
            cells = ["".join(shaded(v, colour) for v in weights[k]) for _, weights in some]
            lines.append([name + " " * (left - width_of(name)), *cells])
        blocks.append("\n".join(_joined(line, wide, colour) for line in lines))
    return blocks


def _joined(cells: Sequence[str], wide: int, colour: bool) -> str:
    """The name and its matrices in one line; what has colours is as wide as all its cells."""
    name, *rest = cells
    padded = [own if "\x1b" in own else own + " " * (wide - width_of(own)) for own in rest]
    return (name + (" " * GAP).join(padded)).rstrip()
