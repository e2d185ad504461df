"""Conversion between n-gram models and plain arrays, for safetensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.errors import DataError, OptionError
from ensue.tasks.language.ngram.arpa import READ
from ensue.tasks.language.ngram.counts import NgramIndex
from ensue.tasks.language.ngram.model import NgramModel
from ensue.tasks.language.ngram.smoothing import SMOOTHINGS
from ensue.tasks.language.ngram.symbols import NgramSymbols

KINDS = (*SMOOTHINGS, READ)
Arrays = dict[str, NDArray[Any]]


def arrays_of(model: NgramModel) -> Arrays:
    """The arrays of a model by name: symbols (order, kind of smoothing, size, start, end or −1,
    unpredicted …), seen, and for each order k: keys.k, log_p.k, back_off.k."""
    s = model.symbols
    end = -1 if s.end is None else s.end
    kind = KINDS.index(model.smoothing)
    arrays: Arrays = {
        "symbols": np.array([model.order, kind, s.size, s.start, end, *s.unpredicted]),
        "seen": model.occurring,
    }
    arrays |= {f"keys.{k}": key for k, key in enumerate(model.index.keys, 2)}
    arrays |= {f"log_p.{k}": values for k, values in enumerate(model.log_p, 1)}
    return arrays | {f"back_off.{k}": values for k, values in enumerate(model.back_off, 1)}


def model_of(arrays: Mapping[str, NDArray[Any]]) -> NgramModel:
    """The inverse of `arrays_of`; raises DataError for invalid arrays."""
    order, kind, symbols = _heading(arrays)
    problems = list[str]()
    names = ["seen", *(f"log_p.{k}" for k in range(1, order + 1))]
    names += [f"keys.{k}" for k in range(2, order + 1)]
    names += [f"back_off.{k}" for k in range(1, order)]
    if odd := sorted({*names, "symbols"} ^ {*arrays}):
        _refuse([f"{name}: {'not known' if name in arrays else 'missing'}" for name in odd])
    sizes = [1, symbols.width, *(arrays[f"keys.{k}"].size for k in range(2, order + 1))]
    for name in names:
        part, _, number = name.partition(".")
        dtype = {"seen": np.bool_, "keys": np.int64}.get(part, np.float64)
        expected = (sizes[int(number or 1)],)
        array = arrays[name]
        if array.dtype != dtype or array.shape != expected:
            expected_kind, got = f"{np.dtype(dtype)} {expected}", f"{array.dtype} {array.shape}"
            problems.append(f"{name}: expected {expected_kind}, got {got}")
        elif dtype == np.float64 and not _logarithms(array, part):
            problems.append(f"{name}: expected logarithms, got another number")
        elif part == "keys" and not _keys(array, sizes[int(number) - 1], symbols):
            problems.append(f"{name}: expected rising keys of known contexts, got others")
    _refuse(problems)
    return NgramModel(
        NgramIndex(symbols, tuple(arrays[f"keys.{k}"] for k in range(2, order + 1))),
        tuple(arrays[f"log_p.{k}"] for k in range(1, order + 1)),
        tuple(arrays[f"back_off.{k}"] for k in range(1, order)),
        arrays["seen"],
        KINDS[kind],
    )


def _heading(arrays: Mapping[str, NDArray[Any]]) -> tuple[int, int, NgramSymbols]:
    """Order, kind of smoothing, and symbols."""
    heading = arrays.get("symbols", np.empty(0))
    if heading.dtype != np.int64 or heading.ndim != 1 or heading.size < 5:
        _refuse(["symbols: expected at least 5 whole numbers"])
    order, kind, size, start, end, *unpredicted = heading.tolist()
    if not 1 <= order <= len(arrays) or not 0 <= kind < len(KINDS):
        _refuse(["symbols: expected an order and a kind of smoothing"])
    if size != min(size, arrays.get("seen", np.empty(0)).size):
        _refuse(["symbols: expected at most the size of seen"])
    try:
        return (
            order,
            kind,
            NgramSymbols(size, start, None if end == -1 else end, tuple(unpredicted)),
        )
    except OptionError as error:
        raise DataError(str(error)) from None


def _logarithms(values: NDArray[np.float64], part: str) -> bool:
    """Checks logarithms: no NaN, no +∞; for probabilities, none above 0."""
    return bool((values <= 0).all() if part == "log_p" else (values < np.inf).all())


def _keys(keys: NDArray[np.int64], contexts: int, symbols: NgramSymbols) -> bool:
    if not len(keys):
        return True
    within = keys[0] >= 0 and keys[-1] < contexts * symbols.width
    return bool(within and (keys[1:] > keys[:-1]).all()) and bool(
        symbols.predicted[keys % symbols.width].all()
    )


def _refuse(problems: list[str]) -> None:
    if problems:
        raise DataError("\n  ".join(["these are not the arrays of an n-gram model", *problems]))
