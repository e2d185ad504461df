"""A task's own command-line options; importing this loads no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TRAIN, EVALUATE, PREDICT, EXPLAIN = "train", "evaluate", "predict", "explain"


@dataclass(frozen=True)
class Option:
    """An option of a task. flag: "--horizon"; key: the setting that it stands for, "model.horizon"
    or "data.second", or the name by which a question carries it, "beam"; verbs: the commands that
    have it. A question carries a setting by its last word, "horizon"; the question then overrides
    the setting of the training. subject: whether the option is the input itself."""

    flag: str
    key: str
    help: str
    kind: Literal["text", "number", "fraction", "switch", "names", "files"] = "text"
    verbs: tuple[str, ...] = (TRAIN,)
    subject: bool = False

    @property
    def name(self) -> str:
        """The option as a Python argument: "--top-k" is top_k."""
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def word(self) -> str:
        """The name by which a question carries the option."""
        return self.key.rpartition(".")[2]


DECISIONS = (
    Option(
        "--threshold",
        "threshold",
        "Minimum probability for predicting a label: 0.7 for the minority class of two, or "
        "for each of several labels; spam=0.7 for one label.",
        verbs=(PREDICT, EVALUATE),
    ),
    Option(
        "--abstain-below",
        "abstain_below",
        "Leave answers below this probability empty.",
        kind="fraction",
        verbs=(PREDICT, EVALUATE),
    ),
)
UNLABELLED = Option(
    "--unlabelled",
    "data.unlabelled",
    "File of unlabelled texts, to learn from as well; may be repeated.",
    kind="files",
)
COLUMNS = Option(
    "--columns",
    "data.columns",
    "Columns of numbers or categories to read next to the text.",
    kind="names",
)
