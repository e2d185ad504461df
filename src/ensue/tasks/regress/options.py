"""The words of regression on the command line."""

from ensue.tasks.explaining.options import ATTRIBUTION_OPTIONS
from ensue.tasks.options import COLUMNS, Option

OPTIONS: tuple[Option, ...] = (COLUMNS, *ATTRIBUTION_OPTIONS)
