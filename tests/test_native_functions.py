"""The vector functions of the native engine over the whole range of numbers, in ulps.

float32 is held against float64, double against numpy's long double. Inside a kernel denormal
numbers are flushed, so they are here: what is below the smallest normal number counts as zero.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest
import torch
from parity import needs_native

from ensue.engine.native.cache import compiled
from ensue.engine.native.call import DEFINES
from ensue.equations.functions import FUNCTIONS

pytestmark = needs_native

Numbers = np.ndarray

# The largest error in ulps for |v| < 1/2, for |v| < 9, and beyond. Measured over all floats:
# exponential 0.86 1.01 1.01, sigmoid 2.00 2.01 2.48, hyperbolic 2.42 1.50 0.51, logarithm 0.76 0.83
# 0.60, softplus 1.80 1.99 1.81; root is rounded as it should be, relu exact.
BOUNDS = {
    "exponential": (0.9, 1.1, 1.1),
    "sigmoid": (2.1, 2.1, 2.6),
    "hyperbolic": (2.6, 1.6, 0.6),
    "logarithm": (0.8, 0.9, 0.7),
    "softplus": (1.9, 2.1, 1.9),
    "root": (0.5, 0.5, 0.5),
    "relu": (0.0, 0.0, 0.0),
}
PAIRS = ("larger", "greater")


def sigmoid(v: Numbers) -> Numbers:
    u = np.exp(-np.abs(v))
    return np.where(v < 0, u, 1) / (1 + u)


REFERENCE: dict[str, Callable[[Numbers], Numbers]] = {
    "exponential": np.exp,
    "sigmoid": sigmoid,
    "hyperbolic": np.tanh,
    "logarithm": np.log,
    "softplus": lambda v: np.maximum(v, 0) + np.log1p(np.exp(-np.abs(v))),
    "root": np.sqrt,
    "relu": lambda v: np.maximum(v, 0),
}
IN_C = {  # of a double x, for the test of every float there is
    "exponential": "exp(x)",
    "sigmoid": "1 / (1 + exp(-x))",
    "hyperbolic": "tanh(x)",
    "logarithm": "log(x)",
    "softplus": "(x > 0 ? x : x == x ? 0 : x) + log1p(exp(-fabs(x)))",
    "root": "sqrt(x)",
    "relu": "x > 0 ? x : x == x ? 0 : x",
}

MAPS = """
#include "kernel.hpp"
#include <cmath>
#include <cstring>
extern "C" {
"""
MAP = """
void map_NAME(const real* a, real* y, long n) {
  const FlushDenormals flush;
  for (long c = 0; c < n; c += L) store(y + c, NAME(load(a + c, n - c)), n - c);
}
"""
MAP_OF_TWO = """
void map_NAME(const real* a, const real* b, real* y, long n) {
  const FlushDenormals flush;
  for (long c = 0; c < n; c += L) store(y + c, NAME(load(a + c, n - c), load(b + c, n - c)), n - c);
}
"""
# The largest errors in the three ranges over the floats with bits first, first + 1, …; -1 where a
# NaN or infinity is wrong.
SWEEP = """
void sweep_NAME(unsigned first, long count, double* worst) {
  const FlushDenormals flush;
  for (long done = 0; done < count; done += L) {
    real in[L], out[L];
    for (int i = 0; i < L; i++) {
      const unsigned bits = first + (unsigned)(done + i);
      memcpy(&in[i], &bits, 4);
      if (fabsf(in[i]) < 1.17549435e-38f) in[i] = copysignf(0, in[i]);
    }
    store(out, NAME(load(in, L)), L);
    for (int i = 0; i < L; i++) {
      const double x = in[i], r = EXPRESSION, size = fabs(r);
      double& most = worst[fabs(x) < .5 ? 0 : fabs(x) < 9 ? 1 : 2];
      if (size < 1.1754943508222875e-38) {
        if (fabs(out[i]) > 1.1754943508222875e-38) most = -1;
        continue;
      }
      const float near = (float)r;
      if (!std::isfinite(near)) {
        if (!(out[i] == near || (near != near && out[i] != out[i]))) most = -1;
        continue;
      }
      unsigned long bits;
      memcpy(&bits, &size, 8);
      bits &= 0x7ffl << 52;
      double power;  // of two, the largest that is not above the result
      memcpy(&power, &bits, 8);
      const double error = fabs(out[i] - r) / power * 8388608;
      if (!(error <= 1e9)) most = -1;
      else if (most >= 0 && error > most) most = error;
    }
  }
}
"""


@cache
def library(dtype: torch.dtype) -> ctypes.CDLL:
    text = MAPS + "".join(MAP.replace("NAME", name) for name in BOUNDS)
    text += "".join(MAP_OF_TWO.replace("NAME", name) for name in PAIRS)
    if dtype == torch.float32:
        for name, expression in IN_C.items():
            text += SWEEP.replace("NAME", name).replace("EXPRESSION", expression)
    return ctypes.CDLL(str(compiled(text + "}\n", DEFINES[dtype])))


def mapped(name: str, *operands: Numbers) -> Numbers:
    """The native function over arrays of float32 or float64."""
    dtype = torch.float32 if operands[0].dtype == np.float32 else torch.float64
    result = np.empty_like(operands[0])
    arrays = [np.ascontiguousarray(a) for a in operands]
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (*arrays, result)]
    getattr(library(dtype), f"map_{name}")(*pointers, ctypes.c_long(result.size))
    return result


def errors(name: str, v: Numbers, wider: type) -> Numbers:
    """In ulps of v's type, NaN where an infinity or NaN is wrong."""
    tiny = np.finfo(v.dtype).tiny
    v = np.where(np.abs(v) < tiny, np.copysign(0, v).astype(v.dtype), v)
    values = mapped(name, v)
    with np.errstate(all="ignore"):
        exact = REFERENCE[name](v.astype(wider))
        nearest = exact.astype(v.dtype)
        ulp = np.spacing(np.maximum(np.abs(nearest), tiny)).astype(wider)
        off = np.abs(values.astype(wider) - exact) / ulp
        flushed = (np.abs(exact) < tiny) & (np.abs(values) <= tiny)
        same = (values == nearest) | (np.isnan(values) & np.isnan(nearest))
        off = np.where(np.isfinite(nearest), np.where(flushed, 0, off), np.where(same, 0, np.nan))
    return off


def worst(v: Numbers, off: Numbers) -> Iterator[float]:
    """The largest error in each of the three ranges of BOUNDS."""
    size = np.abs(v)
    for inside in (size < 0.5, (size >= 0.5) & (size < 9), ~(size < 9)):
        yield float(off[inside].max()) if inside.any() else 0.0


def every(step: int) -> Numbers:
    """Every step-th float32 there is: both signs, denormals, infinities, NaN."""
    return np.arange(0, 1 << 32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("name", BOUNDS)
def test_errors_in_ulps(name: str) -> None:
    v = every(4093)
    assert np.isnan(v).any()
    for error, bound in zip(worst(v, errors(name, v, np.float64)), BOUNDS[name], strict=True):
        assert error <= bound  # not so for NaN


@pytest.mark.parametrize("name", BOUNDS)
def test_errors_in_ulps_of_doubles(name: str) -> None:
    """Numbers of all sizes, and as many of the sizes that are met. They are libm's functions."""
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 64, 100_000, dtype=np.uint64).view(np.float64)
    v = np.concatenate([bits, rng.normal(0, 3, 100_000), rng.normal(0, 300, 50_000)])
    for error in worst(v, errors(name, v, np.longdouble)):
        assert error <= (0.5 if name == "root" else 0.0 if name == "relu" else 2.5)


@pytest.mark.slow
@pytest.mark.parametrize("half", ["positive", "negative"])
@pytest.mark.parametrize("name", BOUNDS)
def test_every_float_there_is(name: str, half: str) -> None:
    largest_errors = (ctypes.c_double * 3)()
    first = 0 if half == "positive" else 1 << 31
    sweep = getattr(library(torch.float32), f"sweep_{name}")
    sweep(ctypes.c_uint(first), ctypes.c_long(1 << 31), largest_errors)
    assert all(0 <= f <= bound for f, bound in zip(largest_errors, BOUNDS[name], strict=True)), (
        list(largest_errors)
    )


INF, NAN = float("inf"), float("nan")
EDGES = {
    "exponential": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e30, INF), (-1e30, 0.0)],
    "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (1e30, 1.0), (-1e30, 0.0)],
    "hyperbolic": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (1e30, 1.0), (-1e30, -1.0)],
    "logarithm": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-INF, NAN), (-1e-30, NAN)],
    "softplus": [(INF, INF), (-INF, 0.0), (1e30, 1e30), (-1e30, 0.0)],
    "root": [(0.0, 0.0), (-0.0, -0.0), (1.0, 1.0), (4.0, 2.0), (INF, INF), (-INF, NAN), (-1, NAN)],
    "relu": [(0.0, 0.0), (-0.0, 0.0), (INF, INF), (-INF, 0.0), (3.0, 3.0), (-3.0, 0.0)],
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", BOUNDS)
def test_edges_are_exact_and_not_a_number_stays_one(name: str, dtype: type) -> None:
    pairs = [*EDGES[name], (NAN, NAN), (-NAN, NAN)] * 5  # in every lane of a vector
    inputs, expected = (np.array(column, dtype=dtype) for column in zip(*pairs, strict=True))
    values = mapped(name, inputs)
    np.testing.assert_array_equal(values, expected)
    real = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(values[real]), np.signbit(expected[real]))


