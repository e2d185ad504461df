"""The traced step of a cell: its graph, its derivative, and how it prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ensue.equations.declare import Mask, Parameter
from ensue.equations.derive import forward, reverse
from ensue.equations.node import Graph, MatrixRef, Node, VectorRef, below
from ensue.equations.text import Latex, MathML, Notation, Plain, aligned, definitions


@dataclass(frozen=True)
class Counts:
    """Sizes of one step: `flops` for one row; a multiplication and an addition are two.

    >>> ensue.cells.GRU().equations(input_size=8, hidden_size=16).counts()
    Counts(parameters=1216, product_flops=2304, elementwise_flops=256)
    """

    parameters: int
    product_flops: int
    elementwise_flops: int


@dataclass(frozen=True)
class StepDerivative:
    """The reverse derivative of a step, as nodes of the same graph.

    `seeds` are the leaves for the adjoint of the output and of each new state part; a missing entry
    means that the derivative is zero. Parameters' derivatives are for one row; the gradient is
    their sum over rows and steps.

    >>> derivative = ensue.cells.SimpleRNN().equations().derivative
    >>> [ref.name for ref in derivative.matrices], [ref.name for ref in derivative.vectors]
    (['U', 'W'], ['b'])
    """

    seeds: tuple[Node, ...]
    x: Node | None
    state: dict[str, Node | None]
    vectors: dict[VectorRef, Node]
    matrices: dict[MatrixRef, Node]

    def outers(self) -> list[tuple[MatrixRef, Node, Node]]:
        """Tuples (matrix, adjoint of the product, operand). The gradient is Σ adjoint operandᵀ."""
        return [
            (ref, *term.args)  # type: ignore[misc]
            for ref, node in self.matrices.items()
            for term in (node.args if node.op == "add" else (node,))
        ]


@dataclass(frozen=True)
class Equations:
    """What `step` computes: `output` and new `state` from `x`, the `old` state and parameters.

    >>> equations = ensue.cells.LeakyRNN(rate=0.25).equations(input_size=8, hidden_size=16)
    >>> print(equations)
    g  = tanh(W·x + U·h + b)
    h' = 0.75*h + 0.25*g
    >>> print(equations.latex().splitlines()[2])
      \\mathbf{h}' &= 0.75 \\mathbf{h} + 0.25 \\mathbf{g}
    """

    graph: Graph = field(repr=False)
    title: str
    x: Node
    old: dict[str, Node]
    output: Node
    output_name: str  # used unless the output is a state part
    state: dict[str, Node]
    names: dict[Node, str] = field(repr=False)
    declarations: dict[str, Parameter | Mask] = field(repr=False)
    shapes: dict[str, tuple[int, ...]] = field(repr=False)
    _moved: dict[Node, tuple[Node, list[Node | None]]] = field(default_factory=dict, repr=False)

    @property
    def roots(self) -> list[Node]:
        return [self.output, *self.state.values()]

    @property
    def masks(self) -> list[str]:
        return [name for name, d in self.declarations.items() if isinstance(d, Mask)]

    @property
    def uses_x_elementwise(self) -> bool:
        return any(self.x in n.args for n in below(self.roots) if n.op != "product")

    @cached_property
    def derivative(self) -> StepDerivative:
        return self.derive(lambda seed: seed)

    def derive(self, begin: Callable[[Node], Node]) -> StepDerivative:
        """The reverse derivative; `begin` maps each seed's leaf to the adjoint to start from."""
        names = [f"∂{self.output_name}", *(f"∂{part}'" for part in self.old)]
        seeds = tuple(
            self.graph.leaf("given", name, root.size)
            for name, root in zip(names, self.roots, strict=True)
        )
        back = reverse(zip(self.roots, map(begin, seeds), strict=True))
        return StepDerivative(
            seeds=seeds,
            x=back.leaves.get(self.x),
            state={part: back.leaves.get(leaf) for part, leaf in self.old.items()},
            vectors={n.attr: a for n, a in back.leaves.items() if n.op == "vector"},
            matrices=back.matrices,
        )

    def moved_by(self, wrt: Node) -> tuple[Node, list[Node | None]]:
        """The tangents of the roots for a change of one node: (tangent leaf, tangents)."""
        if wrt not in self._moved:
            tangent = self.graph.leaf("given", f"d{wrt.number}", wrt.size)
            self._moved[wrt] = tangent, forward(self.roots, {wrt: tangent})
        return self._moved[wrt]

    # ---------------------------------------------------------------- printing
    def _definitions(
        self, notation: Callable[[Mapping[Node, str]], Notation]
    ) -> list[tuple[str, str]]:
        roots = [(f"{part}'", node) for part, node in self.state.items()]
        if self.output not in self.state.values():
            roots.append((self.output_name, self.output))
        return definitions(roots, self.names, notation, shared="t", least=12)

    def text(self) -> str:
        """The equations for a terminal, one a line."""
        return _lines(self._definitions(Plain))

    def latex(self) -> str:
        """The equations as an aligned block of LaTeX."""
        rows = [f"  {name} &= {expression}" for name, expression in self._definitions(Latex)]
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"

    def mathml(self) -> str:
        """The equations as MathML, for web pages."""
        return aligned(self._definitions(MathML))

    def derivative_text(self) -> str:
        """The reverse derivative by x, the state and the parameters, for a terminal."""
        derivative = self.derivative
        parts: list[tuple[str, Node | None]] = [("∂x", derivative.x)]
        parts += [(f"∂{part}", node) for part, node in derivative.state.items()]
        parts += [
            (f"∂{ref.name}_{ref.gate}" if ref.gate else f"∂{ref.name}", node)
            for ref, node in (derivative.vectors | derivative.matrices).items()
        ]
        roots = [(name, node) for name, node in parts if node is not None]
        rows = definitions(roots, self.names, Plain, shared="δ", least=1)
        return _lines(rows + [(name, "0") for name, node in parts if node is None])

    def svg(self) -> str:
        """The graph of the step as a picture."""
        from ensue.equations.picture import draw  # computing must not import drawing

        return draw(self)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from ensue.drawing.document import as_block  # computing must not import drawing
        from ensue.equations.picture import equations_document

        return as_block(equations_document(self))

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"

    # ---------------------------------------------------------------- counting
    def counts(self) -> Counts:
        parameters = sum(math.prod(shape) for shape in self.shapes.values())
        nodes = [n for n in below(self.roots) if not n.is_leaf]
        products = [n for n in nodes if n.op == "product"]
        flops = sum(2 * n.width * n.args[0].width for n in products)
        other = sum(
            max(n.width, *(a.width for a in n.args)) * max(1, len(n.args) - 1)
            for n in nodes
            if n.op not in ("product", "spread")
        )
        return Counts(parameters, flops, other)


def _lines(rows: list[tuple[str, str]]) -> str:
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name:<{width}} = {expression}" for name, expression in rows)
