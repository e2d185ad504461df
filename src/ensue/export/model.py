"""Writes a whole model as files of another language, after a comparison with Python."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ensue.data.settings import DataSettings
from ensue.errors import EnsueError, OptionError
from ensue.export.c_folder import (
    example_words,
    folder_files,
    forecast_remark,
    is_forecast,
    run_folder,
)
from ensue.export.grid import CASES, TOLERANCE, ExportMismatch, with_stored_weights
from ensue.export.module import PIECES, module_text, packed, run_in_node
from ensue.export.onnx.network import network_model, traced
from ensue.export.onnx.run import session_of
from ensue.export.weights import store
from ensue.export.writing import Written
from ensue.files.disk import disk_errors, refuse_target, write_together
from ensue.tasks.abilities import NOTHING
from ensue.tasks.any_model import AnyModel
from ensue.tasks.exported import Exported, Graph, Step, rounded

if TYPE_CHECKING:
    import onnx

PAGE = Path(__file__).parent / "page"
PARTS = ("questions", "answers", "page")  # in this order, from the last
PLACEHOLDER = re.compile("@(TITLE|POLICY|SCRIPT)@")
SERIES = 'AFTER["steps ahead"] ='  # marks modules whose page needs a plot


def page_of(module: str, title: str) -> str:
    """The page. module: the source of the model's module, whose functions the page calls."""
    frame = (PAGE / "page.html").read_text(encoding="utf-8")
    parts = (*PARTS[:-1], *(["plot"] if SERIES in module else []), PARTS[-1])
    source = "".join((PAGE / f"{name}.js").read_text(encoding="utf-8") for name in parts)
    script = re.sub(r"^export (?=function|const)", "", module, flags=re.MULTILINE) + source
    script = script.replace("</", "<\\/")  # must not contain the end of the element
    style = re.search(r"<style>(.*?)</style>", frame, re.DOTALL)
    assert style is not None
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style[1])}'; "
        "base-uri 'none'; form-action 'none'"
    )
    texts = {"TITLE": html.escape(title), "POLICY": policy, "SCRIPT": script}
    return PLACEHOLDER.sub(lambda name: texts[name[1]], frame)  # once: texts may have such names


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


FIRST_DAY = date(2026, 1, 1)
SHOWN_STEPS = 12  # shown steps of a series; the middle of longer ones is left out
LEFT_OUT = "…"


def _row(step: Step) -> dict[str, Any]:
    dates = {feature["name"]: str(FIRST_DAY) for feature in step["features"] if feature["reads"]}
    numbers = [
        field for field in (*step["features"], *step["numbers"]) if field["name"] not in dates
    ]
    example: dict[str, Any] = {step["text"]["name"]: "a text"} if "text" in step else {}
    example |= {number["name"]: float(f"{number['mean']:.3g}") for number in numbers}
    example |= {
        column["name"]: next(iter(column["categories"]), "") for column in step["categories"]
    }
    return example | dates


def _times(names: list[str], count: int) -> dict[str, list[Any]]:
    """One column of dates, or a column for each part of them."""
    days = [FIRST_DAY + timedelta(days=k) for k in range(count)]
    if len(names) == 1:
        return {names[0]: list(map(str, days))}
    return {name: [getattr(day, name.strip().lower(), 0) for day in days] for name in names}


def _series(step: Step) -> list[float] | dict[str, Any]:
    """A series with the necessary number of steps; series known ahead are longer."""
    count, names = max(step["least"], 3), step["columns"]
    numbers = [float(k + 1) for k in range(count)]
    if not step["time"] and not step["ids"] and len(names) == 1:
        return numbers
    ahead = step["horizon"] if step["known"] else 0
    example: dict[str, Any] = dict(zip(step["ids"], next(iter(step["series"]), ()), strict=False))
    example |= _times(step["time"], count + ahead) if step["time"] else {}
    example |= dict.fromkeys(names, numbers)
    example |= {name: [0.0] * (count + ahead) for name in names[len(names) - step["known"] :]}
    return example | {name: (code["names"] or [code["mean"]])[0] for name, code in step["static"]}


def _vectors(width: int) -> list[list[float]]:
    return [[float(k) for k in range(width)]] * 2


def _joined(steps: Sequence[Step]) -> dict[str, Any]:
    """An example row, with a column for each input."""
    example: dict[str, Any] = {}
    for step in steps:
        inside = step["steps"][0] if step["steps"] else {"step": ""}
        made = QUESTIONS.get(inside["step"])
        if not step["column"]:
            example |= {} if made is None else made(inside)
        elif step["column"] not in example:
            example[step["column"]] = "a text" if made is None else made(inside)
    return example


