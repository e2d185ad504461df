"""Pictures: from bytes to a vector of convolutions, with augmentation in training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, affine_grid, dropout, grid_sample

from ensue.data.frames.origin import FILES, Origin
from ensue.data.rows import ProblemCallback
from ensue.data.settings import DataSettings
from ensue.layers.convolution import ConvolutionBlocks
from ensue.layers.feedforward import HiddenLayers
from ensue.settings import Rate, Size, Width
from ensue.tasks.baselines.regression import Regression, minimise
from ensue.tasks.codec import unpacked
from ensue.tasks.declarations import Range, SavedAs
from ensue.tasks.declarations import Shape as ArrayShape
from ensue.tasks.exported import BATCH, Rounding
from ensue.tasks.exported import Input as GraphInput
from ensue.tasks.pictures.part import PicturePart, SavedShape, Shape, picture_step, shape_text
from ensue.tasks.pictures.reader import PictureFiles, PictureReader
from ensue.tasks.pictures.settings import PictureSettings
from ensue.tasks.reader import PartFiles
from ensue.tasks.rows.reader import unlabelled_rows_error
from ensue.tasks.saved import Saved
from ensue.tasks.supervised.input import Input, InputReader, ShareSettings
from ensue.tasks.supervised.learned import (
    FittedLinear,
    InputQuestion,
    LearnedInput,
    Linear,
    LinearQuestion,
    Named,
    Occlusions,
    Share,
    saved_regression,
)
from ensue.tasks.supervised.network import Budget, FixedWidth, InputEncoder, begin_dense
from ensue.tasks.targets.target import Target

if TYPE_CHECKING:
    from ensue.tasks.any_model import ModelView

SIDE = 28  # larger pictures are averaged to this height and width
MOST_ROWS = 60_000  # maximum pictures for the fit
ITERATIONS, RIDGE = 60, 1e-3


def feature_count(shape: tuple[int, int, int]) -> int:
    """The number of features of pictures with these channels, height and width."""
    channels, height, width = shape
    return channels * min(height, SIDE) * min(width, SIDE)


def pixel_features(pictures: NDArray[np.uint8]) -> Tensor:
    """(rows, features) between 0 and 1."""
    x = torch.from_numpy(np.array(pictures)).float() / 255
    height, width = (min(side, SIDE) for side in x.shape[2:])
    return adaptive_avg_pool2d(x, (height, width)).flatten(1)


def pixel_regression(
    pictures: NDArray[np.uint8], targets: NDArray[Any], outputs: int, kind: str = "softmax"
) -> Regression:
    """A regression fitted to the pictures, or to an evenly spaced subset of very many pictures.
    kind: the kind of `Regression`."""
    count = min(len(pictures), MOST_ROWS)
    rows = np.linspace(0, len(pictures) - 1, count).round().astype(np.int64)
    x, y = pixel_features(pictures[rows]), torch.from_numpy(targets[rows])
    regression = Regression(x.shape[1], outputs, kind)
    if kind == "linear":
        return regression.solve(x, y, RIDGE)

    def cost() -> Tensor:
        return regression.costs(x, y).mean() + RIDGE / 2 * (regression.weight**2).sum()

    minimise(regression, cost, ITERATIONS)
    return regression


AT_ONCE = 500  # pictures of an answer batch
LEVELS = np.arange(256)
PATCHES = 6  # patches per side in explanations
PICTURES = "pictures"  # the input of the network
START = "he"  # initialisation of its dense layers


class PictureReaderSettings(PictureSettings):
    """The convolutions, the layers on top of them, and data augmentation."""

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"dropout": ("dropout_layers",)}
    instead: ClassVar[Mapping[str, str]] = {"hidden_size": "hidden", "layers": "blocks"}

    hidden: list[Width] = Field([64], description="Units of each layer after the convolutions.")
    dropout_layers: Rate = Field(0.2, description="Dropout of the layers after the convolutions.")
    shift: Rate = Field(
        0.07, description="Maximum random shift in training, as a share of height and width."
    )
    rotate: Annotated[float, Field(ge=0, le=180)] = Field(
        15.0, description="Maximum random rotation in training, in degrees."
    )
    zoom: Rate = Field(
        0.1, description="Maximum random scaling in training, as a share of the size."
    )
    flip: bool = Field(False, description="Flip half of the pictures horizontally in training.")


class PictureInputSettings(PictureReaderSettings, ShareSettings):
    """The convolutions, the layers on top of them, and data augmentation."""

    batch_rows: Size = Field(64, description="Batch size, in pictures.")


# --- learned -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LearnedPictures(LearnedInput):
    """The learned part of pictures. shape: the shape of all pictures; mean, spread (channels,):
    mean and spread of the brightness."""

    shape: SavedShape
    mean: Annotated[
        NDArray[np.float64], SavedAs("brightness.mean"), ArrayShape(lambda record: record.shape[0])
    ]
    spread: Annotated[
        NDArray[np.float64],
        SavedAs("brightness.spread"),
        ArrayShape(lambda record: record.shape[0]),
        Range(above=0),
    ]

    def encode(self, part: PicturePart, model: ModelView) -> FixedWidth:
        return FixedWidth({PICTURES: part.pixels})

    def encoder(self, model: ModelView) -> PictureEncoder:
        mean, spread = torch.from_numpy(self.mean), torch.from_numpy(self.spread)
        return PictureEncoder(self.shape, mean, spread, model.settings)

    def row_texts(self, part: PicturePart) -> Callable[[int], tuple[str, str]]:
        return lambda row: (part.names[row], "")

    def features(self, part: PicturePart, model: ModelView) -> Tensor:
        return pixel_features(part.pixels)

    def linear(
        self, train: PicturePart, validation: Any, target: Target, model: ModelView
    ) -> FittedLinear:
        y, outputs = target.encode(train), target.linear_width
        return FittedLinear(
            PixelLinear(pixel_regression(train.pixels, y, outputs, target.regression))
        )

    def question(self, model: ModelView) -> InputQuestion:
        inputs = (GraphInput(PICTURES, (BATCH, *self.shape)),)
        return InputQuestion(inputs, (picture_step(self.shape),), lambda named: named)

    def occlusions(self, part: PicturePart, model: ModelView) -> Occlusions:
        """A row for each patch, in which it is replaced by the mean brightness of training."""
        _, height, width = self.shape
        grey = self.mean.round().astype(np.uint8)[:, None, None]
        names, pictures = list[str](), list[NDArray[np.uint8]]()
        for top, bottom in _patches(height):
            for left, right in _patches(width):
                picture = part.pixels[0].copy()
                picture[:, top:bottom, left:right] = grey
                names.append(f"{top}–{bottom - 1}, {left}–{right - 1}")
                pictures.append(picture)
        again = part.take(np.zeros(len(pictures), np.int64))
        how = "each patch (rows, columns of pixels) replaced by the mean of training"
        return Occlusions(tuple(names), how, replace(again, pixels=np.stack(pictures), labels=None))

    def fact(self) -> str:
        return shape_text(self.shape)


@dataclass(frozen=True)
class PixelLinear(Linear):
    """Regression on pixels."""

    regression: Annotated[
        Regression,
        SavedAs("linear"),
        saved_regression(lambda record: feature_count(record.input.shape)),
    ]

    @property
    def name(self) -> str:
        return "linear model"

    @torch.no_grad()
    def scores(self, part: PicturePart) -> Tensor:
        return self.regression.scores(pixel_features(part.pixels))

    def rounded(self, rounding: Rounding) -> PixelLinear:
        regression = deepcopy(self.regression)
        values = rounding(regression.weight.detach().numpy())
        regression.weight.data = torch.from_numpy(values)
        return PixelLinear(regression)

    def question(self, model: ModelView) -> LinearQuestion:
        shape: Shape = model.learned.input.shape
        return LinearQuestion((), (), PixelScores(shape, self.regression))


class PixelScores(nn.Module):
    """Computes z of a linear model of pixels from the inputs of an exported graph."""

    def __init__(self, shape: Shape, regression: Regression) -> None:
        super().__init__()
        self.regression = regression
        self.size = (min(shape[1], SIDE), min(shape[2], SIDE))

    def forward(self, named: Named) -> Tensor:
        x = adaptive_avg_pool2d(named[PICTURES].float() / 255, self.size).flatten(1)
        return self.regression.scores(x)


def _patches(side: int) -> list[tuple[int, int]]:
    """First and last pixels of equal parts of a side."""
    edges = np.linspace(0, side, min(side, PATCHES) + 1).round().astype(int).tolist()
    return list(pairwise(edges))


def brightness(pictures: NDArray[np.uint8]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and spread of each channel (1 if all pixels are equal), from the counts of the 256
    levels. pictures: (rows, channels, height, width)."""
    counts = [np.bincount(channel.ravel(), minlength=256) for channel in pictures.swapaxes(0, 1)]
    share = np.stack(counts) / max(pictures[:, 0].size, 1)
    mean = share @ LEVELS
    variance = (share * (LEVELS - mean[:, None]) ** 2).sum(1)
    return mean, np.where(variance > 0, np.sqrt(variance), 1.0)


