"""`Translator`: one sequence of words becomes another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import nn

from ensue.data.tokenise import Tokeniser
from ensue.data.vocabulary import Vocabulary
from ensue.decoding import Hypothesis
from ensue.errors import OptionError
from ensue.models.collect import (
    Collected,
    Examples,
    Numbers,
    collected,
    counts_of,
    pairs_of,
    renumbered,
)
from ensue.models.evaluation import Evaluation
from ensue.models.pair_judge import judge_pairs
from ensue.models.pair_networks import network_of
from ensue.models.pair_parts import check_sides, shortened, targets_of
from ensue.models.pair_search import Search, searched
from ensue.models.pair_settings import PairSettings
from ensue.models.pair_source import PairColumns, PairSource, Taught
from ensue.models.saved import Saved, network_files, networks_of
from ensue.models.settings import Table, TextSettings
from ensue.models.speaker import Speaker
from ensue.models.task_model import IN_MEMORY, Fitting
from ensue.models.translated import Explained, Translated
from ensue.training import (
    Outcome,
    RateCurve,
    Said,
    TrainSettings,
    Watcher,
    find_rate,
)


class Translator(Speaker):
    """p(target | source) = Π p(word | words before it, source), the end included.

    model = Translator(text={"level": "characters"}).fit([("3 May 1997", "1997-05-03"), …])
    model.predict(["5 June 2001"])[0].text
    """

    kind = "translate"
    model_settings: ClassVar[type[Table]] = PairSettings
    text_defaults: ClassVar[Mapping[str, Any]] = {"lower": False}
    train_defaults: ClassVar[Mapping[str, Any]] = {"watch": "cost", "patience": 5}
    model: PairSettings

    source_words: Vocabulary
    target_words: Vocabulary

    def __init__(
        self,
        text: TextSettings | Mapping[str, Any] | None = None,
        model: PairSettings | Mapping[str, Any] | None = None,
        train: TrainSettings | Mapping[str, Any] | None = None,
        *,
        members: int = 1,
    ) -> None:
        super().__init__(text, model, train, members=members)
        self.target_tokeniser = self.tokeniser
        own = self.model
        self.search = Search(
            width=own.beam,
            length_penalty=own.length_penalty,
            alpha=own.alpha,
            factor=own.longest_factor,
            extra=own.longest_extra,
        )

    @property
    def spoken(self) -> tuple[Tokeniser, Vocabulary]:
        return self.target_tokeniser, self.target_words

    # ------------------------------------------------------------- learning
    def prepare_pairs(self, sources: Iterable[Any], targets: Iterable[Any]) -> None:
        """One tokeniser for each side; subwords that are shared are learned from both."""
        if self.model.shared:
            self.prepare(chain(sources, targets))
            self.target_tokeniser = self.tokeniser
        else:
            self.prepare(targets)
            self.target_tokeniser = self.tokeniser
            self.prepare(sources)

    def fit(
        self,
        train: Examples,
        validation: Examples | None = None,
        *,
        folder: Path | str | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> Self:
        """From pairs of source and target. Without validation, a tenth of them is held out."""
        rows, numbers = pairs_of(train), Numbers()
        self.prepare_pairs((s for s, _ in rows), (t for _, t in rows if t is not None))
        own = collected(self._cut(rows), numbers, self.tokeniser)
        held = None
        if validation is not None:
            held = collected(self._cut(pairs_of(validation)), numbers, self.tokeniser)
        return self._fit_collected(own, held, numbers, folder, watchers)

    def _cut(self, rows: Examples) -> Examples:
        """The rows with the tokens of their targets."""
        cut = self.target_tokeniser
        return [(s, cut(t) if isinstance(t, str) else t) for s, t in rows]

    def collect(self, examples: Examples) -> tuple[Collected, Numbers]:
        self.must_be_fitted()
        return super().collect(self._cut(examples))

    def learn(self, train: Collected, numbers: Numbers) -> None:
        """The vocabularies, and the target that is most frequent."""
        source = counts_of(train.inputs, numbers.tokens)
        target = counts_of(targets_of(train), numbers.labels)
        if self.model.shared:
            for word, count in source.items():
                target[word] = target.get(word, 0) + count
            source = target
        self.target_words = self.vocabulary(target, len(train))
        self.source_words = (
            self.target_words if self.model.shared else self.vocabulary(source, len(train))
        )
        self.frequent = self.most_frequent(train, numbers)

    def fit_parts(
        self,
        train: Collected,
        validation: Collected,
        numbers: Numbers,
        how: Fitting = IN_MEMORY,
    ) -> list[Outcome]:
        for name, part in (("training", train), ("validation", validation)):
            check_sides(part, name)
        train, said = shortened(train, self.text.max_length)
        for watcher in how.watchers if said else ():
            watcher(Said(said))
        self.learn(train, numbers)
        return self.fit_pairs(train, validation, numbers, how)

    def columns(self, part: Collected, numbers: Numbers) -> PairColumns:
        return PairColumns(
            renumbered(part.inputs, numbers.tokens, self.source_words.numbers),
            renumbered(targets_of(part), numbers.labels, self.target_words.numbers),
        )

    def source(self, data: PairColumns, part: Collected, seed: int) -> PairSource:
        own = self.model
        return PairSource(
            data, part.names, seed=seed, budget=own.batch_tokens, most_rows=own.batch_rows
        )

    def find_rate(self, train: Collected, numbers: Numbers) -> RateCurve:
        check_sides(train, "training")
        train, _ = shortened(train, self.text.max_length)
        self.learn(train, numbers)
        source = self.source(self.columns(train, numbers), train, self.train.seed)
        return find_rate(self.fresh(self.train.seed), source, self.train)

    def build(self) -> nn.Module:
        return Taught(network_of(self.model, len(self.source_words), len(self.target_words)))

    # ------------------------------------------------------------- answers
    def answers(self, part: Collected, numbers: Numbers) -> list[Translated]:
        how = self.search
        if how.aligned and not self.attends():
            raise OptionError(NO_ATTENTION)
        names = list(numbers.tokens)
        source = renumbered(part.inputs, numbers.tokens, self.source_words.numbers)
        found = searched(self.pair_networks(), source, how)
        return [
            self._answer(own, tuple(names[k] for k in part.inputs.row(row)), how)
            for row, own in enumerate(found)
        ]

    def _answer(self, found: list[Hypothesis], source: tuple[str, ...], how: Search) -> Translated:
        best = found[0]
        several = self.alternatives(found)
        weights = None
        if how.aligned:
            rows = [] if best.watched is None else best.watched[:, : len(source)].tolist()
            weights = tuple(tuple(row) for row in rows[: len(best.content)])
        return Translated(
            several[0].text,
            best.log_probability,
            tuple(self.target_words.tokens_of(best.content)),
            source,
            several if how.n_best > 1 else (),
            weights,
        )

    def attends(self) -> bool:
        return self.model.family == "transformer" or self.model.attention != "none"

    def explain(self, text: str) -> Explained:
        """The best translation, with the probability of each word and where it looked."""
        part, numbers = self.collect([(text, None)])
        if not self.attends():
            raise OptionError(NO_ATTENTION)
        if not len(part.inputs.values):
            raise OptionError("explain: expected a text with at least one token, got none")
        source = renumbered(part.inputs, numbers.tokens, self.source_words.numbers)
        best, probabilities = self.explained(source)
        assert best.watched is not None
        names = list(numbers.tokens)
        return Explained(
            tuple(names[k] for k in part.inputs.values),
            tuple(self.target_words.tokens_of(best.tokens)),
            probabilities,
            tuple(tuple(row) for row in best.watched.tolist()),
            self.text_of(best.content),
        )

    # ------------------------------------------------------------- how good
    def judge(self, part: Collected, numbers: Numbers) -> Evaluation:
        check_sides(part, "test")
        answers = self.answers(part, numbers)
        sources = [self.tokeniser.text_of(own.source) for own in answers]
        rows = self.judged(part, numbers, answers, sources, part.inputs.lengths)
        return judge_pairs(rows, self.target_tokeniser.text_of(self.frequent), self.counting())

    # ------------------------------------------------------------- as files
    def state(self) -> Saved:
        known = {"target": self.target_words.to_dict()}
        if not self.model.shared:
            known["source"] = self.source_words.to_dict()
        facts = {
            **self.settings_facts(),
            "target_tokeniser": self.target_tokeniser.to_dict(),
            "frequent": list(self.frequent),
        }
        return Saved(self.kind, facts, known, {}, network_files(self.networks))

    @classmethod
    def of_saved(cls, saved: Saved) -> Self:
        own = saved.facts
        found = cls(own["text"], own["model"], own["train"], members=own["members"])
        found.target_words = Vocabulary.from_dict(saved.vocabularies["target"])
        found.source_words = found.target_words
        if not found.model.shared:
            found.source_words = Vocabulary.from_dict(saved.vocabularies["source"])
        found.tokeniser = Tokeniser.from_dict(own["tokeniser"])
        found.target_tokeniser = Tokeniser.from_dict(own["target_tokeniser"])
        found.frequent = tuple(own["frequent"])
        found.networks = networks_of(saved, found.build)
        return found

    def summary(self) -> str:
        own = self.model
        if own.family == "transformer":
            what = f"transformer, {own.layers} + {own.layers} layers of {own.width}"
        else:
            ways = "bidirectional " if own.bidirectional else ""
            looks = "no" if own.attention == "none" else own.attention
            what = f"{own.layers} × {ways}{own.cell} of {own.hidden_size}, {looks} attention"
        lines = [f"{type(self).__name__}: {what}"]
        if self.networks:
            lines.append(self.size_line())
            sizes = f"{len(self.source_words):,} source and {len(self.target_words):,} target"
            both = f"{len(self.target_words):,} shared"
            lines.append(f"  {both if own.shared else sizes} tokens in the vocabulary")
        return "\n".join(lines)


NO_ATTENTION = (
    "this model has no attention, so that nothing shows where its words come from; train one "
    "with --set model.attention=additive (dot, general, concat), or with model.family=transformer"
)
