"""Which errors mean that memory ran out, as Python, torch and its allocators put it."""

from __future__ import annotations

import pytest
import torch

from ensue.training.preflight import no_memory


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried …"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried …"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (RuntimeError("memory format is not supported"), False),
    ],
)
def test_only_a_lack_of_memory_is_one(error: Exception, expected: bool) -> None:
    assert no_memory(error) == expected
