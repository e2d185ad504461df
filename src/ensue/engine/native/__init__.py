"""Any cell at the speed of a hand-tuned kernel: its graph as C++, compiled once."""

from ensue.engine.native.native import is_once, native, why_no_kernel, why_not_native
from ensue.engine.native.stream import NativeStep

__all__ = ["NativeStep", "is_once", "native", "why_no_kernel", "why_not_native"]
