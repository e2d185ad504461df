"""A kernel for a single step of all rows, with little overhead from Python.

Products of x and of the old state are outside the compiled equations, forward and backward. Small
ones are computed in the same call (`single_step.cpp`), large ones by torch.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from ensue.engine.native.cache import loaded, template
from ensue.engine.native.call import (
    DEFINES,
    PAD,
    Adjoints,
    Derivatives,
    Needed,
    Threads,
    WorkSpace,
    address,
    alone_in_a_child,
    core,
    runtime,
    thread_count,
)
from ensue.engine.native.emission import buffers
from ensue.engine.native.emission.buffers import (
    ADJOINTS,
    D_X,
    D_Y,
    NUMBERS_SAVED,
    PRODUCTS,
    SUMS,
    Buffer,
    X,
    Y,
)
from ensue.engine.native.gradients import GradientProducts, add_outer, carries_of
from ensue.engine.recurrence import Recurrence, Tensors
from ensue.equations import Equations, below

if TYPE_CHECKING:
    from ensue.engine.native.emission.program import Program
    from ensue.engine.native.emission.source import KernelSource

FORTH, BACK, OUTER, SUMMED = range(4)  # as in single_step.cpp


class StepProduct(NamedTuple):
    """A product before or after the step; `fresh`: written, not added to.

    FORTH   to[:, to_at:+n] = source · by[by_at:+n]ᵀ                   of x and the old state
    BACK    to += source[:, from_at:+n] · by[by_at:+n]                 their adjoints
    OUTER   to[to_at:+n] += source[:, from_at:+n]ᵀ · by[:, by_at:+k]   the gradient of a matrix
    SUMMED  to[to_at:+n] = Σ source[:, from_at:+n]                     that of a vector"""

    kind: int
    to: Buffer
    to_at: int
    source: Buffer
    from_at: int
    by: Buffer
    by_at: int
    n: int
    k: int
    fresh: bool


class Table(NamedTuple):
    """Products in the form of a call's argument, and how many come before and after the step."""

    products: Any
    before: int
    after: int


class CStepProduct(ctypes.Structure):
    """single_step.cpp's StepProduct."""

    _fields_ = [
        (name, ctypes.c_long)
        for name in ("kind", "to", "to_at", "source", "from_at", "by", "by_at", "n", "k", "fresh")
    ]


class Fixed(ctypes.Structure):
    """single_step.cpp's Fixed."""

    _fields_ = [
        (name, ctypes.c_void_p)
        for name in ("step", "threads", "sizes", "strides", "products", "pack")
    ]


@functools.cache
def _library(dtype: torch.dtype) -> Any:
    source = template("single_step.cpp")
    entry = loaded(source, DEFINES[dtype]).single_step
    pointer, number = ctypes.c_void_p, ctypes.c_long
    entry.argtypes = [pointer, pointer, *[number] * 3, pointer, *[number] * 3]
    entry.restype = None
    return entry


class StepFunction:
    """One direction: everything that is the same for all calls.

    more: buffers that only the products use; strides: the stride of every buffer except the work
    space."""

    def __init__(
        self,
        source: KernelSource,
        compiled: Any,
        name: str,
        more: list[Buffer],
        strides: Mapping[Buffer, int],
        widths: Mapping[str, int],
        dtype: torch.dtype,
    ) -> None:
        self._entry, shared = _library(dtype), core(dtype)
        function, sizes = source.functions[name], [widths[s] for s in source.sizes]
        buffers = [*function.buffers, *more]
        self.at = {buffer: k for k, buffer in enumerate(buffers)}
        self._space = WorkSpace(function, widths, shared.lanes())
        self._work_spaces: dict[int, tuple[int, list[tuple[int, int]]]] = {}
        self._pointers = ctypes.c_void_p * len(buffers)
        self._none = [0] * len(buffers)
        self._threads = runtime() or Threads()
        strides = {**strides, **self._space.strides}
        self._sizes = (ctypes.c_long * (len(sizes) + len(buffers)))(
            *sizes, *(strides.get(buffer, 0) for buffer in buffers)
        )
        begin = ctypes.addressof(self._sizes)
        self._fixed = Fixed(
            address(getattr(compiled, name)),
            ctypes.addressof(self._threads),
            begin,
            begin + len(sizes) * ctypes.sizeof(ctypes.c_long),
            address(shared.products),
            address(shared.pack),
        )
        self._arguments = ctypes.addressof(self._fixed)

    def table(self, before: Sequence[StepProduct], after: Sequence[StepProduct]) -> Table:
        at = self.at
        products = [
            CStepProduct(p.kind, at[p.to], p.to_at, at[p.source], p.from_at, at[p.by], *p[6:])
            for p in (*before, *after)
        ]
        return Table((CStepProduct * len(products))(*products), len(before), len(after))

    def _work_space(self, batch: int) -> tuple[int, list[tuple[int, int]]]:
        """(total count of numbers, [(index of a buffer, its first number)])"""
        if batch not in self._work_spaces:
            total, starts = self._space.layout(batch)
            addresses = [(self.at[buffer], start) for buffer, start in starts.items()]
            self._work_spaces[batch] = total, addresses
        return self._work_spaces[batch]

    def __call__(
        self,
        at: Sequence[int],
        tensors: Sequence[Tensor],
        batch: int,
        threads: int,
        train: bool,
        table: Table,
        workers: int = 1,
    ) -> None:
        """Calls the function. at: the index of each tensor's buffer. workers: threads of the
        products."""
        pointers = self._none.copy()
        for k, tensor in zip(at, tensors, strict=True):
            pointers[k] = tensor.data_ptr()
        if self._space.needed:
            total, starts = self._work_space(batch)
            space = tensors[0].new_empty(total)  # in use until the call is over
            begin, item = space.data_ptr(), space.element_size()
            for k, start in starts:
                pointers[k] = begin + start * item
        self._entry(
            self._arguments, self._pointers(*pointers), batch, threads, train, *table, workers
        )