QUESTIONS: dict[str, Callable[[Step], Any]] = {  # by the first step applied to a question
    "pair": lambda step: ["a text", "another text"],
    "row": _row,
    "picture": lambda step: {"shape": step["shape"], "data": LEFT_OUT},
    "series": _series,
    "brackets": lambda step: "(S (NP the cat) (VP sat))",
    "vectors": lambda step: _vectors(step["width"]),
    "scale": lambda step: _vectors(len(step["mean"])),
}


def example_question(exported: Exported) -> Any:
    step = exported.before[0]
    if step["step"] == "input":
        return _joined(exported.before)
    made = QUESTIONS.get(step["step"])
    return "a text" if made is None else made(step)


def _abridged(question: Any) -> Any:
    """A question whose long values lose their middle."""
    if isinstance(question, dict):
        return {name: _abridged(value) for name, value in question.items()}
    if isinstance(question, list) and len(question) > SHOWN_STEPS:
        return [*question[:2], LEFT_OUT, question[-1]]
    return question


def as_json(question: Any) -> str:
    written = json.dumps(_abridged(question), ensure_ascii=False)
    return written.replace(json.dumps(LEFT_OUT, ensure_ascii=False), LEFT_OUT)


def on_command_line(exported: Exported) -> str:
    """The example as an argument of predict.py: a text, the file name of a picture, or JSON."""
    if exported.before[0]["step"] == "picture":
        return "picture.npy"
    question = example_question(exported)
    return shlex.quote(question if isinstance(question, str) else as_json(question))


def is_fed(exported: Exported) -> bool:
    """Whether the model reads its input in pieces."""
    return any(step["step"] == "stream" for step in exported.before)


def feeding(exported: Exported) -> str:
    """Code that feeds two pieces of the example, in Python and in JavaScript."""
    question = example_question(exported)
    parts = question.split() if isinstance(question, str) else [[item] for item in question]
    return "; ".join(f"fed.feed({as_json(part)})" for part in parts[:2])


BEGINNING = 10  # first bytes of every file of a kind; for a description, everything before its task
FOLDER = ".c"  # ending of the name of a written folder
EXAMPLE = Path(__file__).parent / "example"
Outputs = Sequence[NDArray[Any]]
Tensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class TracedModel:
    """A model's exported parts, with its networks as graphs, made once for all targets. title: the
    title of a page, "" for the name of its file."""

    exported: Exported
    title: str = ""

    @cached_property
    def graphs(self) -> dict[str, onnx.ModelProto]:
        return {
            graph.name: traced(
                with_stored_weights(graph.network, "float32"),
                graph.example(),
                graph.axes,
                graph.outputs,
            )
            for graph in self.exported.graphs
        }


def write_model(
    model: AnyModel,
    path: Path,
    *,
    weights: str = "float32",
    unchecked: bool = False,
    streaming: bool = False,
    title: str = "",
) -> Written:
    """Writes model.onnx with preprocess.json and a runnable example; model.js; page.html; or, for a
    path that ends in .c, a folder of C. streaming: the model reads its input piece by piece. title:
    of a page, by default the name of its file."""
    refuse_path(path)
    exported = model.exported()
    if streaming:
        from ensue.export.streaming import streamed

        exported = streamed(exported)
    return write_traced(TracedModel(exported, title), path, weights, unchecked)


def write_traced(
    model: TracedModel, path: Path, weights: str = "float32", unchecked: bool = False
) -> Written:
    refuse_path(path)
    return WRITERS[path.suffix](model, path, weights, unchecked)


