"""The layers of the Transformer: torch's own numbers, masks, and steps that equal the whole."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from ensue.errors import OptionError, ShapeError
from ensue.layers.multihead import MultiHead
from ensue.layers.transformer import (
    NORMS,
    Block,
    CausalBlocks,
    DecoderBlocks,
    Design,
    EncoderBlocks,
    Source,
    placed,
    sinusoids,
)

WIDTH, HEADS, INNER = 8, 2, 12
LENGTHS = torch.tensor([5, 2, 0, 4])
each_norm = pytest.mark.parametrize("norm", NORMS)


def drawn(*shape: int, seed: int = 1) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=random, dtype=torch.float64)


def shaken(module: Any) -> Any:
    """In double precision, with parameters that are all different."""
    torch.manual_seed(2)
    module = module.double().eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module


def design(norm: str = "before") -> Design:
    return Design(WIDTH, HEADS, INNER, norm)


def real(lengths: Tensor, time: int) -> Tensor:
    return torch.arange(time) < lengths[:, None]  # (batch, time)


def future(time: int) -> Tensor:
    """torch's mask: True is hidden."""
    return torch.ones(time, time, dtype=torch.bool).triu(1)


# --- positions -------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 6, 7])
def test_positions_are_the_sinusoids_of_the_formula(width: int) -> None:
    table = sinusoids(torch.tensor([0, 1, 5, 4000]), width, torch.float64)
    for row, at in enumerate((0, 1, 5, 4000)):
        for k in range(width):
            angle = at / 10_000 ** ((k - k % 2) / width)
            expected = math.cos(angle) if k % 2 else math.sin(angle)
            assert float(table[row, k]) == pytest.approx(expected, abs=1e-12)
    assert table.dtype == torch.float64
    assert sinusoids(torch.tensor([1]), 4).dtype == torch.float32


def test_steps_are_placed_from_the_first_one_on_and_around() -> None:
    x = drawn(7, 3, 6)
    whole = placed(x)
    assert_close(whole - x, sinusoids(torch.arange(7), 6, torch.float64)[:, None].expand(7, 3, 6))
    assert_close(placed(x[4:], first=4), whole[4:])
    assert_close(placed(x[5:], first=5, period=5), x[5:] + (whole - x)[:2])


# --- attention -------------------------------------------------------------------------------


def both_attentions() -> tuple[MultiHead, nn.MultiheadAttention]:
    theirs = shaken(nn.MultiheadAttention(WIDTH, HEADS))
    ours = MultiHead(WIDTH, HEADS).double().eval()
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_that_of_torch(cross: bool, masked: bool) -> None:
    ours, theirs = both_attentions()
    x = drawn(5, 3, WIDTH)
    source = drawn(6, 3, WIDTH, seed=2) if cross else x
    lengths = torch.tensor([len(source), 2, 1])
    visible = real(lengths, len(source)) if masked else None
    expected, weights = theirs(
        x,
        source,
        source,
        key_padding_mask=None if visible is None else ~visible,
        average_attn_weights=False,
    )
    mask = None if visible is None else visible[:, None, None]
    arguments = (x, source if cross else None, mask)
    y, alpha = ours.with_weights(*arguments)
    assert_close(y, expected)
    assert_close(alpha, weights)
    assert_close(ours(*arguments), expected)
    assert_close(alpha.sum(-1), torch.ones(3, HEADS, 5, dtype=torch.float64))


def test_who_may_look_nowhere_sees_zeros() -> None:
    ours, _ = both_attentions()
    x, source = drawn(5, 4, WIDTH), drawn(5, 4, WIDTH, seed=2).requires_grad_()
    visible = real(LENGTHS, 5)[:, None, None]
    y, alpha = ours.with_weights(x, source, visible)
    assert not alpha[2].any()
    assert_close(y[:, 2], ours.out_proj.bias.expand(5, -1))
    fused = ours(x, source, visible)
    assert_close(fused, y)
    (gradient,) = torch.autograd.grad(fused.sum(), source)
    assert torch.isfinite(gradient).all()
    assert not gradient[:, 2].any()
    assert not gradient[2:, 1].any(), "what is hidden has no gradient"


def test_several_rows_may_look_at_one_memory() -> None:
    ours, _ = both_attentions()
    queries, memory = drawn(6, 2, WIDTH), drawn(3, 5, 2 * WIDTH, seed=2)
    visible = real(torch.tensor([5, 2, 3]), 5)[:, None, None]
    written_out = memory.repeat_interleave(2, 0), visible.repeat_interleave(2, 0)
    assert_close(ours.attend(queries, memory, visible), ours.attend(queries, *written_out))
    alpha = ours.weights(queries, memory, visible)  # (3, heads, 2·2, 5)
    apart = alpha.unflatten(2, (2, 2)).transpose(1, 2).flatten(0, 1)
    assert_close(apart, ours.weights(queries, *written_out))


