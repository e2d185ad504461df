"""Any cell at the speed of a hand-tuned kernel: its graph as C++, compiled once."""

from ensue.engine.native.native import (
    in_forward_mode,
    native,
    ready_kernel,
    why_no_kernel,
    why_not_native,
    with_kernel,
)
from ensue.engine.native.stream import NativeStep

__all__ = [
    "NativeStep",
    "in_forward_mode",
    "native",
    "ready_kernel",
    "why_no_kernel",
    "why_not_native",
    "with_kernel",
]
