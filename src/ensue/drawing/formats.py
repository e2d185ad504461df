"""Pictures as files: SVG directly, PNG and PDF with the extra `pictures`.

The extra installs vl-convert. It needs no system library, contains a sans-serif font, and the text
of its PDF files can be searched and copied.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ensue.drawing.theme import themed
from ensue.errors import MissingExtra, OptionError
from ensue.files.disk import refuse_target, write_whole

if TYPE_CHECKING:
    from types import ModuleType

SCALE = 2  # PNG pixels per unit of the picture
MOST_PIXELS = 1 << 27  # maximum pixels of a PNG: half a gigabyte of memory
SIZE = re.compile(r'<svg\b[^>]*? width="(\d+)" height="(\d+)"')
SMALLEST = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'


def _converter() -> ModuleType:
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra(
            "writing PNG and PDF needs vl-convert: pip install 'ensue[pictures]'; or name a file "
            "that ends in .svg"
        ) from None
    return vl_convert


def _png(svg: str) -> bytes:
    size = SIZE.search(svg)
    if size:
        wide, high = (SCALE * int(group) for group in size.groups())
        if wide * high > MOST_PIXELS:  # the converter would crash the process when memory runs out
            raise RuntimeError(f"at most {MOST_PIXELS:,} pixels, got {wide:,} × {high:,}")
    return bytes(_converter().svg_to_png(svg, ppi=72 * SCALE))


def _pdf(svg: str) -> bytes:
    return bytes(_converter().svg_to_pdf(svg))


FORMATS: dict[str, Callable[[str], bytes]] = {".svg": str.encode, ".png": _png, ".pdf": _pdf}
FIXED = (".png", ".pdf")  # these have one theme, light by default


def write(svg: str, path: str | Path, theme: str = "auto") -> None:
    """Writes a picture in the format of the file's ending: .svg, .png or .pdf. After an error the
    old file is unchanged. theme: `light`, `dark`, or `auto` (an SVG follows its reader, others are
    light).

    >>> from tempfile import TemporaryDirectory
    >>> from ensue.cells import GRU
    >>> with TemporaryDirectory() as folder:
    ...     write(GRU().equations().svg(), f"{folder}/gru.svg", theme="dark")
    """
    path = Path(path)
    check(path)
    ending = path.suffix.lower()
    picture = themed(svg, "light" if theme == "auto" and ending in FIXED else theme)
    try:
        data = FORMATS[ending](picture)
    except RuntimeError as problem:
        why = str(problem).partition("\n")[0]  # a backtrace follows
        raise OptionError(
            f"{path}: this picture cannot be written as {ending[1:].upper()}: {why}; name a "
            "file that ends in .svg"
        ) from problem
    write_whole(path, data)


def check(path: Path) -> None:
    """Raises an error if a picture cannot be written there; for use before a long computation."""
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise OptionError(
            f"{path}: expected a file name that ends in {', '.join(FORMATS)}, got "
            f"{repr(path.suffix) if path.suffix else 'none of them'}"
        )
    refuse_target(path)
    FORMATS[ending](SMALLEST)
