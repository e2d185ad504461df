"""Where a cost's gradient comes from and goes to, over time."""

from __future__ import annotations

import torch
from torch import Tensor

from ensue.diagnose.gates import mean_over_rows
from ensue.diagnose.observe import Passage, Track
from ensue.engine.recording import recording
from ensue.layers.recurrent import Recurrent


def gradient_norms(track: Track) -> tuple[float, ...]:
    """‖∂L/∂s_t‖₂ at each step, mean over rows."""
    return mean_over_rows([track.in_time(row.gradient.norm(dim=1)) for row in track.rows])


def state_norms(track: Track) -> tuple[float, ...]:
    """‖h_t‖₂ at each step, of the first part of the state, mean over rows."""
    return mean_over_rows([track.in_time(row.new[0].norm(dim=1)) for row in track.rows])


def dependencies(passage: Passage, most_steps: int) -> Tensor:
    """‖∂L_t/∂x_k‖₂ (t, k) of the first row, over its last steps, where L_t is the part of the cost
    that is read off step t: −log p(y_t) where each step has an output of its own. x is what the
    lowest layer reads.

    The row runs once for each t, with the cost of that step alone, so that one backward pass
    finds all of them."""
    module, steps = passage.module, min(len(passage.rows[0]), most_steps)
    bidirectional = bool(getattr(module, "bidirectional", False))
    whole = bidirectional or not isinstance(module, Recurrent)
    x = passage.rows[0] if whole else passage.rows[0][-steps:]
    entering = passage.entering[0][-steps:]
    copies = x[:, None].expand(-1, steps, -1).detach().clone().requires_grad_()
    begin = None
    if not whole:
        old = [[part[-steps] for part in track.rows[0].old] for track in passage.tracks]
        begin = [tuple(part.expand(steps, -1) for part in parts) for parts in old]
    with recording():  # no kernel is compiled for one pass
        y = _run(module, copies, begin)[-steps:]
    cost = (torch.diagonal(y, dim1=0, dim2=1).t() * entering).sum()
    (slopes,) = torch.autograd.grad(cost, copies)
    found: Tensor = slopes[-steps:].norm(dim=2).t()
    return found


def _run(module: torch.nn.Module, x: Tensor, state: object) -> Tensor:
    """y (steps, copies, features) of x (steps, copies, input)."""
    batch_first = bool(getattr(module, "batch_first", False))
    y: Tensor = module(x.transpose(0, 1) if batch_first else x, state)[0]
    return y.transpose(0, 1) if batch_first else y