def test_weights_are_dropped_in_training_only() -> None:
    ours = MultiHead(WIDTH, HEADS, dropout=0.5).double()
    x = drawn(5, 3, WIDTH)
    assert not torch.equal(ours(x), ours(x))
    assert not torch.equal(ours.with_weights(x)[0], ours.with_weights(x)[0])
    ours.eval()
    assert torch.equal(ours(x), ours(x))


# --- blocks and stacks -----------------------------------------------------------------------


@each_norm
def test_an_encoder_is_that_of_torch(norm: str) -> None:
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, INNER, dropout=0.0, norm_first=norm == "before"
    )
    last = nn.LayerNorm(WIDTH) if norm == "before" else None
    theirs = shaken(nn.TransformerEncoder(layer, 2, last, enable_nested_tensor=False))
    ours = EncoderBlocks(2, design(norm)).double().eval()
    ours.load_state_dict(theirs.state_dict())
    x, lengths = drawn(5, 3, WIDTH), torch.tensor([5, 2, 4])
    real_steps = real(lengths, 5).t()[..., None]
    expected = theirs(x, src_key_padding_mask=~real(lengths, 5)) * real_steps
    assert_close(ours(x, lengths), expected)
    first = Block(design(norm)).double().eval()
    first.load_state_dict(theirs.layers[0].state_dict())
    assert_close(first(x.transpose(0, 1), None, None)[0].transpose(0, 1), theirs.layers[0](x))


@each_norm
def test_a_decoder_is_that_of_torch(norm: str) -> None:
    layer = nn.TransformerDecoderLayer(
        WIDTH, HEADS, INNER, dropout=0.0, norm_first=norm == "before"
    )
    last = nn.LayerNorm(WIDTH) if norm == "before" else None
    theirs = shaken(nn.TransformerDecoder(layer, 2, last))
    ours = DecoderBlocks(2, design(norm)).double().eval()
    ours.load_state_dict(theirs.state_dict())
    x, source, lengths = drawn(4, 3, WIDTH), drawn(6, 3, WIDTH, seed=2), torch.tensor([6, 1, 3])
    visible = real(lengths, 6)
    expected = theirs(x, source, tgt_mask=future(4), memory_key_padding_mask=~visible)
    assert_close(ours(x, ours.memories(source), visible).y, expected)
    first = Block(design(norm), cross=True).double().eval()
    first.load_state_dict(theirs.layers[0].state_dict())
    assert first.multihead_attn is not None
    rows = Source(first.multihead_attn.memory(source.transpose(0, 1)), visible[:, None, None])
    output, _, _ = first(x.transpose(0, 1), None, ~future(4), rows)
    expected = theirs.layers[0](x, source, tgt_mask=future(4), memory_key_padding_mask=~visible)
    assert_close(output.transpose(0, 1), expected)


@each_norm
def test_padding_and_the_rows_beside_change_nothing(norm: str) -> None:
    ours = shaken(EncoderBlocks(2, design(norm)))
    x = drawn(5, 4, WIDTH).requires_grad_()
    y = ours(x, LENGTHS)
    assert not y[~real(LENGTHS, 5).t()].any(), "zero beyond the end"
    (gradient,) = torch.autograd.grad(y.square().sum(), x)
    assert not gradient[~real(LENGTHS, 5).t()].any()
    noise = torch.cat([x.detach(), 100 * drawn(3, 4, WIDTH, seed=3)])
    assert_close(ours(noise, LENGTHS)[:5], y)
    for row, length in enumerate(LENGTHS.tolist()):
        alone = ours(x[:length, row : row + 1], LENGTHS[row : row + 1])
        assert_close(alone, y[:length, row : row + 1])


def decoder_and_source(norm: str) -> tuple[DecoderBlocks, tuple[Tensor, ...], Tensor]:
    ours = shaken(DecoderBlocks(2, design(norm)))
    return ours, ours.memories(drawn(5, 4, WIDTH, seed=2)), real(LENGTHS, 5)


@each_norm
def test_the_decoder_cannot_see_the_future(norm: str) -> None:
    ours, memories, visible = decoder_and_source(norm)
    x = drawn(7, 4, WIDTH).requires_grad_()
    y = ours(x, memories, visible).y
    other = x.detach().clone()
    other[4:] = drawn(3, 4, WIDTH, seed=9)
    changed = ours(other, memories, visible).y
    assert torch.equal(changed[:4], y[:4]), "bit for bit"
    assert not torch.equal(changed[4:], y[4:])
    (gradient,) = torch.autograd.grad(y[:4].square().sum(), x)
    assert not gradient[4:].any()
    assert gradient[:4].any()


