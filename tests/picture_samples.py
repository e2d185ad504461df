"""A picture of every kind, from small made-up results."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from benchmarks.engine.case import FOUR_SHAPES, full_cases
from benchmarks.engine.picture import draw as draw_bench
from benchmarks.engine.report import Report, Result
from benchmarks.engine.timing import RunTiming
from ensue.cells import LSTM
from ensue.data.tasks.series import air_passengers
from ensue.data.tasks.shapes import shapes
from ensue.diagnose import FreshNetwork, flow_of_cell
from ensue.diagnose.flow_picture import draw as draw_flow
from ensue.layers import Recurrent
from ensue.study.foundations.backprop import picture as draw_depth
from ensue.study.foundations.backprop import through_depth, walk_through
from ensue.study.foundations.backprop_report import network_picture
from ensue.study.foundations.bptt_report import terms_picture, unrolled_picture
from ensue.study.foundations.bptt_walk import TimeWalk
from ensue.study.foundations.expression import examine
from ensue.study.foundations.expression_report import draw as draw_expression
from ensue.study.foundations.lab import (
    RATES,
    Lab,
    Networks,
    choose_family,
    compare_costs,
    compare_estimators,
    compare_learning,
    descend,
    watch_early_stopping,
)
from ensue.study.foundations.lab_report import draw as draw_lab
from ensue.study.foundations.positions import draw as draw_positions
from ensue.study.foundations.positions import positions
from ensue.study.labels.curve import LabelCurve, LabelPoint
from ensue.study.labels.table import draw as draw_labels
from ensue.study.memory.budget import Budget
from ensue.study.memory.study import MemoryReport, Trial
from ensue.study.memory.table import draw as draw_memory
from ensue.study.selection.entries import Entry, Selection, WinnerVerdict
from ensue.tasks.explaining.attribution import (
    Attribution,
    Attributions,
    LinearAttribution,
    Phrase,
)
from ensue.tasks.explaining.heads import HeadMap, HeadMaps
from ensue.tasks.forecast.task import Forecaster
from ensue.tasks.seq2seq.answer import Explained, Gaze
from ensue.tasks.seq2seq.drawing import alignment_picture, gaze_picture

CELLS = ("SimpleRNN", "GRU", "LSTM")
OPPONENTS = {
    "dense": ("torch.nn", "loop", "jax", "onnx"),
    "lengths": ("padded", "packed"),
    "step": ("torch.nn",),
}


def memory_report(*lengths: int) -> MemoryReport:
    """Three cells on two tasks: the first learns nothing, the last learns fastest."""
    report = MemoryReport(Budget(), lengths, finished=True)
    for task, measure, chance, enough in (
        ("adding", "error", 1 / 6, 0.001),
        ("temporal order", "accuracy", 0.25, 0.99),
    ):
        for k, cell in enumerate(CELLS):
            for steps in lengths:
                share = [min(0.12 * k * step / 50, 1.0) for step in range(50, 1001, 50)]
                errors = [chance * (enough / 2 / chance) ** s for s in share]
                scores = [chance + (1 - chance) * s for s in share]
                curve = errors if measure == "error" else scores
                solved = k > 0 and steps < 100 * k + 60
                row = (measure, chance, enough, curve[-1], solved, 1000, 0.02, 4000, 12.0)
                points = tuple(zip(range(50, 1001, 50), curve, strict=True))
                report.trials.append(Trial(task, steps, cell, *row, points))
    return report


def label_curve() -> LabelCurve:
    scores = {100: (0.75, 0.625), 300: (0.8125, 0.75), 1000: (0.875, 0.84375)}
    points = [
        LabelPoint(rows, base, f"{rows}-{base}", score, 3.0)
        for rows, both in scores.items()
        for base, score in zip((True, False), both, strict=True)
    ]
    return LabelCurve("classify", "accuracy", "lm", 400, tuple(points))


def selection() -> Selection:
    rows = (
        Entry("lstm", "lstm", "LSTM 400", 2_000_000, 8_000_000, 88.4, 9, 640.0, 9000.0),
        Entry("gru", "gru", "GRU 400", 1_500_000, 6_000_000, 91.0, 9, 510.0, 9900.0),
        Entry("window", "window", "8 words", 900_000, 3_600_000, 130.2, 12, 75.0, 30000.0),
        Entry("ngram", "ngram", "order 5", None, 41_000_000, 140.5, 0, 2.5),
        Entry("rnn", "rnn", failure="no memory"),
    )
    test = WinnerVerdict("lstm", "perplexity", 900, 87.1, 85.0, 89.4, {"3-grams": 139.0}, 1, False)
    return Selection("language", "perplexity", "0", rows, test)


def bench_report() -> Report:
    """The native engine next to others, faster for most shapes; LSTM has a map of them."""
    here = {"processor": "Imagined CPU: with AVX2", "cores": 2, "threads": 2, "load": 0.1}
    here |= {"torch": "2.13.0", "compiler": "c++: 1", "flags": "-O3"}
    report = Report(here, 15, {"float32": {"1024": 1e11}}, finished=True)
    cases = full_cases(["LSTM", "GRU"])
    cases_left = [c for c in cases if c.kind in ("lengths", "step") or c.shape in FOUR_SHAPES]
    cases_left += [c for c in cases if (c.kind, c.cell, c.batch) == ("dense", "LSTM", 16)]
    for case in (case_left for case_left in cases_left if case_left.kind in OPPONENTS):
        seconds = 1e-4 * case.steps * case.batch * case.hidden**2 / 1e6
        timings = {"native": _timing(seconds)}
        for k, name in enumerate(OPPONENTS[case.kind]):
            ratio = 0.8 * 1.5**k * (case.hidden / 64) ** 0.4
            timings[name] = _timing(ratio * seconds)
        flops = 0 if case.kind == "step" else int(seconds * 1e11 * (0.3 + case.batch / 400))
        report.results.append(Result(case, timings, flops, case.steps * case.batch))
    return report


def _timing(seconds: float) -> RunTiming:
    return RunTiming(seconds, seconds, seconds, seconds, 3, 1)


@cache
def lab() -> Lab:
    return Lab(
        1,
        tuple(descend(rate) for rate in RATES),
        compare_costs(1),
        choose_family(1),
        Networks((3, 5, 10, 20), (0.52, 0.41, 0.22, 0.09), (0.35, 0.12, 0.02, 0.01)),
        compare_estimators(1, draws=500),
        compare_learning(1),
        watch_early_stopping(1),
    )


def letters() -> Explained:
    """A date that is written letter by letter."""
    source, target = tuple("3 May 1997"), tuple("1997-05-03")
    looks = [6, 7, 8, 9, 5, 2, 4, 1, 0, 0]
    rows = [[math.exp(-((k - look) ** 2) / 1.5) for k in range(len(source))] for look in looks]
    weights = tuple(tuple(weight / sum(row) for weight in row) for row in rows)
    return Explained(source, target, (0.99,) * len(target), weights, "1997-05-03")


def words() -> Explained:
    """A sentence, word by word."""
    source, target = ("the", "house", "is", "small"), ("das", "Haus", "ist", "klein")
    weights = ((0.9, 0.1, 0, 0), (0.1, 0.8, 0.1, 0), (0, 0.1, 0.9, 0), (0, 0, 0.2, 0.8))
    return Explained(source, target, (0.9, 0.8, 1, 0.7), weights, "das Haus ist klein")


def gaze() -> Gaze:
    words = ("a", "red", "circle", "above", "a", "blue", "square")
    rows = [np.exp(-0.4 * (np.arange(36) - 5 * k - 2.0) ** 2) + 0.01 for k in range(len(words))]
    weights = tuple(tuple(map(float, row / row.sum())) for row in rows)
    return Gaze(" ".join(words), words, (0.98,) * len(words), (6, 6), weights)


def forecaster(*targets: str) -> tuple[Forecaster, dict[str, Any]]:
    """A fitted model, and the columns that it was fitted to."""
    months: dict[str, Any] = air_passengers()
    passengers = np.array(months["passengers"], float)
    waves = {
        name: (passengers * (1 + 0.2 * k) + 40 * np.sin(np.arange(144) / (2 + k))).tolist()
        for k, name in enumerate(targets)
    }
    columns = {"month": months["month"], **waves}
    settings = {"targets": list(targets), "time": "month", "family": "linear", "look_back": 12}
    return Forecaster(model=settings).fit(columns), columns


def forecast_picture(held_out: bool, *targets: str, clock: str = "") -> str:
    model, columns = forecaster(*targets)
    columns["month"] = [month + clock for month in columns["month"]]
    return model.picture(columns, held_out=held_out)


def attributed() -> Attributions:
    """A class by its network, with a linear model next to it; long enough for a second line."""
    tokens = ("the", "film", "is", "a", "fine", "one", "if", "extraordinarily", "long", "<br>") * 2
    scores = tuple(math.sin(2.1 * k) for k in range(len(tokens)))
    attribution = Attribution("good & fine", None, 0.93, 2.5, scores, -0.1, 0.0004)
    phrases = tuple(Phrase(f"letters ·{word}", 0.1) for word in tokens[:8])
    linear = LinearAttribution("good & fine", None, 1.2, 0.1, tokens[:9], scores[:9], phrases)
    of = "the network alone, not of the whole answer (network and linear model, weights 0.5, 0.5)"
    how = ("integrated", "the zero vectors of padding", "log-odds", of)
    return Attributions(tokens, (12, 8), *how, (attribution,), (linear,), "log-odds", 32)


def attributed_letters() -> Attributions:
    attribution = Attribution("en", None, 0.6, 0.4, (0.1, -0.4, 0.0, 1.0))
    how = ("occlusion", "each token left out", "log-odds", "the whole answer")
    return Attributions(tuple("yes!"), (4,), *how, (attribution,))


def attributed_labels() -> Attributions:
    tokens = ("Ada", "lives", "in", "Turin")
    rows = [tuple(math.cos(k - j) * (-1) ** j for j in range(4)) for k in range(4)]
    answers = tuple(
        Attribution(label, k + 1, 0.9, 2.0, rows[k])
        for k, label in enumerate(("B-PER", "O", "O", "B-LOC"))
    )
    linear = tuple(
        LinearAttribution(answer.answer, answer.step, 1.5, 0.5, tokens, answer.scores)
        for answer in answers
    )
    how = ("gradient", "the slope at each token times its vector", "log-odds", "the network alone")
    return Attributions(tokens, (4,), *how, answers, linear, "score")


def heads() -> HeadMaps:
    """Two layers of an encoder, and a decoder that does not look ahead."""
    words, queries = ("the", "extraordinary", "dog"), ("<s>", "le", "chien")
    even = tuple((1 / 3,) * 3 for _ in words)
    masked = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.2, 0.3, 0.5))
    maps = (
        HeadMap("encoder self-attention", 1, words, words, (even,) * 6, even),
        HeadMap("encoder self-attention", 2, words, words, (even,) * 6, even),
        HeadMap("decoder masked self-attention", 1, queries, tuple("abc"), (masked,), masked),
    )
    return HeadMaps("le chien", "2 × transformer of 16, 6 heads", maps)


PICTURES: dict[str, Callable[[], str]] = {
    "labels": lambda: draw_labels(label_curve()),
    "step": lambda: LSTM().equations(32, 64).svg(),
    "unfolded": lambda: Recurrent("GRU", 2, 3, 2, bidirectional=True).unfolded(4),
    "expression": lambda: draw_expression(examine("sin(x*y) + x/2", {"x": 1.5, "y": 2.0})),
    "backpropagation": lambda: network_picture(walk_through([2, 3, 1], seed=1)),
    "through time": lambda: unrolled_picture(TimeWalk(LSTM(), steps=3, hidden_size=2).walked()),
    "terms": lambda: terms_picture(TimeWalk(LSTM(), steps=3, hidden_size=2).walked(), "U", "U_f"),
    "depth": lambda: draw_depth(through_depth(10)),
    "lab": lambda: draw_lab(lab()),
    "flow": lambda: draw_flow(flow_of_cell("LSTM", FreshNetwork(hidden_size=4, steps=30))),
    "flow without gates": lambda: draw_flow(
        flow_of_cell("SimpleRNN", FreshNetwork(hidden_size=4, steps=30, gain=2, layers=2))
    ),
    "memory": lambda: draw_memory(memory_report(100)),
    "reach": lambda: draw_memory(memory_report(10, 50, 150, 400)),
    "selection": lambda: selection().picture(),
    "bench": lambda: draw_bench(bench_report()),
    "forecast": lambda: forecast_picture(False, "passengers"),
    "held-out": lambda: forecast_picture(True, "passengers", "freight", "mail"),
    "long times": lambda: forecast_picture(True, "passengers", clock="-01 12:00:00"),
    "letters": lambda: alignment_picture(letters()),
    "words": lambda: alignment_picture(words()),
    "positions": lambda: draw_positions(positions(6, 8)),
    "attribution": lambda: attributed().as_svg(),
    "attributed letters": lambda: attributed_letters().as_svg(),
    "attributed labels": lambda: attributed_labels().as_svg(),
    "heads": lambda: heads().as_svg(),
    "gaze": lambda: gaze_picture(gaze(), shapes(1, "test", 1)[0].picture),
}


@cache
def picture(name: str) -> str:
    return PICTURES[name]()
