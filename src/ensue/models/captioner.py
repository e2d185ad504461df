"""`Captioner`: a picture becomes a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from torch import nn

from ensue.data.rows import Row
from ensue.data.tokenise import Tokeniser
from ensue.data.vocabulary import Vocabulary
from ensue.decoding import Hypothesis
from ensue.errors import OptionError
from ensue.models.caption_judge import judge_captions
from ensue.models.caption_network import CaptionNetwork
from ensue.models.caption_settings import CaptionSettings
from ensue.models.caption_source import check_captions, lines_of
from ensue.models.captioned import Captioned, Gaze
from ensue.models.collect import Collected, Examples, Numbers, counts_of, pairs_of, renumbered
from ensue.models.evaluation import Evaluation
from ensue.models.image_model import shape_of
from ensue.models.image_rows import PictureCollector, Shape, rows_of_pairs, told
from ensue.models.pair_parts import targets_of
from ensue.models.pair_search import Search, searched
from ensue.models.pair_source import PairColumns, PairSource, Taught
from ensue.models.saved import Saved, network_files, networks_of
from ensue.models.settings import Table, TextSettings
from ensue.models.speaker import Speaker
from ensue.models.task_model import IN_MEMORY, Fitting
from ensue.training import Outcome, RateCurve, TrainSettings, Watcher, find_rate


class Captioner(Speaker):
    """p(caption | picture) = Π p(word | words before it, picture), the end included.

    model = Captioner().fit([(picture, "a small red circle left of a blue square"), …])
    model.predict([picture])[0].text

    A picture is an array of bytes (channels, height, width), or the name of a file."""

    kind = "caption"
    model_settings: ClassVar[type[Table]] = CaptionSettings
    train_defaults: ClassVar[Mapping[str, Any]] = {
        "watch": "cost",
        "epochs": 8,
        "rate": 2e-3,
        "schedule": "cosine",
        "averaging": 0.998,
    }
    model: CaptionSettings

    words: Vocabulary
    shape: Shape  # of the pictures that it has learned from

    def __init__(
        self,
        text: TextSettings | Mapping[str, Any] | None = None,
        model: CaptionSettings | Mapping[str, Any] | None = None,
        train: TrainSettings | Mapping[str, Any] | None = None,
        *,
        members: int = 1,
    ) -> None:
        super().__init__(text, model, train, members=members)
        own = self.model
        self.search = Search(
            width=own.beam,
            length_penalty=own.length_penalty,
            alpha=own.alpha,
            factor=0.0,
            extra=own.longest,
        )

    @property
    def spoken(self) -> tuple[Tokeniser, Vocabulary]:
        return self.tokeniser, self.words

    # ------------------------------------------------------------- learning
    def fit(
        self,
        train: Examples,
        validation: Examples | None = None,
        *,
        folder: Path | str | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> Self:
        """From pairs of picture and caption. Without validation, a tenth of them is held out."""
        rows, numbers = pairs_of(train), Numbers()
        self.prepare(caption for _, caption in rows if caption is not None)
        own = self._collected(rows, numbers)
        held = None
        if validation is not None:
            held = self._collected(pairs_of(validation), numbers, shape_of(own))
        return self._fit_collected(own, held, numbers, folder, watchers)

    def collected(self, rows: Iterable[Row], numbers: Numbers, shape: Shape | None) -> Collected:
        """Rows {"image", "label"}, the label a caption or None. shape: what the pictures are
        brought to; None as the settings say."""
        collector = PictureCollector(numbers, self.model.pictures(), shape)
        for row in rows:
            label = row.fields["label"]
            tokens = self.tokeniser(label) if isinstance(label, str) else label
            collector.add(Row(row.place, {**row.fields, "label": tokens}))
        return collector.done()

    def _collected(
        self, examples: Examples, numbers: Numbers, shape: Shape | None = None
    ) -> Collected:
        return self.collected(rows_of_pairs(examples), numbers, shape)

    def collect(self, examples: Examples) -> tuple[Collected, Numbers]:
        self.must_be_fitted()
        numbers = Numbers()
        return self._collected(examples, numbers, self.shape), numbers

    def learn(self, train: Collected, numbers: Numbers) -> None:
        """The shape of the pictures, the vocabulary, and the caption that is most frequent."""
        self.shape = shape_of(train)
        self.words = self.vocabulary(counts_of(targets_of(train), numbers.labels), len(train))
        self.frequent = self.most_frequent(train, numbers)

    def fit_parts(
        self,
        train: Collected,
        validation: Collected,
        numbers: Numbers,
        how: Fitting = IN_MEMORY,
    ) -> list[Outcome]:
        for name, part in (("training", train), ("validation", validation)):
            check_captions(part, name)
        self.learn(train, numbers)
        return self.fit_pairs(train, validation, numbers, how)

    def columns(self, part: Collected, numbers: Numbers) -> PairColumns:
        captions = renumbered(targets_of(part), numbers.labels, self.words.numbers)
        return PairColumns(lines_of(part.inputs), captions)

    def source(self, data: PairColumns, part: Collected, seed: int) -> PairSource:
        rows = self.model.batch_rows
        budget = rows * int(data.lengths.max())  # of steps: the rows alone decide
        return PairSource(data, part.names, seed=seed, budget=budget, most_rows=rows)

    def find_rate(self, train: Collected, numbers: Numbers) -> RateCurve:
        check_captions(train, "training")
        self.learn(train, numbers)
        source = self.source(self.columns(train, numbers), train, self.train.seed)
        return find_rate(self.fresh(self.train.seed), source, self.train)

    def build(self) -> nn.Module:
        return Taught(CaptionNetwork(len(self.words), self.shape, self.model))

    # ------------------------------------------------------------- answers
    def answers(self, part: Collected, numbers: Numbers) -> list[Captioned]:
        if self.search.aligned:
            self._must_attend()
        if not len(part):
            return []
        found = searched(self.pair_networks(), lines_of(part.inputs), self.search)
        return [self._answer(own) for own in found]

    def _answer(self, found: list[Hypothesis]) -> Captioned:
        best = found[0]
        several = self.alternatives(found)
        attention = None
        if self.search.aligned and best.watched is not None:
            rows = best.watched[: len(best.content)].tolist()
            attention = tuple(tuple(row) for row in rows)
        return Captioned(
            several[0].text,
            best.log_probability,
            tuple(self.words.tokens_of(best.content)),
            several if self.search.n_best > 1 else (),
            attention,
        )

    def _must_attend(self) -> None:
        if self.model.attention == "none":
            raise OptionError(
                "this model has no attention, so that nothing shows where its words look; train "
                "one with --set model.attention=additive (dot, general, concat)"
            )

    def explain(self, picture: Any) -> Gaze:
        """The best caption, with the probability of each word and where it looked."""
        part, _ = self.collect([(picture, None)])
        self._must_attend()
        best, probabilities = self.explained(lines_of(part.inputs))
        assert best.watched is not None
        return Gaze(
            self.text_of(best.content),
            tuple(self.words.tokens_of(best.tokens)),
            probabilities,
            cast(CaptionNetwork, self.pair_networks()[0]).grid,
            tuple(tuple(row) for row in best.watched.tolist()),
        )

    # ------------------------------------------------------------- how good
    def judge(self, part: Collected, numbers: Numbers) -> Evaluation:
        check_captions(part, "test")
        answers = self.answers(part, numbers)
        lengths = targets_of(part).lengths
        rows = self.judged(part, numbers, answers, [""] * len(part), lengths)
        frequent = self.tokeniser.text_of(self.frequent)
        return judge_captions(rows, frequent, self.counting(), self.model.attributes)

    # ------------------------------------------------------------- as files
    def state(self) -> Saved:
        own = {"shape": list(self.shape), "frequent": list(self.frequent)}
        known = {"words": self.words.to_dict()}
        facts = {**self.settings_facts(), **own}
        return Saved(self.kind, facts, known, {}, network_files(self.networks))

    @classmethod
    def of_saved(cls, saved: Saved) -> Self:
        own = saved.facts
        found = cls(own["text"], own["model"], own["train"], members=own["members"])
        channels, height, width = own["shape"]
        found.shape = (channels, height, width)
        found.words = Vocabulary.from_dict(saved.vocabularies["words"])
        found.tokeniser = Tokeniser.from_dict(own["tokeniser"])
        found.frequent = tuple(own["frequent"])
        found.networks = networks_of(saved, found.build)
        return found

    def summary(self) -> str:
        own = self.model
        looks = "no" if own.attention == "none" else own.attention
        what = f"{own.layers} × {own.cell} of {own.hidden_size}, {looks} attention"
        lines = [f"{type(self).__name__}: {own.blocks} → {what}"]
        if self.networks:
            tall, wide = cast(CaptionNetwork, self.pair_networks()[0]).grid
            lines.append(f"  pictures of {told(self.shape)} → {tall} × {wide} regions")
            lines.append(self.size_line())
            lines.append(f"  {len(self.words):,} tokens in the vocabulary")
        return "\n".join(lines)
