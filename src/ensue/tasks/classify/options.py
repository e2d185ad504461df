"""The words of classification on the command line."""

from ensue.tasks.explaining.options import ATTRIBUTION_OPTIONS, LABEL
from ensue.tasks.options import Option

OPTIONS: tuple[Option, ...] = (*ATTRIBUTION_OPTIONS, LABEL)
