"""The learned numbers of a saved model in few words, so that two trainings can be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import safetensors.numpy


def summary(model: Path) -> dict[str, dict[str, Any]]:
    """By `file/tensor` of every .safetensors file in the folder of a model: shape, mean, and mean
    magnitude."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(model.glob("*.safetensors")):
        for name, tensor in sorted(safetensors.numpy.load(path.read_bytes()).items()):
            numbers = tensor.astype("float64")
            found[f"{path.stem}/{name}"] = {
                "shape": list(tensor.shape),
                "mean": float(numbers.mean()) if numbers.size else 0.0,
                "magnitude": float(abs(numbers).mean()) if numbers.size else 0.0,
            }
    return found
