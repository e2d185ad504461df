"""The compiled half of `ensue.engine.softmax`: rows of scores into costs and derivatives."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import torch
from torch import Tensor

from ensue.engine.native.cache import loaded
from ensue.engine.native.kernel import DEFINES
from ensue.engine.native.threads import Threads, runtime, thread_count

FLOPS = 30  # of a score, roughly: its exponential


class Scores(ctypes.Structure):
    """softmax.cpp's Scores."""

    _fields_ = [
        ("z", ctypes.c_void_p),
        *((name, ctypes.c_long) for name in ("rows", "columns", "stride")),
        ("targets", ctypes.c_void_p),
        ("costs", ctypes.c_void_p),
        ("derive", ctypes.c_int),
    ]


@functools.cache
def _library(dtype: torch.dtype) -> ctypes.CDLL:
    return loaded(Path(__file__).with_name("softmax.cpp").read_text(), DEFINES[dtype])


def softmax_rows(z: Tensor, targets: Tensor, costs: Tensor, derive: bool) -> None:
    """costs (rows,) of scores z (rows, columns) and int64 targets (rows,), all contiguous;
    with `derive`, z becomes the derivative of its row's cost."""
    rows, columns = z.shape
    scores = Scores(
        z.data_ptr(), rows, columns, z.stride(0), targets.data_ptr(), costs.data_ptr(), derive
    )
    count = thread_count(rows, rows * columns * FLOPS)
    entry = _library(z.dtype).softmax_rows
    threads = runtime() or Threads()
    entry(ctypes.byref(scores), ctypes.byref(threads), ctypes.c_long(count))
