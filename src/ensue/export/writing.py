"""`write`: exports a layer, cell or model to files of another language, after a comparison with
Python."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from ensue.cells import Cell
from ensue.errors import OptionError
from ensue.export.grid import CASES, cases_of, compare, expected, with_stored_weights
from ensue.export.stack import stack_of
from ensue.files.disk import refuse_target, write_together
from ensue.layers.recurrent import Recurrent
from ensue.layers.recursive import Recursive
from ensue.tasks.any_model import AnyModel
from ensue.tasks.model import Model


@dataclass(frozen=True)
class Written:
    """The result of an export: the files, the number of compared combinations (0: unchecked), and
    the largest difference from Python."""

    files: tuple[Path, ...]
    combinations: int
    difference: float
    remarks: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(file.stat().st_size for file in self.files)

    def as_json(self) -> dict[str, Any]:
        return {
            "files": [str(file) for file in self.files],
            "bytes": self.bytes,
            "combinations": self.combinations,
            "difference": self.difference,
        }

    def lines(self) -> list[str]:
        listed = ", ".join(str(file) for file in self.files)
        written_lines = [f"wrote {listed} ({self.bytes:,} bytes)"]
        if self.combinations:
            written_lines.append(
                f"compared with Python over {self.combinations} combinations of rows, steps, "
                f"padding and state: within {self.difference:.1g}"
            )
        else:
            written_lines.append("not compared with Python (--unchecked)")
        return [*written_lines, *self.remarks]


def write(
    layer: nn.Module | Cell | AnyModel,
    path: str | os.PathLike[str],
    *,
    weights: str = "float32",
    separate: bool = False,
    unchecked: bool = False,
    streaming: bool = False,
    input_size: int = 32,
    hidden_size: int = 64,
) -> Written:
    """Writes a layer as ONNX (.onnx), C99 (.c) or JavaScript (.js), by the ending of the path; a
    trained model also as a page (.html). streaming: the model reads its input piece by piece;
    layers always do.

    weights: storage of matrices, float32, bf16 or int8. separate: weights of C in a separate file.
    The export is first compared with Python, over combinations of batch, length, padding and
    carried state; on a mismatch no file is written. unchecked: skips this. A cell alone becomes a
    layer with fresh weights, of these sizes.

    >>> layer = ensue.Recurrent("GRU", 8, 16)
    >>> ensue.export.write(layer, folder / "gru.c").combinations
    24
    """
    place = Path(path)
    if isinstance(layer, Model):
        from ensue.export.model import write_model

        return write_model(layer, place, weights=weights, unchecked=unchecked, streaming=streaming)
    from ensue.export.targets import target_of

    target = target_of(place)
    refuse_target(place)
    if isinstance(layer, Recursive):
        raise OptionError(
            "Recursive: a network over trees cannot be exported; for a chain, export Recurrent"
        )
    layer_of: Any = Recurrent(layer, input_size, hidden_size) if isinstance(layer, Cell) else layer
    if not isinstance(layer_of, nn.Module):
        stack_of(layer_of)  # its message says what was expected
    plain = with_stored_weights(layer_of, "float32")
    stack, first = stack_of(plain, weights), bool(getattr(plain, "batch_first", False))
    files = target.files(stack, place, first, separate)
    worst, count = 0.0, 0
    if not unchecked:
        references = expected(with_stored_weights(layer_of, weights), stack, cases_of(stack))
        for got in target.outcomes(stack, cases_of(stack), first):
            worst = max(worst, compare(references, got, target.title))
        count = len(CASES)
    write_together(place.parent, files)
    made = tuple(place.parent / name for name in files)
    return Written(made, count, worst, tuple(target.lines(stack)))
