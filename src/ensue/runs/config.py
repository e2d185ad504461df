"""config.toml: everything that a run follows from, with no hidden default."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import BaseModel, Field, ValidationError

from ensue.errors import ConfigError, unknown
from ensue.models.captioner import Captioner
from ensue.models.classifier import Classifier
from ensue.models.forecaster import Forecaster
from ensue.models.image_model import ImageModel
from ensue.models.labeller import Labeller
from ensue.models.language import LanguageModel
from ensue.models.settings import Table, TextSettings
from ensue.models.table_model import TableModel
from ensue.models.task_model import TaskModel
from ensue.models.translator import Translator
from ensue.training import TrainSettings
from ensue.training.settings import problems

TASKS: dict[str, type[TaskModel]] = {
    own.kind: own
    for own in (
        Classifier,
        Labeller,
        LanguageModel,
        Translator,
        Forecaster,
        TableModel,
        ImageModel,
        Captioner,
    )
}
TABLES = ("data", "text", "model", "train")


class DataSettings(Table):
    """Where the rows come from; "train.en,train.de" are two parallel files, line by line. Files
    that are not named are split off the training files, by a hash of each row (of a pair: of its
    source) or of its group: 80/10/10, or 90/10 where the test part has its own file."""

    train: list[str]
    validation: list[str] = Field([])
    test: list[str] = Field([])
    format: str = "auto"
    encoding: str = "utf-8"
    delimiter: str = ""
    header: list[str] = Field([])  # names of the columns, where no line of a table has them
    no_quote: bool = False  # quotes have no meaning in a table
    text: str = ""  # the column of the text, or of the tokens
    label: str = ""  # the column of the label or labels, or of the target
    separator: str = ""  # between several labels of one row
    sequence: str = ""  # the column that tells which rows of a long table make one sequence
    features: list[str] = Field([])  # its columns of numbers
    group: str = ""  # rows of one group stay together
    split_seed: int = Field(0, ge=0)
    skip_bad: bool = False


@dataclass(frozen=True)
class RunConfig:
    """task: one of TASKS; members: how many networks, whose mean answers."""

    task: str
    members: int
    data: DataSettings
    text: TextSettings
    model: Table
    train: TrainSettings

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> RunConfig:
        """From the tables of a TOML file; every problem in one message."""
        given = dict(tables)
        task, members = given.pop("task", None), given.pop("members", 1)
        if not isinstance(task, str) or task not in TASKS:
            raise ConfigError(str(unknown("task", str(task), TASKS)))
        own, wrong = TASKS[task], []
        if type(members) is not int or members < 1:
            wrong.append(f"members: expected a whole number ≥ 1, got {members!r}")
        kinds: dict[str, tuple[type[BaseModel], Mapping[str, Any]]] = {
            "data": (DataSettings, {}),
            "text": (TextSettings, own.text_defaults),
            "model": (own.model_settings, {}),
            "train": (TrainSettings, own.train_defaults),
        }
        found: dict[str, Any] = {}
        for name, (kind, defaults) in kinds.items():
            table = given.pop(name, {})
            if not isinstance(table, dict):
                wrong.append(f"{name}: expected a table, [{name}], got {table!r}")
                continue
            try:
                found[name] = kind.model_validate({**defaults, **table})
            except ValidationError as error:
                alone = [key for key in table if key in ("members", "task")]
                wrong += [f"{name}.{key}: stands in no table: {key}=…" for key in alone]
                wrong += [
                    line
                    for line in problems(error, kind, name)
                    if not any(line.startswith(f"{name}.{key}:") for key in alone)
                ]
        wrong += [_unknown_table(name, kinds) for name in given]
        if wrong:
            raise ConfigError(listed(wrong))
        return cls(task, members, **found)

    @classmethod
    def read(cls, path: Path) -> RunConfig:
        try:
            return cls.of(tomllib.loads(path.read_text("utf-8")))
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: this is not TOML: {error}") from None
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None

    def tables(self) -> dict[str, Any]:
        """As TOML holds it; `of` reads it back."""
        tables = {name: getattr(self, name).table() for name in TABLES}
        return {"task": self.task, "members": self.members, **tables}

    def text_of(self) -> str:
        return tomli_w.dumps(self.tables())

    def flat(self) -> dict[str, Any]:
        """By `table.key`."""
        tables = self.tables()
        found = {"task": tables.pop("task"), "members": tables.pop("members")}
        return found | {f"{t}.{k}": v for t, own in tables.items() for k, v in own.items()}

    @property
    def steps(self) -> bool:
        """Whether each step has a label, not each row."""
        return self.task == Labeller.kind

    @property
    def pairs(self) -> bool:
        """Whether the label is a text, too."""
        return self.task in (Translator.kind, Captioner.kind)

    @property
    def forecasts(self) -> bool:
        """Whether each row is a step of one series."""
        return self.task == Forecaster.kind

    @property
    def tabular(self) -> bool:
        """Whether all columns of a row but the label are learned from."""
        return self.task == TableModel.kind

    @property
    def pictures(self) -> bool:
        """Whether each row is a picture."""
        return self.task == ImageModel.kind

    def estimator(self) -> TaskModel:
        return TASKS[self.task](self.text, self.model, self.train, members=self.members)


def _unknown_table(name: str, kinds: Mapping[str, tuple[type[BaseModel], Any]]) -> str:
    """A key without its table is told which one it belongs to."""
    for table, (kind, _) in kinds.items():
        if name in kind.model_fields:
            return f"{name}: a setting of the table {table}: {table}.{name}=…"
    return str(unknown("table", name, TABLES))


def listed(lines: Sequence[str]) -> str:
    if len(lines) == 1:
        return lines[0]
    return "\n  ".join([f"{len(lines)} problems", *lines])


def changed(tables: dict[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """The tables with `table.key=value` set; values as TOML has them, other words as texts."""
    found = {name: dict(own) if isinstance(own, dict) else own for name, own in tables.items()}
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
    except tomllib.TOMLDecodeError:
        return text
