"""The words of classification on the command line."""

from ensue.tasks.options import COLUMNS, DECISIONS, Option

OPTIONS: tuple[Option, ...] = (COLUMNS, *DECISIONS)
