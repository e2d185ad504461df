"""Backpropagation through time laid open: every term against an unrolled network whose steps have
parameters of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import Ensue, commands_in
from laws import example

from ensue.cells import CELLS, SimpleRNN
from ensue.cells.cell import as_tuple
from ensue.drawing.document import as_text as document_text
from ensue.study.foundations.backprop import document as depth_document
from ensue.study.foundations.backprop import through_depth
from ensue.study.foundations.bptt_report import as_json, as_page, as_text
from ensue.study.foundations.bptt_walk import BpttWalk, TimeWalk

TABLE = {**CELLS, "own": lambda: example("your_own_cell").LateGate()}


def unrolled(walk: BpttWalk) -> tuple[list[dict[str, Any]], list[Any], list[Any]]:
    """The network as a plain loop, each step with a copy of the cell's parameters: the copies, the
    flat state after each step, and J(t) of each step that costs something."""
    copies, states, costs = [], [], []
    cell = walk.cell
    sizes = cell.state_sizes(len(walk.steps[0].x), walk.hidden_size)
    state = tuple(torch.zeros(1, size, dtype=torch.float64) for size in sizes)
    for t, step in enumerate(walk.steps, 1):
        parameters = {n: walk.parameters[n].clone().requires_grad_() for n in cell.parameters}
        copies.append(parameters)
        bound = cell.on_tensors(parameters)
        new = as_tuple(bound.step(step.x[None], *state))
        flat = torch.cat([n.expand(1, s) for n, s in zip(new, sizes, strict=True)], 1)
        states.append(flat)
        state = tuple(torch.split(flat, sizes, 1))
        weight, bias = [*walk.parameters.values()][-2:]
        z = bound.output(step.x[None], *state)[0] @ weight.t() + bias
        if walk.output == "softmax":
            cost = -(step.target * z.log_softmax(-1)).sum()
        elif walk.output == "logistic":
            cost = torch.nn.functional.binary_cross_entropy_with_logits(
                z, step.target, reduction="sum"
            )
        else:
            cost = ((z - step.target) ** 2).sum() / 2
        costs.append(cost if walk.first <= t <= walk.last else None)
    return copies, states, costs


@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize("name", TABLE)
def test_every_term_is_the_derivative_by_one_steps_own_parameters(name: str, units: int) -> None:
    output, outputs = ("linear", 1) if units == 1 else ("softmax", 2)
    walk = TimeWalk(
        TABLE[name](), steps=4, cost_at=(2, 3), hidden_size=units, input_size=2, output=output,
        outputs=outputs,
    ).walked()  # fmt: skip
    copies, states, costs = unrolled(walk)
    terms = {(term.t, term.k): term for term in walk.terms}
    assert set(terms) == {(t, k) for t in (2, 3) for k in range(1, t + 1)}
    for (t, k), term in terms.items():
        names = list(copies[k - 1])
        leaves = [*copies[k - 1].values(), states[k - 1]]
        *slopes, delta = torch.autograd.grad(
            costs[t - 1], leaves, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        for parameter, slope in zip(names, slopes, strict=True):
            assert torch.allclose(term.by_parameter[parameter], slope, atol=1e-12), parameter
        assert torch.allclose(term.delta, delta[0], atol=1e-12)
    assert walk.difference < 1e-12
    assert [step.cost is None for step in walk.steps] == [True, False, False, True]


def test_the_golden_numbers() -> None:
    walk = TimeWalk(
        SimpleRNN(), steps=5, weights=[0.5, 0.8, 0, 1.2, 0], x=[1, -1, 0.5, 2, -0.3],
        y=[0.2, 0.1, -0.4, 0.3, 0],
    ).walked()  # fmt: skip
    assert walk.cost == pytest.approx(0.6343696, abs=5e-8)
    sums = [float(walk.gradient[name].sum()) for name in ("W", "U", "V")]
    assert sums == pytest.approx([1.3525651, 0.5788145, 1.0705042], abs=5e-8)


def test_v_affects_every_cost_and_not_the_last_alone() -> None:
    walks = [TimeWalk(SimpleRNN(), steps=3, cost_at=(t, t)).walked() for t in (1, 2, 3)]
    assert all(bool(walk.gradient["V"].any()) for walk in walks)


def test_one_update_lowers_the_cost_along_the_gradient() -> None:
    walk = TimeWalk(SimpleRNN(), steps=4, rate=1e-6, output="logistic").walked()
    squares = sum(float((gradient**2).sum()) for gradient in walk.gradient.values())
    assert walk.cost - walk.cost_after == pytest.approx(1e-6 * squares, rel=1e-4)
    for name, parameter in walk.updated.items():
        assert torch.equal(parameter, walk.parameters[name] - 1e-6 * walk.gradient[name])


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


def test_the_command(ensue: Ensue, tmp_path: Path) -> None:
    words = ["backprop", "--cell", "GRU", "--steps", "3", "--cost", "2:3", "--hidden-size", "2"]
    code, out, err = ensue(*words, "--html", "walk.html", "--picture", "walk.svg")
    assert code == 0, err
    assert "J(3) ← h3 ← h2 ← h1" in out
    assert "∂J(t)/∂U_n: terms by t (downwards) and k (to the right)" in out
    assert "θ ← θ − 0.1·∂J/∂θ" in out
    page = (tmp_path / "walk.html").read_text()
    assert "Backpropagation through time, term by term" in page
    assert page.count("<svg") == 1 + 10  # the network, and a table for each block
    code, out, _ = ensue(*words, "--json")
    walk_facts = json.loads(out)
    pairs = {(term["t"], term["k"]) for term in walk_facts["terms"]}
    assert pairs == {(t, k) for t in (2, 3) for k in range(1, t + 1)}
    total = sum(torch.tensor(term["terms"]["U"]) for term in walk_facts["terms"])
    assert torch.allclose(total, torch.tensor(walk_facts["gradient"]["U"]), atol=1e-12)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cost", "squares"], "expected the steps whose outputs cost, such as 2:4, got"),
        (["--cost", "3:2"], "expected steps t_min:t_max between 1 and 4, such as 1:4, got 3:2"),
        (["--cost", "2:9"], "between 1 and 4"),
        (["--hidden-size", "3"], "hidden_size: expected 1 or 2 units, got 3"),
        (["--steps", "99"], "steps: expected 1 to 12, got 99"),
        (["--output", "softmax"], "outputs: expected two or more with softmax, got 1"),
        (["--output", "relu"], "unknown output 'relu'"),
        (["--weights", "1,2"], "weights: expected 5 numbers, got 2"),
        (["--x", "1"], "x: expected 4 numbers, got 1"),
        (["--output", "logistic", "--y", "1,2,3,4"], "y: expected probabilities from 0 to 1"),
        (["--depth", "3"], "--cell and --depth: expected one of them, got both"),
    ],
)  # fmt: skip
def test_wrong_words(words: list[str], message: str, ensue: Ensue) -> None:
    code, _, err = ensue("backprop", "--cell", "SimpleRNN", *words)
    assert code == 2
    assert message in err


def test_a_cell_may_have_parameters_called_like_the_outputs() -> None:
    walk = TimeWalk(TABLE["own"]()).walked()
    assert [*walk.parameters][-2:] == ["V_y", "c_y"]
    assert "forward: ŷ = V_y·h + c_y" in as_text(walk)


def test_text_page_and_json_show_the_same_sums() -> None:
    walk = TimeWalk(SimpleRNN(), steps=2).walked()
    total = f"{float(walk.gradient['U'].sum()):z.6f}".replace("-", "−")
    assert total in as_text(walk)
    assert total in as_page(walk)
    assert as_json(walk)["difference"] == walk.difference


# --- depth -----------------------------------------------------------------------------------


def test_delta_vanishes_through_logistic_layers_alone() -> None:
    depth = through_depth(10)
    ratio = {name: norms[0] / norms[-1] for name, norms in depth.norms.items()}
    assert ratio["logistic"] < 1e-3
    assert 0.05 < ratio["tanh"] < 20
    assert 0.05 < ratio["relu"] < 20
    assert "logistic" in document_text(depth_document(depth))


def test_depth_is_a_command(ensue: Ensue, tmp_path: Path) -> None:
    code, out, _ = ensue("backprop", "--depth", "4", "--html", "depth.html", "--picture", "d.svg")
    assert code == 0
    assert out.splitlines()[2].split() == ["layer", "4", "3", "2", "1", "first", "/", "last"]
    assert "<svg" in (tmp_path / "depth.html").read_text()
    code, out, _ = ensue("backprop", "--depth", "2", "--json")
    assert set(json.loads(out)["norms"]) == {"logistic", "tanh", "relu"}
