"""What the loop sees of a model and of its data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

EVALUATION, REHEARSAL = -1, -2  # instead of a batch's number


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


Carried = Mapping[
    str, Tensor
]  # what a model hands from a batch to the next; {} at an epoch's start


class Trainee(Protocol):
    """A torch module whose call is its cost."""

    def __call__(self, batch: Any, carried: Carried) -> tuple[Tensor, Carried]:
        """The cost of a batch summed over its targets, one number, and what is carried on
        (detached by the loop; {} for models that carry nothing)."""
        ...

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]: ...

    def state_dict(self) -> dict[str, Tensor]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any: ...

    def train(self, mode: bool = True) -> Any: ...


class Source(Protocol):
    """Training data. Batches are sequences of row numbers; their order is a pure function of
    the seed and the epoch."""

    fingerprint: str  # sha256 of the data as encoded

    def batches(self, epoch: int) -> Sequence[Sequence[int]]:
        """The row numbers of each batch of an epoch, in order."""
        ...

    def batch(self, rows: Sequence[int]) -> Any:
        """The batch itself, as the trainee takes it."""
        ...

    def targets(self, rows: Sequence[int]) -> float:
        """How many targets the batch has: the mean cost of an update is the sum over its
        batches divided by the sum of this."""
        ...

    def tokens(self, rows: Sequence[int]) -> float:
        """How many steps of input the batch has: what speed is counted in."""
        ...

    def name(self, row: int) -> str:
        """The origin of a row, for messages: `reviews.csv:1041`."""
        ...


class Validation(Protocol):
    """Scores of the current model: {"cost": …, "accuracy": …}. The loop calls it in evaluation mode
    and without gradients."""

    def __call__(self) -> Mapping[str, float]: ...


@runtime_checkable
class Fingerprinted(Protocol):
    """A validation with a fingerprint: a resumed run must use the same validation data."""

    fingerprint: str  # sha256 of the data as encoded


@runtime_checkable
class Sampled(Protocol):
    """A validation that can score one batch alone, so that trying it out takes no time."""

    def sample(self) -> Mapping[str, float]: ...
