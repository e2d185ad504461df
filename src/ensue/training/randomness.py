"""Random draws that follow from where they are made, and from nothing that came before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

import torch

EVALUATION, REHEARSAL = -1, -2  # in place of a batch's number


@contextmanager
def seeded(seed: int, update: int, batch: int) -> Iterator[None]:
    """Inside, torch draws what follows from the three numbers; afterwards what it would have."""
    digest = sha256(f"{seed} {update} {batch}".encode()).digest()
    number = int.from_bytes(digest[:8], "big") >> 1
    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    devices = range(torch.cuda.device_count()) if in_use else ()
    with torch.random.fork_rng(devices=devices):
        # torch.manual_seed remembers a stack trace for devices that are never used: 3 ms a call
        torch.default_generator.manual_seed(number)
        if in_use:
            torch.cuda.manual_seed_all(number)
        yield
