"""The graph as text, LaTeX and MathML: one walk over it, and a notation for each form."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import count
from typing import NamedTuple

from ensue.equations.node import MatrixRef, Node, below

# precedence of operators
SUM, NEGATIVE, PRODUCT, QUOTIENT, TERM, ATOM = range(6)
STRENGTH = {
    "add": SUM,
    "negative": NEGATIVE,
    "product": PRODUCT,
    "divide": QUOTIENT,
    "multiply": TERM,
}
GREEK = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "zeta": "ζ",
    "eta": "η",
    "theta": "θ",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "nu": "ν",
    "xi": "ξ",
    "pi": "π",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "phi": "φ",
    "chi": "χ",
    "psi": "ψ",
    "omega": "ω",
}


def show_number(value: float) -> str:
    return str(int(value)) if abs(value) < 1e6 and value == int(value) else f"{value:.10g}"


class Name(NamedTuple):
    """The parts of a name: ∂W_in_i' is ∂, W, (in, i) and a prime."""

    mark: str
    stem: str
    indices: tuple[str, ...]
    prime: bool

    @classmethod
    def of(cls, name: str) -> Name:
        prime, mark = name.endswith("'"), "∂" if name.startswith("∂") else ""
        inside = name.removesuffix("'").removeprefix(mark)
        stem, *indices = (inside.strip("_") or inside).split("_")
        return cls(mark, stem, tuple(i for i in indices if i), prime)


def is_word(index: str) -> bool:
    """Whether an index is a word, which is set upright, rather than a letter or number."""
    return len(index) > 1 and not index.isdigit()


class Notation(ABC):
    """How leaves, names and operations are written; subclasses differ in this only."""

    minus, between_plus, between_minus = "-", " + ", " - "

    def __init__(self, names: Mapping[Node, str]) -> None:
        self.names = names

    def show(self, node: Node, strength: int = SUM) -> str:
        """The expression, in parentheses if its precedence is lower than `strength`."""
        if node in self.names:
            return self.name(self.names[node])
        inside = self.define(node)
        holds = self.strength.get(node.op, ATOM)
        return self.parentheses(inside) if holds < strength else inside

    @property
    def strength(self) -> Mapping[str, int]:
        return STRENGTH

    def define(self, node: Node) -> str:
        """The right side of `name =`."""
        if node.op == "add":
            return self._sum(node)
        if node.op == "negative":
            return self._minimum(node.args[0]) or self.minus + self.show(node.args[0], PRODUCT)
        if node.op == "multiply":
            return self.times(node)
        if node.op == "divide":
            return self.divided(node)
        if node.op == "product":
            return self.product(node.attr, self.show(node.args[0], ATOM))
        if node.op == "spread":
            return self.show(node.args[0])
        if node.op == "outer":
            return self.outer(*(self.show(a, ATOM) for a in node.args))
        if node.is_leaf:
            return self.leaf(node)
        return self.function(node.op, [self.show(a) for a in node.args])

    def _minimum(self, node: Node) -> str:
        """Writes -maximum(-a, -b) as minimum(a, b)."""
        mirrored = [a.op in ("negative", "constant") and a not in self.names for a in node.args]
        if node.op != "maximum" or node in self.names or not all(mirrored):
            return ""
        inside = [
            self.show(a.args[0]) if a.op == "negative" else self.number(-a.attr) for a in node.args
        ]
        return self.function("minimum", inside)

    def _sum(self, node: Node) -> str:
        """A sum: products first, biases last, starting with a positive term if there is one."""
        last = {"negative": 1, "vector": 2}
        terms = sorted(node.args, key=lambda n: last.get(n.op, 0))
        pieces = [self.show(term) for term in terms]
        positive = [k for k, piece in enumerate(pieces) if not piece.startswith(self.minus)]
        if positive:
            pieces.insert(0, pieces.pop(positive[0]))
        text = pieces[0]
        for piece in pieces[1:]:
            positive_piece = piece.removeprefix(self.minus)
            text += self.between_plus if piece == positive_piece else self.between_minus
            text += positive_piece
        return text

    @abstractmethod
    def name(self, name: str) -> str: ...
    @abstractmethod
    def leaf(self, node: Node) -> str: ...
    @abstractmethod
    def times(self, node: Node) -> str: ...
    @abstractmethod
    def divided(self, node: Node) -> str: ...
    @abstractmethod
    def product(self, matrix: MatrixRef, operand: str) -> str: ...
    @abstractmethod
    def outer(self, a: str, v: str) -> str: ...
    @abstractmethod
    def function(self, op: str, args: list[str]) -> str: ...
    @abstractmethod
    def number(self, value: float) -> str: ...
    @abstractmethod
    def parentheses(self, inside: str) -> str: ...


