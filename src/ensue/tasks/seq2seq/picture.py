"""Pictures as sources: convolutions produce regions, to which a decoder attends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.data.pictures.endings import is_image
from ensue.data.ragged import Ragged
from ensue.data.rows import Place
from ensue.errors import ShapeError
from ensue.layers.convolution import ConvolutionBlocks
from ensue.tasks.any_model import AnyModel
from ensue.tasks.blocks.attention_decoder import AttentionDecoder, DecoderState
from ensue.tasks.declarations import NEXT_TO
from ensue.tasks.exported import BATCH, Input
from ensue.tasks.pictures.part import PicturePart, SavedShape, Shape, picture_step, shape_text
from ensue.tasks.pictures.reader import NamedPictures, PictureReader, picture_from
from ensue.tasks.rows.collect import IN_MEMORY, PairContent
from ensue.tasks.rows.part import Tokenisers
from ensue.tasks.rows.reader import Rows, tokeniser_of
from ensue.tasks.seq2seq.answer import Best, Gaze
from ensue.tasks.seq2seq.drawing import CaptionExplanation
from ensue.tasks.seq2seq.network import DecodedPairs, VectorBridge
from ensue.tasks.seq2seq.pairs import PairNetwork, Taught, pair_networks
from ensue.tasks.seq2seq.settings import CaptionSettings
from ensue.tasks.seq2seq.source import LearnedPairs, LearnedSource, SourceQuestion, SourceReader
from ensue.tasks.seq2seq.target import LearnedTarget, targets_of

MIDDLE = 127.5  # scales bytes to numbers from −1 to 1


# --- read ----------------------------------------------------------------------------------------


class CaptionContent(NamedPictures, PairContent):
    """The name of a picture's file, and a text; neither is empty."""


class PicturePairReader(SourceReader[PicturePart], PictureReader):
    """Reads pictures with their texts; a table may name the pictures."""

    content = CaptionContent()
    rows, row, text = "pictures with captions", "picture", "caption"

    def learned_shape(self) -> Shape:
        shape: Shape = self.model.learned.source.shape
        return shape

    def is_picture(self, path: str) -> bool:
        return Path(path).is_dir() or is_image(Path(path))

    def cut(self, rows: Rows, like: PicturePart | None) -> Tokenisers | None:
        if self.model.fitted:
            tokenisers: Tokenisers = self.model.learned.tokenisers
            return tokenisers
        return self.tokenisers(rows) if like is None else like.tokenisers

    def tokenisers(self, rows: Rows) -> Tokenisers:
        texts = (row.label for row in rows() if row.label is not None)
        tokeniser = tokeniser_of(self.model.text, texts)
        return Tokenisers(tokeniser, tokeniser)


# --- the network ---------------------------------------------------------------------------------


class Regions(nn.Module):
    """Pictures, line by line, one channel below the other (channels·height, rows, width), of bytes
    → regions (rows, positions, width of a region), row by row from the top left:

    f = blocks(picture); region_ij = norm(f_ij + top_i + left_j)

    with learned top and left, so that words can depend on the position of a region. shape:
    channels, height and width of the pictures."""

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
        grid = self.blocks(x).permute(0, 2, 3, 1)  # (rows, tall, wide, width of a region)
        regions: Tensor = self.norm((grid + self.top + self.left).flatten(1, 2))
        return regions


class PicturePairs(DecodedPairs):
    """p(w_t | w_1 … w_{t−1}, picture) by an `AttentionDecoder`. Its memory are the picture's
    `Regions`, and its initial state is tanh(P·mean region + b), or zero.

    A `PairNetwork` whose sources are pictures, given as their pixel lines (`lines_of`). All
    pictures have the same shape, so lengths are ignored."""

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
        """Number of rows and columns of regions."""
        return self.regions.grid

    def begin(self, source: Tensor, lengths: Tensor) -> DecoderState:
        memory = self.regions(source)
        memory = dropout(memory, self.dropout_regions, self.training)
        cells = None if self.bridge is None else self.bridge(memory.mean(1))
        real = torch.ones(memory.shape[:2], dtype=torch.bool, device=memory.device)
        return self.decoder.begin(memory.shape[0], cells, memory, real)


