"""Gradient flow: every number against an independent computation, and verdicts on planted
networks."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import Ensue, commands_in
from laws import example
from torch import Tensor
from torch.nn.functional import log_softmax
from toy_runs import toy_run

from ensue.cells import CELLS, Cell, SimpleRNN, Zoneout
from ensue.cells.cell import as_tuple
from ensue.diagnose import FlowSettings, FreshNetwork, flow_of_cell, flow_of_layer, flow_of_model
from ensue.diagnose.findings import power, reach_of
from ensue.diagnose.flow import step_bound
from ensue.diagnose.flow_picture import draw
from ensue.diagnose.flow_report import as_json, document
from ensue.diagnose.gates import gate_flows, shortcuts
from ensue.diagnose.observe import Observed, Track, decay, observe
from ensue.diagnose.remedies import omega, preserving
from ensue.diagnose.trained import Probe, as_float64
from ensue.drawing.document import as_page, as_text
from ensue.equations import Matrix, Vector, sigmoid, tanh
from ensue.errors import OptionError
from ensue.layers import LSTM as DropInLSTM
from ensue.layers import Recurrent

STEPS, HIDDEN, INPUT = 6, 3, 2


class TwoRates(Cell):
    """A custom cell: two parts, a gate without a name of its own, both at each step."""

    W, U, b = Matrix("x", "ag"), Matrix("h", "ag"), Vector("ag")

    def step(self, x: Any, h: Any, m: Any) -> Any:
        a = tanh(self.W.a @ x + self.U.a @ h + self.b.a)
        g = sigmoid(self.W.g @ x + self.U.g @ m + self.b.g)
        m = g * m + (1 - g) * a
        return tanh(m) * 0.9 + 0.1 * h, m


TABLE: dict[str, Callable[[], Cell]] = {
    **CELLS,
    "own": TwoRates,
    "example": lambda: example("your_own_cell").LateGate(),
    "relu": lambda: SimpleRNN("relu"),
    "maxout": lambda: SimpleRNN("maxout"),
    "zoneout": lambda: Zoneout(CELLS["GRU"](), 0.25),
}
every_cell = pytest.mark.parametrize("name", TABLE)


class Case:
    """A layer under a softmax with its sequences, looked at; and the same as a plain loop."""

    def __init__(self, cell: Cell, layers: int = 1, steps: int = STEPS, rows: int = 2) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(5)
            self.layer = Recurrent(cell, INPUT, HIDDEN, layers).double().eval()
            for parameter in self.layer.parameters():
                torch.nn.init.normal_(parameter, std=0.6)
            self.probe = Probe(self.layer, self.layer.output_size).double()
            self.x = torch.randn(steps, rows, INPUT, dtype=torch.float64)
            self.targets = torch.randint(0, 10, (steps, rows))

    def cost(self) -> Tensor:
        total: Tensor = self.probe(self.x, self.targets, None, False)
        return total

    def look(self) -> Observed:
        return observe(self.probe, self.cost, 2, 100)

    def track(self) -> Track:
        return self.look().passages[0].tracks[0]

    def loop(self, moved: dict[tuple[int, int], Tensor], x: Tensor | None = None) -> Any:
        """States and outputs of row 0 step by step with torch alone: `moved` is added to the
        flat state of a layer after a step. Gives states[layer][step] and −log p by step."""
        x = self.x[:, :1] if x is None else x
        bounds = [way.cell.on_tensors(way.way().parameters) for way in self.layer.ways]
        states = [way.start(x) for way in self.layer.ways]
        states_of_parts: list[list[Tensor]] = [[] for _ in states]
        costs = []
        for t in range(len(x)):
            inputs = x[t]
            for k, bound in enumerate(bounds):
                new = as_tuple(bound.step(inputs, *states[k]))
                new = tuple(n.expand(s.shape) for n, s in zip(new, states[k], strict=True))
                if (k, t) in moved:
                    sizes = [part.shape[1] for part in new]
                    pieces = torch.split(moved[k, t], sizes)
                    new = tuple(n + p for n, p in zip(new, pieces, strict=True))
                states[k], inputs = new, bound.output(inputs, *new)
                states_of_parts[k].append(torch.cat(new, 1)[0])
            scores = log_softmax(self.probe.output(inputs), -1)
            costs.append(-scores[0, self.targets[t, 0]])
        return states_of_parts, costs

    def features(self, layer: int = 0) -> int:
        return sum(self.layer.ways[layer].state_sizes)


# --- numbers -------------------------------------------------------------------------------


@every_cell
def test_jacobians_over_distance_are_those_of_brute_force(name: str) -> None:
    case = Case(TABLE[name]())
    track = case.track()
    curve = decay(track, track.rows[0])
    for k in range(STEPS):
        zero = torch.zeros(case.features(), dtype=torch.float64)

        def last(move: Tensor, k: int = k) -> Tensor:
            states: Tensor = case.loop({(0, k): move})[0][0][-1]
            return states

        whole = torch.autograd.functional.jacobian(last, zero)
        norm = float(torch.linalg.svdvals(whole)[0])
        assert math.exp(curve.whole[STEPS - 1 - k]) == pytest.approx(norm, rel=1e-9, abs=1e-12)
        at = 0
        for part, size in zip(track.cell.parts, case.layer.ways[0].state_sizes, strict=True):
            if part in curve.parts:
                block = whole[at : at + size, at : at + size]
                norm = float(torch.linalg.svdvals(block)[0])
                logs = curve.parts[part]
                assert math.exp(logs[STEPS - 1 - k]) == pytest.approx(norm, rel=1e-9, abs=1e-12)
            at += size


@every_cell
def test_gradients_by_state_are_those_of_autograd(name: str) -> None:
    case = Case(TABLE[name](), layers=2 if name != "example" else 1)
    tracks = case.look().passages[0].tracks
    for layer, track in enumerate(tracks):
        for t in range(STEPS):
            zero = torch.zeros(case.features(layer), dtype=torch.float64, requires_grad=True)
            cost = sum(case.loop({(layer, t): zero})[1])
            (slope,) = torch.autograd.grad(cost, zero)
            assert torch.allclose(track.rows[0].gradient[t], slope, atol=1e-12, rtol=1e-9)


@every_cell
def test_the_dependency_map_is_that_of_every_output_alone(name: str) -> None:
    layer = Recurrent(TABLE[name](), INPUT, HIDDEN).double()
    x = torch.randn(STEPS, 2, INPUT, dtype=torch.float64, generator=torch.manual_seed(3))
    dependencies = flow_of_layer(layer, x, settings=FlowSettings(rows=1)).passages[0].map
    with torch.random.fork_rng():
        torch.manual_seed(1)  # as the flow draws its softmax
        probe = Probe(layer, layer.output_size).double()
        targets = torch.randint(0, 10, (STEPS, 2))
    inputs = x[:, :1].clone().requires_grad_()
    scores = log_softmax(probe.output(layer.eval()(inputs)[0]), -1)
    for t in range(STEPS):
        (slopes,) = torch.autograd.grad(
            scores[t, 0, targets[t, 0]], inputs, retain_graph=True, allow_unused=True
        )
        assert list(dependencies[t]) == pytest.approx(slopes[:, 0].norm(dim=1).tolist(), abs=1e-12)
        assert all(value == 0 for value in dependencies[t][t + 1 :])


def test_both_directions_depend_on_all_steps_and_lie_in_the_order_of_time() -> None:
    layer = Recurrent("GRU", INPUT, HIDDEN, bidirectional=True).double()
    x = torch.randn(STEPS, 1, INPUT, dtype=torch.float64, generator=torch.manual_seed(4))
    flow = flow_of_layer(layer, x, cost="last")
    forward, backward = flow.tracks
    assert all(value > 0 for value in flow.passages[0].map[-1])
    assert all(value == 0 for row in flow.passages[0].map[:-1] for value in row)
    # a cost of the last step reaches all forward states, and of the backward ones its first alone
    assert all(value > 0 for value in forward.gradient)
    assert backward.gradient[-1] > 0
    assert not any(backward.gradient[:-1])


def test_rows_of_unequal_length_are_looked_at_up_to_their_ends() -> None:
    layer = Recurrent("LSTM", INPUT, HIDDEN, batch_first=True).double()
    x = torch.randn(3, STEPS, INPUT, dtype=torch.float64, generator=torch.manual_seed(4))
    lengths = torch.tensor([2, STEPS, 4])
    whole = flow_of_layer(layer, x, lengths, FlowSettings(rows=1))
    assert whole.tracks[0].steps == STEPS
    alone = flow_of_layer(layer, x[1:2], None, FlowSettings(rows=1))
    assert whole.tracks[0].logs == pytest.approx(alone.tracks[0].logs, abs=1e-12)
    assert whole.tracks[0].states == pytest.approx(alone.tracks[0].states, abs=1e-12)
    last = flow_of_layer(layer, x, lengths, FlowSettings(rows=1, steps=3))
    assert last.tracks[0].logs == pytest.approx(whole.tracks[0].logs[:4], abs=1e-12)


def test_a_drop_in_is_looked_into_too() -> None:
    recurrent, drop_in = Recurrent("LSTM", INPUT, HIDDEN), DropInLSTM(INPUT, HIDDEN)
    (way,) = recurrent.ways
    with torch.no_grad():
        drop_in.weight_ih_l0.copy_(way.way().parameters["W"])
        drop_in.weight_hh_l0.copy_(way.way().parameters["U"])
        drop_in.bias_ih_l0.copy_(way.way().parameters["b"])
        drop_in.bias_hh_l0.zero_()
    x = torch.randn(STEPS, 1, INPUT, generator=torch.manual_seed(4))
    ours, theirs = flow_of_layer(recurrent, x).tracks[0], flow_of_layer(drop_in, x).tracks[0]
    assert theirs.logs == pytest.approx(ours.logs, abs=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu", "linear", "prelu", "maxout"])
def test_the_bound_is_lambda_sigma_and_holds(activation: str) -> None:
    case = Case(SimpleRNN(activation))
    track = case.track()
    bound = step_bound(track)
    assert bound is not None
    if activation in ("tanh", "sigmoid", "relu", "linear"):
        sigma = float(torch.linalg.svdvals(track.parameters["U"].detach())[0])
        assert bound == pytest.approx((0.25 if activation == "sigmoid" else 1) * sigma, rel=1e-12)
    for distance, log in enumerate(decay(track, track.rows[0]).whole):
        assert log <= distance * math.log(bound) + 1e-9


def test_cells_without_a_bound_say_so() -> None:
    without = {name for name, make in CELLS.items() if step_bound(Case(make()).track()) is None}
    assert without == {*CELLS} - {"SimpleRNN", "RecurrentPerceptron", "LeakyRNN"}


def test_the_spectral_radius_stands_beside_the_largest_singular_value() -> None:
    (spectrum,) = flow_of_cell("SimpleRNN", FreshNetwork(hidden_size=4, steps=3)).tracks[0].spectra
    assert (spectrum.singular, spectrum.radius) == pytest.approx((1, 1), abs=1e-12)  # orthogonal
    case = Case(SimpleRNN())
    matrix = case.track().parameters["U"].detach().numpy()
    import numpy as np

    from ensue.diagnose.flow import spectra

    (of_step,) = spectra(case.track())
    assert of_step.singular == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-12)
    assert of_step.radius == pytest.approx(abs(np.linalg.eigvals(matrix)).max(), rel=1e-12)


GATES = {
    "SimpleRNN": [], "RecurrentPerceptron": [], "LeakyRNN": [], "MinimalGated": ["u"],
    "MGU": ["u"], "GRU": ["r", "z"], "GRUResetBefore": ["r", "z"],
    "GRUGateThroughReset": ["r", "u"], "LSTM": ["i", "f", "o"], "LSTM1997": ["i", "o"],
    "PeepholeLSTM": ["i", "f", "o"], "CoupledLSTM": ["f", "o"], "LayerNormLSTM": ["i", "f", "o"],
    "QRNN": ["f", "o"], "SRU": ["f", "r"], "MinGRU": ["z"], "MinLSTM": ["f", "i"],
}  # fmt: skip


def test_gates_are_found_in_the_graph() -> None:
    assert {n: [g.name for g in gate_flows(Case(CELLS[n]()).track())] for n in CELLS} == GATES
    assert [gate.name for gate in gate_flows(Case(TwoRates()).track())] == ["g"]


def test_gates_and_the_shortcut_are_those_of_the_equations() -> None:
    """h' = (1 − u)*h + u*n: u_k Π (1 − u_j), with u by hand."""
    case = Case(CELLS["GRUGateThroughReset"](), rows=1)
    track = case.track()
    W, U, b = (track.parameters[n].detach().chunk(3) for n in "WUb")
    h, gates = torch.zeros(HIDDEN, dtype=torch.float64), []
    for x in case.x[:, 0]:
        r = (W[0] @ x + U[0] @ h + b[0]).sigmoid()
        u = (W[1] @ x + U[1] @ (r * h) + b[1]).sigmoid()
        n = (W[2] @ x + U[2] @ (r * h) + b[2]).tanh()
        h = (1 - u) * h + u * n
        gates.append(u)
    update = gate_flows(track)[1]
    assert update.mean == pytest.approx([float(u.mean()) for u in gates], abs=1e-12)
    (shortcut,) = shortcuts(track)
    assert (shortcut.part, shortcut.equation) == ("h", "u_k Π (1−u)_j")
    for k in range(STEPS):
        left = gates[k]
        for u in gates[k + 1 :]:
            left = left * (1 - u)
        assert shortcut.arriving[k] == pytest.approx(float(left.mean()), abs=1e-12)


