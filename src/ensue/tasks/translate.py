"""One sequence of words becomes another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ensue.tasks.explaining.heads import HeadMaps
from ensue.tasks.explaining.options import EXPLAINED
from ensue.tasks.model import Model
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.task import LineSplit
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.search.ranges import Between, Searched, Space
from ensue.tasks.seq2seq.answer import Explained, Translated
from ensue.tasks.seq2seq.explain import ExplainWords, WordHeads
from ensue.tasks.seq2seq.network import FAMILIES
from ensue.tasks.seq2seq.options import OPTIONS
from ensue.tasks.seq2seq.recognise import pairs_guess, recognised_pairs
from ensue.tasks.seq2seq.settings import PairSettings
from ensue.tasks.seq2seq.source import LearnedPairs
from ensue.tasks.seq2seq.task import Seq2Seq
from ensue.tasks.seq2seq.text import SourceTransfers, TextPairReader, TextPairs


class Translate(Seq2Seq[PairSettings]):
    """Words or vectors become words: translation, transcription, captions, normal forms."""

    name = "translate"
    settings = PairSettings
    reader_class = TextPairReader
    learned_class = TextPairs
    answer = Translated
    families = FAMILIES
    text_defaults: ClassVar[Mapping[str, Any]] = {"lower": False}
    train_defaults: ClassVar[Mapping[str, Any]] = {"patience": 5}
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
    options = OPTIONS["translate"]
    explains = ExplainWords(EXPLAINED)
    heads = WordHeads()
    transfers = SourceTransfers("its encoder serves only its decoder")
    split = LineSplit("each source")
    where_words = "where its words come from"

    def recognise(self, sample: Sample) -> Guess | None:
        return recognised_pairs(sample)

    def infer(self, sample: Sample) -> Guess:
        return pairs_guess(sample)


TASK = Translate()


class Translator(Model[PairSettings, Part, LearnedPairs, Translated]):
    """p(target | source) = Π p(word | words before it, source), including the end.

    >>> small = {"hidden_size": 16, "embedding_size": 8}
    >>> model = Translator({"level": "characters"}, small, {"epochs": 8, "rate": 0.05})
    >>> model.fit([("one", "1"), ("two", "2")] * 20).predict(["two"], beam=2)[0].text
    '2'
    """

    task = TASK

    def explain(self, text: str) -> Explained:  # type: ignore[override]
        """The best translation, with the probability and the attention of each word."""
        explained: Explained = TASK.explains.explain(self, text).result
        return explained

    def attention(self, text: str, layer: int | None = None) -> HeadMaps:
        """Attention of every head of a Transformer, to the source and to the target so far."""
        return TASK.heads.explain(self, text, {"layer": layer})
