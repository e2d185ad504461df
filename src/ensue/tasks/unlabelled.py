"""Inputs without labels that a training learns from, too: read from files or given in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from ensue.data.rows import Tell
from ensue.data.settings import DataSettings
from ensue.errors import DataError, OptionError
from ensue.tasks.fitting import Fitting
from ensue.tasks.given import TableGiven
from ensue.tasks.rows.reading import asked_rows

if TYPE_CHECKING:
    from ensue.tasks.abilities import Unlabelled
    from ensue.tasks.model import Model
    from ensue.tasks.rows.collect import Example
    from ensue.tasks.rows.part import Part
    from ensue.tasks.rows.task import RowTask

FILES = "--unlabelled"


def unlabelled_in_files(
    model: Model[Any, Any, Any], data: DataSettings, train: Part, on_bad_row: Tell | None = None
) -> Part | None:
    """The rows of the files that a run names; None where it names none. train: whose tokenisers
    and numbers they share."""
    if not data.unlabelled:
        return None
    task = _able(model, FILES)
    content = task.asked_content(data, model)
    return _part(task, model, asked_rows(content, data, data.unlabelled, on_bad_row), train, FILES)


def unlabelled_given(model: Model[Any, Any, Any], inputs: Any, train: Any) -> Part | None:
    """The same of what `fit` was given: inputs in memory, a data frame, or a file by its name,
    whose columns are called as those of the training rows."""
    if inputs is None:
        return None
    told = "unlabelled="
    task = _able(model, told)
    given = TableGiven.of(inputs, task)
    if given is None:
        if isinstance(inputs, str):
            raise OptionError(f"{told}: expected a list of texts, got one text; write [text]")
        return _part(task, model, task.questions(inputs), train, told)
    data = given.settings(model.roles)
    rows = asked_rows(task.asked_content(data, model), data, [given.name], None, given.origin)
    return _part(task, model, rows, train, told)


def learned_with_unlabelled(
    model: Model[Any, Any, Any], train: Any, validation: Any, how: Fitting
) -> Any:
    """What a trained model has learned, with the rows without labels as well, if there are any;
    says what they were worth."""
    if how.unlabelled is None:
        return model.learned
    ability = cast("Unlabelled", model.task.unlabelled)
    how.show(f"labelling {len(how.unlabelled):,} rows, and learning from them")
    found, told = ability.learned(how.unlabelled, train, validation, model)
    how.say(told)
    return found


def _able(model: Model[Any, Any, Any], told: str) -> RowTask[Any, Any]:
    """The task, if it can learn from such rows with these settings."""
    ability = model.task.unlabelled
    if ability is None:
        raise OptionError(f"{told}: a {model.task.name} model learns from rows with labels alone")
    if why := ability.refused(model):
        raise OptionError(f"{told}: {why}")
    return cast("RowTask[Any, Any]", model.task)


def _part(
    task: RowTask[Any, Any],
    model: Model[Any, Any, Any],
    rows: Iterable[Example],
    train: Part,
    told: str,
) -> Part:
    once: Iterator[Example] = iter(rows)
    found = task.collected(lambda: once, model, train)
    if not len(found):
        raise DataError(f"{told}: expected rows without labels, got none; leave it out")
    return found
