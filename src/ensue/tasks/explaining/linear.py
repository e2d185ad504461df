"""The linear model's part of an explanation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.baselines.contributions import Contributions
from ensue.tasks.explaining.attribution import LinearAttribution, Phrase
from ensue.tasks.explaining.measures import Wanted

PHRASES = 10  # features that are named


def linear_attributions(
    wanted: Sequence[Wanted], words: Sequence[str], parts: Contributions, bias: NDArray[np.floating]
) -> tuple[LinearAttribution, ...]:
    """One for each answer. words: of the text as the linear model cuts it; bias (answers,)."""
    found = []
    for k, own in enumerate(wanted):
        scores = parts.by_word[:, k].tolist()
        strongest = sorted(parts.features.items(), key=lambda item: -abs(item[1][k]))[:PHRASES]
        phrases = tuple(Phrase(text, float(values[k])) for text, values in strongest)
        constant = float(bias[k])
        output = constant + float(parts.by_word[:, k].sum())
        found.append(
            LinearAttribution(
                own.name, None, output, constant, tuple(words), tuple(scores), phrases
            )
        )
    return tuple(found)
