"""`Classifier`: a sequence in, its class (or several labels) out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.data.vectors import read_vectors
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError
from ensue.models import metrics
from ensue.models.batch import Columns
from ensue.models.bootstrap import bootstrap
from ensue.models.classifier_network import ClassifierNetwork, NgramScores
from ensue.models.collect import Collected, Numbers, counts_of, renumbered, shortened
from ensue.models.embed import Embed, Feature, Vectors, Words
from ensue.models.encoder import PlainEncoder, RecurrentEncoder
from ensue.models.estimator import Estimator, mean_of
from ensue.models.evaluation import ClassRow, Error, Evaluation, preview
from ensue.models.heads import Bernoulli, Categorical, balanced
from ensue.models.linear import LinearModel, fit_linear
from ensue.models.pooling import Pooling
from ensue.models.saved import Saved, network_files, networks_of
from ensue.models.settings import ClassifierSettings, NetworkSettings
from ensue.models.source import in_batches

WORST = 10
THRESHOLD = 0.5  # of several labels, those more probable are there


@dataclass(frozen=True)
class Classified:
    """label: the most probable class ("" where several labels may be there); labels: all that
    are there; probabilities: by class, the most probable first."""

    label: str
    labels: tuple[str, ...]
    probabilities: Mapping[str, float]

    def as_line(self, value: object) -> str:
        """label, probability and input, with tabs between."""
        chosen = self.label or ",".join(self.labels)
        sure = self.probabilities[self.label] if self.label else max(self.probabilities.values())
        return f"{chosen}\t{sure:.4f}\t{value if isinstance(value, str) else ''}".rstrip()


class Classifier(Estimator):
    """The class of a text, of tokens, or of a sequence of vectors.

    model = Classifier(train={"epochs": 5}).fit([("a fine film", "good"), ("dull", "bad"), …])
    model.predict(["not bad at all"])[0].label
    """

    kind = "classify"
    model_settings: ClassVar[type[NetworkSettings]] = ClassifierSettings
    train_defaults: ClassVar[Mapping[str, Any]] = {"watch": "accuracy", "patience": 3}
    model: ClassifierSettings

    words: Vocabulary | None = None
    ngram_words: Vocabulary | None = None
    labels: Vocabulary
    linear: LinearModel | None = None
    scale: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None

    # ------------------------------------------------------------- learning
    def learn(self, train: Collected, numbers: Numbers) -> None:
        assert train.labels is not None
        self.labels = Vocabulary.closed(counts_of(train.labels, numbers.labels))
        if len(self.labels) < 2:
            raise DataError(
                f"the training part has one class only, {self.labels.tokens[0]!r}: "
                "expected at least two. Is this the right column?"
            )
        if not self.model.several and (train.labels.lengths != 1).any():
            row = int(np.flatnonzero(train.labels.lengths != 1)[0])
            raise DataError(
                f"{train.names[row]}: expected one label, found {train.labels.lengths[row]}; "
                "for several labels at once set model.several = true"
            )
        if train.inputs.values.ndim == 2:
            self._learn_scale(train.inputs.values)
            return
        counts = counts_of(train.inputs, numbers.tokens)
        self.words = Vocabulary.build(
            counts, min_count=self._rare(counts), max_size=self.text.max_words
        )
        self.ngram_words = Vocabulary.build(counts, min_count=min(2, max(counts.values())))
        inputs = renumbered(train.inputs, numbers.tokens, self.ngram_words.numbers)
        longest = self.model.ngrams or 2
        targets = self._targets(train.labels, numbers)
        self.linear = fit_linear(inputs, targets, len(self.labels), longest=longest, min_rows=2)

    def _rare(self, counts: dict[str, int]) -> int:
        """The least count of a known word: that of the settings, unless all words are rarer."""
        return int(min(self.text.min_count, max(counts.values(), default=1)))

    def _learn_scale(self, vectors: NDArray[np.float32]) -> None:
        self.width = vectors.shape[1]
        spread = vectors.std(0)
        self.scale = vectors.mean(0), np.where(spread > 0, spread, 1).astype(np.float32)

    def _targets(self, labels: Ragged, numbers: Numbers) -> NDArray[np.int64]:
        """(rows,) classes, or (rows, labels) zeros and ones."""
        names = list(numbers.labels)
        unknown = [name for name in names if name not in self.labels]
        if unknown:
            raise DataError(
                f"label {unknown[0]!r}: expected one that the training part has: "
                f"{', '.join(self.labels.tokens[:10])}"
            )
        table = np.array(self.labels.ids(names), np.int64)
        if not self.model.several:
            return np.asarray(table[labels.values])
        found = np.zeros((len(labels), len(self.labels)), np.int64)
        rows = np.repeat(np.arange(len(labels)), labels.lengths)
        found[rows, table[labels.values]] = 1
        return found

    def columns(self, part: Collected, numbers: Numbers) -> Columns:
        targets = None if part.labels is None else self._targets(part.labels, numbers)
        cut = (self.text.max_length, self.text.cut)
        if self.words is None:
            return Columns(vectors=shortened(self._vectors(part), *cut), targets=targets)
        ngrams = None
        if self.model.ngrams:
            assert self.linear is not None
            ngrams = self.linear.ngrams.present(self._ngram_inputs(part, numbers))
        words = renumbered(part.inputs, numbers.tokens, self.words.numbers)
        return Columns(words=shortened(words, *cut), ngrams=ngrams, targets=targets)

    def _vectors(self, part: Collected) -> Ragged:
        if part.inputs.values.ndim != 2 or part.inputs.values.shape[1] != self.width:
            got = part.inputs.values.shape[1:] or "text"
            raise DataError(f"expected sequences of {self.width} numbers a step, got {got}")
        return part.inputs

    def _ngram_inputs(self, part: Collected, numbers: Numbers) -> Ragged:
        if part.inputs.values.ndim == 2:
            raise DataError("expected text, got sequences of vectors")
        assert self.ngram_words is not None
        return renumbered(part.inputs, numbers.tokens, self.ngram_words.numbers)

    # ------------------------------------------------------------- the network
    def build(self) -> nn.Module:
        own, classes = self.model, len(self.labels)
        embed = Embed([self._feature()], own.dropout_input)
        encoder: RecurrentEncoder | PlainEncoder = PlainEncoder(embed.width)
        if own.encoder == "recurrent":
            encoder = RecurrentEncoder(
                embed.width,
                cell=own.cell,
                hidden_size=own.hidden_size,
                num_layers=own.layers,
                bidirectional=own.bidirectional,
                dropout=own.dropout_layers,
                recurrent_dropout=own.dropout_recurrent,
                init=own.init,
            )
        weights = None
        if own.class_weights == "balanced":
            weights = balanced(torch.tensor(self.labels.counts))
        head = (Bernoulli if own.several else Categorical)(
            classes, smoothing=own.smoothing, class_weights=weights
        )
        network = ClassifierNetwork(
            embed,
            encoder,
            Pooling(own.pooling, encoder.output_size, encoder.final_size),
            head,
            ngrams=self._side_scores(),
            dropout=own.dropout_output,
            norm_weight=own.norm_weight,
        )
        return network

    def _feature(self) -> Feature:
        if self.words is None:
            assert self.scale is not None
            assert self.width is not None
            return Vectors(self.width, *map(torch.from_numpy, self.scale))
        start = None
        if self.model.vectors:
            start = torch.from_numpy(read_vectors(Path(self.model.vectors), self.words).matrix)
        return Words(
            len(self.words),
            self.model.embedding_size if start is None else start.shape[1],
            start=start,
            frozen=self.model.freeze_vectors,
            dropout=self.model.word_dropout,
        )

    def _side_scores(self) -> NgramScores | None:
        if not self.model.ngrams or self.linear is None:
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
    def _of_network(self, network: nn.Module, columns: Columns) -> NDArray[np.float64]:
        """(rows, classes) log-probabilities."""
        assert isinstance(network, ClassifierNetwork)
        found = np.zeros((len(columns), len(self.labels)))
        budget = 2 * self.model.batch_tokens
        for rows, batch in in_batches(columns, budget):
            found[rows] = network.log_probabilities(batch).double().numpy()
        return found

    def probabilities(self, columns: Columns) -> NDArray[np.float64]:
        """(rows, classes), the mean over the members."""
        found = [np.exp(self._of_network(network, columns)) for network in self.networks]
        return mean_of(found)

    def _decided(self, probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
        if self.model.several:
            return (probabilities > THRESHOLD).astype(np.int64)
        return np.asarray(probabilities.argmax(1))

    def score(self, network: nn.Module, columns: Columns) -> dict[str, float]:
        logs, gold = self._of_network(network, columns), columns.targets
        assert isinstance(gold, np.ndarray)
        guess = self._decided(np.exp(logs))
        counts = metrics.class_counts(gold, guess, len(self.labels))
        return {
            "cost": metrics.log_loss(gold, np.exp(logs)),
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
        columns = self.columns(part, numbers)
        if not isinstance(columns.targets, np.ndarray):
            raise DataError("evaluate: expected rows with labels, got rows without")
        gold, classes = columns.targets, len(self.labels)
        probabilities = self.probabilities(columns)
        guess = self._decided(probabilities)
        counts = metrics.row_counts(gold, guess, classes)
        right = (gold == guess) if gold.ndim == 1 else (gold == guess).all(1)
        pairs = np.stack([right, np.ones(len(right))], 1)
        scores = {
            "accuracy": bootstrap(pairs, metrics.ratio, seed=self.train.seed),
            "macro-F1": bootstrap(counts, metrics.macro_f1, seed=self.train.seed),
        }
        others = {"log loss": metrics.log_loss(gold, probabilities)}
        if gold.ndim == 1:
            others["calibration error"] = metrics.calibration_error(gold, probabilities)
        own = metrics.class_scores(counts.sum(0))
        rows = zip(self.labels.tokens, own.precision, own.recall, own.f1, own.support, strict=True)
        return Evaluation(
            rows=len(part),
            steps=len(part),
            scores=scores,
            others=others,
            baselines=self._baselines(part, numbers, gold),
            classes=[ClassRow(n, float(p), float(r), float(f), int(s)) for n, p, r, f, s in rows],
            confusion=metrics.confusion(gold, guess, classes).tolist() if gold.ndim == 1 else [],
            worst=self._worst(part, numbers, gold, guess, probabilities),
        )

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
            guess = self._decided(linear.astype(np.float64))
            found["linear n-grams"] = metrics.accuracy(gold, guess)
        return found

    def _worst(
        self,
        part: Collected,
        numbers: Numbers,
        gold: NDArray[np.int64],
        guess: NDArray[np.int64],
        probabilities: NDArray[np.float64],
    ) -> list[Error]:
        if gold.ndim == 2:
            return []
        sure = np.where(gold != guess, probabilities.max(1), 0)
        tokens, names = list(numbers.tokens), self.labels.tokens
        found = []
        for row in np.argsort(-sure, kind="stable")[:WORST]:
            if sure[row] > 0:
                text = ""
                if self.words is not None:
                    text = preview([tokens[k] for k in part.inputs.row(int(row))])
                place = part.names[int(row)]
                found.append(
                    Error(place, text, names[gold[row]], names[guess[row]], float(sure[row]))
                )
        return found

    def most_telling(self, label: str, count: int = 10) -> list[str]:
        """The n-grams that speak most for a class, by the linear model."""
        if self.linear is None or self.ngram_words is None:
            raise DataError("most_telling: expected a model of text, got one of vectors")
        (number,) = self.labels.ids([label])
        found = self.linear.most_telling(number, count)
        return [" ".join(self.ngram_words.tokens_of(words)) for words, _ in found]

    # ------------------------------------------------------------- as files
    def state(self) -> Saved:
        arrays = {
            f"linear.{n}": v for n, v in (self.linear.arrays() if self.linear else {}).items()
        }
        if self.scale is not None:
            arrays |= {"scale.mean": self.scale[0], "scale.spread": self.scale[1]}
        vocabularies = {"words": self.words, "ngram_words": self.ngram_words, "labels": self.labels}
        facts = {
            "text": self.text.table(),
            "model": self.model.table(),
            "train": self.train.table(),
            "members": self.members,
            "tokeniser": self.tokeniser.to_dict(),
            "width": self.width,
        }
        known = {n: v.to_dict() for n, v in vocabularies.items() if v is not None}
        return Saved(self.kind, facts, known, arrays, network_files(self.networks))

    def restore(self, saved: Saved) -> None:
        known = {name: Vocabulary.from_dict(own) for name, own in saved.vocabularies.items()}
        self.labels = known["labels"]
        self.words, self.ngram_words = known.get("words"), known.get("ngram_words")
        self.tokeniser, self.width = (
            Tokeniser.from_dict(saved.facts["tokeniser"]),
            saved.facts["width"],
        )
        linear = saved.part("linear")
        self.linear = LinearModel.from_arrays(linear) if linear else None
        scale = saved.part("scale")
        self.scale = (scale["mean"], scale["spread"]) if scale else None
        self.networks = networks_of(saved, self.build)
