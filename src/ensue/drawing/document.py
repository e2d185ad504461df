"""A document: written once; shown in a terminal, as a web page, or in a notebook.

    Document("Backpropagation", "2 → 3 → 1", (
        Paragraph("x = (1, 2)"),
        Section("Forward", (Formula("z = W·a + b"), Table(rows, head), Figure(svg))),
    ))

`as_text` puts a section's title on a line and indents its content; `as_page` makes one HTML file
that loads nothing and supports dark mode; `as_block` is for notebooks and uses their colours and
fonts. All text is escaped, control characters included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, NamedTuple

from ensue.drawing import html
from ensue.drawing.layout import aligned, cut, figures, width_of
from ensue.drawing.svg import INK, QUIET, RULE, escape
from ensue.drawing.theme import PAPER, css_variables
from ensue.escape import printable, printable_lines

INDENT = "  "
WIDE = 1180  # maximum width of a page in pixels
LONGEST = 200  # maximum number of characters of a cell on a page


# --- cells of a table -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """A number as a bar of length value/most, with its interval as a line. quiet: drawn less
    prominently."""

    value: float
    text: str = ""
    most: float = 1.0
    interval: tuple[float, float] | None = None
    quiet: bool = False


@dataclass(frozen=True)
class Range:
    """An interval with its value as a dot, on a common scale."""

    value: float
    low: float
    high: float
    scale: tuple[float, float]
    text: str = ""


@dataclass(frozen=True)
class Curve:
    """A line without axes. marked: index of the value with a dot."""

    values: Sequence[float]
    marked: int
    text: str


@dataclass(frozen=True)
class Image:
    """A small picture as PNG."""

    png: bytes
    text: str = "picture"


class Piece(NamedTuple):
    """Words on a coloured background. strength: the strength of the colour, 0 for none; label: the
    strength as text next to the words; note: tooltip."""

    text: str
    strength: float = 0.0
    hue: int = 0  # index of a colour
    label: str = ""
    note: str = ""


@dataclass(frozen=True)
class Words:
    """Words, some of them with a coloured background."""

    pieces: Sequence[Piece]

    @property
    def text(self) -> str:
        return " ".join(piece.text for piece in self.pieces)


@dataclass(frozen=True)
class HeatMap:
    """A heat map, as a cell or a block. The greater the share of a square (0 … 1), the stronger its
    colour. texts: the texts in the squares."""

    rows: Sequence[str]
    columns: Sequence[str]
    shares: Sequence[Sequence[float]]
    texts: Sequence[Sequence[str]] = ()

    text = ""


Cell = str | int | float | Bar | Range | Curve | Image | Words | HeatMap
NUMBERS = (int, float, Bar, Range)  # cells that are aligned right


def _words_of(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    return figures(cell) if isinstance(cell, float) else getattr(cell, "text", str(cell))


# --- blocks ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paragraph:
    """A paragraph. label: its first words, in the colour of that name or of `colour`; where: the
    subject of the label; quiet: a remark; strong: an important result."""

    text: str
    label: str = ""
    where: str = ""
    colour: str = ""
    quiet: bool = False
    strong: bool = False


@dataclass(frozen=True)
class Lines:
    """Lines with columns aligned by spaces."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Formula:
    """A formula. mark: its number, "(1)"."""

    text: str
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """A table. left: number of first columns that are aligned left; the others are aligned right.
    kind: the kind of its numbers, which gives their colour; room: minimum width of the first column
    in a terminal; most: maximum number of printed rows, 0 for all."""

    rows: Sequence[Sequence[Cell]]
    head: Sequence[str] = ()
    kind: str = ""
    left: int = 1
    room: int = 0
    most: int = 0


@dataclass(frozen=True)
class Figure:
    """A picture as SVG. lines: its form in a terminal; above: height cut off on a page, such as a
    title that the page already has."""

    svg: str
    lines: Sequence[str] = ()
    above: float = 0.0


@dataclass(frozen=True)
class Beside:
    """Blocks next to each other, if there is space."""

    blocks: Sequence[Block]


@dataclass(frozen=True)
class Section:
    title: str
    blocks: Sequence[Block]


