"""The exported form of a task's model: networks with named inputs and outputs, and the steps of
preprocessing and postprocessing, from a closed table.

A step is a table of plain values with its name under "step". It reads and writes values by name: an
input begins as "question", and at the end every input of the network has a value. The steps before
the network, and what each of them writes:

    tokenise, join, pair              tokens of a text; text of tokens; two separate texts.
    look up, cut, count               token numbers; a limited number of tokens; their count.
    ngrams                            columns and values of a linear model.
    word parts, chain features        features of the spelling of words.
    vectors, scale                    unchanged numbers; scaled numbers.
    series                            last steps of a series, forecasts of the solved members.
    row, picture                      row of a table; bytes of a picture.
    begin                             word and state before a text.
    stream                            states before everything that is read.
    brackets                          nodes of a tree, and inputs of its first leaf.
    climb                             vectors of a tree's root, by a graph that goes up the tree.
    input                             one of several inputs, with steps on separate values.

The steps after the network: labels, number, chain (the best sequence of labels), surprise (of each
word), search (for the best text), steps ahead (in the units of the data), nodes (from the leaves of
a tree to its root).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.time.dates import (
    AUTO,
    CALLED_DATE,
    CALLED_UNIX,
    CLOCK,
    EITHER,
    MILLISECONDS,
    PATTERNS,
    SECONDS,
)
from ensue.data.tokenise import TOKENISERS, UNKNOWN_PIECE, WORD, Subwords, Tokeniser
from ensue.errors import OptionError

Step = Mapping[str, Any]
Rounding = Callable[[NDArray[np.float32]], NDArray[np.float32]]  # rounding of a stored matrix


@runtime_checkable
class Rounds(Protocol):
    """Learned values with matrices that an export stores next to the networks and may round."""

    def rounded(self, rounding: Rounding) -> Self: ...


L = TypeVar("L")


def rounded(learned: L, rounding: Rounding) -> L:
    """The learned values with these matrices rounded; unchanged without such matrices."""
    return learned.rounded(rounding) if isinstance(learned, Rounds) else learned


TIME, BATCH = "time", "batch"
EXAMPLE_SIZE = 4  # size of a free axis other than time and batch while tracing
MOST = 6  # sizes of such an axis in the grid


@dataclass(frozen=True)
class Input:
    """One input of a network. axes: names of free axes, sizes of the others. count: for integers,
    their exclusive limit, or the axis whose size is the limit; 0 for real numbers. steps_of: the
    axis whose real steps it counts."""

    name: str
    axes: tuple[str | int, ...]
    count: int | str = 0
    steps_of: str = ""

    @property
    def whole(self) -> bool:
        return bool(self.count or self.steps_of)

    def drawn(self, sizes: Mapping[str, int], generator: torch.Generator) -> Tensor:
        """Random values of these sizes, for comparisons."""
        shape = [sizes[ax] if isinstance(ax, str) else ax for ax in self.axes]
        if self.steps_of:
            return torch.randint(0, sizes[self.steps_of] + 1, shape, generator=generator)
        if isinstance(self.count, str):
            return torch.randint(0, sizes[self.count], shape, generator=generator)
        if self.count:
            return torch.randint(min(1, self.count - 1), self.count, shape, generator=generator)
        return torch.randn(shape, generator=generator)


LENGTHS = Input("lengths", (BATCH,), steps_of=TIME)


@dataclass(frozen=True)
class Graph:
    """A network that maps all inputs, in order, to the outputs."""

    name: str
    network: nn.Module
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]

    @property
    def axes(self) -> dict[str, list[str | None]]:
        """The axes of each input: the names of free axes, None for fixed ones."""
        return {
            graph_input.name: [axis if isinstance(axis, str) else None for axis in graph_input.axes]
            for graph_input in self.inputs
        }

    def drawn(self, time: int, lengths: Sequence[int], seed: int) -> dict[str, Tensor]:
        """Inputs of `time` steps, whose rows have these lengths; 0 beyond a row's end."""
        generator = torch.Generator().manual_seed(seed)
        sizes = {TIME: time, BATCH: len(lengths)}
        for axis in (
            axis
            for graph_input in self.inputs
            for axis in graph_input.axes
            if isinstance(axis, str)
        ):
            drawn = int(torch.randint(1, MOST, (), generator=generator))
            sizes.setdefault(axis, EXAMPLE_SIZE + len(sizes) if seed < 0 else drawn)
        tensors = {
            graph_input.name: graph_input.drawn(sizes, generator) for graph_input in self.inputs
        }
        known = {TIME: torch.tensor(lengths, dtype=torch.int64)}
        for graph_input in self.inputs:
            if graph_input.steps_of == TIME and graph_input.axes == (BATCH,):
                tensors[graph_input.name] = known[TIME].clone()
            elif graph_input.steps_of:
                known[graph_input.steps_of] = tensors[graph_input.name]
        for graph_input in self.inputs:
            if (
                len(graph_input.axes) > 1
                and graph_input.axes[0] in known
                and not graph_input.steps_of
            ):
                rows = known[str(graph_input.axes[0])]
                beyond = torch.arange(sizes[str(graph_input.axes[0])])[:, None] >= rows
                tensors[graph_input.name][beyond] = 0
        return tensors

    def example(self) -> dict[str, Tensor]:
        """Example tensors for tracing the network: every free axis has a different size."""
        return self.drawn(5, [5, 2, 3], seed=-1)


