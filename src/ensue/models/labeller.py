"""`Labeller`: a label for each step of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.data.vectors import read_vectors
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError
from ensue.models import metrics
from ensue.models.batch import Columns, SequenceBatch
from ensue.models.bootstrap import Interval, bootstrap
from ensue.models.collect import Collected, Numbers, counts_of, renumbered
from ensue.models.crf import CRF
from ensue.models.embed import Characters, Embed, Feature, Symbols, Vectors, Words
from ensue.models.encoder import PlainEncoder, RecurrentEncoder
from ensue.models.estimator import Estimator, mean_of
from ensue.models.evaluation import ClassRow, Error, Evaluation, preview
from ensue.models.heads import balanced
from ensue.models.label_outputs import Stepwise
from ensue.models.labeller_network import LabellerNetwork
from ensue.models.majority import MajorityLabel
from ensue.models.previous_label import PreviousLabel
from ensue.models.saved import Saved, network_files, networks_of
from ensue.models.settings import LabellerSettings, NetworkSettings
from ensue.models.source import in_batches
from ensue.models.spans import Span, legal, scheme_of, span_counts, spans_of
from ensue.models.surfaces import SurfaceTable, ends_of, shape_of, starts_of, surface_table

WORST = 10
RARE = 2  # an affix, a letter or a shape seen less often is unknown


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

    words: Vocabulary | None = None
    parts: Mapping[str, Vocabulary]  # letters, prefixes, suffixes, shapes: those that are used
    labels: Vocabulary
    majority: MajorityLabel
    scale: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None

    # ------------------------------------------------------------- learning
    def learn(self, train: Collected, numbers: Numbers) -> None:
        assert train.labels is not None
        self._same_steps(train)
        self.labels = Vocabulary.closed(counts_of(train.labels, numbers.labels))
        if len(self.labels) < 2:
            raise DataError(
                f"the training part has one label only, {self.labels.tokens[0]!r}: "
                "expected at least two. Is this the right column?"
            )
        targets = self._targets(train, numbers)
        self.parts = {}
        if train.inputs.values.ndim == 2:
            vectors = train.inputs.values
            self.width, spread = vectors.shape[1], vectors.std(0)
            self.scale = vectors.mean(0), np.where(spread > 0, spread, 1).astype(np.float32)
            nothing = Ragged(np.zeros(len(vectors), np.int64), train.inputs.starts)
            self.majority = MajorityLabel.fitted(nothing, targets, 1)
            return
        counts = counts_of(train.inputs, numbers.tokens)
        folded: dict[str, int] = {}
        for word, count in counts.items():
            folded[self._fold(word)] = folded.get(self._fold(word), 0) + count
        least = min(self.text.min_count, max(folded.values(), default=1))
        self.words = Vocabulary.build(folded, min_count=least, max_size=self.text.max_words)
        self._learn_parts(counts)
        self.majority = MajorityLabel.fitted(
            self._word_numbers(train, numbers), targets, len(self.words)
        )

    def _fold(self, word: str) -> str:
        return self.tokeniser.prepared(word)

    def _learn_parts(self, counts: Mapping[str, int]) -> None:
        own = self.model
        wanted: dict[str, tuple[bool, Callable[[str], list[str]]]] = {
            "letters": (own.character_size > 0, list),
            "prefixes": (own.affixes > 0, lambda word: starts_of(word, own.affixes)),
            "suffixes": (own.affixes > 0, lambda word: ends_of(word, own.affixes)),
            "shapes": (own.shapes, lambda word: [shape_of(word)]),
        }
        found = {}
        for name, (used, of) in wanted.items():
            if not used:
                continue
            seen: dict[str, int] = {}
            for word, count in counts.items():
                for part in of(word):
                    seen[part] = seen.get(part, 0) + count
            found[name] = Vocabulary.build(seen, min_count=min(RARE, max(seen.values(), default=1)))
        self.parts = found

    def _word_numbers(self, part: Collected, numbers: Numbers) -> Ragged:
        assert self.words is not None
        known = {word: self.words.numbers[self._fold(word)] for word in numbers.tokens}
        return renumbered(part.inputs, numbers.tokens, known)

    def _same_steps(self, part: Collected) -> None:
        assert part.labels is not None
        wrong = np.flatnonzero(part.inputs.lengths != part.labels.lengths)
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"{part.names[row]}: expected a label for each of the "
                f"{part.inputs.lengths[row]} steps, got {part.labels.lengths[row]}"
            )

    def _targets(self, part: Collected, numbers: Numbers) -> Ragged:
        assert part.labels is not None
        names = list(numbers.labels)
        seen = np.unique(part.labels.values)
        for k in seen:
            if names[k] not in self.labels:
                at = int(np.flatnonzero(part.labels.values == k)[0])
                row = int(np.searchsorted(part.labels.starts, at, side="right")) - 1
                raise DataError(
                    f"{part.names[row]}: label {names[k]!r}: expected one that the training part "
                    f"has: {', '.join(self.labels.tokens[:10])}"
                )
        table = np.array([self.labels.numbers.get(name, 0) for name in names], np.int64)
        return Ragged(table[part.labels.values], part.labels.starts)

    def columns(self, part: Collected, numbers: Numbers) -> Columns:
        targets = None
        if part.labels is not None:
            self._same_steps(part)
            targets = self._targets(part, numbers)
        if self.words is None:
            return Columns(vectors=part.inputs, targets=targets)
        surfaces = Ragged(part.inputs.values.astype(np.int64) + 1, part.inputs.starts)
        return Columns(surfaces=surfaces, table=self._table(numbers), targets=targets)

    def _table(self, numbers: Numbers) -> SurfaceTable:
        assert self.words is not None
        longest, known = self.model.affixes, self.parts
        return surface_table(
            ["", *numbers.tokens],
            self.words,
            fold=self._fold,
            characters=known.get("letters"),
            prefixes=(known["prefixes"], longest) if "prefixes" in known else None,
            suffixes=(known["suffixes"], longest) if "suffixes" in known else None,
            shapes=known.get("shapes"),
        )

    # ------------------------------------------------------------- the network
    def build(self) -> nn.Module:
        own = self.model
        embed = Embed(self._features(), own.dropout_input)
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
        output = self._output(encoder.output_size)
        return LabellerNetwork(
            embed, encoder, output, dropout=own.dropout_output, norm_weight=own.norm_weight
        )

    def _features(self) -> list[Feature]:
        own = self.model
        if self.words is None:
            assert self.scale is not None
            assert self.width is not None
            return [Vectors(self.width, *map(torch.from_numpy, self.scale))]
        start = None
        if own.vectors:
            start = torch.from_numpy(read_vectors(Path(own.vectors), self.words).matrix)
        found: list[Feature] = [
            Words(
                len(self.words),
                own.embedding_size if start is None else start.shape[1],
                start=start,
                frozen=own.freeze_vectors,
                dropout=own.word_dropout,
                once=torch.tensor(self.words.counts) == 1,
                once_dropout=own.once_dropout,
            )
        ]
        known = self.parts
        if "letters" in known:
            count = len(known["letters"])
            found.append(Characters(count, own.character_size, own.cell, own.character_hidden))
        if "prefixes" in known:
            width = max(4, own.embedding_size // 4)
            found.append(Symbols("prefix", len(known["prefixes"]), width, own.affixes))
            found.append(Symbols("suffix", len(known["suffixes"]), width, own.affixes))
        if "shapes" in known:
            found.append(Symbols("shape", len(known["shapes"]), max(4, own.embedding_size // 4)))
        return found

    def _output(self, width: int) -> Stepwise | CRF | PreviousLabel:
        own, count = self.model, len(self.labels)
        scheme = scheme_of(self.labels.tokens) if own.legal_only else None
        allowed = legal(self.labels.tokens, scheme) if scheme is not None else None
        if own.output == "crf":
            return CRF(width, count, legal=allowed)
        weights = None
        if own.class_weights == "balanced":
            weights = balanced(torch.tensor(self.labels.counts))
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
            lengths = columns.lengths[rows]
            at = np.arange(lengths.sum()) + np.repeat(
                starts[rows] - np.cumsum(lengths) + lengths, lengths
            )
            real = (np.arange(len(labels))[:, None] < lengths).T  # (batch, time)
            guess[at] = labels.T[real]
            found[at] = probabilities.swapaxes(0, 1)[real]
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
        cost, right, gold, guess = 0.0, 0, [], []
        for rows, batch in in_batches(columns, 2 * self.model.batch_tokens):
            cost += float(network(batch, {})[0])
            labels = network.label(batch, self._search(network), self.model.beam).labels
            for k, row in enumerate(rows):
                own = columns.targets.row(int(row))
                answer = labels[: len(own), k].numpy()
                right += int((own == answer).sum())
                gold.append(own)
                guess.append(answer)
        steps = max(1, len(columns.targets.values))
        found = {"cost": cost / steps, "accuracy": right / steps}
        if scheme_of(self.labels.tokens) is not None:
            counts = span_counts(self._tags(gold), self._tags(guess))
            found["span_f1"] = float(metrics.span_f1(np.asarray(counts).sum(0)))
        return found

    def _tags(self, rows: Sequence[NDArray[np.int64]]) -> list[list[str]]:
        return [[self.labels.tokens[k] for k in row] for row in rows]

    def answers(self, part: Collected, numbers: Numbers) -> list[Labelled]:
        labels, probabilities = self._labelled(self.columns(part, numbers))
        sure = probabilities[np.arange(len(labels.values)), labels.values]
        names, spans = list(numbers.tokens), scheme_of(self.labels.tokens) is not None
        found = []
        for row in range(len(part)):
            first, last = labels.starts[row], labels.starts[row + 1]
            tags = [self.labels.tokens[k] for k in labels.row(row)]
            tokens = () if self.words is None else tuple(names[k] for k in part.inputs.row(row))
            own = tuple(spans_of(tags)) if spans else None
            found.append(Labelled(tokens, tuple(tags), tuple(sure[first:last].tolist()), own))
        return found

    def judge(self, part: Collected, numbers: Numbers) -> Evaluation:
        columns = self.columns(part, numbers)
        if not isinstance(columns.targets, Ragged):
            raise DataError("evaluate: expected rows with labels, got rows without")
        labels, probabilities = self._labelled(columns)
        gold, guess = columns.targets, labels
        right = np.add.reduceat(np.append(gold.values == guess.values, False), gold.starts[:-1]) * (
            gold.lengths > 0
        )
        seed = self.train.seed
        scores: dict[str, Interval] = {}
        if scheme_of(self.labels.tokens) is not None:
            rows = range(len(gold))
            counts = span_counts(
                self._tags([gold.row(k) for k in rows]), self._tags([guess.row(k) for k in rows])
            )
            scores["span F1"] = bootstrap(np.asarray(counts), metrics.span_f1, seed=seed)
        pairs = np.stack([right, gold.lengths], 1)
        scores["accuracy"] = bootstrap(pairs, metrics.ratio, seed=seed)
        totals = metrics.class_counts(gold.values, guess.values, len(self.labels))
        own = metrics.class_scores(totals)
        table = zip(self.labels.tokens, own.precision, own.recall, own.f1, own.support, strict=True)
        return Evaluation(
            rows=len(part),
            steps=len(gold.values),
            scores=scores,
            others=self._others(part, numbers, gold, guess, probabilities),
            baselines=self._baselines(part, numbers, gold, "span F1" in scores),
            classes=[ClassRow(n, float(p), float(r), float(f), int(s)) for n, p, r, f, s in table],
            confusion=metrics.confusion(gold.values, guess.values, len(self.labels)).tolist(),
            worst=self._worst(part, numbers, gold, guess, probabilities),
        )

    def _others(
        self,
        part: Collected,
        numbers: Numbers,
        gold: Ragged,
        guess: Ragged,
        probabilities: NDArray[np.float64],
    ) -> dict[str, float]:
        totals = metrics.class_counts(gold.values, guess.values, len(self.labels))
        found = {
            "macro-F1": float(metrics.macro_f1(totals)),
            "log loss": metrics.log_loss(gold.values, probabilities),
        }
        if self.words is not None:
            unknown = self._word_numbers(part, numbers).values == 1
            if unknown.any():
                found["on unknown words"] = float((gold.values == guess.values)[unknown].mean())
        return found

    def _baselines(
        self, part: Collected, numbers: Numbers, gold: Ragged, spans: bool
    ) -> dict[str, float]:
        """The most frequent label of all, and of each word."""
        if self.words is None:
            words = Ragged(np.zeros(len(gold.values), np.int64), gold.starts)
        else:
            words = self._word_numbers(part, numbers)
        by_word = self.majority.label(words)
        overall = Ragged(np.full_like(gold.values, self.majority.overall), gold.starts)
        found = {}
        for name, guess in (("majority label", overall), ("majority by word", by_word)):
            if spans:
                rows = range(len(gold))
                counts = span_counts(
                    self._tags([gold.row(k) for k in rows]),
                    self._tags([guess.row(k) for k in rows]),
                )
                found[name] = float(metrics.span_f1(np.asarray(counts).sum(0)))
            else:
                found[name] = metrics.accuracy(gold.values, guess.values)
        return found

    def _worst(
        self,
        part: Collected,
        numbers: Numbers,
        gold: Ragged,
        guess: Ragged,
        probabilities: NDArray[np.float64],
    ) -> list[Error]:
        sure = np.where(gold.values != guess.values, probabilities.max(1), 0)
        names, labels = list(numbers.tokens), self.labels.tokens
        found = []
        for at in np.argsort(-sure, kind="stable")[:WORST]:
            if sure[at] > 0:
                row = int(np.searchsorted(gold.starts, at, side="right")) - 1
                text = ""
                if self.words is not None:
                    tokens = [names[k] for k in part.inputs.row(row)]
                    step = int(at - gold.starts[row])
                    tokens[step] = f"[{tokens[step]}]"
                    text = preview(tokens[max(0, step - 4) :])
                told = (labels[gold.values[at]], labels[guess.values[at]], float(sure[at]))
                found.append(Error(part.names[row], text, *told))
        return found

    # ------------------------------------------------------------- as files
    def state(self) -> Saved:
        arrays: dict[str, NDArray[Any]] = {
            "majority.by_word": self.majority.by_word,
            "majority.overall": np.array([self.majority.overall]),
        }
        if self.scale is not None:
            arrays |= {"scale.mean": self.scale[0], "scale.spread": self.scale[1]}
        known = {"labels": self.labels, "words": self.words}
        known |= {f"part {name}": own for name, own in self.parts.items()}
        facts = {
            "text": self.text.table(),
            "model": self.model.table(),
            "train": self.train.table(),
            "members": self.members,
            "tokeniser": self.tokeniser.to_dict(),
            "width": self.width,
        }
        tables = {name: own.to_dict() for name, own in known.items() if own is not None}
        return Saved(self.kind, facts, tables, arrays, network_files(self.networks))

    def restore(self, saved: Saved) -> None:
        known = {name: Vocabulary.from_dict(own) for name, own in saved.vocabularies.items()}
        self.labels, self.words = known["labels"], known.get("words")
        begin = "part "
        self.parts = {n.removeprefix(begin): v for n, v in known.items() if n.startswith(begin)}
        self.tokeniser = Tokeniser.from_dict(saved.facts["tokeniser"])
        self.width = saved.facts["width"]
        majority, scale = saved.part("majority"), saved.part("scale")
        self.majority = MajorityLabel(majority["by_word"], int(majority["overall"][0]))
        self.scale = (scale["mean"], scale["spread"]) if scale else None
        self.networks = networks_of(saved, self.build)
