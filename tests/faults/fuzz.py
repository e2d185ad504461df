"""The command: make fuzz MINUTES=5 ARGS="--only csv".

Hypothesis looks for files that a reader or a loader does not refuse properly, and makes each as
small as it can. Finds are kept in `finds/`, one file each, which `make test` reads ever after. Ends
with 1 if there are new ones."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from faults.campaign import FINE, Outcome
from faults.files import read_one
from faults.loaders import loaders
from faults.mutate import NUMBERS, TOKENS
from faults.readers import Reader, packed, readers

FINDS = Path(__file__).with_name("finds")
ROUND = 100  # examples of a reader before the next one has its turn


def everything() -> dict[str, Reader]:
    """Readers and loaders by name."""
    return {reader.name: reader for reader in (*readers(), *loaders())}


def edits() -> st.SearchStrategy[list[tuple[float, float, bytes]]]:
    """Where an edit begins and how much it replaces, as shares of the file, and by what."""
    numbers = [str(number).encode() for number in NUMBERS]
    token = st.one_of(st.sampled_from([*TOKENS, *numbers]), st.binary(max_size=12))
    share = st.floats(0, 1, allow_nan=False)
    return st.lists(st.tuples(share, share, token), min_size=1, max_size=4)


def edited(data: bytes, changes: Sequence[tuple[float, float, bytes]]) -> bytes:
    for begin, length, token in changes:
        at = round(begin * len(data))
        data = data[:at] + token + data[at + round(length**4 * (len(data) - at)) :]
    return data


class Occurrence(AssertionError):
    """A file that a reader does not refuse properly."""


def look(reader: Reader, place: Path, seed: int, examples: int) -> tuple[bytes, Outcome] | None:
    """The smallest such file of some examples."""
    last: list[tuple[bytes, Outcome]] = []

    @seeded(seed)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(reader.clean), edits(), st.booleans())
    def holds(clean: bytes, changes: list[tuple[float, float, bytes]], inside: bool) -> None:
        if reader.packed:
            data = packed(edited(clean, changes)) if inside else edited(packed(clean), changes)
        else:
            data = edited(clean, changes)
        outcome = read_one(place, reader, data)
        if outcome.kind != FINE:
            last[:] = [(data, outcome)]
            raise Occurrence(outcome.what)

    try:
        holds()
    except Occurrence:
        return last[0]
    return None


def folder_of(reader: Reader) -> str:
    return reader.name.replace(" ", "-")


def keep(reader: Reader, data: bytes, finds: Path = FINDS) -> Path:
    """The file as a case: named after its reader and its content."""
    folder = finds / folder_of(reader)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{sha256(data).hexdigest()[:12]}.bin"
    path.write_bytes(data)
    return path


def main(given_words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="printed, to repeat")
    parser.add_argument("--only", default="", help="readers whose names have this in them")
    how = parser.parse_args(given_words)
    table = [reader for reader in everything().values() if how.only in reader.name]
    until, seed, count, failed = time.monotonic() + 60 * how.minutes, how.seed, 0, set[str]()
    print(f"{len(table)} readers and loaders, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < until:
            seed += 1
            for reader in table:
                if time.monotonic() >= until:
                    break
                count += ROUND
                got = None if reader.name in failed else look(reader, Path(folder), seed, ROUND)
                if got is not None:
                    failed.add(reader.name)
                    path = keep(reader, got[0])
                    print(f"{reader.name}: {got[1].kind}: {got[1].what}\n  {path}", flush=True)
    print(f"{count:,} files, {len(failed)} readers with a find")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