class Piecewise(NamedTuple):
    """A model that can read its input in pieces. joined: outputs with steps, which are
    concatenated; already: the networks already take and return their states."""

    joined: tuple[str, ...] = ()
    already: bool = False


@dataclass(frozen=True)
class Exported:
    """The exported form of a model. graphs: the first receives the question. before, after: steps
    around the graphs. piecewise: None if the model needs its whole input at once."""

    task: str
    graphs: tuple[Graph, ...]
    before: tuple[Step, ...]
    after: tuple[Step, ...]
    piecewise: Piecewise | None = None

    def description(self) -> dict[str, Any]:
        """The steps before and after, as JSON values."""
        return {
            "task": self.task,
            "graphs": {
                graph.name: {
                    "inputs": {
                        graph_input.name: list(graph_input.axes) for graph_input in graph.inputs
                    },
                    "whole": [
                        graph_input.name for graph_input in graph.inputs if graph_input.whole
                    ],
                    "outputs": list(graph.outputs),
                }
                for graph in self.graphs
            },
            "before": list(self.before),
            "after": list(self.after),
        }


# --- steps ---------------------------------------------------------------------------------------


def tokenise_step(tokeniser: Tokeniser, source: str = "question", to: str = "tokens") -> Step:
    """The step that tokenises text; it contains the patterns, so that readers need not know
    them."""
    kind, options = TOKENISERS[tokeniser.name], tokeniser.to_dict()
    options.pop("subwords")
    step = {"step": "tokenise", "from": source, "to": to, **options}
    if kind is None:
        assert tokeniser.subwords is not None
        return {**step, **_merges(tokeniser.subwords)}
    patterns = kind.patterns()
    return {**step, "pattern": patterns.any.pattern, "pattern_ascii": patterns.ascii.pattern}


def _merges(subwords: Subwords) -> dict[str, Any]:
    """The known letters of byte-pair encoding, and its merges in order."""
    loads = json.loads(subwords.definition)
    model, cut = loads["model"], loads["pre_tokenizer"] or {}
    plain = (
        model["type"] == "BPE"
        and cut.get("type") == "Metaspace"
        and cut.get("prepend_scheme") == "always"
        and loads["normalizer"] is None
        and not any(model.get(key) for key in ("fuse_unk", "byte_fallback", "ignore_merges"))
    )
    if not plain:
        raise refuse("subwords")
    pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
    return {
        "letters": "".join(sorted(token for token in model["vocab"] if len(token) == 1)),
        "merges": [" ".join(pair) for pair in pairs],
        "unknown": UNKNOWN_PIECE,
        "word": WORD,
    }


