"""Calls of compiled functions: their buffers, their work space, and their argument arrays."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor

from ensue.engine.native.cache import loaded, template
from ensue.engine.native.emission.buffers import NUMBERS, REDUCED, SCRATCH, Buffer
from ensue.engine.native.plan import Plan

if TYPE_CHECKING:
    from ensue.engine.native.emission.source import KernelFunction


class Adjoints(NamedTuple):
    """Derivatives of the cost by the output (time, batch, features) and the final state. None means
    zeros: nothing reads the output or the state."""

    output: Tensor | None
    final: Sequence[Tensor | None]


class Needed(NamedTuple):
    """The derivatives to compute: by x, by which parts of the initial state, by which
    parameters."""

    x: bool
    state: tuple[bool, ...]
    parameters: tuple[str, ...]


class Derivatives(NamedTuple):
    """The results of a backward pass. Derivatives that are not needed are None or missing."""

    x: Tensor | None
    state: list[Tensor | None]
    parameters: dict[str, Tensor]


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Threads(ctypes.Structure):
    """The OpenMP functions with which a kernel starts its threads."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("parallel", "number", "count")]


@functools.cache
def runtime() -> Threads | None:
    """The functions of the OpenMP runtime in this process; None without one."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return None
    paths = dict.fromkeys(line.split(None, 5)[5] for line in maps.splitlines() if ".so" in line)
    for path in paths:
        if Path(path).name.startswith(("libgomp", "libiomp5", "libomp")):
            library = ctypes.CDLL(path)
            names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
            if all(hasattr(library, name) for name in names):
                return Threads(*(ctypes.cast(getattr(library, n), ctypes.c_void_p) for n in names))
    return None


ENOUGH = 1_000_000  # flops that a thread does in the time that it takes to start one
_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_after_fork)


def alone_in_a_child(call: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Makes the call with one thread in a forked child, then restores the number of threads. With
    more, torch would wait for threads that only the parent has."""

    @functools.wraps(call)
    def alone(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if not _forked or (before := torch.get_num_threads()) == 1:
            return call(*args, **kwargs)
        torch.set_num_threads(1)
        try:
            return call(*args, **kwargs)
        finally:
            torch.set_num_threads(before)

    return alone


def thread_count(rows: int, flops: int) -> int:
    """The number of threads: torch's, limited by the rows and the amount of work. It is one in a
    forked child, which does not have its parent's threads."""
    if flops < 2 * ENOUGH or _forked or runtime() is None:
        return 1
    return max(1, min(torch.get_num_threads(), rows, flops // ENOUGH))


PAD = 16  # padding between rows: rows of 4096 bytes would map to the same cache sets
DEFINES = {
    torch.float32: ("-DREAL=float", "-DREAL_BITS=32"),
    torch.float64: ("-DREAL=double", "-DREAL_BITS=64"),
}


class Call(ctypes.Structure):
    """kernel.hpp's Call."""

    _fields_ = [
        *(
            (name, ctypes.c_void_p)
            for name in ("buffers", "sizes", "base", "alive", "index", "first")
        ),
        *((name, ctypes.c_long) for name in ("steps", "batch", "threads", "began")),
        ("reverse", ctypes.c_int),
        ("train", ctypes.c_int),
        ("products", ctypes.c_void_p),
        ("pack", ctypes.c_void_p),
    ]


@functools.cache
def core(dtype: torch.dtype) -> ctypes.CDLL:
    """The compiled part of all kernels that does not depend on a cell."""
    source = template("products.cpp")
    return loaded(source, DEFINES[dtype])


def address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


class WorkSpace:
    """The private buffers of a function: slices of one allocation, aligned to cache lines."""

    def __init__(self, function: KernelFunction, widths: Mapping[str, int], lanes: int) -> None:
        wide = sum(widths[s] for s in function.scratch)
        self.strides = {
            SCRATCH: wide + PAD if wide else 0,
            REDUCED: function.reductions * lanes,
            NUMBERS: function.numbers,
        }
        self._panels: dict[Buffer, int] = {}
        for panels in function.panels:
            units = -(-widths[panels.size] // lanes) * lanes
            columns = sum(widths[s] for s in panels.columns)
            self._panels[panels.buffer] = panels.gates * units * columns
        self.needed = any(self.strides.values()) or bool(self._panels)
        self._layouts: dict[int, tuple[int, dict[Buffer, int]]] = {}

    def layout(self, batch: int) -> tuple[int, dict[Buffer, int]]:
        """(total count of numbers, index of each buffer's first number)"""
        if batch not in self._layouts:
            counts = {buffer: batch * stride for buffer, stride in self.strides.items()}
            starts, at = {}, 0
            for buffer, count in (counts | self._panels).items():
                starts[buffer] = at
                at += -(-count // 16) * 16
            self._layouts[batch] = at, starts
        return self._layouts[batch]


class CompiledFunction:
    """One compiled function. Buffers that callers do not pass are its work space. Whatever is the
    same for all calls is prepared once."""

    def __init__(
        self,
        entry: Any,
        function: KernelFunction,
        sizes: list[str],
        widths: Mapping[str, int],
        dtype: torch.dtype,
    ) -> None:
        shared = core(dtype)
        self._entry = entry
        self._space = WorkSpace(function, widths, shared.lanes())
        self._shared = [address(shared.products), address(shared.pack)]
        self._threads = ctypes.byref(runtime() or Threads())
        self._sizes = [widths[s] for s in sizes]
        count = len(function.buffers)
        self._pointers = ctypes.c_void_p * count
        self._numbers = ctypes.c_long * (len(sizes) + count)
        at = {buffer: k for k, buffer in enumerate(function.buffers)}
        self._used = [(at[buffer], buffer, len(sizes) + at[buffer]) for buffer in function.used]

    def __call__(
        self, memory: Mapping[Buffer, Tensor], plan: Plan, like: Tensor, train: bool
    ) -> None:
        total, starts = self._space.layout(plan.batch)
        strides = self._space.strides
        space = like.new_empty(total)  # in use until the call is over
        begin, item = space.data_ptr(), space.element_size()
        pointers, numbers = self._pointers(), self._numbers(*self._sizes)
        for k, buffer, stride in self._used:
            tensor = memory.get(buffer)
            if tensor is not None:
                pointers[k] = tensor.data_ptr()
                if tensor.dim() == 2:
                    numbers[stride] = tensor.stride(0)
            elif buffer in starts:
                pointers[k] = begin + starts[buffer] * item
                numbers[stride] = strides.get(buffer, 0)
        call = Call(
            ctypes.addressof(pointers),
            ctypes.addressof(numbers),
            *plan.addresses,
            plan.steps,
            plan.batch,
            plan.threads,
            plan.began,
            plan.reverse,
            train,
            *self._shared,
        )
        self._entry(ctypes.byref(call), self._threads)
