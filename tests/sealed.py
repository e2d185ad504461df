"""A run whose files are looked at in every way in which they decide or report something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ensue.errors import EnsueError
from ensue.files.atomic_folder import digest
from ensue.files.chain import Lines
from ensue.files.disk import OPENINGS
from ensue.files.run_folder import RunFolder
from ensue.runs.card import add_evaluations
from ensue.runs.data_files import split_still_holds
from ensue.runs.evaluations import read_rows
from ensue.runs.load import Loading, open_run
from ensue.runs.messages import Message
from ensue.runs.run import Run

# Of a finished run, what is no result: who holds it, and states before the last one, which
# resuming reads.
NOT_LOOKED_AT = ("lock", "checkpoints", "members", "refit")


def files_of(run: Path) -> list[Path]:
    """Every file that decides or reports a result, also those of openings next to the run."""
    inside = [file for file in sorted(run.rglob("*")) if file.is_file()]
    files_left = [file for file in inside if file.relative_to(run).parts[0] not in NOT_LOOKED_AT]
    return [*files_left, run.parent / OPENINGS]


def complaints(run: Path) -> list[str]:
    """The complaints about a finished run when all of it is checked; [] if it is as written."""
    messages: list[str] = []

    def say(message: Message) -> None:
        messages.append(message.text)

    def looked() -> Iterator[Callable[[], object]]:
        folder, reader = RunFolder(run), Run(run)
        yield reader.summary
        yield reader.history
        yield reader.timing
        yield lambda: [read_rows(folder, evaluation) for evaluation in reader.evaluations()]
        yield lambda: _refuse_forgotten(reader)
        yield lambda: open_run(folder, Loading(), say)
        yield lambda: split_still_holds(folder, reader.config)
        yield lambda: add_evaluations(folder, say)

    for look in looked():
        try:
            look()
        except EnsueError as error:
            messages.append(str(error))
    lines = Lines.of((run.parent / OPENINGS).read_bytes())
    messages += [f"line {number}" for number in (*lines.torn, *lines.wrong)]
    return messages


def _refuse_forgotten(run: Run) -> None:
    """Raise if the evaluation no longer counts: a user would miss it."""
    if not run.evaluations():
        raise EnsueError("the evaluation is not of this model")


def flipped(path: Path, at: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 1 << bit
    path.write_bytes(data)


def digests(folder: Path) -> dict[str, str]:
    """Of all that a folder holds."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file.relative_to(folder)): digest(file.read_bytes()) for file in files}
