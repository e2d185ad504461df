"""`ImageModel`: a picture in, its class with a probability out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.read import Gathered
from ensue.errors import DataError, OptionError
from ensue.models.classifier import Classified
from ensue.models.collect import Collected, Numbers
from ensue.models.evaluation import Evaluation
from ensue.models.image_baseline import pixel_features, pixel_regression
from ensue.models.image_network import Disturbance, ImageNetwork
from ensue.models.image_rows import (
    Shape,
    collect_pictures,
    loaded,
    read_pictures,
    rows_of_pairs,
    told,
)
from ensue.models.image_settings import ImageSettings
from ensue.models.labels import known_rows
from ensue.models.regression import Regression
from ensue.models.row_source import Arrays, RowSource, ScoredRows
from ensue.models.saved import Saved, network_files, networks_of
from ensue.models.settings import Table
from ensue.models.table_classes import ClassTarget
from ensue.models.table_targets import Asked
from ensue.models.task_model import IN_MEMORY, Fitting, Given, TaskModel
from ensue.models.temperature import temperature
from ensue.training import Outcome, RateCurve, Said, Watcher, find_rate

AT_ONCE = 500  # pictures that the networks see together when they answer
LEVELS = np.arange(256)

Pairs = Iterable[tuple[Any, Any]]


class PicturesAsked(Asked):
    """Of pictures: their names are all that a line of text can show."""

    def shown(self, row: int) -> tuple[str, str]:
        return self.part.names[row], ""


class ImageModel(TaskModel):
    """The class of a picture.

    model = ImageModel().fit("animals")               # animals/cat/1.png, animals/dog/7.png, …
    model.predict(["whose.png"])[0].label

    Pictures are arrays of bytes, (height, width) or (channels, height, width), or names of files;
    their brightness is scaled by the training part alone. Pictures of other sizes than those of
    training are brought to theirs."""

    kind = "image"
    model_settings: ClassVar[type[Table]] = ImageSettings
    train_defaults: ClassVar[Given] = {
        "epochs": 12,
        "rate": 2e-3,
        "schedule": "linear",
        "averaging": 0.998,
        "watch": "accuracy",
    }
    model: ImageSettings

    shape: Shape
    mean: NDArray[np.float64]  # of the brightness, each channel
    spread: NDArray[np.float64]
    goal: ClassTarget
    linear: Regression
    temperature = 1.0  # scores are divided by it, so that probabilities keep their word

    # ------------------------------------------------------------- the verbs
    def fit(
        self,
        pictures: Path | str | Pairs,
        validation: Path | str | Pairs | None = None,
        *,
        folder: Path | str | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> Self:
        """From a folder of classes, an idx file, or pairs (picture, label). Without validation, a
        tenth is held out."""
        numbers = Numbers()
        own = self._read(pictures, numbers)
        held = None
        if validation is not None:
            held = self._read(validation, numbers, shape_of(own))
        return self._fit_collected(own, held, numbers, folder, watchers)

    def evaluate(self, pictures: Path | str | Pairs) -> Evaluation:
        """Scores with intervals, baselines, confusion, calibration, the surest mistakes."""
        self.must_be_fitted()
        numbers = Numbers()
        part = self._read(pictures, numbers, self.shape)
        if not len(part):
            raise DataError("evaluate: expected pictures, got none")
        return self.judge(part, numbers)

    def predict(self, inputs: Iterable[Any]) -> list[Classified]:
        """An answer for each picture: an array, or the name of a file."""
        self.must_be_fitted()
        if isinstance(inputs, str | Path):
            raise OptionError("predict: expected a list of pictures, got one; write [picture]")
        given = [(loaded(own, line), None) for line, own in enumerate(inputs, 1)]
        numbers = Numbers()
        return self.answers(self._read(given, numbers, self.shape), numbers)

    def _read(
        self, given: Path | str | Pairs, numbers: Numbers, shape: Shape | None = None
    ) -> Collected:
        if isinstance(given, str | Path):
            rows: Any = Gathered({str(given): partial(read_pictures, given)})
        else:
            rows = rows_of_pairs(given)
        return collect_pictures(rows, numbers, self.model, shape)

    # ------------------------------------------------------------- learning
    def fit_parts(
        self,
        train: Collected,
        validation: Collected,
        numbers: Numbers,
        how: Fitting = IN_MEMORY,
    ) -> list[Outcome]:
        for name, part in (("training", train), ("validation", validation)):
            if not len(part) or part.labels is None:
                where = f", the first of them {part.unlabelled}" if part.unlabelled else ""
                raise DataError(
                    f"the {name} part: expected pictures with labels, got {len(part)}"
                    + (" with some of them missing" + where) * bool(len(part))
                )
        arrays = self._learn(train, numbers)
        held = self._arrays(self._known(train, validation, numbers, how.watchers), numbers)
        outcomes = self.fit_members(
            lambda seed: self._source(arrays, train, seed),
            lambda network: ScoredRows(lambda own: self._score(network, own), held),
            how,
        )
        outputs = [self._outputs(own, held["pictures"]) for own in self.networks]
        self.temperature = temperature(outputs, torch.from_numpy(held["targets"]))
        return outcomes

    def _known(
        self, train: Collected, part: Collected, numbers: Numbers, watchers: Sequence[Watcher]
    ) -> Collected:
        """The pictures whose classes the training part has: nothing can learn the others."""
        kept, wrong = known_rows(part, train, numbers)
        if not len(kept):
            raise DataError(
                "the validation part: expected pictures of classes of the training part, got none"
            )
        for watcher in watchers if len(wrong) else ():
            many = f"{len(wrong):,} of the validation pictures"
            watcher(Said(f"{many} left out, of classes that training does not have"))
        return kept

    def _learn(self, train: Collected, numbers: Numbers) -> Arrays:
        """Shape, brightness, classes and linear model; the training part as networks see it."""
        self.shape = shape_of(train)
        self.model.network(self.shape, 2)  # an error about sizes comes before any long work
        self.mean, self.spread = brightness(train.inputs.values)
        self.goal = ClassTarget.learn(train, numbers)
        arrays = self._arrays(train, numbers)
        self.linear = pixel_regression(arrays["pictures"], arrays["targets"], self.goal.width)
        return arrays

    def _arrays(self, part: Collected, numbers: Numbers) -> dict[str, Any]:
        return {"pictures": part.inputs.values, "targets": self.goal.encode(part, numbers)}

    def _source(self, arrays: Arrays, part: Collected, seed: int) -> RowSource:
        return RowSource(arrays, seed=seed, batch_rows=self.model.batch_rows, names=part.names)

    def find_rate(self, train: Collected, numbers: Numbers) -> RateCurve:
        """Tries ever higher learning rates on a fresh network, and suggests one."""
        source = self._source(self._learn(train, numbers), train, self.train.seed)
        return find_rate(self.fresh(self.train.seed), source, self.train)

    def build(self) -> ImageNetwork:
        own = self.model
        return ImageNetwork(
            own.network(self.shape, self.goal.width),
            torch.from_numpy(self.mean),
            torch.from_numpy(self.spread),
            Disturbance(own.shift, own.rotate, own.zoom, own.flip),
        )

    # ------------------------------------------------------------- answers
    @torch.no_grad()
    def _outputs(self, network: nn.Module, pictures: NDArray[np.uint8]) -> Tensor:
        """z (rows, classes)."""
        assert isinstance(network, ImageNetwork)
        found = [
            network.scores(torch.from_numpy(np.array(pictures[first : first + AT_ONCE])))
            for first in range(0, len(pictures), AT_ONCE)
        ]
        return torch.cat(found) if found else torch.zeros(0, self.goal.width)

    def _tempered(self, pictures: NDArray[np.uint8]) -> list[Tensor]:
        return [self._outputs(own, pictures) / self.temperature for own in self.networks]

    def _score(self, network: nn.Module, arrays: Arrays) -> dict[str, float]:
        z = self._outputs(network, arrays["pictures"])
        return self.goal.score(z, torch.from_numpy(arrays["targets"]))

    def answers(self, part: Collected, numbers: Numbers) -> list[Classified]:
        return self.goal.answers(self._tempered(part.inputs.values)) if len(part) else []

    @torch.no_grad()
    def judge(self, part: Collected, numbers: Numbers) -> Evaluation:
        if part.labels is None:
            raise DataError(
                f"evaluate: expected pictures with labels, got {part.unlabelled} without"
            )
        pictures = part.inputs.values
        linear = self.linear.scores(pixel_features(pictures))
        outputs = self._tempered(pictures)
        return self.goal.judge(PicturesAsked(outputs, linear, part, numbers, self.train.seed))

    # ------------------------------------------------------------- as files
    def fitted(self) -> bool:
        return bool(self.networks)

    def state(self) -> Saved:
        facts = {
            **self.settings_facts(),
            "shape": list(self.shape),
            "temperature": self.temperature,
            "goal": self.goal.facts(),
        }
        weights = self.linear.state_dict().items()
        arrays: dict[str, NDArray[Any]] = {f"linear.{name}": own.numpy() for name, own in weights}
        arrays |= {"brightness.mean": self.mean, "brightness.spread": self.spread}
        return Saved(self.kind, facts, {}, arrays, network_files(self.networks))

    @classmethod
    def of_saved(cls, saved: Saved) -> Self:
        own = saved.facts
        found = cls(own["text"], own["model"], own["train"], members=own["members"])
        channels, height, width = own["shape"]
        found.shape, found.temperature = (channels, height, width), own["temperature"]
        scale = saved.part("brightness")
        found.mean, found.spread = scale["mean"], scale["spread"]
        found.goal = ClassTarget.of_facts(own["goal"])
        linear = {name: torch.from_numpy(v.copy()) for name, v in saved.part("linear").items()}
        found.linear = Regression(linear["weight"].shape[1], found.goal.width, "softmax")
        found.linear.load_state_dict(linear)
        found.networks = networks_of(saved, found.build)
        return found

    # ------------------------------------------------------------- to be looked at
    def summary(self) -> str:
        """What the model is, in a few lines."""
        behind = "".join(f" → {units}" for units in self.model.hidden)
        lines = [f"{type(self).__name__}: {self.model.blocks}{behind}"]
        if self.networks:
            lines.append(f"  {told(self.shape)} → {self.goal.described()}")
            lines.append(self.size_line())
        return "\n".join(lines)


def shape_of(part: Collected) -> Shape:
    _, channels, height, width = part.inputs.values.shape
    return channels, height, width


def brightness(pictures: NDArray[np.uint8]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and spread of each channel (1 where all pixels are alike), from how often each of the
    256 levels occurs."""
    counts = [np.bincount(own.ravel(), minlength=256) for own in pictures.swapaxes(0, 1)]
    share = np.stack(counts) / max(pictures[:, 0].size, 1)
    mean = share @ LEVELS
    variance = (share * (LEVELS - mean[:, None]) ** 2).sum(1)
    return mean, np.where(variance > 0, np.sqrt(variance), 1.0)
