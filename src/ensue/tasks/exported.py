"""What a task hands to an export: its network with named inputs and outputs, and what is done to
a question before it and to an answer after it, as steps of a closed table.

Steps of `before`: tokenise, look up, cut. Of `after`: labels. A step is a table of plain values,
with its name under "step", so that a file can carry it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ensue.data.tokenise import TOKENISERS, Tokeniser
from ensue.errors import OptionError

Step = Mapping[str, Any]
TIME, BATCH = "time", "batch"


@dataclass(frozen=True)
class Input:
    """One input of a network. axes: names of those that are free, sizes of the others; count: of
    whole numbers, which are smaller than it; 0 where they are real."""

    name: str
    axes: tuple[str | int, ...]
    count: int = 0

    def drawn(self, sizes: Mapping[str, int], generator: torch.Generator) -> Tensor:
        """Values of these sizes, to compare with."""
        shape = [sizes[own] if isinstance(own, str) else own for own in self.axes]
        if self.count:
            return torch.randint(1, self.count, shape, generator=generator)
        return torch.randn(shape, generator=generator)


@dataclass(frozen=True)
class Exported:
    """network: called with all inputs in order, and `lengths` (batch,) last, gives the outputs.
    members: the networks it is made of."""

    task: str
    network: nn.Module
    members: tuple[nn.Module, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    before: tuple[Step, ...]
    after: tuple[Step, ...]

    def drawn(self, time: int, lengths: Sequence[int], seed: int) -> dict[str, Tensor]:
        """Inputs of `time` steps, whose rows have these lengths; 0 beyond a row's end."""
        generator = torch.Generator().manual_seed(seed)
        sizes = {TIME: time, BATCH: len(lengths)}
        rows = torch.tensor(lengths, dtype=torch.int64)
        found = {own.name: own.drawn(sizes, generator) for own in self.inputs}
        for own in self.inputs:
            if own.axes[:2] == (TIME, BATCH):
                beyond = torch.arange(time)[:, None] >= rows
                found[own.name][beyond] = 0
        return {**found, "lengths": rows}

    def description(self) -> dict[str, Any]:
        """What is done before and after, as JSON holds it."""
        return {"task": self.task, "before": list(self.before), "after": list(self.after)}


def tokenise_step(tokeniser: Tokeniser) -> Step:
    """How text is cut: with the patterns, so that no reader has to know them."""
    kind = TOKENISERS[tokeniser.name]
    if kind is None:
        raise OptionError(
            "export: subword tokenisers cannot be exported yet; train with --set text.level=words"
        )
    patterns = kind.patterns()
    options = {k: v for k, v in tokeniser.to_dict().items() if k != "subwords"}
    return {
        "step": "tokenise",
        **options,
        "pattern": patterns.any.pattern,
        "pattern_ascii": patterns.ascii.pattern,
    }


def refuse(task: str, what: str, instead: str = "") -> OptionError:
    """The error for what no target can express, by name."""
    more = f"; {instead}" if instead else ""
    return OptionError(
        f"export: {task}: {what} cannot be exported{more}. docs/export.md has a table"
    )
