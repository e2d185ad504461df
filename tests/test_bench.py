"""`ensue bench`: what it compares is the same work, and what it says follows from its numbers.

No test here asserts a time: they run the whole way on tiny shapes, or on made-up timings.
"""

import io
import json
import math
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from parity import NO_NATIVE, needs_native
from random_cells import random_cells
from warm import Warm

from benchmarks.engine import bench, contenders, table
from benchmarks.engine.bench import Bench, BenchProgress, Options, duration, run_bench
from benchmarks.engine.case import (
    FOUR_SHAPES,
    GRID_BATCHES,
    GRID_HIDDEN,
    GRID_STEPS,
    SPREADS,
    Case,
    chosen_cases,
    full_cases,
    lengths_of,
    quick_cases,
)
from benchmarks.engine.contenders import NotTheSame, check_loop
from benchmarks.engine.loop import torch_loop, write_loop
from benchmarks.engine.peers import PYTHON, PeerFailed, Peers, request_for
from benchmarks.engine.picture import EQUAL, draw, tile_colour
from benchmarks.engine.report import Report, Result, geometric_mean, work_of
from benchmarks.engine.saved import as_json, from_json, read, save
from benchmarks.engine.spelling import Jax, Torch
from benchmarks.engine.targets import verdicts
from benchmarks.engine.timing import RunTiming, gemm_rates, measure, timing
from ensue import cli
from ensue.cells import CELLS, LSTM, Cell, LayerNormLSTM, Residual, SimpleRNN, Zoneout
from ensue.engine import run
from ensue.errors import OptionError
from ensue.layers import Recurrent

Out = pytest.CaptureFixture[str]
SVG = "{http://www.w3.org/2000/svg}"