@each_norm
def test_a_decoder_in_pieces_is_the_whole(norm: str) -> None:
    ours, memories, visible = decoder_and_source(norm)
    x = drawn(7, 4, WIDTH)
    whole = ours(x, memories, visible)
    for sizes in ([1] * 7, [3, 1, 3], [2, 5]):
        past, outputs, looked = None, [], []
        for piece in x.split(sizes):
            y, past, queries = ours(piece, memories, visible, past)
            outputs.append(y)
            looked.append(queries)
        assert_close(torch.cat(outputs), whole.y)
        assert_close(past, whole.past)
        assert_close(torch.cat(looked, 1), whole.looked)
    alpha = ours.weights(whole.looked, memories[-1], visible)
    assert alpha.shape == (4, 7, 5)
    assert_close(alpha.sum(-1), (LENGTHS > 0)[:, None].double().expand(4, 7))
    assert not alpha[~visible[:, None].expand(4, 7, 5)].any()


@pytest.mark.parametrize("context", [1, 2, 4, 50])
def test_a_window_in_pieces_is_the_whole(context: int) -> None:
    ours = shaken(CausalBlocks(2, design(), context))
    x = drawn(9, 3, WIDTH)
    nothing = tuple(torch.zeros(3, 0, 2 * WIDTH, dtype=torch.float64) for _ in range(2))
    whole, past_whole = ours(x, nothing)
    assert [tensor.shape[1] for tensor in past_whole] == [min(9, context - 1)] * 2
    for sizes in ([1] * 9, [3, 2, 4], [8, 1]):
        past, outputs = nothing, []
        for piece in x.split(sizes):
            y, past = ours(piece, past)
            outputs.append(y)
        assert_close(torch.cat(outputs), whole)
        assert_close(past, past_whole)


def test_a_block_sees_no_farther_than_its_context() -> None:
    ours = shaken(CausalBlocks(1, design(), 3))
    x = drawn(9, 1, WIDTH).requires_grad_()
    y, _ = ours(x, (torch.zeros(1, 0, 2 * WIDTH, dtype=torch.float64),))
    for step in range(9):
        (gradient,) = torch.autograd.grad(y[step].square().sum(), x, retain_graph=True)
        touched = gradient.flatten(1).any(1).nonzero()[:, 0].tolist()
        assert touched == list(range(max(0, step - 2), step + 1))


@each_norm
def test_gradients_are_those_of_finite_differences(norm: str) -> None:
    encoder = shaken(EncoderBlocks(1, Design(4, 2, 3, norm)))
    decoder = shaken(DecoderBlocks(1, Design(4, 2, 3, norm)))
    lengths = torch.tensor([3, 1])

    def both(source: Tensor, x: Tensor) -> Tensor:
        memories = decoder.memories(encoder(source, lengths))
        output: Tensor = decoder(x, memories, real(lengths, 3)).y
        return output

    inputs = drawn(3, 2, 4).requires_grad_(), drawn(2, 2, 4, seed=2).requires_grad_()
    assert torch.autograd.gradcheck(both, inputs)


def test_sublayers_are_dropped_in_training_only() -> None:
    ours = EncoderBlocks(1, Design(WIDTH, HEADS, dropout=0.5)).double()
    x, lengths = drawn(5, 3, WIDTH), torch.tensor([5, 5, 5])
    assert not torch.equal(ours(x, lengths), ours(x, lengths))
    ours.eval()
    assert torch.equal(ours(x, lengths), ours(x, lengths))
    assert ours.layers[0].linear1.out_features == 4 * WIDTH


# --- mistakes --------------------------------------------------------------------------------


def test_messages() -> None:
    def refused(do: Any) -> str:
        with pytest.raises((OptionError, ShapeError)) as error:
            do()
        return str(error.value)

    assert refused(lambda: MultiHead(10, 4)) == (
        "heads: expected a divisor of the width 10, got 4; each head has an equal share of it"
    )
    assert refused(lambda: MultiHead(8, 4, dropout=1.0)) == (
        "dropout of attention: expected 0 ≤ rate < 1, got 1.0"
    )
    assert refused(lambda: MultiHead(8, 4)(torch.zeros(3, 2, 7))) == (
        "x: expected (time, batch, 8), got (3, 2, 7)"
    )
    assert refused(lambda: MultiHead(8, 4)(torch.zeros(3, 2, 8), torch.zeros(3, 8))) == (
        "source: expected (time, batch, 8), got (3, 8)"
    )
    assert refused(lambda: Design(8, 2, norm="befor")) == (
        "unknown place of the norm 'befor': did you mean 'before'? Known: after, before"
    )
    assert refused(lambda: Design(8, 2, inner=0)) == "inner: expected a width ≥ 1, got 0"
    assert refused(lambda: Design(8, 2, dropout=-0.1)) == (
        "dropout: expected 0 ≤ rate < 1, got -0.1"
    )
    assert refused(lambda: EncoderBlocks(0, Design(8, 2))) == "layers: expected a number ≥ 1, got 0"
    assert refused(lambda: CausalBlocks(1, Design(8, 2), 0)) == (
        "context: expected a number of steps ≥ 1, got 0"
    )
    assert refused(lambda: sinusoids(torch.tensor([1]), 0)) == (
        "width: expected a number ≥ 1, got 0"
    )
