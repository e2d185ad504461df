"""The command-line options of labelling."""

from ensue.tasks.explaining.options import ATTRIBUTION_OPTIONS, LABEL
from ensue.tasks.options import EXPLAIN, Option

STEP = Option(
    "--step",
    "step",
    "Step whose label is explained, from 1 on; without it, all.",
    "number",
    verbs=(EXPLAIN,),
)
OPTIONS: tuple[Option, ...] = (*ATTRIBUTION_OPTIONS, LABEL, STEP)
