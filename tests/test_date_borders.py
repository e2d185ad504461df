"""Series at the borders of what a date can be: the year 1, the year 9999, leap days, time zones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ensue import Forecaster
from ensue.data.time.axis import Spacing, spacing_of
from ensue.data.time.dates import spellings_of
from ensue.errors import DataError

LAST = datetime(9999, 12, 31, 23, tzinfo=UTC)
STEPS = 30


def written(first: str, steps: int, column: str = "when", texts: Sequence[str] = ()) -> list[str]:
    """The times after a column of texts that ends with `first`, spelled as it is."""
    (spelling,) = spellings_of([*texts, first], column)
    moments = [spelling.read(text) for text in (*texts, first)]
    spacing = spacing_of([moments])
    assert spacing is not None
    return [spelling.write(spacing.after(moments[-1], k), first) for k in range(1, steps + 1)]


@pytest.mark.parametrize(
    ("spacing", "last"),
    [
        (Spacing(1), LAST.replace(day=1)),
        (Spacing(1, month_end=True), LAST),
        (Spacing(12), LAST.replace(day=1)),
        (Spacing(working=True), LAST),
        (Spacing(span=timedelta(hours=1)), LAST),
        (Spacing(span=timedelta(days=400_000)), LAST - timedelta(days=300_000)),
    ],
    ids=str,
)
def test_no_step_is_after_the_year_9999(spacing: Spacing, last: datetime) -> None:
    with pytest.raises(DataError) as error:
        spacing.after(last, 1)
    assert str(error.value).startswith(f"no date comes 1 × {spacing} after {last}: dates end with")


@pytest.mark.parametrize(
    ("before", "last", "after"),
    [
        ("9999-10", "9999-11", ["9999-12"]),
        ("9999-12-29", "9999-12-30", ["9999-12-31"]),
        ("0001-01-01", "0001-01-02", ["0001-01-03", "0001-01-04"]),
        ("0003-11", "0003-12", ["0004-01", "0004-02"]),
        ("2024-02-27", "2024-02-28", ["2024-02-29", "2024-03-01"]),
        ("2023-02-27", "2023-02-28", ["2023-03-01", "2023-03-02"]),
        ("2023-12-31", "2024-01-31", ["2024-02-29", "2024-03-31"]),
        ("1896-02-29", "1904-02-29", ["1912-02-29"]),
        ("2021-01-31T05:00+01:00", "2021-01-31T06:00+01:00", ["2021-01-31T07:00+01:00"]),
        ("2021-01-31 22:00:00Z", "2021-01-31 23:00:00Z", ["2021-02-01 00:00:00Z"]),
        ("30.12.2021 22:00 +0530", "30.12.2021 23:00 +0530", ["31.12.2021 00:00 +0530"]),
        ("30.12.2021 05:00 -0800", "31.12.2021 05:00 -0800", ["01.01.2022 05:00 -0800"]),
    ],
)
def test_times_after_the_last(before: str, last: str, after: list[str]) -> None:
    assert written(last, len(after), texts=[before]) == after


def test_a_clock_that_no_zone_has() -> None:
    """In UTC there is still such a time, and not where the clocks are ahead."""
    with pytest.raises(DataError, match=r"9999-12-31 19:00 UTC: no clock of the zone \+0500 has"):
        written("31.12.9999 23:00 +0500", 1, texts=["31.12.9999 22:00 +0500"])
    assert spellings_of(["31.12.9999 23:00 -0500"], "when") == []  # in UTC it is another year
    assert spellings_of(["01.01.0001 03:00 +0500"], "when") == []


@pytest.mark.parametrize("family", ["direct", "mixed"])
def test_a_forecast_after_the_year_9999_is_refused(family: str) -> None:
    days = [LAST - timedelta(days=STEPS - k) for k in range(STEPS + 1)]
    rows: list[dict[str, Any]] = [
        {"when": f"{day:%Y-%m-%d}", "sales": k % 4 + 0.1 * k} for k, day in enumerate(days)
    ]
    small = {"horizon": 2, "look_back": 3, "hidden_size": 2, "family": family, "time": "when"}
    model = Forecaster(model={"targets": ["sales"], **small}, train={"epochs": 1}).fit(rows[:-5])
    assert [prediction.time for prediction in model.predict(rows[:-2])] == [
        "9999-12-30",
        "9999-12-31",
    ]
    with pytest.raises(DataError, match="no date comes 1 × day after 9999-12-31"):
        model.predict(rows)
