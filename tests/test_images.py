"""Pictures as files: read as they were written, refused with the byte where they are not whole."""

from __future__ import annotations

import gzip
import struct
import sys
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ensue.data.pictures import images as idx_files
from ensue.data.pictures.images import (
    SIGNATURE,
    conformed,
    encode_png,
    image_folder,
    labels_beside,
    read_idx,
    read_idx_pictures,
    read_image,
    read_image_folder,
    write_image,
)
from ensue.data.rows import Problem
from ensue.errors import DataError, MissingExtra, OptionError

DRAW = np.random.default_rng(3)
COLOUR = DRAW.integers(0, 256, (3, 5, 7), np.uint8)


def png(header: tuple[int, ...], lines: bytes, *, packed: bytes | None = None) -> bytes:
    """A PNG of its parts; header: width, height, depth, kind, 0, 0, interlaced."""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", *header)),
        (b"IDAT", zlib.compress(lines) if packed is None else packed),
        (b"IEND", b""),
    ]
    return SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min(
        (abs(guess - neighbour), k, neighbour) for k, neighbour in enumerate((left, up, corner))
    )[2]


def filtered(pixels: NDArray[np.uint8], ways: list[int]) -> bytes:
    """Lines (height, width, channels) as differences, byte by byte as the standard says."""
    height, width, step = pixels.shape
    flat, rows = pixels.reshape(height, -1).astype(int), b""
    for y, way in enumerate(ways):
        line = []
        for x in range(width * step):
            left = flat[y, x - step] if x >= step else 0
            up = flat[y - 1, x] if y else 0
            corner = flat[y - 1, x - step] if y and x >= step else 0
            guess = (0, left, up, (left + up) // 2, paeth(left, up, corner))[way]
            line.append((flat[y, x] - guess) % 256)
        rows += bytes([way, *line])
    return rows


# --- PNG, PGM, PPM -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "picture", [COLOUR, COLOUR[:1], COLOUR[:, :1, :1]], ids=["colour", "grey", "one pixel"]
)
def test_what_was_written_is_read(picture: NDArray[np.uint8], tmp_path: Path) -> None:
    write_image(tmp_path / "a.png", picture)
    assert (read_image(tmp_path / "a.png") == picture).all()
    assert read_image(str(tmp_path / "a.png")).shape == picture.shape


@pytest.mark.parametrize("channels", [1, 3])
def test_every_filter_of_png(channels: int, tmp_path: Path) -> None:
    pixels = DRAW.integers(0, 256, (7, 6, channels), np.uint8)
    lines = filtered(pixels, [4, 3, 0, 1, 2, 3, 4])
    kind = 0 if channels == 1 else 2
    (tmp_path / "a.png").write_bytes(png((6, 7, 8, kind, 0, 0, 0), lines))
    assert (read_image(tmp_path / "a.png") == np.moveaxis(pixels, -1, 0)).all()


def test_what_is_transparent_is_seen_on_white(tmp_path: Path) -> None:
    pixels = np.array([[[10, 20, 30, 255], [10, 20, 30, 0], [0, 0, 0, 51]]], np.uint8)
    (tmp_path / "a.png").write_bytes(encode_png(pixels))
    colours = read_image(tmp_path / "a.png")[:, 0].T.tolist()
    assert colours == [[10, 20, 30], [255, 255, 255], [204, 204, 204]]
    (tmp_path / "g.png").write_bytes(encode_png(pixels[..., 2:]))
    assert read_image(tmp_path / "g.png").tolist() == [[[30, 255, 204]]]


def test_pgm_and_ppm(tmp_path: Path) -> None:
    (tmp_path / "a.pgm").write_bytes(b"P5\n# a remark\n3 2\n255\n" + bytes(range(6)))
    assert read_image(tmp_path / "a.pgm").tolist() == [[[0, 1, 2], [3, 4, 5]]]
    (tmp_path / "a.ppm").write_bytes(b"P6 1 1 5 " + bytes([0, 1, 5]))
    assert read_image(tmp_path / "a.ppm").ravel().tolist() == [0, 51, 255]


