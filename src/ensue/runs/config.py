"""config.toml: everything that determines a run, without hidden defaults."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from ensue.cells.permission import NO_PERMISSION, CellPermission
from ensue.cells.reference import CellReference
from ensue.data.parallel import BETWEEN, sides_of
from ensue.data.settings import DataSettings
from ensue.errors import ConfigError, RunError, unknown
from ensue.escape import in_shell
from ensue.files.atomic_folder import digest
from ensue.files.opening import read_plain
from ensue.files.run_folder import RunFolder
from ensue.settings import Table, problems
from ensue.tasks import TASKS
from ensue.tasks.abilities import input_tables
from ensue.tasks.any_model import AnyModel
from ensue.tasks.blocks.layer_settings import cell_references, named_cells, with_loaded_cells
from ensue.tasks.model_settings import BASED_INPUTS, INPUTS, NO_INPUTS, InputTables, not_watched
from ensue.tasks.saved_cells import CellFile, Trust, file_name
from ensue.tasks.settings import TextSettings
from ensue.tasks.task import Task
from ensue.tasks.transfer.settings import BaseSettings
from ensue.training import TrainSettings

MOST_UP = 2  # maximum number of folders between a run and its files for relative paths
PARTS = ("train", "validation", "test", "unlabelled")


def with_paths(data: DataSettings, change: Callable[[str], str]) -> DataSettings:
    """The data table with every file's path changed."""
    return data.model_copy(
        update={
            part: [
                BETWEEN.join(change(side) for side in sides_of(path))
                for path in getattr(data, part)
            ]
            for part in PARTS
        }
    )


def with_cell_paths(model: Table, change: Callable[[str], str]) -> Table:
    """The model table with the paths of files of cells changed."""
    cells = {
        key: cell.at(change(cell.file)) for key, cell in cell_references(model).items() if cell.file
    }
    return model.model_copy(update=cells) if cells else model


def with_base_paths(base: BaseSettings, change: Callable[[str], str]) -> BaseSettings:
    """The base table with the path of the base changed."""
    return base.model_copy(update={"path": [change(path) for path in base.path]})


def portable(path: str, folder: Path) -> str:
    """The path as stored in a configuration in this folder."""
    full = os.path.abspath(path)
    relative = os.path.relpath(full, os.path.abspath(folder))
    ups = Path(relative).parts.count("..")
    return relative if ups <= MOST_UP and ups < len(Path(full).parts) - 1 else full


def located(path: str, folder: Path) -> str:
    """The file that a configuration in this folder means: the one at the path or, if it is missing,
    the file of the same name inside the folder or next to it."""
    place = Path(os.path.normpath(Path(os.path.abspath(folder)) / path))
    if place.exists():
        return str(place)
    for near in (folder, folder.parent):
        beside = near / place.name
        if beside.exists():
            return os.path.abspath(beside)
    return str(place)


BASE = "base"  # present only if a run begins from a base
TABLES = ("data", "text", "model", "train", BASE)
AnyTask = Task[Any, Any, Any]
ExplicitKeys = Mapping[str, frozenset[str]]
Kinds = Mapping[str, tuple[type[Table], Mapping[str, Any]]]  # with the defaults of a task