RUNNING = (Paragraph, Lines, Formula)  # running text
Block = Paragraph | Lines | Formula | Table | Figure | HeatMap | Beside | Section


@dataclass(frozen=True)
class Document:
    """A document. about: one line on its content; colours: the colours of labels and of kinds of
    tables, by name."""

    title: str
    about: str
    blocks: Sequence[Block]
    colours: Sequence[tuple[str, str]] = ()


class Printed:
    """A result that prints as its document, in a terminal and in a notebook."""

    def document(self) -> Document:
        raise NotImplementedError

    def as_text(self) -> str:
        return as_text(self.document())

    def as_html(self) -> str:
        return as_block(self.document())

    def __str__(self) -> str:
        return self.as_text()

    def _repr_html_(self) -> str:
        return self.as_html()


class Drawn:
    """A result that is drawn: with characters in a terminal, as a picture in a notebook."""

    title: ClassVar[str] = "Explanation"

    def as_text(self, width: int = 80, colour: bool = False) -> str:
        raise NotImplementedError

    def as_svg(self) -> str:
        raise NotImplementedError

    def document(self, title: str = "") -> Document:
        figure = Figure(self.as_svg(), self.as_text().splitlines())
        return Document(title or self.title, "", [figure])

    def _repr_html_(self) -> str:
        return as_block(self.document())


# --- in a terminal --------------------------------------------------------------------------------


def as_text(document: Document) -> str:
    """The document for a terminal: `about`, then all blocks. An empty line separates blocks, except
    lines of running text."""
    groups, before = [[printable(document.about)] if document.about else []], None
    for one in _in_a_row(document.blocks):
        if lines := _texts(one):
            groups += [] if isinstance(one, RUNNING) and isinstance(before, RUNNING) else [[]]
            groups[-1] += lines
            before = one
    return "\n\n".join("\n".join(group) for group in groups if group)


def _in_a_row(blocks: Sequence[Block]) -> Iterator[Block]:
    for one in blocks:
        yield from _in_a_row(one.blocks) if isinstance(one, Beside) else [one]


def _texts(one: Block) -> list[str]:
    return TEXTS[type(one)](one)


def _section_text(one: Section) -> list[str]:
    inside = [
        INDENT + line if line else "" for part in _in_a_row(one.blocks) for line in _texts(part)
    ]
    return [printable(one.title), *inside]


def _paragraph_text(one: Paragraph) -> list[str]:
    label = f"{one.label.upper()}{one.where}: " if one.label else ""
    return [printable(label + one.text)] if one.text else []


def _table_text(one: Table) -> list[str]:
    """A table for a terminal; columns with only pictures are left out."""
    table_rows = one.rows[: one.most or None]
    right = {
        k for k, cells in enumerate(zip(*table_rows, strict=True)) if isinstance(cells[0], NUMBERS)
    }
    rows = [[_words_of(cell) for cell in row] for row in table_rows]
    rows = [list(one.head), *rows] if one.head else rows
    full = [any(column) for column in zip(*rows, strict=True)]
    rows = [[cell for cell, is_full in zip(row, full, strict=True) if is_full] for row in rows]
    if one.room and rows:
        rows[0][0] += " " * (one.room - width_of(rows[0][0]))
    lines = aligned(rows, sum(full[: one.left]), {sum(full[:k]) for k in right if full[k]})
    return [*lines, *_more(one)]


def _more(one: Table) -> list[str]:
    left = len(one.rows) - one.most if one.most else 0
    return [f"and {left:,} more"] if left > 0 else []


def _heat_map_text(one: HeatMap) -> list[str]:
    rows = zip(one.rows, one.texts, strict=False)
    return aligned([["", *one.columns], *([name, *texts] for name, texts in rows)])


TEXTS: dict[type, Callable[..., list[str]]] = {
    Paragraph: _paragraph_text,
    Lines: lambda one: [printable_lines(line) for line in one.lines],
    Formula: lambda one: [printable(f"{one.mark} {one.text}".lstrip())],
    Table: _table_text,
    Figure: lambda one: list(one.lines),
    HeatMap: _heat_map_text,
    Section: _section_text,
}