def command(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as ending:
        cli.main(["bench", *arguments])
    return ending.value.code


# --- cases ----------------------------------------------------------------------------


def test_quick_is_every_cell_on_the_four_shapes() -> None:
    cases = quick_cases(list(CELLS))
    train = {(c.cell, c.shape) for c in cases if (c.kind, c.mode) == ("dense", "train")}
    assert train == {(cell, shape) for cell in CELLS for shape in FOUR_SHAPES}
    assert {c.kind for c in cases} == {"dense", "lengths", "spread", "step", "bf16", "compile"}
    assert len({c.name for c in cases}) == len(cases)


def test_full_has_the_whole_grid_for_the_cells_of_torch() -> None:
    cases = full_cases(list(CELLS))
    shapes = len(GRID_STEPS) * len(GRID_BATCHES) * len(GRID_HIDDEN)
    for cell in ("LSTM", "GRU", "SimpleRNN"):
        for mode in ("train", "infer"):
            mine = [c for c in cases if (c.kind, c.cell, c.mode) == ("dense", cell, mode)]
            assert len(mine) == shapes + 1  # T200 B1 H128 is in no grid
    assert set(quick_cases(list(CELLS))) <= set(cases)


def test_cases_are_chosen_by_words() -> None:
    cases = quick_cases(list(CELLS))
    assert chosen_cases(cases, []) == cases
    assert {c.kind for c in chosen_cases(cases, ["lengths", "step"])} == {"lengths", "step"}
    (one,) = chosen_cases(cases, ["GRU.T400.dense.train"])
    assert one.name == "dense.GRU.T400.B32.H64.train"
    with pytest.raises(OptionError, match="did you mean 'LSTM'"):
        chosen_cases(cases, ["LSMT"])
    with pytest.raises(OptionError, match=r"no case has all words of lengths\.infer"):
        chosen_cases(cases, ["lengths.infer"])


def test_the_lengths_are_those_of_the_goal() -> None:
    rows = lengths_of("wide", 400, 64)
    assert (min(rows), max(rows), round(sum(rows) / 64)) == (10, 400, 183)
    assert rows != sorted(rows)


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("batch", [1, 2, 7, 64])
def test_lengths_fit_every_batch(spread: str, batch: int) -> None:
    rows = lengths_of(spread, 40, batch)
    assert len(rows) == batch
    assert all(0 <= length <= 40 for length in rows)


# --- the torch loop -------------------------------------------------------------------


@pytest.mark.parametrize("name", CELLS)
def test_the_loop_of_every_cell_is_equal_to_eager(name: str) -> None:
    check_loop(CELLS[name]())


@pytest.mark.parametrize(
    "cell",
    [
        SimpleRNN("prelu"),
        SimpleRNN("maxout"),
        SimpleRNN("relu"),
        Residual(LSTM()),
        Zoneout(LayerNormLSTM(), 0.1),
    ],
    ids=lambda cell: type(cell).__name__,
)
def test_loops_of_options_and_wrappers(cell: Cell) -> None:
    check_loop(cell)


@settings(max_examples=40)
@given(random_cells())
def test_loops_of_random_cells(cell: Cell) -> None:
    torch.manual_seed(1)
    parameters = {n: torch.randn(shape).double() for n, shape in cell.shapes(4, 4).items()}
    x = torch.randn(3, 2, 4).double()
    state = tuple(torch.randn(2, size).double() for size in cell.state_sizes(4, 4))
    equations = cell.equations(4, 4, training=False)
    y, final = run(cell, parameters, x, state, engine="eager")
    got, end = torch_loop(equations)(x, state, *parameters.values())
    for a, b in zip((y, *final), (got, *end), strict=True):
        torch.testing.assert_close(a, b)
    compile(write_loop(equations, Jax()), "loop", "exec")


def test_a_loop_that_is_not_equal_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = write_loop(LSTM().equations(5, 5), Torch()).replace("tanh", "sigmoid")
    monkeypatch.setattr("benchmarks.engine.loop.write_loop", lambda *arguments: wrong)
    with pytest.raises(NotTheSame, match="LSTM: its loop is not equal"):
        check_loop(LSTM())


LSTM_LOOP = """\
def loop(x, state, W, U, b):
    x_W = torch.nn.functional.linear(x, W, b)
    m = U.t()
    h, c, = state
    outputs = []
    for x_W, in zip(x_W.unbind(0)):
        s, s_2, s_3, s_4 = (torch.addmm(x_W, h, m)).split((4, 4, 4, 4), -1)
        f = torch.sigmoid(s_2)
        t = f * c
        i = torch.sigmoid(s)
        g = torch.tanh(s_3)
        t_2 = i * g
        c_new = t + t_2
        o = torch.sigmoid(s_4)
        t_3 = torch.tanh(c_new)
        h_new = o * t_3
        h, c, = h_new, c_new,
        outputs.append(h_new)
    return torch.stack(outputs), (h, c,)
"""


def test_the_loop_is_the_one_that_a_careful_person_writes() -> None:
    assert write_loop(LSTM().equations(3, 4, training=False), Torch()) == LSTM_LOOP
    gru = write_loop(CELLS["GRU"]().equations(3, 4, training=False), Torch())
    assert gru.count("linear(") == 1  # one product of x, with its biases
    assert gru.count("addmm(") == 1  # one product of h
    assert "1 - z" in gru  # one operation
    norm = write_loop(LayerNormLSTM().equations(3, 4, training=False), Torch())
    assert norm.count("layer_norm(") == 5
    assert "mean" not in norm


# --- timing ---------------------------------------------------------------------------


def test_contenders_take_turns() -> None:
    order: list[str] = []

    def runner(name: str) -> Callable[[int], float]:
        def run(times: int) -> float:
            order.append(name)
            return 1.0 * times

        return run

    rounds: list[int] = []
    names = ["a", "b", "c"]
    timings = measure({n: runner(n) for n in names}, 4, lambda: rounds.append(1))
    assert "".join(order[-12:]) == "abc" + "bca" + "cab" + "abc"
    assert len(rounds) == 4
    assert timings["a"] == RunTiming(1.0, 1.0, 1.0, 1.0, 4, 1)


def test_what_is_quick_is_done_many_times() -> None:
    quick = measure({"a": lambda times: 1e-5 * times}, 3)["a"]
    assert quick.repeats == 200
    assert math.isclose(quick.median, 1e-5)


def test_median_and_quartiles() -> None:
    assert timing([5.0, 1.0, 3.0, 2.0, 4.0]) == RunTiming(3.0, 2.0, 4.0, 1.0, 5, 1)
    assert timing([5.0, 1.0, 3.0, 2.0, 4.0]).spread == pytest.approx(2 / 3)
    assert timing([2.0]) == RunTiming(2.0, 2.0, 2.0, 2.0, 1, 1)


def test_the_limit_is_the_best_of_all_measurements() -> None:
    rates = gemm_rates(torch.float32, (8, 16), runs=1)
    assert list(rates) == [8, 16]
    report = Report({}, 1)
    assert math.isnan(report.limit())
    report.add_rates("float32", {8: 2.0, 16: 3.0})
    report.add_rates("float32", {8: 4.0, 16: 1.0})
    assert report.gemm == {"float32": {"8": 4.0, "16": 3.0}}
    assert report.limit() == 4.0
    report.add_rates("bfloat16", {8: 1.0})  # a processor without instructions for it
    assert report.limit("bfloat16") == 4.0
    report.add_rates("bfloat16", {8: 9.0})
    assert report.limit("bfloat16") == 9.0


# --- the contenders -------------------------------------------------------------------

TINY = [
    Case("dense", "LSTM", 4, 3, 5, "train"),
    Case("dense", "GRU", 4, 3, 5, "infer"),
    Case("dense", "SimpleRNN", 4, 3, 5, "train"),
    Case("dense", "PeepholeLSTM", 4, 3, 5, "train"),
    Case("lengths", "LSTM", 6, 3, 5, "train", "half"),
    Case("lengths", "GRU", 6, 3, 5, "infer", "half"),
    Case("spread", "GRU", 6, 3, 5, "train", "empty"),
    Case("step", "LSTM", 1, 1, 5, "infer"),
    Case("step", "GRU", 1, 2, 5, "infer"),
    Case("step", "SimpleRNN", 1, 1, 5, "infer"),
    Case("step", "PeepholeLSTM", 1, 1, 5, "infer"),
    Case("bf16", "LSTM", 4, 3, 5, "train"),
    Case("bf16", "LSTM", 4, 3, 5, "infer"),
    Case("compile", "SimpleRNN", 1, 1, 5, "train"),
]
NOBODY = Path("nowhere")
OPTIONS = Options(2, frozenset(["torch.nn", "loop"]), gemm_sizes=(16,), peers=NOBODY)


@pytest.fixture(scope="module")
def tiny() -> Report:
    """All kinds of cases, measured."""
    if NO_NATIVE:
        pytest.skip(NO_NATIVE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXX", "c++")  # as users have it, not with the flags of quick tests
        return run_bench(TINY, {name: make() for name, make in CELLS.items()}, OPTIONS)


def test_every_kind_is_measured(tiny: Report) -> None:
    assert tiny.problems == []
    assert tiny.finished
    assert [r.case for r in tiny.results] == TINY
    who = {r.case.name: set(r.timings) | set(r.absent) for r in tiny.results}
    assert who["dense.LSTM.T4.B3.H5.train"] == {"native", "torch.nn", "loop"}
    assert who["dense.PeepholeLSTM.T4.B3.H5.train"] == {"native", "loop"}
    assert who["lengths.LSTM.T6.B3.H5.half.train"] == {"native", "padded", "packed"}
    assert who["spread.GRU.T6.B3.H5.empty.train"] == {"native", "dense"}
    assert who["step.LSTM.T1.B1.H5.infer"] == {"native", "new tensors", "torch.nn"}
    assert who["bf16.LSTM.T4.B3.H5.train"] == {"native", "float32", "autocast"}
    assert who["compile.SimpleRNN.T1.B1.H5.train"] == {"native"}
    for result in tiny.results:
        for one in result.timings.values():
            assert 0 < one.fastest <= one.low <= one.median <= one.high
    assert set(tiny.gemm) == {"float32", "bfloat16"}


def test_flops_are_those_of_the_products_of_real_steps() -> None:
    cell = LSTM()
    each = 2 * 4 * 5 * 10  # multiply and add, four gates of five, from x and from h
    assert work_of(Case("dense", "LSTM", 4, 3, 5, "infer"), cell) == (12 * each, 12)
    assert work_of(Case("dense", "LSTM", 4, 3, 5, "train"), cell) == (3 * 12 * each, 12)
    half = Case("lengths", "LSTM", 6, 3, 5, "train", "half")
    real = sum(lengths_of("half", 6, 3))
    assert work_of(half, cell) == (3 * real * each, real)


@needs_native
def test_training_writes_the_gradients_of_x_and_every_parameter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: list[int] = []
    grad = torch.autograd.grad

    def watched(y: torch.Tensor, tensors: list[torch.Tensor], d_y: torch.Tensor) -> object:
        counts.append(len(tensors))
        return grad(y, tensors, d_y)

    case = Case("dense", "LSTM", 4, 3, 5, "train")
    works = contenders.make_contest(case, LSTM(), frozenset(["torch.nn"])).works
    monkeypatch.setattr(torch.autograd, "grad", watched)
    gradients = {name: work() for name, work in works.items()}
    assert counts == [1 + 3, 1 + 4]  # torch has two biases
    for (x, W, U, b), (x_2, W_2, U_2, b_2, _) in [gradients.values()]:  # type: ignore[misc]
        assert x.shape == x_2.shape == (4, 3, 5)
        assert (W.shape, U.shape, b.shape) == (W_2.shape, U_2.shape, b_2.shape)


@needs_native
def test_who_computes_something_else_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contenders, "copy_weights", lambda *arguments: None)
    cells: dict[str, Cell] = {"LSTM": LSTM()}
    report = run_bench([TINY[0]], cells, OPTIONS)
    assert report.results == []
    (problem,) = report.problems
    assert "the outputs of torch.nn differ from those of the native engine by" in problem
    assert "not measured: dense.LSTM" in as_text(report)


def test_who_cannot_run_here_is_named() -> None:
    def refuse() -> torch.Tensor:
        raise RuntimeError("no such kernel. Ask others")

    y = torch.zeros(1, 1, 1)
    entries = {
        "native": contenders.Contender(lambda: y, []),
        "autocast": contenders.Contender(refuse, []),
    }
    contest = contenders.contest(entries, TINY[-2])
    assert list(contest.works) == ["native"]
    assert contest.absent == {"autocast": "no such kernel. Ask others"}


def test_opponents_are_asked_for_by_name() -> None:
    with pytest.raises(OptionError, match="unknown opponent 'jaxx': did you mean 'jax'"):
        Options(against=frozenset(["jaxx"]))
    everywhere = Case("dense", "LSTM", *FOUR_SHAPES[0], "train")
    elsewhere = Case("dense", "LSTM", 35, 20, 650, "train")
    assert Options().opponents(everywhere) == {"torch.nn", "loop", "jax", "onnx"}
    assert Options().opponents(elsewhere) == {"torch.nn"}
    assert Options(against=frozenset(["loop"])).opponents(elsewhere) == {"loop"}


# --- made-up numbers ------------------------------------------------------------------


def same(seconds: float) -> RunTiming:
    return RunTiming(seconds, seconds, seconds, seconds, 15, 1)


def made_up(cases: list[Case], speed: float = 1.0) -> Report:
    """A report in which the native engine runs at `speed` times the limit of 1 GF/s, and
    every opponent takes twice as long."""
    here = {"processor": "Imagined CPU: with AVX2", "cores": 2, "threads": 2, "load": 0.0}
    here |= {"torch": "2", "compiler": "c++: 1", "flags": "-O3", "jax": "9.9"}
    report = Report(here, 15, {"float32": {"1024": 1e9}, "bfloat16": {"1024": 1e9}}, finished=True)
    cells = {name: make() for name, make in CELLS.items()}
    opponents = {
        "dense": ("torch.nn", "loop", "jax", "onnx"),
        "lengths": ("padded", "packed"),
        "spread": ("dense",),
        "step": ("new tensors", "torch.nn"),
        "bf16": ("float32", "autocast"),
        "compile": (),
    }
    for case in cases:
        flops, steps = work_of(case, cells[case.cell])
        seconds = flops / 1e9 / speed if flops else 4e-6 / speed
        timings = {"native": same(seconds)}
        timings |= {name: same(2 * seconds) for name in opponents[case.kind]}
        report.results.append(Result(case, timings, flops, steps))
    return report


def as_text(report: Report) -> str:
    file = io.StringIO()
    table.write_report(report, file)
    return file.getvalue()


def test_ratios_shares_and_means() -> None:
    report = made_up([Case("dense", "LSTM", *shape, "train") for shape in FOUR_SHAPES], 0.5)
    assert [r.ratio("torch.nn") for r in report.results] == pytest.approx([2.0] * 4)
    assert report.results[0].ratio("nobody") is None
    assert [report.share(r) for r in report.results] == pytest.approx([0.5] * 4)
    assert report.mean_ratio(report.results, "loop") == pytest.approx(2.0)
    assert report.mean_ratio(report.results, "nobody") is None
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)


