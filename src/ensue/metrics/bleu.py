"""BLEU and chrF by sacrebleu, which is an extra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.errors import MissingExtra

BLOCK = 256  # rows compared at once


def edit_distances(answers: Ragged, references: Ragged) -> NDArray[np.int64]:
    """Levenshtein's distance of each row of numbers to its counterpart: insertions, deletions and
    replacements cost 1 each.

    d(i, j) = min(d(i−1, j) + 1, d(i−1, j−1) + (f_i ≠ w_j), d(i, j−1) + 1); for a fixed i the last
    choice is a running minimum over j, so that only i is a loop."""
    distances = np.zeros(len(answers), np.int64)
    order = np.argsort(references.lengths, kind="stable")
    for first in range(0, len(order), BLOCK):
        rows = order[first : first + BLOCK]
        distances[rows] = _block(answers, references, rows)
    return distances


def _block(answers: Ragged, references: Ragged, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    ours, theirs = (
        answers.padded(rows, -1),
        references.padded(rows, -2).T,
    )  # (time, rows), (rows, time)
    ends, lengths = answers.lengths[rows], references.lengths[rows]
    columns = np.arange(theirs.shape[1] + 1)
    before = np.broadcast_to(columns, (len(rows), len(columns))).copy()
    distances = np.where(ends == 0, lengths, 0)
    for step, words in enumerate(ours, 1):
        now = before + 1
        now[:, 1:] = np.minimum(now[:, 1:], before[:, :-1] + (theirs != words[:, None]))
        before = np.minimum.accumulate(now - columns, axis=1) + columns
        over = ends == step
        distances[over] = before[over, lengths[over]]
    return distances


def letters_of(texts: Sequence[str]) -> Ragged:
    """Each text as the code points of its characters."""
    return Ragged.of([[ord(letter) for letter in text] for text in texts], np.int32)


ORDER = 4  # the longest n-grams of BLEU
INSTALL = "pip install 'ensue[mt]'"


def package() -> Any:
    try:
        import sacrebleu
    except ImportError:
        raise MissingExtra(
            "BLEU and chrF need the package sacrebleu, which is not installed: " + INSTALL
        ) from None
    return sacrebleu


class Corpus(NamedTuple):
    """Scores of all translations together, from 0 to 100, with sacrebleu's signatures. sums (rows,
    10): each row's contribution to BLEU, see `bleu_of`; sentences: BLEU of each single row."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str
    sums: NDArray[np.float64]
    sentences: NDArray[np.float64]


def corpus_of(
    answers: Sequence[str], references: Sequence[str], *, tokenize: str, lowercase: bool
) -> Corpus:
    """The scores of translations with one reference each."""
    metrics = package().metrics
    # force: no warning about tokenised texts, which `tokenize` declares
    options = {"tokenize": tokenize, "lowercase": lowercase, "force": True}
    bleu, alone = metrics.BLEU(**options), metrics.BLEU(**options, effective_order=True)
    chrf = metrics.CHRF(lowercase=lowercase)
    rows = [
        alone.sentence_score(*pair) for pair in zip(answers, [[w] for w in references], strict=True)
    ]
    sums = [[row.sys_len, row.ref_len, *row.counts, *row.totals] for row in rows]
    whole = bleu.corpus_score(answers, [references]).score
    letters = chrf.corpus_score(answers, [references]).score
    return Corpus(
        float(whole),
        float(letters),
        str(bleu.get_signature()),
        str(chrf.get_signature()),
        np.array(sums, np.float64).reshape(-1, 2 + 2 * ORDER),
        np.array([row.score for row in rows], np.float64),
    )


def bleu_of(sums: NDArray[Any]) -> NDArray[np.float64]:
    """BLEU (draws,) of sums (draws, 10): words in the answers and in the references, n-grams in
    common for n from 1 to 4, n-grams in the answers.

    BLEU = 100·min(1, exp(1 − reference/answer))·(Π p_n)^(1/4); the k-th p_n without common n-grams
    is 1/(2ᵏ·n-grams in the answers), as in sacrebleu."""
    answer_words, reference_words = sums[:, 0], sums[:, 1]
    common, total = sums[:, 2 : 2 + ORDER], sums[:, 2 + ORDER :]
    nothing = common == 0
    smooth = np.where(nothing, 2.0 ** -np.cumsum(nothing, 1), common)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.log(smooth / total).mean(1)
        brevity = np.minimum(0.0, 1 - reference_words / answer_words)
        scores = 100 * np.exp(brevity + mean)
    possible = common.any(1) & (total > 0).all(1)
    return np.where(possible, scores, 0.0)