# --- as HTML --------------------------------------------------------------------------------------

LINE, SOFT = html.LINE, html.SOFT
TABLE = "border-collapse:collapse;border:none;margin:.4em 0;font-size:.93em"
CELL = f"padding:.15em .8em;border:none;border-bottom:1px solid {LINE};background:none"
RIGHT = f"{CELL};text-align:right;font-variant-numeric:tabular-nums"
LEFT = f"{CELL};text-align:left"
TITLE = "margin-top:.7em;font-weight:600"
MONOSPACED = "margin:.5em 0;padding:0;background:none;color:inherit;font-size:.85em;line-height:1.4"
SERIF = 'font-family:"STIX Two Text",Cambria,"Liberation Serif","Times New Roman",serif'
Show = Callable[[str, float], str]
FIGURE = "margin:.6em 0;overflow-x:auto"
MARKED = "border-radius:.3em;padding:.1em .35em;line-height:2"
ROW = "display:flex;flex-wrap:wrap;gap:.4em 2.5em;align-items:flex-start"


def _element(name: str, style: str, inside: str) -> str:
    return f"<{name} style='{style}'>{inside}</{name}>"


def _html(one: Block, show: Show = html.on_page) -> str:
    """A block as HTML. show: converts a picture for the page."""
    return PARTS[type(one)](one, show)


def _paragraph_html(one: Paragraph, show: Show) -> str:
    if not one.text:
        return ""
    text = f"<b>{escape(one.text)}</b>" if one.strong else escape(one.text)
    if one.label:
        style = f"color:var(--{one.colour or one.label});text-transform:uppercase;font-size:.87em"
        text = f"{_element('b', style, escape(one.label))}{escape(one.where)} {text}"
    return _element("p", "margin:.4em 0" + f";color:{SOFT}" * one.quiet, text)


def _formula_html(one: Formula, show: Show) -> str:
    mark = _element("span", f"color:{SOFT};margin-right:.6em", escape(one.mark)) if one.mark else ""
    return _element("p", f"margin:.4em 0;font-size:1.2em;{SERIF}", mark + escape(one.text))


def _table_html(one: Table, show: Show) -> str:
    """A table as HTML. The first columns are aligned left, numbers always right."""

    def row(tag: str, cells: Sequence[Cell], kinds: Sequence[Cell]) -> str:
        rights = [k >= one.left or isinstance(kind, NUMBERS) for k, kind in enumerate(kinds)]
        styles = (RIGHT if right else LEFT for right in rights)
        every = zip(styles, cells, strict=True)
        inside = "".join(_element(tag, style, _cell_html(cell)) for style, cell in every)
        return _element("tr", "background:none", inside)

    rows = one.rows[: one.most or None]
    heads = [row("th", one.head, rows[0] if rows else one.head)] if one.head else []
    head = "".join(f"<thead>{line}</thead>" for line in heads)
    body = f"<tbody>{''.join(row('td', cells, cells) for cells in rows)}</tbody>"
    kind = f" class='{one.kind}'" if one.kind else ""
    return f"<table{kind} style='{TABLE}'>{head}{body}</table>{_quiet(*_more(one))}"


def _quiet(*texts: str) -> str:
    return "".join(_element("span", f"color:{SOFT}", escape(text)) for text in texts if text)


def _cell_html(cell: Cell) -> str:
    drawn = CELLS.get(type(cell))
    return drawn(cell) if drawn else escape(cut(_words_of(cell), LONGEST))


def _bar_html(cell: Bar) -> str:
    colour = SOFT if cell.quiet else html.ACCENT
    return f"{html.bar(cell.value, cell.most, cell.interval, colour)} {escape(cell.text)}".strip()


def _range_html(cell: Range) -> str:
    drawn = html.span(cell.value, cell.low, cell.high, cell.scale)
    return f"{drawn} {escape(cell.text)}".strip()


def _figure_html(one: Figure, show: Show) -> str:
    return _element("figure", FIGURE, show(one.svg, one.above)) if one.svg else ""


def _beside_html(one: Beside, show: Show) -> str:
    return _element("div", ROW, "".join(f"<div>{_html(block, show)}</div>" for block in one.blocks))


