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
from ensue.errors import ConfigError, DataError, OptionError, unknown
from ensue.models.captioner import Captioner
from ensue.models.forecaster import Forecaster
from ensue.models.image_model import ImageModel
from ensue.models.language import LanguageModel
from ensue.models.spans import scheme_of
from ensue.models.table_model import TableModel
from ensue.models.translator import Translator
from ensue.runs.captions import are_captions
from ensue.runs.config import TASKS, DataSettings, RunConfig, changed
from ensue.runs.forecast import columns_of, split_line
from ensue.runs.images import are_pictures, refuse_columns
from ensue.runs.parallel import PAIR, parallel, sides_of
from ensue.runs.parts import first_rows, plain_text, read_options, runs_on

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
    if task is not None and task not in TASKS:
        raise ConfigError(str(unknown("task", task, TASKS)))
    _refuse_twice(given)
    if task == ImageModel.kind or (task is None and are_pictures(given.train)):
        return _pictures(data, given, task, settings)
    plain = given.model_copy(
        update={"text": "", "label": "", "group": "", "sequence": "", "features": []}
    )
    rows = first_rows(given.train, read_options(plain), LOOKED_AT)
    if task == Forecaster.kind:
        if given.skip_bad:
            raise OptionError(
                "--skip-bad: a series cannot leave steps out, for those behind them would move; "
                "fill the cells in"
            )
        model = changed({}, settings).get("model", {})
        guess = Guess(task, "", {}, {"model": columns_of(rows, model)})
    else:
        guess = _long_table(rows, given, task) if given.sequence else _rows(rows, given, task)
    lines = _header_lines(rows, given)
    lines += [f"{k}: {_told(v)}" for k, v in guess.data.items() if not getattr(given, k)]
    if task is None:
        lines.append(f"task: {guess.task} ({guess.why})")
    for table, own in guess.tables.items():
        lines += [f"{table}.{key}: {_told(value)}" for key, value in own.items()]
    tables = {"task": guess.task, "data": {**data, **guess.data}, **guess.tables}
    config = RunConfig.of(changed(tables, settings))
    return Inferred(config, [*lines, *_split_lines(config)])


def _pictures(
    data: Mapping[str, Any], given: DataSettings, task: str | None, settings: Sequence[str]
) -> Inferred:
    """Folders of pictures by class, or idx files: no row has columns."""
    refuse_columns(given)
    config = RunConfig.of(changed({"task": ImageModel.kind, "data": dict(data)}, settings))
    lines = [] if task else [f"task: {ImageModel.kind} (pictures with a class each)"]
    return Inferred(config, [*lines, *_split_lines(config)])


def _refuse_twice(data: DataSettings) -> None:
    """No file is in two parts, nor twice in one."""
    parts = {"train": data.train, "--validation": data.validation, "--test": data.test}
    seen: dict[Path, str] = {}
    for part, paths in parts.items():
        for path in (side for both in paths for side in sides_of(both)):
            own = Path(path).resolve()
            if own in seen:
                why = ": rows that a model learned from cannot test it" * (seen[own] != part)
                raise OptionError(
                    f"{path}: given twice ({seen[own]} and {part}){why}. Give each file once"
                )
            seen[own] = part


def _header_lines(rows: Sequence[Row], data: DataSettings) -> list[str]:
    if parallel(data.train):
        return []
    kind = format_of(Path(rows[0].place.file)) if data.format == "auto" else data.format
    wanted = kind in TABLES and not data.header and header_is_data(rows)
    return [header_hint(list(rows[0].fields))] if wanted else []


