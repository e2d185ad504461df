"""The classes of errors.

A message says what is wrong and where, what was expected and found, and what to do next. The
command line prints it unchanged and exits with 2. In Python, catch `EnsueError` for all of them, or
the built-in class that each also inherits from.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from numbers import Real

from ensue.escape import readable


class EnsueError(Exception):
    """An error that the caller of Ensue can fix. Quoted text in its message has control characters
    escaped."""

    def __init__(self, message: object = "") -> None:
        super().__init__(readable(str(message)))


class EquationError(EnsueError):
    """A cell's step that cannot be read as equations."""


class ShapeError(EnsueError, ValueError):
    """A tensor whose axes are not those expected."""


class OptionError(EnsueError, ValueError):
    """A name or option that does not exist, or a value that it cannot take."""


class DataError(EnsueError, ValueError):
    """Data that cannot be read or learned from."""


class Undecided(DataError):
    """Ambiguous data, which can be read in several ways. choices: the option for each reading; on
    the command line they follow the words of the command."""

    def __init__(self, message: str, choices: Mapping[str, str], call: str = "{}") -> None:
        self.message, self.choices = message, dict(choices)
        super().__init__(self.with_choices(call))

    def with_choices(self, call: str) -> str:
        """The message with a command for each choice. call: formats a choice as a command."""
        listed = [f"  {call.format(words)}\n      {what}" for what, words in self.choices.items()]
        return "\n".join([self.message, *listed])


class ConfigError(EnsueError, ValueError):
    """A configuration with unknown keys or values out of range."""


class RunError(EnsueError):
    """A run folder that cannot be used: occupied, changed, damaged or missing."""


class TrainingError(EnsueError):
    """A training that cannot continue: numbers that are not finite, or a batch that does not fit
    into memory."""


class JobError(EnsueError):
    """A job whose process was killed, or that failed with an unexpected exception."""


class OutOfMemory(EnsueError, MemoryError):
    """More memory is needed than there is."""


class MissingExtra(EnsueError, ImportError):
    """An optional package is needed and not installed."""


def check_rates(rates: Mapping[str, float]) -> None:
    """Checks dropout rates, by name: 0 ≤ rate < 1."""
    wrong = [
        f"{name}: expected 0 ≤ rate < 1, got {rate}"
        for name, rate in rates.items()
        if not isinstance(rate, Real) or not 0 <= rate < 1
    ]
    if wrong:
        raise OptionError("; ".join(wrong))


def unknown(what: str, got: str, known: Iterable[str]) -> OptionError:
    """The error for an unknown name, with the nearest known one.

    >>> print(unknown("cell", "lsmt", ["gru", "lstm"]))
    unknown cell 'lsmt': did you mean 'lstm'? Known: gru, lstm
    """
    names = sorted(known)
    lowered = {name.lower(): name for name in reversed(names)}
    near = get_close_matches(got.lower(), lowered, n=1)
    guess = f": did you mean {lowered[near[0]]!r}?" if near else "."
    return OptionError(f"unknown {what} {got!r}{guess} Known: {', '.join(names) or 'none'}")


# --- memory, as Python, numpy, torch and its allocators put it -----------------------------------

NO_MEMORY = ("not enough memory", "allocate memory", "out of memory")
ALLOCATED = re.compile(r"allocate ([\d.]+) ?(bytes|[KMGTPE]iB)", re.IGNORECASE)


def no_memory(error: BaseException) -> bool:
    words = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(phrase in words for phrase in NO_MEMORY)
    )


def memory_asked_for(error: BaseException) -> str:
    """The amount of memory that an allocator was asked for; "" if the error does not say.

    >>> memory_asked_for(RuntimeError("you tried to allocate 8589934592 bytes."))
    '8.0 GiB'
    """
    match = ALLOCATED.search(str(error))
    if match is None:
        return ""
    if match[2].lower() != "bytes":
        return f"{match[1]} {match[2]}"
    size, units = float(match[1]), ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    power = min(max(0, int(size).bit_length() - 1) // 10, len(units) - 1)
    return f"{size / 1024**power:.{int(power > 0)}f} {units[power]}"


def out_of_memory(error: BaseException) -> OutOfMemory:
    """Ensue's error for an exception that means a lack of memory, else None."""
    amount = memory_asked_for(error)
    detail = f": {amount} more were requested" if amount else ""
    return OutOfMemory(
        f"there is not enough memory{detail}. Next: free some, or use a smaller model "
        "(model.hidden_size) or smaller batches (model.batch_tokens)"
    )


@contextmanager
def enough_memory() -> Iterator[None]:
    """Converts exceptions that mean a lack of memory into `OutOfMemory`."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, EnsueError) or not no_memory(error):
            raise
        raise out_of_memory(error) from error
