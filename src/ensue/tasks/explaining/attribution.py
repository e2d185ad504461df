"""Attributions: the contribution of each token to an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ensue.drawing.chart import MARGIN
from ensue.drawing.document import Drawn
from ensue.drawing.layout import cut, width_of
from ensue.drawing.matrix import (
    column_height,
    column_names,
    diverging,
    matrix_text,
    short_name,
    short_names,
    sign_key,
    squares,
)
from ensue.drawing.svg import INK, QUIET, Drawing, text_width
from ensue.drawing.theme import signed, tinted
from ensue.escape import printable


def with_sign(value: float) -> str:
    """
    >>> with_sign(1.234), with_sign(-0.0512), with_sign(0.00012), with_sign(0)
    ('+1.23', '−0.051', '+0.00012', '0')
    """
    if not value:
        return "0"
    digits = 2 if abs(value) >= 0.1 else 3
    text = f"{value:+.{digits}f}" if abs(value) >= 0.001 else f"{value:+.2g}"
    return text.replace("-", "−")


def plain(value: float) -> str:
    """
    >>> plain(-1.23456), plain(0.0001)
    ('−1.235', '0.0001')
    """
    return f"{value:.4g}".replace("-", "−")


def small(value: float) -> str:
    """
    >>> small(0.00641), small(5.53e-14)
    ('0.0064', '5.5e−14')
    """
    return f"{value:.2g}".replace("-", "−")


def share(probability: float | None) -> str:
    """
    >>> share(0.914), share(0.9996), share(1.0), share(None)
    ('91 %', '99.96 %', '100 %', '')
    """
    if probability is None:
        return ""
    percent = 100 * probability
    plain_enough = 1 <= percent < 99 or percent > 99.995
    return f"{percent:.0f} %" if plain_enough else f"{percent:.2f} %"


@dataclass(frozen=True)
class Attribution:
    """The attribution of one answer. answer: a label or a number; step: its number, from 1, if each
    step has an answer; probability: None for a number; output: the explained value, see
    `Attributions.measure`; scores: contribution of each token. With a baseline for all tokens
    together, reference is its output and error is |Σ scores − (output − reference)|."""

    answer: str
    step: int | None
    probability: float | None
    output: float
    scores: tuple[float, ...]
    reference: float | None = None
    error: float | None = None


@dataclass(frozen=True)
class Phrase:
    """The score of one feature of the linear model: words or letters."""

    text: str
    score: float


@dataclass(frozen=True)
class LinearAttribution:
    """The linear model's part in an answer: output = bias + Σ scores, exactly. bias: the part that
    does not come from tokens, including columns next to the text; tokens: the tokens of the linear
    model; phrases: the features with the greatest contributions."""

    answer: str
    step: int | None
    output: float
    bias: float
    tokens: tuple[str, ...]
    scores: tuple[float, ...]
    phrases: tuple[Phrase, ...] = ()


@dataclass(frozen=True)
class Attributions(Drawn):
    """The attributions of the answers to one input. tokens: the tokens of the input; for a pair,
    the tokens of both sides, with the number of tokens of each in `sides`. inputs: names of several
    inputs: each is a side, and its name the prefix of its tokens. method, baseline: how scores were
    computed; measure: the value of which scores are parts; of: the explained model, the combined
    one or only the networks; points: number of points of the integral. linear: the linear model's
    part, if it contributes to answers and `of` excludes it.

    >>> found = Attribution("good", None, 0.8, 1.4, (0.1, 1.2))
    >>> own = Attributions(("a", "fine"), (2,), "occlusion", "", "log-odds", "all", (found,))
    >>> own.strongest(1)
    [('fine', 1.2)]
    """

    tokens: tuple[str, ...]
    sides: tuple[int, ...]
    method: str
    baseline: str
    measure: str
    of: str
    answers: tuple[Attribution, ...]
    linear: tuple[LinearAttribution, ...] = ()
    linear_measure: str = ""
    points: int | None = None
    inputs: tuple[str, ...] = ()

    @property
    def result(self) -> Attributions:
        return self

    def strongest(self, count: int = 10, answer: int = 0) -> list[tuple[str, float]]:
        """The tokens with the greatest scores for or against an answer."""
        pairs = zip(self.tokens, self.answers[answer].scores, strict=True)
        return sorted(pairs, key=lambda pair: -abs(pair[1]))[:count]

    def as_text(self, width: int = 80, colour: bool = False) -> str:
        return attribution_text(self, width, colour)

    def as_svg(self) -> str:
        return attribution_picture(self)


class LabelRows(NamedTuple):
    """A row for each answer: its step, its label, its text, and scores by token."""

    steps: Sequence[int]
    labels: Sequence[str]
    texts: Sequence[str]
    scores: Sequence[Sequence[float]]

    @classmethod
    def of(cls, attributions: Attributions) -> LabelRows:
        return cls.of_answers(
            attributions.answers, [share(answer.probability) for answer in attributions.answers]
        )

    @classmethod
    def of_linear(cls, attributions: Attributions) -> LabelRows:
        return cls.of_answers(
            attributions.linear, [with_sign(each.output) for each in attributions.linear]
        )

    @classmethod
    def of_answers(
        cls, answers: Sequence[Attribution | LinearAttribution], texts: Sequence[str]
    ) -> LabelRows:
        steps, labels = (
            [answer.step or 0 for answer in answers],
            [answer.answer for answer in answers],
        )
        return cls(steps, labels, texts, [answer.scores for answer in answers])

    @property
    def most(self) -> float:
        return max((abs(v) for row in self.scores for v in row), default=0.0) or 1.0


LONGEST_NAME = 16  # cells of a token
MOST_BARS = 15
BAR = 24  # width of the longest bar


def attribution_text(attributions: Attributions, width: int, colour: bool) -> str:
    """Attributions as text: blue or + supports an answer; orange or − opposes it."""
    blocks = [_heading(attributions)]
    if attributions.answers[0].step is None:
        for answer in attributions.answers:
            heading = f"{printable(answer.answer)}  {share(answer.probability)}".rstrip()
            heading += f"  {attributions.measure} {plain(answer.output)}" + _sums(
                answer.reference, answer.error
            )
            blocks.append(heading)
            blocks.append(_tokens(attributions, answer.scores, width, colour))
    else:
        blocks.append(_matrix(attributions.tokens, LabelRows.of(attributions), width, colour))
        blocks += _worst_error(attributions)
    return "\n\n".join([*blocks, *_linear(attributions, width, colour)])


def _heading(attributions: Attributions) -> str:
    how = {
        "occlusion": (
            f"occlusion, {attributions.baseline}: what it adds to the {attributions.measure}"
        ),
        "gradient": f"gradient × input: {attributions.baseline}",
        "integrated": (
            f"integrated gradients, baseline: {attributions.baseline}; {attributions.points} points"
        ),
    }[attributions.method]
    return f"{how}\nof {attributions.of}"


def _sums(reference: float | None, error: float | None) -> str:
    if reference is None or error is None:
        return ""
    return f", of the baseline {plain(reference)}; completeness error {small(error)}"


def _worst_error(attributions: Attributions) -> list[str]:
    errors = [answer.error for answer in attributions.answers if answer.error is not None]
    return [f"completeness error at most {small(max(errors))}"] if errors else []


def _linear(attributions: Attributions, width: int, colour: bool) -> list[str]:
    """The linear model's part."""
    if not attributions.linear:
        return []
    blocks = [f"the linear model by itself: {attributions.linear_measure}, exactly"]
    if attributions.linear[0].step is not None:
        rows = LabelRows.of_linear(attributions)
        return [*blocks, _matrix(attributions.linear[0].tokens, rows, width, colour)]
    for answer in attributions.linear:
        parts = plain(sum(answer.scores))
        heading = (
            f"{printable(answer.answer)}  {plain(answer.output)} = {plain(answer.bias)} + "
            f"{parts} of words"
        )
        tokens = _tokens(LinearTokens(answer.tokens), answer.scores, width, colour)
        phrases = ", ".join(f"{printable(p.text)} {with_sign(p.score)}" for p in answer.phrases[:6])
        blocks += [heading, tokens, f"features that count most: {phrases}"]
    return blocks


