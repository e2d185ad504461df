"""Where the words of a translation come from, as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ensue.drawing.layout import cut, downwards, width_of
from ensue.drawing.svg import INK, QUIET, Drawing, text_width
from ensue.drawing.theme import mixed, shaded
from ensue.escape import printable
from ensue.tasks.seq2seq.answer import Explained

LONGEST_NAME = 16  # cells of a word
CELL, TOP, LEFT, MARGIN = 26.0, 20.0, 16.0, 20.0  # pixels
PALE, DEEP = "#f1f5f9", "#1e40af"  # colours of the weights 0 and 1
SAMPLES = 6  # of weights, below the picture


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
    heading = downwards([cut(printable(word), LONGEST_NAME) for word in found.source[columns]])
    lines = [(margin + line).rstrip() for line in heading]
    for name, probability, row in zip(names, found.probabilities, found.alignment, strict=True):
        cells = "".join(shaded(weight, colour) for weight in row[columns])
        space = " " * (left - width_of(name))
        lines.append(f"{name}{space}  {probability:4.0%}  {cells}".rstrip())
    return lines


# --- as a picture ----------------------------------------------------------------------------


def alignment_picture(found: Explained) -> str:
    """The same as SVG: the source along the top, words slanted, the words said with their
    probabilities on the left, the weights as shades and, under the pointer, as numbers."""
    drawing = Drawing()
    source = [cut(printable(word), 2 * LONGEST_NAME) for word in found.source]
    said = [cut(printable(word), 2 * LONGEST_NAME) for word in found.tokens]
    longest = max(text_width(word, 13) for word in source)
    left = LEFT + max(text_width(word, 14) for word in said) + 52
    top = TOP + 24 + 0.77 * longest
    letters = all(len(word) == 1 for word in source)
    for k, word in enumerate(source):
        if letters:
            drawing.words((left + (k + 0.5) * CELL - 1, top - 12), word, 14, INK, "middle")
        else:
            at = (left + (k + 0.5) * CELL, top - 10)
            drawing.words(at, word, 13, INK, "start", turn=-50)
    rows = zip(said, found.probabilities, found.alignment, strict=True)
    for line, (word, probability, weights) in enumerate(rows):
        y = top + line * CELL
        middle = y + CELL / 2 - 1
        drawing.words((left - 50, middle), word, 14, INK, "end", weight=600)
        drawing.words((left - 10, middle), f"{probability:.0%}", 11, QUIET, "end")
        for k, weight in enumerate(weights):
            drawing.begin(f"{word} ← {source[k]}: {weight:.3f}")
            drawing.bar(left + k * CELL, y, CELL - 2, CELL - 2, mixed(PALE, DEEP, weight), 3)
            drawing.end()
    bottom = top + len(said) * CELL + 16
    drawing.words((left, bottom), "attention 0", 11, QUIET, "start")
    for k in range(SAMPLES):
        colour = mixed(PALE, DEEP, k / (SAMPLES - 1))
        drawing.bar(left + 68 + 14 * k, bottom - 6, 12, 12, colour)
    drawing.words((left + 72 + 14 * SAMPLES, bottom), "1", 11, QUIET, "start")
    wide = left + len(source) * CELL + 0.64 * longest + MARGIN
    return drawing.svg(max(wide, left + 200), bottom + MARGIN, "Where each word comes from")


@dataclass(frozen=True)
class TranslationExplanation:
    """A translation drawn as a matrix: the darker, the more a word looked there."""

    found: Explained

    def as_text(self, width: int, colour: bool) -> str:
        return f"{self.found.text}\n\n{alignment_text(self.found, width, colour)}"

    def as_svg(self) -> str:
        return alignment_picture(self.found)
