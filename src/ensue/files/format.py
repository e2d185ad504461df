"""The format number of Ensue's files, and the error for other formats.

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
VERSIONS = {1: "0.1.0", 2: "0.2.0"}  # formats that are no longer read: last version
COMMITS = {"0.1.0": "6a3630e", "0.2.0": "c338af1"}  # last version of each
CONFIG, SELECTION = "config.toml", "selection.json"
MOST_UP = 4  # number of folders from a member's checkpoint up to its run
# Where a run, a model or a selection records the version that wrote it.
RECORDS = (
    *(MANIFEST, "model.json", "model/model.json", "learned/model.json"),
    *("checkpoints/*/manifest.json", "*/model/model.json", "*/checkpoints/*/manifest.json"),
)
PARTS = ("train", "validation", "test", "unlabelled")  # lists of files
OPTIONS = ("text", "label", "separator", "sequence", "group")  # columns that are options
# Settings of the model that decide which columns are read.
COLUMNS = ("targets", "covariates", "known", "ids", "static", "time", "horizon")
# Every setting and its default, by task: read as data, because files/ does not import tasks.
SETTINGS = Path(__file__).parent.parent / "runs" / "settings.json"
TABLES = ("", "text", "model", "train")  # tables of config.toml without the data
# Settings whose defaults depend on the training part; their values are always written out.
FITTED = frozenset(
    [
        "text.level",
        "model.linear",
        "model.linear_share",
        "model.pooling",
        "model.hidden_size",
        "model.embedding_size",
        "model.character_hidden",
        "model.dropout_input",
        "model.dropout_output",
        "model.once_dropout",
        "model.word_dropout",
        "model.batch_rows",
        "model.output",
        "model.legal_only",
        "model.leave_out",
        "model.features",
        "model.missing",
        "model.threshold",
        "model.softmax",
        "model.softmax_cuts",
        "model.look_back",
        "model.calendar",
        "model.epoch_windows",
        "model.batch_windows",
        "train.epochs",
        "train.patience",
        "train.averaging",
        "train.rate",
        "train.schedule",
        "train.watch",
    ]
)
# Errors that reading an invalid file may raise.
FAULTS = (OSError, RunError, Damaged, ValueError, RecursionError)


def check_format(number: Any, place: Path, version: str = "") -> None:
    """Raises RunError if the format of a folder or file is not FORMAT, Damaged if it is not a valid
    number. version: the version of Ensue that wrote the folder, if recorded."""
    if type(number) is not int or number < 1:
        raise Damaged(f"format: expected {FORMAT}, got {number!r}")
    if number > FORMAT:
        raise RunError(
            f"{place}: a newer Ensue wrote this, in format {number}; this version reads format "
            f"{FORMAT}. Nothing was changed.\nNext: git pull, in your clone of Ensue"
        )
    if number < FORMAT:
        raise _refusal(number, place, version)


def check_folder(place: Path) -> None:
    """`check_format` for a folder with a manifest. Missing and damaged manifests pass: readers of
    the folder report them."""
    try:
        manifest = manifest_of(read_plain(place / MANIFEST))
    except FAULTS:
        return
    try:
        check_format(manifest.get("format"), place, str(manifest.get("ensue", "")))
    except Damaged:
        return


def _refusal(number: int, place: Path, version: str) -> RunError:
    """The error for a run, a model or a selection of an older version, with a remedy."""
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
        f"To use it as it is, in your clone of Ensue: git worktree add ../ensue-{wrote} "
        f"{COMMITS[wrote]} && make -C ../ensue-{wrote} demo ARGS=--help; the command is then "
        f"../ensue-{wrote}/.venv/bin/ensue",
    ]
    command, left_out = _command(root)
    lines.append(f"To train it again with this version: {command}")
    if (root / SELECTION).exists() and (config := _config_of(root)) is not None:
        lines.append(f"Add the settings that you chose yourself with --set; {config} has them.")
    elif left_out:
        lines.append(f"Not in this command: {', '.join(left_out)}; {_config_of(root)} has them.")
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
        return None  # a model that was saved alone: its copy of the configuration names other files
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


def _command(root: Path) -> tuple[str, list[str]]:
    """The command `ensue train` or `ensue select` with files, columns and settings of an older run;
    and the settings that it omits."""
    config = _config_of(root)
    verb = "select" if (root / SELECTION).exists() else "train"
    run = ["--run", str(free_name(root))]
    if config is None:
        kind = _kind_of(root)
        return " ".join(["ensue", verb, "FILES", *kind, *map(in_shell, run)]), []
    tables = _tables(config)
    data = tables["data"]
    words = [*_files(data, PARTS[0], config), "--task", tables["task"]]
    for part in PARTS[1:]:
        words += [word for file in _files(data, part, config) for word in (f"--{part}", file)]
    columns, left_out = _columns(tables)
    words += columns
    if verb == "train":
        settings, without = _settings(tables)
        words, left_out = [*words, *settings], [*left_out, *without]
    else:  # the other trials differ in their settings
        model = _table(tables, "model")
        words += [w for key in COLUMNS if model.get(key) for w in _set(f"model.{key}", model[key])]
    return " ".join(["ensue", verb, *map(in_shell, [*words, *run])]), left_out


def _kind_of(root: Path) -> list[str]:
    """The task of a model that was saved alone, as an option."""
    try:
        facts = json.loads(read_plain(root / "model.json"))
    except FAULTS:
        return []
    kind = facts.get("kind") if isinstance(facts, dict) else None
    return ["--task", in_shell(kind)] if isinstance(kind, str) else []


def _files(data: Mapping[str, Any], part: str, config: Path) -> list[str]:
    """The files of a part, relative to the current folder; for parallel files, both sides."""
    files = []
    for path in _texts(data.get(part)):
        whole = os.path.normpath(config.parent / path)
        sides = [os.path.normpath(config.parent / side) for side in path.split(",")]
        files.append(whole if os.path.exists(whole) else ",".join(sides))
    return files


def _table(tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A table of a configuration by its name; "" for the keys outside all tables."""
    table = tables.get(name) if name else tables
    return table if isinstance(table, dict) else {}


