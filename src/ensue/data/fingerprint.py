"""One name for data as encoded: a resumed run sees at once whether its data has changed."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.errors import OptionError


def fingerprint(columns: Mapping[str, NDArray[Any] | Ragged]) -> str:
    """sha256 over the names, types, shapes and bytes of the columns, in their order.

    The order of the columns, of the rows and of the values within them all count."""
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
