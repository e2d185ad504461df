"""Data frames: what a model learns from them, and the columns that its answers come back as."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ensue import (
    Captioner,
    Classified,
    Classifier,
    Forecaster,
    ImageModel,
    Labeller,
    LanguageModel,
    Matcher,
    Model,
    Regressor,
    TableModel,
    Translator,
    load,
)
from ensue.data.frames.frame import Frame, plain_values, values_like
from ensue.data.pictures.images import write_image
from ensue.data.tasks.shapes import shapes
from ensue.errors import DataError, EnsueError, OptionError
from ensue.training import Notice

SMALL = {"hidden_size": 4, "embedding_size": 4}
FAST = {"epochs": 1, "rate": 0.02}
WORDS = ["fine", "dull", "long", "loud", "bright", "film"]
Columns = dict[str, list[Any]]

# The libraries, by how they make a frame of columns.
LIBRARIES: dict[str, Callable[[Columns], Any]] = {
    "pandas": pd.DataFrame,
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "pyarrow": pa.table,
}
every_library = pytest.mark.parametrize("library", LIBRARIES)


def columns_of(frame: Any) -> Columns:
    table = Frame.of(frame)
    assert table is not None
    return {name: table.column(name) for name in table.names}


def texts(count: int) -> list[str]:
    draw = random.Random(1)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 5))) for _ in range(count)]


def reviews(count: int = 30) -> Columns:
    reviews_written = texts(count)
    return {
        "id": [f"r{k}" for k in range(count)],
        "review": reviews_written,
        "stars": [1 if "dull" in text else 5 for text in reviews_written],
        "points": [0.5 + len(text) for text in reviews_written],
    }


def houses(count: int = 30) -> Columns:
    draw = random.Random(2)
    area = [round(draw.uniform(50, 200), 1) for _ in range(count)]
    return {
        "area": area,
        "town": [draw.choice(["Delft", "Gouda"]) for _ in area],
        "price": [3 * size + draw.random() for size in area],
    }


def days(count: int = 40) -> Columns:
    first = date(2024, 1, 1).toordinal()
    return {
        "day": [date.fromordinal(first + k) for k in range(count)],
        "sales": [10 + k % 7 for k in range(count)],
        "shop": ["north"] * count,
    }


def classifier(**settings: Any) -> Classifier:
    return Classifier(model={**SMALL, **settings}, train=FAST)


def forecaster(**settings: Any) -> Forecaster:
    return Forecaster(model={"family": "linear", "look_back": 14, "horizon": 3, **settings})


def refused(do: Callable[[], object]) -> str:
    with pytest.raises(EnsueError) as error:
        do()
    return str(error.value)


# --- a frame is learned from as its rows are ---------------------------------------------------


@every_library
def test_a_class_for_each_row(library: str) -> None:
    data = reviews()
    frame = LIBRARIES[library](data)
    model = classifier().fit(frame, text="review", label="stars")
    pairs = list(zip(data["review"], data["stars"], strict=True))
    answers = classifier().fit(pairs).predict(data["review"])
    predictions = model.predict(frame)
    assert type(predictions) is type(frame)
    assert columns_of(predictions) == {
        **data,
        "label": [int(answer.label) for answer in answers],
        "probability": [answer.probabilities[answer.label] for answer in answers],
    }
    assert model.evaluate(frame).scores == model.evaluate(pairs).scores


@every_library
def test_a_label_for_each_token(library: str) -> None:
    tokens = [text.split() for text in texts(30)]
    tags = [["ADJ" if word != "film" else "NOUN" for word in row] for row in tokens]
    frame = LIBRARIES[library]({"tokens": tokens, "tags": tags})
    model = Labeller(model=SMALL, train=FAST).fit(frame)
    answers = (
        Labeller(model=SMALL, train=FAST).fit(list(zip(tokens, tags, strict=True))).predict(tokens)
    )
    columns = columns_of(model.predict(frame))
    assert columns == {
        "tokens": tokens,
        "tags": tags,
        "labels": [list(answer.labels) for answer in answers],
        "probabilities": [list(answer.probabilities) for answer in answers],
    }, "tokens that came as tokens do not come twice"
    assert columns_of(model.predict(frame_of_texts := LIBRARIES[library]({"tokens": texts(9)})))[
        "predicted_tokens"
    ] == [text.split() for text in columns_of(frame_of_texts)["tokens"]]
    assert model.evaluate(frame).steps == sum(map(len, tokens))


@every_library
def test_a_number_for_each_row(library: str) -> None:
    data = reviews()
    frame = LIBRARIES[library](data)
    model = Regressor(model=SMALL, train=FAST).fit(frame, text="review", label="points")
    columns = columns_of(model.predict(frame))
    answers = model.predict(data["review"])
    assert columns["value"] == [answer.value for answer in answers]
    assert columns["low"] == [answer.low for answer in answers]
    assert columns["high"] == [answer.high for answer in answers]
    assert columns["points"] == data["points"]
    assert model.evaluate(frame).rows == 30


@every_library
def test_a_column_from_the_others(library: str) -> None:
    data = houses()
    frame = LIBRARIES[library](data)
    model = TableModel(train=FAST).fit(frame, target="price")
    rows = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
    answers = TableModel(train=FAST).fit(rows, target="price").predict(rows)
    columns = columns_of(model.predict(frame))
    assert columns["value"] == [answer.value for answer in answers]
    assert {name: columns[name] for name in data} == data
    assert model.evaluate(frame).scores == model.evaluate(rows).scores
    questions = LIBRARIES[library]({name: data[name] for name in ("area", "town")})
    assert columns_of(model.predict(questions))["value"] == columns["value"]


@every_library
def test_the_steps_after_a_series(library: str) -> None:
    data = days()
    frame = LIBRARIES[library](data)
    model = forecaster().fit(frame, time="day", target="sales")
    past = {name: data[name] for name in ("day", "sales")}
    answers = forecaster(time="day", targets=["sales"]).fit(past).predict(past)
    predictions = model.predict(frame)
    assert type(predictions) is type(frame)
    assert columns_of(predictions) == {
        "day": [answer.time for answer in answers],
        "sales": [answer.expected["sales"].value for answer in answers],
        "sales_low": [answer.expected["sales"].low for answer in answers],
        "sales_high": [answer.expected["sales"].high for answer in answers],
    }
    assert [str(time)[:10] for time in values(predictions, "day")] == [
        "2024-02-10",
        "2024-02-11",
        "2024-02-12",
    ]
    assert type(values(predictions, "day")[0]) is type(values(frame, "day")[0])
    assert model.evaluate(frame).rows == model.evaluate(past).rows


def values(frame: Any, name: str) -> list[Any]:
    """As the library holds them."""
    table = Frame.of(frame)
    assert table is not None
    return table.kind.values(table.data, name)


@every_library
def test_two_texts_and_translations_and_lines(library: str) -> None:
    data = reviews()
    sides = {"premise": data["review"], "hypothesis": data["review"][::-1], "same": ["y", "n"] * 15}
    frame = LIBRARIES[library](sides)
    matcher = Matcher(model=SMALL, train=FAST).fit(frame)
    assert matcher.roles == {"text": "premise", "second": "hypothesis", "label": "same"}
    pairs = list(zip(sides["premise"], sides["hypothesis"], strict=True))
    labels = [answer.label for answer in matcher.predict(pairs) if isinstance(answer, Classified)]
    assert columns_of(matcher.predict(frame))["label"] == labels

    words = {"en": data["review"], "de": [text.upper() for text in data["review"]]}
    frame = LIBRARIES[library](words)
    translator = Translator(model=SMALL, train=FAST).fit(frame, source="en", target="de")
    columns = columns_of(translator.predict(frame, n_best=2))
    answers = translator.predict(words["en"], n_best=2)
    assert columns["text"] == [answer.text for answer in answers]
    assert columns["score"] == pytest.approx([answer.score for answer in answers])
    assert columns["alternatives"] == [[o.text for o in answer.alternatives] for answer in answers]

    language = LanguageModel(model={"family": "ngram", "order": 2}).fit(frame, text="en")
    totals = [answer.total for answer in language.predict(words["en"])]
    assert columns_of(language.predict(frame))["total"] == totals


def test_pictures_by_the_names_of_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scenes = shapes(1, "train", 12)
    for k, scene in enumerate(scenes):
        write_image(tmp_path / f"{k}.png", scene.picture)
    frame = pd.DataFrame(
        {
            "file": [f"{k}.png" for k in range(12)],
            "kind": ["even", "odd"] * 6,
            "caption": [scene.caption for scene in scenes],
        },
        index=list("abcdefghijkl"),
    )
    settings = {"blocks": "2 max", "hidden": [4]}
    model = ImageModel(model=settings, train={"epochs": 1}).fit(frame, image="file", label="kind")
    predictions = model.predict(frame)
    assert predictions.index.tolist() == list("abcdefghijkl")
    assert predictions["label"].tolist() == [
        answer.label for answer in model.predict(frame["file"])
    ]
    assert ImageModel(model=settings, train={"epochs": 1}).fit(frame).roles == {
        "text": "file",
        "label": "kind",
    }
    assert model.evaluate(frame).rows == 12
    assert "expected one column with the names of pictures, got none; name it with image=" in (
        refused(lambda: ImageModel().fit(frame[["kind"]]))
    )
    captioner = Captioner(
        model={"blocks": "2 max", "hidden_size": 4, "embedding_size": 4}, train={"epochs": 1}
    ).fit(frame, image="file", caption="caption")
    assert captioner.predict(frame)["text"].tolist() == [
        answer.text for answer in captioner.predict(frame["file"])
    ]
    gone = frame.assign(file=["none.png", *frame["file"][1:]])
    assert "iloc:0: file: none.png: no such" in refused(lambda: model.predict(gone))


# --- what comes back ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reviewed() -> Classifier:
    """Fitted on a frame of pandas."""
    return classifier().fit(pd.DataFrame(reviews()), text="review", label="stars")


def test_index_and_columns_are_kept(reviewed: Classifier) -> None:
    data = reviews()
    frame = pd.DataFrame(data, index=pd.Index([f"k{k}" for k in range(30)], name="key"))
    before = frame.copy()
    predictions = reviewed.predict(frame)
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(predictions[list(data)], before)
    assert list(predictions) == [*data, "label", "probability"]
    some = frame.iloc[[7, 3, 20]]
    pd.testing.assert_frame_equal(reviewed.predict(some), predictions.iloc[[7, 3, 20]])


def test_a_column_that_is_there_is_not_lost(reviewed: Classifier) -> None:
    frame = pd.DataFrame({"review": ["dull", "fine"], "label": ["x", "y"], "probability": [1, 2]})
    once = reviewed.predict(frame)
    assert list(once) == [*frame, "predicted_label", "predicted_probability"]
    assert once["label"].tolist() == ["x", "y"]
    twice = reviewed.predict(once)
    assert list(twice) == [*once, "predicted_label_2", "predicted_probability_2"]


def test_labels_have_the_type_that_they_had(reviewed: Classifier, tmp_path: Path) -> None:
    frame = pd.DataFrame(reviews())
    assert reviewed.predict(frame[["review"]])["label"].dtype == "int64"
    reviewed.save(tmp_path / "model")
    assert load(tmp_path / "model").predict(frame[["review"]])["label"].dtype == "int64"
    yes = frame.assign(stars=frame["stars"] > 2)
    truths = classifier().fit(yes, text="review", label="stars").predict(yes)["label"]
    assert truths.dtype == "bool"
    assert reviewed.predict(["dull"])[0].label in ("1", "5"), "in a list they are names"
    of_pairs = classifier().fit([("dull", "1"), ("fine", "5")] * 9)
    labels = of_pairs.predict(frame, text="review")["label"]
    assert set(labels) <= {"1", "5"}


def test_several_labels_come_as_lists() -> None:
    data = {"text": texts(30)}
    frame = pd.DataFrame(
        {**data, "tags": [[word for word in WORDS[:2] if word in text] for text in data["text"]]}
    )
    model = classifier().fit(frame)
    assert model.settings.several, "the data tell"
    predictions = model.predict(frame)
    answers = model.predict(data["text"])
    assert predictions["labels"].tolist() == [list(answer.labels) for answer in answers]
    one = frame.assign(tags=[len(tags) for tags in frame["tags"]])
    assert not model.fit(one).settings.several, "the next fit begins as the model was made"
    assert "for several labels at once" in refused(lambda: classifier(several=False).fit(frame)), (
        "what a person says stands"
    )


def test_a_frame_without_rows_comes_back_with_the_columns_of_answers(reviewed: Classifier) -> None:
    frame = pd.DataFrame(reviews())
    for empty in (frame.iloc[:0], pl.from_pandas(frame).clear()):
        predictions = reviewed.predict(empty)
        assert len(predictions) == 0
        assert list(predictions.columns) == list(reviewed.predict(frame[:2]).columns)
    with pytest.raises(DataError, match="the data frame: expected rows, got none"):
        Classifier().fit(frame.iloc[:0], text="review", label="stars")
    assert reviewed.predict([]) == []


# --- which column is what ------------------------------------------------------------------------


def test_the_roles_are_remembered(reviewed: Classifier, tmp_path: Path) -> None:
    assert reviewed.roles == {"text": "review", "label": "stars"}
    reviewed.save(tmp_path / "model")
    frame = pd.DataFrame(reviews())
    for again in (load(tmp_path / "model"), Classifier.load(tmp_path / "model")):
        assert again.roles == reviewed.roles
        assert again.predict(frame).equals(reviewed.predict(frame))
        assert again.evaluate(frame) == reviewed.evaluate(frame)


def test_roles_that_are_not_told_are_guessed_and_said() -> None:
    messages: list[str] = []
    model = classifier().fit(
        pd.DataFrame(reviews()).drop(columns="points"),
        watchers=[lambda row: messages.append(row.text) if isinstance(row, Notice) else None],
    )
    assert model.roles == {"text": "review", "label": "stars"}
    assert messages[:2] == ["data.text: review", "data.label: stars"]


def test_other_columns_can_be_named_later(reviewed: Classifier) -> None:
    frame = pd.DataFrame(reviews()).rename(columns={"review": "text", "stars": "truth"})
    assert refused(lambda: reviewed.predict(frame)) == (
        "the data frame: unknown column 'review'. Known: id, points, text, truth"
    )
    assert len(reviewed.predict(frame, text="text")) == 30
    assert reviewed.evaluate(frame, text="text", label="truth").rows == 30


@pytest.mark.parametrize("model", [classifier(), LanguageModel(model={"family": "ngram"})])
def test_the_names_of_columns_are_never_answered(model: Model[Any, Any, Any]) -> None:
    rows = texts(30)
    model.fit(
        rows if isinstance(model, LanguageModel) else [(text, len(text) % 2) for text in rows]
    )
    frame = pd.DataFrame(reviews())
    assert refused(lambda: model.predict(frame)) == (
        "predict: which column should be read? Name it with text=. Columns: id, review, "
        "stars, points"
    )
    assert len(model.predict(frame[["review"]])) == 30, "the only one there is"
    assert len(model.predict(frame["review"])) == 30, "one column is a list of inputs"
    assert len(model.predict(pa.array(["dull", "fine"]))) == 2


def test_a_pair_of_columns_for_one_role() -> None:
    frame = pd.DataFrame(reviews())
    assert refused(lambda: Translator().fit(frame, source="review", text="id")) == (
        "source= and text=: they name the same column; give one"
    )
    assert refused(lambda: classifier().fit(frame, text="stars", label="stars")) == (
        "text= and label=: expected two columns, got 'stars' twice"
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": "reveiw"}, "the data frame: unknown column 'reveiw': did you mean 'review'?"),
        ({"txt": "review"}, "unknown role of a column 'txt': did you mean 'text'?"),
        ({"text": 3}, "text=: expected the name of a column, got 3"),
    ],
)
def test_roles_that_cannot_be(columns: dict[str, Any], message: str) -> None:
    assert refused(lambda: classifier().fit(pd.DataFrame(reviews()), **columns)).startswith(message)


def test_what_is_not_told_and_cannot_be_guessed() -> None:
    frame = pd.DataFrame(reviews())
    assert refused(lambda: classifier().fit(frame[["review"]])) == (
        "the data frame: no column looks like a label among review; name it with label="
    )
    assert refused(lambda: Matcher().fit(frame)) == (
        "the data frame: which two columns should be matched? Name them with text= and "
        "second=. Columns: id, review, stars, points"
    )
    assert refused(lambda: Translator().fit(frame)) == (
        "the data frame: which columns are the source and the target? Name them with source= "
        "and target=. Columns: id, review, stars, points"
    )
    message = refused(lambda: TableModel().fit(frame.rename(columns={"stars": "score"})))
    assert message.startswith("the data frame: the columns do not tell which columns are meant:\n")
    assert "\n  fit(…, target='score')\n" in message
    assert refused(lambda: forecaster().fit(frame[["id", "review"]])) == (
        "the data frame: expected a column of numbers to forecast, got none; name it with target=. "
        "Columns: id, review"
    )
    assert refused(lambda: forecaster().fit(pd.DataFrame(days()), target="sales", time="date")) == (
        "the data frame: unknown column 'date'. Known: day, sales, shop"
    )


def test_rows_in_a_list_have_no_columns(reviewed: Classifier) -> None:
    rows = [("dull", "bad"), ("fine", "good")] * 9
    assert refused(lambda: classifier().fit(rows, text="review")) == (
        "text: expected rows by column name, {…} each, a data frame, or the name of a file: other "
        "rows in a list have no columns"
    )
    assert refused(lambda: reviewed.predict(["dull"], text="review")) == (
        "predict: text: inputs in a list have no columns"
    )


# --- values --------------------------------------------------------------------------------------


def test_missing_values_are_named_by_row() -> None:
    frame = pd.DataFrame(reviews(), index=range(100, 130))
    frame.loc[103, "review"] = None
    frame["stars"] = frame["stars"].astype("Int64")
    frame.loc[107, "stars"] = pd.NA
    assert refused(lambda: classifier().fit(frame, text="review", label="stars")) == (
        "2 problems in the data frame\n"
        "  index:103: review: expected a text or a sequence, got nothing\n"
        "  index:107: stars: expected a label, got nothing: fill it in\n"
        "Fill the cells in, or leave the rows out (pandas: frame.dropna(), "
        "polars: frame.drop_nulls())."
    )
    named = frame.set_index("id")
    assert "  iloc:3: review: expected" in refused(lambda: classifier().fit(named, label="stars"))
    sales = pd.DataFrame(days()).astype({"sales": float})
    sales.loc[5, "sales"] = np.nan
    assert len(forecaster().fit(sales, target="sales").predict(sales)) == 3  # read as missing
    prices = pd.DataFrame(houses())
    prices.loc[2, "town"] = None
    assert "index:2: column 'town': expected a value, got ''" in refused(
        lambda: TableModel(model={"missing": "error"}).fit(prices, target="price")
    )
    learned = TableModel(train=FAST).fit(prices, target="price")
    assert len(learned.predict(prices)) == 30


def test_values_of_a_column() -> None:
    moments = [datetime(2024, 1, 1, 6), datetime(2024, 1, 2, 6)]
    assert plain_values([None, float("nan"), pd.NA, pd.NaT, np.float32("nan")]) == [None] * 5
    assert plain_values([np.int8(3), Decimal("1.5"), True, "a"]) == [3, 1.5, True, "a"]
    assert plain_values([("a", "b"), np.array(["c"])]) == [["a", "b"], ["c"]]
    assert plain_values([np.zeros((2, 3))])[0].shape == (2, 3)
    assert plain_values(moments) == ["2024-01-01 06:00:00", "2024-01-02 06:00:00"]
    assert plain_values([datetime(2024, 1, 1), pd.NaT]) == ["2024-01-01", None]
    assert plain_values(pd.Categorical(["u", None]).tolist()) == ["u", None]
    assert plain_values(pd.period_range("2024-01", periods=2, freq="M").tolist()) == [
        "2024-01",
        "2024-02",
    ]
    assert values_like(["7", "8"], [5, 6]) == [7, 8]
    assert values_like(["+1"], []) == ["+1"]


@pytest.mark.parametrize("freq", ["D", "h"])
def test_times_keep_even_steps_where_the_clocks_change(freq: str) -> None:
    zone = "Europe/Berlin"
    moments = pd.date_range("2024-03-29", periods=60, freq=freq, tz=zone).tolist()
    written = [datetime.fromisoformat(moment) for moment in plain_values(moments)]
    assert len({b - a for a, b in pairwise(written)}) == 1
    assert values_like(plain_values(moments), moments) == moments
    assert moments[0].astimezone(UTC) == values_like(plain_values(moments), moments)[0]


def test_columns_that_cannot_be_told_apart() -> None:
    frame = pd.DataFrame([["a", "b"]], columns=["text", "text"])
    assert refused(lambda: classifier().fit(frame)) == (
        "the data frame: its columns cannot be told apart: columns 1 and 2 have the same name "
        "'text'"
    )


def test_a_value_that_no_row_can_hold() -> None:
    frame = pd.DataFrame(reviews()).assign(more=[{"a": 1}] * 30)
    assert classifier().fit(frame, text="review", label="stars").roles["text"] == "review"
    assert "index:0: column 'more': expected text, numbers or lists of them, got an object" in (
        refused(lambda: classifier().fit(frame, text="more", label="stars"))
    )


# --- series --------------------------------------------------------------------------------------


def test_an_index_of_times() -> None:
    sales = pd.DataFrame(days()).assign(day=lambda table: pd.to_datetime(table["day"]))
    plain = forecaster().fit(sales, time="day", target="sales").predict(sales)
    for name in ("day", None):
        frame = sales.set_index("day").rename_axis(name)[["sales"]]
        model = forecaster().fit(frame)
        assert model.settings.time == (name or "index")
        predictions = model.predict(frame)
        assert isinstance(predictions.index, pd.DatetimeIndex)
        assert predictions.index.name == name
        assert predictions["sales"].tolist() == plain["sales"].tolist()
        assert predictions.index.tolist() == plain["day"].tolist()


@pytest.mark.parametrize(
    "times",
    [
        pd.period_range("2020-01", periods=40, freq="M"),
        pd.date_range("2024-01-01", periods=40, freq="h"),
        pd.date_range("2024-01-01", periods=40, freq="D", tz="Europe/Berlin"),
        pd.RangeIndex(1950, 1990),
    ],
    ids=lambda times: str(times.dtype),
)
def test_forecasts_have_times_of_the_same_type(times: pd.Index) -> None:
    frame = pd.DataFrame({"when": times, "sales": [10 + k % 7 for k in range(40)]})
    predictions = forecaster().fit(frame, time="when", target="sales").predict(frame)
    assert predictions["when"].dtype == frame["when"].dtype
    step = frame["when"][39] - frame["when"][38]
    assert predictions["when"][0] == frame["when"][39] + step


def test_several_targets_and_what_is_known_ahead() -> None:
    data = {**days(), "returns": [3 + k % 7 for k in range(40)]}
    frame = pd.DataFrame(data)
    both = forecaster().fit(frame, time="day", target="sales,returns")
    assert list(both.predict(frame)) == [
        *("day", "sales", "sales_low", "sales_high"),
        *("returns", "returns_low", "returns_high"),
    ]
    open_days = frame.assign(open=[k % 7 < 6 for k in range(40)])
    open_days["open"] = open_days["open"].astype(int)
    driven = Forecaster(
        model={"look_back": 7, "horizon": 3, "hidden_size": 4}, train={"epochs": 1}
    ).fit(open_days, time="day", target="sales", known="open")
    assert driven.settings.known == ["open"]
    ahead = pd.DataFrame(
        {"day": [date(2024, 2, 10), date(2024, 2, 11), date(2024, 2, 12)], "open": [1, 1, 0]}
    )
    assert len(driven.predict(open_days, future=ahead)) == 3
    assert driven.backtest(open_days) is not None
    assert driven.picture(open_days, held_out=True).startswith("<svg")
    assert refused(lambda: driven.predict(open_days, time="date", future=ahead)).startswith(
        "the data frame: unknown column 'date'"
    )
    assert refused(lambda: driven.evaluate(open_days, target="returns")) == (
        "targets: this model was fitted with ['sales'], got ['returns']; rename the column"
    )


def test_a_long_table_has_an_answer_for_each_sequence() -> None:
    draw = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "id": np.repeat([f"s{k}" for k in range(20)], 4),
            "x": draw.random(80),
            "y": draw.random(80),
            "kind": np.repeat(["up", "down"] * 10, 4),
        }
    )
    model = classifier().fit(frame, sequence="id", features="x,y", label="kind")
    predictions = model.predict(frame)
    assert predictions["id"].tolist() == [f"s{k}" for k in range(20)]
    vectors = [steps[["x", "y"]].to_numpy() for _, steps in frame.groupby("id", sort=False)]
    assert predictions["label"].tolist() == [answer.label for answer in model.predict(vectors)]


# --- other libraries -----------------------------------------------------------------------------


def test_data_sets_of_hugging_face(reviewed: Classifier) -> None:
    datasets = pytest.importorskip("datasets")
    tokens = [text.split() for text in texts(30)]
    features = datasets.Features(
        {
            "tokens": datasets.List(datasets.Value("string")),
            "tags": datasets.List(datasets.ClassLabel(names=["ADJ", "NOUN"])),
        }
    )
    data = {"tokens": tokens, "tags": [[int(w == "film") for w in row] for row in tokens]}
    tagged = datasets.Dataset.from_dict(data, features=features)
    model = Labeller(model=SMALL, train=FAST).fit(tagged)
    assert set(model.learned.labels.tokens) == {"ADJ", "NOUN"}, "classes by their names"
    predictions = model.predict(tagged)
    assert isinstance(predictions, datasets.Dataset)
    assert predictions.column_names == ["tokens", "tags", "labels", "probabilities"]
    assert predictions["labels"][0] == list(model.predict(tokens[:1])[0].labels)
    plain = datasets.Dataset.from_dict(reviews())
    assert reviewed.predict(plain)["label"][:] == [
        int(answer.label) for answer in reviewed.predict(texts(30))
    ]
    both = datasets.DatasetDict({"train": plain})
    assert refused(lambda: classifier().fit(both)) == (
        'datasets DatasetDict: it holds several data sets; give one, such as data["train"]'
    )
    series = datasets.Dataset.from_dict(days())
    ahead = forecaster().fit(series, time="day", target="sales").predict(series)
    assert ahead["day"][0] == date(2024, 2, 10)


class Streamed:
    """A frame of an unknown library, which can be read as Arrow."""

    def __init__(self, columns: Columns) -> None:
        self._table = pa.table(columns)
        self.schema = self._table.schema

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_any_frame_that_can_be_read_as_arrow(reviewed: Classifier) -> None:
    predictions = reviewed.predict(Streamed(reviews()))  # type: ignore[call-overload]
    assert isinstance(predictions, pa.Table)
    assert predictions.column_names[-2:] == ["label", "probability"]


class Unknown:
    """A frame that cannot be read."""

    columns = ("review", "stars")

    def __getitem__(self, name: str) -> list[str]:
        return [name]


def test_frames_that_cannot_be_read(reviewed: Classifier) -> None:
    assert refused(lambda: reviewed.predict(pl.DataFrame(reviews()).lazy())) == (
        "polars LazyFrame: its rows are not computed yet; pass frame.collect()"
    )
    assert refused(lambda: reviewed.predict(Unknown())) == (
        "test_frames Unknown: unsupported kind of data frame; pass a pandas or polars "
        "frame, an Arrow table, or a list of rows"
    )


# --- files ---------------------------------------------------------------------------------------


def test_files_are_learned_from_as_frames_are(tmp_path: Path) -> None:
    frame = pd.DataFrame(reviews()).astype({"stars": str})
    file = tmp_path / "reviews.csv"
    frame.to_csv(file, index=False)
    of_frame = classifier().fit(frame, frame, text="review", label="stars")
    model = classifier().fit(str(file), file, text="review", label="stars")
    assert model.roles == of_frame.roles
    labels = [answer.label for answer in model.predict(file)]
    assert labels == of_frame.predict(frame)["label"].tolist()
    assert model.predict(str(file)) == model.predict(file)
    assert model.evaluate(file).scores == of_frame.evaluate(frame).scores
    assert refused(lambda: classifier().fit(tmp_path / "none.csv")).startswith(
        f"{tmp_path / 'none.csv'}: no such file"
    )
    assert "reviews.csv:2: unknown column 'reveiw': did you mean 'review'?" in refused(
        lambda: classifier().fit(file, text="reveiw")
    )
    pd.DataFrame(days()).to_csv(tmp_path / "days.csv", index=False)
    series = forecaster().fit(tmp_path / "days.csv", time="day", target="sales")
    assert series.predict(tmp_path / "days.csv")[0].time == "2024-02-10"
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(texts(20)))
    language = LanguageModel(model={"family": "ngram", "order": 2}).fit(lines)
    assert len(language.predict(lines)) == 20


def test_a_faulty_line_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "reviews.csv"
    file.write_text("text,label\nfine,good\ndull\n")
    message = refused(lambda: classifier().fit(file, text="text", label="label"))
    assert "reviews.csv:3: expected 2 columns, found 1" in message
    assert message.endswith("Fix the lines, or leave them out.")


@pytest.mark.parametrize("verb", ["fit", "evaluate"])
def test_a_text_is_no_data(reviewed: Classifier, verb: str) -> None:
    message = refused(
        lambda: getattr(reviewed if verb == "evaluate" else classifier(), verb)("dull")
    )
    assert message == (
        f"{verb}: expected rows, a data frame, or an existing file, got the text 'dull'; pass a "
        "single row as [row]"
    )


# --- fit(X, y) -----------------------------------------------------------------------------------

ROWS = "rows, each with its label: fit(list(zip(X, y)))"
COLUMN = "the labels as a column of the data: fit(frame, {})"


@pytest.mark.parametrize(
    ("kind", "inputs", "labels", "expected"),
    [
        (Classifier, ["a", "b"], ["x", "y"], f"{ROWS}, or ensue.sklearn.SequenceClassifier()"),
        (Classifier, ["a", "b"], np.array([1, 0]), ROWS),
        (Classifier, ["a", "b"], pd.Series([1, 0]), ROWS),
        (Classifier, pd.DataFrame({"a": ["b"]}), pd.Series([1]), COLUMN.format('label="…"')),
        (Regressor, ["a", "b"], [1.5, 2], f"{ROWS}, or ensue.sklearn.SequenceRegressor()"),
        (Labeller, [["a", "b", "c"]], [["X", "Y", "Y"]], f"{ROWS}, or ensue.sklearn.SequenceLab"),
        (Translator, ["a", "b"], ["x", "y"], ROWS),
        (TableModel, np.zeros((3, 2)), [1, 0, 1], COLUMN.format('target="…"')),
        (Forecaster, {"a": [1]}, [1], COLUMN.format('target="…"')),
    ],
)
def test_inputs_and_labels_apart(
    kind: type[Model[Any, Any, Any]], inputs: Any, labels: Any, expected: str
) -> None:
    with pytest.raises(DataError) as error:
        kind().fit(inputs, labels)
    message = "fit: the second argument is validation data, got labels; expected "
    assert str(error.value).startswith(message + expected)


def test_texts_alone_may_be_validation() -> None:
    model = LanguageModel(model={"family": "ngram", "order": 2})
    assert model.fit(texts(20), texts(5)).fitted
    assert model.fit(pd.Series(texts(20)), pd.Series(texts(5))).fitted
    with pytest.raises(OptionError, match="unknown role of a column 'label'"):
        model.fit(texts(20), label="a")
