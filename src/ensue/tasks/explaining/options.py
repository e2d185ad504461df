"""The options of `explain` that several tasks share; importing this loads no torch."""

from __future__ import annotations

from ensue.tasks.options import EXPLAIN, Option

EXPLAINED = Option("--text", "text", "Text to explain.", verbs=(EXPLAIN,), subject=True)
EXPLAINED_PICTURE = Option(
    "--image", "image", "Picture to explain.", verbs=(EXPLAIN,), subject=True
)
METHOD = Option(
    "--method",
    "method",
    "Method: occlusion (the default), gradient (× input) or integrated (gradients).",
    verbs=(EXPLAIN,),
)
BASELINE = Option(
    "--baseline",
    "baseline",
    "Baseline for the input: left-out or unknown for occlusion, unknown or padding for "
    "integrated; of vectors also mean and zero.",
    verbs=(EXPLAIN,),
)
LABEL = Option(
    "--label", "label", "Label to explain; without it, the predicted one.", verbs=(EXPLAIN,)
)
ATTRIBUTION_OPTIONS = (EXPLAINED, METHOD, BASELINE)
