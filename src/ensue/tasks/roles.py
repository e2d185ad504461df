"""The roles of columns in Python, fit(frame, text="review"), as settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, get_args, get_origin

from ensue.data.settings import DataSettings
from ensue.errors import OptionError, unknown
from ensue.settings import Table

if TYPE_CHECKING:
    from ensue.tasks.task import Task

Tables = dict[str, dict[str, Any]]  # settings by table and key
SHOWN = 40  # maximum characters of a value in a message


def named_roles(
    task: Task[Any, Any, Any], columns: Mapping[str, Any], known: Collection[str] = ()
) -> Tables:
    """The settings of roles: text="review" is data.text, target="a,b" the two model.targets of a
    forecaster. known: the existing columns."""
    roles: Tables = {}
    for role, column in columns.items():
        if role not in task.columns:
            raise unknown("role of a column", role, task.columns)
        table, _, key = task.columns[role].partition(".")
        if key in roles.get(table, {}):
            same = [column for column in columns if task.columns[column] == f"{table}.{key}"]
            raise OptionError(f"{'= and '.join(same)}=: they name the same column; give one")
        kind: type[Table] = DataSettings if table == "data" else task.settings
        many = kind.model_fields[key].annotation
        several = get_origin(many) is list
        if isinstance(column, list | tuple):
            several |= any(get_origin(arg) is list for arg in get_args(many))
        roles.setdefault(table, {})[key] = _named(role, column, known, several)
    return roles


def _named(role: str, value: Any, known: Collection[str], several: bool) -> Any:
    """The name of a column, or the list of several: "a,b"."""
    if several and isinstance(value, list | tuple) and all(isinstance(n, str) for n in value):
        return list(value)
    if not isinstance(value, str) or not value:
        raise OptionError(f"{role}=: expected the name of a column, got {repr(value)[:SHOWN]}")
    if not several:
        return value
    return [value] if value in known else [name.strip() for name in value.split(",")]
