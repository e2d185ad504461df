"""Attention: scores against NumPy, weights over what is real, views instead of copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.testing import assert_close

from ensue.errors import OptionError, ShapeError
from ensue.layers.attention import SCORES, Attention, Memory

Array = NDArray[np.float64]
ROWS, POSITIONS, TIME, QUERY, WIDTH = 3, 5, 4, 6, 7
LENGTHS = (5, 2, 3)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    drawn = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=drawn)


def real_of(lengths: tuple[int, ...] = LENGTHS, positions: int = POSITIONS) -> Tensor:
    return torch.arange(positions) < torch.tensor(lengths)[:, None]


def attention(score: str, **options: Any) -> Attention:
    torch.manual_seed(1)
    width = QUERY if score == "dot" and not options.get("project") else WIDTH
    return Attention(score, QUERY, width, **options).double()


def memory_of(layer: Attention, real: Tensor | None = None) -> Memory:
    real = real_of() if real is None else real
    return layer.prepare(numbers(*real.shape, layer.memory_size), real)


def additive(w: dict[str, Array], s: Array, h: Array) -> float:
    hidden = np.tanh(w["of_query.weight"] @ s + w["of_memory.weight"] @ h)
    return float(w["v"] @ hidden)


def concat(w: dict[str, Array], s: Array, h: Array) -> float:
    return float(w["v"] @ np.tanh(w["joint.weight"] @ np.concatenate([s, h])))


REFERENCE: dict[str, Callable[[dict[str, Array], Array, Array], float]] = {
    "additive": additive,
    "concat": concat,
    "dot": lambda w, s, h: float(s @ h),
    "general": lambda w, s, h: float(s @ w["map.weight"] @ h),
}


def test_every_score_has_a_reference() -> None:
    assert REFERENCE.keys() == SCORES.keys()


@pytest.mark.parametrize("score", SCORES)
def test_scores_and_contexts_agree_with_numpy(score: str) -> None:
    layer = attention(score)
    memory, queries = memory_of(layer), numbers(TIME, ROWS, QUERY, seed=2)
    weights = {n: p.detach().numpy() for n, p in layer.score.named_parameters()}
    context, alpha = layer(queries, memory)
    scores_of_layer = layer.score(queries.transpose(0, 1), memory.keys).detach().numpy()
    for row, length in enumerate(LENGTHS):
        h = memory.values[row].detach().numpy()
        for t in range(TIME):
            s = queries[t, row].numpy()
            scores = np.array([REFERENCE[score](weights, s, one) for one in h])
            np.testing.assert_allclose(scores_of_layer[row, t], scores, rtol=1e-10, atol=1e-12)
            e = np.exp(scores[:length] - scores[:length].max())
            expected = np.zeros(POSITIONS)
            expected[:length] = e / e.sum()
            np.testing.assert_allclose(alpha[t, row].detach().numpy(), expected, atol=1e-12)
            np.testing.assert_allclose(context[t, row].detach().numpy(), expected @ h, atol=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_weights_are_over_what_is_real(score: str) -> None:
    layer = attention(score)
    _, alpha = layer(100 * numbers(TIME, ROWS, QUERY, seed=2), memory_of(layer))
    assert_close(alpha.sum(-1), torch.ones(TIME, ROWS, dtype=torch.float64))
    assert bool((alpha[:, ~real_of()] == 0).all())
    assert alpha.shape == (TIME, ROWS, POSITIONS)


@pytest.mark.parametrize("score", SCORES)
def test_nothing_to_look_at_gives_zeros_and_no_gradient(score: str) -> None:
    layer = attention(score)
    queries = numbers(ROWS, QUERY, seed=2).requires_grad_()
    for real in (real_of((5, 0, 3)), real_of((0, 0, 0), 0)):
        context, alpha = layer(queries, memory_of(layer, real))
        assert not alpha[1].any()
        assert not context[1].any()
        (gradient,) = torch.autograd.grad(context.sum() + alpha.sum(), queries)
        assert bool(gradient.isfinite().all())
        assert not gradient[1].any()


@pytest.mark.parametrize("score", SCORES)
def test_what_is_not_real_has_no_effect(score: str) -> None:
    layer, real = attention(score), real_of()
    values, queries = numbers(*real.shape, layer.memory_size), numbers(ROWS, QUERY, seed=2)
    other = torch.where(real[..., None], values, 1e3 * numbers(*values.shape, seed=3))
    assert_close(
        layer(queries, layer.prepare(values, real)), layer(queries, layer.prepare(other, real))
    )
    values.requires_grad_()
    context, _ = layer(queries, layer.prepare(values, real))
    (gradient,) = torch.autograd.grad(context.square().sum(), values)
    assert not gradient[~real].any()


@pytest.mark.parametrize("score", SCORES)
def test_all_steps_at_once_equal_each_alone(score: str) -> None:
    layer = attention(score)
    memory, queries = memory_of(layer), numbers(TIME, ROWS, QUERY, seed=2)
    together = layer(queries, memory)
    alone = [layer(one, memory) for one in queries]
    assert_close(together, tuple(torch.stack(part) for part in zip(*alone, strict=True)))


@pytest.mark.parametrize("score", SCORES)
def test_several_queries_share_a_row_without_a_copy(score: str) -> None:
    layer = attention(score)
    memory, queries = memory_of(layer), numbers(ROWS * 4, QUERY, seed=2)
    copied = Memory(*(part.repeat_interleave(4, 0) for part in memory))
    assert_close(layer(queries, memory), layer(queries, copied))
    no_rows = Memory(*(part[:0] for part in memory))
    assert layer(queries[:0], no_rows)[0].shape == (0, layer.context_size)


@pytest.mark.parametrize("score", SCORES)
def test_gradients(score: str) -> None:
    layer, real = attention(score), real_of()
    queries = numbers(ROWS, QUERY, seed=2).requires_grad_()
    values = numbers(*real.shape, layer.memory_size).requires_grad_()

    def both(*_: Tensor) -> Any:  # gradcheck moves the tensors that it is given in place
        return layer(queries, layer.prepare(values, real))

    assert torch.autograd.gradcheck(both, (queries, values, *layer.parameters()))


def test_dot_of_unequal_widths() -> None:
    with pytest.raises(OptionError) as refused:
        Attention("dot", 4, 8)
    assert str(refused.value) == (
        "dot: expected a memory as wide as the queries, 4, got 8; choose 'general', which learns "
        "a map between them, or project the memory"
    )
    layer = attention("dot", project=True)
    context, alpha = layer(numbers(ROWS, QUERY), memory_of(layer))
    assert context.shape == (ROWS, QUERY)
    assert_close(alpha.sum(-1), torch.ones(ROWS, dtype=torch.float64))


def test_messages() -> None:
    with pytest.raises(OptionError) as name:
        Attention("aditive", 4, 4)
    assert str(name.value).startswith("unknown attention score 'aditive': did you mean 'additive'?")
    layer = attention("general")
    with pytest.raises(ShapeError) as wide:
        layer.prepare(numbers(ROWS, POSITIONS, 3), real_of())
    assert str(wide.value) == "memory: expected (rows, positions, 7), got (3, 5, 3)"
    with pytest.raises(ShapeError) as mask:
        layer.prepare(numbers(ROWS, POSITIONS, WIDTH), real_of().double())
    assert str(mask.value) == (
        "real: expected a bool for each row and position, (3, 5), got torch.float64 of shape (3, 5)"
    )
    for shape in ((4, QUERY), (ROWS, QUERY + 1), (TIME, ROWS + 1, QUERY), (1, 1, ROWS, QUERY)):
        with pytest.raises(ShapeError) as queries:
            layer(numbers(*shape), memory_of(layer))
        assert str(queries.value) == (
            "queries: expected (time, 3, 6), or (rows, 6) with a multiple of the memory's 3 rows, "
            f"got {shape}"
        )