@every_cell
def test_the_regulariser_is_its_formula(name: str) -> None:
    case = Case(TABLE[name]())
    track = case.track()
    row, total = track.rows[0], 0.0
    for t in range(STEPS):
        old = tuple(part[t : t + 1] for part in row.old)
        sizes = [part.shape[1] for part in old]
        bound = track.cell.on_tensors(track.parameters)

        def step(flat: Tensor, t: int = t, sizes: list[int] = sizes, bound: Any = bound) -> Tensor:
            parts = torch.split(flat[None], sizes, 1)
            new = as_tuple(bound.step(row.x[t : t + 1], *parts))
            return torch.cat([n.expand(1, s) for n, s in zip(new, sizes, strict=True)], 1)[0]

        delta = row.gradient[t]
        jacobian = torch.autograd.functional.jacobian(step, torch.cat(old, 1)[0])
        if delta.norm() > 0:
            total += float((1 - (delta @ jacobian).norm() / delta.norm()) ** 2)
    assert float(preserving(track, row).detach()) == pytest.approx(total, rel=1e-9)


def test_the_regularisers_gradient_holds_delta_and_states_constant() -> None:
    """Against finite differences of the formula with δ and states as they were."""
    case = Case(CELLS["GRU"]())
    tracks = case.look().passages[0].tracks
    (way,) = case.layer.ways
    weight = way.way().parameters["U"]
    (slope,) = torch.autograd.grad(omega(tracks), weight)
    for at in ((0, 0), (4, 2), (8, 1)):
        values = []
        for step in (1e-6, -1e-6):
            with torch.no_grad():
                weight[at] += step
                values.append(float(omega(tracks)))
                weight[at] -= step
        assert float(slope[at]) == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-5)


