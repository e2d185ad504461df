"""Docstrings are plain text with `code` between backticks; this makes reStructuredText of them.

Blocks that are indented are code, blocks that begin with >>> are examples, and words such as
"width: of the beam" say what an argument means.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Container

CODE = re.compile(r"`([^`\n]+)`")
NAMES = re.compile(r"(?:^|(?<=[.;] )|(?<=[.)]\) ))(?P<names>[a-z]\w*(?:, [a-z]\w*)*): ")
SPECIAL = re.compile(r"([\\*|`]|_(?!\w))")


def inline(text: str) -> str:
    """`code` as a literal; every other sign is only itself.

    >>> inline("`rate` of h* in x_")
    '``rate`` of h\\\\* in x\\\\_'
    """
    parts = CODE.split(text)  # code at odd places
    return "".join(
        f"``{part}``" if at % 2 else SPECIAL.sub(r"\\\1", part) for at, part in enumerate(parts)
    )


def blocks(text: str) -> list[str]:
    """The parts between empty lines; an indented block with empty lines inside is one part."""
    parts: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if parts and block.startswith("    ") and parts[-1].startswith("    "):
            parts[-1] += f"\n\n{block}"
        else:
            parts.append(block)
    return parts


def meanings(block: str, known: Container[str]) -> list[str]:
    """A paragraph divided where a sentence begins with known names and a colon.

    >>> meanings("A beam. width: of it; alpha, beta: strengths. Note: no name", {"width", "alpha"})
    ['A beam.', 'width: of it;', 'alpha, beta: strengths. Note: no name']
    """
    text, pieces, begun = " ".join(block.split()), [], 0
    for match in NAMES.finditer(text):
        if match.start() and match["names"].split(", ")[0] in known:
            pieces.append(text[begun : match.start()].rstrip())
            begun = match.start()
    return [*pieces, text[begun:]]


def paragraph(text: str, known: Container[str]) -> str:
    """Plain text, or as an item of a list what a name means."""
    named = NAMES.match(text)
    if named is None or named["names"].split(", ")[0] not in known:
        return inline(text)
    names = ", ".join(f"``{name}``" for name in named["names"].split(", "))
    meaning = text[named.end() :]
    if meaning.endswith(";"):
        meaning = meaning[:-1]
    return f"- {names}: {inline(meaning)}"


def as_restructured(docstring: str, known: Container[str] = ()) -> list[str]:
    """The lines of a docstring, as autodoc wants them. known: arguments and attributes."""
    lines: list[str] = []
    for block in blocks(docstring):
        if block.startswith(">>>"):
            lines += [*block.splitlines(), ""]
        elif block.startswith("    "):
            code = textwrap.indent(textwrap.dedent(block), "   ")
            lines += [".. code-block:: python", "", *code.splitlines(), ""]
        else:
            for text in meanings(block, known):
                lines += [paragraph(text, known), ""]
    return lines
