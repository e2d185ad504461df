"""Cells without a recurrent product against the LSTM: training, batch by batch in turn.

    python benchmarks/elementwise_cells.py [--hidden 256] [--runs 11]

The share is that of the rate of torch.mm for the hoisted products of the same batch (forward, and
two for the gradients), which anyone has to compute; the ratio is to the LSTM of as many units.
Seconds of computing on one thread, medians.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from ensue.layers.recurrent import Recurrent

STEPS, BATCH = 100, 64
CELLS = ("LSTM", "QRNN", "SRU", "MinGRU", "MinLSTM")
WARM_UP = 3


def training(cell: str, hidden: int) -> tuple[Callable[[], object], float]:
    """A call runs forward and backward; and the flops of its products."""
    torch.manual_seed(1)
    layer = Recurrent(cell, hidden, hidden)
    x = torch.randn(STEPS, BATCH, hidden, requires_grad=True)
    d, over = torch.randn(STEPS, BATCH, hidden), [x, *layer.parameters()]
    flops = (
        6
        * STEPS
        * BATCH
        * sum(parameter.numel() for parameter in layer.parameters() if parameter.dim() > 1)
    )
    return lambda: torch.autograd.grad(layer(x)[0], over, d), flops


def products(hidden: int) -> tuple[Callable[[], object], float]:
    """Those of four gates of x by torch.mm."""
    x, weight = torch.randn(STEPS * BATCH, hidden), torch.randn(4 * hidden, hidden)
    d = torch.randn(STEPS * BATCH, 4 * hidden)
    return lambda: (x @ weight.t(), d @ weight, d.t() @ x), 6 * x.numel() * 4 * hidden


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--runs", type=int, default=11)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    work = {"torch.mm": products(arguments.hidden)} | {
        k: training(k, arguments.hidden) for k in CELLS
    }
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(arguments.runs + WARM_UP):
        for name, (call, _) in work.items():
            began = time.process_time()
            call()
            seconds[name].append(time.process_time() - began)
    medians = {name: float(np.median(times[WARM_UP:])) for name, times in seconds.items()}
    limit = work["torch.mm"][1] / medians["torch.mm"]
    print(f"T {STEPS}, B {BATCH}, H {arguments.hidden}; torch.mm {limit / 1e9:.0f} GF/s")
    for name in CELLS:
        rate = work[name][1] / medians[name]
        ratio = np.median(np.divide(seconds["LSTM"], seconds[name])[WARM_UP:])
        print(
            f"{name:8}{medians[name] * 1e3:8.1f} ms  {rate / limit:4.0%} of torch.mm"
            f"  {ratio:.2f} times as fast as the LSTM"
        )


if __name__ == "__main__":
    main()
