"""The outputs of a trial for the validation part, stored in its folder for ensembles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from ensue.errors import RunError
from ensue.files.atomic_folder import Damaged, digest
from ensue.files.disk import write_whole
from ensue.files.opening import HISTORY_FILE, read_plain
from ensue.files.run_folder import RunFolder
from ensue.tasks.abilities import Outputs

FILE = "validation.safetensors"  # the outputs of the networks


def write_outputs(folder: RunFolder, outputs: Outputs) -> str:
    """Writes the outputs of a task whose answers can be averaged; the sha256 of the file, or ""
    without one."""
    if not outputs:
        return ""
    arrays = {str(k): np.ascontiguousarray(output) for k, output in enumerate(outputs)}
    data = safetensors.numpy.save(arrays)
    write_whole(folder.path / FILE, data)
    return digest(data)


def read_outputs(folder: Path, sha256: str) -> list[NDArray[Any]]:
    """The outputs of a trial; [] without a file. RunError if the file is not the one that the
    selection recorded."""
    if not sha256:
        return []
    path = folder / FILE
    try:
        data = read_plain(path, HISTORY_FILE)
        if digest(data) != sha256:
            raise Damaged("its sha256 differs")
        arrays = safetensors.numpy.load(data)
        return [arrays[str(k)] for k in range(len(arrays))]
    except (OSError, Damaged, KeyError, SafetensorError) as why:
        raise RunError(
            f"{path}: this is not what Ensue wrote: {why}. Select without --together, or name "
            "another --run"
        ) from None
