"""Makes external text safe to show: it cannot control a terminal, break a column, fill a screen or
become markup.

Letters of every script stay unchanged, as do the joiners of emoji and the direction marks of
right-to-left scripts. Characters that override the direction of all following text are escaped.
"""

from __future__ import annotations

import re
import shlex

LONGEST_LINE = 1500  # maximum characters in a line of a message
MOST_LINES, MOST_CHARACTERS = 40, 6000  # maximum lines of a message: about a screen
DIRECTIONS = "\u2028-\u202e\u2066-\u2069"  # including the separators of lines and paragraphs
CONTROLS = re.compile(f"[\x00-\x1f\x7f-\x9f{DIRECTIONS}\ufeff\ud800-\udfff]")
INSIDE_LINES = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{DIRECTIONS}\ufeff\ud800-\udfff]")
# Characters with a meaning in Markdown; underscores only at the ends of words, colons only in
# links.
MARKDOWN = re.compile(r"[\\`*\[\]<>|~&#!$]|(?<!\w)_|_(?!\w)|:(?=//)")


def printable(text: str) -> str:
    r"""The text on one line, with control characters escaped: a line end as \n, escape as \x1b."""
    return text if text.isprintable() else CONTROLS.sub(_written, text)


def printable_lines(text: str) -> str:
    """`printable` for several lines and columns: line ends and tabs stay."""
    plain = text.replace("\t", "").isprintable()  # faster than to search
    return text if plain else INSIDE_LINES.sub(_written, text)


def readable(text: str) -> str:
    """A message with control characters escaped. The middle of very long lines is left out, and so
    are the middle lines of very many.

    >>> readable("a" * 2000).count("a")
    1500
    """
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        left = f"… {len(lines) - 2 * half:,} more lines …"
        lines = [*lines[:half], left, *lines[-half:]]
    longest = LONGEST_LINE
    if sum(min(len(line), longest) for line in lines) > MOST_CHARACTERS:
        longest = MOST_CHARACTERS // len(lines)
    return "\n".join(short_line(line, longest) for line in lines)


def in_json(text: str) -> str:
    r"""JSON text with those control characters escaped that JSON allows, as in \u009b; its meaning
    stays the same."""
    return text if text.isprintable() else INSIDE_LINES.sub(lambda c: f"\\u{ord(c[0]):04x}", text)


def in_shell(word: object) -> str:
    """A word of a command, quoted for pasting into a shell.

    >>> print("ensue evaluate", in_shell("run ü x"))
    ensue evaluate 'run ü x'
    """
    return shlex.quote(str(word))


def in_markdown(text: str) -> str:
    r"""The text on one line of Markdown, with all markup escaped.

    >>> print(in_markdown("a <b> *c*"))
    a \<b\> \*c\*
    """
    return MARKDOWN.sub(lambda sign: f"\\{sign[0]}", printable(text))


# Texts that a spreadsheet computes: signs of equality, and of numbers before a call, a reference or
# another program (DDE); spreadsheets skip white space, and read wide signs as plain ones.
FORMULA = re.compile(
    r"\s*(?:[=@＝＠]|[-+－＋][-+\s]*(?:[=@＝＠]|[^|]*\||.*[A-Za-z_.][\w.]*\s*\(|.*!\$?[A-Za-z]))"
)


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would compute a text cell.

    >>> [is_formula(cell) for cell in ("=1+1", "@SUM(A1)", "-cmd|'/C calc'!A0", "+HYPERLINK(A1)")]
    [True, True, True, True]
    >>> [is_formula(cell) for cell in ("-3.5", "-1", "+49 (0)30 12", "- a point", "a = b")]
    [False, False, False, False, False]
    """
    return FORMULA.match(text) is not None


def _written(sign: re.Match[str]) -> str:
    return ascii(sign[0])[1:-1]


def short_line(line: str, longest: int = LONGEST_LINE) -> str:
    """The printable line; the middle of a long one is left out."""
    half = longest // 2
    if len(line) > longest:
        line = line[:longest] + line[-longest:]  # the rest does not matter
    line = printable(line)
    return line if len(line) <= longest else f"{line[:half]} … {line[-half:]}"