# --- the network ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Disturbance:
    """Data augmentation: each picture is slightly moved, turned and stretched, so that the exact
    position of things does not matter. Everything is drawn from torch's generator.

    shift: maximum, as a share of height and width; rotate: maximum degrees; zoom: maximum change of
    size; flip: mirrors left and right, half of the time."""

    shift: float = 0.0
    rotate: float = 0.0
    zoom: float = 0.0
    flip: bool = False

    def __bool__(self) -> bool:
        return bool(self.shift or self.rotate or self.zoom or self.flip)

    def maps(self, rows: int, height: int, width: int) -> Tensor:
        """The affine maps from new to old positions, in halves of width and height
        from the centre; shape (rows, 2, 3)."""
        turn, zoom, across, down, side = (2 * torch.rand(5, rows) - 1).unbind()
        turn, zoom = turn * math.radians(self.rotate), 1 + zoom * self.zoom
        across, down = 2 * self.shift * across, 2 * self.shift * down
        side = torch.where(side < 0, -1.0, 1.0) if self.flip else torch.ones(rows)
        cos, sin = zoom * turn.cos(), zoom * turn.sin()
        long = height / width  # a rotation is in pixels, not in halves
        first = torch.stack([side * cos, -sin * long, across], 1)
        second = torch.stack([side * sin / long, cos, down], 1)
        return torch.stack([first, second], 1)

    def __call__(self, x: Tensor) -> Tensor:
        """The augmented x (rows, channels, height, width); edge pixels continue beyond the
        border."""
        maps = self.maps(len(x), *x.shape[2:]).to(x)
        grid = affine_grid(maps, list(x.shape), align_corners=False)
        return grid_sample(x, grid, padding_mode="border", align_corners=False)


