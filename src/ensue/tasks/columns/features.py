"""Hand-made features: the columns that they read, and their layer in the network."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.series import MISSING, number_of
from ensue.data.time.dates import (
    AUTO,
    DAY_FIRST,
    MONTH_FIRST,
    NUMBER,
    ORDERS,
    Spelling,
    spellings_of,
)
from ensue.errors import DataError, OptionError, unknown
from ensue.tasks.baselines.features import (
    Constant,
    CrossPolynomial,
    FeatureColumn,
    MonthDistance,
    Transform,
    Weekday,
)
from ensue.tasks.columns.cells import Column, Grid
from ensue.tasks.declarations import OneOf, Positive


class ColumnSettings(Protocol):
    """How columns are read. numeric, categorical: columns with ambiguous values; leave_out: ignored
    columns; missing: treatment of empty cells, "error" or "indicator"; min_count: rarer categories
    are unknown; features: hand-made from columns."""

    @property
    def numeric(self) -> Sequence[str]: ...
    @property
    def categorical(self) -> Sequence[str]: ...
    @property
    def leave_out(self) -> Sequence[str]: ...
    @property
    def missing(self) -> str: ...
    @property
    def min_count(self) -> int: ...
    @property
    def features(self) -> Sequence[str]: ...


# -------------------------------------------------------------------------------------------------
# Hand-made features of a table as texts: `month(sold, alpha=5.5, learned=True)`.
#
#     feature = "constant" | NAME "(" column ("," column)* ("," WORD "=" literal)* ")"
#     column  = a word, or a text in quotes
#     literal = a number, a text in quotes, True or False
#
#     constant                                 1: a weight for it is a bias
#     column(x)                                x unchanged; of a date, its days
#     polynomial(x, y, degree=2)               all products up to the degree: x, y, x², x·y, y²
#     month(x, alpha=6.5, learned=False)       min(d, 12 − d), d = |x − α|: months around the year
#     weekday(x)                               seven columns of 0 and 1, Monday first
#
# Columns are numbers or dates. The text is parsed, never run; nothing else is allowed in it.

LONGEST = 500  # characters of a feature
HIGHEST = 10  # degree of a polynomial
MOST_TERMS = 1000
YEAR = 12.0  # months
EXAMPLE = "such as month(sold), polynomial(area, age, degree=2) or constant"

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Option:
    """An option of a feature, in addition to its columns."""

    default: Any
    expected: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True)
class FeatureKind:
    """A kind of feature. reads: how its columns are read: scaled, month or weekday; most: maximum
    number of columns, None for any; make: builds the transform of the columns at these indices."""

    reads: str
    most: int | None
    options: Mapping[str, Option]
    make: Callable[[Sequence[int], Options], Transform]


def _is_month(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 13


ORDER = Option(AUTO, ", ".join(ORDERS), lambda value: value in ORDERS)
FEATURES = {
    "constant": FeatureKind("", 0, {}, lambda at, options: Constant()),
    "column": FeatureKind("scaled", 1, {"order": ORDER}, lambda at, options: FeatureColumn(at[0])),
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
        lambda at, options: CrossPolynomial(at, options["degree"]),
    ),
    "month": FeatureKind(
        "month",
        1,
        {
            "alpha": Option(6.5, "a month, a number from 0 to 13", _is_month),
            "learned": Option(False, "True or False", lambda value: isinstance(value, bool)),
            "order": ORDER,
        },
        lambda at, options: MonthDistance(
            at[0], options["alpha"], learned=options["learned"], step=YEAR
        ),
    ),
    "weekday": FeatureKind("weekday", 1, {"order": ORDER}, lambda at, options: Weekday(at[0])),
}  # fmt: skip


@dataclass(frozen=True)
class Feature:
    """A parsed feature. options: all of them, including defaults."""

    text: str
    kind: str
    columns: tuple[str, ...]
    options: Options

    @property
    def reads(self) -> str:
        return FEATURES[self.kind].reads

    @property
    def order(self) -> str:
        """The order of day and month in the dates that the feature reads."""
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
    columns = [_column(arg, text) for arg in node.args] if isinstance(node, ast.Call) else []
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
        f"expected the name of a column, in quotes if it is not a word, got {got} in {text!r}"
    )


def _check_columns(kind: str, columns: Sequence[str], text: str) -> None:
    most = FEATURES[kind].most
    expected_columns = "columns" if most is None else ("no column", "one column")[most]
    if not columns if most is None else len(columns) != most:
        raise OptionError(f"{kind}: expected {expected_columns}, got {len(columns)} in {text!r}")
    if len({*columns}) < len(columns):
        raise OptionError(
            f"{kind}: expected each column once, got {', '.join(columns)} in {text!r}"
        )


def _options(kind: str, words: Sequence[ast.keyword], text: str) -> dict[str, Any]:
    known = FEATURES[kind].options
    options = {name: option.default for name, option in known.items()}
    for word in words:
        name = word.arg or "**"
        if name not in known:
            raise OptionError(f"{unknown(f'option of {kind}', name, known)}; in {text!r}")
        try:
            options[name] = ast.literal_eval(word.value)
        except (ValueError, TypeError, SyntaxError, RecursionError):
            options[name] = None
        if not known[name].fits(options[name]):
            got = ast.get_source_segment(text.strip(), word.value)
            raise OptionError(
                f"{kind}: {name}: expected {known[name].expected}, got {got} in {text!r}"
            )
    return options


def features_of(texts: Sequence[str]) -> list[Feature]:
    """Features from their texts; raises an error for invalid or duplicate features, or too many
    columns."""
    features = [feature_of_text(text) for text in texts]
    described = [(feature.kind, feature.columns, feature.options) for feature in features]
    for k, feature in enumerate(features):
        if described[k] in described[:k]:
            raise OptionError(f"expected each feature once, got {feature.text} twice")
    terms = sum(_terms(feature) for feature in features)
    if terms > MOST_TERMS:
        raise OptionError(f"expected polynomials of at most {MOST_TERMS:,} products, got {terms:,}")
    return features


def _terms(feature: Feature) -> int:
    """The number of products of a polynomial, computed before building it."""
    columns, degree = len(feature.columns), feature.options.get("degree", 1)
    return math.comb(columns + degree, degree) - 1


DAY = 86_400.0  # seconds
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Reads:
    """How a column is read: the part of a date, and the valid plain numbers."""

    of_date: Callable[[datetime], float]
    fits: Callable[[NDArray[np.float64]], NDArray[np.bool_]]
    expected: str


READS = {
    "scaled": Reads(
        lambda moment: (moment - EPOCH).total_seconds() / DAY,
        lambda x: np.ones(len(x), np.bool_),
        "a number or a date",
    ),
    "month": Reads(
        lambda moment: float(moment.month),
        lambda x: (x >= 1) & (x < 13),
        "a date, or a month 1 … 12",
    ),
    "weekday": Reads(
        lambda moment: float(moment.weekday()),
        lambda x: (x == x.round()) & (x >= 0) & (x <= 6),
        "a date, or a day 0 (Monday) … 6",
    ),
}


@dataclass(frozen=True)
class Reading:
    """A column as features read it, (x − mean)/spread. how: a row of READS; dates: whether its
    cells are dates; order: the order of day and month in the dates; gaps: whether cells were
    empty."""

    column: str
    how: Annotated[str, OneOf(READS)]
    dates: bool
    order: Annotated[str, OneOf((AUTO, DAY_FIRST, MONTH_FIRST))]
    mean: float
    spread: Positive
    gaps: bool

    @classmethod
    def learn(cls, column: Column, how: str, order: str, settings: ColumnSettings) -> Reading:
        present = [text for text in column.texts if text.lower() not in MISSING]
        if not present:
            raise DataError(f"column {column.name!r}: expected dates or numbers, got empty cells")
        spelling = _spelling(column, present, order, how)
        reading = cls(
            column.name, how, spelling is not NUMBER, spelling.order or order, 0, 1, False
        )
        values = reading.encode(column, settings)
        known = values[~np.isnan(values)]
        mean, spread = 0.0, 1.0
        if how == "scaled":
            mean, spread = float(known.mean()), float(known.std()) or 1.0
        gaps = len(known) < len(values)
        return cls(reading.column, how, reading.dates, reading.order, mean, spread, gaps)

    def encode(self, column: Column, settings: ColumnSettings) -> NDArray[np.float64]:
        """The numbers of a column (rows,), NaN for empty cells."""
        texts = column.texts
        gone = np.array([text.lower() in MISSING for text in texts])
        if gone.any() and settings.missing == "error":
            raise column.gap(gone)
        present = [text for text, empty in zip(texts, gone, strict=True) if not empty]
        values = np.full(len(texts), np.nan)
        values[~gone] = self._read(column, present) if present else []
        wrong = ~gone & ~READS[self.how].fits(values)
        if wrong.any():
            raise _unread(column, wrong, self.how)
        return ((values - self.mean) / self.spread)[column.index]

    def _read(self, column: Column, texts: list[str]) -> list[float]:
        if not self.dates:
            numbers = [number_of(text) for text in texts]
            return [np.nan if number is None else number for number in numbers]
        spelling = _spelling(column, texts, self.order, self.how)
        moments = [spelling.read(text) for text in texts]
        of_date = READS[self.how].of_date
        return [of_date(moment) if isinstance(moment, datetime) else np.nan for moment in moments]


def _spelling(column: Column, present: list[str], order: str, how: str) -> Spelling:
    """The spelling in which all of these texts are numbers or dates."""
    spellings = spellings_of(present, column.name, order)
    if not spellings:
        wrong = [not spellings_of([text], column.name, order) for text in column.texts]
        odd = np.array(
            [
                is_wrong and text in present
                for is_wrong, text in zip(wrong, column.texts, strict=True)
            ]
        )
        if odd.any():
            raise _unread(column, odd, how)
        raise DataError(
            f"column {column.name!r}: expected dates in one spelling, got {present[0]!r} and "
            "others; "
            "write them as 2021-01-31"
        )
    if len(spellings) > 1:
        either = next(text for text in present if len(spellings_of([text], column.name, order)) > 1)
        raise DataError(
            f"column {column.name!r}: {either!r} may be a day and a month or a month and a day: "
            f"say order={DAY_FIRST!r} or order={MONTH_FIRST!r} in the feature, or write dates as "
            "2021-01-31"
        )
    return spellings[0]


def _unread(column: Column, wrong: NDArray[np.bool_], how: str) -> DataError:
    place, text = column.first(wrong)
    return DataError(
        f"{place}: column {column.name!r}: expected {READS[how].expected}, got {text!r}"
    )


QUARTERS = (1, 4)  # months whose distances distinguish all twelve


def date_features(column: Column) -> list[str]:
    """Default features of a column of dates: its days, its place in the year and the day of the
    week, if they vary; none if it holds no dates, or if day and month cannot be told apart."""
    present = [text for text in column.texts if text.lower() not in MISSING]
    spellings = spellings_of(present, column.name)
    if len(spellings) != 1 or spellings[0] is NUMBER:
        return []
    moments = [moment for moment in map(spellings[0].read, present) if isinstance(moment, datetime)]
    name = column.name if column.name.isidentifier() else repr(column.name)
    texts = [f"column({name})"] if len(moments) > 1 else []
    if len({moment.month for moment in moments}) > 1:
        texts += [f"month({name}, alpha={month})" for month in QUARTERS]
    if len({moment.day for moment in moments}) > 1:
        texts.append(f"weekday({name})")
    return texts


@dataclass(frozen=True)
class FeatureColumns:
    """Hand-made features of columns. texts: the features; readings: the columns that they read, in
    the order of their inputs."""

    texts: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()

    @classmethod
    def learn(cls, grid: Grid, settings: ColumnSettings) -> FeatureColumns:
        """Learns the features. An order of day and month in one feature of a column of dates holds
        for all features of that column."""
        features, readings = features_of(settings.features), dict[tuple[str, str], Reading]()
        orders = {
            name: feature.order
            for feature in features
            for name in feature.columns
            if feature.order != AUTO
        }
        for feature in features:
            for name in feature.columns:
                if (name, feature.reads) not in readings:
                    order = orders.get(name, AUTO)
                    reading = Reading.learn(grid.column(name), feature.reads, order, settings)
                    readings[name, feature.reads] = reading
        return cls(tuple(settings.features), tuple(readings.values()))

    def encode(self, grid: Grid, settings: ColumnSettings) -> NDArray[np.float32]:
        """The numbers that features read (rows, readings), NaN for empty cells."""
        columns = [
            reading.encode(grid.column(reading.column), settings) for reading in self.readings
        ]
        return np.stack([np.zeros(len(grid)), *columns], 1)[:, 1:].astype(np.float32)

    def layer(self) -> TableFeatures | None:
        """The layer of features with fresh weights; None without features."""
        if not self.texts:
            return None
        places = {(reading.column, reading.how): k for k, reading in enumerate(self.readings)}
        parts = [
            (feature, [places[name, feature.reads] for name in feature.columns])
            for feature in features_of(self.texts)
        ]
        return TableFeatures(parts, [k for k, reading in enumerate(self.readings) if reading.gaps])


NO_FEATURES = FeatureColumns()


def _columns(x: Tensor, places: Sequence[int]) -> Tensor:
    """The columns of x at these places (rows, places)."""
    return torch.cat([x[:, :0], *(x[:, k : k + 1] for k in places)], -1)


class TableFeatures(Transform):
    """(rows, readings) → (rows, width): the concatenated features, 0 if a cell that they read is
    empty; then an indicator of empty cells for each reading that may have them."""

    def __init__(self, parts: Sequence[tuple[Feature, list[int]]], marked: list[int]) -> None:
        super().__init__()
        transforms = [feature.transform(places) for feature, places in parts]
        self.texts = [feature.text for feature, _ in parts]
        self.places, self.marked = [places for _, places in parts], marked
        self.parts = nn.ModuleList(transforms)
        self.width = sum(transform.width for transform in transforms) + len(marked)

    def forward(self, x: Tensor) -> Tensor:
        gone, known = x.isnan(), x.nan_to_num()
        values = [
            part(known).masked_fill(_columns(gone, places).any(-1, keepdim=True), 0.0)
            for part, places in zip(self.parts, self.places, strict=True)
        ]
        return torch.cat([*values, _columns(gone, self.marked).to(x.dtype)], -1)

    def learned_months(self) -> dict[str, float]:
        """The α of each feature that learns it, by the feature's text."""
        return {
            text: float(part.alpha.detach()) % YEAR
            for text, part in zip(self.texts, self.parts, strict=True)
            if isinstance(part, MonthDistance) and part.learned
        }
