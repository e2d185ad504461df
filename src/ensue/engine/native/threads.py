"""The OpenMP runtime that torch has loaded, and how many threads a call may use."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import torch

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Threads(ctypes.Structure):
    """The functions through which a kernel starts its threads."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("parallel", "number", "count")]


@functools.cache
def runtime() -> Threads | None:
    """The functions of the OpenMP runtime in this process; None where there is none."""
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


ENOUGH = 1_000_000  # flops: what a thread does in the time that it takes to start it
_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_after_fork)


def alone_in_a_child(call: Callable[Given, Result]) -> Callable[Given, Result]:
    """In a forked child torch's own products would wait for threads that only its parent has:
    for the time of a call it uses one, and then as many as before."""

    @functools.wraps(call)
    def alone(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        if not _forked or (before := torch.get_num_threads()) == 1:
            return call(*args, **kwargs)
        torch.set_num_threads(1)
        try:
            return call(*args, **kwargs)
        finally:
            torch.set_num_threads(before)

    return alone


def thread_count(rows: int, flops: int) -> int:
    """As many threads as torch uses, but no more than rows, nor than have enough to do; one in
    a forked child, whose parent's threads are gone."""
    if flops < 2 * ENOUGH or _forked or runtime() is None:
        return 1
    return max(1, min(torch.get_num_threads(), rows, flops // ENOUGH))