def picture_network(model: AnyModel) -> Taught:
    """A network with fresh weights."""
    learned = model.learned
    return Taught(PicturePairs(len(learned.target.words), learned.source.shape, model.settings))


def description(settings: CaptionSettings) -> str:
    """The network in a few words."""
    looks = "no" if settings.attention == "none" else settings.attention
    decoder = f"{settings.layers} × {settings.cell} of {settings.hidden_size}"
    return f"{settings.blocks} → {decoder}, {looks} attention"


def _grid(networks: Sequence[PairNetwork]) -> tuple[int, int]:
    return cast(PicturePairs, networks[0]).grid


# --- what is learned -----------------------------------------------------------------------------


def lines_of(pixels: NDArray[np.uint8]) -> Ragged:
    """Pictures (rows, channels, height, width) as lines (rows·channels·height, width), the form of
    sources in pair networks: all lines of a picture, channel by channel."""
    rows, channels, height, width = pixels.shape
    lines = channels * height
    return Ragged(pixels.reshape(rows * lines, width), np.arange(rows + 1) * lines)


@dataclass(frozen=True)
class LearnedPictureSource(LearnedSource):
    """The learned part of pictures. shape: the shape of the training pictures, to which other
    pictures are converted."""

    shape: SavedShape
    tokeniser = None
    copied = False

    def encode(self, part: PicturePart) -> Ragged:
        return lines_of(part.pixels)

    def source_texts(self, part: PicturePart) -> tuple[list[str], NDArray[np.int64]]:
        return [""] * len(part), targets_of(part).lengths

    def positions(self, part: PicturePart) -> list[tuple[str, ...]]:
        return [()] * len(part)

    def explanation(
        self, best: Best, probabilities: tuple[float, ...], inputs: Any, model: AnyModel
    ) -> CaptionExplanation:
        """The explanation of the best answer. inputs: an array of bytes, or the name of a file."""
        assert best.weights is not None
        grid = _grid(pair_networks(model))
        gaze = Gaze(best.text, best.tokens, probabilities, grid, best.weights)
        return CaptionExplanation(gaze, picture_from(inputs, Place(IN_MEMORY, 1)))

    def question(self, networks: Sequence[PairNetwork]) -> SourceQuestion:
        channels, height, _ = self.shape
        tall, wide = _grid(networks)
        return SourceQuestion(
            (Input("pictures", (BATCH, *self.shape)),),
            (picture_step(self.shape),),
            _as_lines,
            tall * wide,
            channels * height,
        )

    def facts(self, target: LearnedTarget, networks: Sequence[PairNetwork]) -> list[str]:
        pictures = f"pictures of {shape_text(self.shape)}"
        if networks:
            tall, wide = _grid(networks)
            pictures += f" → {tall} × {wide} regions"
        return [pictures, f"{len(target.words):,} tokens in the vocabulary"]


def _as_lines(pictures: Tensor) -> tuple[Tensor, Tensor]:
    """Pictures (batch, channels, height, width) as lines, with dummy lengths."""
    return pictures.flatten(1, 2).transpose(0, 1), torch.zeros(1, dtype=torch.int64)


@dataclass(frozen=True)
class PictureTexts(LearnedPairs):
    source: Annotated[LearnedPictureSource, NEXT_TO]
    target: Annotated[LearnedTarget, NEXT_TO]

    @classmethod
    def learn(cls, train: PicturePart, model: AnyModel) -> Self:
        assert train.tokenisers is not None
        target = LearnedTarget.learn(train, train.tokenisers.input, model.text)
        return cls(LearnedPictureSource(train.shape), target)
