"""Stepping equals the whole: a layer one step at a time, natively and without a compiler."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from laws import CELL_ROWS, Row
from torch import Tensor

import ensue.layers.stepper as stepper_module
from ensue.cells import GRU, LSTM, Residual, SimpleRNN
from ensue.errors import OptionError, ShapeError
from ensue.layers import Recurrent


@pytest.fixture(params=["native", "eager"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Native where there is a compiler; eager as if there were none."""
    if request.param == "eager":
        monkeypatch.setattr(stepper_module, "why_not_native", lambda *_: "no compiler")
    return str(request.param)


def steps(layer: Recurrent, x: Tensor) -> tuple[Tensor, object]:
    stepper = layer.stepper(x.shape[1])
    state, outputs = stepper.start(), []
    for frame in x:
        y, state = stepper.step(frame.contiguous(), state)
        outputs.append(y)
    return torch.stack(outputs), state


@pytest.mark.parametrize("row", CELL_ROWS, ids=lambda row: row.name)
def test_stepping_is_the_whole(row: Row, way: str) -> None:
    torch.manual_seed(0)
    layer = Recurrent(row.build(), row.input_size, row.hidden_size, initial="learned")
    layer = layer.double().eval()
    x = torch.randn(5, 3, row.input_size, dtype=torch.float64)
    whole, end = layer(x)
    y, state = steps(layer, x)
    torch.testing.assert_close(y, whole, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(state, end, rtol=1e-10, atol=1e-12)


def test_rows_may_be_reordered_between_steps(way: str) -> None:
    layer = Recurrent([LSTM(), Residual(GRU())], 6, 6).eval()
    x, order = torch.randn(4, 3, 6), torch.tensor([2, 0, 0])
    stepper = layer.stepper(3)
    _, state = stepper.step(x[0], stepper.start())
    chosen = tuple(tuple(part[order] for part in parts) for parts in state)
    y, _ = stepper.step(x[1], chosen)
    alone = layer(torch.stack([x[0][order], x[1]]))[0][1]
    torch.testing.assert_close(y, alone, rtol=1e-5, atol=1e-6)


def test_a_stepper_keeps_the_weights_it_was_made_with() -> None:
    layer = Recurrent(SimpleRNN(), 4, 4).eval()
    stepper, x = layer.stepper(1), torch.randn(1, 4)
    before, _ = stepper.step(x, stepper.start())
    with torch.no_grad():
        layer.forwards[0].W.zero_()
    after, _ = stepper.step(x, stepper.start())
    torch.testing.assert_close(before, after)


@pytest.mark.parametrize("threads", [4])
def test_threads_share_a_stepper(way: str, threads: int) -> None:
    torch.manual_seed(3)
    layer = Recurrent([LSTM(), GRU()], 16, 64).eval()
    stepper = layer.stepper(8)
    sequences = torch.randn(4 * threads, 12, 8, 16)

    def walked(x: Tensor) -> Tensor:
        state, outputs = stepper.start(), []
        for frame in x:
            y, state = stepper.step(frame, state)
            outputs.append(y.clone())
        return torch.stack(outputs)

    alone = [walked(x) for x in sequences]
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(5):
            for together, by_itself in zip(pool.map(walked, sequences), alone, strict=True):
                assert torch.equal(together, by_itself)


@pytest.mark.parametrize("engine", ["native", "eager"])
def test_threads_share_a_layer(engine: str) -> None:
    torch.manual_seed(4)
    layer = Recurrent(GRU(), 12, 40, engine=engine).eval()
    inputs = [torch.randn(9, rows, 12) for rows in (1, 3, 8, 2) * 4]
    with torch.no_grad():
        alone = [layer(x)[0] for x in inputs]
    with ThreadPoolExecutor(16) as pool:
        for y, expected in zip(
            pool.map(lambda x: layer(x)[0].detach(), inputs), alone, strict=True
        ):
            torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-6)


def test_both_directions_cannot_step() -> None:
    with pytest.raises(OptionError, match="stepping: a bidirectional layer needs the whole"):
        Recurrent(GRU(), 4, 4, bidirectional=True).stepper()


def test_a_wrong_shape_is_named() -> None:
    stepper = Recurrent(GRU(), 4, 5).stepper(2)
    if type(stepper._steps[0]).__name__ == "EagerStep":
        pytest.skip("no compiler: the step is eager")
    with pytest.raises(
        ShapeError, match=r"step: x: expected \(2, 4\) of torch.float32, got \(1, 4\)"
    ):
        stepper.step(torch.zeros(1, 4), stepper.start())