class Plain(Notation):
    """For a terminal: i = σ(W_i·x + U_i·h + b_i)."""

    def name(self, name: str) -> str:
        return name

    def leaf(self, node: Node) -> str:
        if node.op == "constant":
            return self.number(node.attr)
        if node.op == "count":
            return f"n({node.attr})"
        if node.op == "vector":
            return indexed(node.attr.name, node.attr.gate)
        return "x" if node.op == "x" else str(node.attr)

    def times(self, node: Node) -> str:
        return "*".join(self.show(a, TERM) for a in node.args)

    def divided(self, node: Node) -> str:
        a, b = node.args
        return f"{self.show(a, QUOTIENT)} / {self.show(b, ATOM)}"

    def product(self, matrix: MatrixRef, operand: str) -> str:
        mark = "ᵀ" if matrix.transposed else ""
        return f"{indexed(matrix.name, matrix.gate)}{mark}·{operand}"

    def outer(self, a: str, v: str) -> str:
        return f"{a} {v}ᵀ"

    def function(self, op: str, args: list[str]) -> str:
        if op == "greater":
            return f"[{args[0]} > {args[1]}]"
        return f"{'σ' if op == 'sigmoid' else op}({', '.join(args)})"

    def number(self, value: float) -> str:
        return show_number(value)

    def parentheses(self, inside: str) -> str:
        return f"({inside})"


class Latex(Notation):
    """For a notebook or a paper: vectors bold, ⊙ elementwise."""

    FUNCTIONS: Mapping[str, str] = {
        "sigmoid": "\\sigma",
        "tanh": "\\tanh",
        "exp": "\\exp",
        "log": "\\log",
        "sum": "\\textstyle\\sum",
        "maximum": "\\max",
        "minimum": "\\min",
    }

    @property
    def strength(self) -> Mapping[str, int]:
        return {**STRENGTH, "divide": ATOM}

    def name(self, name: str) -> str:
        mark, stem, index, prime = Name.of(name)
        bold = f"\\boldsymbol{{\\{stem}}}" if stem in GREEK else f"\\mathbf{{{stem}}}"
        return "\\partial " * bool(mark) + bold + self.subscript(index) + "'" * prime

    def subscript(self, index: Sequence[str]) -> str:
        """(in, i) → _{\\mathrm{in},i}."""
        inside = [f"\\mathrm{{{i}}}" if is_word(i) else i for i in index]
        return f"_{{{','.join(inside)}}}" if inside else ""

    def leaf(self, node: Node) -> str:
        if node.op == "constant":
            return self.number(node.attr)
        if node.op == "count":
            return f"n_{{\\mathrm{{{node.attr}}}}}"
        if node.op == "vector":
            return self.name(indexed(node.attr.name, node.attr.gate))
        return self.name("x" if node.op == "x" else str(node.attr))

    def number(self, value: float) -> str:
        if not math.isfinite(value):
            return {math.inf: "\\infty", -math.inf: "-\\infty"}.get(value, "\\mathrm{NaN}")
        digits, _, power = show_number(value).partition("e")
        ten = f"10^{{{int(power)}}}" if power else ""
        return ten if ten and digits == "1" else f"{digits} \\cdot {ten}" if ten else digits

    def times(self, node: Node) -> str:
        number = node.args[0].op in ("constant", "count")
        return (" " if number else " \\odot ").join(self.show(a, TERM) for a in node.args)

    def divided(self, node: Node) -> str:
        return f"\\frac{{{self.show(node.args[0])}}}{{{self.show(node.args[1])}}}"

    def product(self, matrix: MatrixRef, operand: str) -> str:
        _, stem, index, _ = Name.of(indexed(matrix.name, matrix.gate))
        mark = "^{\\top}" if matrix.transposed else ""
        return f"{stem}{self.subscript(index)}{mark} {operand}"

    def outer(self, a: str, v: str) -> str:
        return f"{a} {v}^{{\\top}}"

    def function(self, op: str, args: list[str]) -> str:
        if op == "sqrt":
            return f"\\sqrt{{{args[0]}}}"
        if op == "greater":
            return f"[{args[0]} > {args[1]}]"
        name = self.FUNCTIONS.get(op) or f"\\operatorname{{{op}}}"
        return name + self.parentheses(", ".join(args))

    def parentheses(self, inside: str) -> str:
        return f"\\left({inside}\\right)" if "\\frac" in inside else f"({inside})"


