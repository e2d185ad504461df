"""The graph as MathML Core, which browsers render by themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from ensue.equations.node import MatrixRef, Node
from ensue.equations.text import (
    ATOM,
    GREEK,
    STRENGTH,
    TERM,
    Name,
    Notation,
    indexed,
    is_word,
    show_number,
)

TIMES = "<mo>&#x2062;</mo>"  # invisible
PRIME = '<mi mathvariant="normal">′</mi>'  # stands high by itself: as a superscript it would fly
BOLD = 'style="font-weight:bold"'
FONTS = "'STIX Two Math', 'Cambria Math', 'Latin Modern Math', 'DejaVu Math TeX Gyre', math"
SCRIPTS = {
    (False, False): "",
    (True, False): "msub",
    (False, True): "msup",
    (True, True): "msubsup",
}  # by what stands below and above


class MathML(Notation):
    """For a page: the same signs as in LaTeX. An expression is a run of elements; where one
    element is wanted, it stands in a row."""

    FUNCTIONS: Mapping[str, str] = {"sigmoid": "σ", "maximum": "max", "minimum": "min"}

    minus, between_plus, between_minus = "<mo>−</mo>", "<mo>+</mo>", "<mo>−</mo>"

    @property
    def strength(self) -> Mapping[str, int]:
        return {**STRENGTH, "divide": ATOM}

    def name(self, name: str) -> str:
        mark, stem, index, prime = Name.of(name)
        if stem in GREEK:
            letter = f"<mi {BOLD}>{GREEK[stem]}</mi>"
        else:
            letter = f'<mi mathvariant="normal" {BOLD}>{escape(stem)}</mi>'
        return "<mo>∂</mo>" * bool(mark) + scripts(letter, subscript(index)) + PRIME * prime

    def leaf(self, node: Node) -> str:
        if node.op == "constant":
            return self.number(node.attr)
        if node.op == "count":
            return scripts("<mi>n</mi>", f"<mi>{escape(str(node.attr))}</mi>")
        if node.op == "vector":
            return self.name(indexed(node.attr.name, node.attr.gate))
        return self.name("x" if node.op == "x" else str(node.attr))

    def number(self, value: float) -> str:
        sign = self.minus if value < 0 else ""
        if not math.isfinite(value):
            return "<mi>NaN</mi>" if math.isnan(value) else f"{sign}<mn>∞</mn>"
        digits, _, power = show_number(abs(value)).partition("e")
        if not power:
            return f"{sign}<mn>{digits}</mn>"
        exponent = self.number(int(power))
        ten = scripts("<mn>10</mn>", "", row(exponent))
        return sign + ten if digits == "1" else f"{sign}<mn>{digits}</mn><mo>⋅</mo>{ten}"

    def times(self, node: Node) -> str:
        is_number = node.args[0].op in ("constant", "count")
        return (TIMES if is_number else "<mo>⊙</mo>").join(self.show(a, TERM) for a in node.args)

    def divided(self, node: Node) -> str:
        above, below = (row(self.show(a)) for a in node.args)
        return f"<mfrac>{above}{below}</mfrac>"

    def product(self, matrix: MatrixRef, operand: str) -> str:
        _, stem, index, _ = Name.of(indexed(matrix.name, matrix.gate))
        top = "<mo>⊤</mo>" if matrix.transposed else ""
        return scripts(f"<mi>{escape(stem)}</mi>", subscript(index), top) + TIMES + operand

    def outer(self, a: str, v: str) -> str:
        return a + TIMES + scripts(row(v), "", "<mo>⊤</mo>")

    def function(self, op: str, args: list[str]) -> str:
        if op == "sqrt":
            return f"<msqrt>{args[0]}</msqrt>"
        if op == "greater":
            return row(f"<mo>[</mo>{row(args[0])}<mo>&gt;</mo>{row(args[1])}<mo>]</mo>")
        inside = self.parentheses("<mo>,</mo>".join(map(row, args)))
        if op == "sum":  # as small as the letters beside it
            return f'<mo largeop="false">∑</mo>{inside}'
        return f"<mi>{escape(self.FUNCTIONS.get(op, op))}</mi>{inside}"

    def parentheses(self, inside: str) -> str:
        """They grow with a fraction only."""
        grow = "" if "<mfrac>" in inside else ' stretchy="false"'
        return f"<mrow><mo{grow}>(</mo>{row(inside)}<mo{grow}>)</mo></mrow>"


def row(inside: str) -> str:
    return f"<mrow>{inside}</mrow>"


def scripts(letter: str, below: str, above: str = "") -> str:
    """A letter with what stands below and above at its right; "" for nothing."""
    kind = SCRIPTS[bool(below), bool(above)]
    return f"<{kind}>{letter}{below}{above}</{kind}>" if kind else letter


def subscript(index: Sequence[str]) -> str:
    """(in, i) → in,i; "" for none."""
    signs = [f"<mn>{i}</mn>" if i.isdigit() else _letters(i) for i in index]
    return row("<mo>,</mo>".join(signs)) if signs else ""


def _letters(text: str) -> str:
    """A letter slants by itself, and a word stands upright."""
    upright = ' mathvariant="normal"' if is_word(text) else ""
    return f"<mi{upright}>{escape(text)}</mi>"


def aligned(rows: Sequence[tuple[str, str]]) -> str:
    """Equations one below the other, at their equals signs."""
    left, right = (f'style="text-align:{side};padding:.2em 0"' for side in ("right", "left"))
    lines = "".join(
        f"<mtr><mtd {left}>{row(name)}</mtd><mtd {right}><mo>=</mo>{row(expression)}</mtd></mtr>"
        for name, expression in rows
    )
    font = f"font-family:{FONTS};font-size:1.15em"
    inside = f'<mtable displaystyle="true">{lines}</mtable>'
    return f'<math display="block" style="{font}">{inside}</math>'
