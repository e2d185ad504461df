"""Where an answer comes from: explain."""

import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ensue.cli.app import AsJson, app, check_files, write_picture
from ensue.errors import RunError


@app.command()
def explain(
    run: Annotated[Path, typer.Argument(help="The folder of a run of a translator.")],
    text: Annotated[str, typer.Option("--text", help="What is to be translated.")],
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Write the alignment as SVG too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Translate a text and draw where each word of the answer comes from.

    A row for each word said, with its probability; a column for each word of the text: the darker
    a cell, the more attention lay there.
    """
    from ensue.diagnose.alignment import alignment_picture, alignment_text
    from ensue.models.translator import Translator
    from ensue.runs.use import load_run
    from ensue.training import RunFolder

    check_files(None, picture)
    _, model = load_run(RunFolder(run))
    if not isinstance(model, Translator):
        raise RunError(f"{run}: expected a run of a translator, got a model to {model.kind}")
    found = model.explain(text)
    if as_json:
        print(json.dumps(asdict(found), ensure_ascii=False))
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        print(f"{found.text}\n")
        print(alignment_text(found, shutil.get_terminal_size().columns, colour))
    if picture is not None:
        write_picture(picture, alignment_picture(found))
