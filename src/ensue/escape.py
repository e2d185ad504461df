"""Text that came from outside, made safe to show: nothing in it can drive a terminal, break a
column, fill a screen or become markup.

Letters of every script stay as they are, with the joiners of emoji and the marks of direction that
writing from right to left needs; what overrides the direction of all that follows does not.
"""

from __future__ import annotations

import re
import shlex

LONGEST_LINE = 1500  # characters of a line of a message
MOST_LINES, MOST_CHARACTERS = 40, 6000  # of a message: about a screen
DIRECTIONS = "\u2028-\u202e\u2066-\u2069"  # with the separators of lines and paragraphs
CONTROLS = re.compile(f"[\x00-\x1f\x7f-\x9f{DIRECTIONS}\ufeff\ud800-\udfff]")
INSIDE_LINES = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{DIRECTIONS}\ufeff\ud800-\udfff]")
# What means something in Markdown: of underscores those at the ends of words, of colons that of a
# link.
MARKDOWN = re.compile(r"[\\`*\[\]<>|~&#!$]|(?<!\w)_|_(?!\w)|:(?=//)")


def printable(text: str) -> str:
    r"""The text on one line, with control characters written out: a line end as \n, escape as
    \x1b."""
    return text if text.isprintable() else CONTROLS.sub(_written, text)


def printable_lines(text: str) -> str:
    """The same for several lines and columns: line ends and tabs stay."""
    plain = text.replace("\t", "").isprintable()  # faster than to search
    return text if plain else INSIDE_LINES.sub(_written, text)


def readable(text: str) -> str:
    """A message: its lines with control characters written out; of an endless one, or of many,
    those in the middle are left out.

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
    r"""The text of JSON with the control characters that JSON itself allows written out, \u009b: it
    means the same."""
    return text if text.isprintable() else INSIDE_LINES.sub(lambda c: f"\\u{ord(c[0]):04x}", text)


def in_shell(word: object) -> str:
    """A word of a command that is offered to be pasted into a shell.

    >>> print("ensue evaluate", in_shell("run ü x"))
    ensue evaluate 'run ü x'
    """
    return shlex.quote(str(word))


def in_markdown(text: str) -> str:
    r"""The text on one line of Markdown, none of it markup.

    >>> print(in_markdown("a <b> *c*"))
    a \<b\> \*c\*
    """
    return MARKDOWN.sub(lambda sign: f"\\{sign[0]}", printable(text))


def _written(sign: re.Match[str]) -> str:
    return ascii(sign[0])[1:-1]


def short_line(line: str, longest: int = LONGEST_LINE) -> str:
    """The line, printable; of a long one the middle is left out."""
    half = longest // 2
    if len(line) > longest:
        line = line[:longest] + line[-longest:]  # the rest need not be looked at
    line = printable(line)
    return line if len(line) <= longest else f"{line[:half]} … {line[-half:]}"
