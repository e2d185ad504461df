"""The author's code while it runs on symbols: which frames are theirs, and where they stand."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

STEP = ("step", "output")
_LIBRARIES = ("ensue.equations.", "torch.", "numpy.", "functools.", "contextlib.")
_COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")

# (code, line): a place that can still be told when its frame is gone
Place = tuple[CodeType, int]


def is_author(frame: FrameType) -> bool:
    """Neither Ensue's equations nor a library, and more than a comprehension in a function."""
    module = f"{frame.f_globals.get('__name__')}."
    return not module.startswith(_LIBRARIES) and frame.f_code.co_name not in _COMPREHENSIONS


def _stack() -> Iterator[FrameType]:
    """All frames that run now, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def author_frames() -> list[FrameType]:
    """The author's frames, innermost first, up to the step; outside a step the innermost alone."""
    found = []
    for frame in _stack():
        if is_author(frame):
            found.append(frame)
            if frame.f_code.co_name in STEP:
                return found
    return found[:1]


def places_of(traceback: TracebackType | None) -> list[Place]:
    """The author's places that an error came through, innermost first, up to the step."""
    found: list[Place] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_author(traceback.tb_frame):
            found = [] if code.co_name in STEP else found
            found.append((code, traceback.tb_lineno))
        traceback = traceback.tb_next
    return found[::-1]


def place_of(function: Callable[..., Any]) -> list[Place]:
    """Where a function begins, if it is one of Python's."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return [(code, code.co_firstlineno)] if code else []


def _show(place: Place) -> str:
    code, number = place
    text = linecache.getline(code.co_filename, number).strip()
    where = f"{Path(code.co_filename).name}:{number}, in {code.co_name}"
    return f"{where}\n    {text}" if text else where


def show_places(places: list[Place]) -> str:
    """Where: the innermost place with its line, and the outermost that led to it."""
    if not places:
        return ""
    lines = [_show(p) for p in dict.fromkeys((places[0], places[-1]))]
    return "\n  called from ".join(lines) + "\n  "


class Watch:
    """While active, keeps the frames in which symbols are made: their variables stay readable
    after they have returned. (No profiling hook: it would disturb a profiler that runs.)"""

    def __init__(self) -> None:
        self.frames: dict[FrameType, None] = {}
        self.called: FrameType | None = None  # the outermost step that has made a symbol

    def __enter__(self) -> Watch:
        self._entered, self._token = sys._getframe(1), _WATCH.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _WATCH.reset(self._token)
        del self._entered

    def notice(self) -> None:
        for frame in _stack():
            if frame is self._entered:
                break
            if is_author(frame):
                self.frames.setdefault(frame)
                if frame.f_code.co_name in STEP:
                    self.called = frame


_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


def notice() -> None:
    """Tells the active watch, if any, that the author's code makes a symbol."""
    watch = _WATCH.get()
    if watch is not None:
        watch.notice()
