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

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # by the number of the kind: grey, RGB, each with alpha
MOST_PIXELS = 1 << 26  # of a picture
KINDS = {channels: kind for kind, channels in CHANNELS.items()}

Pixels = NDArray[np.uint8]


class OtherKind(Unfit):
    """A sound PNG of a kind that is not read here."""


def decode_png(data: bytes) -> Pixels:
    """(height, width, channels): grey, grey and alpha, RGB, or RGB and alpha."""
    chunks = _chunks(data)
    name, header = next(chunks)
    if name != b"IHDR" or len(header) != 13:
        raise Unfit("byte 8: expected the header chunk IHDR of 13 bytes")
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    if not 0 < width * height <= MOST_PIXELS:
        raise Unfit(f"byte 16: expected 1 … {MOST_PIXELS:,} pixels, got {width} × {height}")
    if depth != 8 or kind not in CHANNELS or interlaced:
        raise OtherKind(
            "expected a PNG of 8-bit grey or RGB, not interlaced, "
            f"got {depth} bits, kind {kind}{', interlaced' * bool(interlaced)}"
        )
    packed = b"".join(content for name, content in chunks if name == b"IDAT")
    row = width * CHANNELS[kind]
    raw = _unpacked(packed, height * (row + 1))
    return _unfiltered(raw, height, row, CHANNELS[kind]).reshape(height, width, -1)


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
    found, above = np.empty((height, row), np.uint8), np.zeros(row, np.uint8)
    for k, (way, line) in enumerate(zip(lines[:, 0].tolist(), lines[:, 1:], strict=True)):
        if way == 0:
            found[k] = line
        elif way == 1:  # the left neighbour
            sums = line.reshape(-1, step).cumsum(0, np.uint64)
            found[k] = sums.astype(np.uint8).reshape(-1)
        elif way == 2:  # the upper one
            found[k] = line + above
        elif way in (3, 4):
            found[k] = _from_both(line.tolist(), above.tolist(), step, way == 4)
        else:
            raise Unfit(f"line {k + 1}: expected a filter 0 … 4, got {way}")
        above = found[k]
    return found


def _from_both(line: list[int], above: list[int], step: int, nearest: bool) -> list[int]:
    """Differences to the mean of left and upper neighbour, or to the nearest of left, upper and
    upper left to left + upper − upper left."""
    found = [0] * step + line
    for k, up in enumerate(above):
        left = found[k]
        guess = (left + up) >> 1
        if nearest:
            corner = above[k - step] if k >= step else 0
            near, far, both = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
            guess = left if near <= far and near <= both else up if far <= both else corner
        found[k + step] = (found[k + step] + guess) & 255
    return found[step:]


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
