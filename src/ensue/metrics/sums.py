"""Scores that are functions of sums over rows, by name.

Such a score needs no row again: what each row adds can be kept, and summed over any draw of them.
A new one is one row here: a function of sums (…, …) with any number of draws in front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.metrics import classes
from ensue.metrics.bleu import bleu_of

Statistic = Callable[[NDArray[Any]], Any]


def root_ratio(sums: NDArray[Any]) -> Any:
    """√(sums[…, 0]/sums[…, 1]), such as the root of the mean squared error."""
    return np.sqrt(classes.ratio(sums))


def exp_ratio(sums: NDArray[Any]) -> Any:
    """exp(sums[…, 0]/sums[…, 1]): the perplexity of costs and tokens."""
    return np.exp(classes.ratio(sums))


STATISTICS: Mapping[str, Statistic] = {
    "ratio": classes.ratio,
    "root_ratio": root_ratio,
    "exp_ratio": exp_ratio,
    "macro_f1": classes.macro_f1,
    "span_f1": classes.span_f1,
    "bleu": bleu_of,
}
