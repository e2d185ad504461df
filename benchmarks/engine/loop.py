"""The fair opponent: a cell as the loop that a careful person would write by hand.

From the graph of a step comes Python source, for torch and for JAX, that is run as it
stands. All products of x are taken before the loop, one for each matrix, together with the
biases that are added to them; in the loop, products of the same operand are one product,
and where what it is added to was made before the loop, that sum is part of the call
(`addmm`). Layer normalisation is torch's own function. The steps of x come from `unbind`:
a loop that indexes `x[t]` is several times slower in training.

    def loop(x, state, W, U, b):
        x_W = torch.nn.functional.linear(x, W, b)
        m_1 = U.t()
        h, c, = state
        outputs = []
        for x_W, in zip(x_W.unbind(0)):
            s_1, s_2, s_3, s_4 = torch.addmm(x_W, h, m_1).split((64, 64, 64, 64), -1)
            i = torch.sigmoid(s_1)
            …
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain, count
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.engine.spelling import Spelling, Torch
from ensue.equations import Equations, MatrixRef, Node, VectorRef, below
from ensue.equations.declare import Parameter
from ensue.equations.schedule import is_hoisted
from ensue.equations.text import show_number

Loop = Callable[..., tuple[Tensor, tuple[Tensor, ...]]]
Ref = MatrixRef | VectorRef


class Norm(NamedTuple):
    """scale * (v − mean v) / √(mean (v − mean v)² + epsilon) + shift."""

    v: Node
    epsilon: float
    scale: Node | None = None
    shift: Node | None = None


class Sums:
    """Sums of sums as one list of terms, and what of it has been taken care of elsewhere."""

    def __init__(self, roots: list[Node]) -> None:
        self.nodes = below(roots)
        self.users: dict[Node, list[Node]] = {}
        for node in self.nodes:
            for argument in node.args:
                self.users.setdefault(argument, []).append(node)
        self.uses = Counter(a for n in self.nodes for a in n.args) + Counter(roots)
        self.left: dict[Node, list[Node]] = {}
        for node in self.nodes:
            if node.op == "add":
                parts = [self.left.pop(a) if self._is_inner(a) else [a] for a in node.args]
                self.left[node] = [term for part in parts for term in part]

    def _is_inner(self, node: Node) -> bool:
        """An addition that only another addition reads."""
        return node.op == "add" and self.uses[node] == 1 and self.users[node][0].op == "add"

    def home(self, node: Node) -> Node | None:
        """The sum whose term the node is, if no other node reads it."""
        if self.uses[node] != 1:
            return None
        return next((head for head, terms in self.left.items() if node in terms), None)

    def take(self, head: Node, op: str, size: str) -> list[Node]:
        """Takes the terms of that kind out of a sum."""
        nodes = [t for t in self.left[head] if t.op == op and t.size == size]
        self.left[head] = [t for t in self.left[head] if t not in nodes]
        return nodes


class LoopWriter:
    """The source of the loop of one traced step."""

    def __init__(self, equations: Equations, spelling: Spelling) -> None:
        self.equations, self.spelling = equations, spelling
        self.sums = Sums(equations.roots)
        self.declared = {
            n: d for n, d in equations.declarations.items() if isinstance(d, Parameter)
        }
        self.before: list[str] = []
        self.body: list[str] = []
        self.names: dict[Node, str] = {n: str(n.attr) for n in equations.old.values()}
        self.used_names = {
            "x",
            "x_t",
            "state",
            "outputs",
            "step",
            "given",
            "y",
            "torch",
            "jax",
            "jnp",
        }
        self.used_names |= {*self.declared, *equations.old}
        self.norms = self._norms() if spelling.fuses_norms else {}
        self.columns: dict[str, list[Node]] = {}  # of each matrix of x: its products
        self.steps: dict[str, None] = {}  # what the loop runs over
        self.groups: dict[Node, list[Node]] = {}  # products by their operand
        self.bases: dict[Node, str] = {}  # by operand: what the product is added to
        self._collect()

    # ---------------------------------------------------------------- names
    def fresh(self, stem: str) -> str:
        """The name, or the next free one like it."""
        stem = stem.replace("'", "_new")
        names = chain([stem], (f"{stem}_{k}" for k in count(2)))
        name = next(n for n in names if n not in self.used_names)
        self.used_names.add(name)
        return name

    def width(self, name: str) -> int:
        return self.equations.graph.width(self.declared[name].size)

    def rows(self, refs: Iterable[Ref]) -> str:
        """Blocks of parameters, stacked: neighbours as one slice, a whole parameter as itself."""
        runs: list[tuple[str, int, int]] = []  # (parameter, first gate, gate after the last)
        for ref in refs:
            gate = self.declared[ref.name].gates.index(ref.gate)
            if runs and runs[-1][0] == ref.name and runs[-1][2] == gate:
                runs[-1] = (ref.name, runs[-1][1], gate + 1)
            else:
                runs.append((ref.name, gate, gate + 1))
        texts = []
        for name, first, last in runs:
            whole = last - first == len(self.declared[name].gates)
            n = self.width(name)
            texts.append(name if whole else f"{name}[{first * n}:{last * n}]")
        return texts[0] if len(texts) == 1 else self.spelling.joined(texts)

    # ---------------------------------------------------------------- before the loop
    def _collect(self) -> None:
        """Finds the products, takes their biases out of the sums, writes the lines before."""
        products = [n for n in self.sums.nodes if n.op == "product"]
        order = {n: k for k, n in enumerate(self.declared)}
        products.sort(
            key=lambda n: (order[n.attr.name], self.declared[n.attr.name].gates.index(n.attr.gate))
        )
        for node in products:
            if is_hoisted(node):
                self.columns.setdefault(node.attr.name, []).append(node)
            else:
                self.groups.setdefault(node.args[0], []).append(node)
        biases = {name: [self._bias(n) for n in nodes] for name, nodes in self.columns.items()}
        fused = {operand: self._fuse(operand) for operand in self.groups}
        for matrix, nodes in self.columns.items():
            self._write_columns(matrix, nodes, biases[matrix], fused)
        for operand, nodes in self.groups.items():
            if not fused[operand]:
                bias = self._stack_biases([self._bias(n) for n in nodes], nodes)
                if bias:
                    self.bases[operand] = self.fresh("bias")
                    self.before.append(f"{self.bases[operand]} = {bias}")

    def _bias(self, node: Node) -> list[Node]:
        """The vectors that are added to a product, taken out of their sum; products of x come
        first, and what is then left without bias has none."""
        head = self.sums.home(node)
        if head is None:
            return []
        if not is_hoisted(node) and any(is_hoisted(t) for t in self.sums.left[head]):
            return []
        return self.sums.take(head, "vector", node.size)

    def _stack_biases(self, biases: list[list[Node]], nodes: list[Node]) -> str:
        """The biases of stacked products as one vector; "" for none."""
        if not any(biases):
            return ""
        if all(len(vectors) == 1 for vectors in biases):
            return self.rows([vectors[0].attr for vectors in biases])
        texts = []
        for vectors, node in zip(biases, nodes, strict=True):
            text = " + ".join(self.rows([v.attr]) for v in vectors)
            texts.append(text or self.spelling.zeros(node.width))
        return texts[0] if len(texts) == 1 else self.spelling.joined(texts)

    def _fuse(self, operand: Node) -> list[Node]:
        """The products of x that the products of an operand are added to, one each, neighbours
        in the same order; taken out of their sums. [] where that is not so."""
        partners: list[Node] = []
        for node in self.groups[operand]:
            head = self.sums.home(node)
            terms = self.sums.left[head] if head is not None else []
            fitting = [t for t in terms if is_hoisted(t) and self.sums.uses[t] == 1]
            fitting = [t for t in fitting if t.size == node.size and t not in partners]
            if not fitting:
                return []
            partners.append(fitting[0])
        columns = self.columns[partners[0].attr.name]
        first = columns.index(partners[0])
        if columns[first : first + len(partners)] != partners:
            return []
        for partner in partners:
            head = self.sums.home(partner)
            assert head is not None
            self.sums.left[head].remove(partner)
        return partners

    def _write_columns(
        self,
        matrix: str,
        nodes: list[Node],
        biases: list[list[Node]],
        fused: dict[Node, list[Node]],
    ) -> None:
        """x · matrix for all steps, divided into what is read together."""
        owner = {node: operand for operand, partners in fused.items() for node in partners}
        pieces: list[tuple[str, int]] = []
        for node in nodes:
            operand = owner.get(node)
            if operand is not None and operand in self.bases:
                name, width = pieces[-1]
                pieces[-1] = (name, width + node.width)
                continue
            name = self.fresh(f"x_{matrix}")
            pieces.append((name, node.width))
            if operand is None:
                self.names[node] = name
            else:
                self.bases[operand] = name
        text = self.spelling.before(
            self.rows(n.attr for n in nodes), self._stack_biases(biases, nodes)
        )
        if len(pieces) > 1:
            text = self.spelling.split(f"({text})", [width for _, width in pieces])
        self.before.append(f"{', '.join(name for name, _ in pieces)} = {text}")
        self.steps |= dict.fromkeys(name for name, _ in pieces)

    # ---------------------------------------------------------------- the loop
    def value(self, node: Node) -> str:
        """The name of a value, or a number; the lines that compute it are written at first use."""
        if node.op in ("constant", "count"):
            number = node.attr if node.op == "constant" else node.graph.width(node.attr)
            short = show_number(float(number))
            return short if float(short) == number else repr(float(number))
        if node not in self.names:
            if node.op == "product":
                self._multiply(node.args[0])
            elif node.op == "vector":
                self.names[node] = self.fresh(f"{node.attr.name}_{node.attr.gate}".strip("_"))
                self.before.append(f"{self.names[node]} = {self.rows([node.attr])}")
            elif node.op == "x":
                self.names[node] = "x_t"
                self.steps["x_t"] = None
            elif self._is_one_term(node):
                self.names[node] = self.value(self.sums.left[node][0])
            else:
                text = self._expression(node)
                self.names[node] = self.fresh(self.equations.names.get(node, "t"))
                self.body.append(f"{self.names[node]} = {text}")
        return self.names[node]

    def _is_one_term(self, node: Node) -> bool:
        """Whether all else of a sum is part of a product's call."""
        return node.op == "add" and node not in self.norms and len(self.sums.left[node]) == 1

    def _multiply(self, operand: Node) -> None:
        """All products of an operand."""
        nodes = self.groups[operand]
        matrix = self.fresh("m")
        self.before.append(f"{matrix} = {self.spelling.turned(self.rows(n.attr for n in nodes))}")
        text = self.spelling.product(self.value(operand), matrix, self.bases.get(operand, ""))
        names = [self.fresh("s") for _ in nodes]
        if len(nodes) > 1:
            text = self.spelling.split(f"({text})", [n.width for n in nodes])
        self.body.append(f"{', '.join(names)} = {text}")
        self.names |= dict(zip(nodes, names, strict=True))

    def _expression(self, node: Node) -> str:
        if node in self.norms:
            return self._norm(self.norms[node])
        if node.op == "add":
            return self._sum(self.sums.left[node])
        if node.op == "spread":
            return self.value(node.args[0])
        if node.op in ("sum", "mean"):
            return self.spelling.reduced(node.op, self.value(node.args[0]))
        args = [self.value(a) for a in node.args]
        if node.op == "negative":
            return f"-{args[0]}"
        if node.op in ("multiply", "divide"):
            return f"{args[0]} {'*' if node.op == 'multiply' else '/'} {args[1]}"
        numbers = [a for a in node.args if a.op in ("constant", "count")]
        if node.op == "maximum" and numbers:
            value = args[1] if node.args[0] in numbers else args[0]
            return self.spelling.limited(node.op, value, self.value(numbers[0]))
        return f"{self.spelling.functions[node.op]}({', '.join(args)})"

    def _sum(self, terms: list[Node]) -> str:
        """1 - z is one operation; -z + 1 would be two."""
        first = next((k for k, term in enumerate(terms) if term.op != "negative"), 0)
        text = self.value(terms[first])
        for term in terms[:first] + terms[first + 1 :]:
            if term.op == "negative":
                text += f" - {self.value(term.args[0])}"
            else:
                text += f" + {self.value(term)}"
        return text

    # ---------------------------------------------------------------- layer normalisation
    def _norms(self) -> dict[Node, Norm]:
        norms: dict[Node, Norm] = {}
        for node in self.sums.nodes:
            norm = plain_norm(node)
            if norm is None:
                continue
            norms[node] = norm
            scaled = self.sums.users[node][0] if self.sums.uses[node] == 1 else node
            head = self.sums.home(scaled)
            if scaled.op != "multiply" or head is None:
                continue
            scale = next(a for a in scaled.args if a is not node)
            shift = next(t for t in self.sums.left[head] if t is not scaled)
            alone = len(self.sums.left[head]) == 2
            if alone and all(v.op == "vector" and v.size == node.size for v in (scale, shift)):
                norms[head] = norm._replace(scale=scale, shift=shift)
        return norms

    def _norm(self, norm: Norm) -> str:
        scale = self.value(norm.scale) if norm.scale is not None else ""
        shift = self.value(norm.shift) if norm.shift is not None else ""
        value = self.value(norm.v)
        return self.spelling.norm(value, norm.v.width, scale, shift, norm.epsilon)

    # ---------------------------------------------------------------- the whole
    def source(self) -> str:
        roots = self.equations.roots
        for root in sorted(roots, key=lambda n: n.number):
            self.value(root)
        new = [self.value(root) for root in roots]
        if "x_t" in self.steps:
            self.before.append("x_t = x")
        parts = list(self.equations.old)
        loop = self.spelling.loop(list(self.steps), parts, self.body, new)
        lines = [*self.before, *loop.splitlines()]
        head = f"def loop(x, state, {', '.join(self.declared)}):"
        return "\n".join([head, *(f"    {line}" for line in lines)]) + "\n"


