"""The pages: every link leads somewhere, every task has a tutorial, the site builds offline."""

import re
import shutil
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from browser import browser
from warm import Warm

from ensue.tasks import ROOMS, TASKS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]

FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2`*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?\)|(?:src|srcset|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


# --- links ----------------------------------------------------------------------------


def anchors(text: str) -> set[str]:
    """What headings can be linked by, as code hosts and the site have it."""
    names: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        words = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        known, count = words, 1
        while known in names:  # the second of the same name
            known, count = f"{words}-{count}", count + 1
        names.add(known)
    return names


def broken_links(page: Path) -> Iterator[str]:
    """Links of a page to files or headings that are not there, and all that lead elsewhere."""
    text = CODE.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))
    for target in ("".join(link) for link in LINK.findall(text)):
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        is_file = ":" not in target and file.exists()
        if is_file and anchor:
            is_file = anchor in anchors(file.read_text(encoding="utf-8"))
        if not is_file:
            yield target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text(
        "# Über `x`, twice\n## Same\n## Same\n```\n# no heading\n```\n"
    )
    page = tmp_path / "page.md"
    page.write_text(
        textwrap.dedent(
            """
            # Here
            [a](other.md), [b](other.md#über-x-twice), [c](#here), [d](other.md#same-1)
            `[code](nowhere.md)`
            ```
            [block](nowhere.md)
            ```
            [e](nowhere.md) ![f](none.svg) [g](other.md#no-heading) [h](#there)
            <img src="gone.svg"> [i](http://elsewhere.example/x)
            """
        )
    )
    assert list(broken_links(page)) == [
        "nowhere.md",
        "none.svg",
        "other.md#no-heading",
        "#there",
        "gone.svg",
        "http://elsewhere.example/x",
    ]


# --- pages ----------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_read_in_one_sitting(page: Path) -> None:
    """Except for the reference, where readers look things up."""
    lines = len(page.read_text(encoding="utf-8").splitlines())
    assert lines <= 200 or DOCS / "reference" in page.parents


# --- tutorials ------------------------------------------------------------------------


@pytest.mark.parametrize("room", ROOMS)
def test_each_task_has_a_tutorial(room: str) -> None:
    text = (DOCS / "tutorials" / f"{room}.md").read_text(encoding="utf-8")
    assert re.search(r"^\$ ensue train ", text, re.MULTILINE)
    assert re.search(r"^\$ ensue evaluate ", text, re.MULTILINE)
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    model = TASKS[room].model_class.__name__
    assert any(f"import {model}" in block or "ensue.load(" in block for block in blocks)
    assert model in text
    assert f"(tutorials/{room}.md)" in (DOCS / "index.md").read_text(encoding="utf-8")


# --- the site -------------------------------------------------------------------------

OUTSIDE = re.compile(
    r"<(?:script|link|img|iframe|source|video|form)\b[^>]*?(?:src|srcset|href|action)="
    r"[\"']?(?:https?:)?//[^\"'>\s]+"
    r"|url\([\"']?(?:https?:)?//[^)]+|@import[^;]*//[^;]+"
    r"|\b(?:fetch|importScripts)\([\"'](?:https?:)?//[^)]+",
    re.IGNORECASE,
)


def outside_hosts(folder: Path) -> list[str]:
    """What a browser would load from other hosts when it shows the pages of a folder."""
    files = [file for file in sorted(folder.rglob("*")) if file.suffix in {".html", ".css", ".js"}]
    return [
        f"{file.relative_to(folder)}: {host}"
        for file in files
        for host in OUTSIDE.findall(file.read_text(encoding="utf-8"))
    ]


def test_an_outside_host_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<script src="https://cdn.example/x.js"></script><img src="own.svg">'
        '<a href="https://example.org">a link is not loaded</a><link href="//fonts.example/y.css">'
    )
    (tmp_path / "b.css").write_text("a { src: url(https://fonts.example/z.woff) }")
    assert len(outside_hosts(tmp_path)) == 3


# What newcomers type, and the page that should come first: titles, headings and
# docs/generator/scorer.js decide.
SEARCHES = {
    "class imbalance": "howto/imbalance",
    "decimal comma": "howto/messy-data",
    "resume": "howto/resume",
    "gpu": "howto/gpu",
    "bidirectional": "explanation/layers",
    "export onnx": "howto/export",
    "early stopping": "howto/training",
    "confusion matrix": "howto/read-evaluation",
    "learning rate": "howto/training",
    "missing values": "howto/messy-data",
    "pandas": "howto/dataframes",
    "batch size": "howto/training",
    "beam search": "tutorials/translate",
    "attention": "howto/explain",
    "seed": "howto/training",
    "cross-validation": "howto/sklearn",
    "csv": "reference/formats",
    "calibration": "howto/read-evaluation",
    "ensemble": "howto/ensemble",
    "quantile": "explanation/forecasting",
    "overfitting": "howto/training",
    "vanishing gradient": "explanation/flow",
    "perplexity": "tutorials/language",
    "holidays": "howto/forecast-panel",
    "install": "howto/install",
}
FIRST_PAGE = """
    words => Object.fromEntries(words.map(text => {
        const results = Search._performSearch(...Search._parseQuery(text));
        return [text, results.length ? results[results.length - 1][0] : null];  // best is last
    }))
"""


def first_pages(site: Path, profile: Path) -> dict[str, str]:
    """The first page that the search of a built site shows for each of SEARCHES."""
    with browser(profile) as opened:
        opened.open(site / "search.html")
        opened.value("new Promise(done => (Search.hasIndex() ? done() : setTimeout(done, 3000)))")
        pages: dict[str, str] = opened.value(f"({FIRST_PAGE})({[*SEARCHES]})")
    return pages


def test_the_site_builds_offline_and_whole(tmp_path: Path, warm: Warm) -> None:
    """Without a warning; nothing of it is loaded from elsewhere; the search leads newcomers to the
    right page first; the reference has every public name."""
    site = tmp_path / "site"
    words = ["--quiet", "--fail-on-warning", "--keep-going", "-d", str(tmp_path / "trees")]
    build = warm.run(["-m", "sphinx", *words, DOCS, site], ROOT)
    assert build.returncode == 0, build.stderr
    assert outside_hosts(site) == []
    assert '"align"' in (site / "searchindex.js").read_text(encoding="utf-8")
    if shutil.which("chromium"):
        assert first_pages(site, tmp_path / "profile") == SEARCHES
    for page in sorted((DOCS / "reference" / "python").glob("*.md")):
        module = import_module("ensue" if page.stem == "ensue" else f"ensue.{page.stem}")
        html = (site / "reference" / "python" / f"{page.stem}.html").read_text(encoding="utf-8")
        names = [name for name in module.__all__ if not name.startswith("__")]
        missing = [name for name in names if f'id="{module.__name__}.{name}"' not in html]
        handed_on = html.partition('id="from-other-modules"')[2]
        assert [name for name in missing if f">{name}<" not in handed_on] == [], module.__name__