# --- tokens --------------------------------------------------------------------------------------


class SidedTokens(Protocol):
    """The tokens of an input, the number of tokens of each side, and the names of several
    inputs."""

    @property
    def tokens(self) -> tuple[str, ...]: ...
    @property
    def sides(self) -> tuple[int, ...]: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class LinearTokens:
    """The tokens that a linear model reads, on one side."""

    tokens: tuple[str, ...]
    inputs: tuple[str, ...] = ()

    @property
    def sides(self) -> tuple[int, ...]:
        return (len(self.tokens),)


def drawn_names(sided: SidedTokens, longest: int) -> list[str]:
    """The tokens, shortened; names of inputs before them stay complete."""
    begins = [f"{name}: " for name in sided.inputs] or [""] * len(sided.sides)
    prefixes = [begin for begin, n in zip(begins, sided.sides, strict=True) for _ in range(n)]
    return [
        printable(prefix) + short_name(token.removeprefix(prefix), longest)
        for token, prefix in zip(sided.tokens, prefixes, strict=True)
    ]


def _tokens(sided: SidedTokens, scores: Sequence[float], width: int, colour: bool) -> str:
    """The text, in colour if possible, and a bar for each of the tokens with the greatest
    scores."""
    most = max(map(abs, scores), default=0.0) or 1.0
    blocks, begin = [], 0
    if colour:
        for count in sided.sides:
            side = slice(begin, begin + count)
            blocks.append(_coloured(sided.tokens[side], [v / most for v in scores[side]], width))
            begin += count
    blocks.append(_bars(drawn_names(sided, LONGEST_NAME), scores, most))
    return "\n\n".join(blocks)


