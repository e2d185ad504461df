"""Networks that generate a text, for export: the encoder of a source, and one step of a search.

    encode   source, lengths        → the state before the first word, and the memory of all steps
    step     word, state, memory    → log p of each word, the new state, the attention

A search has several hypotheses for each source; the memory is repeated for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ensue.data.vocabulary import END_NUMBER, START_NUMBER
from ensue.decoding import Shared
from ensue.tasks.any_model import AnyModel
from ensue.tasks.exported import BATCH, LENGTHS, TIME, Exported, Graph, Input, Step, joining
from ensue.tasks.seq2seq.pairs import pair_networks
from ensue.tasks.seq2seq.search import NEVER, Search, mean_log
from ensue.tasks.seq2seq.source import SourceQuestion
from ensue.tasks.seq2seq.target import LearnedTarget

PAST = "past"  # name of an axis that grows with every step
Tensors = list[Tensor]


class Parts(NamedTuple):
    """The tensors of a state: those that a step changes, and those that it only reads."""

    changing: Tensors
    shared: Tensors


def parts_of(state: Any) -> Parts:
    """The tensors of a state, without masks, which follow from the lengths."""
    parts = Parts([], [])
    _collect(state, parts)
    return parts


def _collect(state: Any, parts: Parts) -> None:
    if isinstance(state, Tensor):
        parts.changing.append(state)
    elif isinstance(state, Shared):
        if state.values.dtype != torch.bool:
            parts.shared.append(state.values)
    elif isinstance(state, (tuple, list)):
        for part in state:
            _collect(part, parts)


def rebuilt(like: Any, changing: Tensors, shared: Tensors, real: Tensor) -> Any:
    """A state of the same kind with other tensors, taken from the lists."""
    if isinstance(like, Tensor):
        return changing.pop(0)
    if isinstance(like, Shared):
        return Shared(real if like.values.dtype == torch.bool else shared.pop(0))
    if isinstance(like, (tuple, list)):
        parts = [rebuilt(part, changing, shared, real) for part in like]
        return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)
    return like


class Encode(nn.Module):
    """The encoder of an export. read: gives source and lengths of the inputs."""

    def __init__(
        self, members: Sequence[nn.Module], read: Callable[..., tuple[Tensor, Tensor]]
    ) -> None:
        super().__init__()
        self.members, self.read = nn.ModuleList(members), read

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        source, lengths = self.read(*inputs)
        results: Tensors = []
        for member in self.members:
            parts = parts_of(member.begin(source, lengths))  # type: ignore[operator]
            results += [*parts.changing, *parts.shared]
        return tuple(results)


class OneStep(nn.Module):
    """One step; p is the mean over the members. positions: number of positions of the memory, if it
    is fixed."""

    def __init__(self, members: Sequence[Any], begun: Sequence[Any], positions: int) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.begun, self.positions = list(begun), positions

    def forward(self, words: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        rest = list(tensors)
        lengths = None if self.positions else rest.pop(0)
        logs, states, looked = [], list[Tensor](), []
        for member, like in zip(self.members, self.begun, strict=True):
            count = parts_of(like)
            changing = [rest.pop(0) for _ in count.changing]
            shared = [rest.pop(0) for _ in count.shared]
            real = self._real(words, lengths, shared)
            log, state = member.step(words, rebuilt(like, changing, shared, real))  # type: ignore[operator]
            weights = member.alignment(state)  # type: ignore[operator]
            looked += [] if weights is None else [weights]
            logs.append(log)
            names = [name for name in ("weights", "looked") if hasattr(state, name)]
            states += parts_of(state._replace(**dict.fromkeys(names))).changing
        log = logs[0] if len(logs) == 1 else mean_log(logs)
        log = log.index_fill(1, NEVER, -torch.inf)
        return (log, *states, *([torch.stack(looked).mean(0)] if looked else []))

    def _real(self, words: Tensor, lengths: Tensor | None, shared: Tensors) -> Tensor:
        if lengths is None:
            return torch.ones(words.shape[0], self.positions, dtype=torch.bool)
        time = shared[0].shape[1] if shared else 1
        return torch.arange(time)[None] < lengths.clamp(min=1)[:, None]  # no row attends to nothing


@torch.no_grad()
def generating_graphs(
    members: Sequence[Any], question: SourceQuestion, words: int
) -> tuple[Graph, Graph]:
    """The graphs `encode` and `step`. words: the words that can be generated."""
    members, positions = [member.eval() for member in members], question.positions
    encode = Graph("encode", Encode(members, question.read), question.inputs, ())
    example = question.read(*encode.example().values())
    begun = [member.begin(*example) for member in members]
    states, memory = list[Input](), list[Input]()
    order = list[str]()
    for number, state in enumerate(begun):
        parts = parts_of(state)
        for k, part in enumerate(parts.changing):
            states.append(Input(f"state_{number}_{k}", _axes(part, positions)))
        for k, part in enumerate(parts.shared):
            memory.append(Input(f"memory_{number}_{k}", _axes(part, positions)))
        order += [
            value.name for value in (*states, *memory) if value.name.split("_")[1] == str(number)
        ]
    named = {value.name: value for value in (*states, *memory)}
    lengths = () if positions else (LENGTHS,)
    inputs = (Input("word", (BATCH,), words), *lengths, *(named[name] for name in order))
    looks = bool(memory)
    outputs = ["log_probabilities", *(f"next_{state.name}" for state in states)]
    step = Graph(
        "step", OneStep(members, begun, positions), inputs, (*outputs, *["alignment"] * looks)
    )
    return Graph("encode", encode.network, encode.inputs, tuple(order)), step


def _axes(part: Tensor, positions: int) -> tuple[str | int, ...]:
    """The axes of a state, rows first. An axis of size 0 grows; for tensors that are only read, the
    second axis is time."""
    _, *rest = part.shape
    axes: list[str | int] = [BATCH]
    for k, size in enumerate(rest):
        if size == 0:
            axes.append(PAST)
        elif k == 0 and len(rest) == 2:
            axes.append(positions or TIME)
        else:
            axes.append(size)
    return tuple(axes)


def exported(name: str, model: AnyModel, how: Search) -> Exported:
    """The exported form. name: the name of the task."""
    learned, members = model.learned, pair_networks(model)
    question = learned.source.question(members)
    graphs = generating_graphs(members, question, len(learned.target.words))
    after = search_step(how, learned.target, question.length)
    return Exported(name, graphs, question.steps, (after,))


def search_step(how: Search, target: LearnedTarget, steps: str | int) -> Step:
    """The export step that searches for an answer. steps: length of the source, which limits "
    "that of
    the answer; a number, or the name of a value."""
    return {
        "step": "search",
        "steps": steps,
        "vocabulary": list(target.words.tokens),
        **joining(target.tokeniser),
        "start": START_NUMBER,
        "end": END_NUMBER,
        "width": how.width,
        "penalty": how.length_penalty,
        "alpha": how.alpha,
        "factor": how.factor,
        "extra": how.extra,
    }
