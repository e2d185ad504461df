"""Products around a single step, as a table of jobs: done in the call of the step, or by torch."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ensue.engine.native.cache import loaded
from ensue.engine.native.call import DEFINES, WorkSpace, address, core
from ensue.engine.native.outer import add_outer
from ensue.engine.native.source import Function
from ensue.engine.native.threads import Threads, runtime

FORTH, BACK, OUTER, SUMS = range(4)  # as in once.cpp


class Job(NamedTuple):
    """A product before or after the step, of buffers by name; `fresh`: written, not added to.

    FORTH  to[:, to_at:+n] = source · by[by_at:+n]ᵀ                   of x and the old state
    BACK   to += source[:, from_at:+n] · by[by_at:+n]                 their adjoints
    OUTER  to[to_at:+n] += source[:, from_at:+n]ᵀ · by[:, by_at:+k]   the gradient of a matrix
    SUMS   to[to_at:+n] = Σ source[:, from_at:+n]                     that of a vector"""

    kind: int
    to: str
    to_at: int
    source: str
    from_at: int
    by: str
    by_at: int
    n: int
    k: int
    fresh: bool


Table = tuple[Any, int, int]  # jobs as a call takes them, how many are before the step, and after


class CJob(ctypes.Structure):
    """once.cpp's Job."""

    _fields_ = [
        (name, ctypes.c_long)
        for name in ("kind", "to", "to_at", "source", "from_at", "by", "by_at", "n", "k", "fresh")
    ]


class Fixed(ctypes.Structure):
    """once.cpp's Fixed."""

    _fields_ = [
        (name, ctypes.c_void_p)
        for name in ("step", "threads", "sizes", "strides", "products", "pack")
    ]


@functools.cache
def _library(dtype: torch.dtype) -> Any:
    source = Path(__file__).with_name("once.cpp").read_text()
    entry = loaded(source, DEFINES[dtype]).once
    pointer, number = ctypes.c_void_p, ctypes.c_long
    entry.argtypes = [pointer, pointer, *[number] * 3, pointer, *[number] * 3]
    entry.restype = None
    return entry


class Side:
    """One direction: everything of a call that stays the same from call to call."""

    def __init__(
        self,
        step: Any,
        function: Function,
        sizes: list[int],
        more: list[str],
        strides: Mapping[str, int],
        space: WorkSpace,
        dtype: torch.dtype,
    ) -> None:
        self._entry, shared = _library(dtype), core(dtype)
        names = [*function.buffers, *more]
        self.at = {name: k for k, name in enumerate(names)}
        self._space = space
        self._pointers = ctypes.c_void_p * len(names)
        self._none = [0] * len(names)
        self._threads = runtime() or Threads()
        strides = {**strides, **space.strides}
        self._sizes = (ctypes.c_long * (len(sizes) + len(names)))(
            *sizes, *(strides.get(name, 0) for name in names)
        )
        begin = ctypes.addressof(self._sizes)
        self._fixed = Fixed(
            address(step),
            ctypes.addressof(self._threads),
            begin,
            begin + len(sizes) * ctypes.sizeof(ctypes.c_long),
            address(shared.products),
            address(shared.pack),
        )
        self._given = ctypes.addressof(self._fixed)

    def table(self, before: Sequence[Job], after: Sequence[Job]) -> Table:
        at = self.at
        jobs = [
            CJob(j.kind, at[j.to], j.to_at, at[j.source], j.from_at, at[j.by], *j[6:])
            for j in (*before, *after)
        ]
        return (CJob * len(jobs))(*jobs), len(before), len(after)

    def __call__(
        self,
        at: Sequence[int],
        tensors: Sequence[Tensor],
        batch: int,
        threads: int,
        train: bool,
        jobs: Table,
        workers: int = 1,
    ) -> None:
        """at: the number of each tensor's buffer. workers: threads of the jobs."""
        pointers = self._none.copy()
        for k, tensor in zip(at, tensors, strict=True):
            pointers[k] = tensor.data_ptr()
        if self._space.needed:
            total, starts = self._space.layout(batch)
            space = tensors[0].new_empty(total)  # in use until the call is over
            begin, item = space.data_ptr(), space.element_size()
            for name, start in starts.items():
                if name in self.at:
                    pointers[self.at[name]] = begin + start * item
        self._entry(self._given, self._pointers(*pointers), batch, threads, train, *jobs, workers)


def do_with_torch(jobs: Sequence[Job], b: Mapping[str, Tensor]) -> None:
    """The jobs, by torch: into given tensors, whose type autocast leaves alone."""
    for kind, to, to_at, source, from_at, by, by_at, n, k, fresh in jobs:
        given = b[source] if kind == FORTH else b[source][:, from_at : from_at + n]
        if kind == FORTH:
            torch.mm(given, b[by][by_at : by_at + n].t(), out=b[to][:, to_at : to_at + n])
        elif kind == BACK and fresh:
            torch.mm(given, b[by][by_at : by_at + n], out=b[to])
        elif kind == BACK:
            b[to].addmm_(given, b[by][by_at : by_at + n])
        elif kind == OUTER:
            operand = b[by][:, by_at : by_at + k]
            add_outer(given, operand, b[to][to_at : to_at + n], fresh)
        else:
            torch.sum(given, 0, out=b[to][to_at : to_at + n])
