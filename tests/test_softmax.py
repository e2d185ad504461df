"""The cost of a softmax over many classes: values, gradients, pieces, the ends of the range."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from parity import needs_native
from torch import Tensor
from torch.nn.functional import cross_entropy, linear
from torch.testing import assert_close

from ensue.engine import softmax
from ensue.engine.native import softmax as compiled
from ensue.engine.softmax import softmax_cost, softmax_costs
from ensue.errors import OptionError, ShapeError


def drawn(rows: int, width: int, classes: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(rows + classes)
    h, weight, bias = (
        torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()
        for shape in ((rows, width), (classes, width), (classes,))
    )
    return h, weight, bias, torch.randint(classes, (rows,), generator=generator)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 2e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize(
    ("rows", "width", "classes"),
    [(5, 3, 2), (33, 7, 50), (70, 37, 1001), (130, 16, 250)],
)
def test_it_is_torch_s_cross_entropy(
    rows: int,
    width: int,
    classes: int,
    dtype: torch.dtype,
    close: float,
    smoothing: float,
    native: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not native:
        monkeypatch.setattr(softmax, "why_not_native", lambda *_: "not here")
    monkeypatch.setattr(softmax, "SCORES", 10 * classes)  # several pieces, the last one short
    monkeypatch.setattr(compiled, "SCORES", 40 * classes)
    h, weight, bias, targets = drawn(rows, width, classes, dtype)
    cost = softmax_cost(h, weight, bias, targets, smoothing)
    expected = cross_entropy(
        linear(h, weight, bias), targets, reduction="sum", label_smoothing=smoothing
    )
    assert_close(cost, expected, rtol=close, atol=close)
    inputs = [h, weight, bias]
    gradients = torch.autograd.grad(3 * cost, inputs, retain_graph=True)
    assert_close(gradients, torch.autograd.grad(3 * cost, inputs), rtol=0, atol=0)  # a second time
    assert_close(gradients, torch.autograd.grad(3 * expected, inputs), rtol=close, atol=close)
    alone = softmax_costs(h, weight, bias, targets)
    assert_close(
        alone,
        cross_entropy(linear(h, weight, bias), targets, reduction="none").detach(),
        rtol=close,
        atol=close,
    )


def test_inside_autocast_products_are_in_bfloat16() -> None:
    h, weight, bias, targets = drawn(33, 7, 50, torch.float32)
    exact = softmax_cost(h, weight, bias, targets)
    with torch.autocast("cpu", torch.bfloat16):
        cost = softmax_cost(h.bfloat16(), weight, bias, targets)
        alone = softmax_costs(h, weight, bias, targets)
    assert cost.dtype == alone.dtype == torch.float32
    assert_close(cost, exact, rtol=1e-2, atol=0)
    assert cost != exact
    assert_close(alone.sum(), exact.detach(), rtol=1e-2, atol=0)
    inputs = [h, weight, bias]
    gradients = torch.autograd.grad(exact, inputs)
    for gradient, other in zip(torch.autograd.grad(cost, inputs), gradients, strict=True):
        assert gradient.dtype == torch.float32
        assert_close(gradient, other, rtol=0.1, atol=0.1)


def test_two_threads_do_not_meet_in_one_memory() -> None:
    cases = [drawn(64, 16, 1001, torch.float64) for _ in range(4)]
    alone = [softmax_cost(*case) for case in cases]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            assert_close(list(pool.map(lambda case: softmax_cost(*case), cases)), alone)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_the_classes(threads: int) -> None:
    inputs = drawn(100, 24, 2000, torch.float64)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        cost = softmax_cost(*inputs)
        gradients = torch.autograd.grad(cost, inputs[:3])
        again = torch.autograd.grad(softmax_cost(*inputs), inputs[:3])
    finally:
        torch.set_num_threads(before)
    expected = cross_entropy(linear(*inputs[:3]), inputs[3], reduction="sum")
    assert_close(cost, expected)
    assert_close(gradients, torch.autograd.grad(expected, inputs[:3]))
    assert all(torch.equal(one, other) for one, other in zip(gradients, again, strict=True))


def test_memory_that_is_not_contiguous() -> None:
    h, weight, bias, targets = drawn(12, 9, 30, torch.float64)
    turned = [tensor.detach().t().contiguous().t().requires_grad_() for tensor in (h, weight)]
    spread = bias.detach().repeat_interleave(2)[::2].requires_grad_()
    inputs = [*turned, spread]
    gradients = torch.autograd.grad(softmax_cost(*inputs, targets), inputs)
    assert_close(
        gradients, torch.autograd.grad(softmax_cost(h, weight, bias, targets), [h, weight, bias])
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_but_one_class_impossible(dtype: torch.dtype) -> None:
    """A bias of −∞ is a probability of 0, also for a whole block of classes."""
    h, weight, bias, _ = drawn(20, 4, 400, dtype)
    bias = bias.detach().fill_(-torch.inf)
    bias[399] = -2000  # far from what the others are compared with
    targets = torch.full((20,), 399)
    cost = softmax_cost(h, weight, bias, targets)
    assert cost.item() == 0
    assert all((gradient == 0).all() for gradient in torch.autograd.grad(cost, [h, weight]))


def test_only_what_is_asked_for() -> None:
    h, weight, _, targets = drawn(6, 4, 9, torch.float64)
    (d_h,) = torch.autograd.grad(softmax_cost(h, weight.detach(), None, targets), [h])
    expected = torch.autograd.grad(cross_entropy(h @ weight.t(), targets, reduction="sum"), [h])
    assert_close((d_h,), expected)


def test_scores_of_any_size() -> None:
    """One class certain, another impossible: no overflow, and the cost is the distance."""
    h = torch.tensor([[1.0]])
    weight = torch.tensor([[1e4], [0.0], [-1e4]])
    targets = torch.tensor([2])
    assert softmax_costs(h, weight, None, targets).item() == pytest.approx(2e4)
    assert softmax_costs(h, weight, None, torch.tensor([0])).item() == pytest.approx(0.0)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("far", [-2e4, 300.0, 3e4])
def test_scores_far_from_zero_keep_their_digits(far: float, smoothing: float) -> None:
    """What all scores have in common leaves cost and gradient as they are."""
    z = torch.tensor([[0.0, 0.5, -1.0, 2.0]])
    weight = (z + far).t().contiguous().requires_grad_()
    h, targets = torch.ones(1, 1), torch.tensor([1])
    cost = softmax_cost(h, weight, None, targets, smoothing)
    exact = (weight.detach().double() - far).t().requires_grad_()
    expected = cross_entropy(exact, targets, label_smoothing=smoothing)
    assert cost.item() == pytest.approx(expected.item(), rel=1e-5)
    (gradient,), (true,) = torch.autograd.grad(cost, weight), torch.autograd.grad(expected, exact)
    assert_close(gradient[:, 0].double(), true[0], rtol=1e-5, atol=1e-6)


def test_without_gradients_none_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[Any] = []
    whole = softmax._computed
    monkeypatch.setattr(
        softmax,
        "_computed",
        lambda *arguments: requests.append(list(arguments[-1])) or whole(*arguments),
    )
    h, weight, bias, targets = drawn(6, 4, 9, torch.float32)
    with torch.no_grad():
        softmax_cost(h, weight, bias, targets)
    softmax_cost(h.detach(), weight, None, targets)
    assert requests == [[False, False, False], [False, True, False]]


@needs_native
def test_a_default_device_is_not_ours() -> None:
    """Tensors that are made on the way stand where the given ones do."""
    inputs = drawn(6, 4, 9, torch.float32)
    torch.set_default_device("meta")
    try:
        cost = softmax_cost(*inputs)
    finally:
        torch.set_default_device(None)
    assert_close(cost, softmax_cost(*inputs))


def test_nan_comes_through() -> None:
    weight = torch.zeros(20, 1)
    weight[13] = float("nan")
    assert softmax_costs(torch.ones(1, 1), weight, None, torch.tensor([2])).isnan().all()


def test_no_rows() -> None:
    h, weight, bias, targets = drawn(0, 4, 9, torch.float32)
    cost = softmax_cost(h, weight, bias, targets)
    assert cost.item() == 0
    assert torch.autograd.grad(cost, [weight])[0].abs().max() == 0
    assert softmax_costs(h, weight, bias, targets).shape == (0,)


def test_smoothing_out_of_range_is_named() -> None:
    with pytest.raises(OptionError, match=r"smoothing: expected a number from 0 to 1, got 1\.5"):
        softmax_cost(*drawn(2, 4, 9, torch.float32), 1.5)


def test_targets_out_of_range_are_named() -> None:
    h, weight, bias, _ = drawn(2, 4, 9, torch.float32)
    with pytest.raises(ShapeError) as caught:
        softmax_cost(h, weight, bias, torch.tensor([0, 9]))
    assert str(caught.value) == "targets: expected class numbers from 0 to 8, got 0 to 9"


def test_shapes_are_named() -> None:
    h, weight, bias, targets = drawn(2, 4, 9, torch.float32)
    with pytest.raises(
        ShapeError, match=r"expected h \(rows, width\) and weight \(classes, width\)"
    ):
        softmax_cost(h[:, :3], weight, bias, targets)
    with pytest.raises(
        ShapeError, match=r"targets: expected 2 class numbers \(int64\), got \(1,\)"
    ):
        softmax_cost(h, weight, bias, targets[:1])
    assert bias is not None
    for wrong in (bias[:2], bias.double()):
        with pytest.raises(
            ShapeError, match=r"bias: expected 9 numbers of torch.float32, like weight, got \("
        ):
            softmax_cost(h, weight, wrong, targets)
    with pytest.raises(ShapeError, match="h: expected cpu, the device of weight, got meta"):
        softmax_cost(h.to("meta"), weight, bias, targets)
