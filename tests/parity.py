"""A cell in two engines: what each gives, and how far that is from a float64 run.

Where there is no compiler the native engine cannot run: its tests are skipped and say why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import median

import pytest
import torch
from random_cells import random_data
from torch import Tensor

from ensue.cells import Cell
from ensue.engine import run
from ensue.engine.native import why_not_native

NO_NATIVE = why_not_native(torch.device("cpu"), torch.float32)
needs_native = pytest.mark.skipif(bool(NO_NATIVE), reason=NO_NATIVE or "native runs here")
FLOOR = 2.0  # ulps: what two ways to round one number may differ by
DRAWS = (7, 60, 300)  # of numbers, whose median is taken: single rows may be all rounding error
GROSS = (20.0, 1000.0)  # times eager's distance, and ulps: what no single draw may be off by


def as_it_is(v: Tensor) -> Tensor:
    return v


def spaced(v: Tensor) -> Tensor:
    """The same values with gaps between them."""
    return torch.stack([v, torch.full_like(v, 7.0)], -1)[..., 0]


def turned(v: Tensor) -> Tensor:
    """The same values, stored with the first axis innermost."""
    return v.movedim(0, -1).contiguous().movedim(-1, 0)


@dataclass(frozen=True)
class KernelInputs:
    """What a cell runs on: float64 tensors, x (time, batch, input)."""

    cell: Cell
    parameters: dict[str, Tensor]
    x: Tensor
    state: tuple[Tensor, ...]
    masks: dict[str, Tensor] | None = None
    lengths: Tensor | None = None
    reverse: bool = False
    layout: Callable[[Tensor], Tensor] = field(default=as_it_is)

    @staticmethod
    def of(
        cell: Cell, input_size: int, hidden: int, time: int, batch: int, seed: int = 1
    ) -> KernelInputs:
        data = random_data(cell, input_size, hidden, time, batch, seed)
        parameters = {name: p.detach() for name, p in data.parameters.items()}
        state = tuple(s.detach() for s in data.state)
        return KernelInputs(cell, parameters, data.x.detach(), state, data.masks or None)

    def outcome(
        self, engine: str, dtype: torch.dtype = torch.float64, ask: Iterable[str] | None = None
    ) -> dict[str, Tensor]:
        """By name: outputs, final state, and gradients (∂…) of all inputs or of those asked for;
        computed in `dtype`, returned as float64."""
        ready = self.leaves(dtype, ask)
        state = tuple(ready[f"state {k}"] for k in range(len(self.state)))
        masks = None
        if self.masks is not None:
            masks = {name: self.layout(m.to(dtype)) for name, m in self.masks.items()}
        parameters = {name: ready[name] for name in self.parameters}
        y, final = run(
            self.cell, parameters, ready["x"], state, self.lengths, masks, engine, self.reverse
        )
        values = {"y": y, **{f"final {k}": part for k, part in enumerate(final)}}
        assert all(v.dtype == dtype for v in values.values())
        return {
            **{name: v.detach().double() for name, v in values.items()},
            **{f"∂{name}": g for name, g in self._gradients(ready, values).items()},
        }

    def leaves(self, dtype: torch.dtype, ask: Iterable[str] | None = None) -> dict[str, Tensor]:
        """x, the state and the parameters, of this type and layout, those asked for as leaves."""
        tensors = {"x": self.x, **{f"state {k}": s for k, s in enumerate(self.state)}}
        tensors |= self.parameters
        names = tensors.keys() if ask is None else set(ask)
        ready = {name: self.layout(v.to(dtype)).detach() for name, v in tensors.items()}
        return {name: v.requires_grad_(name in names) for name, v in ready.items()}

    def _gradients(self, ready: dict[str, Tensor], values: dict[str, Tensor]) -> dict[str, Tensor]:
        by = {name: v for name, v in ready.items() if v.requires_grad}
        generator = torch.Generator().manual_seed(9)
        weights = [
            torch.randn(v.shape, generator=generator, dtype=torch.float64) for v in values.values()
        ]
        pulled = [
            (v, self.layout(w.to(v.dtype)))
            for v, w in zip(values.values(), weights, strict=True)
            if v.requires_grad
        ]
        if not by or not pulled:
            return {name: torch.zeros_like(v).double() for name, v in by.items()}
        outputs, seeds = zip(*pulled, strict=True)
        gradients = torch.autograd.grad(
            outputs, list(by.values()), seeds, allow_unused=True, materialize_grads=True
        )
        assert all(g.dtype == v.dtype for g, v in zip(gradients, by.values(), strict=True))
        return {name: g.double() for name, g in zip(by, gradients, strict=True)}


def distance(computed: Tensor, exact: Tensor, dtype: torch.dtype) -> float:
    """In ulps of the type: the norm of the difference, relative to the norm of what is exact.
    Numbers below the smallest normal one may be flushed to zero."""
    info = torch.finfo(dtype)
    ulp = exact.norm() * info.eps + info.tiny * exact.numel() ** 0.5
    return float((computed - exact).norm() / ulp) if exact.numel() else 0.0


def distances(draw: KernelInputs, dtype: torch.dtype) -> dict[str, tuple[float, float]]:
    """For each output and gradient: native's distance from a float64 run, and eager's."""
    exact = draw.outcome("eager")
    eager, native = draw.outcome("eager", dtype), draw.outcome("native", dtype)
    assert exact.keys() == eager.keys() == native.keys()
    by_name = {}
    for name, v in exact.items():
        assert eager[name].shape == native[name].shape == v.shape
        ours, theirs = (distance(e[name], v, dtype) for e in (native, eager))
        assert ours <= GROSS[0] * theirs + GROSS[1], f"{name}: off by {ours:.0f} ulps"
        by_name[name] = ours, theirs
    return by_name


def assert_as_close_as_eager(
    draw: Callable[[int], KernelInputs], dtype: torch.dtype = torch.float32
) -> None:
    """Native is no further from a float64 run than twice eager's own distance plus FLOOR ulps,
    for every output and gradient, in the median over draws of numbers: over more if few do not
    show it, since a small tensor may be close by luck."""
    rounds: list[dict[str, tuple[float, float]]] = []
    for count in DRAWS:
        rounds += [distances(draw(seed), dtype) for seed in range(len(rounds), count)]
        far = []
        for name in rounds[0]:
            ours, theirs = (median(one[name][k] for one in rounds) for k in (0, 1))
            if ours > 2 * theirs + FLOOR:
                far.append(f"{name}: native is {ours:.2f} ulps from float64, eager {theirs:.2f}")
        if not far:
            return
    raise AssertionError("\n".join(far))
