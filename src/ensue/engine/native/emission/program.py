"""A kernel's program, from the graph to schedules and buffers: what it computes, and where each
value is stored.

Forward and backward are schedules of the same kind. A forward value that the backward pass reads is
saved if recomputing it would need a product or a reduction; the elementwise rest is computed again.

equations → lowered step and derivative → saved values → schedules → layout → gate runs
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ensue.engine.native.emission import buffers
from ensue.engine.native.emission.buffers import (
    Buffer,
    GateRun,
    Operand,
    X,
    declared_order,
    join_neighbours,
    single_gate,
    width,
)
from ensue.engine.native.emission.layout import (
    ColumnSizes,
    Layout,
    Locations,
    LoweredDerivative,
    LoweredStep,
    find_overlay,
    is_x,
    layout_of_inputs,
    lower_both,
    lower_step,
    make_layout,
)
from ensue.equations import Equations, Node, VectorRef, below
from ensue.equations.schedule import REDUCTIONS, IsConstant, Schedule, of_x_and_shifts


@dataclass(frozen=True)
class Forward:
    """The forward pass of a step: its outputs, the order of its work, and where values are.

    hoisted: products that are computed before the loop, in the runs `products`. saved: values that
    the backward pass reads again."""

    equations: Equations
    output: Node
    state: dict[str, Node]
    schedule: Schedule
    locations: Locations
    columns: ColumnSizes
    hoisted: list[Node] = field(default_factory=list)
    products: list[GateRun] = field(default_factory=list)
    saved: list[Node] = field(default_factory=list)

    @property
    def output_part(self) -> str | None:
        """The part of the state that is also the output, if any."""
        return next((part for part, node in self.state.items() if node is self.output), None)

    def width(self, buffer: Buffer) -> int:
        """How many columns a buffer has."""
        return width(self.equations, self.columns[buffer])


@dataclass(frozen=True)
class Backward:
    """The backward pass: derivatives by the old state, the vectors and x, adjoints of products.

    doubled: parts whose old adjoint is still read while the new one is written. overlay: whether
    adjoints may be written over the saved values. products: runs of adjoints, for the products
    after the loop."""

    state: dict[str, Node]
    vectors: dict[VectorRef, Node]
    x: Node | None
    adjoints: Locations
    schedule: Schedule
    locations: Locations
    doubled: list[str]
    overlay: bool
    products: list[GateRun]

    @property
    def reads(self) -> set[Buffer]:
        """The buffers that are read, by the schedule or by the products after the loop."""
        in_loop = {self.locations[n].buffer for n in self.schedule.reads if n in self.locations}
        return in_loop | {run.operand.buffer for run in self.products}


@dataclass(frozen=True)
class Program:
    """Both passes of one traced step."""

    forward: Forward
    backward: Backward

    @property
    def equations(self) -> Equations:
        return self.forward.equations


def stream_program(equations: Equations) -> Forward:
    """A program for a single step in streams: products of x are computed together with products of
    the state."""
    step = lower_step(equations)
    columns, locations = layout_of_inputs(equations)
    schedule = Schedule(step.roots, lambda _: False)
    return Forward(equations, step.output, step.state, schedule, locations, columns)


def sequence_program(equations: Equations) -> Program:
    """A program for whole sequences: products of x, and of a part of the state that is the previous
    x, are computed before the loop."""
    return _program(equations, of_x_and_shifts(equations.old, equations.state))


def single_step_program(equations: Equations) -> Program:
    """A program for sequences of one step, whose old state is known before the loop like x."""
    return _program(equations, lambda leaf: leaf.op in ("x", "state"))


def _program(equations: Equations, is_given: IsConstant) -> Program:
    step, derivative = lower_both(equations, is_given)
    operands = {outer.operand for outer in derivative.outers if not outer.operand.is_leaf}
    saved = saved_values(step, derivative, operands)
    forward = Schedule([*step.roots, *saved], step.is_hoisted)
    stored = {*saved, *step.state.values()}
    backward = Schedule(derivative.roots, stored.__contains__)
    overlay = find_overlay(derivative, backward, step.hoisted, saved, operands)
    layout = make_layout(step, derivative, forward, saved, overlay)
    return Program(
        Forward(
            equations,
            step.output,
            step.state,
            forward,
            layout.forward,
            layout.columns,
            step.hoisted,
            _products_before(step, layout),
            saved,
        ),
        Backward(
            derivative.state,
            derivative.vectors,
            derivative.x,
            layout.adjoints,
            backward,
            layout.backward,
            _doubled_parts(step, derivative, backward),
            layout.overlay,
            _products_after(step, derivative, layout),
        ),
    )


def saved_values(
    step: LoweredStep, derivative: LoweredDerivative, operands: set[Node]
) -> list[Node]:
    """The values that the forward pass saves for the backward pass. These are the values that the
    derivative reads, if recomputing them would need a product or a reduction; and the operands of
    products, for the gradients of their matrices."""
    forward = set(below([*step.roots, *operands]))
    needed = {n for n in below(derivative.roots, forward.__contains__) if n in forward}
    at_hand = {n for n in forward if n.is_leaf} | set(step.state.values())
    saved: dict[Node, None] = {}

    def recomputable(node: Node) -> bool:
        if node in at_hand:
            return True
        costly = node.op in ("dot", "product", *REDUCTIONS)
        return not costly and not node.is_leaf and all(map(recomputable, node.args))

    for node in sorted(needed, key=lambda n: n.number):
        if not recomputable(node):
            saved[node] = None
            at_hand.add(node)
    saved.update(dict.fromkeys(sorted(operands, key=lambda n: n.number)))
    return list(saved)


def _doubled_parts(
    step: LoweredStep, derivative: LoweredDerivative, backward: Schedule
) -> list[str]:
    """The parts of the state whose old adjoint is still read while the new one is written."""
    doubled, phases = [], backward.phases
    for part, seed in zip(step.state, derivative.seeds[1:], strict=True):
        writes = [k for k, phase in enumerate(phases) if derivative.state[part] in phase.stores]
        reads = [k for k, phase in enumerate(phases) if seed in phase.loads]
        if not writes or max(reads, default=-1) > writes[0]:
            doubled.append(part)
    return doubled


# ---------------------------------------------------------------- products outside the loop
def _products_before(step: LoweredStep, layout: Layout) -> list[GateRun]:
    return join_neighbours(
        single_gate(
            step.equations,
            product.attr,
            layout.forward[product].offset,
            _operand(step.equations, layout, product.args[0]),
        )
        for product in step.hoisted
    )


def _products_after(
    step: LoweredStep, derivative: LoweredDerivative, layout: Layout
) -> list[GateRun]:
    equations = step.equations
    ordered = sorted(derivative.outers, key=lambda outer: declared_order(equations, outer.matrix))
    return join_neighbours(
        single_gate(
            equations,
            outer.matrix,
            layout.adjoints[outer.adjoint].offset,
            _operand(equations, layout, outer.operand),
        )
        for outer in ordered
    )


def _operand(equations: Equations, layout: Layout, node: Node) -> Operand:
    """The location of an operand outside the loop."""
    if is_x(node):
        return Operand(X, 0, node.width)
    for part, leaf in equations.old.items():
        if node is leaf:
            return Operand(buffers.initial(part), 0, node.width, part)
    location = layout.forward[node]
    return Operand(location.buffer, width(equations, location.offset), node.width)
