"""One sequence of words becomes another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.decoding import Hypothesis
from ensue.tasks.codec import Packed, packed
from ensue.tasks.explaining.heads import HeadMaps
from ensue.tasks.exported import Exported
from ensue.tasks.model import Model
from ensue.tasks.rows.collect import PairContent
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.rows.reader import RowReader, Rows, tokeniser_of
from ensue.tasks.rows.task import LineSplit, RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Between, Searched, Space
from ensue.tasks.seq2seq.evaluation import Compared, PairEvaluation, evaluate_pairs
from ensue.tasks.seq2seq.recognise import pairs_guess, recognised_pairs
from ensue.tasks.seq2seq.search import Search
from ensue.tasks.seq2seq.source import PairSource
from ensue.tasks.seq2seq.task import Seq2SeqTask, alternatives, scoring
from ensue.tasks.translate.answer import Explained, Translated
from ensue.tasks.translate.explain import ExplainTranslation, TranslationHeads
from ensue.tasks.translate.families import FAMILIES, TranslateTransfers, exported
from ensue.tasks.translate.learned import (
    LearnedPairs,
    check_sides,
    long_pairs_line,
    short_pairs,
    source_texts,
)
from ensue.tasks.translate.options import OPTIONS
from ensue.tasks.translate.settings import PairSettings

TranslatorModel = Model[PairSettings, Part, LearnedPairs]


class PairReader(RowReader[Part]):
    content = PairContent()
    new_labels = True

    def tokenisers(self, rows: Rows) -> Tokenisers:
        """One for each side, that of the source as in a base; subwords that are shared are learned
        from both."""
        model = self.model
        sources = (row.value for row in rows() if not isinstance(row.value, np.ndarray))
        targets = (row.label for row in rows() if row.label is not None)
        if model.model.shared:
            both = tokeniser_of(model.text, chain(sources, targets))
            return Tokenisers(both, both)
        target = tokeniser_of(model.text, targets)
        if model.pretrained is not None and model.pretrained.tokeniser is not None:
            return Tokenisers(model.pretrained.tokeniser, target)
        return Tokenisers(tokeniser_of(model.text, sources), target)

    def check(self, part: Part, name: str) -> None:
        check_sides(part, name)

    def remarks(self, train: Part, validation: Part) -> list[str]:
        line = long_pairs_line(train, self.model.text.max_length)
        return [line] if line else []


class Translate(Seq2SeqTask[PairSettings, Part, LearnedPairs], RowTask[PairSettings, LearnedPairs]):
    """Words or vectors become words: translation, transcription, captions, normal forms."""

    name = "translate"
    settings = PairSettings
    learned_class = LearnedPairs
    text_defaults: ClassVar[Mapping[str, Any]] = {"lower": False}
    train_defaults: ClassVar[Mapping[str, Any]] = {"patience": 5}
    families = FAMILIES
    options = OPTIONS
    ranges: ClassVar[Space] = {
        "model.dropout_layers": Searched(Between(0.0, 0.4)),
        "model.smoothing": Searched(Between(0.0, 0.2)),
    }
    columns: ClassVar[Mapping[str, str]] = {
        "source": "data.text",
        "target": "data.label",
        "text": "data.text",
        "label": "data.label",
    }
    explains = ExplainTranslation()
    heads = TranslationHeads()
    reader_class = PairReader
    transfers = TranslateTransfers("the layers that read its sources answer to its decoder alone")
    split = LineSplit("each source")
    no_attention = (
        "this model has no attention, so that nothing shows where its words come from; train one "
        "with --set model.attention=additive (dot, general, concat), or with "
        "model.family=transformer"
    )

    # ------------------------------------------------------------- recognised
    def recognise(self, sample: Sample) -> Guess | None:
        return recognised_pairs(sample)

    def infer(self, sample: Sample) -> Guess:
        return pairs_guess(sample)

    # ------------------------------------------------------------- learned
    def learn(self, train: Part, validation: Part, model: TranslatorModel) -> LearnedPairs:
        short = short_pairs(train, model.text.max_length)
        return LearnedPairs.learn(short, model.text, model.model.shared, model.beginning)

    def source(self, train: Part, model: TranslatorModel, seed: int) -> PairSource:
        short, settings = short_pairs(train, model.text.max_length), model.model
        return PairSource(
            self.pair_columns(short, model),
            short.names,
            seed=seed,
            budget=settings.batch_tokens,
            most_rows=settings.batch_rows,
        )

    def sources(self, part: Part, model: TranslatorModel) -> Ragged:
        return model.learned.sources(part)

    def longest(self, settings: PairSettings) -> tuple[float, int]:
        return settings.longest_factor, settings.longest_extra

    def attends(self, settings: PairSettings) -> bool:
        return FAMILIES[settings.family].attends(settings)

    # ------------------------------------------------------------- asked
    def answered(
        self, found: Sequence[list[Hypothesis]], part: Part, how: Search, model: TranslatorModel
    ) -> list[Translated]:
        pairs = zip(found, source_texts(part), strict=True)
        return [_answer(hypotheses, source, how, model) for hypotheses, source in pairs]

    def shown(self, part: Part, model: TranslatorModel) -> tuple[list[str], NDArray[np.int64]]:
        cut = model.learned.source_tokeniser
        if not part.texts:
            return [""] * len(part), part.inputs.lengths
        return [cut.text_of(tokens) for tokens in source_texts(part)], part.inputs.lengths

    def evaluation(self, rows: Compared, model: TranslatorModel) -> PairEvaluation:
        frequent = [model.learned.target.frequent_text] * len(rows.expected)
        baselines = {"copied source": rows.sources, "frequent target": frequent}
        if model.learned.scale is not None:
            del baselines["copied source"]
        return evaluate_pairs(rows, baselines, scoring(model))

    # ------------------------------------------------------------- kept, looked at
    def exported(self, model: TranslatorModel) -> Exported:
        return exported(model, self.search(model))

    def pack(self, learned: LearnedPairs) -> Packed:
        return packed(learned.as_saved())

    def unpack(self, saved: Saved, model: TranslatorModel) -> LearnedPairs:
        return super().unpack(saved, model).as_read()

    def facts(self, model: TranslatorModel) -> list[str]:
        learned = model.learned
        target = f"{len(learned.target.words):,}"
        if learned.scale is not None:
            return [f"{learned.scale.width} numbers a step, {target} tokens in the vocabulary"]
        assert learned.source_words is not None
        sizes = f"{len(learned.source_words):,} source and {target} target"
        return [f"{f'{target} shared' if learned.shared else sizes} tokens in the vocabulary"]


TASK = Translate()


class Translator(Model[PairSettings, Part, LearnedPairs, Translated]):
    """p(target | source) = Π p(word | words before it, source), the end included.

    >>> small = {"hidden_size": 16, "embedding_size": 8}
    >>> model = Translator({"level": "characters"}, small, {"epochs": 8, "rate": 0.05})
    >>> model.fit([("one", "1"), ("two", "2")] * 20).predict(["two"], beam=2)[0].text
    '2'
    """

    task = TASK

    def explain(self, text: str) -> Explained:  # type: ignore[override]
        """The best translation, with the probability of each word and where it looked."""
        return TASK.explains.explain(self, text).found

    def attention(self, text: str, layer: int | None = None) -> HeadMaps:
        """Where every head of a Transformer looks, in the source and in what is said."""
        return TASK.heads.explain(self, text, {"layer": layer})


def _answer(
    found: list[Hypothesis], source: tuple[str, ...], how: Search, model: TranslatorModel
) -> Translated:
    best, target = found[0], model.learned.target
    several = alternatives(found, target)
    weights = None
    if how.aligned:
        rows = [] if best.watched is None else best.watched[:, : len(source)].tolist()
        weights = tuple(tuple(row) for row in rows[: len(best.content)])
    return Translated(
        several[0].text,
        best.log_probability,
        tuple(target.words.tokens_of(best.content)),
        source,
        several if how.n_best > 1 else (),
        weights,
    )
