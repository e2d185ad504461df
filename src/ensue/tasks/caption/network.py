"""The network of a captioner: convolutions make regions of a picture, a decoder looks at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.data.ragged import Ragged
from ensue.errors import DataError, ShapeError
from ensue.layers.convolution import ConvolutionBlocks
from ensue.tasks.blocks.attention_decoder import AttentionDecoder, DecoderState
from ensue.tasks.caption.settings import CaptionSettings
from ensue.tasks.declarations import NEXT_TO
from ensue.tasks.pictures.part import PicturePart, SavedShape
from ensue.tasks.rows.part import Tokenisers, counts_of
from ensue.tasks.seq2seq.network import DecodedPairs, VectorBridge
from ensue.tasks.seq2seq.target import LearnedTarget, most_frequent, targets_of, text_vocabulary
from ensue.tasks.settings import TextSettings

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


@dataclass(frozen=True)
class LearnedCaptions:
    """shape: of the pictures that were learned from; others are brought to it."""

    shape: SavedShape
    target: Annotated[LearnedTarget, NEXT_TO]

    @classmethod
    def learn(cls, train: PicturePart, text: TextSettings) -> LearnedCaptions:
        counts = counts_of(targets_of(train), train.numbers.labels)
        words = text_vocabulary(counts, len(train), text)
        assert train.tokenisers is not None
        cut = train.tokenisers.input
        return cls(train.shape, LearnedTarget(cut, words, most_frequent(train)))

    @property
    def tokenisers(self) -> Tokenisers:
        return Tokenisers(self.target.tokeniser, self.target.tokeniser)


def lines_of(pixels: NDArray[np.uint8]) -> Ragged:
    """Pictures (rows, channels, height, width) by their lines (rows·channels·height, width), as
    pair networks take a source: all of a picture's lines, one channel below the other."""
    rows, channels, height, width = pixels.shape
    lines = channels * height
    return Ragged(pixels.reshape(rows * lines, width), np.arange(rows + 1) * lines)


def check_captions(part: PicturePart, name: str) -> None:
    """Every picture has a caption, and none is empty."""
    if not len(part) or part.labels is None:
        where = f", the first without a caption is {part.unlabelled}" if part.unlabelled else ""
        raise DataError(
            f"the {name} part: expected pictures with captions, got {len(part)} rows{where}"
        )
    empty = np.flatnonzero(part.labels.lengths == 0)
    if len(empty):
        many = "1 picture has" if len(empty) == 1 else f"{len(empty):,} pictures have"
        raise DataError(
            f"the {name} part: {many} an empty caption, the first of them "
            f"{part.names[int(empty[0])]}: nothing can be learned from it; leave it out"
        )
