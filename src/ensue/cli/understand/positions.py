"""The positions of a Transformer."""

import os
import shutil
import sys
from dataclasses import asdict
from typing import Annotated

from ensue.cli.app import (
    AsJson,
    Dark,
    Picture,
    answer,
    app,
    as_json_text,
    check_files,
    option,
    write_picture,
)


@app.command(
    examples="""
    ensue positions
    ensue positions --steps 100 --width 128 --picture positions.svg
    """
)
def positions(
    steps: Annotated[int, option("--steps N", "Number of positions.", min=1)] = 50,
    width: Annotated[int, option("--width N", "Numbers of each vector.", min=2)] = 64,
    picture: Picture = None,
    dark: Dark = False,
    as_json: AsJson = False,
) -> None:
    """Show the sinusoidal positions of a Transformer as a heat map.

    A row for each position, a column for each number of its vector; then how close two positions
    are, which depends on their distance alone.
    """
    from ensue.study.foundations.positions import as_text, draw
    from ensue.study.foundations.positions import positions as table

    check_files(None, picture)
    found = table(steps, width)
    if as_json:
        answer(as_json_text(asdict(found)))
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        answer(as_text(found, shutil.get_terminal_size().columns, colour), styled=colour)
    if picture is not None:
        write_picture(picture, draw(found), dark)
