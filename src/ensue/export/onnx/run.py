"""Exported ONNX in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ensue.errors import MissingExtra
from ensue.export.grid import Case, Outcome
from ensue.export.stack import Stack

if TYPE_CHECKING:
    import onnx


def session_of(model: onnx.ModelProto | bytes) -> Any:
    """A session of ONNX Runtime on one thread, which prints nothing."""
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtra(
            "onnxruntime: an export is compared with Python in it, and it is not installed; "
            'pip install "ensue[onnx]"'
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    data = model if isinstance(model, bytes) else model.SerializeToString()
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def run_onnx(
    model: onnx.ModelProto, stack: Stack, cases: Sequence[Case], batch_first: bool = False
) -> list[Outcome]:
    session, outcomes = session_of(model), []
    for case in cases:
        inputs: dict[str, Any] = {"x": case.x.transpose(1, 0, 2) if batch_first else case.x}
        if case.lengths is not None:
            inputs["lengths"] = case.lengths
        if case.state is not None:
            named = zip(stack.state_names, case.state, strict=True)
            inputs |= {name: value for (name, _), value in named}
        y, *state = session.run(None, inputs)
        y = np.swapaxes(y, 0, 1) if batch_first else y
        outcomes.append(Outcome(y, tuple(state)))
    return outcomes
