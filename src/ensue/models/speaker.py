"""Models that answer in words which a pair network says: translations, captions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, cast

import numpy as np

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.data.vocabulary import END, Vocabulary
from ensue.decoding import Hypothesis
from ensue.models.collect import Collected, Examples, Numbers, pairs_of
from ensue.models.evaluation import Evaluation
from ensue.models.language import SPECIALS
from ensue.models.pair_judge import Counting, Judged
from ensue.models.pair_parts import targets_of
from ensue.models.pair_search import Ensemble, Search, searched
from ensue.models.pair_source import PairColumns, PairSource, Taught
from ensue.models.pair_validation import PairValidation, References
from ensue.models.pairs import PairNetwork
from ensue.models.task_model import Fitting, TaskModel
from ensue.models.translated import Alternative
from ensue.training import Outcome


class SpeakerSettings(Protocol):
    """The keys of [model] that say how answers are searched for, and how they are scored."""

    @property
    def beam(self) -> int: ...
    @property
    def validation_search(self) -> Literal["greedy", "beam"]: ...
    @property
    def validation_rows(self) -> int: ...
    @property
    def bleu_tokenize(self) -> str: ...
    @property
    def bleu_lowercase(self) -> bool: ...


class Speaker(TaskModel):
    """A task model whose answers are the words of pair networks."""

    search: Search  # as the settings say, until another one is set
    frequent: tuple[str, ...]  # the tokens of the most frequent target

    # ------------------------------------------------------------- what a task says
    @property
    @abstractmethod
    def spoken(self) -> tuple[Tokeniser, Vocabulary]:
        """What the words that are said were cut by, and their numbers."""

    @abstractmethod
    def columns(self, part: Collected, numbers: Numbers) -> PairColumns:
        """A part as the networks see it."""

    @abstractmethod
    def source(self, data: PairColumns, part: Collected, seed: int) -> PairSource:
        """A part in batches."""

    @property
    def _own(self) -> SpeakerSettings:
        return cast(SpeakerSettings, self.model)

    # ------------------------------------------------------------- learning
    def fitted(self) -> bool:
        return bool(self.networks)

    def vocabulary(self, counts: dict[str, int], rows: int) -> Vocabulary:
        """min_count is that of the settings, unless all words are rarer."""
        least = min(self.text.min_count, max(counts.values()))
        return Vocabulary.build(
            {**counts, END: rows}, min_count=least, max_size=self.text.max_words, specials=SPECIALS
        )

    def most_frequent(self, train: Collected, numbers: Numbers) -> tuple[str, ...]:
        """The tokens of the target that occurs most often."""
        names, targets = list(numbers.labels), targets_of(train)
        rows = Counter(targets.row(k).tobytes() for k in range(len(targets)))
        most, _ = rows.most_common(1)[0]
        return tuple(names[token] for token in np.frombuffer(most, np.int32))

    def fit_pairs(
        self, train: Collected, validation: Collected, numbers: Numbers, how: Fitting
    ) -> list[Outcome]:
        """Trains the networks on what was learned from."""
        data, held = self.columns(train, numbers), self.columns(validation, numbers)
        references = self._references(validation, numbers, held)
        return self.fit_members(
            lambda seed: self.source(data, train, seed),
            lambda network: self._validation(cast(Taught, network), held, references),
            how,
        )

    def _references(self, part: Collected, numbers: Numbers, columns: PairColumns) -> References:
        """Rows that every evaluation answers, from all over the part."""
        count = min(self._own.validation_rows, len(part))
        rows = np.linspace(0, len(part) - 1, count).astype(np.int64)
        return References(columns.source.take(rows), self.target_texts(part.taken(rows), numbers))

    def _validation(
        self, network: Taught, held: PairColumns, references: References
    ) -> PairValidation:
        own = self._own
        width = own.beam if own.validation_search == "beam" else 1
        return PairValidation(
            network,
            held,
            references,
            replace(self.search, width=width),
            lambda found: self.text_of(found.content),
            bleu=self.train.watch in ("bleu", "chrf"),
            counting=self.counting(),
        )

    # ------------------------------------------------------------- answers
    def pair_networks(self) -> list[PairNetwork]:
        return [cast(Taught, own).pairs for own in self.networks]

    def text_of(self, numbers: Iterable[int]) -> str:
        tokeniser, words = self.spoken
        return tokeniser.text_of(words.tokens_of(numbers))

    def alternatives(self, found: Sequence[Hypothesis]) -> tuple[Alternative, ...]:
        return tuple(Alternative(self.text_of(own.content), own.log_probability) for own in found)

    def explained(self, sources: Ragged) -> tuple[Hypothesis, tuple[float, ...]]:
        """The best answer to the one source, with where it looked, and the probability of each of
        its words."""
        networks = self.pair_networks()
        best = searched(networks, sources, replace(self.search, aligned=True))[0][0]
        said = PairColumns(sources, Ragged.of([best.content], np.int32)).batch([0])
        logs = Ensemble(networks).log_probabilities(said)[: len(best.tokens), 0]
        return best, tuple(math.exp(value) for value in logs.tolist())

    # ------------------------------------------------------------- how good
    def evaluate(self, examples: Examples) -> Evaluation:
        """BLEU, chrF, exact answers and errors, baselines, the worst answers."""
        part, numbers = self.collect(pairs_of(examples))
        return self.judge(part, numbers)

    def judged(
        self,
        part: Collected,
        numbers: Numbers,
        answers: Sequence[Any],
        sources: list[str],
        lengths: Any,
    ) -> Judged:
        """Answers, which have tokens, text and score, beside what was expected. lengths (rows,):
        that scores are shown by."""
        said = [[numbers.labels[token] for token in own.tokens] for own in answers]
        return Judged(
            part.names,
            sources,
            self.target_texts(part, numbers),
            [own.text for own in answers],
            targets_of(part),
            Ragged.of(said, np.int32),
            lengths,
            [math.exp(own.score) for own in answers],
        )

    def target_texts(self, part: Collected, numbers: Numbers) -> list[str]:
        """As they were written, but for what the tokeniser folds."""
        names, targets, (tokeniser, _) = list(numbers.labels), targets_of(part), self.spoken
        rows = ([names[k] for k in targets.row(row)] for row in range(len(targets)))
        return [tokeniser.text_of(row) for row in rows]

    def counting(self) -> Counting:
        own, exact_first = self._own, self.train.watch == "exact"
        return Counting(own.bleu_tokenize, own.bleu_lowercase, exact_first, self.train.seed)
