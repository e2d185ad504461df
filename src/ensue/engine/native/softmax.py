"""The compiled half of `ensue.engine.softmax`: costs and gradients of rows, or of scores."""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import NamedTuple

import torch
from torch import Tensor

from ensue.engine.native.cache import loaded, template
from ensue.engine.native.call import DEFINES, Threads, runtime, thread_count

FLOPS = 30  # approximate flops of a score's exponential
ROWS = 32  # a piece is a multiple of it, except the last
SCORES = 4_000_000  # maximum size of a piece
MOST_ROWS = 512  # larger pieces are not faster


class Scores(ctypes.Structure):
    """softmax.cpp's Scores."""

    _fields_ = [
        ("z", ctypes.c_void_p),
        *((name, ctypes.c_long) for name in ("rows", "columns", "stride")),
        ("targets", ctypes.c_void_p),
        ("costs", ctypes.c_void_p),
        ("derive", ctypes.c_int),
    ]


class SoftmaxCost(ctypes.Structure):
    """softmax_cost.cpp's SoftmaxCost."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("h", "weight", "bias", "targets")),
        *((name, ctypes.c_long) for name in ("rows", "width", "classes", "piece")),
        ("smoothing", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in ("costs", "d_h", "d_weight", "d_bias", "room")),
    ]


@functools.cache
def _library(file: str, dtype: torch.dtype) -> ctypes.CDLL:
    return loaded(template(file), DEFINES[dtype])


class GradientBuffers(NamedTuple):
    """Output tensors for the gradients; None for those that are not needed."""

    h: Tensor | None = None
    weight: Tensor | None = None
    bias: Tensor | None = None


NOTHING = GradientBuffers()
_thread = threading.local()


def _room(count: int, dtype: torch.dtype) -> Tensor:
    """Work memory of this thread; the next call overwrites it. Allocating it for each call would
    cost a tenth of a training step in page faults."""
    flat: Tensor | None = getattr(_thread, "flat", None)
    if flat is None or flat.dtype != dtype or len(flat) < count:
        flat = _thread.flat = torch.empty(count, dtype=dtype, device="cpu")
    return flat


def softmax_of_rows(
    h: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float = 0.0,
    gradients: GradientBuffers = NOTHING,
) -> Tensor:
    """Costs (rows,) of h (rows, width), weight (classes, width), bias (classes,) and int64 targets
    (rows,); the gradients of their sum are written into `gradients`."""
    (rows, width), classes = h.shape, len(weight)
    costs = h.new_empty(rows)
    tensors = [None if v is None else v.contiguous() for v in (h, weight, bias, targets)]
    call = SoftmaxCost(
        *(None if v is None else v.data_ptr() for v in tensors),
        rows, width, classes, _piece(rows, classes), smoothing, costs.data_ptr(),
        *(None if v is None else v.data_ptr() for v in gradients),
    )  # fmt: skip
    library, threads = _library("softmax_cost.cpp", h.dtype), runtime() or Threads()
    count = ctypes.c_long(thread_count(classes // 64, 6 * rows * width * classes))
    room_of = library.softmax_room
    room_of.restype = ctypes.c_long
    call.room = _room(room_of(ctypes.byref(call), count), h.dtype).data_ptr()
    library.softmax_cost(ctypes.byref(call), ctypes.byref(threads), count)
    return costs


def _piece(rows: int, classes: int) -> int:
    """The number of rows in a piece, such that all pieces have nearly the same size."""
    most = max(ROWS, min(MOST_ROWS, SCORES // classes))
    pieces = -(-rows // most)
    return -(-rows // max(pieces, 1) // ROWS) * ROWS or ROWS


def softmax_rows(z: Tensor, targets: Tensor, costs: Tensor, derive: bool) -> None:
    """costs (rows,) of scores z (rows, columns) and int64 targets (rows,), all contiguous;
    with `derive`, z becomes the derivative of its row's cost."""
    rows, columns = z.shape
    scores = Scores(
        z.data_ptr(), rows, columns, z.stride(0), targets.data_ptr(), costs.data_ptr(), derive
    )
    count = thread_count(rows, rows * columns * FLOPS)
    entry = _library("softmax.cpp", z.dtype).softmax_rows
    threads = runtime() or Threads()
    entry(ctypes.byref(scores), ctypes.byref(threads), ctypes.c_long(count))
