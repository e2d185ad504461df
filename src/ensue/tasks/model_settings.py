"""The settings of a model: given ones, and those that follow from its data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ensue.cells.permission import NO_PERMISSION
from ensue.errors import OptionError
from ensue.setting_words import WORDS
from ensue.settings import Table, one_of, unknown_key
from ensue.tasks.any_model import ATTRIBUTES, table_of
from ensue.tasks.blocks.layer_settings import with_loaded_cells
from ensue.tasks.fitting import Fitting
from ensue.tasks.saved_cells import cell_facts
from ensue.tasks.settings import TextSettings
from ensue.tasks.transfer.settings import BaseSettings
from ensue.tasks.transfer.takeover import explicit_of_base, settled_recipe, taken_over
from ensue.training import ALL_LEARN, LayerRates, RunSettings, TrainSettings

if TYPE_CHECKING:
    from ensue.tasks.any_model import AnyModel
    from ensue.tasks.reader import AnyPart
    from ensue.tasks.task import Task

P = TypeVar("P", bound="AnyPart")
TableValues = Mapping[str, Any]
Base = str | Path | Sequence[str | Path] | TableValues | BaseSettings | None  # of a training
Tables = Mapping[str, TableValues]  # settings by table and key
TABLES = ("text", "model", "train")
INPUTS = "inputs"


class InputTables(Mapping[str, Table]):
    """The settings of several inputs in order, by name, [inputs.NAME]."""

    model_fields: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = dict(tables)

    @classmethod
    def of(cls, values: Mapping[str, Table], where: str) -> InputTables:
        return cls(values)

    def __getitem__(self, name: str) -> Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def table(self) -> dict[str, Any]:
        """The tables as TOML values."""
        return {name: table.table() for name, table in self._tables.items()}

    def flat(self) -> dict[str, Any]:
        """The settings by `inputs.name.key`."""
        return {
            f"{INPUTS}.{name}.{key}": value
            for name, table in self.table().items()
            for key, value in table.items()
        }


NO_INPUTS = InputTables({})
BASED_INPUTS = (
    "base: expected none with several inputs, which begin from fresh weights; leave it out, or "
    "read one text alone"
)


def settings_of(kind: type[Any], table: Any, defaults: TableValues, where: str) -> Any:
    """Settings unchanged, or made of a table."""
    if isinstance(table, kind):
        return table
    return kind.of({**defaults, **(table or {})}, where)


def base_settings(base: Base) -> BaseSettings:
    """The settings of a base, from its path or its table."""
    if isinstance(base, BaseSettings):
        return base
    if isinstance(base, Mapping):
        path = base.get("path", [])
        return BaseSettings.of({**base, "path": _paths(path)}, "base")
    return BaseSettings.of({"path": _paths(base)}, "base")


def _paths(paths: Any) -> list[str]:
    if paths is None:
        return []
    return [str(paths)] if isinstance(paths, str | Path) else [str(path) for path in paths]


def explicit_keys(table: Table | TableValues | None) -> frozenset[str]:
    """The settings that the user gave; the others are defaults."""
    if isinstance(table, Table):
        return frozenset(table.model_fields_set)
    return frozenset(table or ())


def misplaced(task: Task[Any, Any, Any], tables_given: TableValues) -> OptionError:
    """The error for settings given outside their table: Classifier(epochs=3)."""
    called = task.model_class.__name__
    name, value = next(iter(tables_given.items()))
    if name in task.columns:
        return OptionError(
            f"{called}: {name} is a role of a column; say fit(data, {name}={value!r})"
        )
    kinds: dict[str, type[Table]] = {
        "text": TextSettings,
        "model": task.settings,
        "train": TrainSettings,
    }
    names: dict[str, tuple[str, tuple[str, ...]]] = {
        key: (table, (key,)) for table, kind in kinds.items() for key in kind.model_fields
    }
    for word in WORDS.values():
        table, _, key = word.key.partition(".")
        if key:
            keys = kinds[table].words.get(word.name, (key,))
            names |= {spelled: (table, keys) for spelled in word.spellings if keys[0] in names}
    if name not in names:
        near = unknown_key(name, names, "setting")
        return OptionError(f"{called}: {name}: {near} `ensue settings {task.name}` lists all")
    table, keys = names[name]
    put = ", ".join(f"{key!r}: {value!r}" for key in keys)
    return OptionError(f"{called}: {name} is a setting of {table}; say {called}({table}={{{put}}})")


def not_watched(task: Task[Any, Any, Any], watch: object) -> str:
    """The problem with a watched score that is not a metric of the task; "" if it is one."""
    known = [metric.name for metric in task.metrics]
    return "" if watch in known else f"train.watch: {one_of(known, watch)}"


def config_of(model: AnyModel) -> dict[str, Any]:
    """Every setting by `table.key`."""
    names = (*TABLES, "base") if model.base.path else TABLES
    tables = {name: table_of(model, name).table() for name in names}
    facts = {f"{t}.{k}": v for t, table in tables.items() for k, v in table.items()}
    return {**facts, **model.inputs.flat()}


def run_settings(model: AnyModel, how: Fitting, layers: LayerRates = ALL_LEARN) -> RunSettings:
    """Settings that must not change when training continues: all of them, and the equations of
    custom cells. Paths of cells and bases may change. layers: the layers that begin from a base."""
    facts = dict(config_of(model) if how.config is None else how.config)
    for key, cell in cell_facts(model.settings).items():
        facts[f"model.{key}"] = f"{cell['name']}@{cell['equations']}"
    facts.pop("base.path", None)  # its content matters, base.digest, not its path
    return RunSettings(facts, layers)


class SettingsOverride:
    """Settings that a fit took from its data or columns, and their earlier values."""

    def __init__(self, model: AnyModel, tables: Tables) -> None:
        self._before: dict[str, Any] = {}
        self.take(model, tables)

    def take(self, model: AnyModel, tables: Tables) -> None:
        """Takes over further settings."""
        for name, changed in tables.items():
            old = table_of(model, name)
            self._before.setdefault(name, old)
            new = type(old).of({**dict(old), **changed}, name)
            setattr(model, ATTRIBUTES.get(name, name), with_loaded_cells(new, NO_PERMISSION))

    def undo(self, model: AnyModel) -> None:
        for name, before in self._before.items():
            setattr(model, ATTRIBUTES.get(name, name), before)


def adapt(model: AnyModel, train: P, say: Callable[[str], None]) -> Tables:
    """The model takes over the task's defaults for this training part, except where the user gave
    a value; the next fit begins without them. say: callback for what was chosen, and why."""
    recipe, explicit = model.task.fitted_settings(train, model), explicit_of_base(model)
    tables: dict[str, TableValues] = {
        name: new
        for name, table in recipe.tables.items()
        if (
            new := {k: value for k, value in table.items() if k not in model.explicit.get(name, ())}
        )
    }
    for name, table in taken_over(model, len(train)).items():
        tables[name] = {**tables.get(name, {}), **table}
    if tables:
        model.defaults_taken.take(model, tables)
        if recipe.why:
            say(recipe.why)
    layers = settled_recipe(model, train, explicit)
    if layers.settings:
        model.defaults_taken.take(model, {"base": layers.settings})
        tables["base"] = {**tables["base"], **layers.settings}
    if layers.why:
        say(layers.why)
    return tables
