"""Command-line options of supervised tasks; loads nothing of torch."""

from __future__ import annotations

from collections.abc import Mapping

from ensue.tasks.explaining.options import ATTRIBUTION_OPTIONS, EXPLAINED_PICTURE, LABEL
from ensue.tasks.options import COLUMNS, DECISIONS, EXPLAIN, UNLABELLED, Option

EXPLAINED_VALUES = Option(
    "--values",
    "values",
    'Row to explain, as JSON: {"area": 93}.',
    verbs=(EXPLAIN,),
    subject=True,
)
EXPLAINED_TREE = Option(
    "--tree",
    "tree",
    "Tree to explain, in brackets: (S (NP the cat) sat).",
    verbs=(EXPLAIN,),
    subject=True,
)
OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "classify": (COLUMNS, UNLABELLED, *DECISIONS, *ATTRIBUTION_OPTIONS, LABEL),
    "image": (*DECISIONS, EXPLAINED_PICTURE, LABEL),
    "match": (
        Option("--second", "data.second", "Column of the second text."),
        *DECISIONS,
        *ATTRIBUTION_OPTIONS,
        LABEL,
        Option(
            "--second", "second", "Second text, which --text is matched with.", verbs=(EXPLAIN,)
        ),
    ),
    "regress": (COLUMNS, *ATTRIBUTION_OPTIONS),
    "table": (*DECISIONS, EXPLAINED_VALUES, LABEL),
    "tree": (*DECISIONS, EXPLAINED_TREE),
}
