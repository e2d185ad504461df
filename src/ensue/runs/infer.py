"""From files and column names to a configuration, and what was guessed on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os.path import abspath
from pathlib import Path
from typing import Any, NamedTuple

from ensue.data.options import ReadOptions
from ensue.data.parallel import sides_of
from ensue.data.roles import guess_roles
from ensue.data.settings import DataSettings
from ensue.data.tokenise import Tokeniser
from ensue.errors import ConfigError, DataError, EnsueError, OptionError, unknown
from ensue.escape import printable
from ensue.runs.config import RunConfig, changed
from ensue.runs.known_settings import known_settings
from ensue.runs.messages import Message
from ensue.runs.paths import with_cell_paths
from ensue.setting_words import Words
from ensue.tasks import TASKS
from ensue.tasks.rows.recognise import roles_of
from ensue.tasks.sample import Guess, Sample, first_rows

SEPARATOR = "·"
NO_WORDS: Words = {}


class Inferred(NamedTuple):
    """The configuration, and a message for each setting that was inferred."""

    config: RunConfig
    messages: list[Message]


def infer(
    data: Mapping[str, Any],
    task: str | None,
    settings: Sequence[str],
    words: Words = NO_WORDS,
) -> Inferred:
    """data: the keys of [data] that were given; settings: `table.key=value` each; words: values
    for settings by the words that stand for them, whatever the task calls these."""
    said = changed({}, settings)
    data = {**data, **said.get("data", {})}
    given = DataSettings.of(data, "data")
    if task is not None and task not in TASKS:
        raise ConfigError(str(unknown("task", task, TASKS)))
    _refuse_twice(given)
    sample = Sample(given, said)
    name, guess = (task, TASKS[task].infer(sample)) if task else _recognised(sample)
    hints = sample.header_lines() if "rows" in vars(sample) else []
    lines = [f"{k}: {_told(v)}" for k, v in guess.data.items() if v and not getattr(given, k)]
    if task is None:
        lines.append(f"task: {name} ({guess.why})")
    for table, keys in guess.tables.items():
        lines += [f"{table}.{key}: {_told(value)}" for key, value in keys.items()]
    tables = {"task": name, "data": {**data, **guess.data}, **guess.tables}
    in_words = known_settings(name).as_settings(words)
    config = RunConfig.of(changed(tables, [*in_words, *settings]))
    config = replace(config, model=with_cell_paths(config.model, abspath))
    split = config.description.split_line(config.data, config.model)
    messages = [Message(hint, warning=True) for hint in hints]
    messages += [Message(line) for line in config.renamed]
    return Inferred(config, [*messages, *map(Message, lines), *[Message(split)] * bool(split)])


def _recognised(sample: Sample) -> tuple[str, Guess]:
    """The first task that recognises the data."""
    for name in TASKS:
        guess = sample.recognised_by(TASKS[name].recognise)
        if guess is not None:
            return name, guess
    raise _nothing_recognised(sample)


def _nothing_recognised(sample: Sample) -> EnsueError:
    """Why no task fits, as far as the columns tell."""
    try:
        roles_of(sample)
    except EnsueError as problem:
        return problem
    return DataError(
        f"{sample.rows[0].place}: no column looks like a text among {', '.join(sample.columns)}; "
        "say what is to be predicted with --label, and the others are read as a table"
    )


def _refuse_twice(data: DataSettings) -> None:
    """No file is in two parts, nor twice in one."""
    parts = {"train": data.train, "--validation": data.validation, "--test": data.test}
    seen: dict[Path, str] = {}
    for part, paths in parts.items():
        for path in (side for both in paths for side in sides_of(both)):
            full = Path(path).resolve()
            if full in seen:
                why = ": rows that a model learned from cannot test it" * (seen[full] != part)
                raise OptionError(
                    f"{path}: given twice ({seen[full]} and {part}){why}. Give each file once"
                )
            seen[full] = part


def _told(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def tokens_shown(path: str, options: ReadOptions, text: str, count: int, width: int) -> str:
    """What a model sees of the first rows: their tokens, one row a line."""
    rows = first_rows([path], replace(options, used=(text,) if text else (), others=True), count)
    name = guess_roles(rows, text or None, None).text
    tokeniser = Tokeniser("words", lower=True, breaks="space")
    lines = [f"as tokens ({name}, level words; {SEPARATOR} stands between them)"]
    for row in rows:
        value = row.fields.get(name, "")
        if not isinstance(value, str | list):
            return (
                f"{name}: sequences of numbers are taken as they are, scaled by the training part"
            )
        tokens = tokeniser(value) if isinstance(value, str) else value
        line = f"  {len(tokens):>5}  {SEPARATOR.join(map(str, tokens))}"
        lines.append(line if len(line) <= width else line[: width - 1] + "…")
    return "\n".join(map(printable, lines))
