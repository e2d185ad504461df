"""How answers in words are searched for: words on the command line of every such task."""

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
        "Keep the attention of each answer: where each of its words looked.",
        "switch",
        verbs=(EVALUATE, PREDICT),
    ),
)
