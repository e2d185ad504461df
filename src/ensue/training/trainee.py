"""The interfaces of models and data for the training loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

EVALUATION, REHEARSAL = -1, -2  # in place of a batch's number


@contextmanager
def seeded(seed: int, update: int, batch: int) -> Iterator[None]:
    """Inside the block, torch's random numbers follow from these three numbers. Afterwards torch's
    earlier state is restored."""
    digest = sha256(f"{seed} {update} {batch}".encode()).digest()
    number = int.from_bytes(digest[:8], "big") >> 1
    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    devices = range(torch.cuda.device_count()) if in_use else ()
    with torch.random.fork_rng(devices=devices):
        # torch.manual_seed also stores a stack trace for unused devices: 3 ms a call
        torch.default_generator.manual_seed(number)
        if in_use:
            torch.cuda.manual_seed_all(number)
        yield


Carried = Mapping[
    str, Tensor
]  # the state that a model passes from a batch to the next; {} at an epoch's start


class Trainee(Protocol):
    """A torch module whose call is its cost."""

    def __call__(self, batch: Any, carried: Carried) -> tuple[Tensor, Carried]:
        """The cost of a batch summed over its targets, a single number; and the state carried to
        the next batch (detached by the loop; {} for models that carry nothing)."""
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
        """The row indices of each batch of an epoch, in order."""
        ...

    def batch(self, rows: Sequence[int]) -> Any:
        """The batch in the form of the trainee."""
        ...

    def targets(self, rows: Sequence[int]) -> float:
        """The number of targets of the batch. The mean cost of an update is the summed cost of its
        batches divided by their targets."""
        ...

    def tokens(self, rows: Sequence[int]) -> float:
        """The number of input steps of the batch, the unit of speed."""
        ...

    def name(self, row: int) -> str:
        """The origin of a row, for messages: `reviews.csv:1041`."""
        ...


class Validation(Protocol):
    """A function that returns scores of the current model: {"cost": …, "accuracy": …}. The loop
    calls it in evaluation mode and without gradients."""

    def __call__(self) -> Mapping[str, float]: ...


@runtime_checkable
class Fingerprinted(Protocol):
    """A validation with a fingerprint: a resumed run must use the same validation data."""

    fingerprint: str  # sha256 of the data as encoded


@runtime_checkable
class Sampled(Protocol):
    """A validation that can score a single batch, for a quick trial."""

    def sample(self) -> Mapping[str, float]: ...
