"""∂s_t/∂s_k of a cell over time: measured, in float64, by the derivative of its graph.

s is the whole state, all parts beside each other. The product of the steps' Jacobians is scaled
as it grows or shrinks, so that its norm is right far beyond what a number can hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ensue.diagnose.observe import RowTrack, Track
from ensue.engine.bptt import step_leaves
from ensue.engine.rtrl import jacobian

MOST_NUMBERS = 1 << 22  # of the Jacobians that are computed at once


def step_jacobians(track: Track, row: RowTrack) -> Iterator[Tensor]:
    """∂s_t/∂s_{t−1} (features, features) of every step, the last one first."""
    equations, blocks = track.equations, track.blocks
    width = sum(part.shape[1] for part in row.new)
    many = max(1, MOST_NUMBERS // (width * width))
    for end in range(len(row.x), 0, -many):
        piece = slice(max(0, end - many), end)
        old = tuple(part[piece] for part in row.old)
        leaves = step_leaves(equations, row.x[piece], old, None)
        by_part = [jacobian(equations, part, leaves, blocks) for part in equations.old.values()]
        whole = torch.cat(by_part, 2)[:, -width:]  # the output stands before the state
        yield from whole.flip(0)


def spectral_norm(matrix: Tensor) -> float:
    """The largest singular value: the root of the largest eigenvalue of the smaller MᵀM."""
    if matrix.shape[0] < matrix.shape[1]:
        matrix = matrix.t()
    size = float(matrix.abs().max())
    if size == 0 or not math.isfinite(size):
        return size
    scaled = matrix / size
    return size * math.sqrt(max(float(torch.linalg.eigvalsh(scaled.t() @ scaled)[-1]), 0.0))


@dataclass(frozen=True)
class Decay:
    """log ‖∂s_T/∂s_{T−d}‖₂ of distances d = 0, 1, …, T; of each part of the state by itself, where
    there are several: log ‖∂c_T/∂c_{T−d}‖₂."""

    whole: tuple[float, ...]
    parts: dict[str, tuple[float, ...]]

    @property
    def norms(self) -> list[float]:
        return [_exp(own) for own in self.whole]


def decay(track: Track, row: RowTrack) -> Decay:
    """Over the distance from the last step of a row."""
    widths = [part.shape[1] for part in row.new]
    names = track.cell.parts if len(widths) > 1 else ()
    product = torch.eye(sum(widths), dtype=row.x.dtype)
    scale = 0.0
    whole, parts = [0.0], {name: [0.0] for name in names}
    for step in step_jacobians(track, row):
        product = product @ step
        norm = spectral_norm(product)
        whole.append(_log(norm) + scale)
        blocks = dict(zip(track.cell.parts, _diagonal(product, widths), strict=True))
        for name in names:
            parts[name].append(_log(spectral_norm(blocks[name])) + scale)
        if norm > 0 and math.isfinite(norm):
            product, scale = product / norm, scale + math.log(norm)
    return Decay(tuple(whole), {name: tuple(own) for name, own in parts.items()})


def _diagonal(matrix: Tensor, widths: list[int]) -> list[Tensor]:
    ends = [sum(widths[: k + 1]) for k in range(len(widths))]
    return [matrix[end - w : end, end - w : end] for end, w in zip(ends, widths, strict=True)]


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _exp(value: float) -> float:
    return math.exp(value) if value < 709 else math.inf
