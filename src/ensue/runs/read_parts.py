"""The parts of a run's files that training needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.data.rows import Tally
from ensue.data.settings import DataSettings
from ensue.errors import DataError
from ensue.runs.config import RunConfig
from ensue.runs.messages import Say, rejected_message
from ensue.tasks.model import Model
from ensue.tasks.rows.unlabelled import unlabelled_in_files


def drawn(train: Any, data: DataSettings) -> Any:
    """As many rows of the training part as are wanted, in their order."""
    if data.train_rows is None or data.train_rows >= len(train):
        return train
    order = np.random.default_rng(data.split_seed).permutation(len(train))
    return train.take(np.sort(order[: data.train_rows]))


def read_unlabelled(
    config: RunConfig, model: Model[Any, Any, Any], train: Any, say: Say
) -> Any | None:
    """Rows without labels that are learned from as well; None where there are none."""
    bad = Tally()
    found = unlabelled_in_files(model, config.data, train, bad.add)
    for message in rejected_message(bad.count):
        say(message)
    return found


def read_parts(config: RunConfig, model: Model[Any, Any, Any], say: Say) -> tuple[Any, Any]:
    """What is trained on, and what is validated on."""
    files = model.task.files(config.data, model)
    train = drawn(files.part("train"), config.data)
    for message in rejected_message(files.rejected):
        say(message)
    if len(train):
        model.task.check(train, "training")
    held = files.part("validation", like=train)
    for name, part in (("train", train), ("validation", held)):
        if not len(part):
            what = "groups" if config.data.group else "different rows"
            raise DataError(
                f"{', '.join(config.data.train)}: no row falls into the {name} part: too few "
                f"{what} to be split by their hash (equal ones stay in one part). Give more rows, "
                "another --set data.split_seed=1, or a file with --validation"
            )
    return train, held
