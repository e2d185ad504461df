"""A line that the user types in the terminal, with suggestions for the next word below it."""

from __future__ import annotations

import os
import shutil
import sys
import termios
import tty
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ensue.escape import printable

if TYPE_CHECKING:
    from ensue.tasks.abilities import Suggestion

TAB, ENTER, ERASE, ESCAPE = "\t", ("\r", "\n"), ("\x7f", "\b"), "\x1b"
INTERRUPT, END_OF_INPUT = "\x03", "\x04"


def type_with_suggestions(suggestions: Callable[[str], Sequence[Suggestion]]) -> str:
    """The line that the user types. suggestions: a function from the typed text to suggestions for
    the next word. Ctrl-C raises KeyboardInterrupt."""
    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    text = ""
    try:
        tty.setraw(handle)
        while True:
            likely = suggestions(text)
            _draw(text, likely)
            key = _key(handle)
            if key in ENTER or key == END_OF_INPUT:
                return text
            if key == INTERRUPT:
                raise KeyboardInterrupt
            text = _typed(text, key, likely)
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)
        sys.stdout.write("\r\x1b[J")
        sys.stdout.flush()


def _key(handle: int) -> str:
    """One character, or a whole escape sequence as ESCAPE."""
    data = os.read(handle, 1)
    if data == ESCAPE.encode():
        os.set_blocking(handle, False)
        try:
            os.read(handle, 16)
        except BlockingIOError:
            pass
        finally:
            os.set_blocking(handle, True)
        return ESCAPE
    while True:  # the rest of a character of several bytes
        try:
            return data.decode()
        except UnicodeDecodeError:
            if len(data) >= 4:
                return ""
            data += os.read(handle, 1)


def _typed(text: str, key: str, likely: Sequence[Suggestion]) -> str:
    """The line after a key; Tab replaces a word that is begun by the first suggestion."""
    if key in ERASE:
        return text[:-1]
    if key == TAB:
        if not likely:
            return text
        return f"{text[: text.rfind(' ') + 1]}{likely[0].token} "
    return text + key if key.isprintable() else text


def _draw(text: str, suggestions: Sequence[Suggestion]) -> None:
    """The line, and under it a bar for each suggestion; the cursor stays at its end."""
    width = shutil.get_terminal_size().columns
    end_of_text = text[-(width - 3) :]
    rows = [(printable(token), p) for token, p in suggestions]
    longest = max([len(token) for token, _ in rows], default=0)
    room = max(10, width - longest - 12)
    lines = [f"  {token:<{longest}}  {p:6.1%} {'█' * round(p * room)}" for token, p in rows]
    below = "".join(f"\r\n{line[: width - 1]}" for line in lines)
    up = f"\x1b[{len(lines)}A" if lines else ""
    sys.stdout.write(f"\r\x1b[J> {end_of_text}{below}{up}\r\x1b[{len(end_of_text) + 2}C")
    sys.stdout.flush()
