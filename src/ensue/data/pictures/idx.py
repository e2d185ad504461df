"""idx files: one array of bytes each, as MNIST and its relatives come.

    0 0 8 n                 the magic number: 8 for bytes, n axes
    n times 4 bytes         the sizes, the highest byte first
    the bytes               the last axis fastest

Pictures lie in `…-images-idx3-ubyte`, their labels in `…-labels-idx1-ubyte` beside; each may be
packed with gzip.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ensue.data.rows import Place, Row
from ensue.data.stream import DamagedStream, pieces
from ensue.errors import DataError
from ensue.files.caps import IDX_FILE

NAME = re.compile(r"(?P<begin>.*)images(?P<between>[-.])idx3-ubyte(?P<gz>\.gz)?")


def is_idx(path: Path) -> bool:
    """Whether the name of a file is that of an idx file of pictures."""
    return NAME.fullmatch(path.name) is not None


def read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    """The array of a file, with that many axes; anything else is an error with its byte. No more
    is unpacked than the sizes in front announce."""
    begin = 4 + 4 * axes
    data, most = bytearray(), IDX_FILE
    try:
        for piece in pieces(path):
            data += piece
            if len(data) >= begin:
                most = begin + prod(_shape(path, bytes(data[:begin]), axes))
            if len(data) > most:
                break
    except DamagedStream as damaged:
        raise DataError(f"{path}: {damaged}") from None
    shape = _shape(path, bytes(data[:begin]), axes)
    wanted, got = prod(shape), len(data) - begin
    if got != wanted:
        told = "the file is not whole, copy it again" if got < wanted else "what follows is unknown"
        raise DataError(
            f"{path}: byte {begin + min(got, wanted)}: expected {wanted:,} bytes for "
            f"{' × '.join(map(str, shape))}, got {f'{got:,}' if got < wanted else 'more'}: {told}"
        )
    return np.frombuffer(bytes(data), np.uint8, wanted, begin).reshape(shape)


def _shape(path: Path, header: bytes, axes: int) -> tuple[int, ...]:
    """The sizes that stand in front."""
    magic = bytes((0, 0, 8, axes))
    if header[:4] != magic:
        raise DataError(
            f"{path}: byte 0: expected {magic.hex(' ')}, an idx file of bytes with {axes} "
            f"{'axis' if axes == 1 else 'axes'}, got {header[:4].hex(' ') or 'an empty file'}"
        )
    if len(header) < 4 + 4 * axes:
        raise DataError(f"{path}: byte {len(header)}: expected {axes} sizes, the file ends before")
    shape = struct.unpack_from(f">{axes}I", header, 4)
    if prod(shape) > IDX_FILE:
        sizes = " × ".join(map(str, shape))
        raise DataError(f"{path}: byte 4: expected at most {IDX_FILE:,} bytes, got {sizes}")
    return shape


def labels_beside(path: Path) -> Path | None:
    """The file of labels that belongs to one of pictures, packed or not."""
    own = NAME.fullmatch(path.name)
    if own is None:
        return None
    plain = f"{own['begin']}labels{own['between']}idx1-ubyte"
    both = [plain + ".gz", plain] if own["gz"] else [plain, plain + ".gz"]
    found = (path.with_name(name) for name in both)
    return next((file for file in found if file.exists()), None)


def read_idx_pictures(path: Path, labelled: bool = True) -> Iterator[Row]:
    """{"image": (1, height, width), "label": its digit as a text} of each picture; lines count
    them. labelled: their labels are needed."""
    pictures = read_idx(path, 3)
    labels = None
    if labelled:
        file = labels_beside(path)
        if file is None:
            wanted = path.name.replace("images", "labels").replace("idx3", "idx1")
            raise DataError(
                f"{path}: expected the labels in {wanted} beside it, found no such file"
            )
        labels = read_idx(file, 1)
        if len(labels) != len(pictures):
            raise DataError(
                f"{file}: expected {len(pictures):,} labels, one for each picture of {path.name}, "
                f"got {len(labels):,}"
            )
    for k, picture in enumerate(pictures):
        label = None if labels is None else str(labels[k])
        yield Row(Place(str(path), k + 1), {"image": picture[None], "label": label})