def indexed(name: str, gate: str) -> str:
    return f"{name}_{gate}" if gate else name


def definitions(
    roots: Sequence[tuple[str, Node]],
    names: Mapping[Node, str],
    notation: Callable[[Mapping[Node, str]], Notation],
    shared: str,
    least: int,
) -> list[tuple[str, str]]:
    """(name, expression) for everything that defines the roots, in order of use.

    Values keep the names that their author gave. A nameless value is written out in place. If it is
    used more than once and has `least` parts, it gets the name `shared` with a number."""
    nodes = below(node for _, node in roots)
    named = {n: names[n] for n in nodes if n in names and not n.is_leaf}
    named.update({node: name for name, node in reversed(roots)})
    named.update(_shared(nodes, named, shared, least))
    printer = notation({n: name for n, name in named.items() if not n.is_leaf})
    rows = [(node.number, name, node) for node, name in named.items()]
    rows += [(node.number, name, node) for name, node in roots if named[node] != name]
    rows.sort(key=lambda row: row[0])
    return [
        (printer.name(name), printer.define(n) if named[n] == name else printer.show(n))
        for _, name, n in rows
    ]


def _shared(
    nodes: Sequence[Node], named: Mapping[Node, str], name: str, least: int
) -> dict[Node, str]:
    """Names for nameless values that are used more than once; without them the text could become
    huge."""

    def meant(node: Node) -> Node:
        """The node as it is written: -v and spread v count as v."""
        while node.op in ("negative", "spread") and node not in named:
            node = node.args[0]
        return node

    uses = Counter(meant(a) for n in nodes if meant(n) is n for a in n.args)
    free = (f"{name}_{k}" for k in count(1) if f"{name}_{k}" not in set(named.values()))
    names: dict[Node, str] = {}
    parts: dict[Node, int] = {}
    for node in nodes:
        parts[node] = 1 + sum(parts[a] for a in node.args)
        nameless = not node.is_leaf and node not in named and meant(node) is node
        if nameless and uses[node] > 1 and parts[node] >= least:
            names[node] = next(free)
        if node in names or node in named:
            parts[node] = 1
    return names


def short(node: Node, most: int = 48, depth: int = 6) -> str:
    """A short form of an expression, for messages: inner parts are left out."""
    level, reached = [node], {node}
    for _ in range(depth):
        level = [a for n in level for a in n.args if a not in reached]
        reached.update(level)
    deep = {n: "…" for n in level if not n.is_leaf}
    text = Plain(deep).show(node)
    return text if len(text) <= most else text[: most - 1] + "…"


TIMES = "<mo>&#x2062;</mo>"  # invisible
PRIME = '<mi mathvariant="normal">′</mi>'  # already raised: as a superscript it would be too high
BOLD = 'style="font-weight:bold"'
FONTS = "'STIX Two Math', 'Cambria Math', 'Latin Modern Math', 'DejaVu Math TeX Gyre', math"
SCRIPTS = {
    (False, False): "",
    (True, False): "msub",
    (False, True): "msup",
    (True, True): "msubsup",
}  # key: (has a subscript, has a superscript)


class MathML(Notation):
    """For web pages, with the same signs as in LaTeX. An expression is a sequence of elements,
    wrapped in a row where a single element is required."""

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
        if op == "sum":  # as small as the letters next to it
            return f'<mo largeop="false">∑</mo>{inside}'
        return f"<mi>{escape(self.FUNCTIONS.get(op, op))}</mi>{inside}"

    def parentheses(self, inside: str) -> str:
        """Puts parentheses around an expression. The parentheses grow only around a fraction."""
        grow = "" if "<mfrac>" in inside else ' stretchy="false"'
        return f"<mrow><mo{grow}>(</mo>{row(inside)}<mo{grow}>)</mo></mrow>"


def row(inside: str) -> str:
    return f"<mrow>{inside}</mrow>"


def scripts(letter: str, below: str, above: str = "") -> str:
    """A letter with a subscript and a superscript; "" for none."""
    kind = SCRIPTS[bool(below), bool(above)]
    return f"<{kind}>{letter}{below}{above}</{kind}>" if kind else letter


def subscript(index: Sequence[str]) -> str:
    """(in, i) → in,i; "" for none."""
    signs = [f"<mn>{i}</mn>" if i.isdigit() else _letters(i) for i in index]
    return row("<mo>,</mo>".join(signs)) if signs else ""


def _letters(text: str) -> str:
    """Letters as MathML: a single letter is italic, a word upright."""
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
