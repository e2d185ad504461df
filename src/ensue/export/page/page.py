"""One self-contained page that runs a model: no network, no WebAssembly, a policy of hashes."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path

HERE = Path(__file__).parent
PARTS = ("questions", "answers", "page")  # in this order: the last one begins
SERIES = 'AFTER["steps ahead"] ='  # what a module has whose page needs a plot


def page_of(module: str, title: str) -> str:
    """module: the text of the model's module, whose functions the page calls."""
    frame = (HERE / "page.html").read_text(encoding="utf-8")
    parts = (*PARTS[:-1], *(["plot"] if SERIES in module else []), PARTS[-1])
    own = "".join((HERE / f"{name}.js").read_text(encoding="utf-8") for name in parts)
    script = re.sub(r"^export (?=function|const)", "", module, flags=re.MULTILINE) + own
    script = script.replace("</", "<\\/")  # nothing in it may end the element
    style = re.search(r"<style>(.*?)</style>", frame, re.DOTALL)
    assert style is not None
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style[1])}'; "
        "base-uri 'none'; form-action 'none'"
    )
    named = frame.replace("@TITLE@", html.escape(title)).replace("@POLICY@", policy)
    return named.replace("@SCRIPT@", script)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