def joining(tokeniser: Tokeniser) -> dict[str, Any]:
    """The string that joins tokens to a text; for subwords, the mark of words."""
    kind = TOKENISERS[tokeniser.name]
    return {"between": "", "word": WORD} if kind is None else {"between": kind.between, "word": ""}


def look_up_step(vocabulary: Sequence[str], source: str = "tokens", to: str = "words") -> Step:
    """The step from tokens to indices: 0 is padding, 1 an unknown token."""
    return {"step": "look up", "from": source, "to": to, "vocabulary": list(vocabulary)}


def cut_step(name: str, max_length: int | None, cut: str) -> Step:
    return {"step": "cut", "from": name, "to": name, "max_length": max_length, "cut": cut}


def count_step(source: str, to: str = "lengths") -> Step:
    return {"step": "count", "from": source, "to": to}


def reads_of(column: str, order: str) -> dict[str, Any]:
    """The patterns of the times of a column."""
    units = ((1.0, SECONDS), (1e3, MILLISECONDS)) if CALLED_UNIX.fullmatch(column) else ()
    return {
        "patterns": [pattern + CLOCK for pattern in PATTERNS],
        "either": [pattern + CLOCK for name, pattern in EITHER.items() if order in (AUTO, name)],
        "unix": [[unit, list(bounds)] for unit, bounds in units],
        "compact": bool(CALLED_DATE.fullmatch(column)),
    }


# --- what cannot be ------------------------------------------------------------------------------

# by key: what is unsupported, and the alternative; printed in docs/reference/export.md
REFUSED: dict[str, tuple[str, str]] = {
    "task": (
        "a whole model of a custom task without `exported`",
        "export its layers with ensue.export.write",
    ),
    "input": (
        "a custom input without `question`",
        "export its layers with ensue.export.write",
    ),
    "target": (
        "a custom target without `answering`",
        "export its layers with ensue.export.write",
    ),
    "subwords": (
        "a subword tokeniser that is not byte-pair encoding as `ensue train` learns it",
        "train with --set text.level=subwords",
    ),
    "linear of trees": (
        "a linear model in the answer of trees (model.linear_share)",
        "train with --set model.linear_share=0",
    ),
    "ensemble": (
        "an ensemble of several models",
        "export one of them, a trial of the selection",
    ),
    "ngrams": (
        "n-grams of words next to the network (model.ngrams)",
        "train with --set model.linear=mixed",
    ),
    "previous label": (
        "an output that reads the label before (model.output = previous)",
        "train with --set model.output=crf",
    ),
    "letter context": (
        "a character language model next to the words of a labeller",
        "train without that base",
    ),
    "counted": (
        "an n-gram language model (model.family = ngram)",
        "train a network (model.family = recurrent)",
    ),
    "backward": (
        "a language model that reads from the right (model.direction = backward)",
        "train with --set model.direction=forward",
    ),
    "c": (
        "an operator that C does not have yet",
        "export it as ONNX or JavaScript",
    ),
    "javascript": ("an operator that JavaScript does not have yet", "export it as ONNX"),
    "both ways": (
        "streaming of a network that reads what comes after a step (bidirectional, transformer, "
        "convolution)",
        "train with --set model.encoder=recurrent --set model.bidirectional=false",
    ),
    "next words": (
        "streaming of a labeller whose linear chain reads the next words",
        "train with --set model.linear_share=0",
    ),
    "stream": (
        "streaming of this task: it has one answer for a whole input (a window of a series, "
        "a row, a picture, two texts), or already answers word by word",
        "export it without --streaming",
    ),
}


def refuse(key: str, where: str = "") -> OptionError:
    """The error for what a target cannot express, by name. where: the task, or the operator."""
    what, instead = REFUSED[key]
    where = f"{where}: " if where else ""
    return OptionError(
        f"export: {where}{what} cannot be exported; {instead}. docs/reference/export.md has a table"
    )
