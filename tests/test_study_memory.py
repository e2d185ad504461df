"""The reach of memory: honest scores, the same for the same seed, and a picture of them."""

import json
import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ensue import cli
from ensue.cells import CELLS, GRU, Cell, SimpleRNN
from ensue.cli.study import load_cells
from ensue.data.tasks import TASKS, BuiltInTask
from ensue.drawing.document import as_text
from ensue.equations import Matrix, Vector, tanh
from ensue.errors import OptionError
from ensue.layers import Recurrent
from ensue.study.memory import study as memory
from ensue.study.memory.budget import RATE, RATE_WITHOUT_GATES, Budget
from ensue.study.memory.study import (
    KEEPING,
    MARGIN,
    Batch,
    GeneratedRows,
    MemoryNetwork,
    MemoryReport,
    MemoryScores,
    Trial,
    begin,
    chrono,
    find_tasks,
    held_out,
    learn,
    lengths_up_to,
    met,
    rate_of,
    study_memory,
)
from ensue.study.memory.table import as_json, document, draw, reach_text

SVG = "{http://www.w3.org/2000/svg}"
SMALL = Budget(updates=12, hidden=8, rows=8, every=4)
TASK_TABLE = [TASKS[name](12) for name in TASKS]


def silent(line: str) -> None:
    """Says nothing."""


def some(task: BuiltInTask, count: int = 9) -> Batch:
    return Batch.of(task, task.batch(3, 5, count))


@pytest.fixture(scope="module")
def small() -> MemoryReport:
    cells: dict[str, Cell] = {"SimpleRNN": SimpleRNN(), "GRU": GRU()}
    return study_memory(["adding", "temporal order"], cells, [12], SMALL, silent)


# --- a network and its data ----------------------------------------------------------------


