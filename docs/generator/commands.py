"""Commands on a page, in blocks and in sentences: lines break between options, never inside one."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

CONSOLE = re.compile(r'(<div class="highlight-console .*?</pre>)', re.DOTALL)
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")
INLINE = re.compile(r'<span class="pre">(--[a-z][a-z-]*)</span>')


def keep_options_whole(
    app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object
) -> None:
    parts = CONSOLE.split(context.get("body", ""))  # console blocks at odd places
    for at in range(1, len(parts), 2):
        parts[at] = OPTION.sub(r'<span class="option">\1</span>', parts[at])
    context["body"] = INLINE.sub(r'<span class="pre option">\1</span>', "".join(parts))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", keep_options_whole)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