@dataclass(frozen=True)
class RunConfig:
    """The configuration of a run. task: its name; members: ensemble size (predictions are
    averaged); told: the keys that were set, by table (a configuration file sets all keys);
    permission: the files of cells that may run (none for a configuration read from a file)."""

    task: str
    members: int
    data: DataSettings
    text: TextSettings
    model: Table
    train: TrainSettings
    base: BaseSettings = field(default_factory=lambda: BaseSettings.of({}, BASE))
    inputs: InputTables = field(default_factory=lambda: NO_INPUTS)
    explicit: ExplicitKeys = field(default_factory=dict, compare=False)
    permission: CellPermission = field(default=NO_PERMISSION, compare=False)

    @classmethod
    def of(cls, tables: Mapping[str, Any], permission: CellPermission = NO_PERMISSION) -> RunConfig:
        """A configuration from the tables of a TOML file; one message lists all problems."""
        remaining = dict(tables)
        name, members = remaining.pop("task", None), remaining.pop("members", 1)
        if not isinstance(name, str) or name not in TASKS:
            raise TASKS.unknown(str(name))
        task, wrong = TASKS[name], list[str]()
        if type(members) is not int or members < 1:
            wrong.append(f"members: expected a whole number ≥ 1, got {members!r}")
        kinds = tables_of(task)
        settings: dict[str, Any] = {}
        given_keys: dict[str, frozenset[str]] = {}
        for key, (kind, defaults) in kinds.items():
            table = remaining.pop(key, {})
            if not isinstance(table, dict):
                wrong.append(f"{key}: expected a table, [{key}], got {table!r}")
                continue
            given_keys[key] = frozenset(table)
            values = {**defaults, **table}
            if "watch" in defaults and (unknown_score := not_watched(task, values["watch"])):
                wrong.append(unknown_score)
                values["watch"] = defaults["watch"]
            try:
                settings[key] = kind.model_validate(values)
            except ValidationError as error:
                wrong += _problems(error, kinds, key, table)
        inputs = remaining.pop(INPUTS, {})
        if not isinstance(inputs, dict):
            wrong.append(f"{INPUTS}: expected tables, [{INPUTS}.NAME], got {inputs!r}")
        elif {"data", "text", "model"} <= settings.keys():
            shared = {k: getattr(settings[t], k) for t in ("text", "model") for k in given_keys[t]}
            try:
                tables_of_inputs = input_tables(task.joins, settings["data"], inputs, shared)
            except ConfigError as error:
                wrong.append(str(error))
            else:
                settings[INPUTS] = InputTables(tables_of_inputs)
                based = BASE in settings and settings[BASE].path
                wrong += [BASED_INPUTS] * bool(tables_of_inputs and based)
                given_keys |= {
                    f"{INPUTS}.{name}": frozenset(inputs.get(name, ())) | shared.keys()
                    for name in tables_of_inputs
                }
        wrong += [_unknown_table(key, kinds) for key in remaining]
        wrong += _columns_of_others(task, settings.get("data"))
        wrong += _unlabelled_of_others(task, settings.get("data"))
        if wrong:
            raise ConfigError(listed(wrong))
        return cls(name, members, **settings, explicit=given_keys, permission=permission)

    @classmethod
    def read(cls, path: Path) -> RunConfig:
        """Reads a configuration file; paths of data files are relative to its folder."""
        try:
            return cls.of_text(read_plain(path), path)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None

    @classmethod
    def of_run(cls, folder: RunFolder) -> RunConfig:
        """The configuration of a run; raises an error unless it has the current format."""
        folder.check_weights()
        return cls.read(folder.config)

    @classmethod
    def of_text(cls, text: bytes, path: Path) -> RunConfig:
        """A configuration from the text of the file at this path."""
        try:
            config = cls.of(tomllib.loads(text.decode()))
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
        except RecursionError:
            raise ConfigError(f"{path}: this is not a configuration: nested too deeply") from None
        except ValueError as error:  # invalid UTF-8 or TOML, or an integer with too many digits
            raise ConfigError(f"{path}: this is not TOML: {error}") from None
        find = partial(located, folder=path.parent)
        data, model = with_paths(config.data, find), with_cell_paths(config.model, find)
        base = with_base_paths(config.base, find)
        keys = {name: frozenset(kind.model_fields) for name, (kind, _) in config.kinds().items()}
        for name, table in config.inputs.items():
            keys[f"{INPUTS}.{name}"] = frozenset(type(table).model_fields)
        return replace(config, data=data, model=model, base=base, explicit=keys)

    def tables(self) -> dict[str, Any]:
        """The configuration as tables of TOML; `of` reads it back."""
        names = [name for name in TABLES if name != BASE or self.base.path]
        tables = {name: getattr(self, name).table() for name in names}
        if self.inputs:
            tables[INPUTS] = self.inputs.table()
        return {"task": self.task, "members": self.members, **tables}

    def text_of(self, folder: Path | None = None) -> str:
        """The file's text. folder: where it will be, for the paths of data files."""
        tables = self.tables()
        if folder is not None:
            change = partial(portable, folder=folder)
            tables["data"] = with_paths(self.data, change).table()
            tables["model"] = with_cell_paths(self.model, change).table()
            if self.base.path:
                tables[BASE] = with_base_paths(self.base, change).table()
        return tomli_w.dumps(tables)

    def flat(self) -> dict[str, Any]:
        """All values by `table.key`."""
        tables = self.tables()
        facts = {"task": tables.pop("task"), "members": tables.pop("members")}
        tables.pop(INPUTS, None)
        facts |= {f"{t}.{k}": v for t, table in tables.items() for k, v in table.items()}
        return facts | self.inputs.flat()

    @property
    def description(self) -> AnyTask:
        """The description of the task."""
        return TASKS[self.task]

    def kinds(self) -> Kinds:
        """The classes of the tables, with the task's own defaults."""
        return tables_of(self.description)

    def new_model(self) -> AnyModel:
        """A new, unfitted model. Files of cells run if the permission allows it."""
        kind, members = self.description.model_class, self.members
        settings = with_loaded_cells(self.model, self.permission)
        model = kind(self.text, settings, self.train, base=self.base, members=members)
        model.roles, model.inputs = self.data.roles(), self.inputs
        model.explicit = {name: self.explicit.get(name, frozenset()) for name in model.explicit}
        model.explicit_inputs = {
            name: self.explicit.get(f"{INPUTS}.{name}", frozenset()) for name in self.inputs
        }
        return model

    def with_named_cells(self) -> RunConfig:
        """The configuration with permission for all its files of cells; for configurations that the
        user wrote."""
        return replace(self, permission=named_cells(self.model))

    def with_trusted_cells(self, folder: RunFolder, trust: Trust) -> RunConfig:
        """The configuration from the folder of a run, with permission for the files of cells that
        the user trusts. If some are not trusted, an error shows every file that would run."""
        named = {f"model.{key}": cell for key, cell in cell_references(self.model).items()}
        files = {key: _cell_file(key, cell, folder) for key, cell in named.items() if cell.file}
        trusted = {key: file for key, file in files.items() if trust.allows(file)}
        if trust.files is True:  # the files that the run was trained with
            trusted = {key: file for key, file in files.items() if file.verified}
        if len(trusted) < len(files):
            raise _untrusted(folder, files, trust)
        trust.check(list(files.values()), str(folder.path))
        digests = {file.path: file.digest for file in files.values()}
        return replace(self, permission=CellPermission.trusted(digests))

    def changed(self, tables: Mapping[str, Mapping[str, Any]]) -> RunConfig:
        """The configuration with some values changed, by table and key."""
        new: dict[str, Any] = {}
        for name, values in tables.items():
            old: Any = getattr(self, name)
            new[name] = type(old).of({**dict(old), **values}, name)
        return replace(self, **new)


