"""An explanation as a picture: the text on its colours, or a matrix where there are many
answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ensue.data.layout import cut
from ensue.drawing.chart import MARGIN
from ensue.drawing.colours import ABOVE, BELOW, mixed
from ensue.drawing.svg import INK, QUIET, Drawing, text_width
from ensue.escape import printable
from ensue.tasks.explaining.numbers import plain, share, small, token_name, with_sign

if TYPE_CHECKING:
    from ensue.tasks.explaining.attribution import Attributions

WIDE = 900.0
SIZE, HIGH, LINE = 16.0, 26.0, 50.0  # of a token: letters, box, distance of lines
CELL = 26.0  # of the matrix
STRONGEST, DEEPEST = 0.48, 0.9  # of a colour: words on the first must be read
LEAST = 0.04  # share of the strongest score from which on a number is written
LONGEST_NAME = 28
SAMPLES = 9
TITLES = {
    "occlusion": "Occlusion",
    "gradient": "Gradient × input",
    "integrated": "Integrated gradients",
}


class LabelRows(NamedTuple):
    """A row for each answer: at which step, its label, what is told of it, scores by token."""

    steps: Sequence[int]
    labels: Sequence[str]
    told: Sequence[str]
    scores: Sequence[Sequence[float]]


def attribution_picture(found: Attributions) -> str:
    """The picture as SVG; scores are numbers below the tokens, and under the pointer."""
    drawing = Drawing()
    drawing.words((MARGIN, 36), TITLES[found.method], 20, INK, "start", weight=600)
    top = 62.0
    lines = wrapped(f"{_told(found)}; of {found.of}")
    for line in lines:
        drawing.words((MARGIN, top), line, 13, QUIET, "start")
        top += 20
    top, wide = _answers(drawing, found, top + 16)
    if found.linear:
        top, other = _linear(drawing, found, top + 18)
        wide = max(wide, other)
    bottom = _key(drawing, top + 8, STRONGEST if found.answers[0].step is None else DEEPEST)
    longest = max(text_width(line, 13) for line in lines)
    whole = max(wide + MARGIN, 2 * MARGIN + longest, 460.0)
    return drawing.svg(whole, bottom, f"{TITLES[found.method]}: what an answer rests on")


def _told(found: Attributions) -> str:
    if found.method == "occlusion":
        return f"{found.baseline}: what it adds to the {found.measure}"
    if found.method == "gradient":
        return f"{found.baseline}: parts of the {found.measure}"
    errors = [own.error for own in found.answers if own.error is not None]
    return (
        f"parts of the {found.measure}; baseline: {found.baseline}; {found.points} points, "
        f"completeness error {small(max(errors))}"
    )


def wrapped(text: str, most: int = 116) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _answers(drawing: Drawing, found: Attributions, top: float) -> tuple[float, float]:
    """Where the rest begins, and how wide it is."""
    if found.answers[0].step is not None:
        steps = [own.step or 0 for own in found.answers]
        labels = [own.answer for own in found.answers]
        shares = [share(own.probability) for own in found.answers]
        rows = LabelRows(steps, labels, shares, [own.scores for own in found.answers])
        return _matrix(drawing, found.tokens, rows, top)
    wide = 0.0
    for own in found.answers:
        told = f"{share(own.probability)}  ·  {found.measure} {plain(own.output)}"
        if own.reference is not None:
            told += f", of the baseline {plain(own.reference)}"
        top = _title(drawing, own.answer, told.removeprefix("  ·  "), top)
        top, other = _text(drawing, found.tokens, own.scores, found.sides, top)
        wide = max(wide, other)
    return top, wide


def _linear(drawing: Drawing, found: Attributions, top: float) -> tuple[float, float]:
    drawing.words((MARGIN, top), "The linear model by itself", 16, INK, "start", weight=600)
    drawing.words((MARGIN, top + 22), f"{found.linear_measure}, exactly", 13, QUIET, "start")
    top += 52
    if found.linear[0].step is not None:
        steps = [own.step or 0 for own in found.linear]
        labels = [own.answer for own in found.linear]
        sums = [with_sign(own.output) for own in found.linear]
        rows = LabelRows(steps, labels, sums, [own.scores for own in found.linear])
        return _matrix(drawing, found.linear[0].tokens, rows, top)
    wide = 0.0
    for own in found.linear:
        told = f"{plain(own.output)} = {plain(own.bias)} + {plain(sum(own.scores))} of the words"
        top = _title(drawing, own.answer, told, top)
        top, other = _text(drawing, own.tokens, own.scores, (len(own.tokens),), top)
        named = ", ".join(f"{printable(p.text)} {with_sign(p.score)}" for p in own.phrases[:6])
        for line in wrapped(f"features that count most: {named}"):
            drawing.words((MARGIN, top), line, 13, QUIET, "start")
            wide = max(wide, other, MARGIN + text_width(line, 13))
            top += 20
        top += 12
    return top, wide


def _title(drawing: Drawing, name: str, told: str, top: float) -> float:
    name = cut(printable(name), LONGEST_NAME)
    drawing.words((MARGIN, top), name, 17, INK, "start", weight=600)
    drawing.words((MARGIN + text_width(name, 18) + 12, top), told, 13, QUIET, "start")
    return top + 34


def tone(value: float, strongest: float = STRONGEST) -> str:
    """Of a score from −1 to 1: blue above zero, orange below."""
    return mixed(ABOVE if value >= 0 else BELOW, 0.03 + (strongest - 0.03) * min(abs(value), 1.0))


# --- a text --------------------------------------------------------------------------------------


def _text(
    drawing: Drawing,
    tokens: Sequence[str],
    scores: Sequence[float],
    sides: Sequence[int],
    top: float,
) -> tuple[float, float]:
    """Tokens on their colours, line by line, a number below those that count; each side begins a
    line of its own."""
    most = max(map(abs, scores), default=0.0) or 1.0
    letters = all(len(token) == 1 for token in tokens)
    ends = {sum(sides[: k + 1]) for k in range(len(sides))}
    x, wide = MARGIN, MARGIN
    for k, (token, score) in enumerate(zip(tokens, scores, strict=True)):
        name = token_name(token, LONGEST_NAME)
        number = with_sign(score) if abs(score) >= LEAST * most else ""
        room = max(text_width(name, SIZE) + 10, 0.0 if letters else text_width(number, 10) + 2)
        if x > MARGIN and (x + room > WIDE - MARGIN or k in ends):
            x, top = MARGIN, top + LINE
        drawing.begin(f"{name}: {score:+.4g}")
        drawing.bar(x, top - HIGH / 2, room, HIGH, tone(score / most), 4)
        drawing.words((x + room / 2, top), name, SIZE)
        drawing.end()
        if not letters or abs(score) >= 0.5 * most:
            drawing.words((x + room / 2, top + 22), number, 10, QUIET)
        x += room + (1 if letters else 4)
        wide = max(wide, x)
    return top + LINE, wide


# --- a matrix ------------------------------------------------------------------------------------


def _matrix(
    drawing: Drawing, tokens: Sequence[str], rows: LabelRows, top: float
) -> tuple[float, float]:
    """Answers below each other, tokens along the top; the cell of an answer's own step has a
    frame."""
    most = max((abs(v) for own in rows.scores for v in own), default=0.0) or 1.0
    names = [token_name(token, LONGEST_NAME) for token in tokens]
    labels = [cut(printable(label), LONGEST_NAME) for label in rows.labels]
    longest = max(text_width(name, 13) for name in names)
    first = max(text_width(names[step - 1], 15.5) for step in rows.steps)
    second = max(text_width(label, 14.5) for label in labels)
    left = MARGIN + first + second + 78
    top += 6 + 0.77 * longest
    for k, name in enumerate(names):
        drawing.words((left + (k + 0.5) * CELL, top - 8), name, 13, INK, "start", turn=-50)
    for line, step in enumerate(rows.steps):
        y = top + line * CELL
        middle = y + CELL / 2 - 1
        drawing.words((MARGIN + first, middle), names[step - 1], 14, INK, "end", weight=600)
        drawing.words((MARGIN + first + 12, middle), labels[line], 13, INK, "start")
        drawing.words((left - 8, middle), rows.told[line], 11, QUIET, "end")
        for k, score in enumerate(rows.scores[line]):
            drawing.begin(f"{labels[line]} at {names[step - 1]} ← {names[k]}: {score:+.4g}")
            drawing.bar(left + k * CELL, y, CELL - 2, CELL - 2, tone(score / most, DEEPEST), 3)
            drawing.end()
        x, end = left + (step - 1) * CELL - 1, CELL
        corners = [(x, y - 1), (x + end, y - 1), (x + end, y + end - 1), (x, y + end - 1)]
        drawing.line([*corners, corners[0]], QUIET, 1)
    bottom = top + len(rows.steps) * CELL + 24
    return bottom, left + len(names) * CELL + 0.64 * longest


def _key(drawing: Drawing, y: float, strongest: float) -> float:
    """What the colours mean; the height of the picture."""
    drawing.words((MARGIN, y), "against", 11, QUIET, "start")
    left = MARGIN + 50
    for k in range(SAMPLES):
        drawing.bar(left + 16 * k, y - 6, 14, 12, tone(2 * k / (SAMPLES - 1) - 1, strongest))
    drawing.words((left + 16 * SAMPLES + 6, y), "for the answer", 11, QUIET, "start")
    return y + 26
