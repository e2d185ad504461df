"""A document: written once, printed for a terminal, as a page of its own, and for a notebook.

    Document("Backpropagation", "2 → 3 → 1", (
        Paragraph("x = (1, 2)"),
        Section("Forward", (Formula("z = W·a + b"), Table(rows, head), Figure(svg))),
    ))

`as_text` puts a section's title on a line and indents what stands in it; `as_page` makes one HTML
file that loads nothing and follows its reader to dark paper; `as_block` suits a notebook, whose
colours and fonts it takes over. All words are escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from ensue.drawing.html import Markup, block, heading, lines, on_page, quiet, table
from ensue.drawing.inline import bar
from ensue.drawing.layout import aligned
from ensue.drawing.svg import INK, QUIET, RULE
from ensue.drawing.theme import PAPER, css_variables

INDENT = "  "
WIDE = 1180  # pixels that a page fills at most


@dataclass(frozen=True)
class Paragraph:
    """label: the words it begins with, in the colour of that name or of the one that is named;
    where: what the label is about; quiet: a remark; strong: what a reader looks for."""

    text: str
    label: str = ""
    where: str = ""
    colour: str = ""
    quiet: bool = False
    strong: bool = False


@dataclass(frozen=True)
class Lines:
    """Lines whose columns were made with spaces."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Formula:
    """mark: its number, "(1)"."""

    text: str
    mark: str = ""


@dataclass(frozen=True)
class Bar:
    """A share as a cell of a table: a bar where there are pictures, and its number."""

    share: float
    digits: int = 1

    def __str__(self) -> str:
        return f"{self.share:.{self.digits}%}"


Cell = str | Bar


@dataclass(frozen=True)
class Table:
    """The first column stands at the left, the others at the right. kind: of its numbers, for
    their colour."""

    rows: Sequence[Sequence[Cell]]
    head: Sequence[str] = ()
    kind: str = ""


@dataclass(frozen=True)
class Figure:
    """A picture as SVG. lines: the same for a terminal, where there is one."""

    svg: str
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class Section:
    title: str
    blocks: Sequence[Block]


Block = Paragraph | Lines | Formula | Table | Figure | Section


@dataclass(frozen=True)
class Document:
    """about: what it shows, in a line; colours: those of labels and kinds of tables, by name."""

    title: str
    about: str
    blocks: Sequence[Block]
    colours: Sequence[tuple[str, str]] = ()


# --- in a terminal --------------------------------------------------------------------------------


def as_text(document: Document) -> str:
    """What it shows, then all blocks; an empty line before the first and before each section."""
    parts, loose = [document.about], list[str]()
    for one in document.blocks:
        if isinstance(one, Section):
            parts += ["\n".join(loose), "\n".join(_texts(one))]
            loose = []
        else:
            loose += _texts(one)
    return "\n\n".join(part for part in [*parts, "\n".join(loose)] if part)


def _texts(one: Block) -> list[str]:
    return TEXTS[type(one)](one)


def _section_text(one: Section) -> list[str]:
    inside = [INDENT + line if line else "" for part in one.blocks for line in _texts(part)]
    return [one.title, *inside]


def _paragraph_text(one: Paragraph) -> list[str]:
    return [f"{one.label.upper()}{one.where}: {one.text}" if one.label else one.text]


def _strings(one: Table) -> list[list[str]]:
    rows = [[str(cell) for cell in row] for row in one.rows]
    return [list(one.head), *rows] if one.head else rows


TEXTS: dict[type, Callable[..., list[str]]] = {
    Paragraph: _paragraph_text,
    Lines: lambda one: list(one.lines),
    Formula: lambda one: [f"{one.mark} {one.text}".lstrip()],
    Table: lambda one: aligned(_strings(one)),
    Figure: lambda one: list(one.lines),
    Section: _section_text,
}


# --- as a page ------------------------------------------------------------------------------------

COLOURS = {"ink": INK, "quiet": QUIET, "rule": RULE, "paper": PAPER, "pale": "#f8fafc"}
STYLE = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--pale); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
main { margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 19px; margin: 40px 0 8px; }
p { margin: 6px 0; }
pre { font-size: 13px; line-height: 1.5; margin: 8px 0; overflow-x: auto; }
.quiet { color: var(--quiet); }
.label { font-weight: 700; text-transform: uppercase; font-size: 13px; letter-spacing: .04em; }
figure { margin: 24px 0; background: var(--paper); border: 1px solid var(--rule);
  border-radius: 10px; overflow-x: auto; text-align: center; }
section figure { margin: 8px 0; border: 0; }
figure svg { max-width: 100%; height: auto; }
section { background: var(--paper); border: 1px solid var(--rule); border-radius: 10px;
  padding: 14px 22px 20px; margin: 14px 0; overflow-x: auto; }
