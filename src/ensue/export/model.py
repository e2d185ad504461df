"""A whole model into files of another language, once it has been compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.errors import OptionError
from ensue.export.grid import CASES, TOLERANCE, ExportMismatch, with_stored_weights
from ensue.export.onnx.network import network_model
from ensue.export.onnx.run import session_of
from ensue.export.page.classifier import classifier_module, run_in_node
from ensue.export.page.page import page_of
from ensue.export.writing import Written
from ensue.files.disk import refuse_target, write_whole
from ensue.tasks.exported import Exported
from ensue.tasks.model import Model

EXAMPLE = Path(__file__).parent / "onnx_example.py.txt"
Outputs = Sequence[NDArray[np.float32]]


def write_model(
    model: Model[Any, Any, Any],
    path: Path,
    *,
    weights: str = "float32",
    unchecked: bool = False,
) -> Written:
    """model.onnx, preprocess.json and a runnable example beside it, as the path ends."""
    if path.suffix not in WRITERS:
        known = ", ".join(WRITERS)
        raise OptionError(
            f"{path}: a whole model is exported to a file that ends in {known}, "
            f"got {path.suffix or 'no ending'}"
        )
    refuse_target(path)
    return WRITERS[path.suffix](model.task.exported(model), path, weights, unchecked)


def _write_onnx(exported: Exported, path: Path, weights: str, unchecked: bool) -> Written:
    network = with_stored_weights(exported.network, "float32")
    example = exported.drawn(5, [5, 2, 3], seed=1)
    axes = {
        own.name: [k if isinstance(k, str) else None for k in own.axes] for own in exported.inputs
    }
    axes["lengths"] = ["batch"]
    made = network_model(network, example, axes, exported.outputs, weights)
    about = json.dumps(exported.description(), ensure_ascii=False)
    for key, value in {"ensue.task": exported.task, "ensue.preprocess": about}.items():
        made.metadata_props.add(key=key, value=value)
    data, worst, count = made.SerializeToString(), 0.0, 0
    if not unchecked:
        session = session_of(data)
        rounded = with_stored_weights(exported.network, weights)

        def run(given: dict[str, torch.Tensor]) -> Outputs:
            found: Outputs = session.run(None, {k: v.numpy() for k, v in given.items()})
            return found

        worst = compare_outputs(exported, rounded, run, "ONNX")
        count = len(CASES)
    beside = {path.stem + ".preprocess.json": about.encode()}
    beside["predict.py"] = EXAMPLE.read_bytes()
    for name, content in {path.name: data, **beside}.items():
        write_whole(path.parent / name, content)
    files = tuple(path.parent / name for name in (path.name, *beside))
    return Written(files, count, worst, (f"try it: python predict.py {path.name} 'a text'",))


@torch.no_grad()
def compare_outputs(
    exported: Exported,
    network: torch.nn.Module,
    run: Callable[[dict[str, torch.Tensor]], Outputs],
    target: str,
) -> float:
    """The largest difference over the grid; ExportMismatch where one is too large."""
    worst = 0.0
    for seed, (time, rows, lengths, _) in enumerate(CASES):
        given = exported.drawn(time, lengths or [time] * rows, seed)
        wanted = network(*given.values())
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        try:
            got = run(given)
        except Exception as error:  # whatever the program that runs it says
            raise ExportMismatch(
                f"{target}: not exported: it does not run over {rows} rows of {time} steps: "
                f"{str(error)[:500]}"
            ) from error
        for name, value, other in zip(exported.outputs, wanted, got, strict=True):
            expected = value.numpy()
            away = float(np.abs(expected - other).max(initial=0.0))
            most = TOLERANCE * max(1.0, float(np.abs(expected).max(initial=0.0)))
            if expected.shape != other.shape or not away <= most:
                raise ExportMismatch(
                    f"{target}: not exported: {name} is {away:.2g} away from Python's, more than "
                    f"{most:.2g}, over {rows} rows of {time} steps, lengths {list(lengths or [])}. "
                    "This is a fault of the export, not of the model; please report it"
                )
            worst = max(worst, away)
    return worst


def _write_javascript(exported: Exported, path: Path, weights: str, unchecked: bool) -> Written:
    source = classifier_module(exported, weights)
    worst = 0.0 if unchecked else _compared_in_node(exported, source, weights)
    write_whole(path, source.encode())
    remark = f'import {{ answer }} from "./{path.name}"; answer("a text").label'
    return Written((path,), 0 if unchecked else len(CASES), worst, (remark,))


def _write_page(exported: Exported, path: Path, weights: str, unchecked: bool) -> Written:
    source = classifier_module(exported, weights)
    worst = 0.0 if unchecked else _compared_in_node(exported, source, weights)
    write_whole(path, page_of(source, path.stem).encode())
    return Written(
        (path,), 0 if unchecked else len(CASES), worst, (f"open file://{path.resolve()}",)
    )


def _compared_in_node(exported: Exported, source: str, weights: str) -> float:
    """All cases in one process, row by row."""
    given = [
        exported.drawn(time, lengths or [time] * rows, seed)
        for seed, (time, rows, lengths, _) in enumerate(CASES)
    ]
    found = iter(run_in_node(source, given))
    rounded = with_stored_weights(exported.network, weights)
    return compare_outputs(exported, rounded, lambda _: [next(found)], "JavaScript")


WRITERS: dict[str, Callable[[Exported, Path, str, bool], Written]] = {
    ".onnx": _write_onnx,
    ".js": _write_javascript,
    ".html": _write_page,
}
