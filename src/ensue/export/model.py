"""A whole model into files of another language, once it has been compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.errors import EnsueError, OptionError
from ensue.export.c_folder import example_words, folder_files, run_folder
from ensue.export.example_question import (
    as_json,
    example_question,
    feeding,
    is_fed,
    on_command_line,
)
from ensue.export.forecast_c import forecast_remark, is_forecast
from ensue.export.grid import CASES, TOLERANCE, ExportMismatch, with_stored_weights
from ensue.export.module import module_text, pieces, run_in_node
from ensue.export.onnx.network import network_model, traced
from ensue.export.onnx.run import session_of
from ensue.export.packing import packed
from ensue.export.page.page import page_of
from ensue.export.streaming import streamed
from ensue.export.writing import Written
from ensue.files.disk import disk_errors, refuse_target, write_whole
from ensue.tasks.exported import Exported, Graph
from ensue.tasks.model import Model

if TYPE_CHECKING:
    import onnx

BEGINNING = 10  # bytes that every file of a kind begins with: of a description, all before its task
FOLDER = ".c"  # ends the name of a folder that is written
EXAMPLE = Path(__file__).parent / "example"
Outputs = Sequence[NDArray[Any]]
Given = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class TracedModel:
    """What a task handed over, with its networks as graphs, made once for all targets. title: what
    a page is called; "": as its file."""

    exported: Exported
    title: str = ""

    @cached_property
    def graphs(self) -> dict[str, onnx.ModelProto]:
        return {
            own.name: traced(
                with_stored_weights(own.network, "float32"), own.example(), own.axes, own.outputs
            )
            for own in self.exported.graphs
        }


def write_model(
    model: Model[Any, Any, Any],
    path: Path,
    *,
    weights: str = "float32",
    unchecked: bool = False,
    streaming: bool = False,
    title: str = "",
) -> Written:
    """model.onnx, preprocess.json and a runnable example beside it; model.js; page.html; or, of a
    path that ends in .c, a folder of C. streaming: a model that is fed piece by piece. title: of a
    page, the name of its file where there is none."""
    refuse_path(path)
    found = model.task.exported(model)
    found = streamed(found) if streaming else found
    return write_traced(TracedModel(found, title), path, weights, unchecked)


def write_traced(
    model: TracedModel, path: Path, weights: str = "float32", unchecked: bool = False
) -> Written:
    refuse_path(path)
    return WRITERS[path.suffix](model, path, weights, unchecked)


def refuse_path(path: Path) -> None:
    """OptionError where no export can have this name."""
    if path.suffix not in WRITERS:
        known = ", ".join(WRITERS)
        raise OptionError(
            f"{path}: a whole model is exported to a file that ends in {known}, "
            f"got {path.suffix or 'no ending'}"
        )
    if path.suffix == FOLDER and path.is_dir():
        return
    if path.suffix == FOLDER and path.exists():
        raise OptionError(
            f"{path} is a file, and a model in C is a folder: not exported. Give another name, or "
            "move that file"
        )
    refuse_target(path)


# --- compared ------------------------------------------------------------------------------------


def cases_of(exported: Exported) -> Iterator[tuple[Graph, dict[str, torch.Tensor]]]:
    """Every graph with inputs of every combination of the grid."""
    for graph in exported.graphs:
        for seed, (time, rows, lengths, _) in enumerate(CASES):
            yield graph, graph.drawn(time, lengths or [time] * rows, seed)


@torch.no_grad()
def compare_outputs(
    exported: Exported, weights: str, run: Callable[[str, Given], Outputs], target: str
) -> float:
    """The largest difference over the grid; ExportMismatch where one is too large."""
    worst = 0.0
    rounded = {own.name: with_stored_weights(own.network, weights) for own in exported.graphs}
    for graph, given in cases_of(exported):
        wanted = rounded[graph.name](*given.values())
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        shapes = ", ".join(f"{name} {tuple(own.shape)}" for name, own in given.items())
        try:
            got = run(graph.name, given)
        except Exception as error:  # whatever the program that runs it says
            raise ExportMismatch(
                f"{target}: not exported: it does not run over {shapes}: {str(error)[:500]}"
            ) from error
        for name, value, other in zip(graph.outputs, wanted, got, strict=True):
            worst = max(worst, _difference(value.numpy(), other, f"{target}: {name}", shapes))
    return worst


def _difference(expected: NDArray[Any], got: NDArray[Any], what: str, shapes: str) -> float:
    finite = np.isfinite(expected)
    same = expected.shape == got.shape and bool((expected[~finite] == got[~finite]).all())
    near = expected[finite] if same else expected[:0]
    away = float(np.abs(near - got[finite]).max(initial=0.0)) if same else float("inf")
    most = TOLERANCE * max(1.0, float(np.abs(near).max(initial=0.0)))
    if not away <= most:
        raise ExportMismatch(
            f"{what}: not exported: {away:.2g} away from Python's, more than {most:.2g}, over "
            f"{shapes}. This is a fault of the export, not of the model; please report it"
        )
    return away


# --- written -------------------------------------------------------------------------------------


def _write_onnx(model: TracedModel, path: Path, weights: str, unchecked: bool) -> Written:
    exported = model.exported
    made = {name: network_model(own, weights) for name, own in model.graphs.items()}
    about = exported.description()
    first = next(iter(made.values()))
    small = json.dumps(packed(about), ensure_ascii=False)
    for key, value in {"ensue.task": exported.task, "ensue.preprocess": small}.items():
        first.metadata_props.add(key=key, value=value)
    data = {name: own.SerializeToString() for name, own in made.items()}
    worst = 0.0
    if not unchecked:
        sessions = {name: session_of(own) for name, own in data.items()}

        def run(name: str, given: Given) -> Outputs:
            found: Outputs = sessions[name].run(None, {k: v.numpy() for k, v in given.items()})
            return found

        worst = compare_outputs(exported, weights, run, "ONNX")
    named = [path.name, *(f"{path.stem}.{name}.onnx" for name in list(made)[1:])]
    files = dict(zip(named, data.values(), strict=True))
    files[path.stem + ".preprocess.json"] = json.dumps(about, ensure_ascii=False).encode()
    files["predict.py"] = example_text(exported).encode()
    remarks = [f"try it: python predict.py {path.name} {on_command_line(exported)}"]
    if is_fed(exported):
        begun = f"import predict; fed = predict.Stream({path.name!r})"
        remarks.append(f"piece by piece: {begun}; {feeding(exported)}")
    return _written(path.parent, files, unchecked, worst, remarks, path.name)


def example_text(exported: Exported) -> str:
    """The runnable example: what every model needs, and what the steps of this one do."""
    named = ["core", *pieces(exported)]
    question = f"\n\nQUESTION = {on_command_line(exported)!r}  # an example\n"
    return "".join([*map(example_piece, named), question, example_piece("main")])


def example_piece(name: str) -> str:
    return (EXAMPLE / f"{name}.py.txt").read_text(encoding="utf-8")


def _write_javascript(model: TracedModel, path: Path, weights: str, unchecked: bool) -> Written:
    source = module_text(model.exported, model.graphs, weights)
    worst = 0.0 if unchecked else _compared_in_node(model.exported, source, weights)
    question = as_json(example_question(model.exported))
    remarks = [f'import {{ answer }} from "./{path.name}"; answer({question})']
    if is_fed(model.exported):
        begun = f'import {{ stream }} from "./{path.name}"; const fed = stream()'
        remarks.append(f"piece by piece: {begun}; {feeding(model.exported)}")
    files = {path.name: source.encode()}
    return _written(path.parent, files, unchecked, worst, remarks, path.name)


def _write_page(model: TracedModel, path: Path, weights: str, unchecked: bool) -> Written:
    source = module_text(model.exported, model.graphs, weights)
    worst = 0.0 if unchecked else _compared_in_node(model.exported, source, weights)
    files = {path.name: page_of(source, model.title or path.stem).encode()}
    remarks = [f"open file://{path.resolve()}"]
    return _written(path.parent, files, unchecked, worst, remarks, path.name)


def _write_c(model: TracedModel, path: Path, weights: str, unchecked: bool) -> Written:
    files, worst = folder_files(model.exported, model.graphs, weights), 0.0
    if not unchecked:
        cases = [(graph.name, given) for graph, given in cases_of(model.exported)]
        try:
            found = iter(run_folder(model.exported.graphs, files, cases))
        except EnsueError as error:
            raise ExportMismatch(f"C: not exported: it does not run: {error}") from error
        worst = compare_outputs(model.exported, weights, lambda *_: next(found), "C")
    with disk_errors(path, 0):
        path.mkdir(exist_ok=True)
    words = example_words(model.exported.graphs[0])
    remark = (
        f"try it: cd {path} && cc -std=c99 example.c model.c -lm -o example && ./example {words}"
    )
    if is_forecast(model.exported):
        remark = forecast_remark(model.exported, path)
    return _written(path, files, unchecked, worst, [remark])


def _compared_in_node(exported: Exported, source: str, weights: str) -> float:
    """All cases in one process."""
    cases = [(graph.name, given) for graph, given in cases_of(exported)]
    try:
        found = iter(run_in_node(source, cases))
    except EnsueError as error:
        raise ExportMismatch(f"JavaScript: not exported: it does not run: {error}") from error
    return compare_outputs(exported, weights, lambda *_: next(found), "JavaScript")


def _written(
    folder: Path,
    files: Mapping[str, bytes],
    unchecked: bool,
    worst: float,
    remarks: Sequence[str],
    given: str = "",
) -> Written:
    """given: the name that a person gave; files of other names are ours to choose, and replace
    none that an export did not write."""
    ours = [name for name in files if name != given]
    foreign = [name for name in ours if _of_somebody_else(folder / name, files[name])]
    if foreign:
        raise OptionError(
            f"{folder / foreign[0]} is there already, and no export wrote it: not exported, for it "
            "would be lost. Give a path in another folder, or move that file"
        )
    for name, content in files.items():
        write_whole(folder / name, content)
    made = tuple(folder / name for name in files)
    return Written(made, 0 if unchecked else len(CASES), worst, tuple(remarks))


def _of_somebody_else(path: Path, content: bytes) -> bool:
    """Whether there is a file that does not begin as what is written in its place."""
    try:
        with path.open("rb") as file:
            return file.read(BEGINNING) != content[:BEGINNING]
    except FileNotFoundError:
        return False
    except OSError:
        return True


Writer = Callable[[TracedModel, Path, str, bool], Written]
WRITERS: dict[str, Writer] = {
    ".onnx": _write_onnx,
    ".js": _write_javascript,
    ".html": _write_page,
    FOLDER: _write_c,
}
