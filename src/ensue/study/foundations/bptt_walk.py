"""Backpropagation through time in detail: ∂J(t)/∂θ as the sum of its terms.

A parameter is used at every step. Its gradient for the cost J(t) of one output is a sum over all
steps k ≤ t that use it, each with a separate path:

∂J(t)/∂θ = Σ_{k≤t} ∂J(t)/∂s_t · ∂s_t/∂s_{t−1} ⋯ ∂s_{k+1}/∂s_k · ∂⁺s_k/∂θ

∂⁺ is the derivative by the use of θ in step k alone. Outputs outside t_min … t_max have no cost;
their states still pass on gradients of later ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ensue.cells import Cell
from ensue.engine.bptt import bptt
from ensue.engine.eager import eager, one_step
from ensue.engine.recurrence import State
from ensue.errors import OptionError, unknown
from ensue.study.foundations.backprop import (
    OUTPUTS,
    check_distribution,
    cost_of,
    first_delta,
    given_numbers,
    tenths,
)

MOST_UNITS, MOST_STEPS = 2, 12
COST_OF_OUTPUT = {"linear": "squares", "logistic": "cross-entropy", "softmax": "cross-entropy"}

Parameters = dict[str, Tensor]


@dataclass(frozen=True)
class StepTrace:
    """One step: the input, the new state, the h from which the output is computed, z = V·h + c, ŷ,
    the target, J(t) and ∂J(t)/∂z; the last two are None for outputs without a cost."""

    x: Tensor
    state: Tensor  # all parts concatenated
    h: Tensor
    z: Tensor
    guess: Tensor
    target: Tensor
    cost: float | None
    delta: Tensor | None


@dataclass(frozen=True)
class Term:
    """The terms of ∂J(t)/∂θ from step k: ∂J(t)/∂s_k, and the term of each parameter."""

    t: int
    k: int
    delta: Tensor
    by_parameter: Parameters

    @property
    def path(self) -> str:
        """The path as text: J(3) ← h3 ← h2 ← θ at step 2"""
        states = " ← ".join(f"h{step}" for step in range(self.t, self.k - 1, -1))
        return f"J({self.t}) ← {states}"


@dataclass(frozen=True)
class BpttWalk:
    """Backpropagation through time, term by term. first, last: the outputs with a cost; gradient:
    the sum of all terms, including the terms of V and c; automatic: torch's gradient; updated: the
    parameters after one update."""

    cell: Cell
    output: str
    first: int
    last: int
    rate: float
    hidden_size: int
    parameters: Parameters
    steps: tuple[StepTrace, ...]
    terms: tuple[Term, ...]
    gradient: Parameters
    automatic: Parameters
    updated: Parameters
    cost: float
    cost_after: float

    @property
    def difference(self) -> float:
        """The largest difference between the sum of the terms and the automatic gradient."""
        pairs = [(self.gradient[name], self.automatic[name]) for name in self.gradient]
        return max(float((value - other).abs().max()) for value, other in pairs)

    @property
    def cell_parameters(self) -> list[str]:
        return list(self.cell.parameters)

    def blocks(self, name: str, values: Tensor) -> dict[str, Tensor]:
        """A parameter by its gates, "U_f"; undivided for a single gate."""
        if name not in self.cell.parameters:
            return {name: values}
        gates = self.cell.parameters[name].gates
        pieces = zip(gates, values.chunk(len(gates)), strict=True)
        return {f"{name}_{gate}" if gate else name: piece for gate, piece in pieces}


def readout_names(cell: Cell) -> tuple[str, str]:
    """Names for V and c of ŷ = V·h + c that the cell does not use."""
    return ("V_y", "c_y") if {"V", "c"} & cell.parameters.keys() else ("V", "c")


@dataclass(frozen=True)
class TimeWalk:
    """A small network in float64, from a zero state. cost_at: the first and the last output with a
    cost, None for all; weights: the cell's parameters in order, each row by row, then V and c; x
    and y: step by step. Missing numbers are drawn with one decimal."""

    cell: Cell
    steps: int = 4
    cost_at: tuple[int, int] | None = None
    hidden_size: int = 1
    input_size: int = 1
    outputs: int = 1
    output: str = "linear"
    weights: Sequence[float] | None = None
    x: Sequence[float] | None = None
    y: Sequence[float] | None = None
    rate: float = 0.1
    seed: int = 1

    def walked(self) -> BpttWalk:
        steps, (first, last) = self.steps, self.cost_at or (1, self.steps)
        _check(steps, first, last, self.hidden_size, self.output, self.outputs)
        generator = torch.Generator().manual_seed(self.seed)
        parameters = self._parameters(generator)
        read = tenths((steps * self.input_size,), generator)
        if self.x is not None:
            read = given_numbers("x", self.x, steps * self.input_size)
        targets = _targets(self.y, steps, self.outputs, self.output, generator)
        sizes = self.cell.state_sizes(self.input_size, self.hidden_size)
        start = tuple(torch.zeros(1, size, dtype=torch.float64) for size in sizes)
        inputs = read.view(steps, self.input_size)
        network = _Network(
            self.cell, self.output, self.hidden_size, start, inputs, targets, first, last
        )
        return _walked(network, parameters, self.rate)

    def _parameters(self, generator: torch.Generator) -> Parameters:
        cell, sizes = self.cell, (self.input_size, self.hidden_size)
        width = cell.equations(*sizes, False).output.width
        weight, bias = readout_names(cell)
        shapes: dict[str, tuple[int, ...]] = {
            **cell.shapes(*sizes),
            weight: (self.outputs, width),
            bias: (self.outputs,),
        }
        counts = [torch.Size(shape).numel() for shape in shapes.values()]
        flat = tenths((sum(counts),), generator)
        if self.weights is not None:
            flat = given_numbers("weights", self.weights, sum(counts))
        pieces = zip(shapes.items(), torch.split(flat, counts), strict=True)
        return {name: piece.view(shape).clone() for (name, shape), piece in pieces}


@dataclass(frozen=True)
class _Network:
    """The parts of a network that updates do not change."""

    cell: Cell
    output: str
    hidden_size: int
    start: State
    x: Tensor  # (steps, input)
    targets: Tensor  # (steps, outputs)
    first: int
    last: int

    @property
    def readout(self) -> tuple[str, str]:
        return readout_names(self.cell)

    def of_cell(self, parameters: Parameters) -> Parameters:
        return {name: parameters[name] for name in self.cell.parameters}

    def counts(self, t: int) -> bool:
        return self.first <= t <= self.last

    def cost(self, parameters: Parameters) -> Tensor:
        """The cost, computed by torch alone."""
        y, _ = eager(self.cell, self.of_cell(parameters), self.x[:, None], self.start)
        weight, bias = (parameters[name] for name in self.readout)
        guesses = OUTPUTS[self.output](y[:, 0] @ weight.t() + bias)
        name = COST_OF_OUTPUT[self.output]
        steps = slice(self.first - 1, self.last)
        pairs = zip(guesses[steps], self.targets[steps], strict=True)
        return torch.stack(
            [cost_of(name, self.output, step_output, y) for step_output, y in pairs]
        ).sum()


def _walked(network: _Network, parameters: Parameters, rate: float) -> BpttWalk:
    leaves = {name: parameter.clone().requires_grad_() for name, parameter in parameters.items()}
    cost = network.cost(leaves)
    slopes = torch.autograd.grad(cost, list(leaves.values()), allow_unused=True)
    automatic = {
        name: torch.zeros_like(leaf) if slope is None else slope
        for (name, leaf), slope in zip(leaves.items(), slopes, strict=True)
    }
    with torch.no_grad():
        steps, states = _forward(network, parameters)
        terms = [
            term
            for t in range(1, len(steps) + 1)
            for term in _terms(network, parameters, steps, states, t)
        ]
        gradient = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
        for term in terms:
            for name, value in term.by_parameter.items():
                gradient[name] = gradient[name] + value
        weight, bias = network.readout
        for step in steps:
            if step.delta is not None:
                gradient[weight] = gradient[weight] + torch.outer(step.delta, step.h)
                gradient[bias] = gradient[bias] + step.delta
        updated = {
            name: parameter - rate * gradient[name] for name, parameter in parameters.items()
        }
        after = float(network.cost(updated))
    return BpttWalk(
        cell=network.cell,
        output=network.output,
        first=network.first,
        last=network.last,
        rate=rate,
        hidden_size=network.hidden_size,
        parameters=parameters,
        steps=tuple(steps),
        terms=tuple(terms),
        gradient=gradient,
        automatic=automatic,
        updated=updated,
        cost=float(cost.detach()),
        cost_after=after,
    )


def _forward(network: _Network, parameters: Parameters) -> tuple[list[StepTrace], list[State]]:
    """Runs all steps; also returns the state before each of them."""
    cell, state = network.cell, network.start
    layer = network.of_cell(parameters)
    weight, bias = (parameters[name] for name in network.readout)
    bound, cost_name = cell.on_tensors(layer), COST_OF_OUTPUT[network.output]
    steps, before = [], []
    for t, x in enumerate(network.x, 1):
        before.append(state)
        y, state = one_step(bound, x[None], state, weight.shape[1])
        z = weight @ y[0] + bias
        guess, target = OUTPUTS[network.output](z), network.targets[t - 1]
        cost, delta = None, None
        if network.counts(t):
            cost = float(cost_of(cost_name, network.output, guess, target))
            delta = first_delta(cost_name, network.output, z, guess, target)
        steps.append(StepTrace(x, torch.cat(state, 1)[0], y[0], z, guess, target, cost, delta))
    return steps, before


def _terms(
    network: _Network,
    parameters: Parameters,
    steps: Sequence[StepTrace],
    states: Sequence[State],
    t: int,
) -> list[Term]:
    """The terms of J(t), from k = t down to 1: one step of BPTT at a time."""
    delta = steps[t - 1].delta
    if delta is None:
        return []
    cell = network.of_cell(parameters)
    by_output = (parameters[network.readout[0]].t() @ delta)[None, None]
    arriving = tuple(torch.zeros_like(part) for part in network.start)
    terms = []
    for k in range(t, 0, -1):
        x = network.x[k - 1]
        back = bptt(network.cell, cell, x[None, None], states[k - 1], by_output, arriving)
        delta = torch.cat(arriving, 1)[0]
        if k == t:
            delta = _through_output(network.cell, cell, x[None], states[k - 1], by_output[0])
        terms.append(Term(t, k, delta, back.parameters))
        by_output, arriving = torch.zeros_like(by_output), back.state
    return terms


def _through_output(
    cell: Cell, parameters: Parameters, x: Tensor, old: State, by_output: Tensor
) -> Tensor:
    """∂J(t)/∂s_t through the output of step t."""
    bound = cell.on_tensors(parameters)
    _, new = one_step(bound, x, old, by_output.shape[1])
    with torch.enable_grad():
        leaves = tuple(part.detach().clone().requires_grad_() for part in new)
        cost = (bound.output(x, *leaves) * by_output).sum()
        slopes = torch.autograd.grad(cost, leaves, allow_unused=True, materialize_grads=True)
    return torch.cat(slopes, 1)[0]


# --- given or drawn --------------------------------------------------------------------------


def _check(steps: int, first: int, last: int, hidden: int, output: str, outputs: int) -> None:
    if not 1 <= steps <= MOST_STEPS:
        raise OptionError(f"steps: expected 1 to {MOST_STEPS}, got {steps}")
    if not 1 <= first <= last <= steps:
        raise OptionError(
            f"cost: expected steps t_min:t_max between 1 and {steps}, such as 1:{steps}, got "
            f"{first}:{last}"
        )
    if not 1 <= hidden <= MOST_UNITS:
        raise OptionError(f"hidden_size: expected 1 or {MOST_UNITS} units, got {hidden}")
    if output not in COST_OF_OUTPUT:
        raise unknown("output", output, COST_OF_OUTPUT)
    if output == "softmax" and outputs < 2:
        raise OptionError(f"outputs: expected two or more with softmax, got {outputs}")


def _targets(
    y: Sequence[float] | None, steps: int, outputs: int, output: str, generator: torch.Generator
) -> Tensor:
    if y is not None:
        targets = given_numbers("y", y, steps * outputs).view(steps, outputs)
    elif output == "softmax":
        classes = torch.randint(0, outputs, (steps,), generator=generator)
        targets = torch.nn.functional.one_hot(classes, outputs).double()
    elif output == "logistic":
        targets = torch.randint(0, 2, (steps, outputs), generator=generator).double()
    else:
        targets = tenths((steps * outputs,), generator).view(steps, outputs)
    if output != "linear" and not bool(((targets >= 0) & (targets <= 1)).all()):
        raise OptionError(
            f"y: expected probabilities from 0 to 1 with {output} outputs, got {targets.tolist()}"
        )
    check_distribution(targets, output)
    return targets
