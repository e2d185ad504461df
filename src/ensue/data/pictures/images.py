"""Pictures: reading files and folders of them, and converting them to one shape.

A picture is an array of bytes (channels, height, width) with 1 channel (grey) or 3 (red, green,
blue). PNG, PGM and PPM are read here; other formats through Pillow, the extra "images". Transparent
pixels appear on white.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ensue.data.pictures.endings import ENDINGS, PLAIN, is_image
from ensue.data.rows import Place, Problem, ProblemCallback, Row
from ensue.data.stream import DamagedStream, open_file, pieces
from ensue.data.values import Unfit
from ensue.errors import DataError, MissingExtra, OptionError
from ensue.files.opening import IDX_FILE, PICTURE_FILE, PICTURE_HEADER, PICTURE_PIXELS, PICTURE_SIDE

# -------------------------------------------------------------------------------------------------
# idx files: one array of bytes each, the format of MNIST.
#
#     0 0 8 n                 the magic number: 8 for bytes, n axes
#     n times 4 bytes         the sizes, the highest byte first
#     the bytes               the last axis fastest
#
# Pictures are in `…-images-idx3-ubyte`, their labels next to it in `…-labels-idx1-ubyte`; each may
# be packed with gzip.

NAME = re.compile(r"(?P<begin>.*)images(?P<between>[-.])idx3-ubyte(?P<gz>\.gz)?")


def is_idx(path: Path) -> bool:
    """Whether a file is named like an idx file of pictures."""
    return NAME.fullmatch(path.name) is not None


def read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    """The array of a file with that many axes; errors name the byte. Unpacking stops at the size in
    the header."""
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
    expected, got = prod(shape), len(data) - begin
    if got != expected:
        message = (
            "the file is incomplete, copy it again" if got < expected else "what follows is unknown"
        )
        raise DataError(
            f"{path}: byte {begin + min(got, expected)}: expected {expected:,} bytes for "
            f"{' × '.join(map(str, shape))}, got {f'{got:,}' if got < expected else 'more'}: "
            f"{message}"
        )
    return np.frombuffer(bytes(data), np.uint8, expected, begin).reshape(shape)


def _shape(path: Path, header: bytes, axes: int) -> tuple[int, ...]:
    """The sizes of the array, from the header."""
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
    """The file of labels for a file of pictures, packed or not."""
    match = NAME.fullmatch(path.name)
    if match is None:
        return None
    plain = f"{match['begin']}labels{match['between']}idx1-ubyte"
    both = [plain + ".gz", plain] if match["gz"] else [plain, plain + ".gz"]
    files = (path.with_name(name) for name in both)
    return next((file for file in files if file.exists()), None)


def read_idx_pictures(path: Path, labelled: bool = True) -> Iterator[Row]:
    """{"image": (1, height, width), "label": its digit as a text} for each picture; line numbers
    count pictures. labelled: labels are required."""
    pictures = read_idx(path, 3)
    labels = None
    if labelled:
        file = labels_beside(path)
        if file is None:
            expected = path.name.replace("images", "labels").replace("idx3", "idx1")
            raise DataError(
                f"{path}: expected the labels in {expected} next to it, found no such file"
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


# -------------------------------------------------------------------------------------------------
# PNG: pictures of 8 bits a channel, not interlaced, read strictly and written.
#
# Every chunk's checksum is checked, and unpacking stops at the size in the header.

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # by colour type: grey, RGB, each with alpha
KINDS = {channels: kind for kind, channels in CHANNELS.items()}

Pixels = NDArray[np.uint8]


class OtherKind(Unfit):
    """A valid PNG of an unsupported kind."""


def decode_png(data: bytes) -> Pixels:
    """Grey, grey and alpha, RGB, or RGB and alpha; shape (height, width, channels)."""
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
    """Raises Unfit for an empty or too large picture. byte: position of its size in the file."""
    if not 0 < width * height <= PICTURE_PIXELS or max(width, height) > PICTURE_SIDE:
        raise Unfit(
            f"byte {byte}: expected 1 … {PICTURE_PIXELS:,} pixels, at most {PICTURE_SIDE:,} a "
            f"side, got {width} × {height}"
        )


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and content of each chunk, up to the end chunk."""
    at = len(SIGNATURE)
    while True:
        if at + 12 > len(data):
            raise Unfit(f"byte {len(data)}: the file ends before its end chunk IEND")
        size, name = struct.unpack_from(">I4s", data, at)
        end = at + 12 + size
        if end > len(data):
            shown_name = name.decode("latin-1")
            raise Unfit(
                f"byte {len(data)}: the file ends inside the chunk {shown_name} of byte {at}"
            )
        content = data[at + 8 : end - 4]
        if zlib.crc32(data[at + 4 : end - 4]) != struct.unpack_from(">I", data, end - 4)[0]:
            raise Unfit(f"byte {at}: the chunk {name.decode('latin-1')} is damaged (checksum)")
        if name == b"IEND":
            return
        yield name, content
        at = end