def multiply_with_torch(products: Sequence[StepProduct], memory: Mapping[Buffer, Tensor]) -> None:
    """The products, computed by torch with out=, so that autocast does not change the type."""
    for kind, to, to_at, source, from_at, by, by_at, n, k, fresh in products:
        out, operand = memory[to], memory[by]
        matrix = memory[source] if kind == FORTH else memory[source][:, from_at : from_at + n]
        if kind == FORTH:
            torch.mm(matrix, operand[by_at : by_at + n].t(), out=out[:, to_at : to_at + n])
        elif kind == BACK and fresh:
            torch.mm(matrix, operand[by_at : by_at + n], out=out)
        elif kind == BACK:
            out.addmm_(matrix, operand[by_at : by_at + n])
        elif kind == OUTER:
            add_outer(matrix, operand[:, by_at : by_at + k], out[to_at : to_at + n], fresh)
        else:
            torch.sum(matrix, 0, out=out[to_at : to_at + n])


ELEMENTWISE = 5  # an elementwise flop costs as much as this many flops of a product
# Above these flops torch is faster: for all products of a call by one thread; by several threads
# (torch wakes them slowly); and per row, for the gradients of matrices.
SMALL, SMALL_FOR_SEVERAL, CACHED = 8_000_000, 100_000_000, 4_000_000


class BackwardCall(NamedTuple):
    """The work of a backward pass for a set of derivatives."""

    buffers: list[Buffer]
    at: list[int]  # their numbers
    new: list[Buffer]  # the outputs among them
    x_at: int | None  # the derivatives by x and the old state, among the buffers
    state_at: list[int | None]
    x_is_unread: bool  # its derivative is zero
    gradients: list[tuple[str, tuple[int, ...], bool]]  # name, shape, whether it is fully written
    products: list[StepProduct]
    table: Table


