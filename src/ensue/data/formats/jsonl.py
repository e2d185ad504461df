"""JSON lines: one object on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from ensue.data.decode import lines
from ensue.data.options import ReadOptions, needed_columns
from ensue.data.rows import Place, Problem, Row, Tell
from ensue.data.values import Kinds, Unfit
from ensue.errors import unknown

ENDINGS = (".jsonl", ".ndjson")


def read(path: Path, options: ReadOptions, on_bad_row: Tell) -> Iterator[Row]:
    """The fields of each object: texts, numbers, lists of tokens, arrays (length, …) of numbers.

    With `columns` only these fields are looked at and kept."""
    file, needed, kinds = str(path), needed_columns(options), Kinds()
    empty: int | None = None  # the first of empty lines: a fault unless they end the file
    for number, text, fault in lines(path, options):
        if not fault and not text.strip(" \t\r"):
            empty = empty or number
            continue
        for line in range(empty or number, number):
            on_bad_row(Problem(Place(file, line), "the line is empty"))
        empty = None
        fields: dict[str, Any] = {}
        faults = [fault] if fault else []
        if not faults:
            try:
                fields = _parsed(text)
            except Unfit as unfit:
                faults = [str(unfit)]
        if not faults:
            faults = [str(unknown("field", name, fields)) for name in needed if name not in fields]
        if not faults:
            fields = {name: fields[name] for name in needed} if needed else fields
            faults = kinds.faults(fields, number)
        for k, reason in enumerate(faults):
            on_bad_row(Problem(Place(file, number), reason, rejects=int(k == 0)))
        if not faults:
            yield Row(Place(file, number), fields)


def _parsed(text: str) -> dict[str, Any]:
    """The object of a line; `Unfit` for what is not JSON, or not an object."""
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise Unfit(f"invalid JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise Unfit("invalid JSON: nested too deeply") from None
    except ValueError:  # Python reads no integer of more than some thousand digits
        raise Unfit("a number with too many digits") from None
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else "a single value"
        raise Unfit(f"expected an object, {{…}}, got {kind}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Unfit(f"the key {twice!r} stands twice in one object")
    return found


def _constant(name: str) -> NoReturn:
    raise Unfit(f"{name} is not valid JSON: expected a finite number")
