"""The words of matching on the command line."""

from ensue.tasks.explaining.options import ATTRIBUTION_OPTIONS, LABEL
from ensue.tasks.options import DECISIONS, EXPLAIN, Option

OPTIONS: tuple[Option, ...] = (
    Option("--second", "data.second", "Column of the second text."),
    *DECISIONS,
    *ATTRIBUTION_OPTIONS,
    LABEL,
    Option("--second", "second", "Text that --text is matched with.", verbs=(EXPLAIN,)),
)
