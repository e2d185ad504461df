"""A model that reads its input as it arrives: it takes and returns a state, and answers for
everything read so far.

The network of an export is unchanged. Its encoders begin from a state that is passed in, and
pooling continues from its earlier values:

    mean       s ← s + Σ_t y_t,  n ← n + steps:  s/n
    max        m ← max(m, max_t y_t)
    attention  L ← log(e^L + Σ_t e^(a_t)),  p ← p·e^(L before − L) + Σ_t e^(a_t − L)·y_t:  p
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ensue.layers.lengths import step_mask
from ensue.tasks.blocks.encoders import Encoder, PlainEncoder, RecurrentEncoder
from ensue.tasks.blocks.pooling import AttentionPooling, Last, Max, Mean, Pooling
from ensue.tasks.exported import BATCH, TIME, Exported, Graph, Input, Step, refuse

LOWEST = -1e30  # instead of −∞: the initial maximum, and log of a sum
NEXT = "next_"


class Carried:
    """States by name, in the order in which parts of a network register them; begun: their initial
    values, (features,)."""

    def __init__(self) -> None:
        self.begun: dict[str, Tensor] = {}
        self.before: dict[str, Tensor] = {}
        self.after: dict[str, Tensor] = {}

    def slot(self, begun: Tensor) -> str:
        name = f"state_{len(self.begun)}"
        self.begun[name] = begun.detach()
        return name


class StreamedLayers(nn.Module):
    """A recurrent encoder of one direction that continues from its state."""

    def __init__(self, encoder: RecurrentEncoder, carried: Carried) -> None:
        super().__init__()
        self.encoder, self.carried = encoder, carried
        nothing = next(encoder.parameters()).new_zeros(1, 1, 1)
        starts = [way.start(nothing) for way in encoder.recurrent.ways]
        self.names = [[carried.slot(part[0]) for part in parts] for parts in starts]

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        states = [tuple(self.carried.before[name] for name in names) for names in self.names]
        y, state = self.encoder.recurrent(x, states, lengths)
        for names, parts in zip(self.names, state, strict=True):
            self.carried.after |= dict(zip(names, parts, strict=True))
        return y, self.encoder.final(state)


class StreamedSteps(nn.Module):
    """Returns its steps unchanged; final: the last step that was read."""

    def __init__(self, encoder: PlainEncoder, carried: Carried) -> None:
        super().__init__()
        self.encoder, self.carried = encoder, carried
        self.name = carried.slot(torch.zeros(encoder.final_size))

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        y, last = self.encoder(x, lengths)
        final = torch.where((lengths > 0)[:, None], last, self.carried.before[self.name])
        self.carried.after[self.name] = final
        return y, final


class StreamedPooling(nn.Module):
    """Several poolings, each over all steps so far."""

    def __init__(self, pooling: Pooling, carried: Carried, width: int) -> None:
        super().__init__()
        self.pooling, self.carried = pooling, carried
        self.count = carried.slot(torch.zeros(1))
        begun = [BEGUN[type(part)](width) for part in pooling.parts]
        self.names = [[carried.slot(state) for state in states] for states in begun]

    def forward(self, y: Tensor, final: Tensor, lengths: Tensor) -> Tensor:
        count = self.carried.before[self.count] + lengths[:, None].to(y.dtype)
        self.carried.after[self.count] = count
        pieces = []
        for part, names in zip(self.pooling.parts, self.names, strict=True):
            states = [self.carried.before[name] for name in names]
            pooled, after = RUNNING[type(part)](part, y, final, lengths, count, states)
            self.carried.after |= dict(zip(names, after, strict=True))
            pieces.append(pooled)
        return torch.cat(pieces, -1)


Running = tuple[Tensor, list[Tensor]]  # the pooled values so far, and the new state


def _last(
    part: Any, y: Tensor, final: Tensor, lengths: Tensor, count: Tensor, state: Any
) -> Running:
    return final, []


def _mean(
    part: Any, y: Tensor, final: Tensor, lengths: Tensor, count: Tensor, state: Any
) -> Running:
    real = step_mask(lengths, y.shape[0])[..., None]
    total = state[0] + torch.where(real, y, 0).sum(0)
    return total / count.clamp(min=1), [total]


def _max(
    part: Any, y: Tensor, final: Tensor, lengths: Tensor, count: Tensor, state: Any
) -> Running:
    real = step_mask(lengths, y.shape[0])[..., None]
    highest = torch.maximum(state[0], y.masked_fill(~real, LOWEST).amax(0))
    return torch.where(count > 0, highest, 0), [highest]


def _attention(
    part: Any, y: Tensor, final: Tensor, lengths: Tensor, count: Tensor, state: Any
) -> Running:
    before, pooled = state  # (batch, 1), (batch, width)
    real = step_mask(lengths, y.shape[0])
    scores = part.score(torch.tanh(part.hidden(y)))[..., 0].masked_fill(~real, LOWEST)
    highest = torch.maximum(before, scores.amax(0)[:, None])
    weights = torch.exp(scores - highest[:, 0]) * real
    total = torch.exp(before - highest) + weights.sum(0)[:, None]
    total = torch.where(total > 0, total, 1)
    pooled = (pooled * torch.exp(before - highest) + (weights[..., None] * y).sum(0)) / total
    return pooled, [highest + total.log(), pooled]


RUNNING: dict[type, Callable[..., Running]] = {
    Last: _last,
    Mean: _mean,
    Max: _max,
    AttentionPooling: _attention,
}
BEGUN: dict[type, Callable[[int], list[Tensor]]] = {  # by the width of a step
    Last: lambda width: [],
    Mean: lambda width: [torch.zeros(width)],
    Max: lambda width: [torch.full((width,), LOWEST)],
    AttentionPooling: lambda width: [torch.full((1,), LOWEST), torch.zeros(width)],
}
ENCODERS: dict[type, Callable[[Any, Carried], nn.Module]] = {
    RecurrentEncoder: StreamedLayers,
    PlainEncoder: StreamedSteps,
}


class Streamed(nn.Module):
    """A network with the states as its last inputs and last outputs."""

    def __init__(self, network: nn.Module, carried: Carried, inputs: int) -> None:
        super().__init__()
        self.network, self.carried, self.inputs = network, carried, inputs

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        names = list(self.carried.begun)
        self.carried.before = dict(zip(names, tensors[self.inputs :], strict=True))
        self.carried.after = {}
        outputs = self.network(*tensors[: self.inputs])
        answer = outputs if isinstance(outputs, tuple) else (outputs,)
        after = tuple(self.carried.after[name] for name in names)
        self.carried.before, self.carried.after = {}, {}
        return (*answer, *after)


def _with_states(network: nn.Module, task: str) -> tuple[nn.Module, Carried]:
    """A copy whose encoders and poolings carry states."""
    copied, carried = copy.deepcopy(network).eval(), Carried()
    for module in list(copied.modules()):
        encoder = getattr(module, "encoder", None)
        if not isinstance(encoder, Encoder):
            continue
        both = isinstance(encoder, RecurrentEncoder) and encoder.recurrent.bidirectional
        if both or type(encoder) not in ENCODERS:
            raise refuse("both ways", task)
        width = encoder.output_size
        module.encoder = ENCODERS[type(encoder)](encoder, carried)
        if isinstance(getattr(module, "pooling", None), Pooling):
            module.pooling = StreamedPooling(module.pooling, carried, width)  # type: ignore[arg-type]
    return copied, carried


def streamed(exported: Exported) -> Exported:
    """The exported model in its streaming form. A language model already has it."""
    how = exported.piecewise
    if how is None:
        raise refuse("stream", exported.task)
    if how.already:
        return exported
    if any(step["step"] == "chain features" for step in exported.before):
        raise refuse("next words", exported.task)
    (graph,) = exported.graphs
    network, carried = _with_states(graph.network, exported.task)
    states = tuple(Input(name, (BATCH, len(value))) for name, value in carried.begun.items())
    outputs = (*graph.outputs, *(f"{NEXT}{state.name}" for state in states))
    whole = Streamed(network, carried, len(graph.inputs))
    begin: Step = {
        "step": "stream",
        "states": {name: value.tolist() for name, value in carried.begun.items()},
        "pieces": _pieces(graph.inputs),
        "joined": list(how.joined),
    }
    return replace(
        exported,
        graphs=(Graph(graph.name, whole, (*graph.inputs, *states), outputs),),
        before=(*exported.before, begin),
    )


def _pieces(inputs: Sequence[Input]) -> list[str]:
    """The inputs that contain only the new steps; others refer to everything read."""
    return [
        graph_input.name
        for graph_input in inputs
        if BATCH not in graph_input.axes or TIME in graph_input.axes or graph_input.steps_of
    ]
