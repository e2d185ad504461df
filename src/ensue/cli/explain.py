"""Attention of an answer: explain."""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ensue.cli.app import (
    AsJson,
    Dark,
    Device,
    Picture,
    answer,
    app,
    as_json_text,
    check_files,
    teller,
    write_picture,
)
from ensue.cli.learning import Run, TrustCell, trusted
from ensue.cli.task_options import options_by_task, with_task_options
from ensue.errors import OptionError, RunError
from ensue.tasks.options import EXPLAIN, Option


@app.command()
@with_task_options(EXPLAIN)
def explain(
    run: Run,
    picture: Picture = None,
    dark: Dark = False,
    device: Device = "auto",
    trust_cell: TrustCell = False,
    as_json: AsJson = False,
    *,
    given: Mapping[Option, Any],
) -> None:
    """Show which part of the input each word of an answer looks at.

    For a text: a row for each word of the answer with its probability, a column for each word of
    the text; darker means more attention. For a picture: a map of the regions for each word.
    """
    from ensue.runs.load import load_run
    from ensue.training import RunFolder

    check_files(None, picture)
    if len(given) != 1:
        raise OptionError(f"explain: expected one of {_known()}, got {_flags(given)}")
    ((option, value),) = given.items()
    _, model = load_run(RunFolder(run), trusted(trust_cell), device, teller())
    explains = model.task.explains
    if explains is None or explains.option != option:
        wanted = " or ".join(options_by_task(EXPLAIN)[option])
        raise RunError(
            f"{run}: {option.flag}: expected a run to {wanted}, got one to {model.task.name}"
        )
    found = explains.explain(model, value)
    if as_json:
        answer(as_json_text(asdict(found.found)))
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        answer(found.as_text(shutil.get_terminal_size().columns, colour), styled=colour)
    if picture is not None:
        write_picture(picture, found.as_svg(), dark)


def _known() -> str:
    """--text (translate), --image (caption)"""
    owners = options_by_task(EXPLAIN).items()
    return ", ".join(f"{option.flag} ({', '.join(tasks)})" for option, tasks in owners)


def _flags(given: Mapping[Option, Any]) -> str:
    return ", ".join(option.flag for option in given) or "none"
