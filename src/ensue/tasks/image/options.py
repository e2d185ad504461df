"""The words of pictures on the command line."""

from ensue.tasks.options import DECISIONS, Option

OPTIONS: tuple[Option, ...] = DECISIONS
