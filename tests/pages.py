"""What every HTML of a notebook must be."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

FOREIGN = "<script>alert(1)</script>\"'& $x$\x00"
FOREIGN_SHOWN = FOREIGN.replace("\x00", "\\x00")  # as a page can hold it


class Tags(HTMLParser):
    """The tags as a browser sees them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)


def ids(html: str) -> list[str]:
    return re.findall(r'\bid="([^"]*)"', html)


def check_page(html: str) -> ElementTree.Element:
    """Well-formed, whole by itself, and safe; the page as a tree."""
    tree = ElementTree.fromstring(html)
    assert not {"script", "style", "link"} & {*Tags(html).names}
    for unwanted in (r"http", r"href", r"@import", r'\bon\w+="', r"url\((?!#)"):
        assert not re.search(unwanted, html), unwanted
    sources = re.findall(r'src="([^"]*)', html)
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    check_colours(html)
    assert {*re.findall(r"url\(#([^)]*)\)", html)} <= {*ids(html)}
    assert len({*ids(html)}) == len(ids(html))
    return tree


def check_colours(html: str) -> None:
    """Nothing is black or white by itself: on a page of the same colour it could not be seen.
    White words on a coloured ground stay white."""
    bare = re.sub(r"<text [^>]*>", "", html)
    assert not re.search(r"#(000000|000|ffffff|fff|1e293b)\b|:\s*(black|white)\b", bare)


def words(tree: ElementTree.Element) -> str:
    """What a person reads, with spaces between the pieces."""
    return " ".join(" ".join(tree.itertext()).split())