def _unpacked(packed: bytes, size: int) -> Pixels:
    """Unpacks exactly `size` bytes."""
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
    """Decodes the lines of pixels, which are stored as differences to their left or upper
    neighbours."""
    lines = raw.reshape(height, row + 1)
    ways, differences = lines[:, 0], lines[:, 1:]
    if ways.max() > 4:
        k = int(np.argmax(ways > 4))
        raise Unfit(f"line {k + 1}: expected a filter 0 … 4, got {ways[k]}")
    if ways.max() > 2:
        return _by_diagonals(differences.reshape(height, -1, step), ways)
    rows, above = np.empty((height, row), np.uint8), np.zeros(row, np.uint8)
    for k, (way, line) in enumerate(zip(ways.tolist(), differences, strict=True)):
        if way == 0:
            rows[k] = line
        elif way == 1:  # the left neighbour
            sums = line.reshape(-1, step).cumsum(0, np.uint64)
            rows[k] = sums.astype(np.uint8).reshape(-1)
        else:  # the upper one
            rows[k] = line + above
        above = rows[k]
    return rows


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
    """The nearest of left, upper and upper left to left + upper − upper left."""
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
        struct.pack(">I", len(chunk)) + name + chunk + struct.pack(">I", zlib.crc32(name + chunk))
        for name, chunk in content.items()
    )


GREY = np.array([0.299, 0.587, 0.114])  # weights of red, green and blue in brightness
BLANK = rb"(?:\s|#[^\n]*\n)+"
NETPBM = re.compile(rb"P([56])%b(\d{1,9})%b(\d{1,9})%b(\d{1,9})\s" % (BLANK, BLANK, BLANK))

Picture = NDArray[np.uint8]


def read_image(path: Path | str) -> Picture:
    """Reads a picture (channels, height, width); raises DataError if the file is not a picture, or
    truncated."""
    path = Path(path)
    try:
        return picture_of(path)
    except Unfit as unfit:
        raise DataError(f"{path}: {unfit}") from None


def picture_of(path: Path) -> Picture:
    """`read_image`, but raises `Unfit` with the fault, without the name."""
    with open_file(path) as file:
        try:
            size = os.fstat(file.fileno()).st_size  # memory is allocated only for data that is read
            data = file.read(min(size, PICTURE_FILE) + 1)
        except OSError as error:
            raise Unfit(f"cannot be read ({error.strerror})") from None
    if len(data) > PICTURE_FILE:
        raise Unfit(f"expected a picture of at most {PICTURE_FILE:,} bytes, got more")
    if data.startswith(SIGNATURE):
        try:
            return _opaque(decode_png(data))
        except OtherKind as other:
            return _through_pillow(data, str(other))
    if data[:2] in (b"P5", b"P6"):
        return _netpbm(data)
    if path.name.lower().endswith(PLAIN):
        raise Unfit(f"byte 0: expected PNG, PGM (P5) or PPM (P6), got {data[:4].hex(' ') or '–'}")
    return _through_pillow(data, f"{path.suffix or 'this format'} is not read by Ensue itself")


def write_image(path: Path | str, picture: Picture) -> None:
    """Writes a PNG; picture (height, width) or (channels, height, width)."""
    Path(path).write_bytes(encode_png(np.moveaxis(checked(picture), 0, -1)))


def checked(picture: NDArray[np.generic], place: str = "picture") -> Picture:
    """(channels, height, width) of a picture in memory; (height, width) is grey."""
    channels = picture[None] if picture.ndim == 2 else picture
    if (
        channels.dtype != np.uint8
        or channels.ndim != 3
        or len(channels) not in (1, 3)
        or not channels.size
    ):
        raise DataError(
            f"{place}: expected bytes (uint8) of shape (height, width), or (channels, height, "
            f"width) with 1 or 3 channels, got {picture.dtype} of shape {picture.shape}"
        )
    return channels.astype(np.uint8, copy=False)


