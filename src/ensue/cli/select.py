"""Selection: which model is the best for these files."""

import json
from dataclasses import dataclass
from typing import Annotated

import typer

from ensue.cli.app import AsJson, Dark, Picture, app, check_files, say, teller, write_picture
from ensue.cli.request import Given, Request, configured, requested
from ensue.cli.task_options import TaskCommand
from ensue.errors import OptionError

Models = Annotated[
    str,
    typer.Option(
        "--models",
        help="Model families and cells: ngram,window,gru,lstm:hidden_size=400,layers=1. "
        "Default: every family, with the cells rnn, gru and lstm.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class SelectOptions(Request):
    models: Models = ""
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print one line per model, no progress.")
    ] = False
    picture: Picture = None
    dark: Dark = False
    as_json: AsJson = False


@app.command(cls=TaskCommand)
@requested
def select(wanted: SelectOptions, given: Given) -> None:
    """Train several models, test the best one.

    All learn from the same files, with early stopping, and are ranked on the validation part; only
    the winner is evaluated on the test part. Each is a run folder below --run, beside
    selection.json and selection.svg. The same command resumes an interrupted selection.
    """
    check_files(None, wanted.picture)
    say(
        f"selecting a model{' among ' + wanted.models if wanted.models else ''}"
    )  # torch takes seconds to load
    if not wanted.files:
        raise OptionError(
            "select: name the files to learn from: "
            "ensue select corpus.txt --task language --models ngram,lstm --run selection"
        )
    from ensue.runs.config import RunConfig
    from ensue.study.selection.selection import FILE, PICTURE
    from ensue.study.selection.selection import select as select_model
    from ensue.training import Display, Watcher

    def watchers(config: RunConfig) -> list[Watcher]:
        return [Display(config.train.watch, quiet=wanted.quiet)]

    found = select_model(
        configured(wanted, given, teller(wanted.quiet)),
        wanted.models,
        wanted.run,
        teller(),
        watchers,
    )
    print(json.dumps(found.as_json(), ensure_ascii=False) if wanted.as_json else found)
    say(f"wrote {wanted.run / FILE}, {wanted.run / PICTURE}")
    if wanted.picture is not None and found.winner:
        write_picture(wanted.picture, found.picture(), wanted.dark)
    if found.winner:
        say(f"next: ensue predict {wanted.run / found.winner.folder} FILE")
