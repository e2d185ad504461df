"""Inference for series: time, ids of a panel, targets, and horizon."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from ensue.data.options import require
from ensue.data.read import Gathered
from ensue.data.recognise.columns import Kind
from ensue.data.series import number_of
from ensue.data.time.axis import Axis, TimeColumn, arranged, is_missing, time_column
from ensue.data.time.dates import NUMBER, spellings_of
from ensue.errors import DataError
from ensue.tasks.forecast.options import OPTIONS
from ensue.tasks.forecast.seasons import season_of
from ensue.tasks.forecast.tables.reading import PARTS, time_texts
from ensue.tasks.options import TRAIN
from ensue.tasks.sample import Guess, Sample


def listed_names(listed: str) -> list[str]:
    """a,b → the names a and b."""
    return [name.strip() for name in listed.split(",") if name.strip()]


@dataclass(frozen=True)
class Table:
    """All valid rows, by column."""

    columns: dict[str, list[Any]]
    sample: Sample

    @classmethod
    def of(cls, sample: Sample) -> Table:
        data = sample.data.model_copy(
            update={
                "label": "",
                "group": "",
                "text": "",
                "second": "",
                "sequence": "",
                "features": [],
            }
        )
        how = replace(data.read_options(others=True), used=tuple(sample.columns))
        if not sample.origin.files:  # an index of times is read if it is named
            times = listed_names(sample.settings.get("model", {}).get("time", ""))
            how = replace(how, columns=tuple(name for name in times if name not in sample.columns))
        sources = {path: partial(sample.origin.read, path, how) for path in sample.data.train}
        rows = list(Gathered(sources, skip_bad=True))
        names = dict.fromkeys(name for row in rows for name in row.fields)
        return cls({name: [row.fields.get(name) for row in rows] for name in names}, sample)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def texts(self, name: str) -> list[str]:
        return time_texts(self.columns, [name])

    def numbers(self, name: str) -> list[float] | None:
        """The non-missing values of a column, if all of them are numbers."""
        columns = []
        for value in self.columns[name]:
            if value is None or (isinstance(value, str) and is_missing(value)):
                continue
            number = float(value) if isinstance(value, bool) else number_of(value)
            if number is None:
                return None
            columns.append(number)
        return columns or None

    def where(self, row: int) -> str:
        return f"row {row + 1}"

    @property
    def contents(self) -> list[tuple[str, ...]]:
        """The complete content of each row."""
        return list(zip(*(map(str, column) for column in self.columns.values()), strict=True))


CALLED_YEAR = re.compile(r"(.*[_\-. ])?years?", re.IGNORECASE)
YEARS = (1000, 3000)
OF_THE_TIME = (*PARTS, "weekday", "week", "quarter", "dow", "dayofweek", "yearday", "dayofyear")
CALLED_ID = re.compile(r"(.*[_\-. ])?(id|key|uuid|no|nr|index|row)\.?", re.IGNORECASE)
COUNTED = 5  # consecutive numbers that show that a column only counts
LEAST_STEPS = 12  # minimum steps of a series recognised without an option
WORDS = 3  # mean words; a column with more has texts
FAR = 12  # steps ahead without a season
SHORTEST_PART = 6  # minimum horizons of a series
FEW_HORIZONS = 50  # series with fewer horizons are split by whole horizons
TEST, VALIDATION = 0.2, 0.1


def options_given(sample: Sample) -> list[str]:
    """The forecasting options that are set."""
    model = sample.settings.get("model", {})
    words = {option.key: option.flag for option in OPTIONS if TRAIN in option.verbs}
    return [flag for key, flag in words.items() if key.removeprefix("model.") in model]


# --- what columns are ------------------------------------------------------------------------


def time_of(sample: Sample) -> str:
    """The column of times: dates, or numbers with such a name; parts of a time, such as
    year,month,day,hour; "" if there is no such column."""
    dates, counts = [], []
    for name in sample.columns:
        texts = time_texts({name: sample.values(name)}, [name])
        present = [text for text in texts if not is_missing(text)]
        spellings = spellings_of(present, name) if present else []
        if spellings and (spellings[0] is not NUMBER):
            dates.append(name)
        elif spellings and CALLED_YEAR.fullmatch(name) and _are_years(present):
            counts.append(name)
    if dates:
        return dates[0]
    parts = {name.strip().lower(): name for name in sample.columns}
    named = [parts[part] for part in PARTS if part in parts and sample.numeric(parts[part])]
    if len(named) > 1 and "year" in parts:
        return ",".join(named)
    return counts[0] if counts else ""


def _are_years(texts: Sequence[str]) -> bool:
    numbers = [float(text) for text in texts]
    return all(number == int(number) and YEARS[0] <= number < YEARS[1] for number in numbers)


def is_identifier(name: str, numbers: Sequence[float]) -> bool:
    """Whether numbers only identify rows: integers, all different, and consecutive or with such a
    name."""
    if any(number != int(number) for number in numbers) or len({*numbers}) < len(numbers):
        return False
    counted = all(b == a + 1 for a, b in pairwise(numbers))
    return bool(CALLED_ID.fullmatch(name)) or (counted and len(numbers) >= COUNTED)


def measures(table: Table, leave: Sequence[str], timed: bool) -> tuple[list[str], list[str]]:
    """Columns of numbers to forecast, and indicator columns of 0 and 1. Identifiers and parts of
    the time are neither."""
    targets, flags = list[str](), list[str]()
    for name in table.columns:
        numbers = table.numbers(name) if name not in leave else None
        if numbers is None or is_identifier(name, numbers):
            continue
        if timed and name.strip().lower() in OF_THE_TIME:
            continue
        values = {*numbers}
        if len(values) > 1:
            (flags if values == {0.0, 1.0} else targets).append(name)
    return targets, flags


def ids_of(table: Table, times: TimeColumn, leave: Sequence[str]) -> list[str] | None:
    """The fewest columns that distinguish rows of the same time; [] if all times differ, None if no
    columns do."""
    rows = table.contents
    first = {key: row for row, key in reversed([*enumerate(rows)])}
    alone = sorted(first.values())  # without duplicate rows
    moments = [times.moments[row] for row in alone]
    if len({*moments}) == len(moments):
        return []
    count = len(alone)
    texts = {name: table.texts(name) for name in table.columns if name not in leave}
    kinds = {name: [text[row] for row in alone] for name, text in texts.items()}
    few = [
        name
        for name, kind in kinds.items()
        if 1 < len({*kind}) <= count // (LEAST_STEPS if _counts(table, name) else 2) and _keys(kind)
    ]
    few.sort(key=lambda name: (table.numbers(name) is not None, not CALLED_ID.fullmatch(name)))
    for size in (1, 2, 3):
        for names in combinations(few, size):
            keys = zip(moments, *(kinds[name] for name in names), strict=True)
            if len({*keys}) == count:
                return list(names)
    return None


def _counts(table: Table, name: str) -> bool:
    """Whether a column of numbers may be a measure: it is not named like an id."""
    return table.numbers(name) is not None and not CALLED_ID.fullmatch(name)


def _keys(texts: Sequence[str]) -> bool:
    """Whether values can be names: integers or words, none missing."""
    return all(
        text and not is_missing(text) and not re.fullmatch(r"-?\d+\.\d+", text) for text in texts
    )


def _static(table: Table, ids: Sequence[str], others: Sequence[str]) -> list[str]:
    """Columns that are constant within each series but not over all of them."""
    keys = list(zip(*(table.texts(name) for name in ids), strict=True))
    static = []
    for name in others:
        known: dict[tuple[str, ...], str] = {}
        texts = table.texts(name)
        same = all(known.setdefault(k, v) == v for k, v in zip(keys, texts, strict=True))
        if same and len({*texts}) > 1 and (len({*texts}) < len(known) or table.numbers(name)):
            static.append(name)
    return static


# --- a guess ---------------------------------------------------------------------------------


def recognised(sample: Sample) -> Guess | DataError | None:
    """A reading as series, or the problem of rows with dates and numbers; None for other data."""
    return series_recognised(sample) or problem_of(sample)


def series_recognised(sample: Sample) -> Guess | None:
    """A series, if rows have evenly spaced dates, or those of a panel, and numbers; or if a
    forecasting option is set."""
    if options_given(sample):
        return series_guess(sample)
    data = sample.data
    if data.text_column or data.second or data.sequence or data.separator or data.features:
        return None
    if len(sample.columns) == 1 and not data.label:
        alone = sample.columns[0]
        whole = sample.numeric(alone) and len(sample.rows) >= LEAST_STEPS
        return series_guess(sample) if whole else None
    time = time_of(sample)
    if not time or any(_is_text(sample, name) for name in sample.columns):
        return None
    try:
        reading = Reading.of(Table.of(sample), time)
    except DataError:
        return None
    steps = int(np.diff(reading.axis.bounds).max())
    if reading.axis.spacing is None or steps < LEAST_STEPS:
        return None
    if not all(_is_measure(reading.table, name) for name in listed_names(data.label)):
        return None
    return reading.guess() if reading.targets or data.label else None


def problem_of(sample: Sample) -> DataError | None:
    """The error for rows with dates and numbers that do not form a series; None for other data."""
    if sample.data.text_column or any(_is_text(sample, name) for name in sample.columns):
        return None
    kinds = {kind.kind for kind in sample.kinds.values()}
    if Kind.DATE not in kinds or Kind.NUMBER not in kinds:
        return None
    dates = [kind.name for kind in sample.kinds.values() if kind.kind is Kind.DATE]
    try:
        Reading.of(Table.of(sample), dates[0])
    except DataError as problem:
        return problem
    return None


def _is_measure(table: Table, name: str) -> bool:
    """Whether a named column is one to forecast, not a class or an identifier."""
    numbers = table.numbers(name)
    return numbers is not None and len({*numbers}) > 2 and not is_identifier(name, numbers)


def _is_text(sample: Sample, name: str) -> bool:
    values = [text for text in sample.values(name) if isinstance(text, str) and text.strip()]
    if not values or spellings_of([text for text in values if not is_missing(text)][:20], name):
        return False
    return sum(len(text.split()) for text in values) > WORDS * len(values)


def series_guess(sample: Sample) -> Guess:
    """The inferred keys of [model]. The label of other tasks names the targets here, its group the
    ids."""
    model = sample.settings.get("model", {})
    time = model["time"] if "time" in model else time_of(sample)
    reading = Reading.of(Table.of(sample), time)
    return reading.guess()


@dataclass(frozen=True)
class Reading:
    """The settings inferred from all rows."""

    table: Table
    time: str
    ids: list[str]
    targets: list[str]
    flags: list[str]
    static: list[str]
    axis: Axis
    order: str

    @classmethod
    def of(cls, table: Table, time: str) -> Reading:
        sample = table.sample
        model = sample.settings.get("model", {})
        names = [name.strip() for name in time.split(",") if name.strip()]
        named = [*model.get("targets", []), *listed_names(sample.data.label)]
        groups = [*model.get("ids", []), *listed_names(sample.data.group)]
        require([*names, *groups, *named], list(table.columns), sample.place)
        beside = [*model.get("covariates", []), *model.get("known", []), *model.get("static", [])]
        times, order = None, ""
        ids = list(model.get("ids", [])) or listed_names(sample.data.group)
        if names:
            texts = time_texts(table.columns, names)
            keys = list(zip(*(table.texts(name) for name in ids), strict=True))
            where = table.where if not sample.origin.files else _lines(sample)
            times = time_column(texts, time, where, model.get("dates", "auto"), keys)
            order = times.spelling.order
            if not ids and "ids" not in model:
                ids = ids_of(table, times, [*names, *named, *beside]) or []
        leave = [*names, *ids, *beside, *named]
        targets, flags = measures(table, leave, bool(names))
        static = _static(table, ids, [n for n in table.columns if n not in leave]) if ids else []
        targets, flags = ([n for n in names if n not in static] for names in (targets, flags))
        keys = list(zip(*(table.texts(name) for name in ids), strict=True))
        where = table.where if not sample.origin.files else _lines(sample)
        axis = arranged(len(table), where, times, time, keys, contents=table.contents)
        return cls(table, time, ids, named or targets, flags, static, axis, order)

    def guess(self) -> Guess:
        sample = self.table.sample
        model, label, group = sample.settings.get("model", {}), sample.data.label, sample.data.group
        if not self.targets:
            raise self._nothing()
        tables: dict[str, Any] = {}
        if self.time:
            tables["time"] = self.time
        tables |= {"targets": self.targets}
        if self.ids:
            tables["ids"] = self.ids
        if self.static:
            tables["static"] = self.static
        if self.flags and not label and not {"covariates", "known"} & {*model}:
            tables["covariates"] = self.flags
        if self.order:
            tables["dates"] = self.order
        tables |= self._lengths(int(model.get("horizon", 0)))
        tables = {key: value for key, value in tables.items() if key not in model}
        data = {key: "" for key, column in (("label", label), ("group", group)) if column}
        return Guess(self._why(), data, {"model": tables} if tables else {})

    def _nothing(self) -> DataError:
        sample = self.table.sample
        names = [
            name
            for name in self.table.columns
            if (numbers := self.table.numbers(name)) and is_identifier(name, numbers)
        ]
        hint = f" ({', '.join(names)} only names rows)" if names else ""
        return DataError(
            f"{sample.place}: expected a column of numbers to forecast, got none{hint}; name it "
            f"with {sample.word('target')}. Columns: {', '.join(self.table.columns)}"
        )

    def _why(self) -> str:
        flags = options_given(self.table.sample)
        reasons = [f"{', '.join(flags)} given"] if flags else []
        count, steps = len(self.axis.ids), int(np.diff(self.axis.bounds).max())
        spacing = self.axis.spacing
        counted = spacing is None or (isinstance(spacing.span, float) and spacing.span)
        each = "" if counted else f", one per {spacing}"
        if not self.time and time_of(self.table.sample):
            each = ", no time column: each row is one step"
        many = f"{count:,} series by {', '.join(self.ids)}" if count > 1 else "a series"
        reasons.append(f"{many} of {'up to ' * (count > 1)}{steps:,} steps{each}")
        return "; ".join(reasons)

    def _lengths(self, steps_ahead: int) -> dict[str, Any]:
        """The settings horizon and split: the steps to forecast, and whole horizons for validation
        and test. steps_ahead: the horizon, if it was set."""
        steps = np.diff(self.axis.bounds)
        longest = int(np.median(steps))
        horizon = steps_ahead or self._horizon(longest)
        lengths: dict[str, Any] = {"horizon": horizon}
        data = self.table.sample.data
        alike = int(steps.min()) == int(steps.max())
        few = longest <= (FEW_HORIZONS if not steps_ahead else 1 / VALIDATION) * horizon
        if alike and few and not data.validation and not data.test:
            test = max(1, round(TEST * longest / horizon)) * horizon
            held_out = max(1, round(VALIDATION * longest / horizon)) * horizon
            if longest - test - held_out >= 2 * horizon:
                lengths["split"] = [longest - test - held_out, held_out, test]
        return lengths

    def _horizon(self, steps: int) -> int:
        """The default horizon: a season, if the series has several."""
        spacing = self.axis.spacing
        seasons = [round(season) for season in spacing.seasons] if spacing is not None else []
        season = seasons[0] if seasons else self._season()
        return max(1, min(season if season > 1 else FAR, steps // SHORTEST_PART))

    def _season(self) -> int:
        """The season of the first series."""
        rows = self.axis.rows[self.axis.bounds[0] : self.axis.bounds[1]]
        columns = self.table.columns[self.targets[0]]
        read = [
            number_of(columns[row]) if row >= 0 and columns[row] is not None else None
            for row in rows
        ]
        numbers = [number for number in read if number is not None]
        return season_of(np.array(numbers)[:, None]) if len(numbers) > 3 else 1


def _lines(sample: Sample) -> Any:
    place = sample.rows[0].place
    return lambda row: f"{place.file}, row {row + 1}"