def tables_of(task: AnyTask) -> Kinds:
    """The classes of the tables of a configuration, with the task's own defaults."""
    watched = {"watch": task.metrics[0].name}
    return {
        "data": (DataSettings, {}),
        "text": (TextSettings, task.text_defaults),
        "model": (task.settings, {}),
        "train": (TrainSettings, {**watched, **task.train_defaults}),
        BASE: (BaseSettings, {}),
    }


def _columns_of_others(task: AnyTask, data: DataSettings | None) -> list[str]:
    """A problem if the configuration names columns that the task does not read."""
    if data is None:
        return []
    columns = inputs_of_others(task, data)
    if not data.columns or "data.columns" in task.columns.values():
        return columns
    able = sorted(name for name in TASKS if "data.columns" in TASKS[name].columns.values())
    message = (
        f"data.columns: only {' and '.join(able)} read columns together with a text; expected [], "
        "got a list"
    )
    return [*columns, message]


def inputs_of_others(task: AnyTask, data: DataSettings) -> list[str]:
    """A problem for each further input if the task reads only one."""
    if not data.joins or "data.image" in task.columns.values():
        return []
    able = sorted(name for name in TASKS if "data.image" in TASKS[name].columns.values())
    keys = [key for key in ("image", "tree") if getattr(data, key)]
    if data.image and not data.texts and not data.tree and "image" in task.columns:
        return [
            f"data.image: a table that names pictures is read by {' and '.join(able)}; leave out "
            f"--task {task.name}"
        ]
    keys = ["text"] * isinstance(data.text, list) + keys
    return [
        f"data.{key}: several inputs are read together by {' and '.join(able)}; expected "
        f"{'one column' if key == 'text' else 'none'}, got {getattr(data, key)!r}"
        for key in keys
    ]


def _unlabelled_of_others(task: AnyTask, data: DataSettings | None) -> list[str]:
    """A problem if the configuration names unlabelled rows although the task cannot learn from
    them."""
    if data is None or not data.unlabelled or task.unlabelled is not None:
        return []
    able = sorted(name for name in TASKS if TASKS[name].unlabelled is not None)
    return [f"data.unlabelled: learned from by {' and '.join(able)}; expected [], got a list"]


