"""Command-line options of tasks that generate texts; loads nothing of torch."""

from __future__ import annotations

from collections.abc import Mapping

from ensue.tasks.explaining.options import EXPLAINED, EXPLAINED_PICTURE
from ensue.tasks.options import EVALUATE, PREDICT, Option

SEARCH_OPTIONS = (
    Option(
        "--beam",
        "beam",
        "Width of the beam; 1 is greedy search.",
        "number",
        verbs=(EVALUATE, PREDICT),
    ),
    Option(
        "--nbest",
        "n_best",
        "Number of answers per input, best first.",
        "number",
        verbs=(EVALUATE, PREDICT),
    ),
    Option(
        "--alignment",
        "alignment",
        "Keep the attention of each answer: the weights of the source for each word.",
        "switch",
        verbs=(EVALUATE, PREDICT),
    ),
)
OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "caption": (*SEARCH_OPTIONS, EXPLAINED_PICTURE),
    "translate": (*SEARCH_OPTIONS, EXPLAINED),
}
