"""The class of a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ensue.data.frames.origin import FILES, Origin
from ensue.data.rows import Tell
from ensue.data.settings import DataSettings
from ensue.errors import DataError, OptionError
from ensue.metrics.table import CLASS_METRICS
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.evaluation.temperature import temperature
from ensue.tasks.exported import Exported
from ensue.tasks.image.averaging import PictureAverages, PictureModel, network_outputs
from ensue.tasks.image.exported import exported
from ensue.tasks.image.files import (
    CONTENT,
    NamedPictureParts,
    PictureFiles,
    are_pictures,
    asked_pictures,
    named_columns,
    picture_name,
    refuse_columns,
)
from ensue.tasks.image.learned import LearnedPictures
from ensue.tasks.image.network import Disturbance, ImageNetwork
from ensue.tasks.image.options import OPTIONS
from ensue.tasks.image.settings import ImageSettings
from ensue.tasks.model import Model
from ensue.tasks.pictures.part import PicturePart, collect_pictures, shape_text
from ensue.tasks.pictures.reading import (
    picture_examples,
    pictures_asked,
    pictures_in_memory,
)
from ensue.tasks.rows.fixed_width import Arrays, RowSource, ScoredRows
from ensue.tasks.rows.labels import known_rows
from ensue.tasks.rows.reading import asked_rows
from ensue.tasks.rows.task import together
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Between, Choice, Searched, Space
from ensue.tasks.targets.answers import Classified
from ensue.tasks.task import NOTHING, Asked, Packed, Questions, Task

READ_AT_ONCE = 1000  # pictures of files that are answered together


class Image(Task[ImageSettings, PicturePart, LearnedPictures]):
    """The class of a picture."""

    name = "image"
    settings = ImageSettings
    train_defaults: ClassVar[Mapping[str, Any]] = {
        "epochs": 12,
        "rate": 2e-3,
        "schedule": "linear",
        "averaging": 0.998,
    }
    metrics = CLASS_METRICS
    averages = PictureAverages()
    ranges: ClassVar[Space] = {
        "model.hidden": Searched(Choice(([], [32], [64], [128], [128, 64]))),
        "model.dropout_layers": Searched(Between(0.0, 0.6)),
        "model.shift": Searched(Between(0.0, 0.15)),
        "model.rotate": Searched(Between(0.0, 30.0)),
        "model.zoom": Searched(Between(0.0, 0.2)),
    }
    options = OPTIONS
    columns: ClassVar[Mapping[str, str]] = {"image": "data.text", "label": "data.label"}
    unit = "each picture"

    # ------------------------------------------------------------- recognised
    def recognise(self, sample: Sample) -> Guess | None:
        return self.infer(sample) if are_pictures(sample.data.train) else None

    def infer(self, sample: Sample) -> Guess:
        if not sample.origin.files:
            return Guess("pictures with a class each", named_columns(sample))
        refuse_columns(sample.data)
        return Guess("pictures with a class each")

    # ------------------------------------------------------------- read
    def files(
        self,
        data: DataSettings,
        model: PictureModel,
        on_bad_row: Tell | None = None,
        origin: Origin = FILES,
    ) -> PictureFiles | NamedPictureParts:
        shape = model.learned.shape if model.fitted else None
        if not origin.files:
            return NamedPictureParts(data, model.model, shape, origin)
        return PictureFiles(data, model.model, shape, on_bad_row)

    def given(
        self,
        rows: Any,
        model: PictureModel,
        columns: Mapping[str, str],
        before: PicturePart | None = None,
    ) -> PicturePart:
        """rows: pairs (picture, label)."""
        examples = pictures_in_memory(rows)
        if model.fitted:
            return collect_pictures(examples, model.model, shape=model.learned.shape)
        if before is None:
            return collect_pictures(examples, model.model)
        return collect_pictures(examples, model.model, before.numbers, before.shape)

    def asked(self, inputs: Any, model: PictureModel, asked: Asked = NOTHING) -> PicturePart:
        """inputs: arrays of bytes, or names of files."""
        if isinstance(inputs, str | Path):
            raise OptionError("predict: expected a list of pictures, got one; write [picture]")
        return collect_pictures(pictures_asked(inputs), model.model, shape=model.learned.shape)

    def asked_files(
        self,
        paths: Sequence[str],
        data: DataSettings,
        model: PictureModel,
        asked: Asked = NOTHING,
        on_bad_row: Tell | None = None,
        origin: Origin = FILES,
    ) -> Iterator[Questions[PicturePart]]:
        shape = model.learned.shape
        if not origin.files:
            for some in together(asked_rows(CONTENT, data, [*paths], None, origin), READ_AT_ONCE):
                part = collect_pictures(some, model.model, shape=shape)
                yield Questions(part, [str(example.place) for example in some])
            return
        for rows in together(asked_pictures(paths, data, on_bad_row), READ_AT_ONCE):
            examples = picture_examples(rows)
            part = collect_pictures(examples, model.model, shape=shape)
            yield Questions(part, [picture_name(row.place) for row in rows])

    def question_keys(self, origin: Origin) -> tuple[str, ...]:
        return () if origin.files else ("text",)

    def known_rows(
        self, train: PicturePart, held: PicturePart, model: PictureModel
    ) -> NDArray[np.int64]:
        return known_rows(held, train)

    def check(self, part: PicturePart, name: str) -> None:
        if not len(part) or part.labels is None:
            where = f", the first of them {part.unlabelled}" if part.unlabelled else ""
            raise DataError(
                f"the {name} part: expected pictures with labels, got {len(part)}"
                + (" with some of them missing" + where) * bool(len(part))
            )

    # ------------------------------------------------------------- learned
    def learn(
        self, train: PicturePart, validation: PicturePart, model: PictureModel
    ) -> LearnedPictures:
        return LearnedPictures.learn(train, model.model)

    def build(self, model: PictureModel) -> ImageNetwork:
        settings, learned = model.model, model.learned
        return ImageNetwork(
            settings.network(learned.shape, learned.target.width),
            torch.from_numpy(learned.mean),
            torch.from_numpy(learned.spread),
            Disturbance(settings.shift, settings.rotate, settings.zoom, settings.flip),
        )

    def source(self, train: PicturePart, model: PictureModel, seed: int) -> RowSource:
        arrays = model.learned.arrays(train)
        return RowSource(arrays, seed=seed, batch_rows=model.model.batch_rows, names=train.names)

    def validation(self, network: nn.Module, part: PicturePart, model: PictureModel) -> ScoredRows:
        def score(arrays: Arrays) -> dict[str, float]:
            target = model.learned.target
            z = network_outputs(network, arrays["pictures"], target.width)
            return target.score(z, torch.from_numpy(arrays["targets"]), model.train.watch)

        return ScoredRows(score, model.learned.arrays(part))

    def calibrate(self, validation: PicturePart, model: PictureModel) -> LearnedPictures:
        """With the temperature that suits the validation part."""
        target = model.learned.target
        outputs = [network_outputs(net, validation.pixels, target.width) for net in model.networks]
        found = temperature(outputs, torch.from_numpy(target.encode(validation)))
        return replace(model.learned, temperature=found)

    # ------------------------------------------------------------- asked
    def decision_lines(self, asked: Asked, model: PictureModel) -> list[str]:
        return model.learned.target.decision_lines(asked)

    def answer_names(self, model: PictureModel) -> tuple[str, ...]:
        return model.learned.target.answer_names

    def answers(
        self, part: PicturePart, model: PictureModel, asked: Asked = NOTHING
    ) -> list[Classified]:
        own = self.averages
        return own.answers(own.outputs(part, model), part, model, asked) if len(part) else []

    @torch.no_grad()
    def evaluate(
        self, part: PicturePart, model: PictureModel, asked: Asked = NOTHING
    ) -> Evaluation:
        own = self.averages
        return own.evaluate(own.outputs(part, model), part, model, asked)

    # ------------------------------------------------------------- kept, looked at
    def exported(self, model: PictureModel) -> Exported:
        return exported(model)

    def pack(self, learned: LearnedPictures) -> Packed:
        return learned.pack()

    def unpack(self, saved: Saved, model: PictureModel) -> LearnedPictures:
        return LearnedPictures.unpack(saved)

    def describe(self, model: PictureModel) -> str:
        return "".join([model.model.blocks, *(f" → {units}" for units in model.model.hidden)])

    def facts(self, model: PictureModel) -> list[str]:
        learned = model.learned
        return [f"{shape_text(learned.shape)} → {learned.target.describe()}"]


TASK = Image()


class ImageModel(Model[ImageSettings, PicturePart, LearnedPictures, Classified]):
    """The class of a picture.

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
