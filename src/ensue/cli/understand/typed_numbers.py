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
            f"{option}: expected numbers with commas between, such as 0.5,-1, got {text!r}"
        ) from None


def positive_numbers(option: str, text: str) -> list[float]:
    found = numbers(option, text)
    if not found or not all(math.isfinite(own) and own > 0 for own in found):
        raise OptionError(
            f"{option}: expected numbers > 0 with commas between, such as 0.01,0.05, got {text!r}"
        )
    return found


def whole_numbers(option: str, text: str) -> list[int]:
    found = numbers(option, text)
    if not all(map(float.is_integer, found)):
        raise OptionError(
            f"{option}: expected whole numbers with commas between, such as 2,3,1, got {text!r}"
        )
    return [int(number) for number in found]


def assignments(option: str, text: str) -> dict[str, float]:
    """ "x=1.5,y=2" by name."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        given = numbers(option, value)
        if len(given) != 1:
            raise OptionError(f"{option}: expected name=number with commas between, got {part!r}")
        found[name.strip()] = given[0]
    return found


def shaped_assignments(option: str, text: str) -> dict[str, Any]:
    """ "x=1.5,W=[[1,2],[3,4]]" by name: numbers, and lists of them."""
    found: dict[str, Any] = {}
    for part in re.split(r",(?=\s*[^\W\d]\w*\s*=)", text):
        name, _, value = part.partition("=")
        if not value.strip().startswith("["):
            found |= assignments(option, part)
            continue
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            raise OptionError(
                f"{option}: expected name=number, or name=[1,2] or name=[[1,2],[3,4]], with commas "
                f"between, got {part!r}"
            ) from None
    return found
