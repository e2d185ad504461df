"""The facts about a machine that change the last bits of results, apart from torch and its
threads."""

from __future__ import annotations

import platform
import signal
import subprocess
import sys
from functools import cache
from hashlib import sha256

import torch

from ensue.engine.native.cache import NoCompiler, compiler_version, flags, processor
from ensue.engine.native.native import why_not_native

CPU = torch.device("cpu")
TILES = "amx_bf16"  # as /proc/cpuinfo calls them
NARROW_PRODUCT = "import torch; a = torch.ones(256, 256, dtype=torch.bfloat16); torch.mm(a, a)"
WITHOUT_TILES = "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"


def machine_facts() -> dict[str, str]:
    """The default engine on the CPU, its compiler and flags, and the CPU itself."""
    facts = {"engine": "eager", "cpu": _cpu()}
    if why_not_native(CPU, torch.float32):
        return facts
    try:
        version = compiler_version().partition("\n")[0]
    except NoCompiler:
        return facts
    return {**facts, "engine": "native", "compiler": version, "flags": " ".join(flags())}


def _cpu() -> str:
    """The CPU's name, and a digest of its features."""
    cpu_name = processor()
    names = [
        line.partition(":")[2].strip() for line in cpu_name.splitlines() if "model name" in line
    ]
    name = names[0] if names else platform.machine()
    return f"{name} ({sha256(cpu_name.encode()).hexdigest()[:8]})"


@cache
def why_no_bfloat16() -> str:
    """Why a process that multiplies in bfloat16 would crash on this CPU, and a remedy; "" if it
    works. Some virtual machines list tile instructions (AMX) but refuse them, so a separate process
    tries them."""
    if TILES not in processor():
        return ""
    tried = subprocess.run(
        [sys.executable, "-P", "-c", NARROW_PRODUCT],
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    if tried.returncode >= 0:
        return ""
    return (
        "the processor names AMX among its instructions, and a product of bfloat16 ends with "
        f"{signal.Signals(-tried.returncode).name}; set {WITHOUT_TILES} to compute without it"
    )