def test_a_step_without_gradient_is_left_out_of_the_regulariser() -> None:
    network = FreshNetwork(hidden_size=3, steps=4, cost="last")
    flow = flow_of_cell("SimpleRNN", network, FlowSettings(updates=2, rows=1))
    assert flow.regularised is not None
    assert math.isfinite(flow.regularised.before)


def test_the_regulariser_lengthens_the_reach_and_clipping_shortens_the_gradient() -> None:
    network = FreshNetwork(hidden_size=12, steps=40)
    flow = flow_of_cell("SimpleRNN", network, FlowSettings(rows=1, clip=0.01, updates=12))
    assert flow.regularised is not None
    assert flow.clipping is not None
    assert flow.regularised.after < flow.regularised.before
    (logs,) = flow.regularised.decays.values()
    assert reach_of(logs) > flow.tracks[0].reach
    assert (flow.clipping.before > 0.01, flow.clipping.after) == (True, 0.01)


def test_the_clipped_gradient_is_that_of_the_mean_cost() -> None:
    case = Case(SimpleRNN())
    slopes = torch.autograd.grad(case.cost() / (2 * STEPS), list(case.probe.parameters()))
    norm = math.sqrt(sum(float((gradient**2).sum()) for gradient in slopes))
    from ensue.diagnose import flow_of

    clipping = flow_of(case.probe, case.cost, targets=2 * STEPS).clipping
    assert clipping is not None
    assert clipping.before == pytest.approx(norm, rel=1e-9)


