"""`Translator`: one sequence of words becomes another."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
from torch import nn

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.data.vocabulary import END, Vocabulary
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
from ensue.models.language import SPECIALS
from ensue.models.pair_judge import Counting, Judged, judge_pairs
from ensue.models.pair_networks import network_of
from ensue.models.pair_parts import check_sides, shortened, targets_of
from ensue.models.pair_search import Ensemble, Search, searched
from ensue.models.pair_settings import PairSettings
from ensue.models.pair_source import PairColumns, PairSource, Taught
from ensue.models.pair_validation import PairValidation, References
from ensue.models.pairs import PairNetwork
from ensue.models.saved import Saved, network_files, networks_of
from ensue.models.settings import Table, TextSettings
from ensue.models.task_model import IN_MEMORY, Fitting, TaskModel
from ensue.models.translated import Alternative, Explained, Translated
from ensue.training import (
    Outcome,
    RateCurve,
    Said,
    TrainSettings,
    Watcher,
    find_rate,
)


class Translator(TaskModel):
    """p(target | source) = Π p(word | words before it, source), the end included.

    model = Translator(text={"level": "characters"}).fit([("3 May 1997", "1997-05-03"), …])
    model.predict(["5 June 2001"])[0].text
    """

    kind = "translate"
    model_settings: ClassVar[type[Table]] = PairSettings
    text_defaults: ClassVar[Mapping[str, Any]] = {"lower": False}
    train_defaults: ClassVar[Mapping[str, Any]] = {"watch": "cost", "patience": 5}
    model: PairSettings

    search: Search  # as the settings say, until another one is set
    source_words: Vocabulary
    target_words: Vocabulary
    frequent: tuple[str, ...]  # the tokens of the most frequent target

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

    def fitted(self) -> bool:
        return bool(self.networks)

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
        targets = targets_of(train)
        target = counts_of(targets, numbers.labels)
        if self.model.shared:
            for word, count in source.items():
                target[word] = target.get(word, 0) + count
            source = target
        self.target_words = self._vocabulary(target, len(train))
        self.source_words = (
            self.target_words if self.model.shared else self._vocabulary(source, len(train))
        )
        names = list(numbers.labels)
        rows = Counter(targets.row(k).tobytes() for k in range(len(targets)))
        most, _ = rows.most_common(1)[0]
        self.frequent = tuple(names[token] for token in np.frombuffer(most, np.int32))

    def _vocabulary(self, counts: dict[str, int], rows: int) -> Vocabulary:
        """min_count is that of the settings, unless all words are rarer."""
        least = min(self.text.min_count, max(counts.values()))
        return Vocabulary.build(
            {**counts, END: rows}, min_count=least, max_size=self.text.max_words, specials=SPECIALS
        )

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
        data, held = self.columns(train, numbers), self.columns(validation, numbers)
        references = self._references(validation, numbers, held)
        return self.fit_members(
            lambda seed: self._source(data, train, seed),
            lambda network: self._validation(cast(Taught, network), held, references),
            how,
        )

    def columns(self, part: Collected, numbers: Numbers) -> PairColumns:
        return PairColumns(
            renumbered(part.inputs, numbers.tokens, self.source_words.numbers),
            renumbered(targets_of(part), numbers.labels, self.target_words.numbers),
        )

    def _source(self, data: PairColumns, part: Collected, seed: int) -> PairSource:
        own = self.model
        return PairSource(
            data, part.names, seed=seed, budget=own.batch_tokens, most_rows=own.batch_rows
        )

    def _references(self, part: Collected, numbers: Numbers, columns: PairColumns) -> References:
        """Rows that every evaluation translates, from all over the part."""
        count = min(self.model.validation_rows, len(part))
        rows = np.linspace(0, len(part) - 1, count).astype(np.int64)
        return References(columns.source.take(rows), self._target_texts(part.taken(rows), numbers))

    def _validation(
        self, network: Taught, held: PairColumns, references: References
    ) -> PairValidation:
        own = self.model
        width = own.beam if own.validation_search == "beam" else 1
        return PairValidation(
            network,
            held,
            references,
            replace(self.search, width=width),
            lambda found: self._text(found.content),
            bleu=self.train.watch in ("bleu", "chrf"),
            counting=self._counting(),
        )

    def find_rate(self, train: Collected, numbers: Numbers) -> RateCurve:
        check_sides(train, "training")
        train, _ = shortened(train, self.text.max_length)
        self.learn(train, numbers)
        source = self._source(self.columns(train, numbers), train, self.train.seed)
        return find_rate(self.fresh(self.train.seed), source, self.train)

    def build(self) -> nn.Module:
        return Taught(network_of(self.model, len(self.source_words), len(self.target_words)))

    # ------------------------------------------------------------- answers
    def pair_networks(self) -> list[PairNetwork]:
        return [cast(Taught, own).pairs for own in self.networks]

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
        several = [Alternative(self._text(own.content), own.log_probability) for own in found]
        weights = None
        if how.aligned:
            rows = [] if best.watched is None else best.watched[:, : len(source)].tolist()
            weights = tuple(tuple(row) for row in rows[: len(best.content)])
        return Translated(
            several[0].text,
            best.log_probability,
            tuple(self.target_words.tokens_of(best.content)),
            source,
            tuple(several) if how.n_best > 1 else (),
            weights,
        )

    def _text(self, numbers: Iterable[int]) -> str:
        return self.target_tokeniser.text_of(self.target_words.tokens_of(numbers))

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
        best = searched(self.pair_networks(), source, replace(self.search, aligned=True))[0][0]
        assert best.watched is not None
        target = Ragged.of([best.content], np.int32)
        logs = Ensemble(self.pair_networks()).log_probabilities(
            PairColumns(source, target).batch([0])
        )
        names = list(numbers.tokens)
        return Explained(
            tuple(names[k] for k in part.inputs.values),
            tuple(self.target_words.tokens_of(best.tokens)),
            tuple(math.exp(value) for value in logs[: len(best.tokens), 0].tolist()),
            tuple(tuple(row) for row in best.watched.tolist()),
            self._text(best.content),
        )

    # ------------------------------------------------------------- how good
    def evaluate(self, examples: Examples) -> Evaluation:
        """BLEU, chrF, exact answers and errors, baselines, scores by length, the worst answers."""
        part, numbers = self.collect(pairs_of(examples))
        return self.judge(part, numbers)

    def judge(self, part: Collected, numbers: Numbers) -> Evaluation:
        check_sides(part, "test")
        answers = self.answers(part, numbers)
        said = [[numbers.labels[token] for token in own.tokens] for own in answers]
        rows = Judged(
            part.names,
            [self.tokeniser.text_of(own.source) for own in answers],
            self._target_texts(part, numbers),
            [own.text for own in answers],
            targets_of(part),
            Ragged.of(said, np.int32),
            part.inputs.lengths,
            [math.exp(own.score) for own in answers],
        )
        return judge_pairs(rows, self.target_tokeniser.text_of(self.frequent), self._counting())

    def _target_texts(self, part: Collected, numbers: Numbers) -> list[str]:
        """As they were written, but for what the tokeniser folds."""
        names, targets = list(numbers.labels), targets_of(part)
        rows = ([names[k] for k in targets.row(row)] for row in range(len(targets)))
        return [self.target_tokeniser.text_of(row) for row in rows]

    def _counting(self) -> Counting:
        own = self.model
        exact_first = self.train.watch == "exact"
        return Counting(own.bleu_tokenize, own.bleu_lowercase, exact_first, self.train.seed)

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