GOOD = png((2, 2, 8, 0, 0, 0, 0), bytes(6))
FAULTS: dict[str, tuple[str, bytes, str]] = {
    "no picture": (
        "a.png",
        b"hello",
        "byte 0: expected PNG, PGM (P5) or PPM (P6), got 68 65 6c 6c",
    ),
    "empty": ("a.png", b"", "byte 0: expected PNG, PGM (P5) or PPM (P6), got –"),
    "cut in a chunk": (
        "a.png",
        GOOD[:45],
        "byte 45: the file ends inside the chunk IDAT of byte 33",
    ),
    "cut between": ("a.png", GOOD[:-12], f"byte {len(GOOD) - 12}: the file ends before its end"),
    "a changed byte": (
        "a.png",
        GOOD[:42] + b"\x99" + GOOD[43:],
        "byte 33: the chunk IDAT is damaged (checksum)",
    ),
    "too few pixels": (
        "a.png",
        png((2, 2, 8, 0, 0, 0, 0), bytes(5)),
        "expected 6 bytes of pixels, got 5",
    ),
    "too many pixels": (
        "a.png",
        png((2, 2, 8, 0, 0, 0, 0), bytes(9999)),
        "expected 6 bytes of pixels, got more",
    ),
    "no zlib": (
        "a.png",
        png((2, 2, 8, 0, 0, 0, 0), b"", packed=b"xx"),
        "the pixels cannot be unpacked (",
    ),
    "an unknown filter": (
        "a.png",
        png((2, 2, 8, 0, 0, 0, 0), bytes([0, 1, 2, 7, 1, 2])),
        "line 2: expected a filter 0 … 4, got 7",
    ),
    "a bomb": (
        "a.png",
        png((2**20, 2**20, 8, 0, 0, 0, 0), b""),
        "byte 16: expected 1 … 67,108,864 pixels, at most 32,768 a side, got 1048576 × 1048576",
    ),
    "one endless line": (
        "a.png",
        png((2**26, 1, 8, 0, 0, 0, 0), b""),
        "byte 16: expected 1 … 67,108,864 pixels, at most 32,768 a side, got 67108864 × 1",
    ),
    "nothing but an end": (
        "a.png",
        SIGNATURE + png((2, 2, 8, 0, 0, 0, 0), b"")[-12:],
        "byte 8: expected the header chunk",
    ),
    "a header without end": ("a.pgm", b"P5" + b" #" * 30_000, "byte 0: expected P5 or P6, width"),
    "a side of 5,000 digits": ("a.pgm", b"P5 " + b"9" * 5000, "byte 0: expected P5 or P6, width"),
    "a cut pgm": ("a.pgm", b"P5 3 2 255 abc", "byte 14: expected 6 bytes of pixels, got 3"),
    "a pgm of 16 bits": (
        "a.pgm",
        b"P5 3 2 999 abc",
        "byte 7: expected numbers up to 255 at most, got 999",
    ),
    "a pgm of letters": ("a.pgm", b"P5 three", "byte 0: expected P5 or P6, width, height"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_file_says_where(name: str, tmp_path: Path) -> None:
    file, data, message = FAULTS[name]
    (tmp_path / file).write_bytes(data)
    with pytest.raises(DataError) as error:
        read_image(tmp_path / file)
    assert str(error.value).startswith(f"{tmp_path / file}: {message}")


def test_other_formats_need_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    with pytest.raises(MissingExtra) as missing:
        read_image(tmp_path / "a.jpg")
    assert str(missing.value) == (
        ".jpg is not read by Ensue itself; reading it needs Pillow: pip install 'ensue[images]'"
    )
    (tmp_path / "a.png").write_bytes(png((2, 2, 16, 0, 0, 0, 1), bytes(6)))
    with pytest.raises(MissingExtra) as deep:
        read_image(tmp_path / "a.png")
    assert str(deep.value).startswith(
        "expected a PNG of 8-bit grey or RGB, not interlaced, got 16 bits, kind 0, interlaced;"
    )


class Pillow:
    """A stand-in for PIL.Image, whose pictures are one red pixel, half seen through."""

    DecompressionBombError = RuntimeError
    mode = "P"

    @classmethod
    def open(cls, file: BytesIO) -> Pillow:
        if file.read() != b"GIF":
            raise OSError("cannot identify image file")
        return cls()

    def __enter__(self) -> Pillow:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def convert(self, mode: str) -> NDArray[np.uint8]:
        assert mode == "RGBA"
        return np.array([[[255, 0, 0, 51]]], np.uint8)


def test_other_formats_through_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", Pillow)
    monkeypatch.setitem(sys.modules, "PIL.Image", Pillow)
    (tmp_path / "a.gif").write_bytes(b"GIF")
    assert read_image(tmp_path / "a.gif").ravel().tolist() == [255, 204, 204]
    (tmp_path / "a.gif").write_bytes(b"?")
    with pytest.raises(DataError) as error:
        read_image(tmp_path / "a.gif")
    assert str(error.value) == (
        f"{tmp_path / 'a.gif'}: no picture that can be read (cannot identify image file)"
    )


# --- one shape ---------------------------------------------------------------------------------


def test_pictures_brought_to_a_shape() -> None:
    assert conformed(COLOUR, (3, 5, 7)) is COLOUR
    flat = np.full((1, 9, 4), 77, np.uint8)
    for shape in ((1, 3, 3), (1, 20, 31), (3, 9, 4), (3, 1, 1)):
        image = conformed(flat, shape)
        assert image.shape == shape
        assert (image == 77).all(), "what is even stays even"
    halves = np.array([[[0, 100], [50, 150]]], np.uint8)
    assert conformed(halves, (1, 1, 1)).item() == 75
    pure = np.zeros((3, 1, 3), np.uint8)
    pure[[0, 1, 2], 0, [0, 1, 2]] = 255
    assert conformed(pure, (1, 1, 3)).ravel().tolist() == [76, 150, 29]
    stripes = np.tile(np.array([0, 0, 240], np.uint8), (1, 9, 27))  # every pixel is looked at
    assert conformed(stripes, (1, 1, 27))[0, 0, 9:18].tolist() == [80] * 9
    ramp = np.arange(0, 256, dtype=np.uint8)[None, None]
    small = conformed(ramp, (1, 1, 64)).ravel().astype(int)
    assert (np.diff(small) > 0).all()
    with pytest.raises(OptionError, match="shape: expected 1 or 3 channels"):
        conformed(flat, (2, 3, 3))


# --- folders -----------------------------------------------------------------------------------


def test_a_folder_of_classes(tmp_path: Path) -> None:
    for name in ("dog/2.png", "cat/b.png", "cat/a.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_image(tmp_path / name, COLOUR)
    (tmp_path / "cat" / ".hidden").write_text("")
    (tmp_path / "read me.txt").write_text("")
    heard: list[Problem] = []
    rows = list(read_image_folder(tmp_path, heard.append))
    assert [row.fields["label"] for row in rows] == ["cat", "cat", "dog"]
    assert [Path(row.place.file).name for row in rows] == ["a.png", "b.png", "2.png"]
    assert image_folder(tmp_path)
    assert not heard
    (tmp_path / "cat" / "c.png").write_bytes(b"?")
    (tmp_path / "cat" / "notes.txt").write_text("")
    (tmp_path / "empty").mkdir()
    assert len(list(read_image_folder(tmp_path, heard.append))) == 3
    assert [problem.reason.split(":")[0] for problem in heard] == [
        "byte 0",
        "expected a picture (.png, .pgm, .ppm, .jpg, .jpeg, .gif, .bmp, .tif, .tiff, .webp)",
        "the folder of this class is empty",
    ]
    (tmp_path / "texts" / "good").mkdir(parents=True)
    (tmp_path / "texts" / "good" / "1.txt").write_text("fine")
    assert not image_folder(tmp_path / "texts")
    with pytest.raises(DataError, match="found no folder"):
        list(read_image_folder(tmp_path / "empty", heard.append))


# --- idx ---------------------------------------------------------------------------------------


def idx(array: NDArray[np.uint8]) -> bytes:
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes((0, 0, 8, array.ndim)) + sizes + array.tobytes()


@pytest.mark.parametrize("packed", [True, False])
def test_idx_files_with_their_labels(packed: bool, tmp_path: Path) -> None:
    pictures = DRAW.integers(0, 256, (4, 3, 2), np.uint8)
    file = tmp_path / ("t-images-idx3-ubyte" + ".gz" * packed)
    file.write_bytes(gzip.compress(idx(pictures)) if packed else idx(pictures))
    assert (read_idx(file, 3) == pictures).all()
    rows = list(read_idx_pictures(file, labelled=False))
    assert [row.fields["label"] for row in rows] == [None] * 4
    with pytest.raises(DataError) as alone:
        list(read_idx_pictures(file))
    assert str(alone.value) == (
        f"{file}: expected the labels in t-labels-idx1-ubyte{'.gz' * packed} next to it, found no "
        "such file"
    )
    other = tmp_path / "t-labels-idx1-ubyte"  # packed or not, it is found
    other.write_bytes(idx(np.array([7, 0, 9], np.uint8)))
    assert labels_beside(file) == other
    with pytest.raises(DataError) as fewer:
        list(read_idx_pictures(file))
    assert str(fewer.value) == (
        f"{other}: expected 4 labels, one for each picture of {file.name}, got 3"
    )
    other.write_bytes(idx(np.array([7, 0, 9, 1], np.uint8)))
    records = list(read_idx_pictures(file))
    assert [row.fields["label"] for row in records] == ["7", "0", "9", "1"]
    assert (np.stack([row.fields["image"][0] for row in records]) == pictures).all()
    assert str(records[2].place) == f"{file}:3"


WHOLE = idx(np.zeros((2, 3, 2), np.uint8))
IDX_FAULTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "byte 0: expected 00 00 08 03, an idx file of bytes with 3 axes, got an empty"),
    "labels": (
        idx(np.zeros(5, np.uint8)),
        "byte 0: expected 00 00 08 03, an idx file of bytes with 3 axes, got 00 00 08 01",
    ),
    "no sizes": (WHOLE[:9], "byte 9: expected 3 sizes, the file ends before"),
    "cut": (
        WHOLE[:-5],
        "byte 23: expected 12 bytes for 2 × 3 × 2, got 7: the file is incomplete, copy it again",
    ),
    "more": (
        WHOLE + b"xyz",
        "byte 28: expected 12 bytes for 2 × 3 × 2, got more: what follows is unknown",
    ),
    "a cut gzip": (gzip.compress(WHOLE)[:-9], "the gzip data is cut off at byte"),
    "a bomb": (
        gzip.compress(WHOLE[:4] + struct.pack(">III", 2**10, 2**10, 2**12)),
        "byte 4: expected at most 1,073,741,824 bytes, got 1024 × 1024 × 4096",
    ),
    "packed without end": (
        gzip.compress(WHOLE + bytes(1 << 26)),
        "byte 28: expected 12 bytes for 2 × 3 × 2, got more: what follows is unknown",
    ),
}


def test_no_more_of_an_idx_file_is_unpacked_than_it_announces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, count = tmp_path / "t-images-idx3-ubyte", 0

    def endless(path: Path) -> Iterator[bytes]:
        nonlocal count
        yield WHOLE
        while True:
            count += 1
            yield bytes(1000)

    monkeypatch.setattr(idx_files, "pieces", endless)
    with pytest.raises(DataError, match="got more: what follows is unknown"):
        read_idx(file, 3)
    assert count == 1


@pytest.mark.parametrize("name", IDX_FAULTS)
def test_a_faulty_idx_file_says_where(name: str, tmp_path: Path) -> None:
    data, message = IDX_FAULTS[name]
    file = tmp_path / "t-images-idx3-ubyte"
    file.write_bytes(data)
    with pytest.raises(DataError) as error:
        read_idx(file, 3)
    assert str(error.value).startswith(f"{file}: {message}")


def test_mnist_as_it_is(data_folder: Path) -> None:
    real_mnist = data_folder / "mnist"
    pictures = read_idx(real_mnist / "t10k-images-idx3-ubyte.gz", 3)
    assert pictures.shape == (10_000, 28, 28)
    assert pictures.mean() / 255 == pytest.approx(0.1325, abs=1e-4)
    labels = read_idx(real_mnist / "t10k-labels-idx1-ubyte.gz", 1)
    assert np.bincount(labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
