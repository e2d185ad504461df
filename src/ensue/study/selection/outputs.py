"""The outputs of a trial for the validation part, stored in its folder for ensembles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from ensue.files.disk import write_whole
from ensue.files.opening import read_plain
from ensue.files.run_folder import RunFolder
from ensue.tasks.abilities import Outputs

FILE = "validation.safetensors"  # the outputs of the networks


def write_outputs(folder: RunFolder, outputs: Outputs) -> None:
    """Writes the outputs of a task whose answers can be averaged."""
    if outputs:
        arrays = {str(k): np.ascontiguousarray(output) for k, output in enumerate(outputs)}
        write_whole(folder.path / FILE, safetensors.numpy.save(arrays))


def read_outputs(folder: Path) -> list[NDArray[Any]]:
    """The stored outputs of a trial; [] if there are none."""
    try:
        arrays = safetensors.numpy.load(read_plain(folder / FILE))
    except (OSError, SafetensorError):
        return []
    return [arrays[str(k)] for k in range(len(arrays))]
