"""A picture becomes a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ensue.tasks.any_model import AnyModel
from ensue.tasks.explaining.options import EXPLAINED_PICTURE
from ensue.tasks.model import Model
from ensue.tasks.pictures.part import PicturePart
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.search.ranges import Between, Choice, Searched, Space
from ensue.tasks.seq2seq.answer import Captioned, Gaze
from ensue.tasks.seq2seq.explain import ExplainWords
from ensue.tasks.seq2seq.options import OPTIONS
from ensue.tasks.seq2seq.pairs import Taught
from ensue.tasks.seq2seq.picture import (
    PicturePairReader,
    PictureTexts,
    description,
    picture_network,
)
from ensue.tasks.seq2seq.recognise import captions_guess, recognised_captions
from ensue.tasks.seq2seq.settings import CaptionSettings
from ensue.tasks.seq2seq.source import LearnedPairs
from ensue.tasks.seq2seq.task import Seq2Seq
from ensue.tasks.splits import HashSplit
from ensue.tasks.task import Task


class Caption(Seq2Seq[CaptionSettings]):
    """A sentence that describes a picture."""

    name = "caption"
    settings = CaptionSettings
    reader_class = PicturePairReader
    learned_class = PictureTexts
    answer = Captioned
    train_defaults: ClassVar[Mapping[str, Any]] = {
        "epochs": 8,
        "rate": 2e-3,
        "schedule": "cosine",
        "averaging": 0.998,
    }
    ranges: ClassVar[Space] = {
        "model.attention": Searched(Choice(("additive", "general", "concat"))),
        "model.dropout_regions": Searched(Between(0.0, 0.4)),
    }
    columns: ClassVar[Mapping[str, str]] = {
        "image": "data.text",
        "caption": "data.label",
        "source": "data.text",
        "target": "data.label",
    }
    options = OPTIONS["caption"]
    explains = ExplainWords(EXPLAINED_PICTURE)
    deals = None
    split = HashSplit("each source")
    where_words = "where its words look"

    def recognise(self, sample: Sample) -> Guess | None:
        return recognised_captions(sample)

    def infer(self, sample: Sample) -> Guess:
        return captions_guess(sample)

    def search_space(self, train: Any, model: Model[Any, Any, Any]) -> Space:
        return Task.search_space(self, train, model)

    def build(self, model: AnyModel) -> Taught:
        return picture_network(model)

    def describe(self, model: AnyModel) -> str:
        return description(model.settings)


TASK = Caption()


class Captioner(Model[CaptionSettings, PicturePart, LearnedPairs, Captioned]):
    """p(caption | picture) = Π p(word | words before it, picture), including the end.

    A picture is an array of bytes (channels, height, width), or the name of a file.

    >>> import numpy as np
    >>> rows = [(np.full((8, 8), grey, np.uint8), f"it is {grey}") for grey in (0, 255)] * 20
    >>> small = {"blocks": "4 max", "hidden_size": 16, "embedding_size": 8, "batch_rows": 8}
    >>> model = Captioner(model=small, train={"epochs": 10, "rate": 0.05}).fit(rows)
    >>> model.predict([np.full((8, 8), 255, np.uint8)])[0].text
    'it is 255'
    """

    task = TASK

    def explain(self, picture: Any) -> Gaze:  # type: ignore[override]
        """The best caption, with the probability and the attention of each word."""
        gaze: Gaze = TASK.explains.explain(self, picture).result
        return gaze