def plain_norm(node: Node) -> Norm | None:
    """The normalisation that a node is: d / √(mean d² + ε) with d = v − mean v."""
    if node.op != "divide" or node.args[1].op != "sqrt":
        return None
    d, inside = node.args[0], node.args[1].args[0]
    if inside.op != "add" or d.op != "add" or len(inside.args) != 2 or len(d.args) != 2:
        return None
    square, epsilon = sorted(inside.args, key=lambda n: n.op == "constant")
    v, middle = sorted(d.args, key=lambda n: n.op == "negative")
    is_square = square.op == "mean" and square.args[0].op == "multiply"
    is_square = is_square and square.args[0].args == (d, d)
    is_middle = middle.op == "negative" and middle.args[0].op == "mean"
    is_middle = is_middle and middle.args[0].args == (v,)
    return Norm(v, epsilon.attr) if is_square and is_middle and epsilon.op == "constant" else None


def write_loop(equations: Equations, spelling: Spelling) -> str:
    """Source of `loop(x, state, *parameters)`, which returns y and the final state; for a step
    traced without masks."""
    return LoopWriter(equations, spelling).source()


def torch_loop(equations: Equations) -> Loop:
    """The loop, made ready: x (time, batch, input), state and parameters as the engines have."""
    place: dict[str, object] = {"torch": torch}
    exec(compile(write_loop(equations, Torch()), f"<loop of {equations.title}>", "exec"), place)
    return place["loop"]  # type: ignore[return-value]
