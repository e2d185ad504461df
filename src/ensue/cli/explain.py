"""Where an answer comes from: explain."""

import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue.cli.app import AsJson, app, check_files, write_picture
from ensue.errors import OptionError, RunError

if TYPE_CHECKING:
    from ensue.models.task_model import TaskModel


@app.command()
def explain(
    run: Annotated[Path, typer.Argument(help="The folder of a run: a translator, a captioner.")],
    text: Annotated[str | None, typer.Option("--text", help="What is to be translated.")] = None,
    image: Annotated[
        Path | None, typer.Option("--image", help="The picture that is to be described.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Write the drawing as SVG too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Translate a text, or describe a picture, and draw where each word of the answer comes from.

    Of a text: a row for each word said, with its probability; a column for each word of the text:
    the darker a cell, the more attention lay there. Of a picture: a square for each word said; the
    darker a region, the more the word looked there.
    """
    from ensue.runs.use import load_run
    from ensue.training import RunFolder

    check_files(None, picture)
    if (text is None) == (image is None):
        raise OptionError("expected --text of a translator, or --image of a captioner: one of them")
    _, model = load_run(RunFolder(run))
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = shutil.get_terminal_size().columns
    own = _translated if image is None else _described
    found, drawn, svg = own(run, model, text if image is None else image, width, colour)
    if as_json:
        print(json.dumps(asdict(found), ensure_ascii=False))
    else:
        print(f"{found.text}\n")
        print(drawn)
    if picture is not None:
        write_picture(picture, svg)


def _translated(
    run: Path, model: "TaskModel", text: Any, width: int, colour: bool
) -> tuple[Any, str, str]:
    """What was found, drawn for the terminal and as SVG."""
    from ensue.diagnose.alignment import alignment_picture, alignment_text
    from ensue.models.translator import Translator

    if not isinstance(model, Translator):
        raise RunError(f"{run}: expected a run of a translator, got a model to {model.kind}")
    found = model.explain(text)
    return found, alignment_text(found, width, colour), alignment_picture(found)


def _described(
    run: Path, model: "TaskModel", image: Any, width: int, colour: bool
) -> tuple[Any, str, str]:
    """The same, of a picture."""
    from ensue.data.images import read_image
    from ensue.diagnose.gaze import gaze_picture, gaze_text
    from ensue.models.captioner import Captioner

    if not isinstance(model, Captioner):
        raise RunError(f"{run}: expected a run of a captioner, got a model to {model.kind}")
    seen = read_image(image)
    found = model.explain(seen)
    return found, gaze_text(found, width, colour), gaze_picture(found, seen)
