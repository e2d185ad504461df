"""What texts tell of their words without labels: the directions in which both halves of a text
agree.

a and b are the TF-IDF of the first and the second half of a text, less their means over all texts.
M = Σ (a·bᵀ + b·aᵀ)/2 has large eigenvalues for what a text keeps up from its beginning to its end:
its subject, its tone, its language; what words do by chance in one sentence is not in it (two views
of the same thing: Ando & Zhang 2007, Foster, Kakade & Zhang 2008). The largest are found by
subspace iteration (Halko, Martinsson & Tropp 2011).

Words that stand in the same texts have like rows of V: a linear model u of a text's topics X·V
gives every word the weight V·u, also to those that no text with a label has.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ensue.data.ragged import Ragged
from ensue.tasks.baselines.sparse import SparseMatrix
from ensue.tasks.baselines.text_features import WORDS, Block, Texts, joined

MOST, ROWS_EACH = 200, 20  # topics, and the rows that there are for each of them at least
MOST_NUMBERS = 100_000_000  # of V: fewer topics of more words
BESIDE, ROUNDS, SEED = 20, 5, 1  # of the iteration: more columns than asked for, how often, draws
LEAST_ROWS = 5  # of a word or pair of words that no text with a label has
LEAST_VALUE = 1e-6  # of an eigenvalue, as a share of the largest


def common_words(labelled: Texts, others: Texts) -> tuple[Block, SparseMatrix]:
    """Words and pairs of words, those of the texts with labels and of the others those that are not
    rare; and the rows of the texts with labels."""
    block, x = Block.learn(WORDS, joined(labelled, others))
    in_rows = np.bincount(x.columns.values, minlength=x.width)
    in_rows[x.take(np.arange(len(labelled.rows))).columns.values] = LEAST_ROWS
    kept = block.take(np.flatnonzero(in_rows >= LEAST_ROWS))
    return kept, kept.matrix(labelled)


def halves(texts: Texts) -> tuple[Texts, Texts]:
    """The first and the second half of each text; a word in the middle is in the second."""
    starts = texts.rows.starts
    edges = np.append(np.stack([starts[:-1], (starts[:-1] + starts[1:]) // 2], 1), starts[-1])
    pieces, first = Ragged(texts.rows.values, edges), np.arange(0, 2 * len(texts.rows), 2)
    return Texts(texts.words, pieces.take(first)), Texts(texts.words, pieces.take(first + 1))


def topics(words: Block, texts: Texts) -> Tensor:
    """V (columns of words, k), each column as long as the halves of texts agree in it.

    idf counts twice here: what stands in every text says little of any, and would be most of M."""
    twice = replace(words, idf=words.idf**2)
    values, directions = agreement(*(twice.matrix(half) for half in halves(texts)))
    return (
        torch.from_numpy(words.idf)[:, None]
        * directions
        * (values / values[0].clamp(min=LEAST_VALUE))
    )


@torch.no_grad()
def agreement(first: SparseMatrix, second: SparseMatrix) -> tuple[Tensor, Tensor]:
    """The largest eigenvalues (k,) of M, falling, and its eigenvectors (columns, k)."""
    rows, width = len(first), first.width
    count = max(min(MOST, rows // ROWS_EACH, MOST_NUMBERS // max(width, 1), width), 1)
    means = [own.transposed_times(torch.full((rows, 1), 1 / rows)) for own in (first, second)]

    def product(v: Tensor) -> Tensor:
        one = first.transposed_times(second.times(v)) - rows * means[0] @ (means[1].T @ v)
        other = second.transposed_times(first.times(v)) - rows * means[1] @ (means[0].T @ v)
        return (one + other) / 2

    draw = torch.Generator().manual_seed(SEED)
    found = torch.randn(width, min(count + BESIDE, width), generator=draw)
    for _ in range(ROUNDS):
        found = torch.linalg.qr(product(found)).Q
    within = (found.T @ product(found)).double()
    values, turned = torch.linalg.eigh((within + within.T) / 2)
    largest = values.flip(0)[:count].clamp(min=0)
    kept = max(int((largest > LEAST_VALUE * largest[0].clamp(min=LEAST_VALUE)).sum()), 1)
    directions: Tensor = found.double() @ turned.flip(1)[:, :kept]
    return largest[:kept].float(), directions.float()
