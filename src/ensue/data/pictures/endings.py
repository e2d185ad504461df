"""The endings of picture files."""

from __future__ import annotations

from pathlib import Path

PLAIN = (".png", ".pgm", ".ppm")  # read by Ensue itself
ENDINGS = (*PLAIN, ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp")


def is_image(path: Path) -> bool:
    return path.name.lower().endswith(ENDINGS)
