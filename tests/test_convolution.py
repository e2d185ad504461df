"""Convolutions over volumes and sequences: the book's numbers, torch's, and plain sums."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.nn import functional
from torch.testing import assert_close

from ensue.errors import OptionError, ShapeError
from ensue.layers.convolution import (
    BlockPart,
    ChannelNorm,
    Convolution,
    ConvolutionBlocks,
    ConvolutionNet,
    GatedConvolutions,
    SequenceConvolution,
    VolumePooling,
    field_of,
    parts_of,
    places,
)
from ensue.tasks.blocks.encoders import ConvolutionEncoder

F = [[0, 2, 3], [2, 4, 1], [0, 3, 0]]
PATCHES = {  # what the filter F says of each
    "cross": ([[0, 1, 0], [1, 1, 1], [0, 1, 0]], 12),
    "letter L": ([[1, 0, 0], [1, 0, 0], [1, 1, 1]], 5),
    "letter T": ([[1, 1, 1], [0, 1, 0], [0, 1, 0]], 12),
    "all ones": ([[1, 1, 1]] * 3, 15),
}
IMAGE = [[1, 0, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0], [0, 1, 0, 1]]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(1)


def volume(*rows: list[list[float]]) -> Tensor:
    return torch.tensor([rows], dtype=torch.float64)


def plain(x: Tensor, weight: Tensor, bias: Tensor, stride: int, padding: int) -> Tensor:
    """The equation, sum by sum."""
    rows, _, height, width = x.shape
    count, _, size, _ = weight.shape
    tall, wide = ((n + 2 * padding - size) // stride + 1 for n in (height, width))
    output = torch.zeros(rows, count, tall, wide, dtype=x.dtype)
    for r, o, i, j in product(range(rows), range(count), range(tall), range(wide)):
        output[r, o, i, j] = bias[o]
        for c, u, v in product(range(x.shape[1]), range(size), range(size)):
            down, across = stride * i + u - padding, stride * j + v - padding
            if 0 <= down < height and 0 <= across < width:
                output[r, o, i, j] += weight[o, c, u, v] * x[r, c, down, across]
    return output


# --- the book's numbers ------------------------------------------------------------------------


@pytest.mark.parametrize("name", PATCHES)
def test_a_filter_says_how_like_itself_a_patch_is(name: str) -> None:
    patch, expected = PATCHES[name]
    layer = Convolution(1, 1, 3).double()
    with torch.no_grad():
        layer.weight.copy_(volume(F))
        assert float(layer(volume(patch))) == expected


def test_a_volume_is_summed_over_its_channels_with_one_bias() -> None:
    layer = Convolution(3, 1, 2).double()
    with torch.no_grad():
        layer.weight.fill_(1.0)
        layer.bias.fill_(-2.0)  # type: ignore[union-attr]
        x = torch.tensor([16.0, -23.0, 6.0], dtype=torch.float64)[None, :, None, None]
        assert float(layer((x / 4).expand(1, 3, 2, 2))) == -3


def test_pooling_takes_the_largest_or_the_mean_of_each_square() -> None:
    x = volume(IMAGE, (torch.tensor(IMAGE) * -2).tolist())
    largest, mean = VolumePooling("max")(x), VolumePooling("mean")(x)
    assert largest[0, 0].tolist() == [[1, 1], [1, 1]]
    assert mean[0, 0].tolist() == [[0.5, 0.5], [0.75, 0.25]]
    assert mean[0, 1].tolist() == [[-1, -1], [-1.5, -0.5]], "each channel by itself"
    assert largest.numel() * 4 == x.numel()
    assert not list(VolumePooling().parameters())


@pytest.mark.parametrize(("stride", "padding", "expected"), [(1, 0, 3), (2, 0, 2), (2, 1, 3)])
def test_sizes(stride: int, padding: int, expected: int) -> None:
    assert places(4, 2, stride, padding) == expected
    outputs = Convolution(1, 5, 2, stride, padding)(torch.zeros(7, 1, 4, 4))
    assert outputs.shape == (7, 5, expected, expected)


# --- laws --------------------------------------------------------------------------------------

SHAPES = [(1, 1, 1, 0), (2, 1, 2, 1), (3, 1, 0, 2), (3, 2, 1, 1), (2, 3, 2, 0)]


@pytest.mark.parametrize(("size", "stride", "padding", "extra"), SHAPES)
def test_a_convolution_is_its_equation_and_that_of_torch(
    size: int, stride: int, padding: int, extra: int
) -> None:
    layer = Convolution(2, 3, size, stride, padding).double()
    x = torch.randn(2, 2, 4, 4 + extra, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        layer.bias.normal_()  # type: ignore[union-attr]
    assert layer.bias is not None
    assert_close(layer(x), plain(x, layer.weight, layer.bias, stride, padding))
    theirs = functional.conv2d(x, layer.weight, layer.bias, stride, padding)
    assert torch.equal(layer(x), theirs)
    assert layer.shape(2, 4, 4 + extra) == theirs.shape[1:]
    assert gradcheck(layer, (x,))
    parameters = list(layer.parameters())
    assert gradcheck(lambda *_: layer(x), parameters)


@pytest.mark.parametrize("kind", ["max", "mean"])
@pytest.mark.parametrize(("size", "stride"), [(2, None), (3, 1), (1, 2), (3, 2)])
def test_pooling_is_that_of_torch(kind: str, size: int, stride: int | None) -> None:
    x = torch.randn(2, 3, 5, 6, dtype=torch.float64, requires_grad=True)
    pool = VolumePooling(kind, size, stride)
    theirs = functional.max_pool2d if kind == "max" else functional.avg_pool2d
    assert torch.equal(pool(x), theirs(x, size, stride))
    assert pool.shape(3, 5, 6) == pool(x).shape[1:]
    assert gradcheck(pool, (x,))


def test_of_equal_numbers_one_gets_the_derivative() -> None:
    x = torch.ones(1, 1, 2, 2, requires_grad=True)
    VolumePooling()(x).sum().backward()
    assert x.grad is not None
    assert sorted(x.grad.flatten().tolist()) == [0, 0, 0, 1]


def test_a_description_is_its_layers() -> None:
    assert parts_of("32 8x5 64/2 max mean3/1 max4") == [
        BlockPart(32, "", 3, 1),
        BlockPart(8, "", 5, 1),
        BlockPart(64, "", 3, 2),
        BlockPart(0, "max", 2, 2),
        BlockPart(0, "mean", 3, 1),
        BlockPart(0, "max", 4, 4),
    ]
    blocks = ConvolutionBlocks(3, "4 8x5/2 mean", norm="none").eval()
    x = torch.randn(2, 3, 10, 12)
    first, second = (layer for layer in blocks.layers if isinstance(layer, Convolution))
    y = functional.conv2d(x, first.weight, first.bias, padding=1).relu()
    y = functional.conv2d(y, second.weight, second.bias, 2, 2).relu()
    assert_close(blocks(x), functional.avg_pool2d(y, 2))
    assert blocks.shape(10, 12) == blocks(x).shape[1:] == (8, 2, 3)


def test_parameters_are_counted() -> None:
    net = ConvolutionNet((1, 28, 28), "6x5 max 16x5 max", 10, norm="none")
    filters = 6 * (25 + 1) + 16 * (6 * 25 + 1)
    assert sum(p.numel() for p in net.parameters()) == filters + 7 * 7 * 16 * 10 + 10 == 10422
    small = ConvolutionNet((3, 8, 8), "4 max", 2, hidden=[5])
    expected = 4 * 27 + 2 * 4 + (4 * 4 * 4 * 5 + 5) + (5 * 2 + 2)
    assert sum(p.numel() for p in small.parameters()) == expected
    assert small(torch.zeros(7, 3, 8, 8)).shape == (7, 2)


def test_a_network_gradchecks_and_rows_do_not_meet() -> None:
    net = ConvolutionNet((2, 6, 6), "3 max 4", 3, hidden=[4], norm="none").double().eval()
    x = torch.randn(3, 2, 6, 6, dtype=torch.float64, requires_grad=True)
    assert gradcheck(net, (x,))
    normed = ConvolutionNet((2, 6, 6), "3 max 4", 3).double()
    normed(x)  # the means of training move
    normed.eval()
    assert_close(normed(x)[1:2], normed(x[1:2]))


def test_the_norm_is_that_of_torch_and_takes_a_single_number() -> None:
    ours, theirs = ChannelNorm(3), nn.BatchNorm2d(3)
    x = torch.randn(4, 3, 2, 2)
    assert_close(ours(x), theirs(x))
    assert_close(ours.running_var, theirs.running_var)
    assert_close(ours.eval()(x), theirs.eval()(x))
    alone = torch.randn(1, 3, 1, 1)
    assert_close(ours.train()(alone), theirs(alone))


# --- sequences ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "dilation", "causal"), [*product((1, 2, 3), (1, 2), (True, False))]
)
def test_over_sequences_it_is_the_convolution_of_torch(
    size: int, dilation: int, causal: bool
) -> None:
    layer = SequenceConvolution(3, 4, size, dilation=dilation, causal=causal).double()
    x = torch.randn(7, 2, 3, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        layer.bias.normal_()
    weight = layer.weight.unflatten(1, (size, 3)).transpose(1, 2)  # type: ignore[no-untyped-call]
    padded = functional.pad(x.permute(1, 2, 0), (layer.before, layer.behind))
    theirs = functional.conv1d(padded, weight, layer.bias, dilation=dilation)
    assert_close(layer(x), theirs.permute(2, 0, 1))
    assert layer.before + layer.behind == (size - 1) * dilation
    assert (layer.behind == 0) == (causal or size == 1)
    assert gradcheck(layer, (x,))
    assert layer(x[:0]).shape == (0, 2, 4)


@pytest.mark.parametrize("dilated", [True, False])
def test_an_encoder_sees_its_field_and_nothing_of_padding(dilated: bool) -> None:
    encoder = ConvolutionEncoder(2, width=4, num_layers=3, size=3, dilated=dilated).double().eval()
    field = encoder.convolutions.field
    assert field == field_of(3, 3, dilated) == (15 if dilated else 7)
    x = torch.randn(40, 1, 2, dtype=torch.float64, requires_grad=True)
    y, final = encoder(x, torch.tensor([40]))
    assert_close(final, y[-1])
    (gradient,) = torch.autograd.grad(y[20, 0, 0], x)
    steps = gradient.abs().sum((1, 2)).nonzero()[:, 0]
    assert int(steps.min()) == 20 - field // 2
    assert int(steps.max()) == 20 + field // 2
    rows = torch.randn(9, 3, 2, dtype=torch.float64)
    lengths = torch.tensor([9, 4, 0])
    spoiled = rows.clone()
    spoiled[4:, 1], spoiled[:, 2] = 1e3, -1e3
    (y, final), (other, last) = encoder(rows, lengths), encoder(spoiled, lengths)
    assert torch.equal(y, other)
    assert torch.equal(final, last)
    assert not y[4:, 1].any()
    assert not final[2].any()
    assert_close(y[:4, 1:2], encoder(rows[:4, 1:2], torch.tensor([4]))[0])


def test_layers_gradcheck_and_go_on() -> None:
    layers = GatedConvolutions(3, 2, 3, dilated=True, causal=True).double().eval()
    x = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: layers(x, torch.tensor([5, 2])), (x,))
    y, state = layers.go_on(x, layers.begin(2))
    assert_close(y, layers(x, torch.tensor([5, 5])))
    assert [tensor.shape for tensor in state] == [(2, 2, 3), (2, 4, 3)]


# --- messages ----------------------------------------------------------------------------------


def test_messages() -> None:
    with pytest.raises(ShapeError) as small:
        ConvolutionNet((1, 5, 5), "8 max max max", 2)
    assert str(small.value) == (
        "a pool of 2 does not fit: expected 2 or more pixels in height and width, got 1. Give "
        "larger images, or fewer or smaller filters and pools before it"
    )
    with pytest.raises(ShapeError) as padded:
        Convolution(1, 1, 5, padding=1)(torch.zeros(1, 1, 2, 9))
    assert str(padded.value).startswith(
        "a filter of 5 does not fit: expected 3 or more pixels in height and width with 1 zeros "
        "on each side, got 2."
    )
    with pytest.raises(ShapeError) as channels:
        Convolution(3, 1, 1)(torch.zeros(1, 2, 4, 4))
    assert str(channels.value) == (
        "Convolution: expected x of shape (rows, 3, height, width), got (1, 2, 4, 4)"
    )
    with pytest.raises(ShapeError) as shape:
        ConvolutionNet((1, 4, 4), "2", 2)(torch.zeros(3, 1, 4, 5))
    assert str(shape.value) == (
        "ConvolutionNet: expected x of shape (rows, 1, 4, 4), got (3, 1, 4, 5)"
    )
    with pytest.raises(OptionError) as stride:
        Convolution(1, 1, 3, stride=0)
    assert str(stride.value) == "stride: expected a number ≥ 1, got 0"
    with pytest.raises(OptionError, match="unknown pooling 'maxx': did you mean 'max'"):
        VolumePooling("maxx")
    with pytest.raises(OptionError, match="unknown norm 'layer'"):
        ConvolutionBlocks(1, "3", norm="layer")
    with pytest.raises(ShapeError) as steps:
        SequenceConvolution(3, 1, 2)(torch.zeros(5, 2, 4))
    assert str(steps.value) == (
        "SequenceConvolution: expected x of shape (time, batch, 3), got (5, 2, 4)"
    )
    for overrides, message in (
        ({"layers": 0}, "layers: expected"),
        ({"dropout": 1.0}, "dropout: exp"),
    ):
        with pytest.raises(OptionError, match=message):
            GatedConvolutions(**{"width": 2, "layers": 1, "size": 2, **overrides})  # type: ignore[arg-type]


@pytest.mark.parametrize("word", ["0", "32x0", "pool", "3x3x3", "max0", "-4", "8/0", "mean/"])
def test_words_that_describe_nothing(word: str) -> None:
    with pytest.raises(OptionError) as wrong:
        parts_of(f"16 {word}")
    assert str(wrong.value) == (
        f"blocks '16 {word}': expected words such as 32 (filters of 3×3), 32x5 (of 5×5), 64/2 "
        f"(with stride 2), max or mean (pools of 2×2), max3/2, got '{word}'"
    )
