"""config.toml: everything that a run follows from, with no hidden default."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from ensue.data.settings import DataSettings
from ensue.data.split import FIRST_VERSION
from ensue.errors import ConfigError, RunError, unknown
from ensue.files.opening import read_plain
from ensue.runs.paths import located, portable, with_base_paths, with_cell_paths, with_paths
from ensue.settings import Table, problems
from ensue.tasks import TASKS
from ensue.tasks.blocks.cell_name import cell_references
from ensue.tasks.model import Model
from ensue.tasks.model_settings import not_watched
from ensue.tasks.settings import TextSettings
from ensue.tasks.task import Task
from ensue.tasks.transfer.settings import BaseSettings
from ensue.training import TrainSettings

BASE = "base"  # a table that stands there only where a run begins from one
TABLES = ("data", "text", "model", "train", BASE)
AnyTask = Task[Any, Any, Any]
Told = Mapping[str, frozenset[str]]
Kinds = Mapping[str, tuple[type[Table], Mapping[str, Any]]]  # with the defaults of a task


@dataclass(frozen=True)
class RunConfig:
    """task: its name; members: how many networks, whose mean answers; renamed: a line for each
    key that an older version called otherwise; told: the keys of each table that were given, the
    others being defaults. A configuration file tells all of them."""

    task: str
    members: int
    data: DataSettings
    text: TextSettings
    model: Table
    train: TrainSettings
    base: BaseSettings = field(default_factory=lambda: BaseSettings.of({}, BASE))
    renamed: tuple[str, ...] = field(default=(), compare=False)
    told: Told = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> RunConfig:
        """From the tables of a TOML file; every problem in one message."""
        given = dict(tables)
        name, members = given.pop("task", None), given.pop("members", 1)
        if not isinstance(name, str) or name not in TASKS:
            raise ConfigError(str(unknown("task", str(name), TASKS)))
        task, wrong = TASKS[name], list[str]()
        if type(members) is not int or members < 1:
            wrong.append(f"members: expected a whole number ≥ 1, got {members!r}")
        kinds = tables_of(task)
        found: dict[str, Any] = {}
        renamed: list[str] = []
        told: dict[str, frozenset[str]] = {}
        for key, (kind, defaults) in kinds.items():
            table = given.pop(key, {})
            if not isinstance(table, dict):
                wrong.append(f"{key}: expected a table, [{key}], got {table!r}")
                continue
            today = kind.upgraded(table)
            told[key] = frozenset(today)
            renamed += _renamed_lines(kind, key, table, today)
            values = {**defaults, **today}
            if "watch" in defaults and (unknown_score := not_watched(task, values["watch"])):
                wrong.append(unknown_score)
                values["watch"] = defaults["watch"]
            try:
                found[key] = kind.model_validate(values)
            except ValidationError as error:
                wrong += _problems(error, kinds, key, table)
        wrong += [_unknown_table(key, kinds) for key in given]
        wrong += _columns_of_others(task, found.get("data"))
        wrong += _unlabelled_of_others(task, found.get("data"))
        if wrong:
            raise ConfigError(listed(wrong))
        return cls(name, members, **found, renamed=tuple(renamed), told=told)

    @classmethod
    def read(cls, path: Path) -> RunConfig:
        """A configuration file; its data files are looked for from its folder."""
        try:
            return cls.of_text(read_plain(path), path)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None

    @classmethod
    def of_text(cls, text: bytes, path: Path) -> RunConfig:
        """The same of what the file at this path holds."""
        try:
            config = cls.of(_of_its_version(tomllib.loads(text.decode())))
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
        except RecursionError:
            raise ConfigError(f"{path}: this is not a configuration: nested too deeply") from None
        except ValueError as error:  # bytes that are no text, no TOML, numbers of endless digits
            raise ConfigError(f"{path}: this is not TOML: {error}") from None
        find = partial(located, folder=path.parent)
        data, model = with_paths(config.data, find), with_cell_paths(config.model, find)
        base = with_base_paths(config.base, find)
        told = {name: frozenset(kind.model_fields) for name, (kind, _) in config.kinds().items()}
        return replace(config, data=data, model=model, base=base, told=told)

    def tables(self) -> dict[str, Any]:
        """As TOML holds it; `of` reads it back."""
        names = [name for name in TABLES if name != BASE or self.base.path]
        tables = {name: getattr(self, name).table() for name in names}
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
        """By `table.key`."""
        tables = self.tables()
        found = {"task": tables.pop("task"), "members": tables.pop("members")}
        return found | {f"{t}.{k}": v for t, own in tables.items() for k, v in own.items()}

    @property
    def description(self) -> AnyTask:
        """What the task says of itself."""
        return TASKS[self.task]

    def kinds(self) -> Kinds:
        """Its tables, with the defaults that its task has otherwise."""
        return tables_of(self.description)

    def new_model(self) -> Model[Any, Any, Any]:
        """Not fitted yet."""
        kind, members = self.description.model_class, self.members
        found = kind(self.text, self.model, self.train, base=self.base, members=members)
        found.roles = self.data.roles()
        found.told = {name: self.told.get(name, frozenset()) for name in found.told}
        return found

    def changed(self, tables: Mapping[str, Mapping[str, Any]]) -> RunConfig:
        """With these values, by table and key."""
        new: dict[str, Any] = {}
        for name, values in tables.items():
            old: Table = getattr(self, name)
            new[name] = type(old).of({**dict(old), **values}, name)
        return replace(self, **new)


def _of_its_version(tables: dict[str, Any]) -> dict[str, Any]:
    """The tables of a file, with the rules that held when files did not name them."""
    for name, key, first in (
        ("data", "split_version", FIRST_VERSION),
        ("train", "ties", "earlier"),
    ):
        if isinstance(table := tables.get(name), dict):
            table.setdefault(key, first)
    return tables


def tables_of(task: AnyTask) -> Kinds:
    """The tables of a configuration, with the defaults that this task has otherwise."""
    watched = {"watch": task.metrics[0].name}
    return {
        "data": (DataSettings, {}),
        "text": (TextSettings, task.text_defaults),
        "model": (task.settings, {}),
        "train": (TrainSettings, {**watched, **task.train_defaults}),
        BASE: (BaseSettings, {}),
    }


def _columns_of_others(task: AnyTask, data: DataSettings | None) -> list[str]:
    """A problem where a task is told columns that it does not read."""
    if data is None or not data.columns or "data.columns" in task.columns.values():
        return []
    able = sorted(name for name in TASKS if "data.columns" in TASKS[name].columns.values())
    return [f"data.columns: read beside a text by {' and '.join(able)}; expected [], got a list"]


def _unlabelled_of_others(task: AnyTask, data: DataSettings | None) -> list[str]:
    """A problem where a task is told rows without labels that it does not learn from."""
    if data is None or not data.unlabelled or task.unlabelled is not None:
        return []
    able = sorted(name for name in TASKS if TASKS[name].unlabelled is not None)
    return [f"data.unlabelled: learned from by {' and '.join(able)}; expected [], got a list"]


def _renamed_lines(
    kind: type[Table], name: str, table: Mapping[str, Any], today: Mapping[str, Any]
) -> list[str]:
    return [
        f"{name}.{key}: now called {name}.{kind.renamed[key]}"
        for key in table
        if key in kind.renamed and key not in today
    ]


def _problems(
    error: ValidationError, kinds: Kinds, name: str, table: Mapping[str, Any]
) -> list[str]:
    """Each on a line; keys that belong elsewhere get a message of their own."""
    kind = kinds[name][0]
    strange = [key for key in table if key not in kind.model_fields]
    where = {key: told for key in strange if (told := _belongs(key, kinds))}
    found = [f"{name}.{key}: {told}" for key, told in where.items()]
    return found + [
        line
        for line in problems(error, kind, name)
        if not any(line.startswith(f"{name}.{key}:") for key in where)
    ]


def _belongs(key: str, kinds: Kinds) -> str:
    """Where a key belongs; "" for one that there is not."""
    if key in ("members", "task"):
        return f"stands in no table: {key}=…"
    for table, (kind, _) in kinds.items():
        if key in kind.model_fields:
            return f"a setting of the table {table}: {table}.{key}=…"
    return ""


def _unknown_table(name: str, kinds: Kinds) -> str:
    """The message for an unknown table; for a key, which table it belongs to."""
    told = _belongs(name, kinds)
    return f"{name}: {told}" if told else str(unknown("table", name, TABLES))


def listed(lines: Sequence[str]) -> str:
    if len(lines) == 1:
        return lines[0]
    return "\n  ".join([f"{len(lines)} problems", *lines])


def changed(tables: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """The tables with `table.key=value` set; values as TOML has them, other words as texts."""
    found = {name: dict(own) if isinstance(own, Mapping) else own for name, own in tables.items()}
    for setting in settings:
        name, equals, value = setting.partition("=")
        table, _, key = name.strip().rpartition(".")
        if not equals or (table and not isinstance(found.setdefault(table, {}), dict)):
            raise ConfigError(
                f"--set {setting}: expected table.key=value, such as train.rate=0.001"
            )
        (found[table] if table else found)[key] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # no TOML, a number of thousands of digits, or too deep
        return text


def refuse_cell_files(config: RunConfig, folder: Path) -> None:
    """A configuration that was found in a folder runs no file of its own accord."""
    for key, cell in cell_references(config.model).items():
        there = Path(cell.file).is_file()
        what = f"sha256 {sha256(Path(cell.file).read_bytes()).hexdigest()}" if there else "missing"
        raise RunError(
            f"{folder}: going on with this run would run {cell.file} ({what}), the file of its "
            f"cell, model.{key} = {cell.name or cell}.\nNothing was run. Read that file first; to "
            "allow it: --trust-cell, or name the cell again with the files: "
            f"--set model.{key}={cell.file}:{cell.name}"
        )
