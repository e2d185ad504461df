"""Where the words of a translation come from, drawn in the terminal and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ensue.data.layout import cut, width_of
from ensue.drawing.svg import FAINT, INK, QUIET, SANS, Drawing, number, text_width
from ensue.escape import printable
from ensue.tasks.seq2seq.shades import shaded
from ensue.tasks.translate.answer import Explained

LONGEST_NAME = 16  # cells of a word
CELL, TOP, LEFT, MARGIN = 26.0, 20.0, 16.0, 20.0  # pixels
DEEP = (30, 64, 175)  # the colour of weight 1


# --- in the terminal -------------------------------------------------------------------------


def alignment_text(found: Explained, width: int = 80, colour: bool = False) -> str:
    """A row for each word said, with its probability; a column for each word of the source, two
    cells wide. The darker a cell, the more the word looked there. Sources that the width does not
    hold are drawn in several pieces below one another."""
    names = [cut(printable(word), LONGEST_NAME) for word in found.tokens]
    left = max(width_of(name) for name in names)
    room = max(1, (width - left - 8) // 2)
    blocks = []
    for first in range(0, len(found.source), room):
        columns = slice(first, first + room)
        blocks.append(_block(found, names, left, columns, colour))
    return "\n\n".join("\n".join(block) for block in blocks)


def _block(
    found: Explained, names: Sequence[str], left: int, columns: slice, colour: bool
) -> list[str]:
    margin = " " * (left + 8)
    lines = [(margin + line).rstrip() for line in _heading(found.source[columns])]
    for name, probability, row in zip(names, found.probabilities, found.alignment, strict=True):
        cells = "".join(shaded(weight, colour) for weight in row[columns])
        space = " " * (left - width_of(name))
        lines.append(f"{name}{space}  {probability:4.0%}  {cells}".rstrip())
    return lines


def _heading(words: Sequence[str]) -> list[str]:
    """The words written downwards, their ends at the matrix; letters one above the other."""
    names = [cut(printable(word), LONGEST_NAME) for word in words]
    height = max(map(len, names))
    found = []
    for line in range(height):
        letters = [
            name[line - height + len(name)] if line >= height - len(name) else " " for name in names
        ]
        found.append("".join(letter + " " * (2 - width_of(letter)) for letter in letters))
    return found


# --- as a picture ----------------------------------------------------------------------------


class _Matrix(Drawing):
    def square(self, x: float, y: float, colour: str) -> None:
        self._body.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(CELL - 2)}" '
            f'height="{number(CELL - 2)}" rx="3" fill="{colour}"/>'
        )

    def slanted(self, x: float, y: float, text: str) -> None:
        """A word that rises to the right from its place."""
        self._body.append(
            f'<text x="{number(x)}" y="{number(y)}" font-family="{SANS}" font-size="13" '
            f'fill="{INK}" transform="rotate(-50 {number(x)} {number(y)})">{escape(text)}</text>'
        )


def alignment_picture(found: Explained) -> str:
    """The same as SVG: the source along the top, words slanted, the words said with their
    probabilities on the left, the weights as shades and, under the pointer, as numbers."""
    chart = _Matrix()
    source = [cut(printable(word), 2 * LONGEST_NAME) for word in found.source]
    said = [cut(printable(word), 2 * LONGEST_NAME) for word in found.tokens]
    longest = max(text_width(word, 13) for word in source)
    left = LEFT + max(text_width(word, 14) for word in said) + 52
    top = TOP + 24 + 0.77 * longest
    letters = all(len(word) == 1 for word in source)
    for k, word in enumerate(source):
        if letters:
            chart.words((left + (k + 0.5) * CELL - 1, top - 12), word, 14, INK, "middle")
        else:
            chart.slanted(left + k * CELL + 0.6 * CELL, top - 8, word)
    rows = zip(said, found.probabilities, found.alignment, strict=True)
    for line, (word, probability, weights) in enumerate(rows):
        y = top + line * CELL
        middle = y + CELL / 2 - 1
        chart.words((left - 50, middle), word, 14, INK, "end", weight=600)
        chart.words((left - 10, middle), f"{probability:.0%}", 11, QUIET, "end")
        for k, weight in enumerate(weights):
            chart.begin(f"{word} ← {source[k]}: {weight:.3f}")
            chart.square(left + k * CELL, y, _shade(weight))
            chart.end()
    bottom = top + len(said) * CELL + 16
    chart.words((left, bottom), "the darker, the more a word looked there", 11, FAINT, "start")
    wide = left + len(source) * CELL + 0.64 * longest + MARGIN
    return chart.svg(max(wide, left + 240), bottom + MARGIN, "Where each word comes from")


def _shade(weight: float) -> str:
    """From near white to deep blue."""
    share = min(max(weight, 0.0), 1.0)
    return "#" + "".join(f"{round(243 + (end - 243) * share):02x}" for end in DEEP)
