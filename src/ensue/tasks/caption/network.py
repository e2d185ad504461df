"""The network of a captioner: convolutions make regions of a picture, a decoder looks at them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.errors import ShapeError
from ensue.layers.convolution import ConvolutionBlocks
from ensue.tasks.blocks.attention_decoder import AttentionDecoder, DecoderState
from ensue.tasks.caption.settings import CaptionSettings
from ensue.tasks.seq2seq.bridge import VectorBridge
from ensue.tasks.seq2seq.decoder import DecodedPairs

MIDDLE = 127.5  # bytes become numbers from −1 to 1


class Regions(nn.Module):
    """Pictures, line by line, one channel below the other (channels·height, rows, width), of bytes
    → regions (rows, positions, width of a region), row by row from the top left:

        f = blocks(picture);  region_ij = norm(f_ij + top_i + left_j)

    with learned top and left, so that words can tell where a region lies. shape: channels, height
    and width of the pictures."""

    def __init__(self, shape: tuple[int, int, int], description: str, norm: str) -> None:
        super().__init__()
        self.shape = channels, height, width = shape
        self.blocks = ConvolutionBlocks(channels, description, norm=norm)
        self.width, tall, wide = self.blocks.shape(height, width)
        self.grid = (tall, wide)
        self.top = nn.Parameter(nn.init.normal_(torch.empty(tall, 1, self.width), std=0.1))
        self.left = nn.Parameter(nn.init.normal_(torch.empty(wide, self.width), std=0.1))
        self.norm = nn.LayerNorm(self.width)

    def forward(self, lines: Tensor) -> Tensor:
        channels, height, width = self.shape
        if len(lines) != channels * height or lines.shape[2] != width:
            raise ShapeError(
                f"lines: expected ({channels * height}, rows, {width}), channels · height and "
                f"width, got {tuple(lines.shape)}"
            )
        pictures = lines.reshape(channels, height, -1, width).permute(2, 0, 1, 3)
        x = pictures.to(self.top.dtype) / MIDDLE - 1  # (rows, channels, height, width)
        found = self.blocks(x).permute(0, 2, 3, 1)  # (rows, tall, wide, width of a region)
        regions: Tensor = self.norm((found + self.top + self.left).flatten(1, 2))
        return regions


class CaptionNetwork(DecodedPairs):
    """p(w_t | w_1 … w_{t−1}, picture) as `AttentionDecoder`, whose memory are the picture's
    `Regions` and which begins in tanh(P·mean region + b), or in zero.

    A `PairNetwork` whose sources are lines of pictures; all are of one shape, so that the lengths
    say nothing."""

    def __init__(self, words: int, shape: tuple[int, int, int], settings: CaptionSettings) -> None:
        super().__init__()
        self.dropout_regions, self.sampling = settings.dropout_regions, settings.sampling
        self.regions = Regions(shape, settings.blocks, settings.norm)
        width = self.regions.width
        self.decoder = AttentionDecoder(words, settings, memory_size=width)
        mean = settings.begin == "mean"
        self.bridge = VectorBridge(width, self.decoder.recurrent) if mean else None

    @property
    def grid(self) -> tuple[int, int]:
        """How many regions lie below and beside each other."""
        return self.regions.grid

    def begin(self, source: Tensor, lengths: Tensor) -> DecoderState:
        memory = self.regions(source)
        memory = dropout(memory, self.dropout_regions, self.training)
        cells = None if self.bridge is None else self.bridge(memory.mean(1))
        real = torch.ones(memory.shape[:2], dtype=torch.bool, device=memory.device)
        return self.decoder.begin(memory.shape[0], cells, memory, real)
