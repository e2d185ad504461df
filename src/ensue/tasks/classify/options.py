"""The words of classification on the command line."""

from ensue.tasks.explaining.options import ATTRIBUTION_OPTIONS, LABEL
from ensue.tasks.options import COLUMNS, DECISIONS, Option

OPTIONS: tuple[Option, ...] = (COLUMNS, *DECISIONS, *ATTRIBUTION_OPTIONS, LABEL)
