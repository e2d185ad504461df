"""The picture of the house on the architecture page: which package uses which.

Tasks and engines come from their tables. The picture is narrow enough for a phone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ensue.drawing.svg import (
    BLUE,
    GREY,
    INK,
    QUIET,
    STATES,
    VIOLET,
    Colour,
    Drawing,
    Point,
    text_width,
)
from ensue.engine import ENGINES
from ensue.tasks import ROOMS

WIDE, MARGIN, GAP, BESIDE, ROUND = 520.0, 14.0, 34.0, 10.0, 10.0
HEAD, TEXT, SMALL = 17.0, 14.0, 13.0  # sizes of letters
TITLE, LINE, PILL = 38.0, 21.0, 30.0  # heights
GREEN, AMBER = STATES[0], STATES[1]
PAPER_PILL = Colour(GREEN.line, "#ffffff")


class Stack(Drawing):
    """Boxes above one another, from the top; `y` is where the next one begins."""

    def __init__(self) -> None:
        super().__init__()
        self.y = MARGIN

    def box(
        self, sides: Point, title: str, lines: Sequence[str], colour: Colour, room: float = 0
    ) -> float:
        """A box between two sides, with its words and room below them; its height."""
        middle, width = sum(sides) / 2, sides[1] - sides[0]
        height = TITLE + LINE * len(lines) + room
        self.rectangle((middle, self.y + height / 2), width, height, ROUND, colour)
        self.words((middle, self.y + 20), title, HEAD, INK, weight=600)
        for k, line in enumerate(lines):
            self.words((middle, self.y + 44 + LINE * k), line, TEXT, INK)
        return height

    def floor(self, title: str, lines: Sequence[str], colour: Colour) -> None:
        self.y += self.box((MARGIN, WIDE - MARGIN), title, lines, colour)

    def doors(self, boxes: Sequence[tuple[str, str]], colour: Colour) -> None:
        """Boxes side by side."""
        each = (WIDE - 2 * MARGIN - BESIDE * (len(boxes) - 1)) / len(boxes)
        for k, (title, line) in enumerate(boxes):
            left = MARGIN + k * (each + BESIDE)
            height = self.box((left, left + each), title, [line], colour)
        self.y += height

    def rooms(self, names: Sequence[str]) -> None:
        """The data on the left, and an arrow from there to the tasks."""
        data, left, rows = (MARGIN, MARGIN + 116), MARGIN + 116 + GAP, (len(names) + 2) // 3
        count, room = f"{len(names)} tasks, each a description", rows * (PILL + BESIDE)
        height = self.box((left, WIDE - MARGIN), "Tasks", [count], GREEN, room)
        middle = self.y + height / 2
        self.box(data, "Data", ["files", "rows", "DataFrames"], GREY, height - TITLE - 3 * LINE)
        self.corners([(data[1] + 3, middle), (left - 3, middle)], INK)
        for k in range(rows):
            top = self.y + height - (rows - k) * (PILL + BESIDE)
            self.pills(names[3 * k : 3 * k + 3], ((left + WIDE - MARGIN) / 2, top + PILL / 2))
        self.y += height

    def pills(self, names: Sequence[str], centre: Point) -> None:
        widths = [text_width(name, TEXT) + 24 for name in names]
        x = centre[0] - (sum(widths) + BESIDE * (len(names) - 1)) / 2
        for name, width in zip(names, widths, strict=True):
            self.rectangle((x + width / 2, centre[1]), width, PILL, PILL / 2, PAPER_PILL)
            self.words((x + width / 2, centre[1]), name, TEXT, INK)
            x += width + BESIDE

    def arrow(self, words: str) -> None:
        """From the next floor up to the one above."""
        self.corners([(WIDE / 2, self.y + GAP - 3), (WIDE / 2, self.y + 3)], INK)
        self.words((WIDE / 2 + 12, self.y + GAP / 2), words, SMALL, QUIET, "start")
        self.y += GAP


def architecture() -> str:
    """The picture as SVG."""
    stack = Stack()
    doors = (
        ("Command line", "ensue train …"),
        ("Python", "ensue.load(…)"),
        ("Run folders", "resume, move"),
    )
    stack.doors(doors, BLUE)
    stack.arrow("is used from")
    stack.floor("Model", ["fit · evaluate · predict · save · load, written once"], BLUE)
    stack.arrow("are called by")
    stack.rooms(sorted(ROOMS))
    stack.arrow("make the networks of")
    layers = [
        "Recurrent, trees, drop-in RNN · GRU · LSTM,",
        "attention, Transformers, convolutions",
    ]
    stack.floor("Layers", layers, AMBER)
    stack.arrow("run")
    stack.floor("Engines", [" · ".join(ENGINES)], AMBER)
    stack.arrow("is walked or compiled by")
    derived = ["gives the derivative, the order of work, C++,", "text, LaTeX, pictures, counts"]
    stack.floor("Graph of a step", derived, VIOLET)
    stack.arrow("is traced into")
    stack.floor("Cell: its equations", ["h′ = (1 − u)·h + u·n"], VIOLET)
    return stack.svg(WIDE, stack.y + MARGIN, "The architecture of Ensue")
