"""What the last bits of a result depend on, beside torch and its threads."""

from __future__ import annotations

import platform
from hashlib import sha256

import torch

from ensue.engine.native.cache import NoCompiler, compiler_version, flags, processor
from ensue.engine.native.native import why_not_native

CPU = torch.device("cpu")


def machine_facts() -> dict[str, str]:
    """The engine that a CPU runs by default, its compiler and flags, and the CPU itself."""
    found = {"engine": "eager", "cpu": _cpu()}
    if why_not_native(CPU, torch.float32):
        return found
    try:
        version = compiler_version().partition("\n")[0]
    except NoCompiler:
        return found
    return {**found, "engine": "native", "compiler": version, "flags": " ".join(flags())}


def _cpu() -> str:
    """Its name, and a digest of what it can do."""
    told = processor()
    names = [line.partition(":")[2].strip() for line in told.splitlines() if "model name" in line]
    name = names[0] if names else platform.machine()
    return f"{name} ({sha256(told.encode()).hexdigest()[:8]})"
