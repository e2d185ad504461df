"""Training needs no more memory than torch.nn's own layers do for the same work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from parity import needs_native

# Runs by itself: argv is a layer and how many threads. Prints by how many KiB the process has grown
# at its largest, beyond what it was before training: with torch's layer, in a process of its own,
# then with that of Ensue.
TRAIN = """
import importlib, os, re, sys, torch
from pathlib import Path

def status(key):
    return int(re.search(rf"{key}:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def train(layer, x):
    for _ in range(3):
        (layer(x)[0] ** 2).mean().backward()
        layer.zero_grad()
        x.grad = None

def measure(make):
    torch.set_num_threads(int(sys.argv[2]))
    train(make(4, 8), torch.randn(2, 2, 4, requires_grad=True))  # loads what is loaded once
    layer, x = make(256, 256), torch.randn(100, 64, 256, requires_grad=True)
    Path("/proc/self/clear_refs").write_text("5")  # forgets the largest size so far
    before = status("VmRSS")
    train(layer, x)
    print(status("VmHWM") - before, flush=True)

child = os.fork()  # torch is loaded once
if not child:
    measure(getattr(torch.nn, sys.argv[1]))
    os._exit(0)
os.waitpid(child, 0)
measure(getattr(importlib.import_module("ensue.layers"), sys.argv[1]))
"""


def growths(layer: str, threads: int) -> list[int]:
    """With torch's layer, and with Ensue's."""
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, layer, str(threads)],
        env={**os.environ, "OMP_NUM_THREADS": str(threads), "MALLOC_MMAP_THRESHOLD_": "65536"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if "clear_refs" in done.stderr:
        pytest.skip("the largest size of a process cannot be forgotten here")
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.splitlines()]


@needs_native
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs Linux's /proc")
@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_peak_memory_of_training(layer: str, threads: int) -> None:
    theirs, ours = growths(layer, threads)
    assert ours <= 1.03 * theirs, f"{ours / 1024:.0f} MiB against torch.nn's {theirs / 1024:.0f}"