def test_the_cost_of_a_real_step() -> None:
    case = Case("spread", "LSTM", 40, 8, 5, "train", "half")
    steps = sum(lengths_of("half", 40, 8))
    equal = contenders.equal_steps(case) * 8
    result = Result(case, {"native": same(2.0 * steps), "dense": same(1.0 * equal)}, 1, steps)
    assert result.cost_of_a_step == pytest.approx(2.0)


def goals(report: Report) -> dict[str, tuple[float, bool]]:
    return {one.target: (one.measured, one.met) for one in verdicts(report)}


def test_goals_are_met_or_not() -> None:
    cases = quick_cases(list(CELLS))
    slow, fast = goals(made_up(cases, 0.1)), goals(made_up(cases, 0.9))
    assert len(slow) == len(fast) == 27
    share = "training, share of the limit, H ≥ 256: LSTM-like cells"
    assert slow[share] == (pytest.approx(0.1), False)
    assert fast[share] == (pytest.approx(0.9), True)
    step = "one streaming step, LSTM, B 1, H 128"
    assert slow[step] == (pytest.approx(40.0), False)
    assert fast[step] == (pytest.approx(4 / 0.9), True)
    assert fast["LSTM against torch.nn, training, geometric mean"] == (pytest.approx(2), True)
    assert fast["GRU against torch.nn, training, geometric mean"] == (pytest.approx(2), False)
    rate = "every other cell, its rate against that of the cell it resembles"
    assert fast[rate] == (pytest.approx(1.0), True)
    assert goals(made_up([])) == {}


