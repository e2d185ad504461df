"""Studies of cells: memory."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensue.cli.app import (
    Dark,
    Picture,
    answer,
    app,
    check_files,
    say,
    write_file,
    write_picture,
)
from ensue.cli.grouped import grouped
from ensue.errors import OptionError
from ensue.study.memory.budget import RATE, RATE_WITHOUT_GATES, Budget

if TYPE_CHECKING:
    from ensue.cells import Cell

Tasks = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TASK",
        help="adding, temporal-order, counting, copy, parity, dyck; the first two if not given.",
    ),
]
Reach = Annotated[
    bool,
    typer.Option(
        "--reach", help="Find the longest T of 10, 20, 50, … up to --steps that each cell solves."
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--rate",
        metavar="X",
        help=f"Learning rate of Adam. [{RATE}; {RATE_WITHOUT_GATES} without gates]",
    ),
]
Start = Annotated[
    str,
    typer.Option(
        "--start",
        metavar="NAME",
        help="Initial gate biases: chrono (keep for up to T steps) or standard (the cell's own).",
    ),
]


@dataclass(frozen=True, kw_only=True)
class MemoryOptions:
    tasks: Tasks = None
    steps: Annotated[
        int, typer.Option("--steps", metavar="N", min=1, help="Length T of the sequences.")
    ] = 400
    reach: Reach = False
    cells: Annotated[
        str,
        typer.Option(
            "--cells", metavar="A,B", help="Cells by name or Python file: GRU,mine.py:MyCell."
        ),
    ] = "SimpleRNN,GRU,LSTM"
    updates: Annotated[
        int,
        typer.Option(
            "--updates",
            metavar="N",
            min=1,
            help="Maximum number of updates for each cell and task.",
        ),
    ] = Budget.updates
    hidden: Annotated[int, typer.Option("--hidden", metavar="N", min=1, help="Hidden units.")] = (
        Budget.hidden
    )
    rows: Annotated[
        int,
        typer.Option(
            "--rows", metavar="N", min=1, help="Batch size; every update has new sequences."
        ),
    ] = Budget.rows
    rate: Rate = Budget.rate
    clip: Annotated[
        float, typer.Option("--clip", metavar="X", help="Maximum norm of the gradient.")
    ] = Budget.clip
    start: Start = Budget.start
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Random seed of weights and data.")
    ] = Budget.seed
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="FILE", help="Write results and learning curves to a JSON file."
        ),
    ] = None
    picture: Picture = None
    dark: Dark = False


@app.command()
@grouped
def memory(options: MemoryOptions) -> None:
    """Measure how far back each cell remembers.

    Every cell is trained on every task with the same budget, until it solves it: adding at a mean
    squared error of 0.001 (chance 0.167), temporal order at an accuracy of 99 % (chance 25 %).
    Training stops once the validation error is four fifths of that; the score printed is that of
    the test part. Of the settings tried, the defaults are those with which gated cells solve
    adding over 400 steps fastest. Takes some minutes; Ctrl-C prints what has been measured so
    far.
    """
    from ensue.study.memory.picture import draw
    from ensue.study.memory.study import find_tasks, lengths_up_to, study_memory
    from ensue.study.memory.table import as_json, as_text

    check_files(options.json_file, options.picture)
    report = study_memory(
        find_tasks(options.tasks or ["adding", "temporal order"]),
        load_cells(options.cells),
        lengths_up_to(options.steps) if options.reach else [options.steps],
        Budget(
            options.updates,
            options.hidden,
            options.rows,
            options.rate,
            options.clip,
            seed=options.seed,
            start=options.start,
        ),
        say,
    )
    if report.trials:
        answer(as_text(report))
    if options.json_file is not None:
        write_json(options.json_file, as_json(report))
    if options.picture is not None and report.trials:
        write_picture(options.picture, draw(report), options.dark)
    if not report.finished:
        raise KeyboardInterrupt


def load_cells(names: str) -> dict[str, "Cell"]:
    """By the names they are shown under: of `mine.py:Mine` that is Mine, if no other has it."""
    from ensue.cells.load import load_cell

    given = [name.strip() for name in names.split(",") if name.strip()]
    if not given:
        raise OptionError("--cells: expected names such as GRU,LSTM, got none")
    found: dict[str, Cell] = {}
    for name in dict.fromkeys(given):
        short = name.rpartition(":")[2]
        found[name if short in found else short] = load_cell(name)
    return found


def write_json(path: Path, found: dict[str, object]) -> None:
    """Write the file and say so on stderr."""
    write_file(path, json.dumps(found, ensure_ascii=False, indent=1) + "\n")