def _section_html(one: Section, show: Show) -> str:
    inside = "".join(_html(block, show) for block in one.blocks)
    title = _element("div", TITLE, escape(one.title))
    return f"<section>{title}{inside}</section>" if inside or not one.blocks else ""


def _piece_html(piece: Piece) -> str:
    if not piece.strength:
        return escape(piece.text)
    hue = html.HUES[piece.hue % len(html.HUES)]
    style = "opacity:.75;font-weight:600;margin-left:.35em"
    label = _element("small", style, escape(piece.label)) if piece.label else ""
    note = f' title="{escape(piece.note)}"' if piece.note else ""
    ground = html.tint(hue, piece.strength)
    return f"<span{note} style='background:{ground};{MARKED}'>{escape(piece.text)}{label}</span>"


CELLS: dict[type, Callable[..., str]] = {
    Bar: _bar_html,
    Range: _range_html,
    Curve: lambda one: f"{html.sparkline(one.values, one.marked)} {_quiet(one.text)}".strip(),
    Image: lambda one: html.image(one.png, one.text),
    Words: lambda one: " ".join(map(_piece_html, one.pieces)),
    HeatMap: lambda one: html.heat_map(one.rows, one.columns, one.shares, one.texts),
}
PARTS: dict[type, Callable[..., str]] = {
    Paragraph: _paragraph_html,
    Lines: lambda one, show: _element("pre", MONOSPACED, escape("\n".join(one.lines))),
    Formula: _formula_html,
    Table: _table_html,
    Figure: _figure_html,
    HeatMap: lambda one, show: _cell_html(one),
    Beside: _beside_html,
    Section: _section_html,
}


# --- in a notebook, and as a page -----------------------------------------------------------------


def as_block(document: Document) -> str:
    """The document as a titled part of another page."""
    parts = [f"<b>{escape(document.title)}</b>", _quiet(document.about)]
    parts += map(_html, document.blocks)
    inside = "".join(f"<div>{part}</div>" for part in parts if part)
    return f"<div class='{html.NO_TYPESETTING}' style='max-width:66em'>{inside}</div>"


COLOURS = {"ink": INK, "quiet": QUIET, "rule": RULE, "paper": PAPER, "pale": "#f8fafc"}
STYLE = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--pale); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
main { margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 19px; margin: 40px 0 8px; }
th, td:first-child { color: var(--quiet); }
pre { overflow-x: auto; }
figure { text-align: center; }
main > figure { background: var(--paper); border: 1px solid var(--rule); border-radius: 10px; }
section { background: var(--paper); border: 1px solid var(--rule); border-radius: 10px;
  padding: 6px 22px 18px; margin: 14px 0; overflow-x: auto; }
section section { border: 0; padding: 0; }
"""


def as_page(document: Document) -> str:
    """The document as one HTML file. Its sections have a heading; sections inside a section are
    cards."""
    named = dict(document.colours)
    style = css_variables(**COLOURS, **named) + STYLE + f"main {{ max-width: {WIDE}px; }}\n"
    style += "".join(
        f".{name} td:not(:first-child) {{ color: var(--{name}); }}\n" for name in named
    )
    parts = [f"<h1>{escape(document.title)}</h1>{_quiet(document.about)}"]
    for one in document.blocks:
        parts += _chapter(one) if isinstance(one, Section) else [_html(one, _as_it_is)]
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(document.title)}</title><style>{style}</style></head>\n<body><main>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def _as_it_is(svg: str, above: float) -> str:
    """An unchanged picture, which follows dark mode as the page does."""
    return svg


def _chapter(one: Section) -> list[str]:
    """A section as a heading, then a card for each section in it and for each run of other
    blocks."""
    parts = []
    for nested, blocks in groupby(one.blocks, lambda block: isinstance(block, Section)):
        inside = [part for part in (_html(block, _as_it_is) for block in blocks) if part]
        parts += inside if nested else [f"<section>{''.join(inside)}</section>"] * bool(inside)
    return [f"<h2>{escape(one.title)}</h2>", *parts] if parts else []
