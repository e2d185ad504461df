"""A document prints the same things in a terminal, as a page and in a notebook."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from ensue.drawing.document import (
    Bar,
    Beside,
    Block,
    Curve,
    Document,
    Figure,
    Formula,
    HeatMap,
    Lines,
    Paragraph,
    Piece,
    Section,
    Table,
    Words,
    as_block,
    as_page,
    as_text,
)

HOSTILE = "<script>alert('x')</script> & \"y\""
BLOCKS: dict[str, Block] = {
    "paragraph": Paragraph("a plain word", label="healthy", where=" (layer 1)"),
    "lines": Lines(["one  two", "ten  six"]),
    "formula": Formula("z = W·a + b", "(1)"),
    "table": Table(
        [["a", "1.5", Bar(0.25, "25.0%")], ["b", "2.5", Bar(1.0, "100.0%")]],
        ["name", "value", "share"],
    ),
    "figure": Figure("<svg><title>shades of gradient</title></svg>", ["shades of gradient"]),
    "heat map": HeatMap(["row"], ["column", "other"], [[0.5, 1.0]], [["7", "8"]]),
    "beside": Beside((Paragraph("at the left"), Paragraph("at the right"))),
    "section": Section("Inner", (Paragraph("inside of it"),)),
}
PRINTERS = {"terminal": as_text, "page": as_page, "notebook": as_block}


class Tags(HTMLParser):
    """The words of a page, and tags that are left open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words += data.split()


def words_of(block: Block) -> list[str]:
    """The words that every printer must show."""
    if isinstance(block, Table):
        return [getattr(cell, "text", cell) for row in (block.head, *block.rows) for cell in row]
    if isinstance(block, Section):
        return [block.title, *(word for part in block.blocks for word in words_of(part))]
    if isinstance(block, Beside):
        return [word for part in block.blocks for word in words_of(part)]
    if isinstance(block, HeatMap):
        return [*block.rows, *block.columns, *(text for row in block.texts for text in row)]
    if isinstance(block, Lines | Figure):
        return " ".join(block.lines).split()
    return block.text.split()


def document(*blocks: Block) -> Document:
    return Document("A title", "about it", blocks, (("healthy", "#15803d"),))


@pytest.mark.parametrize("printer", PRINTERS)
@pytest.mark.parametrize("name", BLOCKS)
def test_every_printer_shows_every_block(printer: str, name: str) -> None:
    for blocks in ([BLOCKS[name]], [Section("Outer", [BLOCKS[name]])]):
        printed = PRINTERS[printer](document(*blocks))
        if printer == "terminal":
            words = printed.split()
        else:
            tags = Tags()
            tags.feed(printed)
            assert tags.open == []
            words = tags.words
        assert all(word in " ".join(words) for word in words_of(BLOCKS[name]))


@pytest.mark.parametrize("block", [
    Paragraph(HOSTILE), Lines([HOSTILE]), Formula(HOSTILE, HOSTILE), Section(HOSTILE, (Lines([]),)),
    Table([[HOSTILE]], [HOSTILE]), Section(HOSTILE, (Paragraph(HOSTILE),)),
    HeatMap([HOSTILE], [HOSTILE], [[1.0]], [[HOSTILE]]), Beside((Paragraph(HOSTILE),)),
    Table([[Words([Piece(HOSTILE, 0.5, 0, HOSTILE, HOSTILE)]), Curve([1.0, 2.0], 0, HOSTILE)]]),
])  # fmt: skip
def test_words_are_escaped(block: Block) -> None:
    for printer in (as_page, as_block):
        printed = printer(Document(HOSTILE, HOSTILE, (block,)))
        assert "<script" not in printed


def test_a_terminal_indents_what_stands_in_a_section() -> None:
    printed = as_text(document(Section("Outer", (BLOCKS["section"], BLOCKS["table"]))))
    assert printed == (
        "about it\n\nOuter\n  Inner\n    inside of it\n"
        "  name  value   share\n  a       1.5   25.0%\n  b       2.5  100.0%"
    )


def test_a_page_loads_nothing_and_leaves_empty_chapters_out() -> None:
    printed = as_page(document(Section("Nothing", (Figure("", ["only in a terminal"]),))))
    assert "Nothing" not in printed
    assert "http" not in printed
    assert printed.startswith("<!doctype html>")


def test_empty_lines_stand_between_blocks_but_not_in_running_text() -> None:
    printed = as_text(document(Paragraph("one"), Lines(["two"]), Table([["a"]]), Table([["b"]])))
    assert printed == "about it\n\none\ntwo\n\na\n\nb"


def test_a_terminal_is_not_driven_by_what_is_printed() -> None:
    bell = "a\x07\x1b[2Jb"
    blocks = (
        Paragraph(bell, bell, bell),
        Lines([bell]),
        Formula(bell),
        Section(bell, (Lines([""]),)),
    )
    printed = as_text(Document(bell, bell, (*blocks, Table([[bell]], [bell]))))
    assert not {"\x07", "\x1b"} & {*printed}