def test_states_of_linear_and_relu_units_explode_where_tanh_stays_bounded() -> None:
    network = FreshNetwork(hidden_size=9, steps=60, gain=1.5)
    norms = flow_of_cell("SimpleRNN", network, FlowSettings(rows=1)).tracks[0].forward
    assert norms["linear"][-1] > 1e6
    assert norms["relu"][-1] > 1e6
    assert max(norms["tanh"]) <= math.sqrt(9)


def test_far_beyond_what_a_number_holds() -> None:
    track = flow_of_cell(
        SimpleRNN("linear"),
        FreshNetwork(hidden_size=3, steps=400, gain=10),
        FlowSettings(steps=400),
    ).tracks[0]
    assert track.logs[-1] == pytest.approx(400 * math.log(10), rel=1e-9)
    assert "e+400" in power(track.logs[-1])
    json.dumps(as_json_finite(as_json(flow_of_cell("GRU", FreshNetwork(hidden_size=2, steps=2)))))


def as_json_finite(value: Any) -> Any:
    from ensue.files.atomic_folder import finite

    return finite(value)


# --- planted -------------------------------------------------------------------------------

OPEN = {"LSTM": {"f": 4}, "GRU": {"z": 5}, "MGU": {"u": -5}, "CoupledLSTM": {"f": 5},
        "MinimalGated": {"u": -5}}  # fmt: skip
