"""`Classifier`: a sequence in, its class (or several labels) out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError
from ensue.models import metrics
from ensue.models.batch import Columns
from ensue.models.bootstrap import bootstrap
from ensue.models.classifier_network import ClassifierNetwork, NgramScores
from ensue.models.collect import Collected, Numbers, counts_of, shortened
from ensue.models.embed import Embed
from ensue.models.estimator import Estimator, mean_of, vocabulary_rows
from ensue.models.evaluation import Evaluation, preview
from ensue.models.heads import Bernoulli, Categorical
from ensue.models.judge import (
    class_rows,
    log_loss_of_known,
    surest_mistaken_sets,
    surest_mistakes,
)
from ensue.models.labels import label_numbers, learned_labels, unknown_rows, with_unknown
from ensue.models.linear import LinearModel, fit_linear
from ensue.models.mixture import EQUAL, Mixture, fitted_mixture
from ensue.models.pooling import Pooling
from ensue.models.saved import Saved
from ensue.models.scale import Scale
from ensue.models.settings import ClassifierSettings, NetworkSettings
from ensue.models.source import in_batches
from ensue.models.task_model import IN_MEMORY, Fitting
from ensue.training import Outcome

T = TypeVar("T", np.int64, np.float64)

THRESHOLD = 0.5  # of several labels, those more probable are there


@dataclass(frozen=True)
class Classified:
    """label: the most probable class ("" where several labels may be there); labels: all that
    are there; probabilities: by class, the most probable first."""

    label: str
    labels: tuple[str, ...]
    probabilities: Mapping[str, float]

    def as_line(self, value: object) -> str:
        """label, probability and input, with tabs between; the white space of the input is one
        space each, so that an answer is a line. Several labels stand with commas between, and
        the probability is that of the least probable of them."""
        chosen = ",".join(self.labels)
        sure = min((self.probabilities[label] for label in self.labels), default=None)
        text = " ".join(value.split() if isinstance(value, str) else ())
        return f"{chosen}\t{'' if sure is None else f'{sure:.4f}'}\t{text}".rstrip("\t")


class Classifier(Estimator):
    """The class of a text, of tokens, or of a sequence of vectors.

    model = Classifier(train={"epochs": 5}).fit([("a fine film", "good"), ("dull", "bad"), …])
    model.predict(["not bad at all"])[0].label
    """

    kind = "classify"
    model_settings: ClassVar[type[NetworkSettings]] = ClassifierSettings
    text_defaults: ClassVar[Mapping[str, Any]] = {"max_length": 20_000}
    train_defaults: ClassVar[Mapping[str, Any]] = {"watch": "accuracy", "patience": 3}
    model: ClassifierSettings

    ngram_words: Vocabulary | None = None
    linear: LinearModel | None = None
    mixture: Mixture | None = None  # of network and linear model, where both answer

    # ------------------------------------------------------------- learning
    def learn(self, train: Collected, numbers: Numbers) -> None:
        assert train.labels is not None
        self.labels = learned_labels(train, numbers)
        self.words, self.ngram_words, self.linear, self.scale = None, None, None, None
        self.mixture = None
        targets = self._targets(train, numbers, self.labels.tokens)
        if train.inputs.values.ndim == 2:
            self.scale = Scale.of(train.inputs.values)
            return
        counts = counts_of(train.inputs, numbers.tokens)
        self.learn_words(counts)
        least = min(2, max(counts.values(), default=1))
        self.ngram_words = Vocabulary.build(counts, min_count=least)
        self.linear = fit_linear(
            self._ngram_inputs(train, numbers),
            targets,
            len(self.labels),
            longest=self.model.ngrams or 2,
            min_rows=2,
        )
        share = self.model.ngram_share
        if share:
            self.mixture = EQUAL if share == "fitted" else Mixture(1 - share, share)

    def fit_parts(
        self,
        train: Collected,
        validation: Collected,
        numbers: Numbers,
        how: Fitting = IN_MEMORY,
    ) -> list[Outcome]:
        """Learns from collected rows; one outcome for each member."""
        outcomes = super().fit_parts(train, validation, numbers, how)
        if self.mixture is not None and self.model.ngram_share == "fitted":
            held = self.columns(validation, numbers)
            assert isinstance(held.targets, np.ndarray)
            scores = [self._scores(own, held) for own in self.networks]
            targets = torch.from_numpy(held.targets)
            self.mixture = fitted_mixture(scores, self._linear_scores(held), targets)
        return outcomes

    def _targets(
        self, part: Collected, numbers: Numbers, labels: Sequence[str]
    ) -> NDArray[np.int64]:
        """(rows,) classes, or (rows, labels) zeros and ones."""
        assert part.labels is not None
        values, lengths = label_numbers(part, numbers, labels), part.labels.lengths
        if not self.model.several:
            if len(wrong := np.flatnonzero(lengths != 1)):
                row = int(wrong[0])
                raise DataError(
                    f"{part.names[row]}: expected one label, found {lengths[row]}; "
                    "for several labels at once set model.several = true"
                )
            return values
        found = np.zeros((len(part), len(labels)), np.int64)
        found[np.repeat(np.arange(len(part)), lengths), values] = 1
        return found

    def columns(self, part: Collected, numbers: Numbers) -> Columns:
        targets = None
        if part.labels is not None:
            targets = self._targets(part, numbers, self.labels.tokens)
        cut = (self.text.max_length, self.text.cut)
        if self.scale is not None:
            return Columns(vectors=shortened(self.scale.vectors(part), *cut), targets=targets)
        assert self.words is not None
        words = vocabulary_rows(part, numbers, self.words.numbers)
        ngrams = None
        if self.model.ngrams:
            assert self.linear is not None
            ngrams = self.linear.ngrams.present(self._ngram_inputs(part, numbers))
        return Columns(words=shortened(words, *cut), ngrams=ngrams, targets=targets)

    def _ngram_inputs(self, part: Collected, numbers: Numbers) -> Ragged:
        assert self.ngram_words is not None
        return vocabulary_rows(part, numbers, self.ngram_words.numbers)

    def remarks(self, part: Collected) -> list[str]:
        most, lengths = self.text.max_length, part.inputs.lengths
        long = 0 if most is None else int((lengths > most).sum())
        if not long:
            return []
        row = int(lengths.argmax())
        return [
            f"{long:,} row{'s' * (long > 1)} longer than text.max_length = {most:,} steps: cut at "
            f"the {self.text.cut} (the longest, {part.names[row]}, has {lengths[row]:,})"
        ]

    # ------------------------------------------------------------- the network
    def build(self) -> nn.Module:
        own = self.model
        if self.scale is not None:
            embed = Embed([self.scale.feature()], own.dropout_input)
        else:
            assert self.words is not None
            embed = Embed([self.word_feature(self.words)], own.dropout_input)
        encoder = self.encoder(embed.width)
        head = (Bernoulli if own.several else Categorical)(
            len(self.labels), smoothing=own.smoothing, class_weights=self.class_weights()
        )
        return ClassifierNetwork(
            embed,
            encoder,
            Pooling(own.pooling, encoder.output_size, encoder.final_size),
            head,
            ngrams=self._side_scores(),
            dropout=own.dropout_output,
            norm_weight=own.norm_weight,
        )

    def _side_scores(self) -> NgramScores | None:
        if not self.model.ngrams or self.model.ngram_share or self.linear is None:
            return None
        return NgramScores(
            len(self.linear.ngrams),
            len(self.labels),
            start=torch.from_numpy(self.linear.weights),
            dropout=self.model.ngram_dropout,
            l2=self.model.ngram_l2,
        )

    # ------------------------------------------------------------- answers
    @torch.no_grad()
    def _scores(self, network: nn.Module, columns: Columns) -> Tensor:
        """(rows, classes), of the network alone."""
        assert isinstance(network, ClassifierNetwork)
        found = torch.zeros(len(columns), len(self.labels), dtype=torch.float64)
        budget = 2 * self.model.batch_tokens
        for rows, batch in in_batches(columns, budget):
            found[torch.from_numpy(rows)] = network.scores(batch).double()
        return found

    def _linear_scores(self, columns: Columns) -> Tensor:
        """(rows, classes), of the n-grams alone."""
        assert columns.ngrams is not None
        assert self.linear is not None
        return torch.from_numpy(self.linear.present_scores(columns.ngrams)).double()

    def _probabilities(
        self, scores: Sequence[Tensor], columns: Columns, mixture: Mixture | None
    ) -> NDArray[np.float64]:
        """(rows, classes), the mean over the members whose scores these are, each mixed."""
        several = self.model.several
        if mixture is None:
            logs = [logsigmoid(z) if several else z.log_softmax(1) for z in scores]
        else:
            linear = self._linear_scores(columns)
            logs = [mixture.logs(z, linear, several) for z in scores]
        return mean_of([own.exp().numpy() for own in logs])

    def probabilities(self, columns: Columns) -> NDArray[np.float64]:
        """(rows, classes), the mean over the members, the linear model mixed in."""
        scores = [self._scores(network, columns) for network in self.networks]
        return self._probabilities(scores, columns, self.mixture)

    def _decided(self, probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
        if self.model.several:
            return (probabilities > THRESHOLD).astype(np.int64)
        return np.asarray(probabilities.argmax(1))

    def score(self, network: nn.Module, columns: Columns) -> dict[str, float]:
        probabilities = self._probabilities([self._scores(network, columns)], columns, self.mixture)
        gold = columns.targets
        assert isinstance(gold, np.ndarray)
        guess = self._decided(probabilities)
        counts = metrics.class_counts(gold, guess, len(self.labels))
        return {
            "cost": metrics.log_loss(gold, probabilities),
            "accuracy": metrics.accuracy(gold, guess),
            "macro_f1": float(metrics.macro_f1(counts)),
        }

    def answers(self, part: Collected, numbers: Numbers) -> list[Classified]:
        probabilities = self.probabilities(self.columns(part, numbers))
        decided = self._decided(probabilities)
        return [self._answer(p, d) for p, d in zip(probabilities, decided, strict=True)]

    def _answer(self, probabilities: NDArray[np.float64], decided: Any) -> Classified:
        order = np.argsort(-probabilities, kind="stable")
        shown = {self.labels.tokens[k]: float(probabilities[k]) for k in order}
        if self.model.several:
            there = tuple(t for t, d in zip(self.labels.tokens, decided, strict=True) if d)
            return Classified("", there, shown)
        label = self.labels.tokens[int(decided)]
        return Classified(label, (label,), shown)

    def judge(self, part: Collected, numbers: Numbers) -> Evaluation:
        if part.labels is None:
            raise DataError("evaluate: expected rows with labels, got rows without")
        names = with_unknown(part, numbers, self.labels)
        gold = self._targets(part, numbers, names)
        columns = self.columns(replace(part, labels=None), numbers)
        scores = [self._scores(network, columns) for network in self.networks]
        probabilities = self._probabilities(scores, columns, self.mixture)
        guess = _among(self._decided(probabilities), len(names))
        counts = metrics.row_counts(gold, guess, len(names))
        right = (gold == guess) if gold.ndim == 1 else (gold == guess).all(1)
        pairs = np.stack([right, np.ones(len(right))], 1)
        intervals = {
            "accuracy": bootstrap(pairs, metrics.ratio, seed=self.train.seed),
            "macro-F1": bootstrap(counts, metrics.macro_f1, seed=self.train.seed),
        }
        shown = self._shown(part, numbers)
        if gold.ndim == 1:
            others = log_loss_of_known(gold, probabilities)
            others["calibration error"] = metrics.calibration_error(gold, probabilities)
            worst = surest_mistakes(gold, guess, probabilities, names, shown)
            confusion = metrics.confusion(gold, guess, len(names)).tolist()
        else:
            others = {"log loss": metrics.log_loss(gold[:, : len(self.labels)], probabilities)}
            every = _among(probabilities, len(names))
            worst = surest_mistaken_sets(gold, guess, every, names, shown)
            confusion = []
        baselines = self._baselines(part, numbers, gold)
        if self.mixture is not None:
            alone = _among(self._decided(self._probabilities(scores, columns, None)), len(names))
            baselines["network alone"] = metrics.accuracy(gold, alone)
        return Evaluation(
            rows=len(part),
            steps=len(part),
            scores=intervals,
            others=others,
            baselines=baselines,
            classes=class_rows(names, counts.sum(0)),
            confusion=confusion,
            worst=worst,
            unknown=len(unknown_rows(part, self.labels.tokens, numbers)),
        )

    def _shown(self, part: Collected, numbers: Numbers) -> Callable[[int], tuple[str, str]]:
        names = list(numbers.tokens)

        def shown(row: int) -> tuple[str, str]:
            text = "" if self.words is None else preview([names[k] for k in part.inputs.row(row)])
            return part.names[row], text

        return shown

    def _baselines(
        self, part: Collected, numbers: Numbers, gold: NDArray[np.int64]
    ) -> dict[str, float]:
        most = int(np.argmax(self.labels.counts))
        if gold.ndim == 1:
            found = {"majority class": metrics.accuracy(gold, np.full_like(gold, most))}
        else:
            found = {"no label": metrics.accuracy(gold, np.zeros_like(gold))}
        if self.linear is not None:
            linear = self.linear.probabilities(self._ngram_inputs(part, numbers))
            guess = _among(self._decided(linear.astype(np.float64)), gold.shape[-1])
            found["linear n-grams"] = metrics.accuracy(gold, guess)
        return found

    def most_telling(self, label: str, count: int = 10) -> list[str]:
        """The n-grams that speak most for a class, by the linear model."""
        if self.linear is None or self.ngram_words is None:
            raise DataError("most_telling: expected a model of text, got one of vectors")
        (number,) = self.labels.ids([label])
        found = self.linear.most_telling(number, count)
        return [" ".join(self.ngram_words.tokens_of(words)) for words, _ in found]

    def describe(self) -> str:
        if self.mixture is None:
            return super().describe()
        own = f"{self.model.ngrams}-grams"
        return f"{super().describe()}, together with {own}: {self.mixture}"

    # ------------------------------------------------------------- as files
    def own_state(self) -> tuple[dict[str, Vocabulary], dict[str, NDArray[Any]]]:
        if self.linear is None or self.ngram_words is None:
            return {}, {}
        arrays = {f"linear.{name}": own for name, own in self.linear.arrays().items()}
        if self.mixture is not None:
            arrays["mixture"] = np.array(self.mixture)
        return {"ngram_words": self.ngram_words}, arrays

    def own_restore(self, known: Mapping[str, Vocabulary], saved: Saved) -> None:
        linear = saved.part("linear")
        self.linear = LinearModel.from_arrays(linear) if linear else None
        self.ngram_words = known.get("ngram_words")
        mixture = saved.arrays.get("mixture")
        self.mixture = None if mixture is None else Mixture(*mixture.tolist())


def _among(guess: NDArray[T], labels: int) -> NDArray[T]:
    """Of several labels (rows, known), zeros for those that are not known; classes as they are."""
    if guess.ndim == 1:
        return guess
    return np.pad(guess, ((0, 0), (0, labels - guess.shape[1])))