def test_bounded_functions_stay_inside() -> None:
    """Beyond them 1 - y*y and y*(1 - y) would change their sign."""
    v = every(2039)
    v = v[~np.isnan(v)]
    assert np.abs(mapped("hyperbolic", v)).max() == 1
    values = mapped("sigmoid", v)
    assert (values.min(), values.max()) == (0, 1)
    for name in ("exponential", "softplus", "relu"):
        assert mapped(name, v).min() == 0
    np.testing.assert_array_equal(mapped("hyperbolic", -v), -mapped("hyperbolic", v))


@pytest.mark.parametrize("name", ["exponential", "sigmoid", "hyperbolic", "logarithm", "softplus"])
def test_functions_that_grow_grow(name: str) -> None:
    """Except for the last digit or two."""
    v = every(4093)
    v = np.sort(v[np.isfinite(v) & ((v > 0) | (name != "logarithm"))])
    values = mapped(name, v)
    assert not np.isnan(values).any()
    values = values[np.isfinite(values)]
    assert (np.diff(values) >= -3 * np.spacing(np.abs(values[1:]))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "function"), [("larger", "maximum"), ("greater", "greater")])
def test_functions_of_two_numbers(name: str, function: str, dtype: type) -> None:
    values = [0.0, -0.0, 1.0, -1.0, 2.5, 1e30, -1e30, INF, -INF, NAN]
    a, b = (m.ravel().astype(dtype) for m in np.meshgrid(values, values))
    computed = mapped(name, a, b)
    expected = FUNCTIONS[function].evaluate(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    np.testing.assert_array_equal(computed, expected)
    np.testing.assert_array_equal(np.signbit(computed), np.signbit(expected))