def refuse_path(path: Path) -> None:
    """Raises OptionError if no export can have this name."""
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
    exported: Exported, weights: str, run: Callable[[str, Tensors], Outputs], target: str
) -> float:
    """The largest difference over the grid; raises ExportMismatch if one is too large."""
    worst = 0.0
    rounded = {graph.name: with_stored_weights(graph.network, weights) for graph in exported.graphs}
    for graph, inputs in cases_of(exported):
        references = rounded[graph.name](*inputs.values())
        references = references if isinstance(references, tuple) else (references,)
        shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in inputs.items())
        try:
            got = run(graph.name, inputs)
        except Exception as error:  # whatever the program prints
            raise ExportMismatch(
                f"{target}: not exported: running the exported network on {shapes} failed: "
                f"{str(error)[:500]}"
            ) from error
        for name, value, other in zip(graph.outputs, references, got, strict=True):
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
    made = {name: network_model(graph, weights) for name, graph in model.graphs.items()}
    about = exported.description()
    first = next(iter(made.values()))
    small = json.dumps(packed(about), ensure_ascii=False)
    for key, value in {"ensue.task": exported.task, "ensue.preprocess": small}.items():
        first.metadata_props.add(key=key, value=value)
    data = {name: value.SerializeToString() for name, value in made.items()}
    worst = 0.0
    if not unchecked:
        sessions = {name: session_of(value) for name, value in data.items()}

        def run(name: str, inputs: Tensors) -> Outputs:
            outputs: Outputs = sessions[name].run(None, {k: v.numpy() for k, v in inputs.items()})
            return outputs

        worst = compare_outputs(exported, weights, run, "ONNX")
    named = [path.name, *(f"{path.stem}.{name}.onnx" for name in list(made)[1:])]
    files = dict(zip(named, data.values(), strict=True))
    files[path.stem + ".preprocess.json"] = json.dumps(about, ensure_ascii=False).encode()
    files["predict.py"] = example_text().encode()
    remarks = [f"try it: python predict.py {path.name} {on_command_line(exported)}"]
    if is_fed(exported):
        begun = f"import predict; fed = predict.Stream({path.name!r})"
        remarks.append(f"piece by piece: {begun}; {feeding(exported)}")
    return _written(path.parent, files, unchecked, worst, remarks, path.name)


def example_text() -> str:
    """The runnable example. It supports the steps of every model, so that several models may share
    a folder."""
    steps = dict.fromkeys(name for names in PIECES.values() for name in names)
    return "".join(map(example_piece, ["core", *steps, "main"]))


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
        cases = [(graph.name, inputs) for graph, inputs in cases_of(model.exported)]
        try:
            answers = iter(run_folder(model.exported.graphs, files, cases))
        except EnsueError as error:
            raise ExportMismatch(
                f"C: not exported: running the exported code failed: {error}"
            ) from error
        worst = compare_outputs(model.exported, weights, lambda *_: next(answers), "C")
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
    """Runs all cases in one process of Node."""
    cases = [(graph.name, inputs) for graph, inputs in cases_of(exported)]
    try:
        answers = iter(run_in_node(source, cases))
    except EnsueError as error:
        raise ExportMismatch(
            f"JavaScript: not exported: running the exported code failed: {error}"
        ) from error
    return compare_outputs(exported, weights, lambda *_: next(answers), "JavaScript")


def _written(
    folder: Path,
    files: Mapping[str, bytes],
    unchecked: bool,
    worst: float,
    remarks: Sequence[str],
    arguments: str = "",
) -> Written:
    """Writes the files. arguments: the name that the user gave. Other names are chosen here, and
    these files only replace files that an export wrote."""
    ours = [name for name in files if name != arguments]
    foreign = [name for name in ours if _of_somebody_else(folder / name, files[name])]
    if foreign:
        raise OptionError(
            f"{folder / foreign[0]} already exists, and no export wrote it; it would be lost, "
            "so nothing was exported. Name a path in another folder, or move that file"
        )
    write_together(folder, files)
    made = tuple(folder / name for name in files)
    return Written(made, 0 if unchecked else len(CASES), worst, tuple(remarks))


def _of_somebody_else(path: Path, content: bytes) -> bool:
    """Whether an existing file was not written by an export: it begins otherwise than the new
    content."""
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


# --- what fewer bits a weight cost ----------------------------------------------------------


def changed(model: AnyModel, learned: Any, networks: list[nn.Module]) -> AnyModel:
    """A copy of the model with other fitted parts and networks."""
    other: Any = copy(model)
    other._learned, other.networks = learned, networks
    changed_model: AnyModel = other
    return changed_model


def change_of_scores(
    data: DataSettings, model: AnyModel, weights: str
) -> dict[str, tuple[float, float]]:
    """The validation scores of the networks and of the linear model, each as a pair: as trained,
    and with rounded weights."""
    part = model.reader.files(data).part("validation")
    networks = [with_stored_weights(network, weights) for network in model.networks]
    learned = rounded(model.learned, lambda matrix: store(matrix, weights).value)
    before = model.evaluate_part(part, NOTHING).scores
    after = changed(model, learned, networks).evaluate_part(part, NOTHING).scores
    return {name: (score.value, after[name].value) for name, score in before.items()}
