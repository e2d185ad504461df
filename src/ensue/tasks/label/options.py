"""The command-line options of labelling."""

from ensue.tasks.explaining.options import ATTRIBUTION_OPTIONS, LABEL
from ensue.tasks.options import EXPLAIN, Option

STEP = Option(
    "--step",
    "step",
    "Step to explain, counted from 1; without it, all.",
    "number",
    verbs=(EXPLAIN,),
)
OPTIONS: tuple[Option, ...] = (*ATTRIBUTION_OPTIONS, LABEL, STEP)