def _coloured(tokens: Sequence[str], values: Sequence[float], width: int) -> str:
    """Tokens one after another, wrapped at the width of the terminal."""
    between = "" if all(len(token) == 1 for token in tokens) else " "
    lines, line, used = [], "", 2
    for token, value in zip(tokens, values, strict=True):
        name = printable(token)
        room = width_of(name) + len(between)
        if used + room > width and line:
            lines.append(line)
            line, used = "", 2
        line += tinted(name, value) + between
        used += room
    return "\n".join(f"  {text.rstrip()}" for text in [*lines, line])


def _bars(names: Sequence[str], scores: Sequence[float], most: float) -> str:
    order = sorted(range(len(names)), key=lambda k: -abs(scores[k]))
    listed = order[:MOST_BARS]
    wide = max((width_of(names[k]) for k in listed), default=0)
    lines = []
    for k in listed:
        bar = ("█" if scores[k] > 0 else "░") * round(BAR * abs(scores[k]) / most)
        space = " " * (wide - width_of(names[k]))
        lines.append(f"  {names[k]}{space}  {with_sign(scores[k]):>8}  {bar}".rstrip())
    if len(order) > len(listed):
        lines.append(f"  and {len(order) - len(listed):,} more")
    return "\n".join(lines)


# --- a matrix ------------------------------------------------------------------------------------


def _matrix(tokens: Sequence[str], rows: LabelRows, width: int, colour: bool) -> str:
    """A row for each answer with its step, a column for each token."""
    names = short_names(tokens, LONGEST_NAME)
    heads = [
        [f"{names[step - 1]}  {printable(label)} {text}".rstrip()]
        for step, label, text in zip(rows.steps, rows.labels, rows.texts, strict=True)
    ]
    most = rows.most
    return matrix_text(heads, names, rows.scores, lambda score: signed(score / most, colour), width)


