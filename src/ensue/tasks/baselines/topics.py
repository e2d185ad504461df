"""What texts tell of their words without labels: the directions in which they differ the most.

X ≈ U·S·Vᵀ, the k largest singular values of the TF-IDF of all texts (latent semantic analysis), by
randomised subspace iteration (Halko, Martinsson & Tropp 2011). Words that stand in the same texts
have like rows of V: a linear model u of a text's topics X·V gives every word the weight V·u, also
to those that no text with a label has.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ensue.tasks.baselines.sparse import SparseMatrix
from ensue.tasks.baselines.text_features import WORDS, Block, Texts, joined

MOST, ROWS_EACH = 300, 20  # topics, and the rows that there are for each of them at least
MOST_NUMBERS = 100_000_000  # of V: fewer topics of more words
BESIDE, ROUNDS, SEED = 10, 3, 1  # of the iteration: more columns than asked for, how often, draws
LEAST_ROWS = 5  # of a word or pair of words that no text with a label has
LEAST_VALUE = 1e-6  # of a singular value, as a share of the largest


def common_words(labelled: Texts, others: Texts) -> tuple[Block, SparseMatrix]:
    """Words and pairs of words, and the rows of both: those of the texts with labels, and of the
    others those that are not rare."""
    every = joined(labelled, others)
    block, x = Block.learn(WORDS, every)
    in_rows = np.bincount(x.columns.values, minlength=x.width)
    in_rows[x.take(np.arange(len(labelled.rows))).columns.values] = LEAST_ROWS
    kept = block.take(np.flatnonzero(in_rows >= LEAST_ROWS))
    return kept, kept.matrix(every)


@torch.no_grad()
def topics(x: SparseMatrix) -> Tensor:
    """V (columns, k)."""
    count = max(min(MOST, len(x) // ROWS_EACH, MOST_NUMBERS // max(x.width, 1), x.width), 1)
    draw = torch.Generator().manual_seed(SEED)
    found = torch.randn(x.width, min(count + BESIDE, x.width), generator=draw)
    for _ in range(ROUNDS):
        found = x.transposed_times(torch.linalg.qr(x.times(found)).Q)
    values, turned = torch.linalg.eigh((found.T @ found).double())
    largest = values.flip(0)[:count].clamp(min=0).sqrt()
    kept = int((largest > LEAST_VALUE * largest[0].clamp(min=LEAST_VALUE)).sum())
    directions: Tensor = found.double() @ turned.flip(1)[:, :kept] / largest[:kept]
    return directions.float()
