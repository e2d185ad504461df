"""Series as people have them: spellings of dates, order, gaps, panels, and what files are taken
for."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ensue.data.check import check
from ensue.data.options import ReadOptions
from ensue.data.settings import DataSettings
from ensue.data.time.axis import arranged, spacing_of, time_column
from ensue.data.time.dates import spellings_of
from ensue.errors import DataError
from ensue.tasks import TASKS
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.forecast.tables.reading import part_of_files, part_of_table
from ensue.tasks.forecast.task import TASK
from ensue.tasks.sample import Guess, Sample

DAY = datetime(2021, 1, 31, tzinfo=UTC)
FORMATS = (
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%Y/%m/%d",
    "%d-%b-%Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%d.%m.%y",
    "%Y-%m-%d %H:%M",
    "%m/%d/%Y %I:%M %p",
    "%Y-%m-%dT%H:%M:%S",
)


def where(row: int) -> str:
    return f"row:{row + 1}"


# --- dates -----------------------------------------------------------------------------------


@pytest.mark.parametrize("spelt", FORMATS)
def test_dates_are_read_and_written_back(spelt: str) -> None:
    days = [DAY + timedelta(days=k) for k in range(40)]
    texts = [day.strftime(spelt) for day in days]
    column = time_column(texts, "date", where)
    assert list(column.moments) == days
    for text, day in zip(texts, days, strict=True):
        assert column.spelling.write(day, texts[0]) == text


@pytest.mark.parametrize(
    ("texts", "following"),
    [
        (["2021Q3", "2021Q4"], "2022Q1"),
        (["Q3 2021", "Q4 2021"], "Q1 2022"),
        (["Nov 2021", "Dec 2021"], "Jan 2022"),
        (["11/2021", "12/2021"], "01/2022"),
        (["2021-11", "2021-12"], "2022-01"),
        (["3-11", "3-12"], "4-01"),
        (["2021-01-31", "2021-02-28"], "2021-03-31"),
        (["2021-01-29 10:00", "2021-01-29 11:00"], "2021-01-29 12:00"),
        (["1958", "1959"], "1960"),
    ],
)
def test_the_next_time_is_spelt_as_the_last(texts: list[str], following: str) -> None:
    column = time_column(texts, "t", where)
    axis = arranged(len(texts), where, column, "t")
    assert axis.spacing is not None
    assert column.spelling.write(axis.spacing.after(axis.moments[-1], 1), texts[-1]) == following


def test_numbers_are_times_of_the_clock_only_where_they_are_called_so() -> None:
    seconds = ["1609459200", "1609462800"]
    assert time_column(seconds, "unix_time", where).moments[0] == datetime(2021, 1, 1, tzinfo=UTC)
    assert time_column(seconds, "weight", where).moments[0] == 1609459200.0
    days = ["20210130", "20210131"]
    assert time_column(days, "date", where).moments[1] == DAY
    assert time_column(days, "weight", where).moments[1] == 20210131.0


def test_day_or_month_first_is_decided_by_all_rows_or_asked_for() -> None:
    column = time_column(["01/02/2021", "13/02/2021"], "d", where)
    assert column.spelling.order == "day-first"
    months = [f"01/{month:02}/2021" for month in range(1, 13)] + ["01/01/2022"]
    assert time_column(months, "d", where).spelling.order == "day-first"  # evenly spaced only so
    twelve = [f"01/{month:02}/2021" for month in range(1, 6)]
    with pytest.raises(DataError, match="add --dates day-first or --dates month-first"):
        time_column(twelve, "d", where)
    for order, expected_month in (("day-first", 2), ("month-first", 1)):
        assert time_column(twelve, "d", where, order).moments[1].month == expected_month  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["3.14", "a 2021", "2021-13-01", "32/01/2021", "x", "12:00"])
def test_what_is_no_date_is_none(text: str) -> None:
    spellings = spellings_of([text], "date")
    assert not spellings or spellings[0].name == "number"


def test_spacings() -> None:
    def of(*texts: str) -> Any:
        return spacing_of([[moment for moment in time_column(texts, "t", where).moments if moment]])

    assert str(of("2021-01-01", "2021-01-02", "2021-01-05")) == "day"
    assert str(of("2021-01-01", "2021-04-01", "2021-07-01")) == "3 months"
    working = [date(2021, 1, 4) + timedelta(days=k) for k in range(30)]
    assert str(of(*(str(day) for day in working if day.weekday() < 5))) == "working day"
    assert of("2021-01-01 00:00:01", "2021-01-01 07:13:00", "2021-03-01 07:00:00") is None


# --- steps -------------------------------------------------------------------------------------


def settings_of(**options: Any) -> ForecastSettings:
    settings = {"targets": ["y"], "time": "t", "horizon": 2, "look_back": 4}
    return ForecastSettings.of({**settings, **options}, "model")


def test_rows_are_sorted_and_gaps_are_missing_values() -> None:
    table = {"t": ["2021-01-03", "2021-01-01", "2021-01-06"], "y": [3.0, 1.0, 6.0]}
    part = part_of_table(table, settings_of())
    np.testing.assert_array_equal(part.values[:, 0], [1, np.nan, 3, np.nan, np.nan, 6])
    assert part.series.times[1] == "2021-01-02"
    assert part.notes == (
        "rows sorted by t: 1 out of order",
        "3 steps missing between others (a step is a day): read as missing values",
    )
    assert part.names[0] == "row:2"


def test_copies_of_rows_are_left_out() -> None:
    table = {"t": ["2021-01-01", "2021-01-02", "2021-01-02"], "y": [1.0, 2.0, 2.0]}
    part = part_of_table(table, settings_of())
    np.testing.assert_array_equal(part.values[:, 0], [1, 2])
    assert part.notes == ("1 row left out: duplicates of others",)


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        (["2021-01-01", "02/01/2021", "2021-01-03", "04/01/2021"], "day-first"),
        (["2021-01-01", "01/02/2021", "2021-01-03", "01/04/2021"], "month-first"),
        (["1 Jan 2021", "2021-01-02", "3 Jan 2021", "2021/01/04"], ""),
    ],
)
def test_dates_in_several_spellings_are_read_each_by_its_own(texts: list[str], order: str) -> None:
    part = part_of_table({"t": texts, "y": [1.0, 2.0, 3.0, 4.0]}, settings_of())
    assert [moment.day for moment in part.series.moments] == [1, 2, 3, 4]
    assert {moment.month for moment in part.series.moments} == {1}
    assert part.series.spelling.order == order
    (note,) = part.notes
    assert note.startswith(f"t is written in {len(part.series.spelling.ways)} ways ('2021-01-0")
    assert part.series.spelling.write(part.series.moments[3], texts[1]) != texts[1]


def test_too_many_spellings_are_no_dates() -> None:
    assert spellings_of(["2021-01-01", "1 Jan 2021", "Jan 2021", "2021Q1", "13/01/2021"]) == []


def test_steps_that_are_not_even_count_as_they_come() -> None:
    table = {"t": ["2021-01-01 00:00:01", "2021-01-01 07:13:00", "2021-03-01 07:00:00"]}
    part = part_of_table({**table, "y": [1, 2, 3]}, settings_of())
    assert part.notes == ("t is not evenly spaced: each row is one step",)
    assert part.series.times_after(0, 2) == ["+1", "+2"]


def test_a_panel_has_series_of_any_length_one_after_another() -> None:
    table = {
        "shop": ["b", "a", "a", "b", "a"],
        "t": ["2021-01", "2021-05", "2021-06", "2021-02", "2021-08"],
        "y": [1, 5, None, 2, 8],
        "place": ["north", "south", "south", "north", ""],
    }
    part = part_of_table(table, settings_of(ids=["shop"], static=["place"]))
    series = part.series
    assert series.ids == (("b",), ("a",))
    assert series.bounds.tolist() == [0, 2, 6]
    np.testing.assert_array_equal(series.values[:, 0], [1, 2, 5, np.nan, np.nan, 8])
    assert series.static == (("north",), ("south",))
    assert series.times_after(1, 2) == ["2021-09", "2021-10"]
    table["place"][1] = "east"
    with pytest.raises(DataError, match="a static column is the same at all steps"):
        part_of_table(table, settings_of(ids=["shop"], static=["place"]))


def test_a_time_may_stand_in_several_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = [f"{k},2021,1,{1 + k // 24},{k % 24},{k % 7}" for k in range(30)]
    path.write_text("\n".join(["No,year,month,day,hour,y", *rows]), "utf-8")
    settings = settings_of(time="year,month,day,hour")
    assert part_of_files([path], settings).series.times[25] == "2021-01-02 01:00"
    guess = taken_for(path)[1]
    assert guess.tables["model"]["time"] == "year,month,day,hour"
    assert guess.tables["model"]["targets"] == ["y"]


# --- what files are taken for --------------------------------------------------------------------


def taken_for(path: Path, **data: Any) -> tuple[str, Guess]:
    settings = {"model": data.pop("model", {})}
    sample = Sample(DataSettings.of({"train": [str(path)], **data}, "data"), settings)
    for name in TASKS:
        guess = sample.recognised_by(TASKS[name].recognise)
        if guess is not None:
            return name, guess
    raise AssertionError("nothing")


def days(count: int) -> list[str]:
    return [str(date(2021, 1, 1) + timedelta(days=k)) for k in range(count)]


def written(path: Path, columns: dict[str, list[Any]]) -> Path:
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *rows]) + "\n", "utf-8")
    return path


rng = np.random.default_rng(4)


def test_a_date_and_numbers_are_a_series(tmp_path: Path) -> None:
    sales = rng.normal(10, 1, (90, 2)).round(2)
    columns = {"date": days(90), "north": sales[:, 0], "south": sales[:, 1], "promo": [0, 1] * 45}
    task, guess = taken_for(written(tmp_path / "sales_wide.csv", columns))
    assert task == "forecast"
    tables = guess.tables["model"]
    assert (tables["time"], tables["targets"]) == ("date", ["north", "south"])
    assert tables["covariates"] == ["promo"]  # no class to be predicted from a date
    assert tables["horizon"] == 7


def test_seven_numeric_series_are_all_forecast(tmp_path: Path) -> None:
    names = [f"v{k}" for k in range(7)]
    columns = {"date": [f"{1990 + k // 12}-{k % 12 + 1:02}" for k in range(60)]}
    columns |= {name: rng.normal(0, 1, 60).round(3).tolist() for name in names}
    task, guess = taken_for(written(tmp_path / "seven.csv", columns))
    assert (task, guess.tables["model"]["targets"]) == ("forecast", names)
    assert guess.tables["model"]["horizon"] == 10  # a year is more than a sixth of it


def test_identifiers_are_never_forecast(tmp_path: Path) -> None:
    texts = [f"the printer number {k} does not print any more" for k in range(60)]
    kinds = ["hardware", "software"] * 30
    columns = {"ticket_id": list(range(100, 160)), "created": days(60), "text": texts}
    path = written(tmp_path / "tickets.csv", {**columns, "kind": kinds})
    assert taken_for(path)[0] == "classify"
    with pytest.raises(DataError, match=r"got none \(ticket_id only names rows\); name it with"):
        taken_for(path, model={"horizon": 5})


def test_several_values_of_a_key_in_the_order_of_time_are_a_panel(tmp_path: Path) -> None:
    rows = [(shop, day) for shop in "abc" for day in days(40)]
    columns = {
        "shop": [shop for shop, _ in rows],
        "day": [f"{day[5:7]}/{day[8:]}/{day[:4]}" for _, day in rows],
        "sales": rng.normal(10, 1, 120).round(2).tolist(),
        "region": ["north" if shop == "a" else "south" for shop, _ in rows],
    }
    path = written(tmp_path / "panel.csv", columns)
    task, guess = taken_for(path)
    tables = guess.tables["model"]
    assert task == "forecast"
    assert (tables["ids"], tables["static"], tables["targets"]) == (["shop"], ["region"], ["sales"])
    assert tables["dates"] == "month-first"
    named = taken_for(path, group="shop", label="sales")[1]
    assert named.tables["model"]["ids"] == ["shop"]
    assert named.data == {"label": "", "group": ""}


def test_a_table_whose_dates_are_not_even_is_no_series(tmp_path: Path) -> None:
    drawn = sorted(rng.choice(4000, 60, replace=False))
    signed = [str(date(2010, 1, 1) + timedelta(days=int(k))) for k in drawn]
    columns = {"signed": signed, "age": rng.integers(20, 80, 60), "churn": ["yes", "no"] * 30}
    path = written(tmp_path / "churn.csv", columns)
    assert TASK.recognise(Sample(DataSettings.of({"train": [str(path)]}, "data"))) is None


def test_an_empty_time_is_taken_at_its_word(tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv", {"date": days(30), "y": rng.normal(0, 1, 30).round(3)})
    guess = taken_for(path, model={"time": "", "horizon": 2})[1]
    assert "time" not in guess.tables["model"]
    assert "each row is one step" in guess.why


def test_a_check_knows_series(tmp_path: Path) -> None:
    table = {"date": days(40), "y": rng.normal(0, 1, 40).round(3).tolist()}
    table["y"][7] = ""
    steps = [k for k in range(40) if k not in (3, 20, 21)]
    short = {name: [values[k] for k in reversed(steps)] for name, values in table.items()}
    report = check({"train": [written(tmp_path / "x.csv", short)]}, ReadOptions())
    assert report.warnings == []
    assert report.as_json()["series"] == [
        "date: a series of 40 steps, one per day, from 2021-01-01 to 2021-02-09",
        "rows sorted by date: 36 out of order",
        "3 steps missing between others (a step is a day): read as missing values",
        "1 empty cell in y",
    ]
    twice = {name: [*values, values[-1]] for name, values in table.items()}
    report = check({"train": [written(tmp_path / "y.csv", twice)]}, ReadOptions())
    assert any("comes twice" in finding.message for finding in report.warnings)


def test_a_class_beside_a_date_is_not_forecast(tmp_path: Path) -> None:
    columns = {"day": days(60), "heat": rng.normal(0, 1, 60).round(2), "rain": [0, 1] * 30}
    path = written(tmp_path / "rain.csv", columns)
    sample = Sample(DataSettings.of({"train": [str(path)], "label": "rain"}, "data"))
    assert TASK.recognise(sample) is None
