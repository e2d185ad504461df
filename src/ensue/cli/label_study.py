"""`ensue study …`: what a run would be with other data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ensue.cli.app import (
    AsJson,
    Dark,
    Picture,
    Quiet,
    answer,
    as_json_text,
    check_files,
    group,
    say,
    teller,
    write_picture,
)
from ensue.cli.grouped import grouped, names_of
from ensue.errors import OptionError, RunError

studies = group("study", "Studies of a run: what its labels and its base are worth.")


@dataclass(frozen=True, kw_only=True)
class LabelOptions:
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run that began from a base.")]
    labels: Annotated[
        str,
        typer.Option(
            "--labels", metavar="N,M", help="Numbers of labelled rows. [100,300,1000,… all]"
        ),
    ] = ""
    folder: Annotated[
        Path | None,
        typer.Option("--run", metavar="FOLDER", help="Folder of the runs. [RUN-labels]"),
    ] = None
    workers: Annotated[
        int,
        typer.Option("--workers", metavar="N", min=1, help="Runs trained at the same time."),
    ] = 1
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change any setting of all runs; may be repeated."
        ),
    ] = None
    quiet: Quiet = False
    picture: Picture = None
    dark: Dark = False
    as_json: AsJson = False


@studies.command("labels")
@grouped
def labels_command(options: LabelOptions) -> None:
    """Draw quality over the number of labels, with the base and without.

    Trains runs on 100, 300, 1,000, … and all rows of the training part of RUN, drawn so that fewer
    are among more: each once from the base, with the settings of RUN, and once without it, with
    the defaults of the task and what else was set for RUN. Scores are those of the validation part;
    the test part is not opened. The same command resumes an interrupted study.
    """
    check_files(None, options.picture)
    say(f"label study of {options.run}")  # torch takes seconds to load
    from ensue.study.labels.curve import label_curve
    from ensue.study.labels.picture import draw
    from ensue.study.labels.table import as_text

    place = options.folder or options.run.resolve().with_name(
        f"{options.run.resolve().name}-labels"
    )
    found = label_curve(
        options.run,
        place,
        _counts(options.labels),
        options.workers,
        options.settings or [],
        teller(options.quiet),
    )
    answer(as_json_text(found.as_json()) if options.as_json else as_text(found))
    if options.picture is not None and (found.of(True) or found.of(False)):
        write_picture(options.picture, draw(found), options.dark)
    if not found.of(True) and not found.of(False):
        raise RunError("no run of the study came to its end; the table says why")


def _counts(listed: str) -> list[int]:
    names = names_of(listed)
    if wrong := [name for name in names if not name.isdecimal()]:
        raise OptionError(f"--labels: expected numbers such as 100,1000, got {wrong[0]!r}")
    return [int(name) for name in names]
