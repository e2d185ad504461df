"""Numbers as they are typed: 0.5,-1 or x=1.5,y=2."""

import json
import math
import re
from typing import Any

from ensue.errors import OptionError


def numbers(option: str, text: str) -> list[float]:
    """Numbers with commas or spaces between."""
    try:
        return [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise OptionError(
            f"{option}: expected comma-separated numbers, such as 0.5,-1, got {text!r}"
        ) from None


def positive_numbers(option: str, text: str) -> list[float]:
    values = numbers(option, text)
    if not values or not all(math.isfinite(value) and value > 0 for value in values):
        raise OptionError(
            f"{option}: expected comma-separated numbers > 0, such as 0.01,0.05, got {text!r}"
        )
    return values


def whole_numbers(option: str, text: str) -> list[int]:
    values = numbers(option, text)
    if not all(map(float.is_integer, values)):
        raise OptionError(
            f"{option}: expected comma-separated whole numbers, such as 2,3,1, got {text!r}"
        )
    return [int(number) for number in values]


def assignments(option: str, text: str) -> dict[str, float]:
    """ "x=1.5,y=2" by name."""
    by_name: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        values = numbers(option, value)
        if len(values) != 1:
            raise OptionError(f"{option}: expected comma-separated name=number, got {part!r}")
        by_name[name.strip()] = values[0]
    return by_name


def shaped_assignments(option: str, text: str) -> dict[str, Any]:
    """ "x=1.5,W=[[1,2],[3,4]]" by name: numbers, and lists of them."""
    by_name: dict[str, Any] = {}
    for part in re.split(r",(?=\s*[^\W\d]\w*\s*=)", text):
        name, _, value = part.partition("=")
        if not value.strip().startswith("["):
            by_name |= assignments(option, part)
            continue
        try:
            by_name[name.strip()] = json.loads(value)
        except ValueError:
            raise OptionError(
                f"{option}: expected comma-separated name=number, name=[1,2] or "
                f"name=[[1,2],[3,4]], got {part!r}"
            ) from None
    return by_name