def _defaults(task: str, table: str) -> Mapping[str, Any]:
    """The default of every setting of a table, by its key; {} for a custom task."""
    facts = json.loads(SETTINGS.read_text("utf-8"))
    of_task = facts["tasks"].get(task)
    if of_task is None:
        return {}
    settings = of_task["model"] if table == "model" else facts["tables"][table]
    begin = f"{table}." if table else ""
    changes = {key: {**row, **of_task["changes"].get(f"{begin}{key}", {})}
               for key, row in settings["keys"].items()}  # fmt: skip
    return {key: row["default"] for key, row in changes.items()}


def _columns(tables: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Options that read the data as before, and settings of [data] that this version lacks."""
    words, gone = list[str](), list[str]()
    defaults = _defaults(tables["task"], "data") or _defaults("classify", "data")
    for key, value in tables["data"].items():
        if key in PARTS or not value:
            continue
        if key not in defaults:
            gone.append(f"data.{key}")
        elif value != defaults[key]:
            words += [f"--{key}", str(value)] if key in OPTIONS else _set(f"data.{key}", value)
    return words, gone


def _settings(tables: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Settings other than this version's defaults, as options; and the settings to omit. Omitted
    are settings that this version lacks, the file of a cell, and a base of an older version."""
    words, left_out = list[str](), list[str]()
    for table in TABLES:
        defaults = _defaults(tables["task"], table)
        for key, value in _table(tables, table).items():
            name = f"{table}.{key}" if table else key
            same = value == defaults.get(key, "") and name not in FITTED
            if same or (not table and key not in defaults):
                continue
            cell_file = key.endswith("cell") and ":" in str(value)
            if key in defaults and not cell_file:
                words += _set(name, value)
            else:
                left_out.append(name)
    return words, [*left_out, *["base.path"] * bool(_table(tables, "base").get("path"))]


def _set(key: str, value: Any) -> list[str]:
    return ["--set", f"{key}={json.dumps(value, ensure_ascii=False, default=str)}"]
