"""Selection: which model is the best for these files."""

import json
from typing import Annotated

import typer

from ensue.cli.app import AsJson, app, say, warn
from ensue.cli.request import Request, configured, requested
from ensue.errors import OptionError

Models = Annotated[
    str,
    typer.Option(
        "--models",
        help="Families and cells: ngram,window,gru,lstm:hidden_size=400,layers=1; "
        "if not given, each family and the cells rnn, gru, lstm.",
    ),
]


@app.command()
@requested
def select(
    wanted: Request,
    models: Models = "",
    quiet: Annotated[
        bool, typer.Option("--quiet", help="A line for each model, no progress.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train several models on the same files, rank them on validation, test the winner.

    Each is trained with early stopping in a run of its own below --run, which holds
    selection.json and the picture selection.svg too. The test part stays sealed for all but the
    winner. The same command goes on where it was interrupted; what is finished is not repeated.
    """
    say(f"selecting a model{' among ' + models if models else ''}")  # torch takes seconds to load
    if not wanted.files:
        raise OptionError(
            "select: name the files to learn from: "
            "ensue select corpus.txt --task language --models ngram,lstm --run selection"
        )
    from ensue.runs.config import RunConfig
    from ensue.study.selection import FILE, PICTURE
    from ensue.study.selection import select as select_model
    from ensue.training import Display, Watcher

    def watchers(config: RunConfig) -> list[Watcher]:
        return [Display(config.train.watch, quiet=quiet)]

    found = select_model(
        configured(wanted, warn if quiet else say), models, wanted.run, say, watchers
    )
    print(json.dumps(found.as_json(), ensure_ascii=False) if as_json else found)
    say(f"wrote {wanted.run / FILE}, {wanted.run / PICTURE}")
    if found.winner:
        say(f"next: ensue predict {wanted.run / found.winner.folder} FILE")
