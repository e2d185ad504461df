"""What notebooks show of answers, evaluations, models and forecasts: whole, safe, and true."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import FOREIGN, FOREIGN_SHOWN, check_page, words

from ensue import Classified, Classifier, Forecaster, Labelled
from ensue.cells import Cell as AnyCell
from ensue.drawing.document import (
    Bar,
    Cell,
    Curve,
    Document,
    HeatMap,
    Image,
    Piece,
    Range,
    Table,
    Words,
    as_block,
    as_text,
)
from ensue.drawing.html import bar, heat_map, on_page, span, sparkline
from ensue.drawing.layout import figures
from ensue.equations import Matrix, tanh
from ensue.metrics.spans import Span
from ensue.tasks.answers import Answers
from ensue.tasks.evaluation.bootstrap import Interval
from ensue.tasks.evaluation.report import ClassRow, Error, Evaluation
from ensue.tasks.forecast.answer import Before, Expected, ForecastStep, SeriesForecast
from ensue.tasks.language.surprisal import Scored
from ensue.tasks.model_page import input_cell
from ensue.tasks.seq2seq.answer import Alternative, Captioned, Translated
from ensue.tasks.seq2seq.evaluation import Bucket, PairEvaluation
from ensue.tasks.targets.target import Estimated

# --- tables and small pictures ---------------------------------------------------------------


def block(*rows: Sequence[Cell], **how: Any) -> str:
    return as_block(Document(FOREIGN, FOREIGN, [Table(rows, **how)]))


def test_a_long_table_is_cut_and_says_so() -> None:
    rows = [[k] for k in range(1000, 1030)]
    for printer in (as_block, as_text):
        printed = printer(Document("", "", [Table(rows, ["number"], most=20)]))
        assert "1,019" in printed
        assert "1,020" not in printed
        assert "and 10 more" in printed
        assert "more" not in printer(Document("", "", [Table(rows)]))


CELLS: list[Cell] = [
    FOREIGN,
    Bar(0.5, FOREIGN),
    Range(0.5, 0.4, 0.6, (0.0, 1.0), FOREIGN),
    Curve([1.0, 2.0], 1, FOREIGN),
    Image(b"", FOREIGN),
    Words([Piece(FOREIGN), Piece(FOREIGN, 0.5, 11, FOREIGN, FOREIGN)]),
    HeatMap([FOREIGN], [FOREIGN], [[0.5]], [[FOREIGN]]),
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: type(cell).__name__)
def test_every_cell_is_escaped(cell: Cell) -> None:
    check_page(block(["", cell], head=(FOREIGN, "b")))


def test_long_cells_are_cut() -> None:
    html = block(["x" * 1000])
    assert "x" * 199 in html
    assert "x" * 200 not in html


def test_numbers_stand_at_the_right_of_columns_of_words() -> None:
    html = block(["a", "b", 5, Bar(0.5, "0.5")], left=4)
    sides = re.findall(r"<td style='[^']*text-align:(\w+)", html)
    assert sides == ["left", "left", "right", "right"]


def test_columns_of_pictures_alone_are_not_in_a_terminal() -> None:
    rows = [["a", Curve([1.0, 2.0], 1, ""), "2"]]
    assert as_text(Document("", "", [Table(rows)])) == "a  2"


def test_a_notebook_does_not_typeset_dollar_signs() -> None:
    assert "mathjax_ignore" in block(["from $5 to $6"])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.875, "0.8750"),
        (1.0, "1.0000"),
        (0.0, "0.0000"),
        (35.2, "35.20"),
        (-2.0, "-2.000"),
        (1734.2, "1,734"),
        (123456.0, "123,456"),
        (2e-7, "2e-07"),
        (1e12, "1e+12"),
        (math.inf, "inf"),
        (math.nan, "nan"),
    ],
)
def test_numbers_have_about_four_figures(value: float, expected: str) -> None:
    assert figures(value) == expected


def widths(html: str) -> list[float]:
    return [float(width) for width in re.findall(r'<rect [^>]*width="([^"]*)"', html)]


def test_a_bar_is_as_long_as_its_share() -> None:
    whole, part = widths(bar(1.5, 6.0, (1.0, 2.0)))
    assert part == pytest.approx(whole / 4)
    for value in (math.nan, math.inf, -1.0, 7.0):
        assert bar(value, 6.0) == ""
    assert bar(0.0, 0.0) == ""


def test_a_sparkline_has_a_point_for_each_number() -> None:
    html = sparkline([3.0, math.nan, 2.0, 1.0], marked=3)
    check_page(html)
    assert html.count("L") == 2
    assert html.count("<circle") == 1
    assert sparkline([1.0]) == ""
    check_page(sparkline([2.0, 2.0]))


def test_an_interval_stands_on_the_scale() -> None:
    left, right = (
        float(re.findall(r'cx="([^"]*)"', span(value, value - 1, value + 1, (0.0, 10.0)))[0])
        for value in (2.0, 8.0)
    )
    assert left < right
    assert span(math.nan, 0, 1, (0, 1)) == span(1, 1, 1, (1, 1)) == ""


def test_a_heat_map_is_stronger_where_the_share_is_greater() -> None:
    html = heat_map(["a", FOREIGN], ["c", "d"], [[0.0, 0.5], [1.0, 2.0]], [["1", "2"], ["3", "4"]])
    check_page(html)
    strengths = [int(percent) for percent in re.findall(r"background:[^;\"]* (\d+)%", html)]
    assert strengths == sorted(strengths)
    assert strengths[2] == strengths[3] > strengths[1] > strengths[0] > 0


def test_a_sign_on_a_line_hides_the_line() -> None:
    class Difference(AnyCell):
        W, U = Matrix("x"), Matrix("h")

        def step(self, x: Any, h: Any) -> Any:
            return tanh(self.W @ x) - self.U @ h

    svg = on_page(Difference().equations().svg())
    (ground,) = re.findall(r'<rect [^>]*fill="([^"]*)" stroke="none"', svg)
    assert ground.startswith("#")  # opaque


# --- answers ---------------------------------------------------------------------------------

ALTERNATIVES = (Alternative("un", -1.0), Alternative(FOREIGN, -2.0))
WEIGHTS = ((0.9, 0.1), (0.2, 0.8))
ANSWERS: list[Any] = [
    Classified(FOREIGN, (FOREIGN, "b"), {FOREIGN: 0.7, "b": 0.3}),
    Classified("", (), {"a": 0.1}),
    Estimated(2.0, 1.0, 3.0, 0.9),
    Labelled(("a", FOREIGN), (FOREIGN, "O"), (0.9, 0.8), None),
    Labelled(("a", FOREIGN), ("B-X", "I-X"), (0.9, 0.8), (Span(1, 2, FOREIGN),)),
    Labelled((), ("up", "down"), (0.9, 0.8), None),
    Translated(FOREIGN, -1.0, ("un", FOREIGN), (FOREIGN, "b"), ALTERNATIVES, WEIGHTS),
    Translated("", -1.0, (), ("b",)),
    Captioned(FOREIGN, -1.0, (FOREIGN,), ALTERNATIVES),
    Scored((FOREIGN, "</s>"), (3.0, math.inf)),
    ForecastStep(FOREIGN, {FOREIGN: Expected(1.0, 0.0, 2.0)}),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_an_answer_is_shown_escaped_alone_and_among_others(answer: Any) -> None:
    check_page(answer._repr_html_())
    page_words = words(check_page(Answers([answer, answer], [FOREIGN, FOREIGN])._repr_html_()))
    assert page_words.startswith("2 answers")


def test_every_class_has_its_probability() -> None:
    answer = Classified("a", ("a",), {"a": 0.75, "b": 0.25})
    page_words = words(check_page(answer._repr_html_()))
    assert "a 0.7500" in page_words
    assert "b 0.2500" in page_words


def test_spans_are_marked_with_their_words_together() -> None:
    spans = (Span(0, 2, "PER"), Span(3, 4, "LOC"))
    answer = Labelled(
        ("Ann", "Lee", "sees", "Rome"), ("B-PER", "I-PER", "O", "B-LOC"), (1.0,) * 4, spans
    )
    html = answer._repr_html_()
    assert re.findall(r"<span [^>]*>([^<]*)<small", html) == ["Ann Lee", "Rome"]
    hues = re.findall(r"background:([^;]*);border-radius:.3em", html)
    assert hues[0] != hues[1]
    assert "sees" in words(check_page(html))


def test_an_alignment_has_a_square_for_each_pair() -> None:
    answer = Translated("le chat", -1.0, ("le", "chat"), ("the", "cat"), (), WEIGHTS)
    html = answer._repr_html_()
    assert re.findall(r'title="([^"]*)"', html) == [
        "le, the: 0.9",
        "le, cat: 0.1",
        "chat, the: 0.2",
        "chat, cat: 0.8",
    ]


def test_a_surprise_is_stronger_the_less_it_was_expected() -> None:
    html = Scored(("a", "b", "c"), (0.5, 4.0, math.inf))._repr_html_()
    strengths = [
        int(percent) for percent in re.findall(r"(\d+)%, transparent\);border-radius", html)
    ]
    assert strengths == sorted(set(strengths))


@dataclass(frozen=True)
class Odd:
    word: str
    probability: float


def test_answers_of_a_task_of_ones_own_show_their_fields() -> None:
    page_words = words(check_page(Answers([Odd("duck", 0.9)], ["plum duck"])._repr_html_()))
    assert page_words == "1 answer input word probability plum duck duck 0.9000"
    mixed = Answers([Odd("duck", 0.9), Classified("a", ("a",), {"a": 1.0})])
    assert "duck" in words(check_page(mixed._repr_html_()))


def test_answers_are_a_list() -> None:
    plain = [Odd("a", 0.3), Odd("b", 0.9), Odd("c", 0.6)]
    answers = Answers(plain, ["x", "y", "z"])
    assert answers == plain
    assert isinstance(answers, list)
    assert json.loads(json.dumps(answers, default=asdict)) == [asdict(answer) for answer in plain]
    assert answers[1] is plain[1]
    assert answers[::-1] == plain[::-1]
    assert type(answers[:2]) is Answers
    assert words(check_page(Answers()._repr_html_())) == "0 answers"


def inputs_shown(answers: Answers[Odd]) -> list[str]:
    tree = check_page(answers._repr_html_())
    return [row[0].text or "" for row in tree.findall(".//tbody/tr")]


def test_every_answer_keeps_its_input() -> None:
    answers = Answers([Odd("a", 0.3), Odd("b", 0.9), Odd("c", 0.6)], ["x", "y", "z"])
    assert inputs_shown(answers[1:]) == ["y", "z"]
    for copied in (pickle.loads(pickle.dumps(answers)), copy.deepcopy(answers)):
        copied.sort(key=lambda answer: answer.probability)
        assert inputs_shown(copied) == ["x", "z", "y"]
    answers.append(Odd("d", 0.1))
    assert inputs_shown(answers) == ["x", "y", "z", ""]


def test_answers_that_come_in_pieces_are_one_list() -> None:
    pieces = [Odd("a", 0.3)], [Odd("b", 0.9), Odd("c", 0.6)]
    whole = Answers[Odd]().and_then(pieces[0], "x").and_then(pieces[1], ("y", "z"))
    assert whole == [*pieces[0], *pieces[1]]
    assert inputs_shown(whole) == ["x", "y", "z"]


def test_many_answers_are_cut() -> None:
    html = Answers([Odd("a", 0.5)] * 1234)._repr_html_()
    assert "1,234 answers" in html
    assert "and 1,214 more" in html


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a  text", "a text"),
        (["a", "b"], "a b"),
        (("one text", "another"), "one text | another"),
        ({"area": 40, "place": "b"}, "area 40, place b"),
        (np.zeros((5, 2), np.float32), "5 steps of 2 numbers"),
        (np.zeros((2, 3, 4), np.uint8), "numbers of shape 2 × 3 × 4"),
        (7, "7"),
    ],
)
def test_an_input_is_shown_in_a_few_words(value: object, expected: str) -> None:
    assert input_cell(value) == expected


@pytest.mark.parametrize("shape", [(4, 5), (1, 4, 5), (3, 900, 40)])
def test_a_picture_is_shown_as_one(shape: tuple[int, ...]) -> None:
    html = block([input_cell(np.full(shape, 128, np.uint8))])
    assert "data:image/png" in html
    check_page(html)
    assert len(html) < 2000


# --- evaluations -----------------------------------------------------------------------------


def evaluation(**changed: Any) -> Evaluation:
    names = ("a", FOREIGN)
    facts: dict[str, Any] = {
        "rows": 10,
        "steps": 30,
        "scores": {"accuracy": Interval(0.7, 0.5, 0.9), "f1": Interval(0.6, 0.4, 0.8)},
        "others": {"log loss": 0.5},
        "baselines": {"majority": 0.5, FOREIGN: 0.95},
        "classes": [ClassRow(name, 0.5, 0.6, 0.7, 5) for name in names],
        "confusion": [[4, 1], [2, 3]],
        "worst": [Error("row:1", FOREIGN, "a", FOREIGN, 0.9)],
        "unknown": 2,
        "notes": [FOREIGN],
    }
    return Evaluation(**(facts | changed))


def test_an_evaluation_is_shown_escaped() -> None:
    assert str(evaluation()) == evaluation().as_text()
    page_words = words(check_page(evaluation()._repr_html_()))
    assert page_words.count(FOREIGN_SHOWN) >= 6
    for text in (
        "10 rows, 30 steps",
        "2 rows have labels",
        "The model does not beat",
        "0.5000 … 0.9000",
    ):
        assert text in page_words


def test_an_evaluation_of_many_classes_names_the_most_confused() -> None:
    names = [f"class {k}" for k in range(40)]
    counts = [[int(i == j or (i, j) == (3, 5)) for j in range(40)] for i in range(40)]
    many = evaluation(classes=[ClassRow(n, 0.5, 0.5, 0.5, 1) for n in names], confusion=counts)
    page_words = words(check_page(many._repr_html_()))
    assert "1 class 3 → class 5" in page_words
    assert "and 10 more" in page_words


def test_scores_that_cannot_be_drawn_are_written() -> None:
    odd = {"r2": Interval(-0.3, -0.5, 0.1), "perplexity": Interval(math.inf, 3.0, math.inf)}
    html = evaluation(scores=odd, baselines={}, classes=[], confusion=[], worst=[])._repr_html_()
    page_words = words(check_page(html))
    assert "-0.3000" in page_words
    assert "inf" in page_words
    assert "<svg" not in html


def test_surprises_have_no_prediction() -> None:
    surprised = evaluation(worst=[Error("row:1", "the dog", "flies", "", 1e-5)])
    assert "greatest surprises" in surprised._repr_html_()
    page_words = words(
        check_page(evaluation(classes=[], confusion=[], worst=surprised.worst).as_html())
    )
    assert "predicted" not in page_words
    assert "row:1 the dog flies 1.0e-05" in page_words


def test_an_evaluation_of_texts_has_its_buckets() -> None:
    facts = vars(evaluation(classes=[], confusion=[]))
    facts["worst"] = [Error("row:1", "the dog", "le chien", "", 0.1)]
    evaluation_of_pairs = PairEvaluation(**facts, buckets=[Bucket("1–5", 7, 0.25)])
    page_words = words(check_page(evaluation_of_pairs._repr_html_()))
    assert "1–5 7 0.2500" in page_words
    assert "worst answers" in page_words
    assert "row:1 (0.10) source the dog expected le chien got" in page_words


# --- forecasts -------------------------------------------------------------------------------


def steps(values: Sequence[float]) -> list[ForecastStep]:
    return [
        ForecastStep(f"+{k}", {"sales": Expected(v, v - 1, v + 1)}) for k, v in enumerate(values, 1)
    ]


def points(html: str) -> list[int]:
    """How many points each line of the chart has: the rules first, then history and forecast."""
    return [path.count("L") + 1 for path in re.findall(r'<path d="M([^"Z]*)"', html)]


def test_a_forecast_is_drawn_after_the_end_of_its_series() -> None:
    forecast = SeriesForecast(steps([3, 4, 5]), Before(["a", "b"], {"sales": [1.0, 2.0]}))
    html = forecast._repr_html_()
    assert words(check_page(html)).startswith("sales: 3 steps ahead")
    assert points(html)[-2:] == [2, 4]  # the forecast begins at the last step that is known


def test_a_part_of_a_forecast_is_not_drawn_where_it_does_not_belong() -> None:
    forecast = SeriesForecast(steps([3, 4, 5]), Before(["a", "b"], {"sales": [1.0, 2.0]}))
    assert type(forecast[1:]) is SeriesForecast
    assert points(forecast[:2]._repr_html_())[-2:] == [2, 3]
    assert points(forecast[1:]._repr_html_())[-1] == 2
    assert "a</text>" not in forecast[1:]._repr_html_()
    assert words(check_page(forecast[:0]._repr_html_())) == "0 steps ahead"


def test_a_forecast_of_no_numbers_is_still_a_table() -> None:
    forecast = SeriesForecast(steps([math.nan]), Before())
    assert "<table" in forecast._repr_html_()
    check_page(forecast._repr_html_())


# --- models ----------------------------------------------------------------------------------

TINY = {"hidden_size": 4, "embedding_size": 4}


def test_a_model_shows_what_was_set_and_how_its_training_went(tmp_path: Path) -> None:
    rows = [("a fine film", FOREIGN), ("so dull", "bad")] * 6
    model = Classifier(model=TINY, train={"epochs": 3}, members=2)
    page_words = words(check_page(model._repr_html_()))
    assert "Not fitted yet." in page_words
    assert re.findall(r"\w+\.\w+=\w+", page_words) == [
        "model.hidden_size=4",
        "model.embedding_size=4",
        "train.epochs=3",
    ]
    html = model.fit(rows, rows)._repr_html_()
    page_words = words(check_page(html))
    assert FOREIGN_SHOWN in page_words
    assert "validation accuracy, network 2" in page_words
    assert re.findall(r'<path d="M([^"]*)"', html)[0].count("L") == 2  # three validations
    model.save(tmp_path / "model")
    loaded = Classifier.load(tmp_path / "model")._repr_html_()
    check_page(loaded)
    assert "<svg" not in loaded


def test_a_forecaster_gives_the_steps_with_the_end_of_the_series(tmp_path: Path) -> None:
    months = [f"{1990 + k // 12}-{1 + k % 12:02}" for k in range(60)]
    columns = {"month": months, "sales": [math.sin(k) for k in range(60)]}
    settings = {"targets": ["sales"], "time": "month", "horizon": 3, "look_back": 4}
    model = Forecaster(model={**settings, "family": "linear"}).fit(columns)
    answers = model.predict(columns)
    page_words = words(check_page(answers._repr_html_()))
    assert page_words.startswith("sales: 3 steps ahead")
    assert all(step.time in page_words for step in answers)
    assert "1994-12" in page_words
    lines = [f"{month},{sales}" for month, sales in zip(*columns.values(), strict=True)]
    (tmp_path / "sales.csv").write_text("\n".join(["month,sales", *lines]))
    from_file = model.predict(str(tmp_path / "sales.csv"))
    assert from_file == answers
    assert "1994-12" in words(check_page(from_file._repr_html_()))


def test_answers_to_a_file_stand_beside_its_rows(tmp_path: Path) -> None:
    rows = [("a fine film", "good"), ("so dull", "bad")] * 6
    model = Classifier(model=TINY, train={"epochs": 1}).fit(rows, rows)
    (tmp_path / "asked.csv").write_text("text\nwhat a film\n")
    assert "what a film" in words(
        check_page(model.predict(str(tmp_path / "asked.csv"))._repr_html_())
    )
