"""Defaults of a labeller for a training part: by its number of rows, and whether it has spans.

Chosen on samples of 1,000, 3,400 and 12,500 sentences, by parts that were not trained on
(docs/defaults.md).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ensue.data.ragged import Ragged
from ensue.metrics.spans import illegal_step, scheme_of
from ensue.tasks.label.settings import LabellerSettings
from ensue.tasks.rows.part import Part
from ensue.tasks.task import Recipe

SEARCH = {"search", "beam"}  # where these are told, the network answers alone, by that search
NOT_OF_CRF = {*SEARCH, "class_weights", "smoothing"}  # and where these are, it is no CRF


class BySize(NamedTuple):
    """Up to `rows` rows."""

    rows: float
    batch_rows: int
    epochs: int
    patience: int
    averaging: float
    embedding_size: int
    character_hidden: int


SIZES = (
    BySize(2_000, 8, 30, 10, 0.99, 50, 32),
    BySize(6_000, 16, 20, 7, 0.995, 100, 64),
    BySize(30_000, 32, 12, 4, 0.998, 100, 64),
    BySize(float("inf"), 32, 6, 3, 0.999, 100, 64),
)
RATE, DROPOUT, WORD_DROPOUT = 0.003, 0.5, 0.05


def label_recipe(train: Part, settings: LabellerSettings, told: frozenset[str]) -> Recipe:
    """told: the keys of [model] that a person gave."""
    model, training, why = dict[str, Any](), dict[str, Any](), list[str]()
    if train.texts and settings.encoder == "recurrent":
        size = next(own for own in SIZES if len(train) <= own.rows)
        model |= {
            "batch_rows": size.batch_rows,
            "embedding_size": size.embedding_size,
            "character_hidden": size.character_hidden,
            "dropout_input": DROPOUT,
            "dropout_output": DROPOUT,
            "once_dropout": DROPOUT,
            "word_dropout": WORD_DROPOUT,
        }
        training |= {
            "epochs": size.epochs,
            "patience": size.patience,
            "averaging": size.averaging,
            "rate": RATE,
            "schedule": "linear",
        }
        why.append(f"dropout {DROPOUT:g}, weight averaging, at most {size.epochs} epochs")
    tags = _tags(train)
    scheme = scheme_of({tag for row in tags for tag in row})
    if scheme is not None:
        training["watch"] = "span_f1"
        if not told & NOT_OF_CRF:
            legal = all(illegal_step(row, scheme) is None for row in tags)
            model |= {"output": "crf", "legal_only": legal}
            built = "" if "output" in told and settings.output != "crf" else "a CRF, "
            why.append(f"spans ({scheme}): {built}judged by span F1")
    if train.texts and not told & SEARCH:
        model["linear_share"] = "fitted"
        if "linear_share" not in told:
            mixed = settings.search == "exact"  # a beam has no chain to be mixed
            beside = "mixed with a linear chain" if mixed else "with, as a baseline, a linear chain"
            why.append(f"{beside} of word features")
    many = f"{len(train):,} row{'s' * (len(train) != 1)} to learn from"
    return Recipe({"model": model, "train": training}, f"{many}: {'; '.join(why)}" if why else "")


def _tags(train: Part) -> list[list[str]]:
    labels = train.labels
    assert isinstance(labels, Ragged)
    names = list(train.numbers.labels)
    return [[names[k] for k in labels.row(row)] for row in range(len(labels))]