def test_the_worst_case_decides() -> None:
    cases = [Case("dense", "LSTM", 1, batch, 64, "infer") for batch in (1, 16)]
    report = made_up(cases)
    worse = report.results[1]
    report.results[1] = Result(worse.case, {**worse.timings, "torch.nn": same(0.9 * worse.native)})
    (one,) = verdicts(report)
    assert (one.measured, one.met, one.where) == (
        pytest.approx(0.9),
        False,
        "LSTM T1 B16 H64 infer",
    )


# --- text, JSON, picture --------------------------------------------------------------


def test_text_says_all_there_is(tiny: Report) -> None:
    text = as_text(tiny)
    assert "\x1b" not in text
    for words in (
        "Ensue bench",
        "GEMM limit, float32",
        "Training, equal lengths",
        "Inference, equal lengths",
        "Geometric means",
        "Unequal lengths",
        "The cost of a real step",
        "One streaming step",
        "bfloat16",
        "Compiling",
        "Goals",
        "PeepholeLSTM",
        "T4 B3 H5",
    ):
        assert words in text, words
    assert max(map(len, text.splitlines())) <= 160


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    report, green = made_up(TINY[:1]), "\x1b[32m2.00×"
    assert "\x1b" not in as_text(report)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert green in as_text(report)
    monkeypatch.setenv("NO_COLOR", "1")
    assert green not in as_text(report)


