"""The demos: their numbers are true, their words plain where no person reads them."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import torch
from warm import Warm

from ensue import cli
from ensue.cells import GRU, LSTM, Cell, SimpleRNN, as_tuple
from ensue.demo import cell as demo
from ensue.layers import Recurrent


def test_the_four_gradients_agree() -> None:
    by_method = demo.gradients()
    assert list(by_method) == [
        "autograd of the loop",
        "derivative graph",
        "RTRL",
        "finite differences",
    ]
    reference = by_method.pop("autograd of the loop")
    for way, gradients in by_method.items():
        assert gradients.keys() == reference.keys() == {"W", "U", "b", "p"}
        for name, gradient in gradients.items():
            apart = (gradient - reference[name]).abs().max().item()
            assert apart < (1e-8 if way == "finite differences" else 1e-13), (way, name)
            assert reference[name].abs().max() > 0.1


@pytest.mark.parametrize(("cell", "keep"), [(SimpleRNN(), 0.0), (LSTM(), 0.0), (GRU(), 3.0)])
def test_the_memory_is_that_of_autograd(
    cell: Cell, keep: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "WIDE", 5)
    monkeypatch.setattr(demo, "WARM_UP", 2)
    monkeypatch.setattr(demo, "FARTHEST", 4)
    norms, largest = demo.reach(cell, keep)
    torch.manual_seed(1)
    layer = Recurrent(cell, 5, 5, init="standard").double().requires_grad_(False)
    parameters = layer.ways[0].way().parameters
    if keep:
        parameters["b"][5:10] += keep  # r, z, n
    bound = cell.on_tensors(parameters)
    x = torch.randn(6, 1, 5, dtype=torch.float64)

    def steps(state: torch.Tensor, first: int, last: int) -> torch.Tensor:
        parts = state.view(1, -1).chunk(len(cell.parts), 1)
        for t in range(first, last):
            parts = as_tuple(bound.step(x[t], *parts))
        return torch.cat(parts, 1)[0]

    start = steps(torch.zeros(5 * len(cell.parts), dtype=torch.float64), 0, 2)
    for distance, norm in enumerate(norms, start=1):
        whole = torch.autograd.functional.jacobian(
            lambda s, last=2 + distance: steps(s, 2, last), start
        )
        assert norm == pytest.approx(torch.linalg.matrix_norm(whole, 2).item(), rel=1e-9)
    assert largest == pytest.approx(1.0)


def test_no_simple_network_exceeds_its_bound() -> None:
    norms, largest = demo.reach(SimpleRNN())
    assert len(norms) == demo.FARTHEST
    assert all(norm <= largest**k * (1 + 1e-9) for k, norm in enumerate(norms, start=1))


def test_a_chart_is_as_high_as_its_logarithms() -> None:
    assert demo.chart([1.0, 1e-5, 1e-10, 0.0, 7.0], height=2) == ["█   █", "██  █"]
    assert demo.chart([10**-2.5], height=1) == ["▆"]


def test_the_demo_of_a_cell_in_a_pipe_is_plain(tmp_path: Path, warm: Warm) -> None:
    run = warm.run(["-m", "ensue", "demo", "cell", "--out", "pictures"], tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert "\x1b" not in run.stdout
    for words in (
        "c' = f*c + i*g",
        "Largest difference from torch's autograd",
        "How far back a fresh cell remembers",
        "pictures/peephole.svg",
    ):
        assert words in run.stdout
    assert max(map(len, run.stdout.splitlines())) <= 88
    for name in ("peephole.svg", "unfolded.svg"):
        ElementTree.fromstring((tmp_path / "pictures" / name).read_text(encoding="utf-8"))


def test_a_folder_that_cannot_be_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").write_text("a file")
    for slow in ("_say_gradients", "_say_memory"):
        monkeypatch.setattr(demo, slow, lambda console: None)
    with pytest.raises(SystemExit) as ending:
        cli.main(["demo", "cell", "--out", str(tmp_path / "taken")])
    assert ending.value.code == 2
    assert capsys.readouterr().err == (
        f"OptionError: {tmp_path / 'taken'} cannot be written: File exists; "
        "name another folder with --out\n"
    )
