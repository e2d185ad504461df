"""`Labeller`: a label for each step of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError, OptionError
from ensue.models import metrics
from ensue.models.batch import UNKNOWN, Columns, SequenceBatch
from ensue.models.collect import Collected, Numbers, counts_of
from ensue.models.crf import CRF
from ensue.models.embed import Embed, Feature
from ensue.models.estimator import Estimator, mean_of, vocabulary_rows
from ensue.models.evaluation import Evaluation, preview
from ensue.models.judge import StepAnswers, judge_steps, spans_counted, tags_of_rows
from ensue.models.label_outputs import Stepwise
from ensue.models.labeller_network import LabellerNetwork
from ensue.models.labels import label_numbers, learned_labels, with_unknown
from ensue.models.majority import MajorityLabel
from ensue.models.previous_label import PreviousLabel
from ensue.models.saved import Saved
from ensue.models.scale import Scale
from ensue.models.settings import LabellerSettings, NetworkSettings
from ensue.models.source import in_batches
from ensue.models.spans import Span, legal, scheme_of, spans_of
from ensue.models.word_parts import WordParts

BEFORE = 4  # tokens shown before a wrong label
PART = "part "  # begins the name of a vocabulary of parts of words


@dataclass(frozen=True)
class Labelled:
    """One label a step, with its probability; spans where the labels are span tags."""

    tokens: tuple[str, ...]
    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    spans: tuple[Span, ...] | None

    def as_line(self, value: object) -> str:
        """token/LABEL for each step, or the labels alone where there are no tokens."""
        if not self.tokens:
            return " ".join(self.labels)
        return " ".join(f"{t}/{own}" for t, own in zip(self.tokens, self.labels, strict=True))


class Labeller(Estimator):
    """The label of each token of a sentence, or of each vector of a sequence.

    model = Labeller().fit([(["the", "dog", "barks"], ["DET", "NOUN", "VERB"]), …])
    model.predict([["the", "cat"]])[0].labels
    """

    kind = "label"
    model_settings: ClassVar[type[NetworkSettings]] = LabellerSettings
    text_defaults: ClassVar[Mapping[str, Any]] = {"min_count": 1}
    train_defaults: ClassVar[Mapping[str, Any]] = {"watch": "accuracy", "patience": 5}
    model: LabellerSettings

    parts: WordParts
    majority: MajorityLabel

    # ------------------------------------------------------------- learning
    def prepare(self, values: Iterable[Any]) -> Callable[[str], list[str]]:
        """A text is cut into words as they are written: their letters and shapes are features.
        Only the vocabulary of words folds case and numbers."""
        own = self.text
        if own.level == "subwords" or own.max_length is not None:
            raise OptionError(
                "a labeller has a label for each word: text.level = 'subwords' and "
                "text.max_length are for classifiers; leave them out"
            )
        self.tokeniser = Tokeniser(own.level, breaks=own.breaks)
        return self.tokeniser

    def learn(self, train: Collected, numbers: Numbers) -> None:
        self.labels = learned_labels(train, numbers)
        self.words, self.scale, self.parts = None, None, WordParts({})
        targets = self._targets(train, numbers, self.labels.tokens)
        if train.inputs.values.ndim == 2:
            self.scale = Scale.of(train.inputs.values)
            self.majority = MajorityLabel.fitted(_one_word(targets), targets, 1)
            return
        counts = counts_of(train.inputs, numbers.tokens)
        fold, folded = self._fold(), dict[str, int]()
        for word, count in counts.items():
            own = fold(word)
            folded[own] = folded.get(own, 0) + count
        words = self.learn_words(folded)
        self.parts = WordParts.learned(counts, self.model)
        self.majority = MajorityLabel.fitted(self._words(train, numbers), targets, len(words))

    def _fold(self) -> Callable[[str], str]:
        """How a word is written in the vocabulary."""
        own = Tokeniser("spaces", lower=self.text.lower, numbers=self.text.numbers)

        def fold(word: str) -> str:
            found = own(word)
            return found[0] if len(found) == 1 else own.prepared(word)

        return fold

    def _words(self, part: Collected, numbers: Numbers) -> Ragged:
        """The vocabulary's number of every token."""
        assert self.words is not None
        fold, known = self._fold(), self.words.numbers
        return vocabulary_rows(part, numbers, {word: known[fold(word)] for word in numbers.tokens})

    def _targets(self, part: Collected, numbers: Numbers, labels: Sequence[str]) -> Ragged:
        assert part.labels is not None
        wrong = np.flatnonzero(part.inputs.lengths != part.labels.lengths)
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"{part.names[row]}: expected a label for each of the "
                f"{part.inputs.lengths[row]} steps, got {part.labels.lengths[row]}"
            )
        return Ragged(label_numbers(part, numbers, labels), part.labels.starts)

    def columns(self, part: Collected, numbers: Numbers) -> Columns:
        targets = None
        if part.labels is not None:
            targets = self._targets(part, numbers, self.labels.tokens)
        if self.scale is not None:
            return Columns(vectors=self.scale.vectors(part), targets=targets)
        assert self.words is not None
        if part.inputs.values.ndim == 2:
            raise DataError(f"{part.names[0]}: expected text, as in training, got vectors")
        surfaces = Ragged(part.inputs.values.astype(np.int64) + 1, part.inputs.starts)
        table = self.parts.table(numbers.tokens, self.words, self._fold(), self.model.affixes)
        return Columns(surfaces=surfaces, table=table, targets=targets)

    # ------------------------------------------------------------- the network
    def build(self) -> nn.Module:
        own = self.model
        features: list[Feature] = []
        if self.scale is not None:
            features.append(self.scale.feature())
        else:
            assert self.words is not None
            features.append(self.word_feature(self.words, own.once_dropout))
            features += self.parts.features(own)
        embed = Embed(features, own.dropout_input)
        encoder = self.encoder(embed.width)
        output = self._output(encoder.output_size)
        return LabellerNetwork(
            embed, encoder, output, dropout=own.dropout_output, norm_weight=own.norm_weight
        )

    def _output(self, width: int) -> Stepwise | CRF | PreviousLabel:
        own, count = self.model, len(self.labels)
        scheme = scheme_of(self.labels.tokens) if own.legal_only else None
        allowed = legal(self.labels.tokens, scheme) if scheme is not None else None
        if own.output == "crf":
            return CRF(width, count, legal=allowed)
        weights = self.class_weights()
        if own.output == "previous":
            return PreviousLabel(
                width,
                count,
                label_width=min(32, own.hidden_size),
                hidden_size=own.hidden_size,
                cell=own.previous_cell or None,
                start=own.previous_start,
                smoothing=own.smoothing,
                class_weights=weights,
                legal=allowed,
            )
        return Stepwise(width, count, smoothing=own.smoothing, class_weights=weights, legal=allowed)

    # ------------------------------------------------------------- answers
    @torch.no_grad()
    def _labelled(self, columns: Columns) -> tuple[Ragged, NDArray[np.float64]]:
        """The label of every step, and (steps, labels) probabilities, the mean of the members."""
        starts = np.concatenate([[0], np.cumsum(columns.lengths)])
        guess = np.zeros(starts[-1], np.int64)
        found = np.zeros((starts[-1], len(self.labels)))
        for rows, batch in in_batches(columns, 2 * self.model.batch_tokens):
            labels, probabilities = self._of_batch(batch)
            _into(guess, starts, rows, labels)
            _into(found, starts, rows, probabilities)
        return Ragged(guess, starts), found

    def _of_batch(self, batch: SequenceBatch) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Of one network its own search; of several the best label of their mean."""
        members: list[tuple[Tensor, Tensor]] = []
        for network in self.networks:
            assert isinstance(network, LabellerNetwork)
            members.append(network.label(batch, self._search(network), self.model.beam))
        probabilities = mean_of([p.double().numpy() for _, p in members])
        if len(members) == 1:
            return members[0][0].numpy(), probabilities
        return probabilities.argmax(-1), probabilities

    def _search(self, network: LabellerNetwork) -> str:
        known = network.output.searches
        return self.model.search if self.model.search in known else known[0]

    @torch.no_grad()
    def score(self, network: nn.Module, columns: Columns) -> dict[str, float]:
        assert isinstance(network, LabellerNetwork)
        assert isinstance(columns.targets, Ragged)
        cost, guess = 0.0, np.zeros_like(columns.targets.values)
        for rows, batch in in_batches(columns, 2 * self.model.batch_tokens):
            cost += float(network(batch, {})[0])
            labels = network.label(batch, self._search(network), self.model.beam).labels
            _into(guess, columns.targets.starts, rows, labels.numpy())
        gold, names = columns.targets, self.labels.tokens
        steps = max(1, len(guess))
        found = {"cost": cost / steps, "accuracy": metrics.accuracy(gold.values, guess)}
        if scheme_of(names) is not None:
            counts = spans_counted(names, gold, Ragged(guess, gold.starts))
            found["span_f1"] = float(metrics.span_f1(counts.sum(0)))
        return found

    def answers(self, part: Collected, numbers: Numbers) -> list[Labelled]:
        labels, probabilities = self._labelled(self.columns(part, numbers))
        sure = probabilities[np.arange(len(labels.values)), labels.values]
        names, spans = list(numbers.tokens), scheme_of(self.labels.tokens) is not None
        found = []
        for row, tags in enumerate(tags_of_rows(self.labels.tokens, labels)):
            first, last = labels.starts[row], labels.starts[row + 1]
            tokens = () if self.words is None else tuple(names[k] for k in part.inputs.row(row))
            own = tuple(spans_of(tags)) if spans else None
            found.append(Labelled(tokens, tuple(tags), tuple(sure[first:last].tolist()), own))
        return found

    def judge(self, part: Collected, numbers: Numbers) -> Evaluation:
        if part.labels is None:
            raise DataError("evaluate: expected rows with labels, got rows without")
        names = with_unknown(part, numbers, self.labels)
        gold = self._targets(part, numbers, names)
        columns = self.columns(replace(part, labels=None), numbers)
        words = _one_word(gold) if self.words is None else self._words(part, numbers)
        overall = Ragged(np.full_like(gold.values, self.majority.overall), gold.starts)
        return judge_steps(
            names,
            StepAnswers(gold, *self._labelled(columns)),
            {"majority label": overall, "majority by word": self.majority.label(words)},
            words.values == UNKNOWN,
            self._shown(part, numbers),
            self.train.seed,
        )

    def _shown(self, part: Collected, numbers: Numbers) -> Callable[[int], tuple[str, str]]:
        """The place of a step, and the words around it."""
        names, starts = list(numbers.tokens), part.inputs.starts

        def shown(at: int) -> tuple[str, str]:
            row = int(np.searchsorted(starts, at, side="right")) - 1
            if self.words is None:
                return part.names[row], f"step {at - starts[row] + 1}"
            tokens = [names[k] for k in part.inputs.row(row)]
            step = int(at - starts[row])
            tokens[step] = f"[{tokens[step]}]"
            return part.names[row], preview(tokens[max(0, step - BEFORE) :])

        return shown

    # ------------------------------------------------------------- as files
    def own_state(self) -> tuple[dict[str, Vocabulary], dict[str, NDArray[Any]]]:
        arrays: dict[str, NDArray[Any]] = {
            "majority.by_word": self.majority.by_word,
            "majority.overall": np.array([self.majority.overall]),
        }
        return {f"{PART}{name}": own for name, own in self.parts.known.items()}, arrays

    def own_restore(self, known: Mapping[str, Vocabulary], saved: Saved) -> None:
        own = {n.removeprefix(PART): v for n, v in known.items() if n.startswith(PART)}
        majority = saved.part("majority")
        self.parts = WordParts(own)
        self.majority = MajorityLabel(majority["by_word"], int(majority["overall"][0]))


def _one_word(targets: Ragged) -> Ragged:
    """For steps without words: all the same one."""
    return Ragged(np.zeros(len(targets.values), np.int64), targets.starts)


def _into(
    values: NDArray[Any], starts: NDArray[np.int64], rows: NDArray[np.int64], padded: NDArray[Any]
) -> None:
    """Puts padded rows (time, batch, …) where they belong among all rows behind one another."""
    lengths = starts[rows + 1] - starts[rows]
    at = np.arange(lengths.sum()) + np.repeat(starts[rows] - np.cumsum(lengths) + lengths, lengths)
    values[at] = padded.swapaxes(0, 1)[np.arange(len(padded)) < lengths[:, None]]
