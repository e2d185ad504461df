"""The graph as text and as LaTeX. One walk, two alphabets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping

from ensue.equations.node import MatrixRef, Node, below

# how tightly an expression holds together
SUM, NEGATIVE, PRODUCT, TERM, ATOM = range(5)
STRENGTH = {"add": SUM, "negative": NEGATIVE, "product": PRODUCT, "multiply": TERM, "divide": TERM}


def show_number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e6 else f"{value:.10g}"


class Notation(ABC):
    """How leaves, names and operations are spelt; the walk over the graph is here."""

    def __init__(self, names: Mapping[Node, str]) -> None:
        self.names = names

    def show(self, node: Node, strength: int = SUM) -> str:
        """The expression, in parentheses if it holds less tightly than `strength`."""
        if node in self.names:
            return self.name(self.names[node])
        inside = self.define(node)
        holds = self.strength.get(node.op, ATOM)
        return self.parentheses(inside) if holds < strength else inside

    @property
    def strength(self) -> Mapping[str, int]:
        return STRENGTH

    def define(self, node: Node) -> str:
        """What stands on the right of `name =`."""
        if node.op == "add":
            return self._sum(node)
        if node.op == "negative":
            return "-" + self.show(node.args[0], PRODUCT)
        if node.op == "multiply":
            return self.times(*(self.show(a, TERM) for a in node.args))
        if node.op == "divide":
            return self.divided(node)
        if node.op == "product":
            return self.product(node.attr, self.show(node.args[0], ATOM))
        if node.op == "spread":
            return self.show(node.args[0])
        if node.op == "outer":
            return self.outer(*(self.show(a, ATOM) for a in node.args))
        return self.leaf(node) if node.is_leaf else self.function(node)

    def _sum(self, node: Node) -> str:
        """Products first, biases last, a positive term in front where there is one."""
        terms = sorted(node.args, key=lambda n: (n.op == "vector", n.op == "negative"))
        if all(n.op in ("constant", "negative") for n in terms):
            terms = sorted(node.args, key=lambda n: n.op == "negative")
        text = self.show(terms[0])
        for term in terms[1:]:
            positive = term.args[0] if self._is_negative(term) else term
            sign = "-" if self._is_negative(term) else "+"
            text += f" {sign} {self.show(positive, PRODUCT if sign == '-' else SUM)}"
        return text

    def _is_negative(self, node: Node) -> bool:
        return node.op == "negative" and node not in self.names

    @abstractmethod
    def name(self, name: str) -> str: ...
    @abstractmethod
    def leaf(self, node: Node) -> str: ...
    @abstractmethod
    def times(self, a: str, b: str) -> str: ...
    @abstractmethod
    def divided(self, node: Node) -> str: ...
    @abstractmethod
    def product(self, matrix: MatrixRef, operand: str) -> str: ...
    @abstractmethod
    def outer(self, a: str, v: str) -> str: ...
    @abstractmethod
    def function(self, node: Node) -> str: ...
    @abstractmethod
    def parentheses(self, inside: str) -> str: ...


class Plain(Notation):
    """For a terminal: i = σ(W_i·x + U_i·h + b_i)."""

    def name(self, name: str) -> str:
        return name

    def leaf(self, node: Node) -> str:
        if node.op == "constant":
            return show_number(node.attr)
        if node.op == "count":
            return f"n({node.attr})"
        if node.op == "vector":
            return _indexed(node.attr.name, node.attr.gate)
        return "x" if node.op == "x" else str(node.attr)

    def times(self, a: str, b: str) -> str:
        return f"{a}*{b}"

    def divided(self, node: Node) -> str:
        a, b = node.args
        return f"{self.show(a, TERM)} / {self.show(b, ATOM)}"

    def product(self, matrix: MatrixRef, operand: str) -> str:
        mark = "ᵀ" if matrix.transposed else ""
        return f"{_indexed(matrix.name, matrix.gate)}{mark}·{operand}"

    def outer(self, a: str, v: str) -> str:
        return f"{a} {v}ᵀ"

    def function(self, node: Node) -> str:
        inside = ", ".join(self.show(a) for a in node.args)
        if node.op == "greater":
            return f"[{self.show(node.args[0])} > {self.show(node.args[1])}]"
        return f"{'σ' if node.op == 'sigmoid' else node.op}({inside})"

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
    }
    GREEK = ("alpha", "beta", "gamma", "delta", "lambda", "mu", "sigma", "tau", "phi", "theta")

    @property
    def strength(self) -> Mapping[str, int]:
        return {**STRENGTH, "divide": ATOM}

    def name(self, name: str) -> str:
        stem, prime = (name[:-1], "'") if name.endswith("'") else (name, "")
        mark, stem = ("\\partial ", stem[1:]) if stem.startswith("∂") else ("", stem)
        stem, _, index = stem.partition("_")
        bold = f"\\{stem}" if stem in self.GREEK else f"\\mathbf{{{stem}}}"
        return mark + bold + (f"_{{{index}}}" if index else "") + prime

    def leaf(self, node: Node) -> str:
        if node.op == "constant":
            return self.number(node.attr)
        if node.op == "count":
            return f"n_{{\\mathrm{{{node.attr}}}}}"
        if node.op == "vector":
            return self.name(_indexed(node.attr.name, node.attr.gate))
        return self.name("x" if node.op == "x" else str(node.attr))

    def number(self, value: float) -> str:
        digits, _, power = show_number(value).partition("e")
        ten = f"10^{{{int(power)}}}" if power else ""
        return ten if ten and digits == "1" else f"{digits} \\cdot {ten}" if ten else digits

    def times(self, a: str, b: str) -> str:
        return f"{a} {b}" if a.replace(".", "").isdigit() else f"{a} \\odot {b}"

    def divided(self, node: Node) -> str:
        return f"\\frac{{{self.show(node.args[0])}}}{{{self.show(node.args[1])}}}"

    def product(self, matrix: MatrixRef, operand: str) -> str:
        index = f"_{{{matrix.gate}}}" if matrix.gate else ""
        mark = "^{\\top}" if matrix.transposed else ""
        return f"{matrix.name}{index}{mark} {operand}"

    def outer(self, a: str, v: str) -> str:
        return f"{a} {v}^{{\\top}}"

    def function(self, node: Node) -> str:
        inside = ", ".join(self.show(a) for a in node.args)
        if node.op == "sqrt":
            return f"\\sqrt{{{inside}}}"
        if node.op == "greater":
            return f"[{self.show(node.args[0])} > {self.show(node.args[1])}]"
        return f"{self.FUNCTIONS.get(node.op) or self.upright(node.op)}({inside})"

    def upright(self, word: str) -> str:
        return f"\\operatorname{{{word}}}"

    def parentheses(self, inside: str) -> str:
        return f"({inside})"


def _indexed(name: str, gate: str) -> str:
    return f"{name}_{gate}" if gate else name


def definitions(
    roots: Mapping[Node, str],
    names: Mapping[Node, str],
    notation: Callable[[Mapping[Node, str]], Notation],
    shared: str = "",
) -> list[tuple[str, str]]:
    """(name, expression) for all that must be said to define the roots, in order of use.

    A name is used where the author gave one; a nameless value is written out in place, or
    called `shared` with a number where it is used more than once (if such a name is given)."""
    named = {n: names[n] for n in below(roots) if n in names and not n.is_leaf}
    named.update(roots)
    if shared:
        uses = Counter(a for n in below(roots) for a in n.args)
        often = [n for n, k in uses.items() if k > 1 and not n.is_leaf and n not in named]
        often = sorted((n for n in often if n.op != "negative"), key=lambda n: n.number)
        named.update({n: f"{shared}_{k}" for k, n in enumerate(often, 1)})
    printer = notation({n: name for n, name in named.items() if not n.is_leaf})
    ordered = sorted(named, key=lambda n: n.number)
    return [(printer.name(named[n]), printer.define(n)) for n in ordered]


def short(node: Node, most: int = 48) -> str:
    """One expression in a few characters, for messages."""
    text = Plain({}).show(node)
    return text if len(text) <= most else text[: most - 1] + "…"
