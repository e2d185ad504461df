"""The sidebar: its groups are the sections of index.md, its entries the links listed there.

So the contents are plain Markdown, and stand in one place. Pages that no list names follow in a
group of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sphinx.application import Sphinx

SECTION = re.compile(r"^## (.+)\n\n((?:- .+\n)+)", re.MULTILINE)
ENTRY = re.compile(r"^- \[(.+?)\]\((.+?)\.md\)", re.MULTILINE)
OTHERS = "Further pages"


def groups(index: str, pages: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Captions with their entries, as a toctree has them: "Title <page>"."""
    listed = set()
    for caption, items in SECTION.findall(index):
        entries = ENTRY.findall(items)
        listed |= {page for _, page in entries}
        if entries:
            yield caption, [f"{title} <{page}>" for title, page in entries]
    others = sorted(pages - listed - {"index"})
    if others:
        yield OTHERS, others


def add_contents(app: Sphinx, page: str, content: list[str]) -> None:
    if page != app.config.root_doc:
        return
    for caption, entries in groups(content[0], set(app.env.found_docs)):
        lines = "\n".join(entries)
        content[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n```\n"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", add_contents)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
