"""The format of what Ensue writes, and the one refusal of every other format.

Models, checkpoints and the JSON files of runs and selections carry FORMAT. From 0.3.0 on every
format stays readable; the versions before it wrote other ones, which are refused."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ensue.errors import RunError
from ensue.escape import in_shell
from ensue.files.atomic_folder import MANIFEST, Damaged, manifest_of
from ensue.files.disk import free_name
from ensue.files.opening import read_plain

FORMAT = 3
VERSIONS = {1: "0.1.0", 2: "0.2.0"}  # formats that are no longer read, and who wrote them
CONFIG, SELECTION = "config.toml", "selection.json"
MOST_UP = 4  # folders from a checkpoint of a member up to its run
# Where a run, a model or a selection records the version that wrote it.
RECORDS = (
    *(MANIFEST, "model.json", "model/model.json", "learned/model.json"),
    *("checkpoints/*/manifest.json", "*/model/model.json", "*/checkpoints/*/manifest.json"),
)
PARTS = ("train", "validation", "test", "unlabelled")  # lists of files
OPTIONS = ("text", "label", "separator", "sequence", "group")  # columns that have an option
# Defaults of the data table; anything empty is a default, too.
DEFAULTS = {"format": "auto", "encoding": "utf-8", "decimal": ".", "train_rows": "all"}
GONE = ("split_version",)
# Settings of the model without which other columns would be read.
COLUMNS = ("targets", "covariates", "known", "ids", "static", "time", "horizon")
# What reading a file that is not as Ensue writes it may end in.
FAULTS = (OSError, RunError, Damaged, ValueError, RecursionError)


def check_format(number: Any, place: Path, version: str = "") -> None:
    """Raises RunError if the format of a folder or file is not FORMAT, Damaged if it is no number
    of a format. version: the Ensue that wrote it, if recorded."""
    if type(number) is not int or number < 1:
        raise Damaged(f"format: expected {FORMAT}, got {number!r}")
    if number > FORMAT:
        raise RunError(
            f"{place}: a newer Ensue wrote this, in format {number}; this version reads format "
            f"{FORMAT}. Nothing was changed.\nNext: pip install --upgrade ensue"
        )
    if number < FORMAT:
        raise _refusal(number, place, version)


def check_folder(place: Path) -> None:
    """The same for a folder with a manifest. Missing and damaged manifests pass: readers of the
    folder report them."""
    try:
        manifest = manifest_of(read_plain(place / MANIFEST))
    except FAULTS:
        return
    try:
        check_format(manifest.get("format"), place, str(manifest.get("ensue", "")))
    except Damaged:
        return


def _refusal(number: int, place: Path, version: str) -> RunError:
    """What to do with a run, a model or a selection of an older version."""
    root = _root_of(place)
    recorded = (
        version_name
        for version_name in (version, *_recorded(root))
        if version_name in VERSIONS.values()
    )
    wrote = next(recorded, VERSIONS[number])
    lines = [
        f"{root}: Ensue {wrote} wrote this, in format {number}; this version reads format "
        f"{FORMAT}. Nothing was changed.",
        f"To use it as it is: pip install 'ensue=={wrote}'",
        f"To train it again with this version: {_command(root)}",
    ]
    if (config := _config_of(root)) is not None:
        lines.append(f"Add the settings that you chose yourself with --set; {config} has them.")
    return RunError("\n".join(lines))


def _root_of(place: Path) -> Path:
    """The folder of the run or the selection that a file or folder belongs to, else the folder
    itself."""
    folder = place.parent if place.suffix == ".json" else place
    for parent in (folder, *folder.parents[:MOST_UP]):
        if (
            (parent / CONFIG).is_file()
            and not (parent / MANIFEST).exists()
            and _tables(parent / CONFIG)
        ):
            return parent
    return folder


def _recorded(root: Path) -> Iterator[str]:
    """The versions that the files of a folder name."""
    for pattern in RECORDS:
        for path in sorted(root.glob(pattern)):
            try:
                facts = json.loads(read_plain(path))
            except FAULTS:
                continue
            if isinstance(facts, dict):
                yield str(facts.get("ensue", ""))


def _config_of(root: Path) -> Path | None:
    """The configuration of a run, or of the first trial of a selection."""
    if (root / MANIFEST).exists():
        return None  # a model that was saved alone: its copy names files from elsewhere
    files = (path for path in (root / CONFIG, *sorted(root.glob(f"*/{CONFIG}"))))
    return next((path for path in files if _tables(path)), None)


def _tables(config: Path) -> Mapping[str, Any]:
    """The tables of a configuration; {} if it is not valid."""
    try:
        tables = tomllib.loads(read_plain(config).decode())
    except FAULTS:
        return {}
    task, data = tables.get("task"), tables.get("data")
    known = isinstance(task, str) and isinstance(data, dict) and _texts(data.get("train"))
    return tables if known else {}


def _texts(value: Any) -> list[str]:
    """The texts of a list; [] for anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


# --- the command that trains again -----------------------------------------------------------


def _command(root: Path) -> str:
    """`ensue train` or `ensue select` with the files and columns of an older run."""
    config = _config_of(root)
    verb = "select" if (root / SELECTION).exists() else "train"
    run = ["--run", str(free_name(root))]
    if config is None:
        kind = _kind_of(root)
        return " ".join(["ensue", verb, "FILES", *kind, *map(in_shell, run)])
    tables = _tables(config)
    data = tables["data"]
    words = [*_files(data, PARTS[0], config), "--task", tables["task"]]
    for part in PARTS[1:]:
        words += [word for file in _files(data, part, config) for word in (f"--{part}", file)]
    words += _columns(tables)
    return " ".join(["ensue", verb, *map(in_shell, [*words, *run])])


def _kind_of(root: Path) -> list[str]:
    """The task of a model that was saved alone, as an option."""
    try:
        facts = json.loads(read_plain(root / "model.json"))
    except FAULTS:
        return []
    kind = facts.get("kind") if isinstance(facts, dict) else None
    return ["--task", in_shell(kind)] if isinstance(kind, str) else []


def _files(data: Mapping[str, Any], part: str, config: Path) -> list[str]:
    """The files of a part from where the command is given; of parallel files each side."""
    files = []
    for path in _texts(data.get(part)):
        whole = os.path.normpath(config.parent / path)
        sides = [os.path.normpath(config.parent / side) for side in path.split(",")]
        files.append(whole if os.path.exists(whole) else ",".join(sides))
    return files


def _columns(tables: Mapping[str, Any]) -> list[str]:
    """How the files were read, as options."""
    words = list[str]()
    for key, value in tables["data"].items():
        if not value or key in (*PARTS, *GONE) or DEFAULTS.get(key) == value:
            continue
        words += [f"--{key}", str(value)] if key in OPTIONS else _set(f"data.{key}", value)
    model = tables.get("model")
    known = model if isinstance(model, dict) else {}
    for key in COLUMNS:
        words += _set(f"model.{key}", known[key]) if known.get(key) else []
    return words


def _set(key: str, value: Any) -> list[str]:
    return ["--set", f"{key}={json.dumps(value, ensure_ascii=False, default=str)}"]