WIDE = 900.0
SIZE, HIGH, LINE = 16.0, 26.0, 50.0  # of a token: letters, box, line distance
CELL = 26.0  # of the matrix
STRONGEST, DEEPEST = 0.48, 0.9  # share of a colour: text on it must stay readable
LEAST = 0.04  # minimum score with a printed number, relative to the strongest
LONGEST_DRAWN = 28
TITLES = {
    "occlusion": "Occlusion",
    "gradient": "Gradient × input",
    "integrated": "Integrated gradients",
}


def attribution_picture(attributions: Attributions) -> str:
    """The picture as SVG; scores are numbers below the tokens, and tooltips."""
    drawing = Drawing()
    drawing.words((MARGIN, 36), TITLES[attributions.method], 20, INK, "start", weight=600)
    top = 62.0
    lines = wrapped(f"{_method_text(attributions)}; of {attributions.of}")
    for line in lines:
        drawing.words((MARGIN, top), line, 13, QUIET, "start")
        top += 20
    top, wide = _answers(drawing, attributions, top + 16)
    if attributions.linear:
        top, other = _linear_rows(drawing, attributions, top + 18)
        wide = max(wide, other)
    strongest = STRONGEST if attributions.answers[0].step is None else DEEPEST
    sign_key(drawing, (MARGIN, top + 8), ("against", "for the answer"), strongest)
    longest = max(text_width(line, 13) for line in lines)
    whole = max(wide + MARGIN, 2 * MARGIN + longest, 460.0)
    return drawing.svg(whole, top + 34, f"{TITLES[attributions.method]}: what an answer rests on")


def _method_text(attributions: Attributions) -> str:
    if attributions.method == "occlusion":
        return f"{attributions.baseline}: what it adds to the {attributions.measure}"
    if attributions.method == "gradient":
        return f"{attributions.baseline}: parts of the {attributions.measure}"
    errors = [answer.error for answer in attributions.answers if answer.error is not None]
    return (
        f"parts of the {attributions.measure}; baseline: {attributions.baseline}; "
        f"{attributions.points} points, "
        f"completeness error {small(max(errors))}"
    )


def wrapped(text: str, most: int = 116) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _answers(drawing: Drawing, attributions: Attributions, top: float) -> tuple[float, float]:
    """Draws the answers; returns where the rest begins, and the width."""
    if attributions.answers[0].step is not None:
        return _matrix_picture(drawing, attributions.tokens, LabelRows.of(attributions), top)
    wide = 0.0
    for answer in attributions.answers:
        heading = f"{share(answer.probability)}  ·  {attributions.measure} {plain(answer.output)}"
        if answer.reference is not None:
            heading += f", of the baseline {plain(answer.reference)}"
        top = _title(drawing, answer.answer, heading.removeprefix("  ·  "), top)
        top, other = _text(drawing, attributions, answer.scores, top)
        wide = max(wide, other)
    return top, wide


def _linear_rows(drawing: Drawing, attributions: Attributions, top: float) -> tuple[float, float]:
    drawing.words((MARGIN, top), "The linear model by itself", 16, INK, "start", weight=600)
    drawing.words((MARGIN, top + 22), f"{attributions.linear_measure}, exactly", 13, QUIET, "start")
    top += 52
    if attributions.linear[0].step is not None:
        return _matrix_picture(
            drawing, attributions.linear[0].tokens, LabelRows.of_linear(attributions), top
        )
    wide = 0.0
    for answer in attributions.linear:
        heading = (
            f"{plain(answer.output)} = {plain(answer.bias)} + {plain(sum(answer.scores))} of the "
            "words"
        )
        top = _title(drawing, answer.answer, heading, top)
        top, other = _text(drawing, LinearTokens(answer.tokens), answer.scores, top)
        named = ", ".join(f"{printable(p.text)} {with_sign(p.score)}" for p in answer.phrases[:6])
        for line in wrapped(f"features that count most: {named}"):
            drawing.words((MARGIN, top), line, 13, QUIET, "start")
            wide = max(wide, other, MARGIN + text_width(line, 13))
            top += 20
        top += 12
    return top, wide


