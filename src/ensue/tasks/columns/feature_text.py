"""Hand-made features of a table as texts: `month(sold, alpha=5.5, learned=True)`.

    feature = "constant" | NAME "(" column ("," column)* ("," WORD "=" literal)* ")"
    column  = a word, or a text in quotes
    literal = a number, a text in quotes, True or False

    constant                                 1: a weight for it is a bias
    column(x)                                x as it is; of a date, its days
    polynomial(x, y, degree=2)               all products up to the degree: x, y, x², x·y, y²
    month(x, alpha=6.5, learned=False)       min(d, 12 − d), d = |x − α|: the months around the year
    weekday(x)                               seven columns of 0 and 1, Monday first

Columns are numbers or dates. The text is read and never run: nothing but these can stand in it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ensue.data.time.dates import AUTO, ORDERS
from ensue.errors import OptionError, unknown
from ensue.tasks.baselines.features import (
    Constant,
    CrossPolynomial,
    FeatureColumn,
    MonthDistance,
    Transform,
    Weekday,
)

LONGEST = 500  # characters of a feature
HIGHEST = 10  # degree of a polynomial
MOST_TERMS = 1000
YEAR = 12.0  # months
EXAMPLE = "such as month(sold), polynomial(area, age, degree=2) or constant"

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Option:
    """What a feature can be told beside its columns."""

    default: Any
    expected: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True)
class FeatureKind:
    """reads: how its columns are read, scaled, month or weekday; most: columns that it takes, None
    for any number; make: the transform of the columns at these places."""

    reads: str
    most: int | None
    options: Mapping[str, Option]
    make: Callable[[Sequence[int], Options], Transform]


def _is_month(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 13


ORDER = Option(AUTO, ", ".join(ORDERS), lambda value: value in ORDERS)
FEATURES = {
    "constant": FeatureKind("", 0, {}, lambda at, own: Constant()),
    "column": FeatureKind("scaled", 1, {"order": ORDER}, lambda at, own: FeatureColumn(at[0])),
    "polynomial": FeatureKind(
        "scaled",
        None,
        {
            "degree": Option(
                2,
                f"a whole number from 1 to {HIGHEST}",
                lambda value: type(value) is int and 1 <= value <= HIGHEST,
            ),
            "order": ORDER,
        },
        lambda at, own: CrossPolynomial(at, own["degree"]),
    ),
    "month": FeatureKind(
        "month",
        1,
        {
            "alpha": Option(6.5, "a month, a number from 0 to 13", _is_month),
            "learned": Option(False, "True or False", lambda value: isinstance(value, bool)),
            "order": ORDER,
        },
        lambda at, own: MonthDistance(at[0], own["alpha"], learned=own["learned"], step=YEAR),
    ),
    "weekday": FeatureKind("weekday", 1, {"order": ORDER}, lambda at, own: Weekday(at[0])),
}  # fmt: skip


@dataclass(frozen=True)
class Feature:
    """A feature as it was written. options: all of them."""

    text: str
    kind: str
    columns: tuple[str, ...]
    options: Options

    @property
    def reads(self) -> str:
        return FEATURES[self.kind].reads

    @property
    def order(self) -> str:
        """Of day and month, in the dates that it reads."""
        return str(self.options.get("order", AUTO))

    def transform(self, places: Sequence[int]) -> Transform:
        return FEATURES[self.kind].make(places, self.options)


def feature_of_text(text: str) -> Feature:
    """
    >>> found = feature_of_text("polynomial(area, 'living room', degree=3)")
    >>> found.kind, found.columns, found.options
    ('polynomial', ('area', 'living room'), {'degree': 3, 'order': 'auto'})
    """
    if len(text) > LONGEST:
        raise OptionError(f"expected a feature in at most {LONGEST} characters, got {len(text):,}")
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _no_feature(text) from None
    head = node.func if isinstance(node, ast.Call) else node
    if not isinstance(head, ast.Name):
        raise _no_feature(text)
    if head.id not in FEATURES:
        raise OptionError(f"{unknown('feature', head.id, FEATURES)}; in {text!r}")
    columns = [_column(own, text) for own in node.args] if isinstance(node, ast.Call) else []
    words = node.keywords if isinstance(node, ast.Call) else []
    _check_columns(head.id, columns, text)
    return Feature(text, head.id, tuple(columns), _options(head.id, words, text))


def _no_feature(text: str) -> OptionError:
    return OptionError(f"expected a feature, {EXAMPLE}, got {text!r}")


def _column(node: ast.expr, text: str) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    got = ast.get_source_segment(text.strip(), node)
    raise OptionError(
        f"expected the name of a column, in quotes where it is no word, got {got} in {text!r}"
    )


def _check_columns(kind: str, columns: Sequence[str], text: str) -> None:
    most = FEATURES[kind].most
    wanted = "columns" if most is None else ("no column", "one column")[most]
    if not columns if most is None else len(columns) != most:
        raise OptionError(f"{kind}: expected {wanted}, got {len(columns)} in {text!r}")
    if len({*columns}) < len(columns):
        raise OptionError(
            f"{kind}: expected each column once, got {', '.join(columns)} in {text!r}"
        )


def _options(kind: str, words: Sequence[ast.keyword], text: str) -> dict[str, Any]:
    known = FEATURES[kind].options
    found = {name: option.default for name, option in known.items()}
    for word in words:
        name = word.arg or "**"
        if name not in known:
            raise OptionError(f"{unknown(f'option of {kind}', name, known)}; in {text!r}")
        try:
            found[name] = ast.literal_eval(word.value)
        except (ValueError, TypeError, SyntaxError, RecursionError):
            found[name] = None
        if not known[name].fits(found[name]):
            got = ast.get_source_segment(text.strip(), word.value)
            raise OptionError(
                f"{kind}: {name}: expected {known[name].expected}, got {got} in {text!r}"
            )
    return found


def features_of(texts: Sequence[str]) -> list[Feature]:
    """An error where one cannot be read, is there twice, or they are too many columns."""
    found = [feature_of_text(text) for text in texts]
    told = [(own.kind, own.columns, own.options) for own in found]
    for k, own in enumerate(found):
        if told[k] in told[:k]:
            raise OptionError(f"expected each feature once, got {own.text} twice")
    terms = sum(_terms(own) for own in found)
    if terms > MOST_TERMS:
        raise OptionError(f"expected polynomials of at most {MOST_TERMS:,} products, got {terms:,}")
    return found


def _terms(feature: Feature) -> int:
    """Products of a polynomial, counted before they are made."""
    columns, degree = len(feature.columns), feature.options.get("degree", 1)
    return math.comb(columns + degree, degree) - 1
