"""Docstrings are plain text with `code` between backticks; this makes reStructuredText of them.

Blocks that are indented are code, blocks that begin with >>> are examples, and a line such as
"width: of the beam" begins the meaning of one argument.
"""

from __future__ import annotations

import re
import textwrap

CODE = re.compile(r"`([^`\n]+)`")
MEANING = re.compile(r"(?P<names>[a-z]\w*(?:, [a-z]\w*)*): (?P<text>\S.*)", re.DOTALL)
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
    """What empty lines divide, an indented block that has empty lines inside being one."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if found and block.startswith("    ") and found[-1].startswith("    "):
            found[-1] += f"\n\n{block}"
        else:
            found.append(block)
    return found


def meanings(block: str) -> list[str]:
    """A paragraph divided where a line begins with the name of an argument."""
    found: list[str] = []
    for line in block.splitlines():
        ended = not found or re.search(r"[.:;…)]$", found[-1])
        if not found or (ended and MEANING.fullmatch(line)):
            found.append(line)
        else:
            found[-1] += f" {line.strip()}"
    return found


def paragraph(text: str) -> str:
    meaning = MEANING.fullmatch(text)
    if meaning is None:
        return inline(text)
    names = ", ".join(f"``{name}``" for name in meaning["names"].split(", "))
    return f"- {names}: {inline(meaning['text'])}"


def as_restructured(docstring: str) -> list[str]:
    """The lines of a docstring, as autodoc wants them."""
    lines: list[str] = []
    for block in blocks(docstring):
        if block.startswith(">>>"):
            lines += [*block.splitlines(), ""]
        elif block.startswith("    "):
            code = textwrap.indent(textwrap.dedent(block), "   ")
            lines += [".. code-block:: python", "", *code.splitlines(), ""]
        else:
            for text in meanings(block):
                lines += [paragraph(text), ""]
    return lines
