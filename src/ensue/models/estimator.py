"""What every task model is: fitted, evaluated, used, saved and loaded by the same verbs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.data.vectors import read_vectors
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError
from ensue.layers.sequence_convolution import field_of
from ensue.models.batch import Columns
from ensue.models.collect import Collected, Examples, Numbers, pairs_of, renumbered
from ensue.models.embed import Words
from ensue.models.encoder import (
    ConvolutionEncoder,
    Encoder,
    PlainEncoder,
    RecurrentEncoder,
    TransformerEncoder,
)
from ensue.models.evaluation import Evaluation
from ensue.models.heads import balanced
from ensue.models.saved import Saved, network_files, networks_of
from ensue.models.scale import Scale
from ensue.models.settings import NetworkSettings
from ensue.models.source import Scored, SequenceSource
from ensue.models.task_model import IN_MEMORY, Fitting, TaskModel
from ensue.training import (
    Outcome,
    RateCurve,
    Said,
    Watcher,
    find_rate,
)

FEW = 4  # rows of a trial evaluation
SHOWN_LABELS = 6  # of a summary


class Estimator(TaskModel):
    """A task model that learns from rows with labels."""

    model_settings: ClassVar[type[NetworkSettings]]
    model: NetworkSettings

    labels: Vocabulary
    words: Vocabulary | None = None  # of a model of text
    scale: Scale | None = None  # of a model of vectors
    _word_width = 0
    _start: torch.Tensor | None = None  # word vectors from a file

    # ------------------------------------------------------------- what a task says
    @abstractmethod
    def learn(self, train: Collected, numbers: Numbers) -> None:
        """Vocabularies, labels and baselines of the training part."""

    @abstractmethod
    def columns(self, part: Collected, numbers: Numbers) -> Columns:
        """A part as the networks see it."""

    @abstractmethod
    def score(self, network: nn.Module, columns: Columns) -> dict[str, float]:
        """Scores of one network: what validation watches."""

    @abstractmethod
    def own_state(self) -> tuple[dict[str, Vocabulary], dict[str, NDArray[Any]]]:
        """Vocabularies and arrays that were learned, beside those that every model has."""

    @abstractmethod
    def own_restore(self, known: Mapping[str, Vocabulary], saved: Saved) -> None:
        """The inverse of `own_state`."""

    def remarks(self, part: Collected) -> list[str]:
        """What a user should know of the training part, if there is anything."""
        return []

    # ------------------------------------------------------------- the verbs
    def fit(
        self,
        train: Examples,
        validation: Examples | None = None,
        *,
        folder: Path | str | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> Self:
        """From pairs of input and label. Without validation, a tenth of the rows is held out."""
        rows = pairs_of(train)
        held = None if validation is None else pairs_of(validation)
        return self._fit_rows(rows, held, folder, watchers)

    def fit_parts(
        self,
        train: Collected,
        validation: Collected,
        numbers: Numbers,
        how: Fitting = IN_MEMORY,
    ) -> list[Outcome]:
        """Learns from collected rows; one outcome for each member."""
        for name, part in (("training", train), ("validation", validation)):
            if not len(part) or part.labels is None:
                where = f", the first of them {part.unlabelled}" if part.unlabelled else ""
                raise DataError(
                    f"the {name} part: expected rows with labels, got {len(part)} rows"
                    + (" with some or all of them missing" + where) * bool(len(part))
                )
        self.learn(train, numbers)
        data, held = self.columns(train, numbers), self.columns(validation, numbers)
        for watcher in how.watchers:
            for text in self.remarks(train):
                watcher(Said(text))
        few = held.taken(np.argsort(held.lengths)[-FEW:])
        return self.fit_members(
            lambda seed: self._source(data, train, seed),
            lambda network: Scored(lambda own: self.score(network, own), held, few),
            how,
        )

    def _source(self, data: Columns, part: Collected, seed: int) -> SequenceSource:
        own = self.model
        return SequenceSource(
            data, part.names, seed=seed, budget=own.batch_tokens, most_rows=own.batch_rows
        )

    def find_rate(self, train: Collected, numbers: Numbers) -> RateCurve:
        """Tries ever higher learning rates on a fresh network, and suggests one."""
        self.learn(train, numbers)
        source = self._source(self.columns(train, numbers), train, self.train.seed)
        return find_rate(self.fresh(self.train.seed), source, self.train)

    def learn_words(self, counts: Mapping[str, int]) -> Vocabulary:
        """The vocabulary, and the vectors to begin with if a file has them. min_count is that of
        the settings, unless all words are rarer."""
        least = min(self.text.min_count, max(counts.values(), default=1))
        self.words = Vocabulary.build(counts, min_count=least, max_size=self.text.max_words)
        self._word_width, self._start = self.model.embedding_size, None
        if self.model.vectors:
            found = read_vectors(Path(self.model.vectors), self.words)
            self._start = torch.from_numpy(found.matrix)
            self._word_width = self._start.shape[1]
        return self.words

    def word_feature(self, words: Vocabulary, once_dropout: float | None = None) -> Words:
        """once_dropout: of words seen once; None as of all others."""
        own = self.model
        once = None if once_dropout is None else torch.tensor(words.counts) == 1
        return Words(
            len(words),
            self._word_width,
            start=self._start,
            frozen=own.freeze_vectors,
            dropout=own.word_dropout,
            once=once,
            once_dropout=once_dropout or 0.0,
        )

    def encoder(self, width: int) -> Encoder:
        """For steps of that width, with fresh weights."""
        own = self.model
        if own.encoder == "plain":
            return PlainEncoder(width)
        if own.encoder == "transformer":
            return TransformerEncoder(
                width,
                width=own.hidden_size,
                heads=own.heads,
                num_layers=own.layers,
                inner=own.inner_size,
                norm=own.norm_place,
                dropout=own.dropout_layers,
                dropout_attention=own.dropout_attention,
            )
        if own.encoder == "convolution":
            return ConvolutionEncoder(
                width,
                width=own.hidden_size,
                num_layers=own.layers,
                size=own.filter_size,
                dilated=own.dilated,
                dropout=own.dropout_layers,
            )
        return RecurrentEncoder(
            width,
            cell=own.cell,
            hidden_size=own.hidden_size,
            num_layers=own.layers,
            bidirectional=own.bidirectional,
            dropout=own.dropout_layers,
            recurrent_dropout=own.dropout_recurrent,
            init=own.init,
        )

    def class_weights(self) -> torch.Tensor | None:
        if self.model.class_weights == "none":
            return None
        return balanced(torch.tensor(self.labels.counts))

    def evaluate(self, examples: Examples) -> Evaluation:
        """Scores with intervals, baselines, classes, the surest mistakes."""
        part, numbers = self.collect(examples)
        if not len(part):
            raise DataError("evaluate: expected rows, got none")
        return self.judge(part, numbers)

    def state(self) -> Saved:
        """All that was learned."""
        known, arrays = self.own_state()
        known["labels"] = self.labels
        if self.words is not None:
            known["words"] = self.words
        if self.scale is not None:
            arrays |= {"scale.mean": self.scale.mean, "scale.spread": self.scale.spread}
        facts = {**self.settings_facts(), "word_width": self._word_width}
        tables = {name: own.to_dict() for name, own in known.items()}
        return Saved(self.kind, facts, tables, arrays, network_files(self.networks))

    @classmethod
    def of_saved(cls, saved: Saved) -> Self:
        """The model that was saved."""
        own = saved.facts
        found = cls(own["text"], own["model"], own["train"], members=own["members"])
        known = {name: Vocabulary.from_dict(table) for name, table in saved.vocabularies.items()}
        found.labels, found.words = known["labels"], known.get("words")
        scale = saved.part("scale")
        found.scale = Scale(scale["mean"], scale["spread"]) if scale else None
        found.tokeniser = Tokeniser.from_dict(own["tokeniser"])
        found._word_width = own["word_width"]
        found.own_restore(known, saved)
        found.networks = networks_of(saved, found.build)
        return found

    def fitted(self) -> bool:
        return bool(self.networks)

    # ------------------------------------------------------------- to be looked at
    def summary(self) -> str:
        """What the model is, in a few lines."""
        lines = [f"{type(self).__name__}: {self.describe()}"]
        if self.networks:
            names = self.labels.tokens
            more = ", …" if len(names) > SHOWN_LABELS else ""
            lines.append(f"  {len(names)} labels: {', '.join(names[:SHOWN_LABELS])}{more}")
            lines.append(self.size_line())
        return "\n".join(lines)

    def describe(self) -> str:
        own = self.model
        if own.encoder == "plain":
            return "no encoder"
        if own.encoder == "transformer":
            return f"{own.layers} × transformer of {own.hidden_size}, {own.heads} heads"
        if own.encoder == "convolution":
            seen = field_of(own.layers, own.filter_size, own.dilated)
            return f"{own.layers} × convolution of {own.hidden_size}, {seen} steps seen"
        ways = "bidirectional " if own.bidirectional else ""
        return f"{own.layers} × {ways}{own.cell} of {own.hidden_size}"


def vocabulary_rows(part: Collected, numbers: Numbers, ids: dict[str, int]) -> Ragged:
    """The tokens of a part by a vocabulary's numbers; vectors are an error."""
    if part.inputs.values.ndim == 2:
        raise DataError(f"{part.names[0]}: expected text, as in training, got vectors")
    return renumbered(part.inputs, numbers.tokens, ids)


def mean_of(found: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The mean over the members of an ensemble."""
    return np.asarray(sum(found[1:], start=found[0]) / len(found))
