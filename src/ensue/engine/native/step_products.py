"""Products around a single step, as a table: done in the call of the step, or by torch."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from ensue.engine.native.cache import loaded, template
from ensue.engine.native.call import DEFINES, WorkSpace, address, core
from ensue.engine.native.emission.buffers import Buffer
from ensue.engine.native.outer import add_outer
from ensue.engine.native.threads import Threads, runtime

if TYPE_CHECKING:
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
    """Products as a call takes them, and how many are before the step and after it."""

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
    """One direction: everything of a call that stays the same from call to call.

    more: buffers of the products alone; strides: of every buffer but the work space."""

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
        self._given = ctypes.addressof(self._fixed)

    def table(self, before: Sequence[StepProduct], after: Sequence[StepProduct]) -> Table:
        at = self.at
        products = [
            CStepProduct(p.kind, at[p.to], p.to_at, at[p.source], p.from_at, at[p.by], *p[6:])
            for p in (*before, *after)
        ]
        return Table((CStepProduct * len(products))(*products), len(before), len(after))

    def _work_space(self, batch: int) -> tuple[int, list[tuple[int, int]]]:
        """(numbers in all, [(number of a buffer, where it begins)])"""
        if batch not in self._work_spaces:
            total, starts = self._space.layout(batch)
            found = [(self.at[buffer], start) for buffer, start in starts.items()]
            self._work_spaces[batch] = total, found
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
        """at: the number of each tensor's buffer. workers: threads of the products."""
        pointers = self._none.copy()
        for k, tensor in zip(at, tensors, strict=True):
            pointers[k] = tensor.data_ptr()
        if self._space.needed:
            total, starts = self._work_space(batch)
            space = tensors[0].new_empty(total)  # in use until the call is over
            begin, item = space.data_ptr(), space.element_size()
            for k, start in starts:
                pointers[k] = begin + start * item
        self._entry(self._given, self._pointers(*pointers), batch, threads, train, *table, workers)


def multiply_with_torch(products: Sequence[StepProduct], memory: Mapping[Buffer, Tensor]) -> None:
    """The products, by torch: into given tensors, whose type autocast leaves alone."""
    for kind, to, to_at, source, from_at, by, by_at, n, k, fresh in products:
        out, operand = memory[to], memory[by]
        given = memory[source] if kind == FORTH else memory[source][:, from_at : from_at + n]
        if kind == FORTH:
            torch.mm(given, operand[by_at : by_at + n].t(), out=out[:, to_at : to_at + n])
        elif kind == BACK and fresh:
            torch.mm(given, operand[by_at : by_at + n], out=out)
        elif kind == BACK:
            out.addmm_(given, operand[by_at : by_at + n])
        elif kind == OUTER:
            add_outer(given, operand[:, by_at : by_at + k], out[to_at : to_at + n], fresh)
        else:
            torch.sum(given, 0, out=out[to_at : to_at + n])
