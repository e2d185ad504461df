"""From files and column names to a configuration, and what was guessed on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ensue.data.options import TABLES, ReadOptions, require
from ensue.data.read import format_of
from ensue.data.roles import guess_roles, header_hint, header_is_data
from ensue.data.rows import Row
from ensue.data.series import number_of
from ensue.data.tokenise import Tokeniser
from ensue.errors import DataError, OptionError
from ensue.models.language import LanguageModel
from ensue.models.spans import scheme_of
from ensue.runs.config import DataSettings, RunConfig, changed
from ensue.runs.parts import first_rows, read_options

LOOKED_AT = 200  # rows
MOST_CLASSES = 50  # of numbers that are names of classes
SEPARATOR = "·"


class Inferred(NamedTuple):
    """The configuration, and a line for each thing that nobody said."""

    config: RunConfig
    lines: list[str]


class Guess(NamedTuple):
    """The task with the reason, the keys of [data] that were found, those of other tables."""

    task: str
    why: str
    data: dict[str, Any]
    tables: dict[str, dict[str, Any]]


def infer(data: Mapping[str, Any], task: str | None, settings: Sequence[str]) -> Inferred:
    """data: the keys of [data] that were given."""
    given = DataSettings.of(data, "data")
    _refuse_twice(given)
    plain = given.model_copy(
        update={"text": "", "label": "", "group": "", "sequence": "", "features": []}
    )
    rows = first_rows(given.train, read_options(plain), LOOKED_AT)
    guess = _long_table(rows, given, task) if given.sequence else _rows(rows, given, task)
    lines = _header_lines(rows, given)
    lines += [f"{k}: {_told(v)}" for k, v in guess.data.items() if not getattr(given, k)]
    if task is None:
        lines.append(f"task: {guess.task} ({guess.why})")
    for table, own in guess.tables.items():
        lines += [f"{table}.{key}: {str(value).lower()}" for key, value in own.items()]
    tables = {"task": guess.task, "data": {**data, **guess.data}, **guess.tables}
    config = RunConfig.of(changed(tables, settings))
    return Inferred(config, [*lines, *_split_lines(config.data)])


def _refuse_twice(data: DataSettings) -> None:
    """No file is in two parts, nor twice in one."""
    parts = {"train": data.train, "--validation": data.validation, "--test": data.test}
    seen: dict[Path, str] = {}
    for part, paths in parts.items():
        for path in paths:
            own = Path(path).resolve()
            if own in seen:
                raise OptionError(
                    f"{path}: given twice ({seen[own]} and {part}): rows that a model learned "
                    "from cannot test it. Give each file once"
                )
            seen[own] = part


def _header_lines(rows: Sequence[Row], data: DataSettings) -> list[str]:
    kind = format_of(Path(rows[0].place.file)) if data.format == "auto" else data.format
    wanted = kind in TABLES and not data.header and header_is_data(rows)
    return [header_hint(list(rows[0].fields))] if wanted else []


def _told(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def _rows(rows: Sequence[Row], given: DataSettings, task: str | None) -> Guess:
    """Each row has its text or sequence, and its label or labels."""
    require([given.group] if given.group else [], list(rows[0].fields), rows[0].place)
    roles = guess_roles(rows, given.text or None, given.label or None)
    if task == LanguageModel.kind:
        return Guess(task, "", {"text": roles.text}, {})
    if roles.label is None:
        raise no_label(rows, _header_lines(rows, given))
    if task is None and not given.separator:
        _refuse_numbers(rows, roles.label)
    pairs = [(row.fields.get(roles.text), row.fields.get(roles.label)) for row in rows]
    lists = any(isinstance(label, list | np.ndarray) for _, label in pairs)
    found, why = "classify", "one label for each row"
    if lists and all(map(_stepped, pairs)):
        found, why = "label", "a label for each step"
    elif lists or given.separator:
        why = "several labels for each row"
    found, tables = task or found, dict[str, dict[str, Any]]()
    if found == "classify" and (lists or given.separator):
        tables["model"] = {"several": True}
    if found == "label" and isinstance(pairs[0][0], str):
        tables["text"] = {"level": "spaces"}
    if found == "label" and scheme_of({tag for _, tags in pairs for tag in map(str, tags or ())}):
        tables["train"] = {"watch": "span_f1"}
    return Guess(found, why, {"text": roles.text, "label": roles.label}, tables)


def _refuse_numbers(rows: Sequence[Row], name: str) -> None:
    """A column of numbers that hardly repeat has no classes."""
    values = [row.fields.get(name) for row in rows]
    different = {str(value) for value in values if number_of(value) is not None}
    if len(different) > max(MOST_CLASSES, len(values) // 2):
        raise DataError(
            f"{rows[0].place}: {name} looks like a number to predict: {len(different)} different "
            f"ones in the first {len(values)} rows. Regression is not offered yet: choose another "
            "column with --label; if the numbers are names of classes, say --task classify"
        )


def _stepped(pair: tuple[Any, Any]) -> bool:
    kinds = (list, np.ndarray)
    return all(isinstance(own, kinds) for own in pair) and len(pair[0]) == len(pair[1])


def _long_table(rows: Sequence[Row], given: DataSettings, task: str | None) -> Guess:
    """Many rows make one sequence, whose label is the same on all of them, or one for each."""
    names = list(rows[0].fields)
    asked = [given.sequence, given.label, given.group, *given.features]
    require([name for name in asked if name], names, rows[0].place)
    if not given.label:
        raise no_label(rows)
    others = [name for name in names if name not in (given.sequence, given.label, given.group)]
    features = given.features or [
        name for name in others if all(number_of(row.fields.get(name)) is not None for row in rows)
    ]
    if not features:
        raise DataError(
            f"{rows[0].place}: no column of numbers among {', '.join(others) or 'none'}; "
            "name them with --features a,b,c"
        )
    known: dict[str, Any] = {}
    same = all(
        known.setdefault(str(row.fields[given.sequence]), row.fields[given.label])
        == row.fields[given.label]
        for row in rows
    )
    found = ("classify", f"one label for each {given.sequence}")
    if not same:
        found = ("label", "a label for each step")
    return Guess(task or found[0], found[1], {"label": given.label, "features": features}, {})


def no_label(rows: Sequence[Row], hints: Sequence[str] = ()) -> DataError:
    told = (
        f"{rows[0].place}: no column looks like a label among {', '.join(rows[0].fields)}; "
        "name it with --label"
    )
    return DataError("\n".join([told, *hints]))


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
