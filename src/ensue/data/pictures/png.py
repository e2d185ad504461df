"""PNG: pictures of 8 bits a channel, not interlaced, read strictly and written.

Every chunk's checksum is looked at, and no more is unpacked than the header announces.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ensue.data.values import Unfit
from ensue.files.caps import PICTURE_PIXELS, PICTURE_SIDE

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # by the number of the kind: grey, RGB, each with alpha
KINDS = {channels: kind for kind, channels in CHANNELS.items()}

Pixels = NDArray[np.uint8]


class OtherKind(Unfit):
    """A sound PNG of a kind that is not read here."""


def decode_png(data: bytes) -> Pixels:
    """(height, width, channels): grey, grey and alpha, RGB, or RGB and alpha."""
    chunks = _chunks(data)
    name, header = next(chunks, (b"", b""))
    if name != b"IHDR" or len(header) != 13:
        raise Unfit("byte 8: expected the header chunk IHDR of 13 bytes")
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    check_size(width, height, 16)
    if depth != 8 or kind not in CHANNELS or interlaced:
        raise OtherKind(
            "expected a PNG of 8-bit grey or RGB, not interlaced, "
            f"got {depth} bits, kind {kind}{', interlaced' * bool(interlaced)}"
        )
    packed = b"".join(content for name, content in chunks if name == b"IDAT")
    row = width * CHANNELS[kind]
    raw = _unpacked(packed, height * (row + 1))
    return _unfiltered(raw, height, row, CHANNELS[kind]).reshape(height, width, -1)


def check_size(width: int, height: int, byte: int) -> None:
    """Unfit where a picture is empty or larger than any that is read; byte: where it says so."""
    if not 0 < width * height <= PICTURE_PIXELS or max(width, height) > PICTURE_SIDE:
        raise Unfit(
            f"byte {byte}: expected 1 … {PICTURE_PIXELS:,} pixels, at most {PICTURE_SIDE:,} a "
            f"side, got {width} × {height}"
        )


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and content of each, up to the end chunk."""
    at = len(SIGNATURE)
    while True:
        if at + 12 > len(data):
            raise Unfit(f"byte {len(data)}: the file ends before its end chunk IEND")
        size, name = struct.unpack_from(">I4s", data, at)
        end = at + 12 + size
        if end > len(data):
            shown = name.decode("latin-1")
            raise Unfit(f"byte {len(data)}: the file ends inside the chunk {shown} of byte {at}")
        content = data[at + 8 : end - 4]
        if zlib.crc32(data[at + 4 : end - 4]) != struct.unpack_from(">I", data, end - 4)[0]:
            raise Unfit(f"byte {at}: the chunk {name.decode('latin-1')} is damaged (checksum)")
        if name == b"IEND":
            return
        yield name, content
        at = end


def _unpacked(packed: bytes, size: int) -> Pixels:
    """Exactly `size` bytes."""
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(packed, size + 1)
    except zlib.error as error:
        raise Unfit(f"the pixels cannot be unpacked ({error})") from None
    if len(raw) != size:
        got = "more" if len(raw) > size else f"{len(raw):,}"
        raise Unfit(f"expected {size:,} bytes of pixels, got {got}")
    return np.frombuffer(raw, np.uint8)


def _unfiltered(raw: Pixels, height: int, row: int, step: int) -> Pixels:
    """Each line of pixels, which is stored as differences to its left or upper neighbours."""
    lines = raw.reshape(height, row + 1)
    ways, differences = lines[:, 0], lines[:, 1:]
    if ways.max() > 4:
        k = int(np.argmax(ways > 4))
        raise Unfit(f"line {k + 1}: expected a filter 0 … 4, got {ways[k]}")
    if ways.max() > 2:
        return _by_diagonals(differences.reshape(height, -1, step), ways)
    found, above = np.empty((height, row), np.uint8), np.zeros(row, np.uint8)
    for k, (way, line) in enumerate(zip(ways.tolist(), differences, strict=True)):
        if way == 0:
            found[k] = line
        elif way == 1:  # the left neighbour
            sums = line.reshape(-1, step).cumsum(0, np.uint64)
            found[k] = sums.astype(np.uint8).reshape(-1)
        else:  # the upper one
            found[k] = line + above
        above = found[k]
    return found


def _by_diagonals(differences: Pixels, ways: Pixels) -> Pixels:
    """(height, width · channels) for any filters, all pixels of a diagonal at once: each needs its
    left, upper and upper left neighbours, which lie on the two diagonals before.

    In a table of height + 1 lines of width + 1 pixels, whose first line and column are zero, the
    pixels of a diagonal are `width` places apart."""
    height, width, channels = differences.shape
    table = np.zeros((height + 1, width + 1, channels), np.uint8)
    table[1:, 1:] = differences
    flat = table.reshape(-1, channels)
    kinds = ways.astype(np.int16)[:, None]
    for diagonal in range(2, height + width + 1):  # line + column
        first, last = max(1, diagonal - width), min(height, diagonal - 1)
        begin, end = first * width + diagonal, last * width + diagonal + 1
        left = flat[begin - 1 : end - 1 : width].astype(np.int16)
        up = flat[begin - width - 1 : end - width - 1 : width].astype(np.int16)
        corner = flat[begin - width - 2 : end - width - 2 : width].astype(np.int16)
        way = kinds[first - 1 : last]
        guess = np.select(
            [way == 1, way == 2, way == 3, way == 4],
            [left, up, (left + up) >> 1, _nearest(left, up, corner)],
            np.int16(0),
        )
        flat[begin:end:width] += guess.astype(np.uint8)
    return table[1:, 1:].reshape(height, -1)


def _nearest(
    left: NDArray[np.int16], up: NDArray[np.int16], corner: NDArray[np.int16]
) -> NDArray[np.int16]:
    """Of left, upper and upper left that which is nearest to left + upper − upper left."""
    near, far, both = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    others = np.where(far <= both, up, corner)
    return np.where((near <= far) & (near <= both), left, others)


def encode_png(pixels: Pixels) -> bytes:
    """A PNG file of pixels (height, width, channels), with 1 … 4 channels."""
    height, width, channels = pixels.shape
    lines = np.pad(np.ascontiguousarray(pixels).reshape(height, -1), ((0, 0), (1, 0)))
    header = struct.pack(">IIBBBBB", width, height, 8, KINDS[channels], 0, 0, 0)
    content = {b"IHDR": header, b"IDAT": zlib.compress(lines.tobytes(), 9), b"IEND": b""}
    return SIGNATURE + b"".join(
        struct.pack(">I", len(own)) + name + own + struct.pack(">I", zlib.crc32(name + own))
        for name, own in content.items()
    )
