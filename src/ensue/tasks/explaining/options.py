"""The options of `explain` that several tasks share; importing this loads no torch."""

from __future__ import annotations

from ensue.tasks.options import EXPLAIN, Option

EXPLAINED = Option(
    "--text", "text", "Text whose answer is explained.", verbs=(EXPLAIN,), subject=True
)
EXPLAINED_PICTURE = Option(
    "--image", "image", "Picture whose answer is explained.", verbs=(EXPLAIN,), subject=True
)
METHOD = Option(
    "--method",
    "method",
    "How: occlusion (the default), gradient (× input) or integrated (gradients).",
    verbs=(EXPLAIN,),
)
BASELINE = Option(
    "--baseline",
    "baseline",
    "What an input is compared with: left-out or unknown for occlusion, unknown or padding for "
    "integrated; of vectors also mean and zero.",
    verbs=(EXPLAIN,),
)
LABEL = Option(
    "--label", "label", "Label that is explained; without it, the answer.", verbs=(EXPLAIN,)
)
ATTRIBUTION_OPTIONS = (EXPLAINED, METHOD, BASELINE)
