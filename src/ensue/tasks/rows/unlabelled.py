"""Unlabelled inputs for training, from files or memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ensue.data.formats import endings
from ensue.data.rows import ProblemCallback
from ensue.data.settings import DataSettings
from ensue.errors import DataError, OptionError
from ensue.files.attempt import add_note
from ensue.tasks.fitting import Fitting
from ensue.tasks.reader import QuestionFiles
from ensue.tasks.rows.reader import asked_rows

if TYPE_CHECKING:
    from ensue.tasks.abilities import Unlabelled
    from ensue.tasks.any_model import AnyModel
    from ensue.tasks.rows.collect import Example
    from ensue.tasks.rows.part import Part
    from ensue.tasks.rows.reader import RowReader

FILES, GIVEN = "--unlabelled", "unlabelled="
SHOWN = 40  # maximum characters of a value in a message


def unlabelled_in_files(
    model: AnyModel, data: DataSettings, train: Part, on_bad_row: ProblemCallback | None = None
) -> Part | None:
    """The unlabelled rows of the files that a run names; None if it names none. train: the part
    whose tokenisers and vocabularies they share."""
    if not data.unlabelled:
        return None
    reader = _able(model, FILES)
    alone = _text_alone(data)
    content = reader.question_content(alone)
    rows = asked_rows(content, QuestionFiles(data.unlabelled, alone, on_bad_row))
    try:
        return _part(reader, rows, train, FILES)
    except DataError as problem:
        add_note(
            problem,
            f"{FILES}: texts stand in the column of the same name as in training, or a line each "
            "in a .txt file",
        )
        raise


def unlabelled_given(model: AnyModel, inputs: Any, train: Any) -> Part | None:
    """The unlabelled rows passed to `fit`: inputs in memory, a data frame, or files, with the same
    column names as the training rows."""
    if inputs is None:
        return None
    from ensue.tasks.data_argument import NamedTable  # already loaded: models import it

    reader = _able(model, GIVEN)
    rows: Iterable[Example]
    if _file_names(inputs):
        rows = chain.from_iterable(_rows_of_table(reader, path) for path in inputs)
    elif NamedTable.of(inputs, model.task) is not None:
        rows = _rows_of_table(reader, inputs)
    else:
        rows = reader.unlabelled_examples(_inputs_alone(inputs))
    return _part(reader, rows, train, GIVEN)


def _rows_of_table(reader: RowReader[Any], table: Any) -> Iterator[Example]:
    """The rows of a data frame, or of a file."""
    from ensue.tasks.data_argument import NamedTable, question_roles

    table_rows = NamedTable.of(table, reader.model.task)
    assert table_rows is not None
    data = _text_alone(table_rows.settings(question_roles(reader.model, table_rows, {})))
    return asked_rows(
        reader.question_content(data),
        QuestionFiles([table_rows.name], data, None, table_rows.origin),
    )


def _text_alone(data: DataSettings) -> DataSettings:
    """Reading options without the columns next to the text, which unlabelled files need not
    have."""
    return data.model_copy(update={"columns": []})


def _file_names(inputs: Any) -> bool:
    """Whether all inputs are names of files; raises an error if one is missing."""
    if not isinstance(inputs, list | tuple) or not inputs:
        return False
    known = endings()

    def named(value: Any) -> bool:
        text = str(value) if isinstance(value, str | Path) else " "
        return isfile(text) or (" " not in text and Path(text).suffix in known)

    if not all(map(named, inputs)):
        return False
    if missing := [str(path) for path in inputs if not isfile(path)]:
        raise OptionError(
            f"{GIVEN}: expected texts, or files that are there, got {missing[0][:SHOWN]!r}: no "
            "such file"
        )
    return True


def _inputs_alone(inputs: Any) -> list[Any]:
    """Inputs in a list; raises an error if they come with labels."""
    if isinstance(inputs, str | Path):
        raise OptionError(
            f"{GIVEN}: expected a list of texts, a data frame, or an existing file, got "
            f"{str(inputs)[:SHOWN]!r}; pass a single text as [text]"
        )
    if not isinstance(inputs, Iterable) or isinstance(inputs, Mapping):
        raise OptionError(
            f"{GIVEN}: expected a list of texts, or a data frame, got {repr(inputs)[:SHOWN]}"
        )
    alone = list(inputs)
    if any(isinstance(row, tuple) for row in alone):
        raise OptionError(
            f"{GIVEN}: expected texts, or lists of tokens, got pairs such as "
            f"{repr(next(row for row in alone if isinstance(row, tuple)))[:SHOWN]}; leave out the "
            "labels: [text for text, label in rows]"
        )
    return alone


def learned_with_unlabelled(model: AnyModel, train: Any, validation: Any, how: Fitting) -> Any:
    """The learned part of a trained model, fitted again with the unlabelled rows, if any; reports
    their benefit."""
    if how.unlabelled is None:
        return model.learned
    ability = cast("Unlabelled", model.task.unlabelled)
    how.show(f"rows without labels to learn from: {len(how.unlabelled):,}")
    unlabelled, learned = ability.learned(how.unlabelled, train, validation, model)
    how.say(learned)
    return unlabelled


def _able(model: AnyModel, what: str) -> RowReader[Any]:
    """The reader of the rows; raises an error if the model cannot learn from them with these
    settings."""
    ability = model.task.unlabelled
    if ability is None:
        raise OptionError(f"{what}: a {model.task.name} model learns only from rows with labels")
    if why := ability.refused(model):
        raise OptionError(f"{what}: {why}")
    return cast("RowReader[Any]", model.reader)


def _part(reader: RowReader[Any], rows: Iterable[Example], train: Part, what: str) -> Part:
    part: Part = reader.collected(lambda: rows, train)
    if not len(part):
        raise DataError(f"{what}: expected rows without labels, got none; leave it out")
    return part
