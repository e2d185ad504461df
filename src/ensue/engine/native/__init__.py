"""Any cell at the speed of a hand-tuned kernel: its graph as C++, compiled once."""

from ensue.engine.native.native import native, why_not_native

__all__ = ["native", "why_not_native"]
