"""Command-line options of tasks that generate texts; loads nothing of torch."""

from __future__ import annotations

from collections.abc import Mapping

from ensue.tasks.explaining.options import EXPLAINED, EXPLAINED_PICTURE
from ensue.tasks.options import EVALUATE, PREDICT, Option

SEARCH_OPTIONS = (
    Option(
        "--beam",
        "beam",
        "Beam width; 1 is greedy search.",
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
        "Keep the attention of each answer: for each word, the weights of the source.",
        "switch",
        verbs=(EVALUATE, PREDICT),
    ),
)
OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "caption": (*SEARCH_OPTIONS, EXPLAINED_PICTURE),
    "translate": (*SEARCH_OPTIONS, EXPLAINED),
}
