"""What a picture shows: a class, several labels, or a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ensue.metrics.table import CLASS_METRICS, NUMBER_METRICS
from ensue.settings import OneOf
from ensue.tasks.explaining.options import EXPLAINED_PICTURE
from ensue.tasks.model import Model
from ensue.tasks.pictures.part import PicturePart
from ensue.tasks.pictures.reader import are_pictures, named_columns, refuse_columns
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.search.ranges import Between, Choice, Searched, Space
from ensue.tasks.splits import HashSplit
from ensue.tasks.supervised.explain import ExplainUnits
from ensue.tasks.supervised.inputs.picture import Picture, PictureInputSettings
from ensue.tasks.supervised.learned import Learned
from ensue.tasks.supervised.options import OPTIONS
from ensue.tasks.supervised.task import AUTO, Supervised
from ensue.tasks.targets.classes import ClassTarget
from ensue.tasks.targets.kinds import TARGETS
from ensue.tasks.targets.target import Classified, Estimated, NumberSettings, ThresholdSettings


class ImageSettings(ThresholdSettings, NumberSettings, PictureInputSettings):
    """The convolutions, the layers on top of them, how training disturbs pictures, and what is
    predicted.

    >>> ImageSettings(flip=True).batch_rows
    64
    """

    target: Annotated[str, OneOf(lambda: (AUTO, *TARGETS), "target")] = Field(
        ClassTarget.kind, description="What is predicted; auto: what the labels look like."
    )


class Image(Supervised[ImageSettings]):
    """What a picture shows: a class, several labels, or a number."""

    name = "image"
    settings = ImageSettings
    input = Picture()
    target_kinds = (ClassTarget.kind,)
    train_defaults: ClassVar[Mapping[str, Any]] = {
        "epochs": 12,
        "rate": 2e-3,
        "schedule": "linear",
        "averaging": 0.998,
    }
    metrics = tuple({metric.name: metric for metric in (*CLASS_METRICS, *NUMBER_METRICS)}.values())
    ranges: ClassVar[Space] = {
        "model.hidden": Searched(Choice(([], [32], [64], [128], [128, 64]))),
        "model.dropout_layers": Searched(Between(0.0, 0.6)),
        "model.shift": Searched(Between(0.0, 0.15)),
        "model.rotate": Searched(Between(0.0, 30.0)),
        "model.zoom": Searched(Between(0.0, 0.2)),
    }
    options = OPTIONS["image"]
    explains = ExplainUnits(EXPLAINED_PICTURE)
    columns: ClassVar[Mapping[str, str]] = {"image": "data.text", "label": "data.label"}
    split = HashSplit("each picture")
    adapts = True
    deals = None

    def recognise(self, sample: Sample) -> Guess | None:
        return self.infer(sample) if are_pictures(sample.data.train) else None

    def infer(self, sample: Sample) -> Guess:
        if not sample.origin.files:
            return Guess("pictures with a class each", named_columns(sample))
        refuse_columns(sample.data)
        return Guess("pictures with a class each")


TASK = Image()


class ImageModel(Model[ImageSettings, PicturePart, Learned, Classified | Estimated]):
    """What a picture shows: a class, several labels, or a number.

    Pictures are arrays of bytes, (height, width) or (channels, height, width), or names of files;
    `fit` also takes a folder with a folder for each class. Their brightness is scaled by the
    training part alone. Pictures of other sizes than those of training are brought to theirs.

    >>> import numpy as np
    >>> rows = [(np.full((8, 8), grey, np.uint8), f"{grey}") for grey in (0, 255)] * 20
    >>> small = {"blocks": "4 max", "batch_rows": 8}
    >>> model = ImageModel(model=small, train={"epochs": 2}).fit(rows)
    >>> model.predict([np.full((8, 8), 255, np.uint8)])[0].label
    '255'
    """

    task = TASK
