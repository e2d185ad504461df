"""The words of matching on the command line."""

from ensue.tasks.options import DECISIONS, Option

SECOND = Option("--second", "data.second", "Column of the second text.")
OPTIONS: tuple[Option, ...] = (SECOND, *DECISIONS)
