"""What can go wrong, by name.

A message says what is wrong, where, what was expected, what came instead, and what to do
next. The command line prints it as it stands and exits with 2; in Python, a caller catches
`EnsueError` for all of them, or the built-in error that the kind also is.
"""

from collections.abc import Iterable
from difflib import get_close_matches

from ensue.escape import readable


class EnsueError(Exception):
    """Anything that the person who called Ensue can put right. What its message quotes is shown
    with control characters written out."""

    def __init__(self, message: object = "") -> None:
        super().__init__(readable(str(message)))


class EquationError(EnsueError):
    """A cell's step that cannot be read as equations."""


class ShapeError(EnsueError, ValueError):
    """A tensor whose axes are not those expected."""


class OptionError(EnsueError, ValueError):
    """A name or option that does not exist, or a value that it cannot take."""


class DataError(EnsueError, ValueError):
    """Data that cannot be read, or cannot be learned from."""


class ConfigError(EnsueError, ValueError):
    """A configuration with unknown keys or values out of range."""


class RunError(EnsueError):
    """A run folder that cannot be used as asked: taken, changed, damaged, or not there."""


class TrainingError(EnsueError):
    """A training that cannot go on: numbers that are not finite, a batch that does not fit."""


class MissingExtra(EnsueError, ImportError):
    """An optional package is needed and not installed."""


def unknown(what: str, got: str, known: Iterable[str]) -> OptionError:
    """The error for a name that is in no table, with the nearest known one.

    >>> print(unknown("cell", "lsmt", ["gru", "lstm"]))
    unknown cell 'lsmt': did you mean 'lstm'? Known: gru, lstm
    """
    names = sorted(known)
    lowered = {name.lower(): name for name in reversed(names)}
    near = get_close_matches(got.lower(), lowered, n=1)
    guess = f": did you mean {lowered[near[0]]!r}?" if near else "."
    return OptionError(f"unknown {what} {got!r}{guess} Known: {', '.join(names) or 'none'}")