class PictureEncoder(InputEncoder):
    """Convolutions and layers over (x − mean)/spread of pictures x in bytes, with mean and spread
    of each channel."""

    mean: Tensor
    spread: Tensor

    def __init__(
        self, shape: Shape, mean: Tensor, spread: Tensor, settings: PictureReaderSettings
    ) -> None:
        super().__init__()
        channels, height, width = shape
        self.dropout = settings.dropout_layers
        self.disturbance = Disturbance(
            settings.shift, settings.rotate, settings.zoom, settings.flip
        )
        self.blocks = ConvolutionBlocks(channels, settings.blocks, norm=settings.norm)
        volume = math.prod(self.blocks.shape(height, width))
        self.layers = HiddenLayers(
            [volume, *settings.hidden, 1], init=START, dropout=settings.dropout_layers
        )
        self.width = self.layers.width
        for name, values in (("mean", mean), ("spread", spread)):
            self.register_buffer(name, values.float()[:, None, None], persistent=False)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        x = (inputs[PICTURES].to(self.mean) - self.mean) / self.spread
        if self.training and self.disturbance:
            x = self.disturbance(x)
        flat = dropout(self.blocks(x).flatten(1), self.dropout, self.training)
        vectors: Tensor = self.layers(flat)
        return vectors

    def begin(self, output: nn.Linear) -> None:
        begin_dense(output, START)


# --- the input -----------------------------------------------------------------------------------


class PictureInputReader(InputReader[PicturePart], PictureReader):
    """Reads pictures with their labels: of folders and idx files, or those that a data frame
    names."""

    def learned_shape(self) -> Shape:
        shape: Shape = self.model.learned.input.shape
        return shape

    def files(
        self, data: DataSettings, on_bad_row: ProblemCallback | None = None, origin: Origin = FILES
    ) -> PartFiles[PicturePart]:
        if not origin.files:
            return super().files(data, on_bad_row, origin)
        shape = self.learned_shape() if self.model.fitted else None
        return PictureFiles(data, self.model.settings, shape, on_bad_row)

    def check_labels(self, part: PicturePart, name: str) -> None:
        if not len(part) or part.labels is None:
            raise unlabelled_rows_error(part, name, "pictures")

    def question_keys(self, origin: Origin) -> tuple[str, ...]:
        return () if origin.files else ("text",)


class Picture(Input):
    """A picture: an array of bytes, a file, one of a folder or of an idx file."""

    name = "picture"
    learned_class = LearnedPictures
    reader_class = PictureInputReader

    def learn(self, train: PicturePart, model: ModelView) -> LearnedPictures:
        mean, spread = brightness(train.pixels)
        learned = LearnedPictures(train.shape, mean, spread)
        with torch.device("meta"):  # an error about sizes should come before any long work
            learned.encoder(model)
        return learned

    def unpack_linear(
        self, saved: Saved, learned: LearnedPictures, target: Target, model: ModelView
    ) -> PixelLinear:
        return unpacked(PixelLinear, saved, input=learned, target=target)

    def share(self, settings: PictureInputSettings, target: Target) -> Share:
        return settings.linear_share or None

    def budget(self, settings: PictureInputSettings) -> Budget:
        return Budget(settings.batch_rows)

    def answer_budget(self, settings: PictureInputSettings) -> int:
        return AT_ONCE

    def describe(self, settings: PictureInputSettings) -> str:
        return "".join([settings.blocks, *(f" → {units}" for units in settings.hidden)])