FORGETTING = {"LSTM": {"f": -3}, "GRU": {"z": -2}, "MGU": {"u": 2}, "CoupledLSTM": {"f": -3},
              "MinimalGated": {"u": 2}}  # fmt: skip
STUCK = {"LSTM": {"f": 20, "i": -20}, "GRU": {"z": 20}, "MGU": {"u": -20},
         "CoupledLSTM": {"f": 20}, "MinimalGated": {"u": -20}}  # fmt: skip
PLANTED = {
    "healthy": lambda cell: FreshNetwork(hidden_size=10, steps=50, gain=0.3, bias=OPEN[cell]),
    "vanishing": lambda cell: FreshNetwork(hidden_size=10, steps=50, gain=0.3,
                                           bias=FORGETTING[cell]),
    "exploding": lambda cell: FreshNetwork(hidden_size=10, steps=50, gain=7, scale=0.1),
    "saturated gates": lambda cell: FreshNetwork(hidden_size=10, steps=50, gain=0.5,
                                                 bias=STUCK[cell]),
}  # fmt: skip


@pytest.mark.parametrize("verdict", PLANTED)
@pytest.mark.parametrize("cell", OPEN)
def test_planted_networks_are_recognised(cell: str, verdict: str) -> None:
    flow = flow_of_cell(cell, PLANTED[verdict](cell), FlowSettings(map_steps=0))
    assert [finding.name for finding in flow.findings] == [verdict], flow.findings


@pytest.mark.parametrize(
    ("gain", "scale", "verdict"),
    [(1.0, 0.01, "healthy"), (0.5, 1.0, "vanishing"), (4.0, 0.1, "exploding")],
)
@pytest.mark.parametrize("cell", ["SimpleRNN", "LeakyRNN"])
def test_planted_networks_without_gates(cell: str, gain: float, scale: float, verdict: str) -> None:
    network = FreshNetwork(hidden_size=40, steps=50, gain=gain, scale=scale)
    (finding,) = flow_of_cell(cell, network, FlowSettings(map_steps=0)).findings
    assert finding.name == verdict
    if cell == "SimpleRNN" and verdict == "vanishing":
        assert "it must, since λσ_max = 0.5 < 1" in finding.why


# --- runs ----------------------------------------------------------------------------------


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


RECURRENT = {
    "classify-words": ["encoder"],
    "label-previous": ["embed.features.1.reader", "encoder", "output.joint"],
    "language-recurrent": ["recurrent layers"],
    "translate-attention": ["encoder", "decoder"],
    "forecast-segment": ["recurrent layers", "recurrent layers, call 2"],
    "caption": ["decoder"],
}


@pytest.mark.parametrize("name", RECURRENT)
def test_every_task_with_cells_has_a_flow(name: str, ensue: Ensue, tmp_path: Path) -> None:
    shutil.copytree(toy_run(name), tmp_path / name)
    openings = tmp_path / name / "test-openings.jsonl"
    before = openings.read_bytes()
    code, out, err = ensue("flow", f"{name}/run", "--json", "--updates", "1")
    assert code == 0, err
    facts = json.loads(out)
    assert [passage["name"] for passage in facts["passages"]] == RECURRENT[name]
    assert facts["findings"]
    assert facts["regularised"]["updates"] == 1
    assert openings.read_bytes() == before, "the test part stays closed"