def test_the_numbers_of_the_text() -> None:
    text = as_text(made_up(quick_cases(list(CELLS)), 0.5))
    row = next(line.split() for line in text.splitlines() if line.lstrip().startswith("LSTM "))
    # 6400 rows, four gates, 256 + 256 columns, three passes: 20.1 GF at 0.5 GF/s
    assert row == [
        "LSTM",
        "T100",
        "B64",
        "H256",
        "40265",
        *["80531", "2.00×"] * 4,
        "0",
        "%",
        "50",
        "%",
    ]
    assert "JAX scan 9.9" in text
    assert "of 27 goals met" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.01234, "0.012"), (0.9876, "0.988"), (1.234, "1.23"), (12.34, "12.3"), (1234.0, "1234")],
)
def test_three_digits(value: float, text: str) -> None:
    assert table.three_digits(value) == text


def test_a_run_that_was_stopped_says_so() -> None:
    report = made_up(TINY[:1])
    assert "Stopped" not in as_text(report)
    report.finished = False
    assert "Stopped before the end" in as_text(report)


def test_a_busy_machine_is_mentioned() -> None:
    report = made_up(TINY[:1])
    assert "Measure again" not in as_text(report)
    report.environment["load"] = 3.0
    assert "Measure again" in as_text(report)


