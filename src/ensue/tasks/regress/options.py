"""The words of regression on the command line."""

from ensue.tasks.options import COLUMNS, Option

OPTIONS: tuple[Option, ...] = (COLUMNS,)
