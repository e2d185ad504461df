"""Selection: which model is the best for these files."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ensue.cli.app import (
    AsJson,
    Dark,
    Picture,
    Quiet,
    answer,
    app,
    as_json_text,
    check_files,
    say,
    teller,
    write_picture,
)
from ensue.cli.request import Request, Said, check, configured, requested
from ensue.errors import OptionError
from ensue.escape import in_shell

Models = Annotated[
    str,
    typer.Option(
        "--models",
        metavar="A,B",
        help="Model families and cells of the task, each with settings of its own: "
        "gru,lstm:hidden_size=400,layers=1. A name that there is not lists those of the task. "
        "Default: every family, with the cells rnn, gru and lstm.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class SelectOptions(Request):
    models: Models = ""
    quiet: Quiet = False
    picture: Picture = None
    dark: Dark = False
    as_json: AsJson = False


@app.command()
@requested
def select(wanted: SelectOptions, said: Said) -> None:
    """Train several models on the same files, and test the best one.

    All learn from the same files, with early stopping, and are ranked on the validation part; only
    the winner is evaluated on the test part. Each is a run folder below --run, beside
    selection.json and selection.svg. The same command resumes an interrupted selection.
    """
    check_files(None, wanted.picture)
    if not wanted.files:
        raise OptionError(
            "select: name the files to learn from: "
            f"`ensue select FILE --run {in_shell(wanted.run)}`"
        )
    check(wanted, said)
    tell = say if not wanted.quiet else lambda line: None
    tell(
        f"selecting a model{' among ' + wanted.models if wanted.models else ''}"
    )  # torch takes seconds to load
    from ensue.runs.config import RunConfig
    from ensue.study.selection.selection import FILE, PICTURE
    from ensue.study.selection.selection import select as select_model
    from ensue.training import Display, Watcher

    def watchers(config: RunConfig) -> list[Watcher]:
        return [Display(config.train.watch, quiet=wanted.quiet)]

    found = select_model(
        configured(wanted, said, teller(wanted.quiet)),
        wanted.models,
        wanted.run,
        teller(wanted.quiet),
        watchers,
    )
    answer(as_json_text(found.as_json()) if wanted.as_json else str(found))
    tell(f"wrote {wanted.run / FILE}, {wanted.run / PICTURE}")
    if wanted.picture is not None and found.winner:
        write_picture(wanted.picture, found.picture(), wanted.dark)
    if found.winner:
        tell(f"next: ensue predict {in_shell(wanted.run / found.winner.folder)} FILE")