def test_a_models_cost_and_gradient_are_those_of_its_network() -> None:
    from ensue import LanguageModel

    text = ["the cat sat on the mat", "a dog sat on the log"] * 20
    small = {"hidden_size": 3, "embedding_size": 3, "layers": 2, "columns": 2, "steps": 5}
    model = LanguageModel(model=small, train={"epochs": 1}).fit(text)
    flow = flow_of_model(model, text, FlowSettings(rows=1, steps=12))
    assert [track.name for track in flow.tracks] == ["layer 1", "layer 2"]
    assert flow.tracks[0].steps == 12, "pieces of a stream follow each other"
    network = model.networks[0].double()
    part = model.reader.labelled(text)
    source = model.task.source(part, model, model.train.seed)
    carried: Any = {}
    total = 0.0
    for k in range(3):
        cost, carried = network(as_float64(source.batch([k])), carried)
        total += float(cost.detach())
    assert flow.cost == pytest.approx(total, rel=1e-9)


OWN = """
from ensue.cells import Cell
from ensue.equations import Matrix, Vector, tanh


class Mine(Cell):
    W, U, b = Matrix("x"), Matrix("h"), Vector()

    def step(self, x, h):
        return tanh(self.W @ x + self.U @ h + self.b)
"""


def test_a_run_with_a_cell_of_ones_own_needs_trust(ensue: Ensue, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "data.tsv").write_text(
        "text\tlabel\n" + "".join(f"a b c {k}\t{'xy'[k % 2]}\n" for k in range(60))
    )
    small = ["--set", "model.hidden_size=3", "--set", "model.embedding_size=3", "--epochs", "1"]
    code, _, err = ensue("train", "data.tsv", "--text", "text", "--label", "label", "--run", "r",
                         "--cell", "mine.py:Mine", *small)  # fmt: skip
    assert code == 0, err
    code, _, err = ensue("flow", "r")
    assert code == 2
    assert "--trust-cell" in err
    code, out, err = ensue("flow", "r", "--trust-cell", "--updates", "0")
    assert code == 0, err
    assert "Mine of 3" in out
    code, out, err = ensue("flow", "--cell", "mine.py:Mine", "--hidden-size", "4", "--steps", "5")
    assert code == 0, err
    assert "Mine of 4" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "flow: expected a run folder, or --cell such as GRU; got none"),
        (["run", "--cell", "GRU"], "got both"),
        (["--cell", "GRUU"], "did you mean 'GRU'?"),
        (["--cell", "GRU", "--bias", "f=1"], "unknown gate of GRU 'f'"),
        (["--cell", "GRU", "--activation", "relu"], "--activation: expected --cell SimpleRNN"),
        (["--cell", "GRU", "--cost", "some"], "unknown cost 'some'"),
        (["--cell", "GRU", "--init", "zeros"], "unknown initialisation 'zeros'"),
        (["--cell", "GRU", "--data", "a.txt"], "--data: expected a run folder with it"),
        (["--cell", "GRU", "--clip", "-1"], "clip: expected a norm > 0, got -1"),
        (["none"], "there is no run here"),
    ],
)
def test_wrong_words(words: list[str], message: str, ensue: Ensue) -> None:
    code, _, err = ensue("flow", *words)
    assert code == 2
    assert message in err


def test_a_model_without_cells_is_refused(ensue: Ensue, tmp_path: Path) -> None:
    shutil.copytree(toy_run("table-class"), tmp_path / "table-class")
    shutil.copytree(toy_run("language-window"), tmp_path / "language-window")
    code, _, err = ensue("flow", "table-class/run")
    assert (code, "expected a model with recurrent layers, got 8 units, relu" in err) == (2, True)
    code, _, err = ensue("flow", "language-window/run")
    assert "; --set model.family=recurrent trains one" in err


# --- seen ----------------------------------------------------------------------------------


def test_the_page_is_whole_and_says_what_was_found() -> None:
    flow = flow_of_cell("LSTM", FreshNetwork(hidden_size=4, steps=8), FlowSettings(updates=1))
    page = as_page(document(flow))
    assert page.startswith("<!doctype html>")
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "What the shortcut carries to the end" in page
    assert re.search(r"<b style='color:var\(--healthy\);[^']*'>healthy</b>", page)
    assert "i_k Π f_j" in as_text(document(flow))
    assert "Gradient flow" in draw(flow)
    assert repr(flow) == as_text(document(flow))
    assert "<svg" in flow._repr_html_()


def test_settings_are_checked() -> None:
    with pytest.raises(OptionError, match="rows: expected a whole number ≥ 1, got 0"):
        FlowSettings(rows=0)
    with pytest.raises(OptionError, match="steps: expected a number ≥ 1, got 0"):
        FreshNetwork(steps=0)
