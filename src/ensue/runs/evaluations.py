"""evaluation.json: the evaluations of a run, one entry for each part, with files and scores.

evaluation-rows/ has each row's contribution to the scores, one file for each entry, so that two
runs can be compared row by row. All files are sealed: a file that differs in one bit is not
read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from ensue.errors import RunError
from ensue.files.atomic_folder import MANIFEST, Damaged, digest, finite, sealed, unsealed
from ensue.files.disk import disk_errors, write_whole
from ensue.files.format import FORMAT, check_format
from ensue.files.opening import HISTORY_FILE, NUMBERS, is_plain_name, read_plain
from ensue.files.run_folder import RunFolder
from ensue.files.seal import content_digest
from ensue.tasks.evaluation.bootstrap import WIDTHS, RowSums
from ensue.tasks.evaluation.report import Evaluation

NAMES = "names"
TEXTS = ("part", "task", "model", "best_so_far", "when", "ensue", "opening")
TABLES = ("basis", "options", "rows")
# What rows that Ensue has not written may end in.
ROWS_FAULTS = (OSError, Damaged, KeyError, ValueError, TypeError, RecursionError, SafetensorError)
INTEGERS = (np.uint8, np.uint16, np.uint32, np.int64)


@dataclass(frozen=True)
class EvaluatedFile:
    """A file of an evaluation. path: the path in the run's configuration."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Evaluated:
    """A stored evaluation. part: test or validation; files: the files of its rows; basis: settings
    that must be the same in runs that it is compared with; options: options of the task ("asked" in
    the file); model: digest of the model; best_so_far: the source of the weights if the run was
    unfinished, else ""; when: UTC; rows: name and digest of the file with its rows; opening: digest
    of the line that records the use of the test part."""

    part: str
    task: str
    files: tuple[EvaluatedFile, ...]
    basis: Mapping[str, Any]
    options: Mapping[str, Any]
    model: str
    best_so_far: str
    when: str
    ensue: str
    evaluation: Evaluation
    rows: Mapping[str, Any] = field(default_factory=dict)
    opening: str = ""

    def as_json(self) -> dict[str, Any]:
        facts = {_key_in_file(column.name): getattr(self, column.name) for column in fields(self)}
        facts["files"] = [{"path": file.path, "sha256": file.sha256} for file in self.files]
        facts["evaluation"] = finite(self.evaluation.as_json())
        return facts

    @classmethod
    def of_json(cls, facts: Mapping[str, Any], kind: type[Evaluation]) -> Evaluated:
        values = {column.name: facts[_key_in_file(column.name)] for column in fields(cls)}
        values["files"] = tuple(EvaluatedFile(**fact) for fact in facts["files"])
        for file in values["files"]:
            _expect(str, {"path": file.path, "sha256": file.sha256})
        _expect(str, {name: values[name] for name in TEXTS})
        _expect(dict, {name: values[name] for name in TABLES})
        values["evaluation"] = kind.of_json(facts["evaluation"])
        return cls(**values)


def _key_in_file(field_name: str) -> str:
    """The key of a field in the file; the format keeps an older name."""
    return "asked" if field_name == "options" else field_name


def _expect(kind: type, values: Mapping[str, object]) -> None:
    """Raises TypeError if a value is not of this type."""
    for name, value in values.items():
        if not isinstance(value, kind):
            raise TypeError(f"{name} is {value!r}, expected {kind.__name__}")


# --- the file ----------------------------------------------------------------------------------


def read_evaluations(folder: RunFolder, kind: type[Evaluation] = Evaluation) -> list[Evaluated]:
    """The evaluations of a run, latest last; [] if there are none. kind: the task's class."""
    entries = _entries(folder)
    try:
        return [Evaluated.of_json(entry, kind) for entry in entries]
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as why:
        raise _not_ours(folder, why) from None


def _entries(folder: RunFolder) -> list[dict[str, Any]]:
    """The entries of the file."""
    try:
        content = unsealed(read_plain(folder.evaluation), folder.evaluation.name)
        check_format(content["format"], folder.evaluation)
        return list(content["evaluations"])
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"{folder.evaluation}: cannot be read ({error.strerror})") from None
    except (Damaged, KeyError, TypeError) as why:
        raise _not_ours(folder, why) from None


def _not_ours(folder: RunFolder, why: Exception) -> RunError:
    return RunError(
        f"{folder.evaluation}: this is not what Ensue wrote: {why}; remove it, and evaluate again"
    )


def model_digest(folder: RunFolder) -> str:
    """The digest of the run's current model; "" if there is none."""
    try:
        return content_digest(read_plain(folder.model / MANIFEST))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""