class SingleStep:
    """The compiled equations of a cell for a single step, for one dtype."""

    def __init__(self, equations: Equations, dtype: torch.dtype) -> None:
        from ensue.engine.native.emission.program import single_step_program
        from ensue.engine.native.emission.source import write_source

        self.program = single_step_program(equations)
        self.source = write_source(self.program)
        self.library = loaded(self.source.text, DEFINES[dtype])
        self.gradients = GradientProducts(self.program)
        forward = self.program.forward
        self.parts, self.output_part = list(forward.state), forward.output_part
        self._input_size, self._output_size = equations.x.width, forward.output.width
        self._part_widths = {part: node.width for part, node in forward.state.items()}
        self._parameters = list(equations.shapes)
        read = {n.attr for n in below(equations.roots) if n.op == "mask"}
        self._masks = [name for name in equations.masks if name in read]
        self._strides = strides_of(self.program, self.gradients.sums)
        self._outside, self._inside = flops_of_row(self.program)
        self._list_buffers()
        widths, more = dict(equations.graph.sizes), map(buffers.gradient, self._parameters)
        layout = (self._strides, widths, dtype)
        self._forward = StepFunction(self.source, self.library, "forward", [], *layout)
        self._backward = StepFunction(self.source, self.library, "backward", [*more], *layout)
        self._at = [self._forward.at[buffer] for buffer in (*self._taped, self._y)]
        self._before = [
            StepProduct(
                FORTH,
                PRODUCTS,
                run.column,
                run.operand.buffer,
                0,
                buffers.parameter(run.matrix),
                run.first,
                run.height,
                run.operand.width,
                True,
            )
            for run in forward.products
        ]
        self._no_products = self._forward.table((), ())
        self._table_before = self._forward.table(self._before, ())
        self._backward_calls: dict[Needed, BackwardCall] = {}

    def _list_buffers(self) -> None:
        """Lists inputs, intermediate values and the output; the first two are saved for the
        backward pass."""
        listed_names = [X, *map(buffers.initial, self.parts)]
        listed_names += map(buffers.parameter, self._parameters)
        listed_names += map(buffers.mask, self._masks)
        apart = [part for part in self.parts if part != self.output_part]
        saved = [b for b in (PRODUCTS, NUMBERS_SAVED) if b in self.program.forward.columns]
        self._made = [*map(buffers.states, apart), *saved]
        self._taped = [*listed_names, *self._made]
        self._y = Y if self.output_part is None else buffers.states(self.output_part)
        self._final_at = {p: apart.index(p) if p in apart else -1 for p in self.parts}
        self._carries = {part: carries_of(self.program, part) for part in self.parts}
        self._products_at = self._taped.index(PRODUCTS) if PRODUCTS in saved else -1

    # ---------------------------------------------------------------- forward
    @alone_in_a_child
    def run(self, recurrence: Recurrence, train: bool) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Output (1, batch, features), new states (batch, features), and the tape: the inputs and
        the intermediate values. Forward and reverse are the same for one step."""
        _, parameters, x, state, _, masks, _ = recurrence
        batch = x.shape[1]
        tensors = [x.contiguous(), *[s.contiguous() for s in state]]
        tensors += [parameters[name].contiguous() for name in self._parameters]
        if masks is not None:
            tensors += [masks[name].contiguous() for name in self._masks]
        made = [x.new_empty(batch, self._strides[buffer]) for buffer in self._made]
        y = x.new_empty(1, batch, self._output_size)
        tensors += [*made, y]
        small = self._is_small(batch)
        if not small:
            multiply_with_torch(self._before, self._by_buffer(self._taped, tensors[:-1]))
        if batch:
            threads = thread_count(batch, batch * self._inside)
            workers = thread_count(self._outside, batch * self._outside)
            table = self._table_before if small else self._no_products
            self._forward(self._at, tensors, batch, threads, train, table, workers)
        final = []
        for part, k in self._final_at.items():
            if part == self.output_part:
                final.append(y.view(batch, self._output_size).clone())
            else:  # a copy of what is on the tape
                final.append(made[k].clone() if train else made[k])
        return y, final, tensors[:-1]  # autograd saves the output and returns it

    def _is_small(self, batch: int) -> bool:
        """Whether the products are small enough to be computed in the call."""
        several = torch.get_num_threads() > 1
        return batch * self._outside <= (SMALL_FOR_SEVERAL if several else SMALL)

    def _by_buffer(
        self, listed: Sequence[Buffer], tensors: Sequence[Tensor]
    ) -> dict[Buffer, Tensor]:
        """Tensors by buffer, each with rows and columns."""
        by_buffer = dict(zip(listed, tensors, strict=True))
        by_buffer[X] = by_buffer[X].view(-1, self._input_size)
        return by_buffer

    # ---------------------------------------------------------------- backward
    @alone_in_a_child
    def backward(
        self, tape: list[Tensor], parameters: Tensors, y: Tensor, adjoints: Adjoints, needed: Needed
    ) -> Derivatives:
        """Same as `Kernel.backward`."""
        y = y.contiguous()  # a hook on saved tensors may have given it another layout
        batch = y.shape[1]
        call = self._backward_call(needed)
        new = [y.new_empty(batch, self._strides[buffer]) for buffer in call.new]
        if call.x_is_unread:
            new[0].zero_()
        if self.program.backward.overlay:
            new.append(tape[self._products_at])
        threads = thread_count(batch, batch * self._inside)
        sums = y.new_zeros(threads, self._strides[SUMS])
        slopes = {
            name: parameters[name].new_empty(shape) if whole else parameters[name].new_zeros(shape)
            for name, shape, whole in call.gradients
        }
        tensors = [*tape, y, *self._arriving(y, adjoints), *new, sums, *slopes.values()]
        small = batch > 0 and self._is_small(batch) and self._outside <= CACHED
        if batch:
            table = call.table if small else self._no_products
            workers = thread_count(self._outside, 2 * batch * self._outside)
            self._backward(call.at, tensors, batch, threads, True, table, workers)
        if not small:
            multiply_with_torch(call.products, self._by_buffer(call.buffers, tensors))
        d_x = None if call.x_at is None else tensors[call.x_at].view(1, batch, self._input_size)
        d_state = [None if k is None else tensors[k] for k in call.state_at]
        return Derivatives(d_x, d_state, slopes)

    def _arriving(self, y: Tensor, adjoints: Adjoints) -> list[Tensor]:
        """The adjoints of the output and of the new state, in writable memory."""
        d_y, batch = adjoints.output, y.shape[1]
        arriving = [y.new_zeros(y.shape) if d_y is None else d_y.contiguous()]
        for part, d in zip(self.parts, adjoints.final, strict=True):
            arrived = y.new_zeros(batch, self._part_widths[part]) if d is None else d.contiguous()
            if len(self._carries[part]) > 1:
                arriving += [arrived, torch.empty_like(arrived)]
            else:  # the new adjoint overwrites the old one
                arriving.append(arrived if d is None else arrived.clone())
        return arriving

    def _backward_call(self, needed: Needed) -> BackwardCall:
        if needed not in self._backward_calls:
            self._backward_calls[needed] = self._make_backward_call(needed)
        return self._backward_calls[needed]

    def _make_backward_call(self, needed: Needed) -> BackwardCall:
        backward, equations = self.program.backward, self.program.equations
        products = self.products_after(needed)
        new = [D_X] if needed.x or backward.x is not None else []
        if backward.adjoints and not backward.overlay:
            new.append(ADJOINTS)
        listed = [*self._taped, self._y, D_Y]
        for carries in self._carries.values():
            listed += carries
        listed += [*new, *([ADJOINTS] if backward.overlay else []), SUMS]
        listed += map(buffers.gradient, needed.parameters)
        reached = backward.x is not None or any(product.to == D_X for product in products)
        shapes, whole = equations.shapes, self.gradients.written
        of_state = zip(self.parts, needed.state, strict=True)
        return BackwardCall(
            listed,
            [self._backward.at[buffer] for buffer in listed],
            new,
            listed.index(D_X) if needed.x else None,
            [
                listed.index(self._carries[p][-1]) if is_needed else None
                for p, is_needed in of_state
            ],
            needed.x and not reached,
            [(name, shapes[name], name in whole) for name in needed.parameters],
            products,
            self._backward.table((), products),
        )

    def products_after(self, needed: Needed) -> list[StepProduct]:
        """The products after the step for the derivatives in `needed`."""
        parts = [p for p, is_needed in zip(self.parts, needed.state, strict=True) if is_needed]
        products: list[StepProduct] = []
        fresh_x = self.program.backward.x is None
        for run, fresh in self.gradients.runs:
            (operand, column, k, part), n = run.operand, run.height
            adjoint, matrix = (ADJOINTS, run.column), (buffers.parameter(run.matrix), run.first)
            if run.matrix in needed.parameters:
                to, by = buffers.gradient(run.matrix), (operand, column)
                products.append(StepProduct(OUTER, to, run.first, *adjoint, *by, n, k, fresh))
            if operand == X and needed.x:
                products.append(StepProduct(BACK, D_X, 0, *adjoint, *matrix, n, k, fresh_x))
                fresh_x = False
            elif part is not None and part in parts:
                to = self._carries[part][-1]
                products.append(StepProduct(BACK, to, 0, *adjoint, *matrix, n, k, False))
        for vector, first, last, column in self.gradients.vectors:
            if vector in needed.parameters:
                to, source = buffers.gradient(vector), (SUMS, self.gradients.sums + column)
                n = last - first
                products.append(StepProduct(SUMMED, to, first, *source, SUMS, 0, n, 0, True))
        return products


def strides_of(program: Program, sums: int) -> dict[Buffer, int]:
    """The row stride of every buffer except the work space. sums: columns of SUMS, for one step or
    for all."""
    forward, equations = program.forward, program.equations
    strides = {X: equations.x.width, D_X: equations.x.width, SUMS: 2 * sums}
    strides |= {Y: forward.output.width, D_Y: forward.output.width}
    for part, node in forward.state.items():
        of_part = (buffers.states, buffers.initial, buffers.final, buffers.carry)
        of_part_buffers = [*(make(part) for make in of_part), *buffers.carry_pair(part)]
        strides |= dict.fromkeys(of_part_buffers, node.width)
    for name, shape in equations.shapes.items():
        if len(shape) == 2:
            strides[buffers.parameter(name)] = strides[buffers.gradient(name)] = shape[1]
    padded = (PRODUCTS, NUMBERS_SAVED, ADJOINTS)
    for buffer in forward.columns:
        if buffer != X:
            strides[buffer] = forward.width(buffer) + (PAD if buffer in padded else 0)
    if program.backward.overlay:
        strides[ADJOINTS] = strides[PRODUCTS]
    return strides


def flops_of_row(program: Program) -> tuple[int, int]:
    """Approximate flops of a row: of the products outside, and of the work shared by threads."""
    counts = program.equations.counts()
    outside = sum(2 * n.width * n.args[0].width for n in program.forward.hoisted)
    inside = counts.product_flops - outside
    return outside, inside + ELEMENTWISE * counts.elementwise_flops
