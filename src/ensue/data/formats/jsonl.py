"""JSON lines: one object on each line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from ensue.data.decode import filled, lines
from ensue.data.options import ReadOptions
from ensue.data.rows import Place, ProblemCallback, Row
from ensue.data.values import FieldReader, Unfit
from ensue.files.opening import COLUMNS

ENDINGS = (".jsonl", ".ndjson")


def read(path: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """The fields of each object: texts, numbers, lists of tokens, arrays (length, …) of numbers.

    With `columns`, only these fields are checked and kept."""
    reader = FieldReader(options, on_bad_row)
    for number, text, fault in filled(lines(path, options)):
        place = Place(str(path), number)
        try:
            if fault:
                raise Unfit(fault)
            fields = parsed(text)
        except Unfit as unfit:
            reader.reject(place, [str(unfit)])
        else:
            yield from reader.row(place, fields)


def parsed(text: str) -> dict[str, Any]:
    """The object of a text; raises `Unfit` if the text is not JSON or not an object."""
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise Unfit(f"invalid JSON: {error_text(error)} at character {error.pos + 1}") from None
    except RecursionError:
        raise Unfit("invalid JSON: nested too deeply") from None
    except ValueError:  # Python reads no integers with more than a few thousand digits
        raise Unfit("a number with too many digits") from None
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else "a single value"
        raise Unfit(f"expected an object, {{…}}, got {kind}")
    return value


def error_text(error: json.JSONDecodeError) -> str:
    """The fault without its place."""
    return error.msg.removesuffix(" starting at")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise Unfit(f"the key {counts.most_common(1)[0][0]!r} occurs twice in one object")
    if len(fields) > COLUMNS:
        raise Unfit(f"expected an object of at most {COLUMNS:,} keys, got {len(fields):,}")
    return fields


def _constant(name: str) -> NoReturn:
    raise Unfit(f"{name} is not valid JSON: expected a finite number")