section h3 { font-size: 16px; margin: 4px 0 8px; }
.equation { font-family: "STIX Two Text", Cambria, "Liberation Serif", "Times New Roman", serif;
  font-size: 18px; }
.mark { color: var(--quiet); margin-right: 10px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 6px 0 10px; }
th { text-align: right; font-weight: 600; color: var(--quiet); font-size: 13px; }
td, th { padding: 3px 14px; border-bottom: 1px solid var(--rule); text-align: right; }
td:first-child, th:first-child { text-align: left; padding-left: 0; color: var(--quiet); }
"""


def as_page(document: Document) -> str:
    """One HTML file: sections inside the document have a heading, those inside a section a card."""
    named = dict(document.colours)
    style = css_variables(**COLOURS, **named) + STYLE + f"main {{ max-width: {WIDE}px; }}\n"
    style += "".join(
        f".{name} td:not(:first-child) {{ color: var(--{name}); }}\n" for name in named
    )
    parts = [f"<h1>{escape(document.title)}</h1><p class='quiet'>{escape(document.about)}</p>"]
    for one in document.blocks:
        parts += _chapter(one) if isinstance(one, Section) else [_html(one)]
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(document.title)}</title><style>{style}</style></head>\n<body><main>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def _chapter(one: Section) -> list[str]:
    """A heading, then a card for each section in it and one for what stands between them."""
    parts, loose = list[str](), list[str]()

    def close() -> None:
        if any(loose):
            parts.append(f"<section>{''.join(loose)}</section>")
        loose.clear()

    for part in one.blocks:
        if isinstance(part, Section):
            close()
            parts.append(_html(part))
        else:
            loose.append(_html(part))
    close()
    return [f"<h2>{escape(one.title)}</h2>", *parts] if parts else []


def _html(one: Block) -> str:
    return PARTS[type(one)](one)


def _section_html(one: Section) -> str:
    inside = "".join(map(_html, one.blocks))
    return f"<section><h3>{escape(one.title)}</h3>{inside}</section>"


def _paragraph_html(one: Paragraph) -> str:
    kind = " class='quiet'" if one.quiet else ""
    text = f"<b>{escape(one.text)}</b>" if one.strong else escape(one.text)
    if one.label:
        colour = one.colour or one.label
        label = f"<b class='label' style='color:var(--{colour})'>{escape(one.label)}</b>"
        text = f"{label}{escape(one.where)} {text}"
    return f"<p{kind}>{text}</p>"


def _formula_html(one: Formula) -> str:
    mark = f"<span class='mark'>{escape(one.mark)}</span>" if one.mark else ""
    return f"<p class='equation'>{mark}{escape(one.text)}</p>"


def _cell_html(cell: Cell) -> str:
    return f"{bar(cell.share, 1.0)} {cell}" if isinstance(cell, Bar) else escape(cell)


def _table_html(one: Table) -> str:
    def row(tag: str, cells: Sequence[Cell]) -> str:
        return "<tr>" + "".join(f"<{tag}>{_cell_html(cell)}</{tag}>" for cell in cells) + "</tr>"

    head = row("th", one.head) if one.head else ""
    kind = f" class='{one.kind}'" if one.kind else ""
    return f"<table{kind}>{head}{''.join(row('td', cells) for cells in one.rows)}</table>"


PARTS: dict[type, Callable[..., str]] = {
    Paragraph: _paragraph_html,
    Lines: lambda one: f"<pre>{escape(chr(10).join(one.lines))}</pre>",
    Formula: _formula_html,
    Table: _table_html,
    Figure: lambda one: f"<figure>{one.svg}</figure>" if one.svg else "",
    Section: _section_html,
}


# --- in a notebook --------------------------------------------------------------------------------


def as_block(document: Document) -> str:
    """A titled part of somebody else's page."""
    return block(document.title, quiet(document.about), *map(_notebook, document.blocks))


def _notebook(one: Block) -> str:
    return NOTEBOOK[type(one)](one)


def _notebook_cell(cell: Cell) -> str:
    return Markup(_cell_html(cell)) if isinstance(cell, Bar) else cell


NOTEBOOK: dict[type, Callable[..., str]] = {
    Paragraph: lambda one: quiet("; ".join(_paragraph_text(one))),
    Lines: lambda one: lines(one.lines),
    Formula: lambda one: lines([one.text]),
    Table: lambda one: table(
        [[_notebook_cell(cell) for cell in row] for row in one.rows], one.head, most=len(one.rows)
    ),
    Figure: lambda one: on_page(one.svg) if one.svg else lines(one.lines),
    Section: lambda one: heading(one.title) + "".join(map(_notebook, one.blocks)),
}