def _told(value: bool | str | Sequence[str]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else ", ".join(value)


def _rows(rows: Sequence[Row], given: DataSettings, task: str | None) -> Guess:
    """Each row has its text or sequence, and its label or labels."""
    require([given.group] if given.group else [], list(rows[0].fields), rows[0].place)
    if task == Captioner.kind or (task is None and are_captions(rows)):
        return _pairs(rows, given)._replace(task=Captioner.kind, why="pictures with captions")
    if task == Translator.kind or (task is None and _are_pairs(rows, given)):
        return _pairs(rows, given)
    if task == TableModel.kind or (task is None and _is_table(rows, given)):
        return _table(rows, given)
    if given.text and given.text == given.label:
        raise OptionError(f"--text and --label: expected two columns, got {given.text!r} twice")
    roles = guess_roles(rows, given.text or None, given.label or None)
    if task == LanguageModel.kind:
        return Guess(task, "", {"text": roles.text}, {})
    if roles.label is None:
        raise no_label(rows, _header_lines(rows, given))
    if task is None and not given.text and _numeric(rows, roles.text):
        raise DataError(
            f"{rows[0].place}: no column looks like a text among {', '.join(rows[0].fields)}; say "
            "what is to be predicted with --label, and the others are read as a table"
        )
    if task is None and not given.separator:
        _refuse_numbers(rows, roles.label)
    pairs = [(row.fields.get(roles.text), row.fields.get(roles.label)) for row in rows]
    lists = any(isinstance(label, list | np.ndarray) for _, label in pairs)
    found, why = "classify", "one label for each row"
    if lists and 2 * sum(map(_stepped, pairs)) > len(pairs):  # the others are faults, to be named
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


def _are_pairs(rows: Sequence[Row], given: DataSettings) -> bool:
    """Two parallel files, or two texts by their names; a target that repeats is a class."""
    if parallel(given.train):
        return True
    if given.separator:
        return False
    source, target = given.text or PAIR[0], given.label or PAIR[1]
    pairs = [(own.fields.get(source), own.fields.get(target)) for own in rows]
    if not all(isinstance(own, str) and number_of(own) is None for pair in pairs for own in pair):
        return False
    return len({own for _, own in pairs}) > max(2, len(pairs) // 2)


def _pairs(rows: Sequence[Row], given: DataSettings) -> Guess:
    """Each row is a text and what it is to become: by name, or the one column that is left."""
    names = list(rows[0].fields)
    require([own for own in (given.text, given.label) if own], names, rows[0].place)
    left = [name for name in names if name not in (given.text, given.label, given.group)]
    source = given.text or (PAIR[0] if PAIR[0] in left else "")
    target = given.label or (PAIR[1] if PAIR[1] in left else "")
    left = [name for name in left if name not in (source, target)]
    if not source and len(left) == 2 - bool(target):
        source = left.pop(0)
    if source and not target and len(left) == 1:
        target = left.pop()
    if not source or not target:
        missing = " and ".join(
            option for option, own in (("--source", source), ("--target", target)) if not own
        )
        raise DataError(
            f"{rows[0].place}: which columns are the text and what it is to become? Name them with "
            f"{missing}. Columns: {', '.join(names)}"
        )
    if source == target:
        raise DataError(
            f"{rows[0].place}: --source and --target: expected two columns, got {source!r} twice"
        )
    return Guess(Translator.kind, "pairs of texts", {"text": source, "label": target}, {})


def _is_table(rows: Sequence[Row], given: DataSettings) -> bool:
    """Whether a column is to be predicted from others that are no texts: all others are numbers,
    or it is a number itself and one of the others at least is a number or repeats."""
    if given.text or not given.label or given.label not in rows[0].fields:
        return False
    others = [name for name in rows[0].fields if name not in (given.label, given.group)]
    numeric = [name for name in others if _numeric(rows, name)]
    if others and numeric == others:
        return True
    half = len(rows) // 2
    few = [name for name in others if len({str(row.fields.get(name)) for row in rows}) <= half]
    return bool(numeric or few) and _different_numbers(rows, given.label) is not None


def _table(rows: Sequence[Row], given: DataSettings) -> Guess:
    """Each row has columns to learn from, and one to predict."""
    if not given.label:
        raise no_label(rows)
    require([given.label], list(rows[0].fields), rows[0].place)
    number = not given.separator and _different_numbers(rows, given.label) is not None
    why = f"{given.label} from {len(rows[0].fields) - 1 - bool(given.group)} columns"
    kind = "number" if number else "several" if given.separator else "auto"
    return Guess(TableModel.kind, why, {"label": given.label}, {"model": {"target": kind}})


def _numeric(rows: Sequence[Row], name: str) -> bool:
    return all(number_of(row.fields.get(name)) is not None for row in rows)


def _different_numbers(rows: Sequence[Row], name: str) -> int | None:
    """How many different numbers a column has, if they hardly repeat: then they are no classes."""
    values = [row.fields.get(name) for row in rows]
    different = {str(value) for value in values if number_of(value) is not None}
    return len(different) if len(different) > max(MOST_CLASSES, len(values) // 2) else None


def _refuse_numbers(rows: Sequence[Row], name: str) -> None:
    """A number cannot be predicted from a text alone."""
    different = _different_numbers(rows, name)
    if different is not None:
        raise DataError(
            f"{rows[0].place}: {name} looks like a number to predict: {different} different "
            f"ones in the first {len(rows)} rows. Regression from a text is not offered: choose "
            "another column with --label; if the numbers are names of classes, say --task classify"
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
    alone = len(rows[0].fields) == 1
    told = (
        f"{rows[0].place}: no column looks like a label among {', '.join(rows[0].fields)}; "
        "name it with --label" + ", or learn the text itself with --task language" * alone
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


def _split_lines(config: RunConfig) -> list[str]:
    data = config.data
    if config.forecasts and not data.validation:
        return [split_line(config)]
    by = f"the hash of {data.group or ('each source' if config.pairs else 'each row')}"
    if config.pictures:
        by = "the hash of each picture"
    elif runs_on(data) and all(plain_text(path, data.format) for path in data.train):
        by = "blocks of lines, so that what belongs together stays together"
    if not data.validation and not data.test:
        return [f"split: 80 % train, 10 % validation, 10 % test, by {by}"]
    if not data.validation:
        return [f"split: 90 % train, 10 % validation, by {by}; the test part is its own file"]
    return [] if data.test else ["split: no test part; give one to `ensue evaluate --test`"]
