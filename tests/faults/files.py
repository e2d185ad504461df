"""Mutated data files through every reader: rows, problems or one error of ours, and soon."""

from __future__ import annotations

import random
import traceback
from pathlib import Path

from ensue.errors import EnsueError
from faults.campaign import FINE, HANG, SILENT, TRACEBACK, Campaign, Case, Outcome
from faults.limits import Hangs, limit_memory, processor_seconds
from faults.mutate import mutated
from faults.readers import Counted, Reader, packed, readers

SECONDS = 10.0  # of processor time for one file
MEMORY = 512 << 20  # bytes more than the process has
LONGEST = 40_000  # characters of a message


def begin(work: Path, place: Path) -> Case:
    table = readers()
    for reader in table:
        for data in reader.clean:
            read_one(place, reader, packed(data) if reader.packed else data)
    limit_memory(MEMORY)

    def case(draw: random.Random) -> Outcome:
        reader = draw.choice(table)
        data, what = mutated_file(reader, draw)
        outcome = read_one(place, reader, data)
        return outcome._replace(
            what=f"{reader.name}: {what}{': ' * bool(outcome.what)}{outcome.what}"
        )

    return case


def mutated_file(reader: Reader, draw: random.Random) -> tuple[bytes, str]:
    """A file for a reader; of a packed one, what is inside or what is around it is changed."""
    clean = draw.choice(reader.clean)
    if not reader.packed:
        return mutated(clean, draw, reader.clean)
    if draw.random() < 0.5:
        data, what = mutated(clean, draw, reader.clean)
        return packed(data), f"inside, {what}"
    data, what = mutated(packed(clean), draw, [packed(content) for content in reader.clean])
    return data, f"around, {what}"


def read_one(place: Path, reader: Reader, data: bytes) -> Outcome:
    """What becomes of a file."""
    path = place / reader.file
    path.write_bytes(data)
    try:
        with processor_seconds(SECONDS):
            counts = reader.read(path)
        if isinstance(counts, Counted):
            return lost_rows(counts, reader.count(data))
    except EnsueError as error:
        if len(str(error)) > LONGEST:
            return Outcome(TRACEBACK, f"a message of {len(str(error)):,} characters")
    except Hangs:
        return Outcome(HANG, f"over {SECONDS:.0f} s of processor time")
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return Outcome(TRACEBACK, f"{type(error).__name__} at {where}: {str(error)[:200]}")
    return Outcome(FINE, "")


def lost_rows(counts: Counted, expected: int | None) -> Outcome:
    """Whether rows were lost without a word: those given and those rejected are all that there are.
    expected: None if only the reader can tell."""
    accepted, rejected, whole = counts
    if not whole or expected is None:
        return Outcome(FINE, "")
    if accepted + rejected != expected:
        sums = f"{accepted} rows and {rejected} rejected"
        return Outcome(SILENT, f"{sums}, of {expected} in the file")
    return Outcome(FINE, "")


FILES = Campaign("files", 50_000, 60.0, begin)