def current_evaluations(folder: RunFolder, kind: type[Evaluation] = Evaluation) -> list[Evaluated]:
    """The evaluations of the run's current model."""
    now = model_digest(folder)
    return [evaluation for evaluation in read_evaluations(folder, kind) if evaluation.model == now]


def keep_evaluation(folder: RunFolder, new: Evaluated) -> None:
    """Adds an evaluation. It replaces an earlier evaluation of the same part, and all evaluations
    of another model."""
    data = _packed(new.evaluation)
    name = f"{new.part}-{digest(data)[:16]}.safetensors"
    entry = replace(new, rows={"file": name, "sha256": digest(data)}).as_json()
    with folder.writing():
        listed = [entry for entry in _entries(folder) if entry["model"] == new.model]
        listed = [*(other for other in listed if _key(other) != _key(entry)), entry]
        with disk_errors(folder.evaluation_rows, len(data)):
            folder.evaluation_rows.mkdir(exist_ok=True)
        write_whole(folder.evaluation_rows / name, data)
        text = sealed({"format": FORMAT, "evaluations": listed}, sort=False)
        write_whole(folder.evaluation, text)
        used = {row["rows"]["file"] for row in listed}
        for path in folder.evaluation_rows.glob("*.safetensors"):
            if path.name not in used:
                path.unlink(missing_ok=True)


def _key(entry: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The key of an entry: a part and its files. Each key occurs once."""
    return entry["part"], [file["sha256"] for file in entry["files"]]


# --- rows --------------------------------------------------------------------------------------


def _packed(evaluation: Evaluation) -> bytes:
    """The nonzero numbers of each score and their positions, in the smallest types that hold
    them."""
    arrays = {NAMES: np.frombuffer(json.dumps(list(evaluation.names)).encode(), np.uint8)}
    for name, sums in evaluation.sums.items():
        values = np.asarray(sums.values)
        places = np.flatnonzero(values)
        arrays[f"{name}.shape"] = np.array(values.shape, np.int64)
        arrays[f"{name}.statistic"] = np.frombuffer(sums.statistic.encode(), np.uint8)
        arrays[f"{name}.places"] = _narrow(places)
        arrays[f"{name}.values"] = _narrow(values.ravel()[places])
    return safetensors.numpy.save(
        {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    )


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Integers in the smallest type that holds them."""
    if not len(values) or not np.isfinite(values).all() or (values < 0).any():
        return values
    if (values != np.floor(values)).any() or values.max() > 2**53:
        return values
    kind = next(dtype for dtype in INTEGERS if values.max() <= np.iinfo(dtype).max)
    return values.astype(kind)


def read_rows(folder: RunFolder, evaluated: Evaluated) -> Evaluation:
    """The evaluation with what each of its rows adds."""
    name = str(evaluated.rows.get("file", ""))
    path = folder.evaluation_rows / name
    try:
        if not is_plain_name(name):
            raise Damaged("rows.file: expected the name of a file")
        data = read_plain(path, HISTORY_FILE)
        if digest(data) != evaluated.rows["sha256"]:
            raise Damaged("its sha256 differs")
        arrays = safetensors.numpy.load(data)
        names = json.loads(arrays.pop(NAMES).tobytes())
        if not isinstance(names, list) or not all(isinstance(row, str) for row in names):
            raise Damaged("names: expected a list of texts")
        scores = [name for name in evaluated.evaluation.scores if f"{name}.values" in arrays]
        sums = {name: _sums(arrays, name) for name in scores}
    except ROWS_FAULTS as why:
        raise RunError(
            f"{path}: this is not what Ensue wrote: {why}. Evaluate {folder.path} again"
        ) from None
    return replace(evaluated.evaluation, sums=sums, names=tuple(names))


def _sums(arrays: Mapping[str, NDArray[Any]], name: str) -> RowSums:
    """The sums of a score; Damaged where they are none that its statistic can have."""
    statistic = arrays[f"{name}.statistic"].tobytes().decode()
    shape = [int(size) for size in arrays[f"{name}.shape"]]
    rest, expected = shape[1:], WIDTHS.get(statistic)
    if expected is None:
        raise Damaged(f"{name}: unknown statistic")
    fits = len(rest) == len(expected) and all(
        size == width or width is None for size, width in zip(rest, expected, strict=True)
    )
    if not fits or min(shape) < 1 or math.prod(shape) > NUMBERS:
        raise Damaged(f"{name}: {shape} is no shape of {statistic}")
    places, numbers = arrays[f"{name}.places"], arrays[f"{name}.values"]
    whole = places.dtype.kind in "ui" and places.shape == numbers.shape == (places.size,)
    if not whole or (places.size and not 0 <= places.min() <= places.max() < math.prod(shape)):
        raise Damaged(f"{name}: positions that its shape does not have")
    values = np.zeros(shape)
    values.ravel()[places] = numbers
    return RowSums(statistic, values)
