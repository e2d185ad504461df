"""Text that came from outside, made safe to show: nothing in it can drive a terminal, break a
column or fill a screen."""

from __future__ import annotations

LONGEST_LINE = 1500  # characters of a message


def printable(text: str) -> str:
    r"""The text on one line, with other signs written out: a line end as \n, escape as \x1b."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def readable(text: str) -> str:
    """The same for several lines; the middle of an endless one is left out.

    >>> readable("a" * 2000).count("a")
    1500
    """
    return "\n".join(_shortened(printable(line)) for line in text.split("\n"))


def _shortened(line: str) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    half = LONGEST_LINE // 2
    return f"{line[:half]} … {line[-half:]}"