def _title(drawing: Drawing, name: str, subtitle: str, top: float) -> float:
    name = cut(printable(name), LONGEST_DRAWN)
    drawing.words((MARGIN, top), name, 17, INK, "start", weight=600)
    drawing.words((MARGIN + text_width(name, 18) + 12, top), subtitle, 13, QUIET, "start")
    return top + 34


# --- a text --------------------------------------------------------------------------------------


def _text(
    drawing: Drawing, sided: SidedTokens, scores: Sequence[float], top: float
) -> tuple[float, float]:
    """Draws tokens on their colours, line by line, with a number below important ones; each side
    begins a new line."""
    most = max(map(abs, scores), default=0.0) or 1.0
    letters = all(len(token) == 1 for token in sided.tokens)
    ends = {sum(sided.sides[: k + 1]) for k in range(len(sided.sides))}
    x, wide = MARGIN, MARGIN
    names = drawn_names(sided, LONGEST_DRAWN)
    for k, (name, score) in enumerate(zip(names, scores, strict=True)):
        number = with_sign(score) if abs(score) >= LEAST * most else ""
        room = max(text_width(name, SIZE) + 10, 0.0 if letters else text_width(number, 10) + 2)
        if x > MARGIN and (x + room > WIDE - MARGIN or k in ends):
            x, top = MARGIN, top + LINE
        drawing.begin(f"{name}: {score:+.4g}")
        drawing.bar(x, top - HIGH / 2, room, HIGH, diverging(score / most, STRONGEST), 4)
        drawing.words((x + room / 2, top), name, SIZE)
        drawing.end()
        if not letters or abs(score) >= 0.5 * most:
            drawing.words((x + room / 2, top + 22), number, 10, QUIET)
        x += room + (1 if letters else 4)
        wide = max(wide, x)
    return top + LINE, wide


# --- a matrix ------------------------------------------------------------------------------------


def _matrix_picture(
    drawing: Drawing, tokens: Sequence[str], rows: LabelRows, top: float
) -> tuple[float, float]:
    """Draws answers below each other, tokens along the top; the cell at an answer's step has a
    frame."""
    names = short_names(tokens, LONGEST_DRAWN)
    labels = [cut(printable(label), LONGEST_DRAWN) for label in rows.labels]
    first = max(text_width(names[step - 1], 15.5) for step in rows.steps)
    second = max(text_width(label, 14.5) for label in labels)
    left = MARGIN + first + second + 78
    top += 6 + column_height(names)
    beyond = column_names(drawing, names, (left, top), CELL)

    def tip(row: int, column: int) -> str:
        return f"{labels[row]} at {names[rows.steps[row] - 1]} ← {names[column]}"

    most = rows.most
    squares(drawing, rows.scores, (left, top), CELL, lambda score: diverging(score / most), tip)
    for line, step in enumerate(rows.steps):
        y = top + line * CELL
        middle = y + CELL / 2 - 1
        drawing.words((MARGIN + first, middle), names[step - 1], 14, INK, "end", weight=600)
        drawing.words((MARGIN + first + 12, middle), labels[line], 13, INK, "start")
        drawing.words((left - 8, middle), rows.texts[line], 11, QUIET, "end")
        x, end = left + (step - 1) * CELL - 1, CELL
        corners = [(x, y - 1), (x + end, y - 1), (x + end, y + end - 1), (x, y + end - 1)]
        drawing.line([*corners, corners[0]], QUIET, 1)
    return top + len(rows.steps) * CELL + 24, left + len(names) * CELL + beyond