def _opaque(pixels: Picture) -> Picture:
    """(channels, height, width), with transparent pixels on white."""
    count = pixels.shape[-1]
    if count in (2, 4):
        alpha = pixels[..., -1:].astype(np.uint32)
        mixed = pixels[..., :-1] * alpha + 255 * (255 - alpha)
        pixels = ((mixed + 127) // 255).astype(np.uint8)
    return np.ascontiguousarray(np.moveaxis(pixels, -1, 0))


def _netpbm(data: bytes) -> Picture:
    """Binary PGM and PPM; brightness relative to the file's maximum value."""
    match = NETPBM.match(data[:PICTURE_HEADER])
    if not match:
        raise Unfit("byte 0: expected P5 or P6, width, height and the greatest number, below 256")
    channels = 1 if match[1] == b"5" else 3
    width, height, most = (int(match[k]) for k in (2, 3, 4))
    size, begin = width * height * channels, match.end()
    check_size(width, height, match.start(2))
    if not 0 < most < 256:
        raise Unfit(f"byte {match.start(4)}: expected numbers up to 255 at most, got {most}")
    if len(data) - begin < size:
        raise Unfit(f"byte {len(data)}: expected {size:,} bytes of pixels, got {len(data) - begin}")
    pixels = np.frombuffer(data, np.uint8, size, begin).reshape(height, width, channels)
    if most != 255:
        pixels = np.rint(np.minimum(pixels, most) * (255 / most)).astype(np.uint8)
    return _opaque(pixels)


def _through_pillow(data: bytes, why: str) -> Picture:
    try:
        pillow = import_module("PIL.Image")
    except ImportError:
        raise MissingExtra(f"{why}; reading it needs Pillow: pip install 'ensue[images]'") from None
    try:
        with pillow.open(BytesIO(data)) as image:
            grey = image.mode in ("1", "L")
            pixels = np.asarray(image.convert("L" if grey else "RGBA"), np.uint8)
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise Unfit(f"no picture that can be read ({error})") from None
    return _opaque(pixels[..., None] if grey else pixels)


# --- one shape for all -------------------------------------------------------------------------


def conformed(picture: Picture, shape: tuple[int, int, int]) -> Picture:
    """The picture converted to this number of channels, height and width. Colours become
    brightness, or grey becomes three equal colours; each new pixel is the weighted mean of the
    pixels it covers."""
    channels, height, width = shape
    if channels not in (1, 3) or min(height, width) < 1:
        raise OptionError(f"shape: expected 1 or 3 channels, height and width ≥ 1, got {shape}")
    if picture.shape == shape:
        return picture
    numbers = picture.astype(np.float64)
    if channels < len(picture):
        numbers = np.tensordot(GREY, numbers, 1)[None]
    if numbers.shape[1:] != (height, width):
        tall, wide = _means(numbers.shape[1], height), _means(numbers.shape[2], width)
        numbers = tall @ numbers @ wide.T
    rounded = np.rint(numbers).clip(0, 255).astype(np.uint8)
    return np.repeat(rounded, channels, 0) if len(rounded) < channels else rounded


def _means(before: int, after: int) -> NDArray[np.float64]:
    """The weight of each old pixel in each new one, by distance; shape (after, before)."""
    scale = before / after
    centre = (np.arange(after) + 0.5) * scale
    distance = np.abs(np.arange(before) + 0.5 - centre[:, None]) / max(scale, 1.0)
    weight = np.clip(1 - distance, 0, None)
    return np.asarray(weight / weight.sum(1, keepdims=True))


# --- folders -----------------------------------------------------------------------------------


def image_folder(path: Path) -> bool:
    """Whether a folder's subfolders contain pictures, judging by the first file that is not
    hidden."""
    for label in sorted(_visible_files(path)):
        for file in sorted(_visible_files(label)) if label.is_dir() else ():
            return is_image(file)
    return False


def read_image_folder(path: Path, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """{"image": the picture, "label": its folder} of `folder/<label>/*.png`, by label and name.
    Names that begin with a dot are skipped, and so are files next to the label folders."""
    labels = sorted(p for p in _visible_files(path) if p.is_dir())
    if not labels:
        raise DataError(
            f"{path}: expected a folder for each class with pictures inside "
            f"({path / 'cat' / '1.png'}), found no folder"
        )
    for label in labels:
        files = sorted(_visible_files(label))
        if not files:
            on_bad_row(
                Problem(Place(str(label), 1), "the folder of this class is empty", rejects=0)
            )
        for file in files:
            yield from image_row(file, label.name, on_bad_row)


def image_row(file: Path, label: str | None, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """Yields one row, or reports a problem."""
    place = Place(str(file), 1)
    if file.is_dir() or not is_image(file):
        on_bad_row(Problem(place, f"expected a picture ({', '.join(ENDINGS)})"))
        return
    try:
        yield Row(place, {"image": picture_of(file), "label": label})
    except MissingExtra as missing:
        raise MissingExtra(f"{file}: {missing}") from None
    except Unfit as unfit:
        on_bad_row(Problem(place, str(unfit)))


def _visible_files(path: Path) -> Iterator[Path]:
    return (p for p in path.iterdir() if not p.name.startswith("."))