def _problems(
    error: ValidationError, kinds: Kinds, name: str, table: Mapping[str, Any]
) -> list[str]:
    """A line for each problem; misplaced keys get their own message."""
    kind = kinds[name][0]
    strange = [key for key in table if key not in kind.model_fields]
    where = {key: message for key in strange if (message := _belongs(key, kinds))}
    messages = [f"{name}.{key}: {value}" for key, value in where.items()]
    return messages + [
        line
        for line in problems(error, kind, name)
        if not any(line.startswith(f"{name}.{key}:") for key in where)
    ]


def _belongs(key: str, kinds: Kinds) -> str:
    """The table that a key belongs to; "" for an unknown key."""
    if key in ("members", "task"):
        return f"stands in no table: {key}=…"
    for table, (kind, _) in kinds.items():
        if key in kind.model_fields:
            return f"a setting of the table {table}: {table}.{key}=…"
    return ""


def _unknown_table(name: str, kinds: Kinds) -> str:
    """The message for an unknown table; for a key, which table it belongs to."""
    message = _belongs(name, kinds)
    return f"{name}: {message}" if message else str(unknown("table", name, TABLES))


def listed(lines: Sequence[str]) -> str:
    if len(lines) == 1:
        return lines[0]
    return "\n  ".join([f"{len(lines)} problems", *lines])


def changed(tables: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """The tables with `table.key=value` set. Values are read as TOML; other words are texts."""
    copied = {
        name: dict(table) if isinstance(table, Mapping) else table for name, table in tables.items()
    }
    for setting in settings:
        name, equals, value = setting.partition("=")
        path, _, key = name.strip().rpartition(".")
        wrong = ConfigError(f"--set {setting}: expected table.key=value, such as train.rate=0.001")
        if not equals:
            raise wrong
        try:
            table_at(copied, path)[key] = _value(value.strip())
        except ConfigError:
            raise wrong from None
    return copied


def table_at(tables: dict[str, Any], path: str) -> dict[str, Any]:
    """The table of that name, created if missing; "inputs.title" is inside another table. Raises
    ConfigError if the name has another value."""
    inside = path.startswith(f"{INPUTS}.")
    place = tables
    for name in path.split(".", 1) if inside else filter(None, [path]):
        inner = place.get(name, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{path}: expected a table, got {inner!r}")
        place[name] = place = dict(inner)
    return place


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # invalid TOML, a huge integer, or too deep
        return text


@dataclass(frozen=True)
class _NamedFile(CellFile):
    """A file of cells that a configuration names. expected: the sha256 of the file that the run was
    trained with, "" if unknown; begun: whether the run has begun to train."""

    expected: str = ""
    begun: bool = False

    @property
    def verified(self) -> bool:
        """Whether the run was trained with this version of the file, or has not begun to train."""
        return self.expected == self.digest if self.begun else True

    def line(self) -> str:
        if self.verified:
            return super().line()
        if not self.expected:
            return f"{super().line()}; the run has no copy to compare it with"
        return f"{super().line()}; the run was trained with sha256 {self.expected}"


def _cell_file(key: str, cell: CellReference, folder: RunFolder) -> _NamedFile:
    """The current file that a configuration names for a cell. A link does not count as a copy."""
    path = Path(cell.file)
    if not path.is_file():
        again = in_shell(f"{key}=FILE:{cell.name}")
        raise RunError(
            f"{folder.path}: {key}: expected the file of its cell, {cell.file}, which is missing. "
            f"Restore it, or name the cell again with the files: --set {again}"
        )
    copies = [
        folder_of_cells / file_name(key.removeprefix("model."))
        for folder_of_cells in (folder.model, folder.learned)
    ]
    plain = [copy for copy in copies if copy.is_file() and not copy.is_symlink()]
    expected = digest(read_plain(plain[0])) if plain else ""
    begun = any(map(os.path.lexists, (folder.model, folder.learned, folder.checkpoints)))
    name = cell.name or cell
    return _NamedFile(str(path), name, path.read_bytes(), expected=expected, begun=begun)


def _untrusted(folder: RunFolder, files: Mapping[str, CellFile], trust: Trust) -> RunError:
    lines = "".join(f"\n  {key}: {file.line()}" for key, file in files.items())
    digests = ",".join(dict.fromkeys(file.digest for file in files.values()))
    named = (f"{key}={file.path}:{file.name}" for key, file in files.items())
    again = " ".join(f"--set {in_shell(setting)}" for setting in named)
    return RunError(
        f"{folder.path}: resuming this run would execute the files of its "
        f"cells:{lines}\nNothing was run. Read them first; to allow them: "
        f"{trust.command or 'trust'}={digests}, or name the cells again with the files of the "
        f"training: {again}"
    )
