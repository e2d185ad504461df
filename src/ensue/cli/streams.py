"""The standard streams of a command: they survive broken pipes.

Output that cannot be written is dropped, and the work continues: a training runs to its end. The
exit code then says that part of the answer is missing.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from ensue.errors import DataError
from ensue.files.opening import TYPED_LINE

STDIN, STDOUT, STDERR = range(3)
MISSING = 2  # exit code: part of the answer could not be written


class Output(io.RawIOBase):
    """Writes to a descriptor and never fails. lost: the last error that dropped output."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self.lost: OSError | None = None
        self.may_be_lost = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: bytes) -> int:  # type: ignore[override]
        while True:
            try:
                return os.write(self._descriptor, data)
            except BlockingIOError:  # another program made the pipe non-blocking
                select.select([], [self._descriptor], [])
            except OSError as error:
                if not self.may_be_lost:
                    self.lost = error
                return len(data)

    @property
    def misses(self) -> OSError | None:
        """The error that lost part of the answer; None for a broken pipe: its reader has left."""
        return self.lost if self.lost is not None and self.lost.errno != errno.EPIPE else None


@contextmanager
def steady_streams() -> Iterator[Output | None]:
    """Makes the streams of the process survive errors inside the block; yields the standard output,
    None if the caller has replaced it."""
    _occupy_closed()
    before = sys.stdin, sys.stdout, sys.stderr
    if before[STDIN] is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(STDIN, closefd=False)), "utf-8")
    out = None
    if before[STDOUT] is sys.__stdout__:
        out = Output(STDOUT)
        sys.stdout = _text(out, before[STDOUT])
    if before[STDERR] is sys.__stderr__:
        sys.stderr = _text(Output(STDERR), before[STDERR], line_buffering=True)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # σ on an ASCII terminal must not be an error
            stream.reconfigure(errors="backslashreplace")
    try:
        yield out
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdin, sys.stdout, sys.stderr = before


def _occupy_closed() -> None:
    """A stream that is closed gets a descriptor that can be neither read nor written: else the next
    file would get it, and what a library writes to the stream would go into that file."""
    for descriptor, flags in {STDIN: os.O_WRONLY, STDOUT: os.O_RDONLY, STDERR: os.O_RDONLY}.items():
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)


def _text(raw: Output, stream: TextIO | None, line_buffering: bool = False) -> io.TextIOWrapper:
    """A text stream, in the encoding of the stream that it replaces."""
    encoding = "utf-8" if stream is None else stream.encoding
    buffered = io.BufferedWriter(raw)  # type: ignore[type-var]
    return io.TextIOWrapper(buffered, encoding, line_buffering=line_buffering or raw.isatty())


def _own_output() -> Output | None:
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, Output) else None


def nobody_reads() -> bool:
    """Whether the program that reads the standard output has closed it. Further answers are then
    lost."""
    out = _own_output()
    return out is not None and out.lost is not None


@contextmanager
def may_be_lost() -> Iterator[None]:
    """Output inside the block may be lost without an error: it repeats what files contain."""
    out = _own_output()
    if out is None:
        yield
        return
    sys.stdout.flush()
    out.may_be_lost = True
    try:
        yield
        sys.stdout.flush()
    finally:
        out.may_be_lost = False


def exit_code(code: int, out: Output | None) -> int:
    """The exit code of a command: its code, or MISSING if it succeeded but its answer was lost."""
    sys.stdout.flush()
    if out is None or out.misses is None or code:
        return code
    print(
        f"standard output: cannot be written to ({out.misses.strerror}): part of the answer is "
        "missing; write it to another file, or make room",
        file=sys.stderr,
    )
    return MISSING


def input_lines() -> Iterator[str]:
    """The lines of the standard input, which is UTF-8 whatever the terminal says."""
    number = 0
    try:
        while line := sys.stdin.buffer.readline(TYPED_LINE + 1):
            number += 1
            if len(line) > TYPED_LINE:
                raise DataError(
                    f"standard input:{number}: expected a line of at most {TYPED_LINE:,} bytes, "
                    "got more: write it to a file"
                )
            text = line.decode().rstrip("\r\n")
            yield text.removeprefix("\ufeff") if number == 1 else text
    except UnicodeDecodeError as error:
        raise DataError(
            f"standard input:{number}: 0x{error.object[error.start]:02X} is not utf-8: convert it "
            "(iconv -t utf-8), or give a file to a run that was trained with --encoding"
        ) from None
    except OSError as error:
        raise DataError(
            f"standard input: cannot be read ({error.strerror}): name a file, or pipe lines into it"
        ) from None