def test_json_holds_everything_and_comes_back(tiny: Report, tmp_path: Path) -> None:
    save(tiny, tmp_path / "bench.json")
    data = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert set(data) == {
        *("format", "environment", "runs", "finished", "problems", "gemm", "results", "goals")
    }
    here = {"processor", "cores", "threads", "load", "torch", "compiler", "flags", "ensue"}
    assert here <= set(data["environment"])
    for row in data["results"]:
        assert set(row) == {*("name", "case", "timings", "flops", "real_steps", "absent", "share")}
        for one in row["timings"].values():
            assert set(one) == {"median", "low", "high", "fastest", "runs", "repeats"}
    for goal in data["goals"]:
        assert {"target", "goal", "measured", "met", "where"} <= set(goal)
    assert as_json(read(tmp_path / "bench.json")) == as_json(tiny)
    assert from_json(as_json(tiny)) == tiny


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read: No such file"),
        ("{", "expected JSON of `ensue bench`, got Expecting"),
        ("[]", "format 1, got list"),
        ('{"format": 7}', "format 1, got 7"),
    ],
)
def test_a_file_that_is_no_report(text: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(OptionError, match=message):
        read(path)


def words_of(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_the_picture_is_a_picture(tiny: Report) -> None:
    words = words_of(draw(tiny))
    for word in ("Training", "LSTM", "T4 B3 H5", "torch loop", "100 %"):
        assert word in words, word


def test_bars_and_goals_are_where_they_belong() -> None:
    svg = draw(made_up([Case("dense", "LSTM", *FOUR_SHAPES[0], "train")], 0.5))
    words = words_of(svg)
    assert words.count("2.0×") == 4  # one bar for each opponent
    assert "50 %" in words
    assert "goal" in words


def test_many_shapes_become_a_map() -> None:
    cases = chosen_cases(full_cases(list(CELLS)), ["dense.LSTM.infer"])
    words = words_of(draw(made_up(cases)))
    assert "LSTM, inference" in words
    assert {"T 1", "T 35", "T 100", "T 400", "H 650", "B 20"} <= set(words)
    assert "T 200" not in words  # it stands among the bars
    assert words.count("2.0×") == 4 * len(FOUR_SHAPES) + len(cases) - 1


def test_colours_of_tiles() -> None:
    assert tile_colour(1.0) == EQUAL
    assert tile_colour(4.0) == tile_colour(9.0) != tile_colour(2.0)
    red, green = (int(tile_colour(0.5)[k : k + 2], 16) for k in (1, 3))
    assert red > green


def test_an_empty_report_is_drawn_and_printed() -> None:
    assert words_of(draw(made_up([])))
    assert "Ensue bench" in as_text(made_up([]))


# --- the command ----------------------------------------------------------------------


def test_names_are_listed(capsys: Out) -> None:
    assert command("--list", "step") == 0
    assert capsys.readouterr().out.split() == [
        f"step.{cell}.T1.B1.H128.infer" for cell in ("LSTM", "GRU", "SimpleRNN")
    ]
    assert command("--list", "--full", "T35.B20.H650.LSTM") == 0
    assert len(capsys.readouterr().out.split()) == 2


OWN = """
from ensue.cells import LSTM, Cell
from ensue.equations import Matrix, tanh

class Mine(Cell):
    W, U = Matrix("x"), Matrix("h")
    def step(self, x, h):
        return tanh(self.W @ x + self.U @ h)
"""


def test_a_cell_of_ones_own(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    assert command("--cell", str(file), "--list", "Mine") == 0
    names = capsys.readouterr().out.split()
    assert len([name for name in names if name.startswith("dense.Mine.")]) == 4
    file.write_text(OWN.replace("Mine", "LSTM").replace("import LSTM,", "import"))
    assert command("--cell", str(file), "--list") == 2
    assert "another cell is called LSTM too" in capsys.readouterr().err


@needs_native
def test_the_whole_way(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "quick_cases", lambda cells: TINY[:1])
    monkeypatch.setattr(bench, "PYTHON", NOBODY)
    monkeypatch.setattr(bench, "gemm_rates", lambda dtype, sizes: {16: 1e9})
    text, picture = tmp_path / "b.json", tmp_path / "b.svg"
    written = ("--json", str(text), "--picture", str(picture))
    assert command("--runs", "2", "--against", "loop", "--threads", "1", *written) == 0
    out, err = capsys.readouterr()
    assert "dense.LSTM.T4.B3.H5.train" in err
    assert f"wrote {text}\nwrote {picture}\n" in err
    assert words_of(picture.read_text(encoding="utf-8"))
    assert command("--read", str(text)) == 0
    assert capsys.readouterr().out == out


@needs_native
def test_ctrl_c_shows_what_there_is(capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "quick_cases", lambda cells: TINY[:2])
    monkeypatch.setattr(bench, "PYTHON", NOBODY)
    monkeypatch.setattr(bench, "gemm_rates", lambda dtype, sizes: {16: 1e9})
    measured = Bench.measure

    def stop_at_the_second(self: Bench, case: Case, progress: BenchProgress) -> Result:
        if case == TINY[1]:
            raise KeyboardInterrupt
        return measured(self, case, progress)

    monkeypatch.setattr(Bench, "measure", stop_at_the_second)
    assert command("--runs", "1", "--against", "loop") == 130
    out = capsys.readouterr().out
    assert "Stopped before the end" in out
    assert "T4 B3 H5" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--picture", "b.gif"), "expected a file name that ends in .svg"),
        (("--json", "nowhere/b.json"), "nowhere is not a folder"),
        (("--against", "jaxx"), "unknown opponent 'jaxx'"),
        (("--read", "nowhere.json"), "cannot be read"),
        (("LSMT",), "did you mean 'LSTM'"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(
    arguments: tuple[str, ...], message: str, capsys: Out
) -> None:
    assert command(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_without_a_compiler_there_is_nothing_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "why_not_native", lambda device, dtype: "no compiler is found")
    with pytest.raises(OptionError, match="no compiler is found"):
        run_bench(TINY, {}, OPTIONS)


def test_progress_says_how_long_it_takes(capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 20.0, 21.0, 60.0])
    monkeypatch.setattr("benchmarks.engine.bench.time.monotonic", lambda: next(clock))
    progress = BenchProgress(dict.fromkeys(TINY[:4], 1.0), runs=10)
    progress.say(TINY[0], 5)  # half of one of four in 20 seconds
    progress.say(TINY[0], 6)  # too soon for another line
    progress.after(TINY[0])
    progress.say(TINY[1], 10)
    assert capsys.readouterr().err.splitlines() == [
        "1 of 4  dense.LSTM.T4.B3.H5.train  about 2 min left",
        "2 of 4  dense.GRU.T4.B3.H5.infer  about 60 s left",
    ]
    assert [duration(s) for s in (3, 89, 600, 5400)] == ["3 s", "89 s", "10 min", "1 h 30 min"]


# --- the peers ------------------------------------------------------------------------


def test_peers_that_are_not_installed_take_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    peers = Peers(Path(sys.executable), threads=1)
    try:
        # whether this Python has them or not, the answer is a table of those that it has
        assert set(peers.versions) <= {"jax", "onnx"}
        with pytest.raises(PeerFailed, match="KeyError"):
            peers.ask({"do": "run", "who": "nobody", "times": 1})
    finally:
        peers.close()


def test_a_process_that_ends_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "peers.py"
    script.write_text("raise SystemExit('no numpy here')")
    monkeypatch.setattr("benchmarks.engine.peers.SCRIPT", script)
    with pytest.raises(PeerFailed, match="has ended: no numpy here"):
        Peers(Path(sys.executable), threads=1)


PRETENDER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    answer = {"hello": {"jax": "1.0"}, "run": {"seconds": 0.5}}.get(request["do"], {})
    if request["do"] == "compute":
        rows = request["steps"] * request["batch"] * request["output"]
        answer = {"y": [9.0] * rows}
    print(json.dumps(answer), flush=True)
"""


@needs_native
def test_a_peer_is_measured_in_its_own_process_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "peers.py"
    script.write_text(PRETENDER)
    monkeypatch.setattr("benchmarks.engine.peers.SCRIPT", script)
    monkeypatch.setattr(bench, "SCRIPT", script)
    cells: dict[str, Cell] = {"GRU": CELLS["GRU"]()}
    options = Options(2, frozenset(["jax"]), (16,), Path(sys.executable))
    report = run_bench([TINY[1]], cells, options)
    assert report.environment["jax"] == "1.0"
    (result,) = report.results
    assert result.absent == {"peers": "jax computes another GRU than the eager engine"}
    monkeypatch.setattr(Peers, "_check", lambda *arguments: None)
    (result,) = run_bench([TINY[1]], cells, options).results
    assert result.timings["jax"] == RunTiming(0.5, 0.5, 0.5, 0.5, 2, 1)


def test_what_a_peer_is_told() -> None:
    case = Case("dense", "LSTM", 4, 3, 5, "train")
    request = request_for("jax", case, LSTM())
    assert request["parameters"] == {"W": [20, 5], "U": [20, 5], "b": [20]}
    assert (request["state"], request["output"]) == ([5, 5], 5)
    assert "jax.lax.scan" in request["source"]
    assert "source" not in request_for("onnx", case, LSTM())


@pytest.mark.skipif(not PYTHON.exists(), reason="make bench-peers installs JAX and ONNX Runtime")
@needs_native
def test_the_peers_compute_the_same() -> None:
    cells: dict[str, Cell] = {name: CELLS[name]() for name in ("LSTM", "GRU", "SimpleRNN")}
    cases = [Case("dense", cell, 4, 3, 5, "infer") for cell in cells]
    cases.append(Case("dense", "GRU", 4, 3, 5, "train"))
    report = run_bench(cases, cells, Options(1, frozenset(["jax", "onnx"]), (16,)))
    for result in report.results:
        assert result.absent == {}
        assert "jax" in result.timings
        assert ("onnx" in result.timings) == (result.case.mode == "infer")


def test_the_command_prints_plain_text_into_a_pipe(tmp_path: Path, warm: Warm) -> None:
    save(made_up(TINY[:1]), tmp_path / "b.json")
    run = warm.run(["-m", "ensue", "bench", "--read", tmp_path / "b.json"], tmp_path)
    assert run.returncode == 0, run.stderr
    assert "\x1b" not in run.stdout
    assert "2.00×" in run.stdout


# --- where the benchmarks are -------------------------------------------------------------

PACKAGE = Path(cli.__file__).parent.parent
BenchIn = Callable[..., subprocess.CompletedProcess[str]]


def decoy(folder: Path) -> Path:
    """A folder of the same name, which writes a file if it is imported."""
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "__init__.py").write_text("open('ran', 'w')")
    return folder


@pytest.fixture
def bench_in(warm: Warm) -> BenchIn:
    """Runs `ensue bench` of a package in a folder."""

    def run(folder: Path, package: Path, *words: str) -> subprocess.CompletedProcess[str]:
        path = {"PYTHONPATH": str(package.parent)}
        return warm.fresh(["-m", "ensue", "bench", *words], folder, path)

    return run


def test_a_clone_finds_its_own_benchmarks(tmp_path: Path, bench_in: BenchIn) -> None:
    listed = bench_in(decoy(tmp_path), PACKAGE, "--list", "step.LSTM")
    assert (listed.returncode, listed.stdout) == (0, "step.LSTM.T1.B1.H128.infer\n")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("above", ["site-packages", "src"])
def test_an_installed_package_says_where_the_benchmarks_are(
    tmp_path: Path, above: str, bench_in: BenchIn
) -> None:
    """Also where a folder called src has no benchmarks next to it."""
    package = tmp_path / above / "ensue"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = bench_in(decoy(elsewhere), package, "--list")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.endswith(
        "ensue bench: the benchmarks are not installed with the package. "
        "Fix: clone the repository and run `make bench` there"
    )
    assert not (elsewhere / "ran").exists()
    helped = bench_in(elsewhere, package, "--help")
    assert helped.returncode == 0
    assert "--against" in helped.stdout


def test_the_layer_under_test_runs_native() -> None:
    layer = contenders.make_layer(LSTM(), 5)
    assert isinstance(layer, Recurrent)
    assert layer.engine == "native"
