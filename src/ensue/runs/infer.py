"""From files and column names to a configuration, and what was guessed on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ensue.data.options import ReadOptions
from ensue.data.roles import guess_roles
from ensue.data.rows import Row
from ensue.data.tokenise import Tokeniser
from ensue.errors import DataError
from ensue.runs.config import DataSettings, RunConfig, changed
from ensue.runs.parts import first_rows

LOOKED_AT = 200  # rows
SEPARATOR = "·"


class Inferred(NamedTuple):
    """The configuration, and a line for each thing that nobody said."""

    config: RunConfig
    lines: list[str]


def infer(data: Mapping[str, Any], task: str | None, settings: Sequence[str]) -> Inferred:
    """data: the keys of [data] that were given."""
    given = DataSettings.of(data, "data")
    if given.sequence:
        own: dict[str, Any] = {}
        found = task or "classify"
        lines = [] if task else [f"task: {found} (one label for each {given.sequence})"]
    else:
        rows = first_rows(
            given.train,
            ReadOptions(given.format, given.encoding, given.delimiter or None),
            LOOKED_AT,
        )
        roles = guess_roles(rows, given.text or None, given.label or None)
        if roles.label is None:
            raise DataError(
                f"{rows[0].place}: no column looks like a label among {', '.join(rows[0].fields)}; "
                "name it with --label"
            )
        own = {"text": roles.text, "label": roles.label}
        found, why = _task(rows, roles.text, roles.label, given)
        lines = [f"{key}: {own[key]}" for key in own if not getattr(given, key)]
        if task is None:
            lines.append(f"task: {found} ({why})")
        found = task or found
    tables: dict[str, Any] = {"task": found, "data": {**data, **own}}
    many = given.separator or _lists([] if given.sequence else rows, own.get("label", ""))
    if many and found == "classify":
        tables["model"] = {"several": True}
        lines.append("model.several: true (a row has several labels)")
    config = RunConfig.of(changed(tables, settings))
    return Inferred(config, [*lines, *_split_lines(config.data)])


def _task(rows: Sequence[Row], text: str, label: str, data: DataSettings) -> tuple[str, str]:
    value, target = rows[0].fields[text], rows[0].fields[label]
    steps = isinstance(value, list | np.ndarray)
    if (
        steps
        and isinstance(target, list)
        and all(len(row.fields[text]) == len(row.fields[label]) for row in rows)
    ):
        return "label", "a label for each step"
    return "classify", "one label for each row" if not data.separator else "labels for each row"


def _lists(rows: Sequence[Row], label: str) -> bool:
    return any(isinstance(row.fields.get(label), list) for row in rows)


def tokens_shown(path: str, options: ReadOptions, text: str, count: int, width: int) -> str:
    """What a model sees of the first rows: their tokens, one row a line."""
    rows = first_rows([path], options, count)
    name = guess_roles(rows, text or None, None).text
    tokeniser = Tokeniser("words", lower=True, breaks="space")
    lines = [f"as tokens ({name}, level words; {SEPARATOR} stands between them)"]
    for row in rows:
        value = row.fields[name]
        if not isinstance(value, str | list):
            return (
                f"{name}: sequences of numbers are taken as they are, scaled by the training part"
            )
        tokens = tokeniser(value) if isinstance(value, str) else value
        line = f"  {len(tokens):>5}  {SEPARATOR.join(map(str, tokens))}"
        lines.append(line if len(line) <= width else line[: width - 1] + "…")
    return "\n".join(lines)


def _split_lines(data: DataSettings) -> list[str]:
    by = f"the hash of {data.group}" if data.group else "the hash of each row"
    if not data.validation and not data.test:
        return [f"split: 80 % train, 10 % validation, 10 % test, by {by}"]
    if not data.validation:
        return [f"split: 90 % train, 10 % validation, by {by}; the test part is its own file"]
    return [] if data.test else ["split: no test part; give one to `ensue evaluate --test`"]
