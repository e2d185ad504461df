"""A picture becomes a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.frames.origin import FILES, Origin
from ensue.data.ragged import Ragged
from ensue.data.rows import Tell
from ensue.data.settings import DataSettings
from ensue.decoding import Hypothesis
from ensue.errors import OptionError
from ensue.tasks.any_model import AnyModel
from ensue.tasks.caption.answer import Captioned, Gaze
from ensue.tasks.caption.explain import ExplainCaption
from ensue.tasks.caption.files import CaptionFiles, Rows, asked_pictures, picture_name
from ensue.tasks.caption.network import CaptionNetwork, LearnedCaptions, check_captions, lines_of
from ensue.tasks.caption.options import OPTIONS
from ensue.tasks.caption.settings import CaptionSettings
from ensue.tasks.exported import BATCH, Exported, Graph, Input
from ensue.tasks.model import Model
from ensue.tasks.pictures.files import pictures_asked, pictures_in_memory
from ensue.tasks.pictures.part import PicturePart, collect_pictures, picture_step, shape_text
from ensue.tasks.reader import NO_COLUMNS, DatasetReader, Questions
from ensue.tasks.rows.part import Tokenisers
from ensue.tasks.rows.reader import tokeniser_of
from ensue.tasks.rows.reading import AT_ONCE, together
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.search.ranges import Between, Choice, Searched, Space
from ensue.tasks.seq2seq.evaluation import Compared, PairEvaluation, Scoring, evaluate_pairs
from ensue.tasks.seq2seq.exported import Encode, generating_graphs, search_step
from ensue.tasks.seq2seq.recognise import captions_guess, recognised_captions
from ensue.tasks.seq2seq.search import Search
from ensue.tasks.seq2seq.source import PairSource, Taught
from ensue.tasks.seq2seq.target import targets_of
from ensue.tasks.seq2seq.task import Seq2SeqTask, alternatives, pair_networks, scoring
from ensue.tasks.splits import HashSplit
from ensue.tasks.task import NOTHING, Asked


def evaluate_captions(
    rows: Compared, frequent: str, how: Scoring, attributes: Mapping[str, Sequence[str]]
) -> PairEvaluation:
    """frequent: the caption that is most frequent in training; attributes: words that answer one
    question, of which a caption is right where it has the same ones in the same order."""
    baselines = {"frequent caption": [frequent] * len(rows.expected)}
    found = evaluate_pairs(rows, baselines, how)
    right = {f"{name} right": _right(rows, words) for name, words in attributes.items()}
    known = {name: share for name, share in right.items() if share is not None}
    return replace(found, others={**found.others, **known})


def _right(rows: Compared, words: Sequence[str]) -> float | None:
    """The share of captions in which these words are as expected; None where none is expected."""
    known = frozenset(words)

    def of(text: str) -> list[str]:
        return [word for word in text.split() if word in known]

    pairs = [(of(found), of(text)) for found, text in zip(rows.found, rows.expected, strict=True)]
    if not any(expected for _, expected in pairs):
        return None
    return sum(found == expected for found, expected in pairs) / len(pairs)


class EncodePictures(nn.Module):
    """pictures (batch, channels, height, width) instead of their lines."""

    def __init__(self, encode: nn.Module) -> None:
        super().__init__()
        self.encode = encode

    def forward(self, pictures: Tensor) -> Any:
        lines = pictures.flatten(1, 2).transpose(0, 1)
        return self.encode(lines, torch.zeros(1, dtype=torch.int64))


def exported(model: AnyModel, how: Search) -> Exported:
    shape = channels, height, width = model.learned.shape
    members = cast(list[CaptionNetwork], pair_networks(model))
    tall, wide = members[0].grid
    words = len(model.learned.target.words)
    lines = Input("lines", (channels * height, BATCH, width))
    encode, step = generating_graphs(members, lines, words, tall * wide)
    assert isinstance(encode.network, Encode)
    pictures = Graph(
        "encode",
        EncodePictures(encode.network),
        (Input("pictures", (BATCH, *shape)),),
        encode.outputs,
    )
    after = search_step(how, model.learned.target, channels * height)
    return Exported("caption", (pictures, step), (picture_step(shape),), (after,))


CaptionerModel = Model[CaptionSettings, PicturePart, LearnedCaptions]


class CaptionReader(DatasetReader[PicturePart]):
    def files(
        self, data: DataSettings, on_bad_row: Tell | None = None, origin: Origin = FILES
    ) -> CaptionFiles:
        return CaptionFiles(data, self.collected, on_bad_row, origin)

    def labelled(
        self,
        rows: Any,
        columns: Mapping[str, str] = NO_COLUMNS,
        before: PicturePart | None = None,
    ) -> PicturePart:
        """rows: pairs (picture, caption); a picture is an array of bytes, or the name of a file."""
        examples = list(pictures_in_memory(rows))
        return self.collected(lambda: examples, before)

    def check(self, part: PicturePart, name: str) -> None:
        check_captions(part, name)

    def questions(self, inputs: Any, options: Asked = NOTHING) -> PicturePart:
        """inputs: arrays of bytes, or names of files."""
        if isinstance(inputs, str | Path):
            raise OptionError("predict: expected a list of pictures, got one; write [picture]")
        return self.collected(lambda: pictures_asked(inputs))

    def question_files(
        self,
        paths: Sequence[str],
        data: DataSettings,
        options: Asked = NOTHING,
        on_bad_row: Tell | None = None,
        origin: Origin = FILES,
    ) -> Iterator[Questions[PicturePart]]:
        for batch in together(asked_pictures(paths, data, on_bad_row, origin), AT_ONCE):
            part = self.collected(lambda batch=batch: batch)  # type: ignore[misc]
            yield Questions(part, [picture_name(example.place) for example in batch])

    def collected(self, rows: Rows, like: PicturePart | None = None) -> PicturePart:
        """The rows as a part: pictures of the shape, and captions cut by the tokeniser, of a
        fitted model or of the part that they are like; else as the settings say."""
        model = self.model
        if model.fitted:
            learned = model.learned
            shape, cut = learned.shape, learned.tokenisers
            return collect_pictures(rows(), model.model, None, shape, cut)
        if like is not None:
            return collect_pictures(rows(), model.model, like.numbers, like.shape, like.tokenisers)
        captions = (row.label for row in rows() if row.label is not None)
        tokeniser = tokeniser_of(model.text, captions)
        return collect_pictures(rows(), model.model, tokenisers=Tokenisers(tokeniser, tokeniser))


class Caption(Seq2SeqTask[CaptionSettings, PicturePart, LearnedCaptions]):
    """A sentence that describes a picture."""

    name = "caption"
    settings = CaptionSettings
    learned_class = LearnedCaptions
    train_defaults: ClassVar[Mapping[str, Any]] = {
        "epochs": 8,
        "rate": 2e-3,
        "schedule": "cosine",
        "averaging": 0.998,
    }
    options = OPTIONS
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
    explains = ExplainCaption()
    split = HashSplit("each source")
    no_attention = (
        "this model has no attention, so that nothing shows where its words look; train one with "
        "--set model.attention=additive (dot, general, concat)"
    )

    # ------------------------------------------------------------- recognised
    def recognise(self, sample: Sample) -> Guess | None:
        return recognised_captions(sample)

    def infer(self, sample: Sample) -> Guess:
        return captions_guess(sample)

    # ------------------------------------------------------------- read
    def reader(self, model: AnyModel) -> CaptionReader:
        return CaptionReader(model)

    # ------------------------------------------------------------- learned
    def learn(
        self, train: PicturePart, validation: PicturePart, model: CaptionerModel
    ) -> LearnedCaptions:
        return LearnedCaptions.learn(train, model.text)

    def build(self, model: CaptionerModel) -> Taught:
        learned = model.learned
        return Taught(CaptionNetwork(len(learned.target.words), learned.shape, model.model))

    def source(self, train: PicturePart, model: CaptionerModel, seed: int) -> PairSource:
        columns, rows = self.pair_columns(train, model), model.model.batch_rows
        budget = rows * int(columns.lengths.max())  # of steps: the rows alone decide
        return PairSource(columns, train.names, seed=seed, budget=budget, most_rows=rows)

    def sources(self, part: PicturePart, model: CaptionerModel) -> Ragged:
        return lines_of(part.pixels)

    def longest(self, settings: CaptionSettings) -> tuple[float, int]:
        return 0.0, settings.longest

    def attends(self, settings: CaptionSettings) -> bool:
        return settings.attention != "none"

    # ------------------------------------------------------------- asked
    def answered(
        self,
        found: Sequence[list[Hypothesis]],
        part: PicturePart,
        how: Search,
        model: CaptionerModel,
    ) -> list[Captioned]:
        return [_answer(hypotheses, how, model) for hypotheses in found]

    def shown(
        self, part: PicturePart, model: CaptionerModel
    ) -> tuple[list[str], NDArray[np.int64]]:
        return [""] * len(part), targets_of(part).lengths

    def evaluation(self, rows: Compared, model: CaptionerModel) -> PairEvaluation:
        frequent = model.learned.target.frequent_text
        return evaluate_captions(rows, frequent, scoring(model), model.model.attributes)

    # ------------------------------------------------------------- kept, looked at
    def exported(self, model: CaptionerModel) -> Exported:
        return exported(model, self.search(model))

    def describe(self, model: CaptionerModel) -> str:
        settings = model.model
        looks = "no" if settings.attention == "none" else settings.attention
        decoder = f"{settings.layers} × {settings.cell} of {settings.hidden_size}"
        return f"{settings.blocks} → {decoder}, {looks} attention"

    def facts(self, model: CaptionerModel) -> list[str]:
        learned = model.learned
        pictures = f"pictures of {shape_text(learned.shape)}"
        if model.networks:
            tall, wide = cast(CaptionNetwork, pair_networks(model)[0]).grid
            pictures += f" → {tall} × {wide} regions"
        return [pictures, f"{len(learned.target.words):,} tokens in the vocabulary"]


TASK = Caption()


class Captioner(Model[CaptionSettings, PicturePart, LearnedCaptions, Captioned]):
    """p(caption | picture) = Π p(word | words before it, picture), the end included.

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
        """The best caption, with the probability of each word and where it looked."""
        return TASK.explains.explain(self, picture).found


def _answer(found: list[Hypothesis], how: Search, model: CaptionerModel) -> Captioned:
    best, target = found[0], model.learned.target
    several = alternatives(found, target)
    attention = None
    if how.aligned and best.watched is not None:
        attention = tuple(tuple(row) for row in best.watched[: len(best.content)].tolist())
    return Captioned(
        several[0].text,
        best.log_probability,
        tuple(target.words.tokens_of(best.content)),
        several if how.n_best > 1 else (),
        attention,
    )
