"""Pictures: files of them, folders of them, and bringing them to one shape.

A picture is an array of bytes (channels, height, width) with 1 channel (grey) or 3 (red, green,
blue). PNG, PGM and PPM are read here; other formats through Pillow, the extra "images". What is
transparent is seen on white.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ensue.data.pictures.png import SIGNATURE, OtherKind, check_size, decode_png, encode_png
from ensue.data.rows import Place, Problem, Row, Tell
from ensue.data.stream import open_file
from ensue.data.values import Unfit
from ensue.errors import DataError, MissingExtra, OptionError
from ensue.files.caps import PICTURE_FILE, PICTURE_HEADER

PLAIN = (".png", ".pgm", ".ppm")
ENDINGS = (*PLAIN, ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp")
GREY = np.array([0.299, 0.587, 0.114])  # what red, green and blue count for in brightness
BLANK = rb"(?:\s|#[^\n]*\n)+"
NETPBM = re.compile(rb"P([56])%b(\d{1,9})%b(\d{1,9})%b(\d{1,9})\s" % (BLANK, BLANK, BLANK))

Picture = NDArray[np.uint8]


def is_image(path: Path) -> bool:
    return path.name.lower().endswith(ENDINGS)


def read_image(path: Path | str) -> Picture:
    """(channels, height, width) of a file; DataError where it is none, or not whole."""
    path = Path(path)
    try:
        return picture_of(path)
    except Unfit as unfit:
        raise DataError(f"{path}: {unfit}") from None


def picture_of(path: Path) -> Picture:
    """The same; `Unfit` says what is wrong without the name."""
    with open_file(path) as file:
        try:
            size = os.fstat(file.fileno()).st_size  # room is asked for as much as is read
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
    """As a PNG; picture (height, width) or (channels, height, width)."""
    Path(path).write_bytes(encode_png(np.moveaxis(checked(picture), 0, -1)))


def checked(picture: NDArray[np.generic], place: str = "picture") -> Picture:
    """(channels, height, width) of a picture in memory; (height, width) is grey."""
    found = picture[None] if picture.ndim == 2 else picture
    if found.dtype != np.uint8 or found.ndim != 3 or len(found) not in (1, 3) or not found.size:
        raise DataError(
            f"{place}: expected bytes (uint8) of shape (height, width), or (channels, height, "
            f"width) with 1 or 3 channels, got {picture.dtype} of shape {picture.shape}"
        )
    return found.astype(np.uint8, copy=False)


def _opaque(pixels: Picture) -> Picture:
    """(channels, height, width), on white where an alpha says so."""
    count = pixels.shape[-1]
    if count in (2, 4):
        alpha = pixels[..., -1:].astype(np.uint32)
        mixed = pixels[..., :-1] * alpha + 255 * (255 - alpha)
        pixels = ((mixed + 127) // 255).astype(np.uint8)
    return np.ascontiguousarray(np.moveaxis(pixels, -1, 0))


def _netpbm(data: bytes) -> Picture:
    """Binary PGM and PPM; brightness in parts of their own greatest number."""
    found = NETPBM.match(data[:PICTURE_HEADER])
    if not found:
        raise Unfit("byte 0: expected P5 or P6, width, height and the greatest number, below 256")
    channels = 1 if found[1] == b"5" else 3
    width, height, most = (int(found[k]) for k in (2, 3, 4))
    size, begin = width * height * channels, found.end()
    check_size(width, height, found.start(2))
    if not 0 < most < 256:
        raise Unfit(f"byte {found.start(4)}: expected numbers up to 255 at most, got {most}")
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
        with pillow.open(BytesIO(data)) as own:
            grey = own.mode in ("1", "L")
            found = np.asarray(own.convert("L" if grey else "RGBA"), np.uint8)
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise Unfit(f"no picture that can be read ({error})") from None
    return _opaque(found[..., None] if grey else found)


# --- one shape for all -------------------------------------------------------------------------


def conformed(picture: Picture, shape: tuple[int, int, int]) -> Picture:
    """The picture with that many channels, height and width: colours become brightness or grey
    three equal colours, and each new pixel is the weighted mean of those that it lies on."""
    channels, height, width = shape
    if channels not in (1, 3) or min(height, width) < 1:
        raise OptionError(f"shape: expected 1 or 3 channels, height and width ≥ 1, got {shape}")
    if picture.shape == shape:
        return picture
    found = picture.astype(np.float64)
    if channels < len(picture):
        found = np.tensordot(GREY, found, 1)[None]
    if found.shape[1:] != (height, width):
        tall, wide = _means(found.shape[1], height), _means(found.shape[2], width)
        found = tall @ found @ wide.T
    rounded = np.rint(found).clip(0, 255).astype(np.uint8)
    return np.repeat(rounded, channels, 0) if len(rounded) < channels else rounded


def _means(before: int, after: int) -> NDArray[np.float64]:
    """(after, before): what each old pixel counts for in each new one, by its distance."""
    scale = before / after
    centre = (np.arange(after) + 0.5) * scale
    distance = np.abs(np.arange(before) + 0.5 - centre[:, None]) / max(scale, 1.0)
    weight = np.clip(1 - distance, 0, None)
    return np.asarray(weight / weight.sum(1, keepdims=True))


# --- folders -----------------------------------------------------------------------------------


def image_folder(path: Path) -> bool:
    """Whether a folder's folders hold pictures: the first file that is not hidden tells."""
    for label in sorted(_shown(path)):
        for file in sorted(_shown(label)) if label.is_dir() else ():
            return is_image(file)
    return False


def read_image_folder(path: Path, on_bad_row: Tell) -> Iterator[Row]:
    """{"image": the picture, "label": its folder} of `folder/<label>/*.png`, by label and name.
    Names that begin with a dot are passed over, and so are files beside the label folders."""
    labels = sorted(p for p in _shown(path) if p.is_dir())
    if not labels:
        raise DataError(
            f"{path}: expected a folder for each class with pictures inside "
            f"({path / 'cat' / '1.png'}), found no folder"
        )
    for label in labels:
        files = sorted(_shown(label))
        if not files:
            on_bad_row(
                Problem(Place(str(label), 1), "the folder of this class is empty", rejects=0)
            )
        for file in files:
            yield from image_row(file, label.name, on_bad_row)


def image_row(file: Path, label: str | None, on_bad_row: Tell) -> Iterator[Row]:
    """One row, or none and a problem."""
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


def _shown(path: Path) -> Iterator[Path]:
    return (p for p in path.iterdir() if not p.name.startswith("."))
