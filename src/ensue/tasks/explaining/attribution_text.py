"""An explanation in the terminal: tokens in colours, bars, and a matrix where there are many
answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ensue.data.layout import downwards, width_of
from ensue.drawing.shades import signed, tinted
from ensue.escape import printable
from ensue.tasks.explaining.numbers import plain, share, small, token_name, with_sign

if TYPE_CHECKING:
    from ensue.tasks.explaining.attribution import Attributions

LONGEST_NAME = 16  # cells of a token
MOST_BARS = 15
BAR = 24  # cells of the longest bar


def attribution_text(found: Attributions, width: int, colour: bool) -> str:
    """Blue, or +, speaks for an answer; orange, or −, against it."""
    blocks = [_heading(found)]
    if found.answers[0].step is None:
        for own in found.answers:
            told = f"{printable(own.answer)}  {share(own.probability)}".rstrip()
            told += f"  {found.measure} {plain(own.output)}" + _sums(own.reference, own.error)
            blocks.append(told)
            blocks.append(_tokens(found.tokens, own.scores, found.sides, width, colour))
    else:
        rows = [f"{printable(own.answer)} {share(own.probability)}" for own in found.answers]
        at = [own.step or 0 for own in found.answers]
        scores = [own.scores for own in found.answers]
        blocks.append(_matrix(found.tokens, at, rows, scores, width, colour))
        blocks += _worst_error(found)
    return "\n\n".join([*blocks, *_linear(found, width, colour)])


def _heading(found: Attributions) -> str:
    how = {
        "occlusion": f"occlusion, {found.baseline}: what it adds to the {found.measure}",
        "gradient": f"gradient × input: {found.baseline}",
        "integrated": f"integrated gradients, baseline: {found.baseline}; {found.points} points",
    }[found.method]
    return f"{how}\nof {found.of}"


def _sums(reference: float | None, error: float | None) -> str:
    if reference is None or error is None:
        return ""
    return f", of the baseline {plain(reference)}; completeness error {small(error)}"


def _worst_error(found: Attributions) -> list[str]:
    errors = [own.error for own in found.answers if own.error is not None]
    return [f"completeness error at most {small(max(errors))}"] if errors else []


def _linear(found: Attributions, width: int, colour: bool) -> list[str]:
    """The linear model's part."""
    if not found.linear:
        return []
    blocks = [f"the linear model by itself: {found.linear_measure}, exactly"]
    if found.linear[0].step is not None:
        rows = [f"{printable(own.answer)} {with_sign(own.output)}" for own in found.linear]
        at = [own.step or 0 for own in found.linear]
        scores = [own.scores for own in found.linear]
        blocks.append(_matrix(found.linear[0].tokens, at, rows, scores, width, colour))
        return blocks
    for own in found.linear:
        parts = plain(sum(own.scores))
        told = (
            f"{printable(own.answer)}  {plain(own.output)} = {plain(own.bias)} + {parts} of words"
        )
        tokens = _tokens(own.tokens, own.scores, (len(own.tokens),), width, colour)
        phrases = ", ".join(f"{printable(p.text)} {with_sign(p.score)}" for p in own.phrases[:6])
        blocks += [told, tokens, f"features that count most: {phrases}"]
    return blocks


# --- tokens --------------------------------------------------------------------------------------


def _tokens(
    tokens: Sequence[str],
    scores: Sequence[float],
    sides: Sequence[int],
    width: int,
    colour: bool,
) -> str:
    """The text in colours, if there are any, and a bar for each of the tokens that count most."""
    most = max(map(abs, scores), default=0.0) or 1.0
    blocks, begin = [], 0
    if colour:
        for count in sides:
            side = slice(begin, begin + count)
            blocks.append(_coloured(tokens[side], [v / most for v in scores[side]], width))
            begin += count
    blocks.append(_bars(tokens, scores, most))
    return "\n\n".join(blocks)


def _coloured(tokens: Sequence[str], values: Sequence[float], width: int) -> str:
    """Tokens behind one another, in lines as wide as the terminal."""
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
    return "\n".join(f"  {own.rstrip()}" for own in [*lines, line])


def _bars(tokens: Sequence[str], scores: Sequence[float], most: float) -> str:
    order = sorted(range(len(tokens)), key=lambda k: -abs(scores[k]))
    shown = order[:MOST_BARS]
    names = {k: token_name(tokens[k], LONGEST_NAME) for k in shown}
    wide = max(map(width_of, names.values()), default=0)
    lines = []
    for k in shown:
        bar = ("█" if scores[k] > 0 else "░") * round(BAR * abs(scores[k]) / most)
        space = " " * (wide - width_of(names[k]))
        lines.append(f"  {names[k]}{space}  {with_sign(scores[k]):>8}  {bar}".rstrip())
    if len(order) > len(shown):
        lines.append(f"  and {len(order) - len(shown):,} more")
    return "\n".join(lines)


# --- a matrix ------------------------------------------------------------------------------------


def _matrix(
    tokens: Sequence[str],
    at: Sequence[int],
    rows: Sequence[str],
    scores: Sequence[Sequence[float]],
    width: int,
    colour: bool,
) -> str:
    """A row for each answer, at the step that has it; a column for each token. What the width does
    not hold stands below."""
    most = max((abs(v) for own in scores for v in own), default=0.0) or 1.0
    names = [
        f"{token_name(tokens[step - 1], LONGEST_NAME)}  {row}"
        for step, row in zip(at, rows, strict=True)
    ]
    left = max(map(width_of, names)) + 2
    room = max(1, (width - left) // 2)
    blocks = []
    for first in range(0, len(tokens), room):
        columns = slice(first, first + room)
        heading = downwards([token_name(token, LONGEST_NAME) for token in tokens[columns]])
        lines = [(" " * left + line).rstrip() for line in heading]
        for name, values in zip(names, scores, strict=True):
            cells = "".join(signed(value / most, colour) for value in values[columns])
            lines.append((name + " " * (left - width_of(name)) + cells).rstrip())
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
