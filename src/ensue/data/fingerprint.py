"""Fingerprints of data: encoded, in files, and as rows in memory. With them, a resumed run detects
changed data, and a held-out part is recognised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.parallel import sides_of
from ensue.data.ragged import Ragged
from ensue.data.stream import known_digest, open_file
from ensue.errors import OptionError

BLOCK = 1 << 20


def fingerprint(columns: Mapping[str, NDArray[Any] | Ragged]) -> str:
    """sha256 over the names, types, shapes and bytes of the columns, in their order.

    The order of columns, rows and values matters."""
    digest = sha256()
    for name, column in columns.items():
        arrays = [column.starts, column.values] if isinstance(column, Ragged) else [column]
        for array in arrays:
            if array.dtype.hasobject:
                raise OptionError(
                    f"{name}: expected numbers or fixed-width values, got {array.dtype}"
                )
            # the same bytes on every machine
            plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            title = f"{name!r} {type(column).__name__} {plain.dtype.str} {array.shape}\n"
            digest.update(title.encode("utf-8", "surrogatepass"))
            digest.update(plain.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def digest_of(paths: Iterable[str]) -> str:
    """sha256 over the bytes of files; for a folder, over its files by name."""
    sources = [Path(side) for both in paths for side in sides_of(both)]
    if len(sources) == 1 and (digest := known_digest(sources[0])):
        return digest
    hashed = sha256()
    for path in sources:
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            with open_file(file) as stream:
                while block := stream.read(BLOCK):
                    hashed.update(block)
    return hashed.hexdigest()


def rows_digest(rows: Any) -> str:
    """sha256 over the values of rows in memory, in order: texts, numbers, arrays, and lists and
    mappings of these.

    >>> rows_digest([("a", 1)]) == rows_digest((["a", 1],))
    True
    """
    digest = sha256()
    for piece in _pieces(rows):
        digest.update(piece)
    return digest.hexdigest()


def _pieces(value: Any) -> Iterable[bytes]:
    """The bytes that identify a value; equal lists and tuples have the same."""
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield f"{value.dtype.str} {value.shape} ".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _pieces(key)
            yield from _pieces(item)
        yield b"}"
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for item in value:
            yield from _pieces(item)
        yield b"]"
    else:
        plain = value.item() if isinstance(value, np.generic) else value
        yield f"{plain!r},".encode("utf-8", "surrogatepass")