@pytest.mark.parametrize("task", TASK_TABLE, ids=lambda task: task.name)
def test_a_batch_is_its_rows(task: BuiltInTask) -> None:
    """Answers and targets stand in the same order, whatever the lengths of the rows."""
    torch.manual_seed(1)
    network = MemoryNetwork(GRU(), task, 6)
    whole = some(task)
    singles = [Batch.of(task, task.batch(3, 5 + k, 1)) for k in range(9)]
    answers = torch.cat([network.answers(one) for one in singles])
    torch.testing.assert_close(network.answers(whole), answers, rtol=1e-4, atol=1e-5)
    assert torch.equal(whole.targets, torch.cat([one.targets for one in singles]))
    costs = torch.stack([network(one, {})[0] for one in singles])
    torch.testing.assert_close(network(whole, {})[0], costs.sum(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("task", TASK_TABLE, ids=lambda task: task.name)
def test_every_row_is_learned_from_once(task: BuiltInTask) -> None:
    source = GeneratedRows(task, seed=3, size=4, updates=5)
    rows = [row for epoch in (0, 1) for batch in source.batches(epoch) for row in batch]
    assert rows == list(range(2 * 5 * 4))
    batch = source.batches(0)[2]
    assert torch.equal(source.batch(batch).x, Batch.of(task, task.batch(3, 8, 4)).x)
    assert source.targets(batch) == len(source.batch(batch).targets)
    assert source.name(8) == f"{task.name}, row 8 of seed 3"


def test_scores_are_those_of_all_rows_together() -> None:
    for name, measure in (("adding", "error"), ("temporal order", "accuracy")):
        task = TASKS[name](12)
        network = MemoryNetwork(GRU(), task, 6)
        pieces, whole = (
            held_out(task, 1, "test", 510),
            Batch.of(task, task.batch(1, 0, 510, "test")),
        )
        assert [len(piece.targets) for piece in pieces] == [250, 250, 10]
        with torch.no_grad():
            scores, answers = MemoryScores(network, pieces)(), network.answers(whole)
        if measure == "error":
            expected = float((answers[:, 0] - whole.targets).square().mean())
        else:
            expected = float((answers.argmax(1) == whole.targets).float().mean())
        assert scores[measure] == pytest.approx(expected, rel=1e-4)


# --- where gates begin ---------------------------------------------------------------------


def test_every_gated_cell_has_a_gate_that_keeps() -> None:
    without = {"SimpleRNN", "RecurrentPerceptron", "LeakyRNN"}
    assert set(KEEPING) == set(CELLS) - without


@pytest.mark.parametrize("name", KEEPING)
def test_a_chrono_start_keeps_for_up_to_the_length(name: str) -> None:
    """With nothing coming in, a step leaves the share 1 − 1/(1 + u) of the state, 1 ≤ u < T."""
    torch.manual_seed(1)
    layer = Recurrent(name, 2, 200, engine="eager")
    chrono(layer, 50)
    way = layer.ways[0]
    with torch.no_grad():
        for matrix in (parameter for parameter in way.parameters() if parameter.dim() > 1):
            matrix.zero_()
        ones = tuple(torch.ones(1, size) for size in way.state_sizes)
        _, state = layer(torch.zeros(1, 1, 2), [ones])
    parts = way.cell.parts
    kept_state = state[0][parts.index("c") if "c" in parts else 0][0]
    if name == "LSTM1997":
        assert torch.equal(kept_state, torch.ones(200))
        return
    assert float(kept_state.min()) >= 0.5 - 1e-6
    assert 0.97 < float(kept_state.max()) <= 0.98 + 1e-6  # 1 − 1/50
    scale = 1 / (1 - kept_state) - 1
    assert float(scale.mean()) == pytest.approx(25, rel=0.15)


class LSTM(Cell):
    """One's own, by a name that a built-in cell has."""

    W, U, b = Matrix("x"), Matrix("h"), Vector()

    def step(self, x: Any, h: Any) -> Any:
        return tanh(self.W @ x + self.U @ h + self.b)


@pytest.mark.parametrize("cell", [SimpleRNN(), LSTM()], ids=["without gates", "one's own"])
def test_other_cells_start_as_they_declare(cell: Cell) -> None:
    layer = Recurrent(cell, 2, 5)
    before = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    chrono(layer, 50)
    assert all(torch.equal(before[name], tensor) for name, tensor in layer.state_dict().items())


def test_cells_without_gates_have_a_rate_of_their_own() -> None:
    cells = (SimpleRNN(), GRU(), LSTM())
    assert [rate_of(cell, Budget()) for cell in cells] == [RATE_WITHOUT_GATES, RATE, RATE]
    assert [rate_of(cell, Budget(rate=0.5)) for cell in cells] == [0.5] * 3


# --- one training --------------------------------------------------------------------------


def timeless(trial: Trial) -> Trial:
    return replace(trial, seconds=0.0)


def test_the_same_seed_gives_the_same_whatever_came_before(small: MemoryReport) -> None:
    torch.rand(17)
    before = torch.get_rng_state()
    again = learn(GRU(), "GRU", TASKS["adding"](12), 12, SMALL, silent)
    assert timeless(again) == timeless(small.of("adding", "GRU")[0])
    assert torch.equal(before, torch.get_rng_state())
    other = replace(SMALL, seed=2)
    assert learn(GRU(), "GRU", TASKS["adding"](12), 12, other, silent).curve != again.curve
    weights = [begin(GRU(), TASKS["adding"](12), 12, b).layer.ways[0].W for b in (SMALL, other)]
    assert not torch.equal(*weights)


def test_a_solved_task_ends_the_training_and_a_failed_one_is_said_to_fail() -> None:
    task, budget = TASKS["temporal order"](10), Budget(updates=150, hidden=16, every=10)
    messages: list[str] = []
    solved = learn(GRU(), "GRU", task, 10, budget, messages.append)
    assert solved.solved
    assert solved.score >= task.enough
    assert solved.updates == solved.curve[-1][0] < budget.updates
    assert [met(task, score) for _, score in solved.curve] == [False] * (len(messages) - 1) + [True]
    assert messages[0].startswith("temporal order, T 10, GRU: accuracy 0.")
    assert ", update 10 of 150, at most 0:" in messages[0]
    failed = learn(GRU(), "GRU", task, 10, replace(budget, updates=3, every=2), silent)
    assert not failed.solved
    assert [update for update, _ in failed.curve] == [2, 3]
    assert failed.score < task.enough


def test_the_score_is_that_of_the_best_weights_on_the_test_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the validation rows in the place of the test's, it is the best score of the curve."""
    parts: list[str] = []

    def watched(task: BuiltInTask, seed: int, part: str, rows: int) -> list[Batch]:
        parts.append(part)
        return held_out(task, seed, "validation", 40)

    monkeypatch.setattr(memory, "held_out", watched)
    budget = replace(SMALL, rate=0.5, updates=40, every=1)
    trial = learn(SimpleRNN(), "S", TASKS["adding"](12), 12, budget, silent)
    assert parts == ["validation", "test"]
    best = min(score for _, score in trial.curve)
    assert best < 0.9 * trial.curve[-1][1]  # at such a rate the last weights are not the best
    assert trial.score == pytest.approx(best)


def test_a_training_that_breaks_off_has_failed() -> None:
    messages: list[str] = []
    trial = learn(
        SimpleRNN("relu"), "S", TASKS["adding"](12), 12, replace(SMALL, rate=1e20), messages.append
    )
    assert not trial.solved
    assert trial.failure.startswith("update 2: the cost is nan")
    assert messages == [f"adding, T 12, S: {trial.failure}"]
    report = MemoryReport(SMALL, (12,), [trial], finished=True)
    assert trial.failure in as_text(document(report))
    assert " none " in as_text(document(report))
    assert json.loads(json.dumps(as_json(report), allow_nan=False))["trials"][0]["score"] is None
    ElementTree.fromstring(draw(report))


@pytest.mark.parametrize("name", ["adding", "temporal order"])
def test_validation_leaves_room_for_the_test(name: str) -> None:
    task = TASKS[name](20)
    at_limit = task.enough
    with_room = MARGIN * task.enough if task.kind == "regression" else 1 - MARGIN * 0.0099
    assert task.solved(at_limit)
    assert not met(task, at_limit)
    assert met(task, with_room)


# --- the study -----------------------------------------------------------------------------


def made_up(task: str, steps: int, cell: str, solved: bool) -> Trial:
    score = 0.0005 if solved else 0.17
    curve = tuple((50 * k, 0.17 if k < 4 else score) for k in range(1, 11))
    return Trial(task, steps, cell, "error", 1 / 6, 0.001, score, solved, 500, 0.02, 99, 2.5, curve)


LONGEST = {"GRU": 50, "LSTM": 10**6, "SimpleRNN": 1}


@pytest.fixture
def reach(monkeypatch: pytest.MonkeyPatch) -> MemoryReport:
    """Cells that solve everything up to a length known beforehand."""

    def known(
        cell: Cell, name: str, task: BuiltInTask, steps: int, budget: Budget, say: object
    ) -> Trial:
        return made_up(task.name, steps, name, steps <= LONGEST[name])

    monkeypatch.setattr(memory, "learn", known)
    cells = {name: CELLS[name]() for name in LONGEST}
    return study_memory(["adding"], cells, lengths_up_to(150), SMALL, silent)


def test_reach_is_the_longest_length_before_the_first_failure(reach: MemoryReport) -> None:
    assert reach.lengths == (10, 20, 50, 100, 150)
    assert {name: reach.reach("adding", name) for name in LONGEST} == {
        "GRU": 50,
        "LSTM": 150,
        "SimpleRNN": 0,
    }
    assert [t.steps for t in reach.of("adding", "GRU")] == [10, 20, 50, 100]
    assert len(reach.of("adding", "SimpleRNN")) == 1
    assert as_json(reach)["reach"] == {"adding": {"GRU": 50, "LSTM": 150, "SimpleRNN": 0}}
    lines = as_text(document(reach)).splitlines()[-4:]
    assert [line.split() for line in lines] == [
        ["longest", "T", "solved", "adding"],
        ["GRU", "50"],
        ["LSTM", "≥", "150"],
        ["SimpleRNN", "<", "10"],
    ]


def test_a_reach_in_words() -> None:
    assert [reach_text(n, (10, 20)) for n in (0, 10, 20)] == ["< 10", "10", "≥ 20"]


def test_ctrl_c_keeps_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends() -> Iterator[Trial]:
        yield made_up("adding", 12, "GRU", True)
        raise KeyboardInterrupt

    trials, messages = ends(), list[str]()
    monkeypatch.setattr(memory, "learn", lambda *_: next(trials))
    report = study_memory(["adding"], {"GRU": GRU(), "S": GRU()}, [12], SMALL, messages.append)
    assert not report.finished
    assert [trial.cell for trial in report.trials] == ["GRU"]
    assert messages == ["stopped: the results are incomplete"]


def test_a_length_that_a_task_cannot_have_is_refused_before_training() -> None:
    with pytest.raises(OptionError, match="steps: expected a number ≥ 10, got 9"):
        study_memory(["adding", "temporal order"], {"GRU": GRU()}, [9], SMALL, silent)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rate": 0.0}, "rate: expected a number > 0, got 0"),
        (
            {"rows": -1, "clip": math.nan},
            "rows: expected a number > 0, got -1; clip: expected a number > 0, got nan",
        ),
        (
            {"start": "crono"},
            "unknown start 'crono': did you mean 'chrono'? Known: chrono, standard",
        ),
    ],
)
def test_a_wrong_budget(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as problem:
        Budget(**wrong)
    assert str(problem.value) == message


def test_tasks_by_name() -> None:
    assert find_tasks(["temporal-order", "adding", "temporal order"]) == [
        "temporal order",
        "adding",
    ]
    with pytest.raises(OptionError, match="unknown task 'ading': did you mean 'adding'"):
        find_tasks(["ading"])


# --- the picture ---------------------------------------------------------------------------


def drawn_words(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_picture_shows_every_curve_and_both_limits(small: MemoryReport) -> None:
    svg = draw(small)
    words = drawn_words(svg)
    assert {"Adding", "Temporal order", "updates", "validation mean squared error"} <= set(words)
    assert {"chance 0.167", "solved 0.001", "chance 25 %", "solved 99 %"} <= set(words)
    assert words.count("SimpleRNN") == words.count("GRU") == 2
    titles = [title.text or "" for title in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    assert sum(title.startswith("GRU: 12 updates, test ") for title in titles) == 2
    assert svg == draw(small)


@pytest.mark.parametrize("score", [1e-12, 1e9])
def test_wild_scores_stay_on_the_paper(small: MemoryReport, score: float) -> None:
    trials = [replace(t, curve=((4, score), (8, 0.5), (12, score))) for t in small.trials]
    root = ElementTree.fromstring(draw(replace(small, trials=trials)))
    wide, high = (float(root.attrib[key]) for key in ("width", "height"))
    for path in root.iter(f"{SVG}path"):
        for pair in path.attrib["d"].removeprefix("M").split("L"):
            x, y = map(float, pair.split())
            assert 0 <= x <= wide
            assert 0 <= y <= high


def test_a_bar_is_longer_for_a_longer_reach(reach: MemoryReport) -> None:
    svg = draw(reach)
    bars = [r for r in ElementTree.fromstring(svg).iter(f"{SVG}rect") if "rx" in r.attrib]
    gru, lstm = (float(bar.attrib["width"]) for bar in bars)  # SimpleRNN has none
    assert 0 < gru < lstm
    assert {"GRU", "LSTM", "SimpleRNN", "50", "≥ 150", "< 10"} <= set(drawn_words(svg))


def test_words_are_escaped(small: MemoryReport) -> None:
    trials = [replace(trial, cell="A<b>&") for trial in small.trials]
    for lengths in ((12,), (6, 12)):
        svg = draw(replace(small, trials=trials, lengths=lengths))
        assert "<b>" not in svg
        assert "A<b>&" in drawn_words(svg)


# --- the command ---------------------------------------------------------------------------


def command(*words: str) -> int:
    try:
        cli.main(["memory", *words])
    except SystemExit as ending:
        return int(ending.code or 0)
    return 0


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, picture = tmp_path / "m.json", tmp_path / "m.svg"
    options = ["--steps=10", "--cells=GRU", "--updates=60", "--hidden=16"]
    files = ["--json", str(file), "--picture", str(picture)]
    assert command("temporal-order", *options, *files) == 0
    out, err = capsys.readouterr()
    rows = [line.split() for line in out.splitlines()[2:]]
    assert rows[0][:4] == ["task", "T", "cell", "test"]
    assert rows[1][:4] == ["temporal", "order", "10", "GRU"]
    assert rows[1][-5] in ("yes", "no")
    assert "temporal order, T 10, GRU: accuracy" in err
    assert f"wrote {file}" in err
    trial = json.loads(file.read_text())["trials"][0]
    assert f"{100 * trial['score']:.1f} %" in out
    assert "Temporal order" in drawn_words(picture.read_text())


def test_cells_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    text = "from ensue.cells import GRU\nclass Mine(GRU): pass\n"
    files = [tmp_path / name for name in ("a.py", "b.py")]
    for file in files:
        file.write_text(text)
    names = [f"{file}:Mine" for file in files]
    assert list(load_cells(",".join(["GRU", *names, "GRU"]))) == ["GRU", "Mine", names[1]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ading"], "unknown task 'ading': did you mean 'adding'?"),
        (["--cells", "GRUU"], "unknown cell 'GRUU': did you mean 'GRU'?"),
        (["--cells", " ,"], "--cells: expected names such as GRU,LSTM, got none"),
        (["--rate", "0"], "rate: expected a number > 0, got 0"),
        (["--picture", "m.gif"], "m.gif: expected a file name that ends in .svg"),
        (["parity", "--steps", "2"], "steps: expected a number ≥ 4, got 2"),
    ],
)
def test_mistakes_are_told_at_once(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"OptionError: {message}")


@pytest.mark.slow
def test_gated_cells_remember_400_steps_and_the_simple_one_does_not() -> None:
    cells: dict[str, Cell] = {name: CELLS[name]() for name in ("SimpleRNN", "GRU", "LSTM")}
    report = study_memory(["adding", "temporal order"], cells, [400], Budget(), silent)
    for trial in report.trials:
        assert trial.solved == (trial.cell != "SimpleRNN"), trial
    simple = report.of("adding", "SimpleRNN")[0]
    assert simple.score > 0.9 * simple.chance
