"""The words of classification on the command line."""

from ensue.tasks.explaining.options import ATTRIBUTION_OPTIONS, LABEL
from ensue.tasks.options import COLUMNS, DECISIONS, UNLABELLED, Option

OPTIONS: tuple[Option, ...] = (COLUMNS, UNLABELLED, *DECISIONS, *ATTRIBUTION_OPTIONS, LABEL)
