"""Errors of tracing, with the line of the author's code that caused them."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import FrameType

import torch

from ensue.errors import EquationError

_OURS = (str(Path(__file__).parent), str(Path(torch.__file__).parent))


class UntraceableAttribute(EquationError, AttributeError):
    """An attribute that a symbol does not have; also an AttributeError, so `hasattr` works."""


def _author_frames() -> list[FrameType]:
    """The frames outside Ensue's equations and torch, innermost first, up to `step`."""
    frame: FrameType | None = sys._getframe(1)
    found = []
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_OURS):
            found.append(frame)
        if frame.f_code.co_name in ("step", "output"):
            break
        frame = frame.f_back
    return found


def _line(frame: FrameType) -> str:
    path, number = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(path, number).strip()
    place = f"{Path(path).name}:{number}, in {frame.f_code.co_name}"
    return f"{place}\n    {text}" if text else place


def blame(problem: str, instead: str, kind: type[EquationError] = EquationError) -> EquationError:
    """The error to raise: where in the author's step, what is wrong, what to write instead."""
    frames = _author_frames()
    lines = [_line(f) for f in dict.fromkeys([frames[0], frames[-1]])] if frames else []
    called = f"\n  called from {lines[1]}" if len(lines) > 1 else ""
    where = f"{lines[0]}{called}\n  " if lines else ""
    return kind(f"{where}{problem}\n  {instead}")
