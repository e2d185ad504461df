"""What is to be said of translations beside those that were expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.errors import MissingExtra
from ensue.models.bleu import INSTALL, Corpus, bleu_of, corpus_of
from ensue.models.bootstrap import Interval, bootstrap
from ensue.models.collect import Names
from ensue.models.edits import edit_distances, letters_of
from ensue.models.evaluation import PREVIEW, Error
from ensue.models.pair_evaluation import Bucket, PairEvaluation

EDGES = (5, 10, 15, 20, 30, 50)  # tokens of the source: the last lengths of the buckets
WORST = 5
LONGEST_SHOWN = 2 * PREVIEW  # characters of a text


@dataclass(frozen=True)
class Judged:
    """Texts and token numbers, row by row; probabilities: how sure the model was. lengths: of the
    sources, in tokens."""

    names: Names
    sources: Sequence[str]
    wanted: Sequence[str]
    found: Sequence[str]
    wanted_tokens: Ragged
    found_tokens: Ragged
    lengths: NDArray[np.int64]
    probabilities: Sequence[float]


@dataclass(frozen=True)
class Counting:
    """How BLEU is counted; exact_first: the share of exact answers is what counts."""

    tokenize: str
    lowercase: bool
    exact_first: bool
    seed: int

    def corpus(self, found: Sequence[str], wanted: Sequence[str]) -> Corpus | None:
        """None where sacrebleu is not installed."""
        try:
            return corpus_of(found, wanted, tokenize=self.tokenize, lowercase=self.lowercase)
        except MissingExtra:
            return None


def judge_pairs(rows: Judged, frequent: str, how: Counting) -> PairEvaluation:
    """frequent: the target that is most frequent in training."""
    right = np.array([f == w for f, w in zip(rows.found, rows.wanted, strict=True)], np.float64)
    edits = _edits(rows)
    corpus = how.corpus(rows.found, rows.wanted)
    scores = {"exact": bootstrap(right[:, None], _first_mean(len(right)), seed=how.seed)}
    rates = {"token errors": edits[0].sum() / max(edits[1].sum(), 1)}
    rates["letter errors"] = edits[2].sum() / max(edits[3].sum(), 1)
    notes = [f"BLEU and chrF are not counted: {INSTALL}"]
    if corpus is not None:
        interval = bootstrap(corpus.sums, bleu_of, seed=how.seed)
        scores["BLEU"] = Interval(corpus.bleu, interval.low, interval.high)
        rates = {"chrF": corpus.chrf, **rates}
        notes = [f"BLEU {corpus.bleu_signature}", f"chrF {corpus.chrf_signature}"]
    main = "exact" if how.exact_first or corpus is None else "BLEU"
    scores = {main: scores[main], **scores}
    trivial = {"copied source": rows.sources, "frequent target": [frequent] * len(right)}
    return PairEvaluation(
        rows=len(right),
        steps=int(rows.wanted_tokens.lengths.sum()),
        scores=scores,
        others={name: float(value) for name, value in rates.items()},
        baselines={name: _trivial(own, rows.wanted, main, how) for name, own in trivial.items()},
        classes=[],
        confusion=[],
        worst=_worst(rows, right, edits[0] if corpus is None else -corpus.sentences),
        notes=notes,
        buckets=_buckets(rows.lengths, right, corpus if main == "BLEU" else None),
    )


def _edits(rows: Judged) -> list[NDArray[np.int64]]:
    """Of each row: tokens to change, tokens wanted, letters to change, letters wanted."""
    found, wanted = letters_of(rows.found), letters_of(rows.wanted)
    return [
        edit_distances(rows.found_tokens, rows.wanted_tokens),
        rows.wanted_tokens.lengths,
        edit_distances(found, wanted),
        wanted.lengths,
    ]


def _first_mean(rows: int) -> Any:
    """Of sums (draws, 1), the mean of as many rows."""
    return lambda sums: sums[:, 0] / rows


def _trivial(found: Sequence[str], wanted: Sequence[str], main: str, how: Counting) -> float:
    if main == "exact":
        return float(np.mean([f == w for f, w in zip(found, wanted, strict=True)]))
    corpus = how.corpus(found, wanted)
    return 0.0 if corpus is None else corpus.bleu


def _buckets(
    lengths: NDArray[np.int64], right: NDArray[np.float64], corpus: Corpus | None
) -> list[Bucket]:
    """By the tokens of the source: the share of exact answers, or BLEU."""
    found = []
    where = np.searchsorted(EDGES, lengths)
    for k, first in enumerate((0, *EDGES)):
        own = np.flatnonzero(where == k)
        name = f"{first + 1}–{EDGES[k]}" if k < len(EDGES) else f"over {first}"
        if len(own) and corpus is None:
            found.append(Bucket(name, len(own), float(right[own].mean())))
        elif len(own) and corpus is not None:
            score = bleu_of(corpus.sums[own].sum(0, keepdims=True))[0]
            found.append(Bucket(name, len(own), float(score)))
    return found


def _worst(rows: Judged, right: NDArray[np.float64], badness: NDArray[Any]) -> list[Error]:
    """Wrong answers, the worst first."""
    order = [int(row) for row in np.argsort(-badness, kind="stable") if not right[row]]
    return [
        Error(
            rows.names[row],
            _cut(rows.sources[row]),
            _cut(rows.wanted[row]),
            _cut(rows.found[row]),
            rows.probabilities[row],
        )
        for row in order[:WORST]
    ]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
