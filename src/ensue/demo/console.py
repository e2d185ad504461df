"""The layout of a demo in a terminal, and its threads."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from ensue import __version__

WIDEST, NO_TERMINAL = 96, 88  # columns


def begin(sentence: str) -> Console:
    """Makes a console on stdout and prints the first lines."""
    console = Console(highlight=False)
    console.width = min(console.width, WIDEST) if console.is_terminal else NO_TERMINAL
    console.print(Rule(f"[bold]Ensue {__version__}[/]", align="left", style="blue"))
    console.print(f"{sentence}\n")
    return console


def heading(console: Console, number: int, title: str) -> None:
    console.print(Text.assemble((f" {number} ", "bold white on blue"), (f" {title}", "bold")))
    console.print()


def indented(console: Console, what: RenderableType, after: int = 1) -> None:
    console.print(Padding(what, (0, 0, after, 4), expand=False))


def note(console: Console, text: str) -> None:
    """Prints a remark below a result."""
    indented(console, Text(textwrap.fill(" ".join(text.split()), console.width - 8), style="dim"))


@contextmanager
def one_thread() -> Iterator[None]:
    """Tensors this small are slower on several threads, which then wait for one another."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def one_thread_each() -> dict[str, str]:
    """The environment of a parallel process: one thread."""
    return {**os.environ, "OMP_NUM_THREADS": "1"}
