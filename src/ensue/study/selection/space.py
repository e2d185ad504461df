"""The search space of a configuration: the task's ranges, around the configured settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ensue.errors import OptionError
from ensue.files.atomic_folder import canonical, digest
from ensue.runs.config import RunConfig, table_at
from ensue.settings import OFF
from ensue.tasks.search.ranges import Choice, Finite, Searched, Space, Values

KINDS = ("model.family", "model.encoder")  # each kind is tried once with defaults
WATCH = "train.watch"
Settings = Mapping[str, Any]  # by `table.key`


@dataclass(frozen=True)
class OpenSpace:
    """An open search space. config: a configuration with the usual settings; ranges: the ranges of
    the searched settings."""

    config: RunConfig
    ranges: Space

    @classmethod
    def of(cls, config: RunConfig, space: Space) -> OpenSpace:
        """The task's space without settings that the user gave, settings that all models must
        share, and settings that are off (unless off is one of the choices)."""
        common = {*config.description.compared_on, WATCH}
        values = {
            key: row
            for key, row in space.items()
            if not {key, key.partition(".")[0]} & common and not _is_given(config, key)
        }
        usual = config.flat()
        left = {
            key: row for key, row in values.items() if usual[key] != OFF.word or _may_be_off(row)
        }
        if not left:
            raise OptionError(
                f"select: every setting of the search space of {config.task} is given: nothing is "
                "left to search; leave some of --set out, or train this model with `ensue train`"
            )
        return cls(config, left)

    @cached_property
    def _settings(self) -> dict[str, Any]:
        """Every setting of the configuration, by `table.key`, as TOML holds it."""
        return self.config.flat()

    @cached_property
    def values(self) -> dict[str, Values]:
        """The values of each setting."""
        return {key: row.range.around(self._settings[key]) for key, row in self.ranges.items()}

    def active(self, settings: Settings, row: Searched) -> bool:
        """Whether a setting has an effect together with these settings."""
        return all(
            settings.get(key, self._settings[key]) in values for key, values in row.when.items()
        )

    def usual(self, changed: Settings | None = None) -> dict[str, Any]:
        """The usual settings with some changed."""
        settings: dict[str, Any] = {}
        for key, row in self.ranges.items():
            if self.active(settings, row):
                settings[key] = (changed or {}).get(key, self._settings[key])
        return settings

    def first(self) -> Iterator[dict[str, Any]]:
        """The first trials, before any proposal: the default, the task's favourites, and every
        other kind of network with the usual settings."""
        default = self.usual()
        yield default
        for favourite in self.config.description.favourites:
            favoured = self.usual({key: v for key, v in favourite.items() if self._offers(key, v)})
            if favoured != default:
                yield favoured
        for key in KINDS:
            values = self.values.get(key)
            for value in values.values if isinstance(values, Finite) else ():
                if value != default[key]:
                    yield self.usual({key: value})

    def _offers(self, key: str, value: Any) -> bool:
        """Whether a setting may have this value: it is searched, and not beyond its range."""
        values = self.values.get(key)
        return values is not None and _is_in(values, value)

    def allows(self, settings: Settings) -> bool:
        """Whether each of these settings has a value of its range."""
        return all(_is_in(self.values[key], value) for key, value in settings.items())

    def configured(self, settings: Settings) -> RunConfig:
        """The configuration with these settings, and with settings that depend on them."""
        tables = self.config.tables()
        for key, value in settings.items():
            row = self.ranges[key]
            also = row.sets.get(value, {}) if row.sets else {}
            for name, each in {key: value, **also}.items():
                table, _, short = name.rpartition(".")
                table_at(tables, table)[short] = each
        return RunConfig.of(tables, self.config.permission)

    def differs(self, settings: Settings) -> dict[str, Any]:
        """The settings that differ from the usual ones."""
        return {key: setting for key, setting in settings.items() if setting != self._settings[key]}

    def digest(self) -> str:
        """The digest of everything that proposals depend on, except seed and scores."""
        opened = {key: repr(value) for key, value in self.values.items()}
        config = {k: repr(v) for k, v in self.config.flat().items() if not k.startswith("data.")}
        return digest(canonical([config, opened]))


def _is_in(values: Values, value: object) -> bool:
    if isinstance(values, Finite):
        return value in values.values
    return type(value) in (int, float) and values.low <= value <= values.high  # type: ignore[operator]


def _is_given(config: RunConfig, key: str) -> bool:
    table, _, name = key.rpartition(".")
    return name in config.explicit.get(table, ())


def _may_be_off(row: Searched) -> bool:
    return isinstance(row.range, Choice) and OFF.word in row.range.values
