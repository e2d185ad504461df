"""Hand-made features of tables: their grammar, their numbers against NumPy's, a learned α."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import Ensue, commands_in

from ensue import TableModel
from ensue.errors import ConfigError, DataError, OptionError
from ensue.tasks import TASKS
from ensue.tasks.columns.features import TableFeatures, feature_of_text
from ensue.tasks.supervised.inputs.columns import ColumnsEncoder
from ensue.tasks.supervised.network import SupervisedNetwork

Rows = list[dict[str, Any]]
PEAK = 8.3
FEATURES = [
    "constant",
    "column(area)",
    "polynomial(area, 'living room', degree=3)",
    "month(sold, alpha=5.5)",
    "month(sold, alpha=2, learned=True)",
    "weekday(sold)",
    "column(sold)",
]
FAST = {"epochs": 1}


def distance(month: Any, alpha: float) -> Any:
    apart = np.abs(month - alpha) % 12
    return np.minimum(apart, 12 - apart)


def sales(count: int, seed: int = 0) -> Rows:
    """Highest around August, and at weekends."""
    draw, rows = np.random.default_rng(seed), []
    for _ in range(count):
        day = date(2020, 1, 1) + timedelta(days=int(draw.integers(0, 1400)))
        price = 10 - 1.5 * distance(day.month, PEAK) + 2 * (day.weekday() >= 5)
        area, room = draw.uniform(40, 200), draw.uniform(10, 40)
        noise = 0.1 * draw.normal()
        rows.append(
            {"sold": day, "area": float(area), "living room": float(room), "price": price + noise}
        )
    return rows


ROWS, HELD = sales(120), sales(30, 1)


@pytest.fixture(scope="module")
def fitted() -> TableModel:
    return TableModel(model={"hidden": [4], "features": FEATURES}, train=FAST).fit(
        ROWS, HELD, target="price"
    )


def layer_of(model: TableModel) -> TableFeatures:
    network = model.networks[0]
    assert isinstance(network, SupervisedNetwork)
    assert isinstance(network.reader, ColumnsEncoder)
    assert network.reader.features is not None
    return network.reader.features


def read(model: TableModel, rows: Rows) -> torch.Tensor:
    part = model.reader.questions(rows)
    encoded = model.learned.input.encode(part, model)
    return torch.from_numpy(encoded.values["features"]).double()


def test_features_are_what_numpy_computes(fitted: TableModel) -> None:
    days = [row["sold"] for row in HELD]
    scaled = {}
    for name in ("area", "living room"):
        column = np.array([row[name] for row in ROWS])
        scaled[name] = (np.array([row[name] for row in HELD]) - column.mean()) / column.std()
    a, b = scaled["area"], scaled["living room"]
    ordinal = np.array([row["sold"].toordinal() for row in ROWS])
    months = np.array([day.month for day in days])
    expected = np.stack(
        [
            np.ones(len(HELD)),
            a,
            *(a, b, a * a, a * b, b * b, a**3, a * a * b, a * b * b, b**3),
            distance(months, 5.5),
            distance(months, float(next(iter(layer_of(fitted).learned_months().values())))),
            *(np.array([day.weekday() == k for day in days]) for k in range(7)),
            (np.array([day.toordinal() for day in days]) - ordinal.mean()) / ordinal.std(),
        ],
        1,
    )
    with torch.no_grad():
        values = layer_of(fitted).double()(read(fitted, HELD)).numpy()
    np.testing.assert_allclose(values, expected, atol=2e-5)
    columns = fitted.learned.input.columns
    assert (columns.numbers, columns.categories) == ((), ())  # features read every column


def test_the_gradient_of_alpha_is_that_of_finite_differences(fitted: TableModel) -> None:
    network = fitted.networks[0].double()
    part = fitted.reader.labelled(HELD)
    batch = TASKS["table"].labelled_rows(part, fitted).batch(range(len(part)))
    moved = dict(network.named_parameters())["reader.features.parts.4.moved"]

    def cost(at: float) -> torch.Tensor:
        with torch.no_grad():
            moved.fill_(at)
        return network(batch, {})[0]  # type: ignore[no-any-return]

    start, apart = float(moved.detach()), 1e-6
    (gradient,) = torch.autograd.grad(cost(start), [moved])
    both = [float(cost(start + way * apart).detach()) for way in (1, -1)]
    cost(start)
    assert float(gradient) == pytest.approx((both[0] - both[1]) / (2 * apart), rel=1e-5)
    assert abs(float(gradient)) > 1e-3


def test_alpha_is_learned_and_kept(tmp_path: Path) -> None:
    features = ["month(sold, alpha=6.5, learned=True)", "weekday(sold)"]
    model = TableModel(
        model={"hidden": [], "features": features}, train={"epochs": 60, "rate": 0.03}
    ).fit(sales(300), HELD, target="price")
    (alpha,) = layer_of(model).learned_months().values()
    assert alpha % 6 == pytest.approx(PEAK % 6, abs=0.3)  # half a year away with the sign turned
    assert f"month(sold, alpha=6.5, learned=True): α = {alpha:.2f}" in model.summary()
    model.save(tmp_path / "model")
    loaded = TableModel.load(tmp_path / "model")
    assert loaded.predict(HELD) == model.predict(HELD)
    assert loaded.summary() == model.summary()


def test_dates_are_features_unless_something_else_is_said() -> None:
    def chosen(rows: Rows, **model: Any) -> list[str]:
        fitted_model = TableModel(model={"hidden": [], **model}, train=FAST).fit(
            rows, target="price"
        )
        return fitted_model.settings.features

    usual = ["column(sold)", "month(sold, alpha=1)", "month(sold, alpha=4)", "weekday(sold)"]
    assert chosen(ROWS) == usual
    assert chosen(ROWS, features=["month(sold)"]) == ["month(sold)"]
    assert chosen(ROWS, features=[]) == chosen(ROWS, leave_out=["sold"]) == []
    monthly = [{**row, "sold": row["sold"].strftime("%Y-%m")} for row in ROWS]
    assert chosen(monthly) == usual[:3]
    quarter = [
        {"living room": k, "sold": f"2021-01-{k % 28 + 1:02}", "price": k} for k in range(30)
    ]
    assert chosen(quarter) == ["column(sold)", "weekday(sold)"]
    either = [{**row, "sold": f"0{k % 9 + 1}/0{k % 7 + 1}/2021"} for k, row in enumerate(ROWS)]
    assert chosen(either) == []


def test_two_months_a_quarter_apart_tell_all_apart() -> None:
    months = np.arange(1, 13)
    assert len({*zip(distance(months, 1), distance(months, 4), strict=True)}) == 12


def test_empty_cells_are_marked_and_give_nothing() -> None:
    rows: Rows = [{**row, "sold": "" if k % 5 == 0 else row["sold"]} for k, row in enumerate(ROWS)]
    features = ["month(sold, learned=True)", "weekday(sold)"]
    settings = {"hidden": [4], "features": features}
    with pytest.raises(DataError, match=r"row:1: column 'sold': expected a value, got ''"):
        TableModel(model={**settings, "missing": "error"}, train=FAST).fit(
            rows, HELD, target="price"
        )
    model = TableModel(model=settings, train=FAST).fit(rows, HELD, target="price")
    assert model.settings.missing == "indicator"  # unless set otherwise
    with torch.no_grad():
        values = layer_of(model).double()(read(model, rows[:2]))
    assert values[0].tolist() == [0] * 8 + [1, 1]
    assert values[1, -2:].tolist() == [0, 0]
    assert float(values[1, 1:8].sum()) == 1
    gradients = [
        parameter.grad for parameter in model.networks[0].parameters() if parameter.grad is not None
    ]
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)


def test_the_order_of_day_and_month_is_that_of_training() -> None:
    rows = [{"day": row["sold"].strftime("%d/%m/%Y"), "price": row["price"]} for row in ROWS]
    model = TableModel(model={"hidden": [], "features": ["month(day)"]}, train=FAST)
    model.fit(rows, rows[:20], target="price")
    assert read(model, [{"day": "02/03/2021"}]).tolist() == [[3.0]]
    settings = {"hidden": [], "features": ["month(day, order='month-first')"]}
    swapped = TableModel(model=settings, train=FAST)
    american = [{"day": row["sold"].strftime("%m/%d/%Y"), "price": row["price"]} for row in ROWS]
    swapped.fit(american, american[:20], target="price")
    assert read(swapped, [{"day": "02/03/2021"}]).tolist() == [[2.0]]


def test_dates_in_a_few_spellings_are_the_same_dates() -> None:
    ways = ("%Y-%m-%d", "%d %b %Y", "%d/%m/%Y")
    mixed = [{**row, "sold": row["sold"].strftime(ways[k % 3])} for k, row in enumerate(ROWS)]
    settings = {"hidden": [], "features": ["month(sold)", "weekday(sold)", "column(sold)"]}
    model = TableModel(model=settings, train=FAST).fit(mixed, HELD, target="price")
    assert torch.equal(read(model, mixed), read(model, ROWS))
    months = [row["sold"].month for row in ROWS]
    assert read(model, mixed)[:, 0].tolist() == months


SMALL = [{"day": k % 7, "month": k % 12 + 1, "word": "a", "price": k / 3} for k in range(30)]


def test_numbers_may_be_months_and_days() -> None:
    features = ["month(month, alpha=1)", "weekday(day)"]
    model = TableModel(model={"hidden": [], "features": features}, train=FAST)
    model.fit(SMALL, SMALL[:9], target="price")
    with torch.no_grad():
        values = layer_of(model).double()(read(model, [{"month": 12, "day": 6, "word": "a"}]))
    assert values.tolist() == [[1, 0, 0, 0, 0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("features", "rows", "message"),
    [
        (["month(mouth)"], SMALL, "unknown column 'mouth': did you mean 'month'?"),
        (
            ["month(word)"],
            SMALL,
            "row:1: column 'word': expected a date, or a month 1 … 12, got 'a'",
        ),
        (
            ["weekday(month)"],
            SMALL,
            "row:7: column 'month': expected a date, or a day 0 (Monday) … 6, got '7'",
        ),
        (
            ["month(day)"],
            [{**row, "day": "02/03/2021"} for row in SMALL],
            "'02/03/2021' may be a day and a month or a month and a day: say order='day-first'",
        ),
        (
            ["month(day)"],
            [{**row, "day": ("2021-02-03", "02/03/2021")[k % 2]} for k, row in enumerate(SMALL)],
            "'02/03/2021' may be a day and a month or a month and a day: say order='day-first'",
        ),
        (
            ["month(day)"],
            [{**row, "day": ("13/04/2021", "04/13/2021")[k % 2]} for k, row in enumerate(SMALL)],
            "column 'day': expected dates in one spelling, got",
        ),
        (
            ["month(day)"],
            [{**row, "day": ("2021-02-03", "2021-02-30")[k % 2]} for k, row in enumerate(SMALL)],
            "row:2: column 'day': expected a date, or a month 1 … 12, got '2021-02-30'",
        ),
        (["column(day)"], [{**row, "day": ""} for row in SMALL], "got empty cells"),
    ],
)
def test_wrong_columns_are_told(features: list[str], rows: Rows, message: str) -> None:
    with pytest.raises(DataError) as error:
        TableModel(model={"features": features}, train=FAST).fit(rows, rows[:5], target="price")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mnth(sold)", "unknown feature 'mnth': did you mean 'month'?"),
        ("month", "month: expected one column, got 0 in 'month'"),
        ("constant(sold)", "constant: expected no column, got 1"),
        ("polynomial()", "polynomial: expected columns, got 0"),
        ("polynomial(a, a)", "polynomial: expected each column once, got a, a"),
        ("polynomial(a, degree=0)", "degree: expected a whole number from 1 to 10, got 0"),
        (
            "month(sold, alpha='x')",
            "month: alpha: expected a month, a number from 0 to 13, got 'x'",
        ),
        ("month(sold, aplha=3)", "unknown option of month 'aplha': did you mean 'alpha'?"),
        ("month(3)", "expected the name of a column, in quotes if it is not a word, got 3"),
        ("month(sold) + 1", "expected a feature, such as month(sold)"),
        ("__import__('os').system('x')", "expected a feature, such as month(sold)"),
        ("month(sold, learned=open('x'))", "learned: expected True or False, got open('x')"),
        ("month(" + "a" * 600 + ")", "expected a feature in at most 500 characters"),
    ],
)
def test_wrong_texts_are_told(text: str, message: str) -> None:
    with pytest.raises(OptionError) as error:
        feature_of_text(text)
    assert message in str(error.value)
    with pytest.raises(ConfigError, match=r"model: features: |model\.features: "):
        TableModel(model={"features": [text]})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"features": ["month(a)", "month(a, alpha=6.5)"]},
            "each feature once, got month(a, alpha",
        ),
        ({"features": ["month(a)"], "numeric": ["a"]}, "numeric: expected columns that no feature"),
        (
            {"features": [f"polynomial({', '.join(f'x{k}' for k in range(40))}, degree=8)"]},
            "expected polynomials of at most 1,000 products, got 377,348,993",
        ),
    ],
)
def test_wrong_settings_are_told(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        TableModel(model=settings)
    assert message in str(error.value)


def test_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensue: Ensue = commands_in(tmp_path, capsys, monkeypatch)
    lines = ["sold,area,price", *(f"{r['sold']},{r['area']},{r['price']}" for r in ROWS), ""]
    (tmp_path / "sales.csv").write_text("\n".join(lines))
    words = ["sales.csv", "--task", "table", "--target", "price", "--epochs", "1"]
    features = json.dumps(["month(sold, alpha=5.5, learned=True)"])
    assert ensue("train", *words, "--run", "own", "--set", f"model.features={features}")[0] == 0
    code, out, _ = ensue("predict", "own", "sales.csv", "--json")
    assert code == 0
    assert len(out.splitlines()) == len(ROWS)
    named = f"model:hidden=[2,2],features={features},model:features=[]"
    code, out, err = ensue("select", *words, "--models", named, "--run", "both", "--json")
    assert code == 0, err
    assert {row["name"] for row in json.loads(out)["rows"]} == {
        f"model:hidden=[2,2],features={features}",
        "model:features=[]",
    }
