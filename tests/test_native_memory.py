"""Training needs no more memory than torch.nn's own layers do for the same work."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest
from parity import needs_native

# Runs by itself: argv is how many threads, and layers. Prints for each layer by how many KiB a
# process grows at its largest, beyond what it was before training: with torch's layer, then with
# that of Ensue. Each is measured in a process of its own; torch is loaded once.
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
    torch.set_num_threads(int(sys.argv[1]))
    train(make(4, 8), torch.randn(2, 2, 4, requires_grad=True))  # loads what is loaded once
    layer, x = make(256, 256), torch.randn(100, 64, 256, requires_grad=True)
    Path("/proc/self/clear_refs").write_text("5")  # forgets the largest size so far
    before = status("VmRSS")
    train(layer, x)
    print(status("VmHWM") - before, flush=True)

from_ensue = importlib.import_module("ensue.layers")
for name in sys.argv[2:]:
    for layers in (torch.nn, from_ensue):
        child = os.fork()
        if not child:
            measure(getattr(layers, name))
            os._exit(0)
        os.waitpid(child, 0)
"""
LAYERS = ("LSTM", "GRU", "RNN")


@cache
def growths(threads: int) -> dict[str, list[int]]:
    """Of each layer, with torch's and with Ensue's."""
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, str(threads), *LAYERS],
        env={**os.environ, "OMP_NUM_THREADS": str(threads), "MALLOC_MMAP_THRESHOLD_": "65536"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if "clear_refs" in done.stderr:
        pytest.skip("the largest size of a process cannot be forgotten here")
    assert done.returncode == 0, done.stderr
    lines = [int(line) for line in done.stdout.splitlines()]
    assert len(lines) == 2 * len(LAYERS), done.stderr
    return {layer: lines[2 * k : 2 * k + 2] for k, layer in enumerate(LAYERS)}


@needs_native
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs Linux's /proc")
@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("layer", LAYERS)
def test_peak_memory_of_training(layer: str, threads: int) -> None:
    theirs, ours = growths(threads)[layer]
    assert ours <= 1.03 * theirs, f"{ours / 1024:.0f} MiB against torch.nn's {theirs / 1024:.0f}"
