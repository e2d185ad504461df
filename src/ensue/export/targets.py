"""The targets of an export: the files for a layer, and how they are run for the comparison."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from ensue.errors import OptionError
from ensue.export.c import CFile
from ensue.export.grid import Case, Outcome
from ensue.export.javascript import javascript_source
from ensue.export.onnx.builder import load_onnx
from ensue.export.onnx.layer import onnx_model
from ensue.export.onnx.run import run_onnx
from ensue.export.programs import CPrograms, NodePrograms, temporary_folder
from ensue.export.stack import Stack

NUMBERS = re.compile(r"\{((?:[^{},]+,){4})[^{}]*\}")  # a weight in the text of ONNX
Files = Mapping[str, bytes]  # by name; the first is the requested file


class Target(ABC):
    """A target. title: its name in messages; endings: the endings of its files."""

    title: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]

    @abstractmethod
    def files(self, stack: Stack, path: Path, batch_first: bool, separate: bool) -> Files:
        """The files to write. separate: weights in a separate file, if the target allows it."""

    @abstractmethod
    def outcomes(
        self, stack: Stack, cases: Sequence[Case], batch_first: bool
    ) -> Iterator[list[Outcome]]:
        """The export's results for the cases, once for each way to run it."""

    def lines(self, stack: Stack) -> list[str]:
        """Remarks on the file for the user."""
        return []


class OnnxTarget(Target):
    title, endings = "ONNX", (".onnx",)

    def files(self, stack: Stack, path: Path, batch_first: bool, separate: bool) -> Files:
        return {path.name: onnx_model(stack, batch_first).SerializeToString()}

    def outcomes(
        self, stack: Stack, cases: Sequence[Case], batch_first: bool
    ) -> Iterator[list[Outcome]]:
        yield run_onnx(onnx_model(stack, batch_first), stack, cases, batch_first)


class CTarget(Target):
    title, endings = "C", (".c",)

    def files(self, stack: Stack, path: Path, batch_first: bool, separate: bool) -> Files:
        name = _identifier(path)
        source = CFile(stack, name)
        if not separate:
            return {path.name: source.text().encode()}
        return {
            path.name: source.text(f"{path.stem}_weights.h").encode(),
            f"{path.stem}_weights.h": ("\n".join(source.weights()) + "\n").encode(),
        }

    def outcomes(
        self, stack: Stack, cases: Sequence[Case], batch_first: bool
    ) -> Iterator[list[Outcome]]:
        source = CFile(stack, "model0")
        with temporary_folder() as folder:
            made = CPrograms(Path(folder), [source.text()], [stack], [source.code.work_per_step])
            yield from _each_mode(made, stack, cases)

    def lines(self, stack: Stack) -> list[str]:
        source = CFile(stack, "model")
        per_step = f", and {4 * source.code.work_per_step} for each step of a sequence"
        more = per_step if source.code.work_per_step else ""
        return [f"flash: {source.flash:,} bytes of weights; RAM: {source.ram:,} bytes{more}"]


class JavaScriptTarget(Target):
    title, endings = "JavaScript", (".js", ".mjs")

    def files(self, stack: Stack, path: Path, batch_first: bool, separate: bool) -> Files:
        return {path.name: javascript_source(stack).encode()}

    def outcomes(
        self, stack: Stack, cases: Sequence[Case], batch_first: bool
    ) -> Iterator[list[Outcome]]:
        with temporary_folder() as folder:
            made = NodePrograms(Path(folder), [javascript_source(stack)], [stack])
            yield from _each_mode(made, stack, cases)


def _each_mode(
    made: CPrograms | NodePrograms, stack: Stack, cases: Sequence[Case]
) -> Iterator[list[Outcome]]:
    """Runs whole sequences and, if the stack can stream, single steps."""
    yield made.run([cases])[0]
    if stack.streams:
        yield made.run([cases], mode=1)[0]


def _identifier(path: Path) -> str:
    """The prefix of functions in C: the file's name as a valid identifier."""
    letters = "".join(
        letter if letter.isascii() and letter.isalnum() else "_" for letter in path.stem
    )
    return letters if letters[:1].isalpha() else f"model_{letters}"


TARGETS: dict[str, Target] = {
    "onnx": OnnxTarget(),
    "c": CTarget(),
    "javascript": JavaScriptTarget(),
}


def target_of(path: Path) -> Target:
    """The target for a file's ending."""
    for target in TARGETS.values():
        if path.suffix in target.endings:
            return target
    known = ", ".join(ending for row in TARGETS.values() for ending in row.endings)
    raise OptionError(f"{path}: expected a file that ends in {known}, got {path.suffix!r}")


def as_text(stack: Stack, name: str) -> str:
    """The files of a layer as text for reading."""
    if name == "onnx":
        return NUMBERS.sub(r"{\1, …}", load_onnx().printer.to_text(onnx_model(stack)))
    if name == "c":
        return CFile(stack, "model").abridged()
    return javascript_source(stack, abridged=True)
