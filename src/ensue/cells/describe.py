"""A cell in words and numbers, for `ensue cell`."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from ensue.cells import CELLS
from ensue.cells.cell import Cell
from ensue.drawing.document import Document, Lines, Section, Table
from ensue.equations import Counts, Equations, MatrixRef, Node, below
from ensue.equations.schedule import IsConstant, Schedule, is_hoisted, lower, of_x_and_shifts
from ensue.equations.text import ATOM, Plain


@dataclass(frozen=True)
class Description:
    """Facts about a cell with given sizes. flops: operations of one step for one row."""

    name: str
    about: str
    input: int
    hidden: int
    state: dict[str, int]
    equations: str
    latex: str
    derivative: str
    shapes: dict[str, tuple[int, ...]]
    counts: Counts
    stages: list[str]


def about(cell: Cell) -> str:
    """The docstring of the cell's own class up to its example; its first line is the cell's
    convention."""
    doc = type(cell).__dict__.get("__doc__")
    return inspect.cleandoc(doc).partition("\n>>> ")[0].rstrip() if doc else ""


def describe(cell: Cell, input_size: int = 32, hidden_size: int = 64) -> Description:
    equations = cell.equations(input_size, hidden_size)
    return Description(
        name=type(cell).__name__,
        about=about(cell),
        input=input_size,
        hidden=hidden_size,
        state={part: leaf.width for part, leaf in equations.old.items()},
        equations=equations.text(),
        latex=equations.latex(),
        derivative=equations.derivative_text(),
        shapes=equations.shapes,
        counts=equations.counts(),
        stages=stages(equations),
    )


class CellRow(TypedDict):
    """One line of the list of cells."""

    name: str
    parameters: int
    about: str


def summarise(input_size: int, hidden_size: int) -> list[CellRow]:
    """Every built-in cell: its parameters and the first line of its convention."""
    made = {name: make() for name, make in CELLS.items()}
    return [
        CellRow(
            name=name,
            parameters=cell.count(input_size, hidden_size),
            about=about(cell).splitlines()[0],
        )
        for name, cell in made.items()
    ]


def list_document(rows: Sequence[CellRow]) -> Document:
    table = Table([(row["name"], row["parameters"], row["about"]) for row in rows], left=3)
    return Document("Cells", "", [table])


def stages(equations: Equations) -> list[str]:
    """Products and reductions in order of computation. Those of x come first, for all steps before
    the loop over time. The others run inside the loop; each stage waits for the one before."""
    before_step = of_x_and_shifts(equations.old, equations.state)
    parts = _before_the_loop(equations, before_step)
    lowered = lower(equations.roots, before_step)
    names = {lowered[node]: name for node, name in equations.names.items() if node in lowered}
    schedule = Schedule(
        [lowered[root] for root in equations.roots], lambda n: is_hoisted(n, before_step)
    )
    when = "in the loop"
    for stage in schedule.stages:
        work: list[str] = []
        for phase in stage.phases.values():
            work += [_products(group, Plain(names)) for group in phase.groups]
            many = Counter(node.op for node in phase.reductions)
            work += [op if count == 1 else f"{count} × {op}" for op, count in many.items()]
        if work:
            parts.append(f"{when}: {', '.join(work)}")
            when = "then"
    return parts


def _before_the_loop(equations: Equations, is_given: IsConstant) -> list[str]:
    """One line with the products before the loop: the matrices of each operand (x, or a part that
    holds the previous x)."""
    by_operand: dict[str, list[str]] = {}
    for node in below(equations.roots):
        if is_hoisted(node, is_given):
            leaf = node.args[0]
            name = next((part for part, old in equations.old.items() if old is leaf), "x")
            by_operand.setdefault(name, []).append(_label(node.attr))
    products = [f"{' '.join(labels)} · {name}" for name, labels in by_operand.items()]
    return [f"before the loop: {', '.join(products)}"] if products else []


def _label(ref: MatrixRef) -> str:
    return f"{ref.name}_{ref.gate}" if ref.gate else ref.name


def _products(group: list[Node], printer: Plain) -> str:
    """Text for a group of products that share their operands: U_i U_f · h, or U·h + V·m for a
    sum."""
    operands = [printer.show(v, ATOM) for v in group[0].args]
    if len(operands) == 1:
        return f"{' '.join(_label(dot.attr[0]) for dot in group)} · {operands[0]}"
    sums = [[f"{_label(m)}·{v}" for m, v in zip(d.attr, operands, strict=True)] for d in group]
    return ", ".join(map(" + ".join, sums))


def document(description: Description, derivative: bool = False) -> Document:
    """A document about a cell: its equations, and their cost."""
    counts = description.counts
    flops = counts.product_flops + counts.elementwise_flops
    shapes = [f"{name} {'×'.join(map(str, shape))}" for name, shape in description.shapes.items()]
    facts = {
        "sizes": [f"input {description.input}, hidden {description.hidden}"],
        "state": [", ".join(f"{part} ({size})" for part, size in description.state.items())],
        "parameters": [f"{counts.parameters:,}: {', '.join(shapes)}"],
        "flops": [f"{flops:,} for one row and step, {counts.product_flops:,} of them in products"],
        "order": description.stages,
    }
    rows = [
        (name * (not k), value) for name, every in facts.items() for k, value in enumerate(every)
    ]
    texts = {description.name: description.about, "equations": description.equations}
    texts |= {"derivative": description.derivative} if derivative else {}
    sections = [Section(title, [Lines(text.splitlines())]) for title, text in texts.items()]
    return Document(description.name, "", [*sections, Table(rows, left=2)])
