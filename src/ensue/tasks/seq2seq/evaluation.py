"""Evaluation of texts against reference texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.drawing.document import Block, Section, Table
from ensue.errors import MissingExtra
from ensue.metrics.bleu import INSTALL, Corpus, bleu_of, corpus_of, edit_distances, letters_of
from ensue.tasks.evaluation.bootstrap import RowSums, intervals
from ensue.tasks.evaluation.report import PREVIEW, Error, Evaluation
from ensue.tasks.rows.part import Names

EDGES = (5, 10, 15, 20, 30, 50)  # maximum tokens of each bucket
WORST = 5
LONGEST_SHOWN = 2 * PREVIEW  # characters of a text


class Bucket(NamedTuple):
    """Rows of similar length, and their main score."""

    name: str
    rows: int
    score: float


@dataclass(frozen=True)
class PairEvaluation(Evaluation):
    """The evaluation of generated texts. buckets: scores by the number of tokens of the source.
    Because texts are long, an error takes several lines."""

    buckets: Sequence[Bucket] = ()

    tables: ClassVar[Mapping[str, type[Any]]] = {**Evaluation.tables, "buckets": Bucket}
    mistakes: ClassVar[str] = "worst answers"

    def sections(self) -> Sequence[Block]:
        rows = [[bucket.name, f"{bucket.rows:,}", f"{bucket.score:.4f}"] for bucket in self.buckets]
        lengths = Table(rows, ("tokens", "rows", self.main), left=0)
        worst = [Section(self.mistakes, [*map(_texts_of, self.worst)])] * bool(self.worst)
        return [Section("by length", [lengths]), *worst]


def _texts_of(error: Error) -> Section:
    source = [["source", error.text]] if error.text else []
    rows = [*source, ["expected", error.gold], ["got", error.predicted]]
    return Section(f"{error.place}  ({error.probability:.2f})", [Table(rows, left=2)])


@dataclass(frozen=True)
class Compared:
    """Answers and references, row by row, as texts and as token indices. sources: the sources for
    display, "" if they are not texts; probabilities: the probabilities of the answers; lengths: the
    lengths of the sources in tokens, for the buckets."""

    names: Names
    sources: Sequence[str]
    expected: Sequence[str]
    answers: Sequence[str]
    expected_tokens: Ragged
    found_tokens: Ragged
    lengths: NDArray[np.int64]
    probabilities: Sequence[float]


@dataclass(frozen=True)
class Scoring:
    """How texts are scored. tokenize, lowercase: options of sacrebleu; exact_first: whether the
    main score is the share of exact answers; seed: the seed of the bootstrap."""

    tokenize: str
    lowercase: bool
    exact_first: bool
    seed: int

    def corpus(self, answers: Sequence[str], expected: Sequence[str]) -> Corpus | None:
        """The scores of sacrebleu; None if it is not installed."""
        try:
            return corpus_of(answers, expected, tokenize=self.tokenize, lowercase=self.lowercase)
        except MissingExtra:
            return None


def evaluate_pairs(
    rows: Compared,
    baselines: Mapping[str, Sequence[str]],
    how: Scoring,
    attributes: Mapping[str, Sequence[str]] | None = None,
) -> PairEvaluation:
    """BLEU, chrF, exact answers and edits, the worst answers. baselines: answers of baselines, by
    name; attributes: groups of words such as colours; a text is right in a group if it has the same
    words of it in the same order."""
    pairs = zip(rows.answers, rows.expected, strict=True)
    right = np.array([answer == expected for answer, expected in pairs], np.float64)
    edits = _edits(rows)
    corpus = how.corpus(rows.answers, rows.expected)
    sums = {"exact": RowSums("ratio", np.stack([right, np.ones(len(right))], 1))}
    rates = {"token errors": edits[0].sum() / max(edits[1].sum(), 1)}
    rates["letter errors"] = edits[2].sum() / max(edits[3].sum(), 1)
    notes = [f"BLEU and chrF are not counted: {INSTALL}"]
    if corpus is not None:
        sums["bleu"] = RowSums("bleu", corpus.sums)
        rates = {"chrf": corpus.chrf, **rates}
        notes = [f"BLEU {corpus.bleu_signature}", f"chrF {corpus.chrf_signature}"]
    for name, words in (attributes or {}).items():
        if (share := _attribute_share(rows, words)) is not None:
            rates[f"{name} right"] = share
    main = "exact" if how.exact_first or corpus is None else "bleu"
    sums = {main: sums[main], **sums}
    scores = intervals(sums, how.seed)
    if corpus is not None:
        scores["bleu"] = scores["bleu"]._replace(value=corpus.bleu)
    return PairEvaluation(
        rows=len(right),
        steps=int(rows.expected_tokens.lengths.sum()),
        scores=scores,
        others={name: float(value) for name, value in rates.items()},
        baselines={
            name: _main_score(texts, rows.expected, main, how) for name, texts in baselines.items()
        },
        classes=[],
        confusion=[],
        worst=_worst(rows, right, edits[0] if corpus is None else -corpus.sentences),
        notes=notes,
        sums=sums,
        buckets=_buckets(rows.lengths, right, corpus if main == "bleu" else None),
    )


def _edits(rows: Compared) -> list[NDArray[np.int64]]:
    """Four counts for each row: tokens to change, tokens expected, letters to change, letters
    expected."""
    answers, expected = letters_of(rows.answers), letters_of(rows.expected)
    return [
        edit_distances(rows.found_tokens, rows.expected_tokens),
        rows.expected_tokens.lengths,
        edit_distances(answers, expected),
        expected.lengths,
    ]


def _attribute_share(rows: Compared, words: Sequence[str]) -> float | None:
    """The share of texts in which these words are as expected; None if none is expected."""
    known = frozenset(words)

    def of(text: str) -> list[str]:
        return [word for word in text.split() if word in known]

    pairs = [
        (of(answer), of(text)) for answer, text in zip(rows.answers, rows.expected, strict=True)
    ]
    if not any(expected for _, expected in pairs):
        return None
    return sum(answer == expected for answer, expected in pairs) / len(pairs)


def _main_score(answers: Sequence[str], expected: Sequence[str], main: str, how: Scoring) -> float:
    if main == "exact":
        return float(np.mean([f == e for f, e in zip(answers, expected, strict=True)]))
    corpus = how.corpus(answers, expected)
    return 0.0 if corpus is None else corpus.bleu


def _buckets(
    lengths: NDArray[np.int64], right: NDArray[np.float64], corpus: Corpus | None
) -> list[Bucket]:
    """The share of exact answers, or BLEU, by length of the source in tokens."""
    buckets = []
    where = np.searchsorted(EDGES, lengths)
    for k, first in enumerate((0, *EDGES)):
        rows = np.flatnonzero(where == k)
        name = f"{first + 1}–{EDGES[k]}" if k < len(EDGES) else f"over {first}"
        if len(rows) and corpus is None:
            buckets.append(Bucket(name, len(rows), float(right[rows].mean())))
        elif len(rows) and corpus is not None:
            score = bleu_of(corpus.sums[rows].sum(0, keepdims=True))[0]
            buckets.append(Bucket(name, len(rows), float(score)))
    return buckets


def _worst(rows: Compared, right: NDArray[np.float64], badness: NDArray[Any]) -> list[Error]:
    """The wrong answers, worst first."""
    order = [int(row) for row in np.argsort(-badness, kind="stable") if not right[row]]
    return [
        Error(
            rows.names[row],
            _cut(rows.sources[row]),
            _cut(rows.expected[row]),
            _cut(rows.answers[row]),
            rows.probabilities[row],
        )
        for row in order[:WORST]
    ]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
